;;; eca-suggest.el --- Text that the model suggests at point  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; `eca-suggest' asks the model once how the text goes on at point; with `eca-suggest-mode' Emacs asks
;; by itself whenever you stop typing.  What comes is shown behind point by an overlay and becomes
;; part of the buffer only when you accept it.
;;
;; A suggestion is about one text and one place: if either has changed, it is neither shown nor
;; accepted.  There is at most one request on its way and at most one suggestion on the screen.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'eca-session)
(require 'eca-context)

(defcustom eca-suggest-delay 0.6
  "Seconds without a key after which `eca-suggest-mode' asks for a suggestion."
  :type 'number :group 'eca)

(defcustom eca-suggest-largest-buffer 400000
  "In a buffer with more characters than this nothing is suggested.
All of the buffer goes to the server with every request."
  :type 'natnum :group 'eca)

(defcustom eca-suggest-inhibit-functions nil
  "Functions that keep Emacs from asking for suggestions by itself.
They are called without arguments; if one of them returns something
other than nil, nothing is asked.  `eca-suggest' asks all the same."
  :type 'hook :group 'eca)

(defface eca-suggestion '((t :inherit shadow :slant italic)) "Text that the model suggests." :group 'eca)

(defvar eca-suggestion-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "TAB") #'eca-suggest-accept)
    (define-key map [tab] #'eca-suggest-accept)
    (define-key map (kbd "M-f") #'eca-suggest-accept-word)
    (define-key map (kbd "C-e") #'eca-suggest-accept-line)
    (define-key map (kbd "C-g") #'eca-suggest-dismiss)
    map)
  "Keys that hold while a suggestion is shown, and only then.")

(defconst eca--suggest-commands
  '(eca-suggest-accept eca-suggest-accept-word eca-suggest-accept-line eca-suggest-dismiss)
  "The commands that a suggestion survives; they care for it themselves.")

(cl-defstruct eca-suggestion
  "A text that was asked for or is shown, and the place that it is for."
  buffer tick point
  session asked                         ; asked: whether the user wants to hear why there is none
  withdraw                              ; function that withdraws the request
  text overlay)

(defvar eca--suggest-request nil "The suggestion that is on its way, or nil.")
(defvar eca--suggestion nil "The suggestion that is shown, or nil.")
(defvar eca--suggest-timer nil "The timer of the next request, or nil.")
(defvar-local eca--suggest-seen nil "The text before the command that runs, as a tick.")

(defvar company-candidates)
(defvar ac-completing)
(defvar epa-file-name-regexp)
(defvar evil-state)

;;; Where and when

(defun eca--suggest-foreign ()
  "Why this is no buffer for suggestions, as a sentence; nil if it is one."
  (cond ((or (minibufferp) (derived-mode-p 'eca-chat-mode 'special-mode 'comint-mode)
             (eq (get major-mode 'mode-class) 'special)
             (not (or buffer-file-name (derived-mode-p 'prog-mode 'text-mode 'conf-mode))))
         "Suggestions are for files and other texts of your own")
        ((and buffer-file-name (bound-and-true-p epa-file-name-regexp)
              (string-match-p epa-file-name-regexp buffer-file-name))
         "The text of an encrypted file is not sent anywhere")))

(defun eca--suggest-unfit ()
  "Why nothing can be suggested here and now, as a sentence; nil if it can."
  (cond ((eca--suggest-foreign))
        ((and (or buffer-read-only (get-pos-property (point) 'read-only)) (not inhibit-read-only))
         "This text is read-only")
        ((> (buffer-size) eca-suggest-largest-buffer)
         "This buffer is larger than `eca-suggest-largest-buffer'")))

(defun eca--suggest-popup-p ()
  "Whether candidates of another completion are on the screen."
  (or (bound-and-true-p company-candidates)
      (bound-and-true-p ac-completing)
      ;; Also while corfu shows its candidates.
      completion-in-region-mode))

(defun eca--suggest-busy-p ()
  "Whether the user does something else than writing."
  (or (use-region-p) executing-kbd-macro defining-kbd-macro (active-minibuffer-window)
      (bound-and-true-p isearch-mode)
      (and (bound-and-true-p evil-local-mode) (not (memq evil-state '(insert emacs replace))))
      (run-hook-with-args-until-success 'eca-suggest-inhibit-functions)))

(defun eca--suggest-fresh-p (suggestion)
  "Whether SUGGESTION is about the text and the place that the user looks at."
  (let ((buffer (eca-suggestion-buffer suggestion)))
    (and (eq buffer (window-buffer (selected-window)))
         (with-current-buffer buffer
           (and (= (point) (eca-suggestion-point suggestion))
                (= (buffer-chars-modified-tick) (eca-suggestion-tick suggestion)))))))

;;; Asking

;;;###autoload
(defun eca-suggest ()
  "Ask the model once how the text goes on at point."
  (interactive)
  (let ((unfit (eca--suggest-unfit)))
    (when unfit (user-error "%s" unfit)))
  (eca--suggest-ask (eca-ensure-session) t)
  (when eca--suggest-request (message "ECA: asking for a suggestion…")))

(defun eca--suggest-ask (session asked)
  "Ask the server of SESSION for a suggestion at point.
ASKED: whether the user did."
  (eca-suggest-dismiss)
  (eca--suggest-withdraw)
  (let ((suggestion (make-eca-suggestion :buffer (current-buffer) :tick (buffer-chars-modified-tick) :point (point)
                                         :session session :asked asked)))
    (setq eca--suggest-request suggestion)
    (add-hook 'post-command-hook #'eca--suggest-watch)
    (setf (eca-suggestion-withdraw suggestion)
          (eca-request session "completion/inline" (eca--suggest-params)
                       (lambda (result) (eca--suggest-received suggestion result))
                       (lambda (oops) (eca--suggest-failed suggestion oops))))))

(defun eca--suggest-params ()
  "The text of this buffer and the place of point, for the server."
  (append (list :docText (eca--text (save-restriction (widen) (buffer-substring-no-properties (point-min) (point-max))))
                :docVersion (buffer-chars-modified-tick)
                :position (eca-position (point)))
          (eca--plist :path (and buffer-file-name (eca--server-path buffer-file-name)))))

(defun eca--suggest-watch ()
  "Withdraw the request that is on its way if the user went on.
Runs after every command while there is one."
  (when (and eca--suggest-request
             (or (eq this-command 'keyboard-quit) (not (eca--suggest-fresh-p eca--suggest-request))))
    (eca--suggest-withdraw)))

(defun eca--suggest-withdraw ()
  "Have no request on its way."
  (let ((request eca--suggest-request))
    (eca--suggest-over request)
    (when (and request (eca-suggestion-withdraw request))
      (funcall (eca-suggestion-withdraw request)))))

(defun eca--suggest-over (request)
  "Note that nothing comes of REQUEST any more, or that it has come."
  (when (eq request eca--suggest-request)
    (setq eca--suggest-request nil)
    (remove-hook 'post-command-hook #'eca--suggest-watch)))

(defun eca--suggest-received (suggestion result)
  "Show what RESULT says is the text of SUGGESTION, or tell why there is none."
  (eca--suggest-over suggestion)
  (when (eca--suggest-fresh-p suggestion)
    (with-current-buffer (eca-suggestion-buffer suggestion)
      (let ((text (eca--suggest-text (append (plist-get result :items) nil)))
            (oops (plist-get result :error)))
        (cond ((and text (eca--suggest-unfit))
               (eca--suggest-tell suggestion (eca--suggest-unfit)))
              ((and text (eca--suggest-popup-p))
               (eca--suggest-tell suggestion "something else is being completed"))
              (text (setf (eca-suggestion-text suggestion) text)
                    (eca--suggest-show suggestion)
                    (when (eca-suggestion-asked suggestion) (message nil)))
              (t (eca--suggest-tell suggestion (or (plist-get oops :message) "the model has nothing to suggest here"))))))))

(defun eca--suggest-failed (suggestion oops)
  "The request for SUGGESTION was refused with the error object OOPS."
  (eca--suggest-over suggestion)
  (let ((session (eca-suggestion-session suggestion)))
    (cond ((equal (plist-get oops :code) -32601)
           (setf (eca-session-suggests session) 'no)
           (eca--suggest-tell suggestion "this server does not offer suggestions"))
          ;; That a server has ended is told without us.
          ((eca-transport-live-p (eca-session-transport session))
           (eca--suggest-tell suggestion (or (plist-get oops :message) "the server refused it"))))))

(defun eca--suggest-text (items)
  "What the first of ITEMS that is about this text inserts at point, or nil.
An item replaces a range; what it only repeats is taken off."
  (save-restriction
    (widen)
    (cl-loop for item in items
             for (begin . end) = (eca--suggest-bounds (plist-get item :range))
             for text = (replace-regexp-in-string "\r\n?" "\n" (or (plist-get item :text) ""))
             for before = (and (<= begin (point)) (buffer-substring-no-properties begin (point)))
             for after = (and (>= end (point)) (buffer-substring-no-properties (point) end))
             when (and before after
                       (member (plist-get item :docVersion) (list nil (buffer-chars-modified-tick)))
                       (> (length text) (+ (length before) (length after)))
                       (string-prefix-p before text) (string-suffix-p after text))
             return (substring text (length before) (- (length text) (length after))))))

(defun eca--suggest-bounds (range)
  "RANGE of the server as a pair of places; without a range, point."
  (if (not range) (cons (point) (point))
    (save-excursion
      (cl-flet ((place (position) (eca-goto-position position) (point)))
        (cons (place (plist-get range :start)) (place (plist-get range :end)))))))

(defun eca--suggest-tell (suggestion why)
  "Tell WHY there is no SUGGESTION.
If nobody asked for it, a reason is told once, whatever numbers are in it."
  (let ((session (eca-suggestion-session suggestion))
        (reason (replace-regexp-in-string "[0-9]+" "0" why)))
    (when (or (eca-suggestion-asked suggestion)
              (not (or (member reason (eca-session-reasons session))
                       (nthcdr 20 (eca-session-reasons session)))))
      (cl-pushnew reason (eca-session-reasons session) :test #'equal)
      (message "ECA: no suggestion: %s" why))))

(add-hook 'eca-session-ready-functions
          (lambda (session)
            ;; It may be another server now, or another key.
            (setf (eca-session-suggests session) nil
                  (eca-session-reasons session) nil)))

;;; Showing

(defun eca--suggest-show (suggestion)
  "Show SUGGESTION at point, where it belongs."
  (let ((ghost (propertize (eca-suggestion-text suggestion) 'face 'eca-suggestion))
        ;; Empty, but what is typed there would be inside: only then do its keys count at point.
        (overlay (make-overlay (point) (point) nil nil t)))
    ;; The cursor cannot stand on a line break.
    (when (string-prefix-p "\n" ghost) (setq ghost (concat " " ghost)))
    (put-text-property 0 1 'cursor t ghost)
    (overlay-put overlay 'after-string ghost)
    (overlay-put overlay 'keymap eca-suggestion-map)
    (overlay-put overlay 'priority 1000)
    (overlay-put overlay 'window (selected-window))
    (setf (eca-suggestion-overlay suggestion) overlay
          (eca-suggestion-tick suggestion) (buffer-chars-modified-tick)
          (eca-suggestion-point suggestion) (point))
    (setq eca--suggestion suggestion)
    (add-hook 'pre-command-hook #'eca--suggest-before-command)
    (add-hook 'post-command-hook #'eca--suggest-after-command)
    (add-hook 'after-change-functions #'eca-suggest-dismiss nil t)
    (add-hook 'kill-buffer-hook #'eca-suggest-dismiss nil t)
    (add-hook 'completion-in-region-mode-hook #'eca-suggest-dismiss nil t)
    (add-hook 'company-completion-started-hook #'eca-suggest-dismiss nil t)))

(defun eca-suggest-dismiss (&rest _)
  "Take the suggestion from the screen."
  (interactive)
  (let ((suggestion eca--suggestion))
    (when suggestion
      (setq eca--suggestion nil)
      (eca--suggest-wait nil)
      (remove-hook 'pre-command-hook #'eca--suggest-before-command)
      (remove-hook 'post-command-hook #'eca--suggest-after-command)
      (delete-overlay (eca-suggestion-overlay suggestion))
      (when (buffer-live-p (eca-suggestion-buffer suggestion))
        (with-current-buffer (eca-suggestion-buffer suggestion)
          (dolist (hook '(after-change-functions kill-buffer-hook completion-in-region-mode-hook
                          company-completion-started-hook))
            (remove-hook hook #'eca-suggest-dismiss t)))))))

(defun eca--suggest-before-command ()
  "Take the suggestion away, unless the next command is about it."
  (unless (memq this-command eca--suggest-commands) (eca-suggest-dismiss)))

(defun eca--suggest-after-command ()
  "Take the suggestion away if it no longer fits.
Something else than a command may have moved point."
  (unless (eca--suggest-fresh-p eca--suggestion) (eca-suggest-dismiss)))

;;; Accepting

(defun eca--suggest-take (length)
  "Insert the first characters of the suggestion, as many as LENGTH finds.
LENGTH is called with the text.  What is left is shown further on."
  (let ((suggestion eca--suggestion))
    (unless (and suggestion (eca--suggest-fresh-p suggestion))
      (eca-suggest-dismiss)
      (user-error "There is no suggestion for this text"))
    (let* ((text (eca-suggestion-text suggestion))
           (end (funcall length text)))
      (eca-suggest-dismiss)
      (insert (substring text 0 end))
      (when (< end (length text))
        (setf (eca-suggestion-text suggestion) (substring text end))
        (eca--suggest-show suggestion)))))

(defun eca-suggest-accept ()
  "Insert the suggestion."
  (interactive "*")
  (eca--suggest-take #'length))

(defun eca-suggest-accept-word ()
  "Insert the suggestion up to the end of its first word."
  (interactive "*")
  (let ((syntax (syntax-table)))
    (eca--suggest-take (lambda (text)
                         (with-temp-buffer
                           (set-syntax-table syntax)
                           (insert text)
                           (goto-char (point-min))
                           (forward-word)
                           (1- (point)))))))

(defun eca-suggest-accept-line ()
  "Insert the suggestion up to the end of its first line."
  (interactive "*")
  (eca--suggest-take (lambda (text)
                       (string-match "\\`\n*[^\n]*" text)
                       (match-end 0))))

;;; By itself

;;;###autoload
(define-minor-mode eca-suggest-mode
  "Ask the model for a suggestion whenever you stop typing in this buffer.
Every request costs what a prompt with the text around point costs at
your provider.  Nothing is asked while no server runs for the project;
\\[eca] starts it.  While a suggestion is shown, these keys hold:

\\{eca-suggestion-map}"
  :lighter " Suggest" :group 'eca
  (cond (eca-suggest-mode
         (add-hook 'pre-command-hook #'eca--suggest-before-typing nil t)
         (add-hook 'post-command-hook #'eca--suggest-typed nil t)
         (when (and (called-interactively-p 'any) (not (eca-current-session)))
           (message "ECA: suggestions begin when the server of this project runs; M-x eca starts it")))
        (t
         (remove-hook 'pre-command-hook #'eca--suggest-before-typing t)
         (remove-hook 'post-command-hook #'eca--suggest-typed t)
         (dolist (suggestion (list eca--suggestion eca--suggest-request))
           (when (and suggestion (eq (eca-suggestion-buffer suggestion) (current-buffer)))
             (eca-suggest-dismiss)
             (eca--suggest-withdraw))))))

(defun eca--suggest-turn-on ()
  "Turn `eca-suggest-mode' on, if this is a buffer for suggestions."
  (unless (eca--suggest-foreign) (eca-suggest-mode 1)))

;;;###autoload
(define-globalized-minor-mode global-eca-suggest-mode eca-suggest-mode eca--suggest-turn-on
  :group 'eca)

(defconst eca--suggest-undo
  '(undo undo-only undo-redo undo-tree-undo undo-tree-redo undo-fu-only-undo undo-fu-only-redo vundo
    evil-undo evil-redo)
  "Commands that bring back a text which the user has had before.")

(defun eca--suggest-before-typing ()
  "Note how the text is before a command.
What changes it otherwise, such as a tool of the model, is not typed."
  (setq eca--suggest-seen (buffer-chars-modified-tick)))

(defun eca--suggest-typed ()
  "After a command that changed the text, ask for a suggestion when the user rests."
  (let ((tick (buffer-chars-modified-tick))
        (seen eca--suggest-seen))
    (setq eca--suggest-seen nil)
    (when (and seen (/= tick seen))
      (eca--suggest-wait
       (unless (memq this-command eca--suggest-undo)
         (run-with-idle-timer eca-suggest-delay nil #'eca--suggest-rested (current-buffer) tick (point)))))))

(defun eca--suggest-wait (timer)
  "Have TIMER ask for the next suggestion, and no other."
  (when eca--suggest-timer (cancel-timer eca--suggest-timer))
  (setq eca--suggest-timer timer))

(defun eca--suggest-rested (buffer tick place)
  "The user rests: ask for a suggestion in BUFFER.
Unless its text or point are no longer those of TICK and PLACE."
  (setq eca--suggest-timer nil)
  (when (and (buffer-live-p buffer)
             (eca--suggest-fresh-p (make-eca-suggestion :buffer buffer :tick tick :point place)))
    (with-current-buffer buffer
      (let ((session (eca-current-session)))
        (when (and eca-suggest-mode session
                   (eq (eca-session-state session) 'ready)
                   (not (eq (eca-session-suggests session) 'no))
                   (not eca--suggestion)
                   (not (eca--suggest-unfit)) (not (eca--suggest-popup-p)) (not (eca--suggest-busy-p)))
          (eca--suggest-ask session nil))))))

(provide 'eca-suggest)
;;; eca-suggest.el ends here
