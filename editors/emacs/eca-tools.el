;;; eca-tools.el --- Tool calls: what they do, and your consent  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; A tool call is a block.  One that waits for consent opens by itself and shows what it would do;
;; for a change of a file that is the diff, which can also be read in `diff-mode'.

;;; Code:

(require 'cl-lib)
(require 'diff-mode)
(require 'subr-x)
(require 'eca-session)
(require 'eca-transcript)

(defvar eca--chat-id)
(defvar eca--parent-id)

(defcustom eca-open-tool-calls nil
  "Whether tool calls are shown unfolded also when they do not wait for you."
  :type 'boolean :group 'eca)

(defcustom eca-revert-changed-files t
  "Whether buffers follow when a tool changes their file.
A buffer with unsaved changes is never touched."
  :type 'boolean :group 'eca)

(defcustom eca-show-diff-at-once nil
  "Whether a change that waits for you opens its diff by itself.
Only when you see its chat; the window stays selected."
  :type 'boolean :group 'eca)

(defface eca-pending '((t :inherit warning)) "Tool calls that wait for you." :group 'eca)
(defface eca-button '((t :inherit button)) "What can be pressed." :group 'eca)

(defconst eca--call-signs
  '((preparing "…" shadow) (pending "?" eca-pending) (asking "?" eca-pending) (decided "…" shadow)
    (running "▶" shadow) (done "✓" success) (failed "✗" error) (rejected "⊘" warning))
  "What stands for the state of a tool call, and its face.")

;;; Drawing

(cl-defmethod eca-block-title ((_kind (eql tool)) block)
  "The heading of the tool call BLOCK."
  (let* ((state (eca-block-get block :state))
         (sign (cdr (assq state eca--call-signs)))
         (details (eca-block-get block :details))
         (change (eca--change-p block))
         (question (eca--call-question block))
         (answer (and question (eca--call-answer block)))
         ;; How long the user thought is nobody's business.
         (time (and (not question) (eca-block-get block :time))))
    (concat (propertize (car sign) 'face (cadr sign)) " "
            (propertize (or question (eca--call-name block)) 'face 'eca-block-heading)
            (when answer (eca--shown-answer answer))
            (when change
              (concat " " (propertize (format "+%d" (or (plist-get details :linesAdded) 0)) 'face 'diff-indicator-added)
                      " " (propertize (format "-%d" (or (plist-get details :linesRemoved) 0)) 'face 'diff-indicator-removed)))
            (when (equal (plist-get details :type) "subagent")
              (propertize (format " (step %s%s)" (or (plist-get details :step) 0)
                                  (if (plist-get details :maxSteps) (format "/%s" (plist-get details :maxSteps)) ""))
                          'face 'shadow))
            (when (and time (>= time 100)) (propertize (concat " " (eca--duration time)) 'face 'shadow))
            (pcase state
              ('pending (propertize " needs your consent" 'face 'eca-pending))
              ('rejected (propertize (concat " " (eca--rejection (eca-block-get block :reason))) 'face 'warning))))))

(defun eca--change-p (block)
  "Whether the tool call BLOCK changes a file."
  (equal (eca--get (eca-block-data block) :details :type) "fileChange"))

(defun eca--call-name (block)
  "What the tool call BLOCK does, in a few words."
  (let* ((summary (eca-block-get block :summary))
         (details (eca-block-get block :details))
         (path (and (eca--change-p block) (plist-get details :path)))
         (name (cond ((equal (plist-get details :type) "task") (eca--task-summary details))
                     ((and summary (not (string-empty-p summary))) summary)
                     (t (let ((server (eca-block-get block :server)) (tool (eca-block-get block :name)))
                          (if (member server '(nil "eca")) (string-replace "_" " " tool) (concat server ": " tool)))))))
    (setq name (replace-regexp-in-string "[\n\t ]+" " " name))
    (if (and path (not (string-search (file-name-nondirectory path) name)))
        (concat name " " (eca--shown-path path))
      name)))

(defun eca--call-question (block)
  "What the tool call BLOCK asks the user, or nil.
In a chat that is opened again only its arguments tell."
  (let ((question (or (eca-block-get block :question)
                      (and (equal (eca-block-get block :name) "ask_user")
                           (member (eca-block-get block :server) '(nil "eca"))
                           (eca--get (eca-block-get block :arguments) :question)))))
    (and (stringp question) (string-trim question))))

(defun eca--call-answer (block)
  "What the user answered to the question of the tool call BLOCK, or nil."
  (pcase (eca-block-get block :state)
    ('decided (eca-block-get block :answer))
    ('done (string-join (eca--output-texts block) "\n"))
    ('failed "no answer")))

(defun eca--shown-answer (answer)
  "ANSWER as it stands behind its question."
  (concat " → " (propertize (replace-regexp-in-string "[\n\t ]+" " " answer) 'face 'eca-user)))

(defun eca--shown-path (path)
  "PATH as it is shown: short when it is inside of the project."
  (let ((root (and eca--session (eca--server-path (eca-session-root eca--session)))))
    (cond ((null root) path)
          ((equal root (file-name-as-directory path)) ".")
          ((string-prefix-p root path) (substring path (length root)))
          (t path))))

(defun eca--duration (milliseconds)
  "MILLISECONDS for people."
  (cond ((< milliseconds 1000) (format "%d ms" milliseconds))
        ((< milliseconds 60000) (format "%.1f s" (/ milliseconds 1000.0)))
        (t (format "%d min %d s" (/ milliseconds 60000) (/ (% milliseconds 60000) 1000)))))

(defun eca--rejection (reason)
  "The words for REASON of a rejection."
  (pcase reason
    ("user-choice" "rejected by you")
    ("user-config" "forbidden by the configuration")
    ("hook-rejected" "forbidden by a hook")
    ("user-prompt-stop" "stopped")
    (_ "rejected")))

(cl-defmethod eca-block-text ((_kind (eql tool)) block)
  "The body of the tool call BLOCK: what it does, what came of it, and buttons."
  (let ((details (eca-block-get block :details)))
    (string-join
     (delq nil
           (list (pcase (plist-get details :type)
                   ("fileChange" (eca--diff-faces (plist-get details :diff)))
                   ("task" (eca--task-list details))
                   (_ (if (eca--call-question block) (eca--answers block) (eca--arguments block))))
                 (unless (eca--output-shown-p block details)
                   (eca--outputs block details))
                 (when (eq (eca-block-get block :state) 'pending) (eca--buttons block))
                 (when (plist-get details :subagentChatId)
                   (eca--button "Show what it does" #'eca-show-subagent))))
     "\n")))

(defun eca--output-shown-p (block details)
  "Whether what BLOCK with DETAILS brought is on the screen without its output.
That of a task list lists the tasks once more; an answer of one line
stands behind its question."
  (and (eq (eca-block-get block :state) 'done)
       (or (equal (plist-get details :type) "task")
           (and (eca--call-question block)
                (not (string-search "\n" (eca--call-answer block)))))))

(declare-function eca--answer-here "eca-chat")

(defun eca--answers (block)
  "The answers that the question in BLOCK offers; nil if there is nothing to show."
  (let* ((offered (or (eca-block-get block :options) (eca--get (eca-block-get block :arguments) :options)))
         (lines (cl-loop for option across (if (vectorp offered) offered [])
                         for label = (if (stringp option) option (eca--get option :label))
                         for description = (and (consp option) (plist-get option :description))
                         when label
                         collect (concat (propertize (concat "[" label "]") 'face 'eca-button 'mouse-face 'highlight
                                                     'eca-command #'eca--answer-here 'eca-answer label)
                                         (when description (propertize (concat "  " description) 'face 'eca-note))))))
    (when (eq (eca-block-get block :state) 'asking)
      (setq lines (append lines (list (propertize (substitute-command-keys
                                                   "\\<eca-chat-mode-map>\\[eca-chat-answer] answers")
                                                  'face 'shadow)))))
    (and lines (string-join lines "\n"))))

(defun eca--diff-faces (diff)
  "The lines of DIFF in the colours of `diff-mode'."
  (mapconcat (lambda (line)
               (propertize line 'face (pcase (and (> (length line) 0) (aref line 0))
                                        (?+ 'diff-added) (?- 'diff-removed) (?@ 'diff-hunk-header) (_ 'diff-context))))
             (split-string (string-trim-right (or diff "") "\n") "\n") "\n"))

(defun eca--task-summary (details)
  "How far the tasks in DETAILS are."
  (let ((tasks (append (plist-get details :tasks) nil)))
    (concat (format "Tasks %d/%d" (cl-count "done" tasks :key (lambda (task) (plist-get task :status)) :test #'equal)
                    (length tasks))
            (let ((now (plist-get details :activeSummary)))
              (unless (member now '(nil "")) (concat ": " now))))))

(defun eca--task-list (details)
  "The tasks in DETAILS, one on a line."
  (mapconcat (lambda (task)
               (let ((status (plist-get task :status)))
                 (concat (pcase status ("done" "[x] ") ("in-progress" "[>] ") (_ "[ ] "))
                         (propertize (or (plist-get task :subject) "")
                                     'face (pcase status ("done" 'shadow) ("in-progress" 'bold) (_ 'default)))
                         (when (eca--true (plist-get task :isBlocked)) (propertize " (blocked)" 'face 'shadow)))))
             (plist-get details :tasks) "\n"))

(defun eca--arguments (block)
  "The arguments of the tool call BLOCK, one on a line; nil if there are none."
  (let ((arguments (eca-block-get block :arguments)))
    (if (not arguments)
        (let ((text (string-join (reverse (eca-block-get block :text)))))
          (unless (member text '("" "{}")) (propertize text 'face 'eca-note)))
      (string-join
       (cl-loop for (key value) on arguments by #'cddr
                collect (concat (propertize (concat (substring (symbol-name key) 1) ": ")
                                            'face 'font-lock-variable-name-face)
                                (eca--shown-value value)))
       "\n"))))

(defun eca--shown-value (value)
  "The JSON value VALUE for people."
  (pcase value
    ((pred stringp) (if (string-search "\n" value) (concat "\n" (string-trim-right value)) value))
    ((pred numberp) (number-to-string value))
    ('nil "null")
    ('t "true")
    (:json-false "false")
    (_ (json-serialize value :false-object :json-false :null-object nil))))

(defun eca--output-texts (block)
  "The texts that the tool call BLOCK brought."
  (cl-loop for output across (or (eca-block-get block :outputs) [])
           when (plist-get output :text) collect it))

(defun eca--outputs (block details)
  "What the tool call BLOCK with DETAILS brought, or nil."
  (let ((texts (if (equal (plist-get details :type) "jsonOutputs")
                   (append (plist-get details :jsons) nil)
                 (eca--output-texts block))))
    (when texts
      (propertize (concat "→ " (string-trim (string-join texts "\n")))
                  'face (if (eq (eca-block-get block :state) 'failed) 'error 'eca-note)))))

(defun eca--button (label command)
  "A LABEL that calls COMMAND when it is pressed."
  (propertize label 'face 'eca-button 'mouse-face 'highlight 'eca-command command 'help-echo (symbol-name command)))

(defun eca--buttons (block)
  "What can be done with the tool call BLOCK, which waits."
  (string-join
   (delq nil (list (eca--button "[y] approve" #'eca-approve)
                   (eca--button "[n] reject" #'eca-reject)
                   (eca--button "[!] always" #'eca-approve-always)
                   (when (eca--change-p block) (eca--button "[d] diff" #'eca-show-diff))))
   "   "))

;;; What the server says about calls

(defun eca--call-event (content)
  "Bring the block of the tool call in CONTENT up to date."
  (let* ((id (plist-get content :id))
         (block (or (eca--find-block id)
                    (eca--add-block id 'tool :state 'preparing :name (or (plist-get content :name) "tool")
                                    :server (plist-get content :server)))))
    (dolist (key '(:summary :details :name :server :outputs :reason))
      (when (plist-get content key) (eca-block-put block key (plist-get content key))))
    (when (consp (plist-get content :arguments))
      (eca-block-put block :arguments (plist-get content :arguments)))
    (pcase (plist-get content :type)
      ("toolCallPrepare" (eca--call-prepared block content))
      ((and "toolCallRun" (guard (eca--true (plist-get content :manualApproval))))
       (eca--call-pending block))
      ((or "toolCallRun" "toolCallRunning")
       ;; Its question may come first: requests do not wait for notifications.
       (unless (eq (eca-block-get block :state) 'asking) (eca--call-state block 'running)))
      ("toolCalled"
       (eca-block-put block :time (plist-get content :totalTimeMs))
       (eca--revert-changed (plist-get content :details))
       (eca--call-state block (if (eca--true (plist-get content :error)) 'failed 'done)))
      ("toolCallRejected" (eca--call-state block 'rejected)))))

(defun eca--revert-changed (details)
  "Show the file that a call with DETAILS changed as it is now, if it is open.
A buffer with changes of its own is left alone; Emacs asks before it is saved."
  (when (and eca-revert-changed-files (equal (plist-get details :type) "fileChange"))
    (let ((buffer (find-buffer-visiting (concat (file-remote-p default-directory) (plist-get details :path)))))
      (when buffer
        (with-current-buffer buffer
          (unless (or (buffer-modified-p) (verify-visited-file-modtime) (not (file-exists-p buffer-file-name)))
            (let ((inhibit-message t)) (revert-buffer t t t))))))))

(defun eca--call-prepared (block content)
  "Note in BLOCK that more of its arguments came in CONTENT."
  (let ((text (or (plist-get content :argumentsText) "")))
    (eca-block-put block :text (cons text (eca-block-get block :text)))
    (cond ((and (eca-block-open block) (not (string-empty-p text))) (eca--redraw-block block))
          ((or (plist-get content :summary) (plist-get content :details)) (eca--redraw-block block)))))

(defun eca--call-state (block state)
  "Put BLOCK into STATE and draw it."
  (eca-block-put block :state state)
  (eca--set-open block eca-open-tool-calls))

(defun eca--call-pending (block)
  "Let the user decide about BLOCK."
  (eca-block-put block :state 'pending)
  (setf (eca-block-touched block) nil)
  (eca--set-open block t)
  (when eca--session (eca--changed eca--session))
  (when (and eca-show-diff-at-once (eca--change-p block))
    ;; Not from within the process filter.
    (run-at-time 0 nil #'eca--show-diff-at-once (current-buffer) block))
  (message "ECA asks: %s.  %s" (eca--call-name block)
           (substitute-command-keys
            (if (get-buffer-window)
                (concat "\\<eca-chat-mode-map>\\[eca-approve] approve, \\[eca-reject] reject, \\[eca-approve-always] always"
                        (when (eca--change-p block) ", \\[eca-show-diff] diff"))
              "Go there with M-x eca"))))

(defun eca--pending-calls ()
  "The calls in this buffer that wait for the user, oldest first."
  (sort (cl-loop for block being the hash-values of eca--blocks
                 when (and (eq (eca-block-kind block) 'tool) (eq (eca-block-get block :state) 'pending))
                 collect block)
        (lambda (one other) (< (eca-block-start one) (eca-block-start other)))))

;;; Deciding

(defvar-local eca--decides nil "In a diff buffer: (CHAT-BUFFER . BLOCK) that it is about.")

(defun eca--call-to-decide ()
  "(BUFFER . BLOCK) that the user means.
That is the one at point, or the one that has waited longest.
Calls of the chat's subagents count too.  Outside of chats it is one
of the project's."
  (cond
   (eca--decides)
   ((not (bound-and-true-p eca--blocks)) (eca--call-elsewhere))
   (t
    (let ((here (eca--block-here)))
      (if (and here (eq (eca-block-get here :state) 'pending))
          (cons (current-buffer) here)
        (or (cl-loop for buffer in (cons (current-buffer) (eca--child-buffers))
                     for block = (car (with-current-buffer buffer (eca--pending-calls)))
                     when block return (cons buffer block))
            (user-error "No tool call waits for you")))))))

(declare-function eca--chat-buffers "eca-chat")
(declare-function eca--show-chat "eca-chat")

(defun eca--call-elsewhere ()
  "(BUFFER . BLOCK) of the call that waits in a chat of this project.
Nobody consents to what they cannot see, so a chat that is not on the
screen is shown first, and that is all."
  (let* ((session (eca--this-session))
         (calls (cl-loop for buffer in (eca--chat-buffers session)
                         for block = (car (with-current-buffer buffer (eca--pending-calls)))
                         when block collect (cons buffer block)))
         (call (or (cl-find-if (lambda (call) (get-buffer-window (car call) 'visible)) calls)
                   (car calls)
                   (user-error "No tool call waits for you"))))
    (unless (get-buffer-window (car call) 'visible)
      (eca--show-chat (car call))
      (goto-char (eca-block-start (cdr call)))
      (user-error "This waits for you; decide now that you see it"))
    call))

(defun eca--child-buffers ()
  "The buffers of the chats that work for this one."
  (let ((id eca--chat-id))
    (cl-loop for buffer being the hash-values of (eca-session-chats eca--session)
             when (and (buffer-live-p buffer) (equal id (buffer-local-value 'eca--parent-id buffer)))
             collect buffer)))

(defun eca--decide (word method &rest extra)
  "Tell the server with METHOD and EXTRA what the user decided about a call.
If that was done outside of chats, say it with WORD."
  (pcase-let ((`(,buffer . ,block) (eca--call-to-decide))
              (here (or eca--decides (bound-and-true-p eca--blocks))))
    (unless (buffer-live-p buffer) (user-error "The chat is gone"))
    (with-current-buffer buffer
      (unless (eq (eca-block-get block :state) 'pending)
        (user-error "This call no longer waits for you"))
      (eca-notify eca--session method (append (list :chatId eca--chat-id :toolCallId (eca-block-key block)) extra))
      (eca--call-state block 'decided)
      (eca--changed eca--session))
    (dolist (diff (buffer-list))
      (when (eq block (cdr (buffer-local-value 'eca--decides diff))) (quit-windows-on diff t)))
    (unless here (message "ECA: %s: %s" word (eca--call-name block)))))

(defun eca-approve ()
  "Let the tool call that waits run."
  (interactive)
  (eca--decide "approved" "chat/toolCallApprove"))

(defun eca-approve-always ()
  "Let the tool call that waits run, and others like it in this chat."
  (interactive)
  (eca--decide "approved from now on" "chat/toolCallApprove" :save "session"))

(defun eca-reject ()
  "Do not let the tool call that waits run."
  (interactive)
  (eca--decide "rejected" "chat/toolCallReject"))

;;; Diffs

(defvar eca-diff-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-y") #'eca-approve)
    (define-key map (kbd "C-c C-n") #'eca-reject)
    (define-key map (kbd "C-c C-a") #'eca-approve-always)
    map)
  "Keys in the diff of a tool call.")

(define-minor-mode eca-diff-mode
  "The diff of a tool call.
\\{eca-diff-mode-map}"
  :lighter " ECA")

(defun eca-show-diff ()
  "Show how the tool call at point changes a file.
If there is none at point, the one that waits is shown."
  (interactive)
  (let ((here (and (bound-and-true-p eca--blocks) (eca--block-here))))
    (pcase-let ((`(,buffer . ,block) (if (and here (eca--change-p here))
                                         (cons (current-buffer) here)
                                       (eca--call-to-decide))))
      (unless (eca--change-p block)
        (user-error "This call changes no file"))
      (pop-to-buffer (eca--diff-buffer buffer block)))))

(defun eca--show-diff-at-once (chat block)
  "Show the diff of BLOCK in CHAT, which waits, unless the user is elsewhere."
  (when (and (buffer-live-p chat) (get-buffer-window chat) (eq (eca-block-get block :state) 'pending)
             (not (active-minibuffer-window)))
    (display-buffer (eca--diff-buffer chat block))))

(defun eca--diff-buffer (chat block)
  "A buffer with the change that BLOCK in CHAT makes."
  (with-current-buffer chat
    (let* ((details (eca-block-get block :details))
           (pending (eq (eca-block-get block :state) 'pending))
           (root (eca-session-root eca--session))
           (path (plist-get details :path))
           (name (eca--shown-path path)))
      (with-current-buffer (get-buffer-create (format "*eca diff: %s*" name))
        (let ((inhibit-read-only t))
          (erase-buffer)
          (insert (eca--whole-diff path (plist-get details :diff))))
        (setq default-directory root)
        (diff-mode)
        (setq buffer-read-only t
              eca--decides (and pending (cons chat block))
              header-line-format
              (and pending (substitute-command-keys
                            (concat "\\<eca-diff-mode-map> " name ":  \\[eca-approve] approve   \\[eca-reject] reject"
                                    "   \\[eca-approve-always] always   q quit"))))
        (eca-diff-mode 1)
        (goto-char (point-min))
        (current-buffer)))))

(defun eca--whole-diff (path diff)
  "DIFF of the file PATH with the two lines that say so."
  (let ((text (concat (string-trim-right (or diff "") "\n") "\n")))
    (if (string-match-p "\\`\\(---\\|diff \\)" text) text
      (concat "--- " path "\n+++ " path "\n" text))))

(defun eca-show-subagent ()
  "Show the chat of the subagent that the tool call at point started."
  (interactive)
  (let* ((block (eca--block-here))
         (id (and block (eca--get (eca-block-data block) :details :subagentChatId)))
         (buffer (and id (gethash id (eca-session-chats eca--session)))))
    (if (buffer-live-p buffer) (pop-to-buffer buffer)
      (user-error "There is nothing to show of it"))))

(provide 'eca-tools)
;;; eca-tools.el ends here
