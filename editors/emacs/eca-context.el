;;; eca-context.el --- What goes along with a prompt, and how it is completed  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; `eca-add-context' sends along the region, or the place of point.  In the input of a chat, `@'
;; completes whatever the server offers as a context, `#' names of files, and `/' the commands it
;; knows.  The server searches; Emacs only shows what it found.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'eca-session)
(require 'eca-chat)

(declare-function dired-get-marked-files "dired")

;;; Places

(defun eca--utf16-length (begin end)
  "How many UTF-16 units the text from BEGIN to END has."
  (cl-loop for char across (buffer-substring-no-properties begin end)
           sum (if (and (> char #xffff) (<= char #x10ffff)) 2 1)))

(defun eca-position (place)
  "PLACE in the current buffer as line and character, both counted from 1."
  (save-excursion
    (save-restriction
      (widen)
      (goto-char place)
      (list :line (line-number-at-pos)
            :character (1+ (eca--utf16-length (line-beginning-position) (point)))))))

(defun eca-goto-position (position)
  "Go to POSITION, whose line and character count from 1."
  (widen)
  (goto-char (point-min))
  (forward-line (1- (plist-get position :line)))
  (let ((units (1- (plist-get position :character))))
    (while (and (> units 0) (not (eolp)))
      (setq units (- units (if (> (char-after) #xffff) 2 1)))
      (forward-char))))

(defun eca-range (begin end)
  "The text from BEGIN to END as a range."
  (list :start (eca-position begin) :end (eca-position end)))

;;; Contexts of the editor

(defun eca-region-context (begin end)
  "The lines from BEGIN to END as a context.
The server reads files itself, so a text that is not saved is sent as it is."
  (let* ((first (line-number-at-pos begin t))
         (last (line-number-at-pos (if (and (> end begin) (save-excursion (goto-char end) (bolp))) (1- end) end) t)))
    (if (and buffer-file-name (not (buffer-modified-p)))
        (list :type "file" :path (eca--server-path buffer-file-name) :linesRange (list :start first :end last))
      (list :type "text"
            :label (format "%s:%d-%d" (if buffer-file-name (file-name-nondirectory buffer-file-name) (buffer-name)) first last)
            :content (eca--text (buffer-substring-no-properties begin end))))))

(defun eca-file-context (file)
  "FILE, or a folder, as a context."
  (list :type (if (file-directory-p file) "directory" "file") :path (directory-file-name (eca--server-path file))))

(defun eca-point-context ()
  "The place of point as a context."
  (if buffer-file-name
      (list :type "cursor" :path (eca--server-path buffer-file-name) :position (eca-range (point) (point)))
    (eca-region-context (line-beginning-position) (line-end-position))))

(defun eca-cursor-context (session)
  "Where the user's cursor is in the last used file of SESSION, or nil."
  (let ((buffer (cl-find-if (lambda (buffer)
                              (let ((file (buffer-file-name buffer)))
                                (and file (string-prefix-p (eca-session-root session) (expand-file-name file)))))
                            (buffer-list))))
    (when buffer
      (with-current-buffer buffer
        (let ((window (get-buffer-window buffer t)))
          (save-excursion
            (when window (goto-char (window-point window)))
            (eca-point-context)))))))

;;;###autoload
(defun eca-add-context ()
  "Send the region along with the next prompt.
If there is no region, send the place of point; in Dired, the marked
files, or the one at point."
  (interactive)
  (when (derived-mode-p 'eca-chat-mode) (user-error "Go to the text that you want to send along"))
  (let ((contexts (cond ((derived-mode-p 'dired-mode) (mapcar #'eca-file-context (dired-get-marked-files)))
                        ((use-region-p) (list (eca-region-context (region-beginning) (region-end))))
                        (t (list (eca-point-context))))))
    (deactivate-mark)
    (eca--add-contexts contexts)))

(defun eca--add-contexts (contexts)
  "Send CONTEXTS along with the next prompt of the chat, and go there."
  (let ((chat (eca--current-chat)))
    (with-current-buffer chat
      (dolist (context contexts) (cl-pushnew context eca--contexts :test #'equal))
      (eca--show-footer)
      (message "ECA: %s goes with the next prompt"
               (mapconcat (lambda (context) (concat "@" (eca-context-label context))) contexts ", ")))
    (eca--show-chat chat)))

;;;###autoload
(defun eca-add-file (file)
  "Send FILE, or a folder, along with the next prompt."
  (interactive "fSend along: ")
  (eca--add-contexts (list (eca-file-context file))))

(defun eca-remove-context ()
  "Take a context away from the next prompt."
  (interactive)
  (unless eca--contexts (user-error "No context goes with the next prompt"))
  (let* ((labels (mapcar (lambda (context) (cons (eca-context-label context) context)) eca--contexts))
         (label (if (cdr labels) (completing-read "Remove: " labels nil t) (caar labels))))
    (setq eca--contexts (delq (cdr (assoc label labels)) eca--contexts))
    (eca--show-footer)
    (message "ECA: @%s removed" label)))

;;;###autoload
(defun eca-ask (question)
  "Ask QUESTION about the region, or about the place of point."
  (interactive (list (read-string (if (use-region-p) "Ask about the region: " "Ask about this place: "))))
  (when (string-blank-p question) (user-error "There is nothing to ask"))
  (eca-add-context)
  (let ((draft (eca--input-text)))
    (eca--set-input question)
    (eca-chat-send)
    (unless (string-empty-p draft) (eca--set-input draft))))

;;; Completion

(defvar-local eca--found nil "(METHOD QUERY . ANSWER) of the last query, so that one TAB asks once.")

(defun eca--query (method query params key)
  "What METHOD finds for QUERY with PARAMS, which the answer holds under KEY."
  (if (and (equal (car eca--found) method) (equal (cadr eca--found) query))
      (cddr eca--found)
    (let ((answer (condition-case oops
                      (plist-get (eca-request-wait eca--session method
                                                   (append (list :chatId eca--chat-id :query query) params) 3)
                                 key)
                    (user-error (message "ECA: %s" (error-message-string oops)) nil))))
      (setq eca--found (cons method (cons query (append answer nil))))
      (cddr eca--found))))

(defun eca--table (find annotate)
  "A completion table.
FIND returns the candidates for what is in the buffer now, ANNOTATE
says more about one of them."
  (lambda (string predicate action)
    (if (eq action 'metadata)
        `(metadata (category . eca) (annotation-function . ,annotate) (display-sort-function . identity)
                   (cycle-sort-function . identity))
      (complete-with-action action (funcall find) string predicate))))

(add-to-list 'completion-category-defaults '(eca (styles basic substring flex)))

(defun eca-completion-at-point ()
  "Complete what stands after `@', `#' or `/' in the input of a chat.
That is a context, the name of a file or a command."
  (when (and eca--input (>= (point) eca--input))
    (let ((buffer (current-buffer))
          (place (point)))
      (setq eca--found nil)
      (cond
       ((save-excursion
          (skip-chars-backward "^ \t\n" eca--input)
          (and (memq (char-after) '(?@ ?#)) (< (point) place)))
        ;; Markers, because the transcript may grow while the server is asked.
        (let* ((begin (save-excursion (skip-chars-backward "^ \t\n" eca--input) (copy-marker (1+ (point)))))
               (name (eq (char-before begin) ?#))
               (find (if name #'eca--complete-file #'eca--complete-context)))
          (append
           (list begin (copy-marker (point) t)
                 (eca--table (lambda () (with-current-buffer buffer (funcall find begin)))
                             (lambda (label) (with-current-buffer buffer (eca--context-kind label))))
                 :company-kind (lambda (_) 'file))
           (when name (list :exit-function (lambda (_ status) (eca--file-chosen begin status)))))))
       ((and (eq (char-after eca--input) ?/)
             (not (string-match-p "[ \t\n]" (buffer-substring-no-properties eca--input place))))
        (let ((begin (copy-marker (1+ eca--input))))
          (list begin (copy-marker (point) t)
                (eca--table (lambda () (with-current-buffer buffer (eca--complete-command begin)))
                            (lambda (name) (with-current-buffer buffer (eca--command-help name))))
                :exit-function #'eca--command-chosen
                :company-kind (lambda (_) 'function))))))))

(defun eca--typed (begin)
  "What the user typed from BEGIN to point."
  (buffer-substring-no-properties begin (max begin (point))))

(defun eca--complete-context (begin)
  "The labels of the contexts that the server finds for what stands after BEGIN."
  (cl-loop for context in (eca--query "chat/queryContext" (eca--typed begin)
                                      (list :contexts (vconcat eca--contexts)) :contexts)
           for label = (string-replace " " "\\ " (eca-context-label context))
           unless (string-empty-p label)
           do (puthash label context eca--labels) and collect label))

(defun eca--complete-file (begin)
  "The names of the files that the server finds for what stands after BEGIN."
  (mapcar #'eca-context-label (eca--query "chat/queryFiles" (eca--typed begin) nil :files)))

(defun eca--file-chosen (begin status)
  "Take the sign before BEGIN away: a name was completed there with STATUS."
  (when (and (eq status 'finished) (eq (char-before begin) ?#))
    (delete-region (1- begin) begin)))

(defun eca--context-kind (label)
  "What kind of context LABEL stands for."
  (let ((type (plist-get (gethash label eca--labels) :type)))
    (pcase type
      ((or "file" "directory" 'nil) nil)
      ("repoMap" "  overview of the project")
      ("cursor" "  where your cursor is")
      ("mcpResource" (concat "  " (plist-get (gethash label eca--labels) :description)))
      (_ (concat "  " type)))))

(defun eca--complete-command (begin)
  "The names of the commands that the server finds for what stands after BEGIN."
  (mapcar (lambda (command) (plist-get command :name))
          (eca--query "chat/queryCommands" (eca--typed begin) nil :commands)))

(defun eca--command-help (name)
  "What the command NAME does and takes."
  (let ((command (cl-find name (cddr eca--found) :key (lambda (command) (plist-get command :name)) :test #'equal)))
    (when command
      (concat (mapconcat (lambda (argument)
                           (format (if (eca--true (plist-get argument :required)) " <%s>" " [%s]") (plist-get argument :name)))
                         (plist-get command :arguments) "")
              "  " (plist-get command :description)))))

(defun eca--command-chosen (name status)
  "Make room for arguments of the command NAME, completed with STATUS."
  (when (eq status 'finished)
    (let ((help (eca--command-help name)))
      (when (and help (string-match-p "\\` [<[]" help))
        (insert " ")
        (message "/%s%s" name help)))))

(add-hook 'eca-chat-mode-hook
          (lambda () (add-hook 'completion-at-point-functions #'eca-completion-at-point nil t)))

(provide 'eca-context)
;;; eca-context.el ends here
