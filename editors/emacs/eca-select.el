;;; eca-select.el --- Choosing models, agents and chats  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; Pickers, all with `completing-read'.  What can be chosen comes from the server.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'eca-session)
(require 'eca-chat)

(defun eca--pick (prompt candidates &optional current annotate)
  "Let the user choose among CANDIDATES after PROMPT; CURRENT is the default.
ANNOTATE may say more about a candidate.  The order is kept."
  (completing-read (format-prompt prompt current)
                   (lambda (string predicate action)
                     (if (eq action 'metadata)
                         `(metadata (display-sort-function . identity) (cycle-sort-function . identity)
                                    (annotation-function . ,annotate))
                       (complete-with-action action candidates string predicate)))
                   nil t nil nil current))

(defun eca--await-ready (session)
  "Wait a moment until SESSION knows what can be selected."
  (let ((deadline (+ (float-time) 5)))
    (while (and (null (eca-session-models session)) (< (float-time) deadline)
                (memq (eca-session-state session) '(starting ready)))
      (accept-process-output nil 0.05))))

(defun eca--choose (key value)
  "Have VALUE selected under KEY in this chat."
  (setq eca--choices (plist-put eca--choices key value))
  (force-mode-line-update))

(defmacro eca--in-chat (&rest body)
  "Run BODY in the chat that a command is about."
  (declare (indent 0) (debug t))
  `(with-current-buffer (eca--current-chat)
     (eca--await-ready eca--session)
     ,@body))

;;;###autoload
(defun eca-select-model (model)
  "Use MODEL in this chat."
  (interactive
   (list (eca--in-chat
           (eca--pick "Model" (or (eca-session-models eca--session) (user-error "The server knows no models yet"))
                      (eca--choice :model #'eca-session-model)))))
  (eca--in-chat
    (eca--choose :model model)
    (eca--choose :variant nil)
    (eca-notify eca--session "chat/selectedModelChanged"
                (append (list :model model) (when eca--prompted (list :chatId eca--chat-id))))))

;;;###autoload
(defun eca-select-agent (agent)
  "Use AGENT in this chat."
  (interactive
   (list (eca--in-chat
           (eca--pick "Agent" (or (eca-session-agents eca--session) (user-error "The server knows no agents yet"))
                      (eca--choice :agent #'eca-session-agent)))))
  (eca--in-chat
    (eca--choose :agent agent)
    (eca-notify eca--session "chat/selectedAgentChanged"
                (append (list :agent agent) (when eca--prompted (list :chatId eca--chat-id))))))

(defun eca-select-variant (variant)
  "Use VARIANT of the model in this chat: how hard it should think."
  (interactive
   (list (eca--in-chat
           (eca--pick "Variant" (or (eca--choice :variants #'eca-session-variants) (user-error "This model has no variants"))
                      (eca--choice :variant #'eca-session-variant)))))
  (eca--in-chat
    (eca--choose :variant variant)
    (eca-notify eca--session "chat/selectedModelChanged"
                (append (eca--plist :model (eca--choice :model #'eca-session-model) :variant variant)
                        (when eca--prompted (list :chatId eca--chat-id))))))

(defun eca-toggle-trust ()
  "Let tool calls of this chat run unasked, or no longer."
  (interactive)
  (eca--in-chat
    (let ((trust (not (eca--choice :trust #'eca-session-trust))))
      (eca--choose :trust trust)
      (when eca--prompted
        (eca-request eca--session "chat/update" (list :chatId eca--chat-id :trust (eca--bool trust)) #'ignore))
      (message "ECA: tool calls of this chat %s" (if trust "run without asking" "ask again")))))

;;; Chats

(defun eca--ago (milliseconds)
  "How long ago MILLISECONDS since 1970 are, for people."
  (let ((seconds (max 0 (- (float-time) (/ (or milliseconds 0) 1000.0)))))
    (cond ((< seconds 90) "just now")
          ((< seconds 5400) (format "%d min ago" (/ seconds 60)))
          ((< seconds 129600) (format "%d h ago" (/ seconds 3600)))
          (t (format "%d days ago" (/ seconds 86400))))))

(defun eca--pick-chat (session prompt)
  "Let the user choose a chat of SESSION after PROMPT; return its id."
  (let* ((chats (append (plist-get (eca-request-wait session "chat/list" (list :sortBy "updatedAt")) :chats) nil))
         (names (make-hash-table :test #'equal))
         (candidates
          (cl-loop for chat in chats
                   for title = (or (plist-get chat :title) "Untitled")
                   for name = (cl-loop for number from 1
                                       for name = (if (= number 1) title (format "%s (%d)" title number))
                                       unless (gethash name names) return name)
                   do (puthash name chat names)
                   collect name)))
    (unless candidates (user-error "There are no chats in this project yet"))
    (let ((name (eca--pick prompt candidates nil
                           (lambda (name)
                             (let ((chat (gethash name names)))
                               (format "  %s, %s messages%s" (eca--ago (plist-get chat :updatedAt))
                                       (or (plist-get chat :messageCount) 0)
                                       (if (equal (plist-get chat :status) "running") ", running" "")))))))
      (plist-get (gethash name names) :id))))

;;;###autoload
(defun eca-chat-open ()
  "Open a chat of this project, also one of an earlier day."
  (interactive)
  (let* ((session (eca-ensure-session))
         (id (eca--pick-chat session "Chat"))
         (known (gethash id (eca-session-chats session))))
    (if (buffer-live-p known) (eca--show-chat known)
      (eca-request session "chat/open" (list :chatId id)
                   (lambda (result)
                     (if (not (eca--true (plist-get result :found)))
                         (message "ECA: this chat is gone")
                       (with-current-buffer (eca--chat-buffer session id)
                         (let ((selection (plist-get result :selection)))
                           (eca--choose :agent (plist-get selection :agent)))
                         (setq eca--prompted t)
                         (eca--end-run)
                         (eca--show-footer)
                         (run-at-time 0 nil #'eca--show-chat (current-buffer)))))))))

(defun eca-chat-delete ()
  "Delete a chat of this project for good."
  (interactive)
  (let* ((session (eca-ensure-session))
         (id (if (derived-mode-p 'eca-chat-mode) eca--chat-id (eca--pick-chat session "Delete"))))
    (when (yes-or-no-p "Delete this chat for good? ")
      (eca-request session "chat/delete" (list :chatId id) (lambda (_) (message "ECA: deleted"))))))

(defun eca-chat-rename (title)
  "Give this chat the name TITLE."
  (interactive (list (read-string "Title: " eca--title)))
  (eca-request eca--session "chat/update" (list :chatId eca--chat-id :title title) #'ignore))

(defun eca--message-here ()
  "The id of what the user said at point or before it."
  (or (get-text-property (point) 'eca-content-id)
      (save-excursion
        (let ((place (text-property-search-backward 'eca-said)))
          (and place (get-text-property (prop-match-beginning place) 'eca-content-id))))
      (user-error "Go to one of your messages first")))

(defun eca-chat-rollback ()
  "Take this chat back to before your message at point.
What its tools did to files can be taken back, too."
  (interactive)
  (let ((id (eca--message-here)))
    (pcase (car (read-multiple-choice "Take back"
                                      '((?b "both" "messages and changes of files")
                                        (?m "messages" "only the messages") (?f "files" "only the changes of files"))))
      (what (eca-request eca--session "chat/rollback"
                         (list :chatId eca--chat-id :contentId id
                               :include (pcase what (?m ["messages"]) (?f ["tools"]) (_ ["messages" "tools"])))
                         (lambda (_) (message "ECA: taken back")))))))

(defun eca-chat-fork ()
  "Copy this chat up to your message at point into a new one."
  (interactive)
  (setq eca--awaited t)
  (eca-request eca--session "chat/fork" (list :chatId eca--chat-id :contentId (eca--message-here))
               (lambda (_) (setq eca--awaited nil))
               (lambda (oops) (setq eca--awaited nil) (eca--complain "chat/fork" oops))))

(defun eca-chat-clear ()
  "Empty this chat and keep it."
  (interactive)
  (eca-request eca--session "chat/clear" (list :chatId eca--chat-id :messages t) #'ignore))

;;; Providers, tool servers, jobs

(defun eca-login ()
  "Log in to a provider of models."
  (interactive)
  (let* ((session (eca-ensure-session))
         (providers (append (plist-get (eca-request-wait session "providers/list" nil) :providers) nil))
         (find (lambda (id) (cl-find id providers :key (lambda (provider) (plist-get provider :id)) :test #'equal)))
         (provider (eca--pick "Provider" (mapcar (lambda (provider) (plist-get provider :id)) providers) nil
                              (lambda (id) (concat "  " (eca--get (funcall find id) :auth :status))))))
    (eca--login-step session provider
                     (eca-request-wait session "providers/login" (list :provider provider)))))

(defun eca--login-step (session provider step)
  "Do what STEP of the login to PROVIDER of SESSION asks for."
  (pcase (plist-get step :action)
    ("done" (message "ECA: logged in to %s" provider))
    ("choose-method"
     (let* ((methods (append (plist-get step :methods) nil))
            (label (eca--pick "Method" (mapcar (lambda (method) (plist-get method :label)) methods)))
            (method (cl-find label methods :key (lambda (method) (plist-get method :label)) :test #'equal)))
       (eca--login-step session provider
                        (eca-request-wait session "providers/login"
                                          (list :provider provider :method (plist-get method :key))))))
    ("device-code"
     (kill-new (plist-get step :code))
     (browse-url (plist-get step :url))
     (message "%s  The code %s is in the kill ring." (plist-get step :message) (plist-get step :code)))
    ((or "authorize" "input")
     (when (plist-get step :url) (browse-url (plist-get step :url)))
     (when (plist-get step :message) (message "%s" (plist-get step :message)))
     (when (plist-get step :fields)
       (let ((data (cl-loop for field across (plist-get step :fields)
                            for prompt = (concat (plist-get field :label) ": ")
                            nconc (list (intern (concat ":" (plist-get field :key)))
                                        (if (equal (plist-get field :type) "secret") (read-passwd prompt) (read-string prompt))))))
         (eca--login-step session provider
                          (eca-request-wait session "providers/loginInput" (list :provider provider :data data))))))))

(defun eca-servers ()
  "Start, stop or otherwise treat a tool server."
  (interactive)
  (let* ((session (eca-ensure-session))
         (servers (cl-remove "native" (eca-session-servers session)
                             :key (lambda (server) (plist-get (cdr server) :type)) :test #'equal))
         (name (progn (unless servers (user-error "No MCP servers are configured"))
                      (eca--pick "Tool server" (mapcar #'car servers) nil
                                 (lambda (name) (concat "  " (plist-get (cdr (assoc name servers)) :status))))))
         (action (eca--pick "Do" '("start" "stop" "connect" "logout" "disable" "enable"))))
    (eca-notify session (format "mcp/%sServer" action) (list :name name))))

(defun eca-jobs ()
  "Show what a background job printed, or end it."
  (interactive)
  (let* ((session (eca-ensure-session))
         (jobs (append (plist-get (eca-request-wait session "jobs/list" nil) :jobs) nil))
         (find (lambda (id) (cl-find id jobs :key (lambda (job) (plist-get job :id)) :test #'equal)))
         (id (progn (unless jobs (user-error "There are no jobs"))
                    (eca--pick "Job" (mapcar (lambda (job) (plist-get job :id)) jobs) nil
                               (lambda (id)
                                 (let ((job (funcall find id)))
                                   (format "  %s, %s: %s" (plist-get job :status) (plist-get job :elapsed)
                                           (plist-get job :label))))))))
    (pcase (car (read-multiple-choice (format "Job %s" id) '((?o "output" "show what it printed") (?k "kill" "end it"))))
      (?o (let ((answer (eca-request-wait session "jobs/readOutput" (list :jobId id))))
            (with-current-buffer (get-buffer-create (format "*eca job: %s*" id))
              (let ((inhibit-read-only t))
                (erase-buffer)
                (mapc (lambda (line) (insert (plist-get line :text) "\n")) (plist-get answer :lines)))
              (special-mode)
              (pop-to-buffer (current-buffer)))))
      (?k (eca-request session "jobs/kill" (list :jobId id)
                       (lambda (answer)
                         (message "ECA: %s" (if (eca--true (plist-get answer :killed)) "ended" "it had already ended"))))))))

(provide 'eca-select)
;;; eca-select.el ends here
