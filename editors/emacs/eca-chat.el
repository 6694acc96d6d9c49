;;; eca-chat.el --- The buffer of a chat  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; One buffer per chat.  The server echoes what the user said, so everything in the transcript comes
;; from the server; the buffer only adds what Emacs itself has to say, such as a crash.

;;; Code:

(require 'cl-lib)
(require 'ring)
(require 'subr-x)
(require 'text-property-search)
(require 'eca-session)
(require 'eca-transcript)
(require 'eca-tools)

(defcustom eca-open-reasoning nil
  "Whether the model's reasoning is shown unfolded."
  :type 'boolean :group 'eca)

(defcustom eca-ask-at-once t
  "Whether a question of the model opens the minibuffer when you look at its chat.
Otherwise the question waits in the chat for `eca-chat-answer'."
  :type 'boolean :group 'eca)

(defcustom eca-chat-display-action '((display-buffer-reuse-window display-buffer-in-direction)
                                     (direction . right) (window-width . 0.45))
  "How the window of a chat is found; see `display-buffer'."
  :type display-buffer--action-custom-type :group 'eca)

(declare-function eca-remove-context "eca-context")
(declare-function eca-select-model "eca-select")
(declare-function eca-select-agent "eca-select")
(declare-function eca-select-variant "eca-select")
(declare-function eca-toggle-trust "eca-select")
(declare-function eca-chat-open "eca-select")

(defvar-local eca--chat-id nil "The id of this buffer's chat.")
(defvar-local eca--parent-id nil "The id of the chat that this chat works for.")
(defvar-local eca--title nil "The title of the chat.")
(defvar-local eca--busy nil "Whether the server works on this chat.")
(defvar-local eca--doing nil "What the server says that it does.")
(defvar-local eca--usage nil "The last usage content.")
(defvar-local eca--prompted nil "Whether the server knows this chat.")
(defvar-local eca--contexts nil "Contexts that go with the next prompt.")
(defvar-local eca--labels nil "Hash table: label that was offered after `@' -> its context.")
(defvar-local eca--sent nil "Ring of what was sent.")
(defvar-local eca--steering nil "What was sent into the running turn and the model has not seen, oldest first.")
(defvar-local eca--recalled nil "Which element of `eca--sent' is in the input.")
(defvar-local eca--question nil "(PARAMS . REPLY) of the question that waits for an answer.")
(defvar-local eca--choices nil "What is selected for this chat alone.
A plist of :model, :agent, :variant, :variants and :trust.")

;;; The mode

(defvar eca-chat-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'eca-chat-return)
    (define-key map (kbd "C-c C-c") #'eca-chat-send)
    (define-key map (kbd "C-j") #'newline)
    (define-key map (kbd "M-RET") #'newline)
    (define-key map (kbd "S-<return>") #'newline)
    (define-key map (kbd "TAB") #'eca-chat-tab)
    (define-key map (kbd "M-p") #'eca-chat-previous-input)
    (define-key map (kbd "M-n") #'eca-chat-next-input)
    (define-key map (kbd "C-c C-k") #'eca-chat-stop)
    (define-key map (kbd "C-c C-u") #'eca-chat-take-back)
    (define-key map (kbd "C-c C-y") #'eca-approve)
    (define-key map (kbd "C-c C-n") #'eca-reject)
    (define-key map (kbd "C-c C-a") #'eca-approve-always)
    (define-key map (kbd "C-c C-d") #'eca-show-diff)
    (define-key map (kbd "C-c C-q") #'eca-chat-answer)
    (define-key map (kbd "C-c RET") #'eca-select-model)
    (define-key map (kbd "C-c C-b") #'eca-select-agent)
    (define-key map (kbd "C-c C-e") #'eca-select-variant)
    (define-key map (kbd "C-c C-t") #'eca-toggle-trust)
    (define-key map (kbd "C-c C-o") #'eca-chat-open)
    (define-key map (kbd "C-c C-f") #'eca-chat-new)
    (define-key map (kbd "C-c C-x") #'eca-remove-context)
    (define-key map (kbd "C-c C-p") #'eca-previous-message)
    (define-key map (kbd "C-c M-p") #'eca-previous-message)
    (define-key map (kbd "C-c M-n") #'eca-next-message)
    map)
  "Keys of a chat.")

(let ((map eca-transcript-map))
  (define-key map [remap self-insert-command] #'eca-chat-type)
  (define-key map (kbd "RET") #'eca-chat-return)
  (define-key map (kbd "TAB") #'eca-chat-tab)
  (define-key map [mouse-1] #'eca-chat-click)
  (define-key map "y" #'eca-chat-type)
  (define-key map "n" #'eca-chat-type)
  (define-key map "!" #'eca-chat-type)
  (define-key map "d" #'eca-chat-type))

(define-derived-mode eca-chat-mode nil "ECA"
  "A chat with a model that works on your code.

Write below the line; RET sends, \\[newline] begins a new line.
`@' completes files and other contexts, `#' names of files, `/' at
the beginning commands.  In the text above, TAB folds and unfolds.

\\{eca-chat-mode-map}"
  (setq-local buffer-invisibility-spec '(eca-mark)
              scroll-conservatively 101
              truncate-lines nil
              word-wrap t
              indent-tabs-mode nil
              inhibit-line-move-field-capture t
              mode-line-process '(:eval (eca--chat-mode-line))
              header-line-format '(:eval (eca--header))
              imenu-create-index-function #'eca--imenu
              imenu-auto-rescan t
              require-final-newline nil
              eca--labels (make-hash-table :test #'equal)
              eca--sent (make-ring 100))
  (eca--make-transcript))

(defun eca--chat-mode-line ()
  "What this chat does, for its mode line."
  (concat "["
          (cond ((not (and eca--session (eq (eca-session-state eca--session) 'ready)))
                 (eca-session-status eca--session))
                ((or eca--question (eca--pending-calls)) (propertize "needs you" 'face 'warning))
                (eca--busy (string-replace "%" "%%" (or eca--doing "working")))
                (t (eca-session-status eca--session)))
          "]"))

(defun eca--choice (key accessor)
  "What is selected under KEY for this chat.
Without a selection of its own, what ACCESSOR finds in the session."
  (if (plist-member eca--choices key) (plist-get eca--choices key)
    (and eca--session (funcall accessor eca--session))))

(defun eca--header ()
  "The header line of a chat."
  (let ((variant (eca--choice :variant #'eca-session-variant))
        (tokens (plist-get eca--usage :sessionTokens))
        (limit (eca--get eca--usage :limit :context))
        (cost (plist-get eca--usage :sessionCost)))
    (string-replace
     "%" "%%"
     (concat " " (propertize (or eca--title "New chat") 'face 'bold)
             "  " (or (eca--choice :agent #'eca-session-agent) "")
             " · " (or (eca--choice :model #'eca-session-model) "no model yet")
             (if variant (concat " · " variant) "")
             (if (eca--choice :trust #'eca-session-trust) (propertize " · trusted" 'face 'warning) "")
             (if tokens (concat "  " (eca--count tokens) (if limit (concat "/" (eca--count limit)) "") " tokens") "")
             (if cost (format "  $%s" cost) "")
             (pcase (and eca--session (eca-session-state eca--session))
               ('failed (propertize "  server crashed" 'face 'error))
               ('stopped (propertize "  server stopped" 'face 'warning))
               ('starting "  server starting")
               (_ ""))))))

(defun eca--count (number)
  "NUMBER in few characters."
  (cond ((< number 1000) (number-to-string number))
        ((< number 100000) (format "%.1fk" (/ number 1000.0)))
        ((< number 1000000) (format "%dk" (/ number 1000)))
        (t (format "%.1fM" (/ number 1000000.0)))))

(defun eca--imenu ()
  "What the user said, for `imenu'."
  (save-excursion
    (goto-char (point-min))
    (let (found place)
      (while (setq place (text-property-search-forward 'eca-said))
        (push (cons (car (split-string (string-trim (buffer-substring-no-properties
                                                     (prop-match-beginning place) (prop-match-end place)))
                                       "\n"))
                    (prop-match-beginning place))
              found))
      (nreverse found))))

(defun eca-previous-message ()
  "Go to what you said before point."
  (interactive)
  (let ((place (text-property-search-backward 'eca-said)))
    (if place (goto-char (prop-match-beginning place)) (user-error "You said nothing before this"))))

(defun eca-next-message ()
  "Go to what you said after point; after the last, to the input."
  (interactive)
  (let ((place (save-excursion (text-property-search-forward 'eca-said nil nil t))))
    (goto-char (if place (prop-match-beginning place) (point-max)))))

(defun eca--show-footer ()
  "Show the contexts of the next prompt and what the server does above the input."
  (let ((doing (when eca--busy
                 (propertize (format "%s…  %s" (or eca--doing "Working")
                                     (substitute-command-keys "\\<eca-chat-mode-map>(\\[eca-chat-stop] stops)"))
                             'face 'shadow)))
        (steering (when eca--steering
                    (propertize (format "Not seen yet: %s  %s"
                                        (truncate-string-to-width
                                         (replace-regexp-in-string "[\n\t ]+" " " (string-join eca--steering " ")) 40 nil nil t)
                                        (substitute-command-keys
                                         "\\<eca-chat-mode-map>(\\[eca-chat-take-back] takes it back)"))
                                'face 'shadow)))
        (contexts (when eca--contexts
                    (mapconcat (lambda (context) (propertize (concat "@" (eca-context-label context)) 'face 'eca-code))
                               eca--contexts "  ")))
        (keys (unless (or eca--busy eca--prompted eca--parent-id)
                (propertize (substitute-command-keys
                             "\\<eca-chat-mode-map>\\[eca-chat-return] sends, \\[newline] breaks the line, \\[eca-chat-tab] completes @, # and /")
                            'face 'shadow))))
    (eca--set-footer
     (when (or doing steering contexts keys)
       (concat (cond ((= eca--tail (point-min)) "") ((eq (char-before eca--tail) ?\n) "\n") (t "\n\n"))
               (string-join (delq nil (list contexts steering doing keys)) "\n"))))))

;;; Buffers

(defun eca--chat-buffer (session id &optional parent)
  "The buffer of the chat ID of SESSION, made if need be.
PARENT is the chat that it works for, if any."
  (let ((buffer (gethash id (eca-session-chats session))))
    (if (buffer-live-p buffer) buffer
      (with-current-buffer (generate-new-buffer (format "*eca: %s*" (eca-session-name session)))
        (eca-chat-mode)
        (setq eca--session session
              eca--chat-id id
              eca--parent-id parent
              default-directory (eca-session-root session))
        (puthash id (current-buffer) (eca-session-chats session))
        (add-hook 'kill-buffer-hook #'eca--forget-chat nil t)
        (eca--show-welcome)
        (current-buffer)))))

(defun eca--show-welcome ()
  "Show the server's greeting in an empty chat."
  (let ((welcome (eca-session-welcome eca--session)))
    (when (and welcome (= eca--tail (point-min)) (not eca--parent-id))
      (eca--say 'welcome (string-trim welcome))
      (eca--end-run)
      (eca--show-footer))))

(defun eca--forget-chat ()
  "The buffer of a chat is killed: stop what runs, and say no to what it asks."
  (when (eq (gethash eca--chat-id (eca-session-chats eca--session)) (current-buffer))
    (remhash eca--chat-id (eca-session-chats eca--session)))
  (eca--drop-question)
  (when (and eca--busy (eq (eca-session-state eca--session) 'ready))
    (eca-notify eca--session "chat/promptStop" (list :chatId eca--chat-id))))

(defun eca--chat-buffers (session)
  "The buffers of SESSION's chats."
  (cl-remove-if-not #'buffer-live-p (hash-table-values (eca-session-chats session))))

(defun eca--show-chat (buffer)
  "Show the chat BUFFER and go to it."
  (pop-to-buffer buffer eca-chat-display-action)
  (goto-char (point-max))
  buffer)

(defun eca--last-chat (session)
  "The chat of SESSION that was used last, or nil."
  (cl-find-if (lambda (buffer)
                (and (eq (buffer-local-value 'eca--session buffer) session)
                     (with-current-buffer buffer (derived-mode-p 'eca-chat-mode))
                     (not (buffer-local-value 'eca--parent-id buffer))))
              (buffer-list)))

(defun eca--current-chat ()
  "The chat that a command is about.
This buffer, or the last chat of the project, or a new one."
  (if (derived-mode-p 'eca-chat-mode) (current-buffer)
    (let ((session (eca-ensure-session)))
      (or (eca--last-chat session) (eca--chat-buffer session (eca--uuid))))))

(defun eca-chat-new ()
  "Begin a new chat in this project."
  (interactive)
  (eca--show-chat (eca--chat-buffer (eca-ensure-session) (eca--uuid))))

;;; Keys

(defun eca-chat-type ()
  "Type into the input, also when point is above it; on a call that waits, decide."
  (interactive)
  (let* ((block (eca--block-here))
         (pending (and block (eq (eca-block-get block :state) 'pending)))
         (command (and block (assq last-command-event
                                   `((?y . ,(and pending #'eca-approve)) (?n . ,(and pending #'eca-reject))
                                     (?! . ,(and pending #'eca-approve-always)) (?d . eca-show-diff))))))
    (if (cdr command) (call-interactively (cdr command))
      (goto-char (point-max))
      (setq this-command 'self-insert-command)
      (call-interactively #'self-insert-command))))

(defun eca-chat-return ()
  "Send the input; above it, press what is at point."
  (interactive)
  (cond ((>= (point) eca--input) (eca-chat-send))
        ((get-text-property (point) 'eca-command) (call-interactively (get-text-property (point) 'eca-command)))
        ((get-text-property (point) 'eca-target) (eca-follow-link))
        ((eca--block-here) (eca-toggle-block))
        (t (goto-char (point-max)))))

(defun eca-chat-click (event)
  "Press what is under the mouse of EVENT."
  (interactive "e")
  (mouse-set-point event)
  (when (or (get-text-property (point) 'eca-command) (get-text-property (point) 'eca-target)
            (and (eca--block-here) (= (line-beginning-position) (eca-block-start (eca--block-here)))))
    (eca-chat-return)))

(defun eca-chat-tab ()
  "Complete in the input; fold or unfold above it."
  (interactive)
  (cond ((>= (point) eca--input) (completion-at-point))
        ((eca--block-here) (eca-toggle-block))
        (t (let ((next (next-single-property-change (point) 'eca-block)))
             (goto-char (if (and next (< next eca--tail)) next (point-max)))))))

(defun eca-chat-previous-input (&optional step)
  "Put what you sent before into the input.
Go STEP back, or forward if it is negative."
  (interactive "p")
  (when (ring-empty-p eca--sent) (user-error "You sent nothing yet"))
  (let ((next (+ (or eca--recalled -1) (or step 1))))
    (cond ((< next 0) (setq eca--recalled nil) (eca--set-input ""))
          ((>= next (ring-length eca--sent)) (user-error "That was the first"))
          (t (setq eca--recalled next)
             (eca--set-input (ring-ref eca--sent next))))))

(defun eca-chat-next-input (&optional step)
  "Put what you sent after this into the input; STEP forward."
  (interactive "p")
  (eca-chat-previous-input (- (or step 1))))

;;; Sending

(defun eca-context-label (context)
  "What CONTEXT is called in a chat."
  (let ((path (plist-get context :path)))
    (pcase (plist-get context :type)
      ("file" (let ((lines (plist-get context :linesRange)))
                (concat (eca--shown-path path)
                        (when lines (format ":%s-%s" (plist-get lines :start) (plist-get lines :end))))))
      ("directory" (let ((shown (eca--shown-path path)))
                     (if (string-suffix-p "/" shown) shown (concat shown "/"))))
      ("cursor" (if path (format "%s:%s" (eca--shown-path path) (eca--get context :position :start :line)) "cursor"))
      ("mcpResource" (format "%s:%s" (plist-get context :server) (or (plist-get context :name) (plist-get context :uri))))
      ("text" (plist-get context :label))
      ("web" (plist-get context :url))
      (type type))))

(defun eca--mentioned (message)
  "The contexts that MESSAGE mentions with `@'."
  (let (found)
    (with-temp-buffer
      (insert message)
      (goto-char (point-min))
      (while (re-search-forward "\\(?:^\\|[ \t(]\\)@\\([^ \t\n]+\\)" nil t)
        (push (match-string 1) found)))
    (cl-loop for word in (nreverse found)
             for context = (or (gethash word eca--labels) (gethash (string-trim-right word "[.,;:!?)]+") eca--labels))
             when context collect context)))

(declare-function eca-cursor-context "eca-context")

(defun eca--prompt-contexts (message contexts)
  "CONTEXTS and what MESSAGE mentions, for a prompt.
A cursor without a place gets one."
  (cl-loop for context in (cl-remove-duplicates (append contexts (eca--mentioned message)) :test #'equal :from-end t)
           for placed = (if (and (equal (plist-get context :type) "cursor") (not (plist-get context :path)))
                            (eca-cursor-context eca--session)
                          context)
           when placed collect placed))

(defun eca-chat-send ()
  "Send the input."
  (interactive)
  (let ((message (string-trim (eca--text (eca--input-text)))))
    (when (string-empty-p message) (user-error "Write something below the line first"))
    (if (not eca--busy) (eca--prompt message)
      (pcase (car (read-multiple-choice "The model is still working."
                                        '((?s "steer" "slip this message into the running turn")
                                          (?i "interrupt" "stop the running turn and send this")
                                          (?w "wait" "leave it in the input"))))
        ;; It may have ended while you were asked.
        (?s (if (not eca--busy) (eca--prompt message)
              (eca-notify eca--session "chat/promptSteer" (list :chatId eca--chat-id :message message))
              (setq eca--steering (append eca--steering (list message)))
              (eca--sent-input message)
              (eca--show-footer)))
        (?i (eca--prompt message))))))

(defun eca--sent-input (message)
  "Clear the input, whose MESSAGE was sent."
  (ring-insert eca--sent message)
  (setq eca--recalled nil)
  (eca--set-input "")
  (setq buffer-undo-list nil))

(defun eca--prompt (message)
  "Send MESSAGE, which is in the input, with the chosen contexts."
  (let ((contexts eca--contexts))
    (setq eca--contexts nil)
    (eca--sent-input message)
    (eca--send-prompt message contexts)
    (goto-char (point-max))))

(defun eca--send-prompt (message contexts)
  "Send MESSAGE with CONTEXTS; on a refusal put it back."
  (let ((buffer (current-buffer))
        (params (append (list :chatId eca--chat-id :message message
                              :contexts (vconcat (eca--prompt-contexts message contexts)))
                        (eca--plist :model (plist-get eca--choices :model)
                                    :agent (plist-get eca--choices :agent)
                                    :variant (plist-get eca--choices :variant)
                                    :trust (and (eca--choice :trust #'eca-session-trust) t)))))
    (setq eca--busy t eca--doing "Sending" eca--prompted t)
    (eca--show-footer)
    (let ((back (lambda (why)
                  (when (buffer-live-p buffer)
                    (with-current-buffer buffer
                      (eca--idle)
                      (setq eca--contexts (append contexts eca--contexts))
                      (when (string-empty-p (eca--input-text)) (eca--set-input message))
                      (eca--note (concat "Not sent: " why))
                      (eca--show-footer))))))
      (condition-case oops
          (eca-request eca--session "chat/prompt" params
                       (lambda (result)
                         (when (equal (plist-get result :status) "error")
                           (funcall back (or (plist-get result :resultMessage) "the server refused it"))))
                       (lambda (oops) (funcall back (or (plist-get oops :message) "the server refused it"))))
        (error (funcall back (error-message-string oops)))))))

(defun eca-chat-stop ()
  "Stop what the server does in this chat."
  (interactive)
  (with-current-buffer (eca--current-chat)
    (unless eca--busy (user-error "Nothing runs in this chat"))
    (when eca--steering (eca-chat-take-back))
    (eca-notify eca--session "chat/promptStop" (list :chatId eca--chat-id))
    (setq eca--doing "Stopping")
    (eca--show-footer)))

(defun eca-chat-take-back ()
  "Put what you sent into the running turn back into the input.
What the model has seen already stays said."
  (interactive)
  (unless eca--steering (user-error "The model has seen all that you sent"))
  (eca-notify eca--session "chat/promptSteerRemove" (list :chatId eca--chat-id))
  (eca--restore-unseen))

(defun eca--restore-unseen ()
  "Put what the model has not seen before the draft in the input."
  (when eca--steering
    (let ((texts (append eca--steering (list (eca--input-text)))))
      (setq eca--steering nil)
      (eca--set-input (string-join (remove "" texts) "\n"))
      (eca--show-footer))))

(defun eca--turn-ended ()
  "The server has ended a turn: send what came too late for it.
The server forgets that."
  (eca--idle)
  (when eca--steering
    (let ((unseen (string-join eca--steering "\n")))
      (setq eca--steering nil)
      (eca--send-prompt unseen nil))))

;;; What the server says

(defun eca--content-received (session params)
  "Show the content in PARAMS in its chat of SESSION."
  (let ((content (plist-get params :content)))
    (with-current-buffer (eca--chat-buffer session (plist-get params :chatId) (plist-get params :parentChatId))
      (pcase (plist-get content :type)
        ("text" (eca--text-received (plist-get params :role) content))
        ("progress" (eca--progress-received content))
        ("usage" (setq eca--usage content))
        ("reasonStarted" (eca--add-block (plist-get content :id) 'reason :state 'open))
        ("reasonText" (eca--reason-text content))
        ("reasonFinished" (eca--reason-finished (eca--find-block (plist-get content :id)) (plist-get content :totalTimeMs)))
        ((or "toolCallPrepare" "toolCallRun" "toolCallRunning" "toolCalled" "toolCallRejected")
         (eca--call-event content)
         (eca--close-question))
        ("metadata" (eca--set-title (plist-get content :title)))
        ("url" (eca--say 'assistant (format "\n[%s](%s)\n" (plist-get content :title) (plist-get content :url))))
        ("image" (eca--image content))
        ("flag" (eca--note (concat "⚑ " (plist-get content :text))))
        ("hookActionStarted" (eca--add-block (plist-get content :id) 'hook :name (plist-get content :name)))
        ("hookActionFinished" (eca--hook-finished content)))
      (eca--show-footer)
      (force-mode-line-update))))

(defun eca--text-received (role content)
  "Let ROLE say the text of CONTENT."
  (let ((text (or (plist-get content :text) "")))
    (pcase role
      ("user"
       (setq eca--prompted t
             eca--steering (cl-remove-if (lambda (message) (string-search message text)) eca--steering))
       (apply #'eca--quote (string-trim text) 'face 'eca-user 'eca-said (or (plist-get content :contentId) t)
              'eca-content-id (plist-get content :contentId) (eca--bar 'eca-user-bar)))
      ("system" (apply #'eca--say 'system text (eca--bar 'eca-note)))
      (_ (eca--say 'assistant text)))))

(defun eca--progress-received (content)
  "Note what CONTENT says is being done."
  (if (equal (plist-get content :state) "finished") (eca--turn-ended)
    (setq eca--busy t eca--doing (plist-get content :text))
    (when eca--session (eca--changed eca--session))))

(defun eca--idle ()
  "The server has ended its work in this chat."
  (setq eca--busy nil eca--doing nil)
  (eca--end-run)
  (eca--drop-question)
  (cl-loop for block being the hash-values of eca--blocks
           do (when (eq (eca-block-get block :state) 'open) (eca--reason-finished block nil)))
  (eca--show-footer)
  (when eca--session (eca--changed eca--session)))

(defun eca--set-title (title)
  "Call the chat TITLE."
  (unless (member title '(nil ""))
    (setq eca--title (replace-regexp-in-string "[\n\t ]+" " " title))
    (rename-buffer (format "*eca: %s*" eca--title) t)))

(cl-defmethod eca-block-title ((_kind (eql reason)) block)
  "The heading of the reasoning BLOCK."
  (let ((time (eca-block-get block :time)))
    (propertize (cond ((eq (eca-block-get block :state) 'open) "Thinking…")
                      ((and time (>= time 1000)) (format "Thought for %s" (eca--duration time)))
                      (t "Thought"))
                'face 'eca-note)))

(cl-defmethod eca-block-text ((_kind (eql reason)) block)
  "The reasoning in BLOCK."
  (propertize (string-trim-left (string-join (reverse (eca-block-get block :pieces)))) 'face 'eca-note))

(defun eca--reason-text (content)
  "Add the text of CONTENT to its reasoning."
  (let ((block (or (eca--find-block (plist-get content :id))
                   (eca--add-block (plist-get content :id) 'reason :state 'open)))
        (text (plist-get content :text)))
    (eca-block-put block :pieces (cons text (eca-block-get block :pieces)))
    (cond ((and eca-open-reasoning (not (eca-block-open block))) (eca--set-open block t))
          ((and (eca-block-open block) (cdr (eca-block-get block :pieces))) (eca--grow-block block text))
          ((eca-block-open block) (eca--redraw-block block)))))

(defun eca--reason-finished (block time)
  "The reasoning in BLOCK has ended after TIME milliseconds."
  (when block
    (eca-block-put block :state 'closed :time time)
    (eca--redraw-block block)))

(cl-defmethod eca-block-title ((_kind (eql hook)) block)
  "The heading of the hook BLOCK."
  (let ((status (eca-block-get block :status)))
    (propertize (format "Hook %s%s" (eca-block-get block :name)
                        (cond ((null status) "…") ((eql status 0) "") (t (format " failed with %s" status))))
                'face 'eca-note)))

(cl-defmethod eca-block-text ((_kind (eql hook)) block)
  "What the hook BLOCK printed."
  (string-join (delq nil (list (eca-block-get block :output) (eca-block-get block :error))) "\n"))

(defun eca--hook-finished (content)
  "Note in its block that the hook of CONTENT has ended."
  (let ((block (eca--find-block (plist-get content :id))))
    (when block
      (eca-block-put block :status (plist-get content :status) :output (plist-get content :output)
                     :error (plist-get content :error))
      (eca--redraw-block block))))

(defun eca--image (content)
  "Show the picture of CONTENT."
  (eca--end-run)
  (let* ((data (base64-decode-string (plist-get content :base64)))
         (image (and (display-images-p) (ignore-errors (create-image data nil t :max-width 600)))))
    (eca--writing
      (eca--space 2)
      (if image (eca--put " " 'display image)
        (eca--put (format "[picture, %s, %s bytes]" (plist-get content :mediaType) (length data)) 'face 'eca-note)))))

(defun eca--chat-of (session params)
  "The buffer of the chat of SESSION that PARAMS are about, or nil."
  (let ((buffer (gethash (plist-get params :chatId) (eca-session-chats session))))
    (and (buffer-live-p buffer) buffer)))

(defun eca--status-changed (session params)
  "Note in SESSION the status in PARAMS."
  (let ((buffer (eca--chat-of session params)))
    (when buffer
      (with-current-buffer buffer
        (pcase (plist-get params :status)
          ("idle" (eca--turn-ended))
          ("stopping" (setq eca--doing "Stopping"))
          ("running" (setq eca--busy t)))
        (eca--show-footer)
        (force-mode-line-update)))))

(defun eca--chat-cleared (session params)
  "Empty the chat of SESSION that PARAMS name."
  (let ((buffer (eca--chat-of session params)))
    (when (and buffer (eca--true (plist-get params :messages)))
      (with-current-buffer buffer
        (eca--clear-transcript)
        (setq eca--usage nil)
        (eca--show-footer)))))

(defvar eca--awaited nil "Whether a chat that the server opens is one that the user wants to see.")

(defun eca--chat-opened (session params)
  "The server of SESSION opened the chat in PARAMS."
  (let ((buffer (eca--chat-buffer session (plist-get params :chatId))))
    (with-current-buffer buffer
      (setq eca--prompted t)
      (eca--set-title (plist-get params :title)))
    (when eca--awaited
      (setq eca--awaited nil)
      (eca--show-chat buffer))))

(defun eca--chat-deleted (session params)
  "The chat in PARAMS is gone from SESSION."
  (let ((buffer (eca--chat-of session params)))
    (when buffer
      (with-current-buffer buffer (setq eca--busy nil))
      (kill-buffer buffer))))

(defun eca--chat-config (session params)
  "Take over from PARAMS what is selected in SESSION or one of its chats."
  (let ((buffer (and (plist-get params :chatId) (eca--chat-of session params)))
        (chat (plist-get params :chat)))
    (when buffer
      (with-current-buffer buffer
        (pcase-dolist (`(,key ,choice) '((:selectModel :model) (:selectAgent :agent) (:selectVariant :variant)
                                         (:variants :variants) (:selectTrust :trust)))
          (when (plist-member chat key)
            (let ((value (plist-get chat key)))
              (setq eca--choices (plist-put eca--choices choice
                                            (pcase key
                                              (:variants (append value nil))
                                              (:selectTrust (eca--true value))
                                              (_ value)))))))))
    (eca--config-updated session params)))

(eca-on-notification "chat/contentReceived" #'eca--content-received)
(eca-on-notification "chat/statusChanged" #'eca--status-changed)
(eca-on-notification "chat/cleared" #'eca--chat-cleared)
(eca-on-notification "chat/opened" #'eca--chat-opened)
(eca-on-notification "chat/deleted" #'eca--chat-deleted)
(eca-on-notification "config/updated" #'eca--chat-config)

(defun eca--chats-gone (session sentence)
  "The server of SESSION died: end what its chats wait for, and tell with SENTENCE."
  (dolist (buffer (eca--chat-buffers session))
    (with-current-buffer buffer
      (let ((busy eca--busy))
        (dolist (block (hash-table-values eca--blocks))
          (when (memq (eca-block-get block :state) '(preparing pending asking decided running))
            (eca-block-put block :state 'failed)
            (eca--set-open block nil)))
        (setq eca--question nil)
        (eca--idle)
        (eca--restore-unseen)
        (when (or busy (get-buffer-window nil t))
          (eca--note (concat sentence (when busy "  The answer above is incomplete; ask again to go on.")))
          (eca--show-footer))))))

(defun eca--chats-changed (session)
  "Bring the header lines of SESSION's chats up to date, and greet in empty ones."
  (dolist (buffer (eca--chat-buffers session))
    (with-current-buffer buffer
      (eca--show-welcome)
      (force-mode-line-update))))

(add-hook 'eca-session-gone-functions #'eca--chats-gone)
(add-hook 'eca-session-changed-functions #'eca--chats-changed)

(defun eca--chats-status (session)
  "What the chats of SESSION do or wait for, for the mode line."
  (let (doing waiting)
    (dolist (buffer (eca--chat-buffers session))
      (with-current-buffer buffer
        (cond ((or eca--question (eca--pending-calls)) (setq waiting t))
              (eca--busy (setq doing (or eca--doing "working"))))))
    (cond (waiting (propertize "needs you" 'face 'warning))
          (doing (string-replace "%" "%%" doing)))))

(add-hook 'eca-mode-line-status-functions #'eca--chats-status)

;;; Questions

(cl-defmethod eca-block-title ((_kind (eql question)) block)
  "The heading of the question BLOCK."
  (concat (propertize "? " 'face 'eca-pending) (propertize (eca-block-get block :question) 'face 'eca-block-heading)
          (when (eca-block-get block :answer) (eca--shown-answer (eca-block-get block :answer)))))

(cl-defmethod eca-block-text ((_kind (eql question)) block)
  "The answers that the question BLOCK offers."
  (eca--answers block))

(defun eca--question-block (params)
  "The block that shows the question in PARAMS.
If a tool call asks, that is the call's own; nil if the call has ended."
  (let* ((data (list :state 'asking :question (plist-get params :question) :options (plist-get params :options)))
         (id (plist-get params :toolCallId))
         (call (eca--find-block id)))
    (cond ((null id) (apply #'eca--add-block (eca--uuid) 'question data))
          ((null call) (apply #'eca--add-block id 'tool :name "ask_user" data))
          ((memq (eca-block-get call :state) '(done failed rejected)) nil)
          (t (apply #'eca-block-put call data)
             (setf (eca-block-touched call) nil)
             call))))

(defun eca--ask-question (session params reply)
  "Put the question in PARAMS to the user of SESSION; REPLY takes the answer."
  (with-current-buffer (eca--chat-buffer session (plist-get params :chatId))
    (eca--drop-question)
    (let ((block (eca--question-block params)))
      (if (not block) (eca--reply-question reply nil)
        (setq eca--question (list params reply block))
        (eca--set-open block t)
        (eca--show-footer)
        (eca--changed session)
        (if (and eca-ask-at-once (eq (window-buffer (selected-window)) (current-buffer)) (not (active-minibuffer-window))
                 (not noninteractive))
            (eca-chat-answer)
          (message "ECA asks: %s  (%s in the chat answers)" (plist-get params :question)
                   (substitute-command-keys "\\<eca-chat-mode-map>\\[eca-chat-answer]")))))))

(defun eca--reply-question (reply answer)
  "Give ANSWER to REPLY; nil declines the question."
  (funcall reply (list :answer answer :cancelled (eca--bool (not answer)))))

(defun eca--settle-question (answer)
  "Answer the question of this chat with ANSWER, or decline if it is nil."
  (pcase-let ((`(,_ ,reply ,block) eca--question))
    (setq eca--question nil)
    (eca-block-put block :answer (or answer "no answer"))
    (when (eq (eca-block-get block :state) 'asking)
      (eca-block-put block :state 'decided))
    (eca--set-open block nil)
    (eca--show-footer)
    (eca--reply-question reply answer)
    (eca--changed eca--session)))

(defun eca--close-question ()
  "Decline the question of this chat if its tool call no longer asks."
  (when (and eca--question (not (eq (eca-block-get (nth 2 eca--question) :state) 'asking)))
    (eca--settle-question nil)))

(defun eca--drop-question ()
  "Decline the question of this chat, if there is one."
  (when eca--question (eca--settle-question nil)))

(defun eca--answer-here ()
  "Answer the question with what is at point."
  (interactive)
  (let ((answer (get-text-property (point) 'eca-answer)))
    (if (and eca--question answer) (eca--settle-question answer)
      (user-error "This question is closed"))))

(defun eca-chat-answer ()
  "Answer the question of the model; \\[keyboard-quit] leaves it open, nothing declines."
  (interactive)
  (unless eca--question (user-error "Nothing was asked"))
  (let* ((buffer (current-buffer))
         (asked eca--question)
         (params (car eca--question))
         (options (append (plist-get params :options) nil))
         (free (or (eca--true (plist-get params :allowFreeform)) (null options)))
         (prompt (concat (plist-get params :question) " "))
         (completion-extra-properties
          (list :annotation-function
                (lambda (label)
                  (let ((option (cl-find label options :key (lambda (option) (plist-get option :label)) :test #'equal)))
                    (when (plist-get option :description) (concat "  " (plist-get option :description)))))))
         (answer (condition-case nil
                     (if options
                         (completing-read prompt (mapcar (lambda (option) (plist-get option :label)) options) nil (not free))
                       (read-string prompt))
                   (quit nil))))
    (with-current-buffer buffer
      (cond ((not (eq asked eca--question)) (message "ECA: the question is closed"))
            ((null answer)
             (message "ECA: the question waits; %s answers it"
                      (substitute-command-keys "\\<eca-chat-mode-map>\\[eca-chat-answer]")))
            (t (eca--settle-question (if (string-empty-p answer) nil answer)))))))

(eca-on-request "chat/askQuestion" #'eca--ask-question)

(provide 'eca-chat)
;;; eca-chat.el ends here
