;;; eca-session.el --- One server, its process and what it said of itself  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; A session is a server that works on one project.  It outlives the server's process: after a crash
;; the same session gets a new process, and its chats go on.
;;
;; Messages travel over a transport.  The one in this file is a process of our own, read by the
;; `jsonrpc' library of Emacs; `eca-lsp' has another, for servers that lsp-mode started.  The rest of
;; the package knows neither: it calls `eca-request' and `eca-notify', and registers what it wants
;; to hear with `eca-on-notification' and `eca-on-request'.
;;
;; JSON is as `jsonrpc' has it: objects are plists, arrays are vectors, null is nil, false is
;; `:json-false'.

;;; Code:

(require 'cl-lib)
(require 'jsonrpc)
(require 'project)
(require 'subr-x)
(require 'url-parse)
(require 'url-util)

(defgroup eca nil
  "Chat with a model that works on your code."
  :group 'tools
  :prefix "eca-")

(defcustom eca-command '("eca" "server")
  "Program and arguments that start the server.
More arguments are allowed, for example \"--log-level\" \"debug\"."
  :type '(repeat string))

(defcustom eca-restart-after-crash 3
  "How often within a minute a server that died is started again.
0 leaves it to you and `eca-restart'."
  :type 'natnum)

(defcustom eca-log-messages nil
  "Whether to keep all messages between Emacs and the server in an events buffer.
It takes effect when a server starts."
  :type 'boolean)

(defcustom eca-mode-line t
  "Whether the mode line shows how the server of a buffer's project is doing."
  :type 'boolean)

(defvar eca-version "0.1.0" "Version of this package.")

(cl-defstruct (eca-session (:constructor eca-session--make))
  "A server and what it said of itself."
  root name transport
  (state 'stopped)                      ; stopped, starting, ready, failed
  waiting                               ; functions to call once it is ready, newest first
  leaving                               ; whether the end of the process is wanted
  deaths                                ; times at which it died, newest first
  welcome models agents variants
  model agent variant trust
  servers                               ; alist: name of a tool server -> its last state
  tasks                                 ; alist: start-up task -> title
  suggests                              ; `no' once the server refused to suggest text at point
  reasons                               ; why there were no suggestions, as told to the user
  (chats (make-hash-table :test #'equal)))

(defvar eca--sessions nil "All sessions that were started, newest first.")

(defvar-local eca--session nil "The session that this buffer belongs to, in buffers of this package.")

(defvar eca-session-ready-functions nil
  "Called with the session when its server is ready, also after a restart.")

(defvar eca-session-gone-functions nil
  "Called with the session and a sentence when its server has ended by itself.")

(defvar eca-session-changed-functions nil
  "Called with the session when something about it that is shown has changed.")

;;; Values

(defun eca--true (value)
  "Whether the JSON value VALUE is true."
  (and value (not (eq value :json-false))))

(defun eca--get (value &rest keys)
  "What is found in the JSON object VALUE under KEYS, one below the other."
  (dolist (key keys value)
    (setq value (and (listp value) (plist-get value key)))))

(defun eca--bool (value)
  "VALUE as a JSON boolean."
  (if value t :json-false))

(defun eca--plist (&rest pairs)
  "A plist of PAIRS without those whose value is nil."
  (cl-loop for (key value) on pairs by #'cddr
           when value nconc (list key value)))

(defun eca--text (string)
  "STRING without properties, and without what JSON cannot say."
  (let ((text (substring-no-properties string)))
    (if (cl-every (lambda (char) (and (<= char #x10ffff) (not (<= #xd800 char #xdfff)))) text)
        text
      (concat (mapcar (lambda (char) (if (or (> char #x10ffff) (<= #xd800 char #xdfff)) #xfffd char)) text)))))

(defun eca--uuid ()
  "A random id."
  (let ((digits (cl-loop repeat 32 concat (format "%x" (random 16)))))
    (concat (substring digits 0 8) "-" (substring digits 8 12) "-4" (substring digits 13 16)
            "-a" (substring digits 17 20) "-" (substring digits 20))))

(defun eca--uri (path)
  "The URI of the file PATH, as the server sees it."
  (concat "file://" (url-hexify-string (encode-coding-string (eca--server-path path) 'utf-8) url-path-allowed-chars)))

(defun eca--server-path (path)
  "PATH as the server sees it, without the host."
  (file-local-name (expand-file-name path)))

(defun eca--file-of-uri (uri session)
  "The file that URI means, on the host of SESSION."
  (let ((path (if (string-match "\\`file:\\(?://[^/]*\\)?\\(/.*\\)\\'" uri)
                  (decode-coding-string (url-unhex-string (match-string 1 uri)) 'utf-8)
                uri)))
    (concat (file-remote-p (eca-session-root session)) path)))

;;; Transports

(cl-defgeneric eca-transport-request (transport method params done failed)
  "Send a request over TRANSPORT; METHOD is a string.
DONE is called with the result, FAILED with an error object.  PARAMS may be nil.
Return what `eca-transport-cancel' takes.")

(cl-defgeneric eca-transport-cancel (transport request)
  "Tell the server behind TRANSPORT that nobody waits for REQUEST any more.")

(cl-defgeneric eca-transport-notify (transport method params)
  "Send the notification METHOD with PARAMS over TRANSPORT.")

(cl-defgeneric eca-transport-live-p (transport)
  "Whether the server behind TRANSPORT runs.")

(cl-defgeneric eca-transport-log (transport)
  "The buffer with what the server behind TRANSPORT logged, or nil.")

(cl-defgeneric eca-transport-stop (transport)
  "End the server behind TRANSPORT without asking it.")

(cl-defmethod eca-transport-live-p ((_ null)) "Nothing is not alive." nil)
(cl-defmethod eca-transport-log ((_ null)) "Nothing has no log." nil)
(cl-defmethod eca-transport-stop ((_ null)) "Nothing has already ended." nil)

(defvar eca--notification-handlers (make-hash-table :test #'equal))
(defvar eca--request-handlers (make-hash-table :test #'equal))

(defun eca-on-notification (method function)
  "Have FUNCTION called with session and params when the server sends METHOD."
  (puthash method function eca--notification-handlers))

(defun eca-on-request (method function)
  "Have FUNCTION answer the server's request METHOD.
It is called with session, params and a function that takes the result."
  (puthash method function eca--request-handlers))

(defun eca-notification-methods ()
  "The notifications that this package hears."
  (hash-table-keys eca--notification-handlers))

(defun eca-request-methods ()
  "The requests that this package answers."
  (hash-table-keys eca--request-handlers))

(defun eca--hear (session method params)
  "Act on the notification METHOD with PARAMS of SESSION's server.
An error must not reach the process filter, which would leave
messages behind."
  (let ((handler (gethash method eca--notification-handlers)))
    (when handler
      (condition-case-unless-debug oops
          (funcall handler session params)
        (error (message "ECA: could not handle %s: %s" method (error-message-string oops)))))))

(defun eca--answer (session method params reply refuse)
  "Answer the request METHOD with PARAMS of SESSION's server.
REPLY takes the result; REFUSE takes a code and a message."
  (let ((handler (gethash method eca--request-handlers)))
    (if (not handler)
        (funcall refuse -32601 (format "Emacs does not know %s" method))
      (condition-case-unless-debug oops
          (funcall handler session params reply)
        ((error quit) (funcall refuse -32603 (error-message-string oops)))))))

;;; The transport over jsonrpc

(defclass eca-connection (jsonrpc-process-connection)
  ((session :initarg :session :accessor eca-connection-session)
   (sent :initform nil :accessor eca-connection-sent :documentation "The id of the last request.")
   (ended :initform nil :accessor eca-connection-ended :documentation "Whether the end of the process is noted."))
  "A server whose process is ours.")

(cl-defstruct eca--promise
  "The result of a request that is answered later."
  connection id (state 'open) message)

(cl-defmethod jsonrpc-connection-send ((connection eca-connection)
                                       &key id result method &allow-other-keys)
  "Send over CONNECTION, unless RESULT of the request ID is a promise.
Then only note ID.  The library wants results at once; a user takes
time, and waiting inside of the process filter would read the same
message twice.  Of a request of our own, which has a METHOD, ID is
noted too: older versions of the library keep it to themselves."
  (when (and id method) (setf (eca-connection-sent connection) id))
  (if (not (eca--promise-p result))
      (cl-call-next-method)
    (setf (eca--promise-id result) id)
    (eca--promise-deliver result)))

(defun eca--promise-keep (promise &rest message)
  "Answer PROMISE with MESSAGE, `:result' or `:error' and a value.
Later answers are ignored."
  (when (eq (eca--promise-state promise) 'open)
    (setf (eca--promise-state promise) 'kept
          (eca--promise-message promise) message)
    (eca--promise-deliver promise)))

(defun eca--promise-deliver (promise)
  "Send what PROMISE holds, once both its id and its answer are known."
  (when (and (eq (eca--promise-state promise) 'kept) (eca--promise-id promise))
    (setf (eca--promise-state promise) 'sent)
    (when (jsonrpc-running-p (eca--promise-connection promise))
      (apply #'jsonrpc-connection-send (eca--promise-connection promise)
             :id (eca--promise-id promise) (eca--promise-message promise)))))

(defun eca--connection-request (connection method params)
  "Promise an answer to the request METHOD with PARAMS that came over CONNECTION.
The work is done outside of the process filter."
  (let ((promise (make-eca--promise :connection connection)))
    (run-at-time 0 nil #'eca--answer (eca-connection-session connection) (symbol-name method) params
                 (lambda (result) (eca--promise-keep promise :result result))
                 (lambda (code text) (eca--promise-keep promise :error (list :code code :message text))))
    promise))

(defun eca--connect (session)
  "Start a process for SESSION and return the connection to it."
  (let* ((default-directory (eca-session-root session))
         (name (concat "eca " (eca-session-name session)))
         (size (if eca-log-messages 2000000 0))
         (program (car eca-command)))
    (unless (or (file-remote-p default-directory) (executable-find program))
      (user-error "Cannot find the program `%s'; install it or set `eca-command'" program))
    (apply #'make-instance 'eca-connection
           :name name
           :session session
           :process (lambda ()
                      (make-process :name name :command eca-command :connection-type 'pipe
                                    :coding 'utf-8-emacs-unix :noquery t :file-handler t
                                    :stderr (get-buffer-create (format "*%s stderr*" name))))
           :notification-dispatcher
           (lambda (connection method params)
             (eca--hear (eca-connection-session connection) (symbol-name method) params))
           :request-dispatcher #'eca--connection-request
           :on-shutdown #'eca--connection-ended
           (if (fboundp 'jsonrpc-convert-to-endpoint)
               (list :events-buffer-config (list :size size :format 'full))
             (list :events-buffer-scrollback-size size)))))

(defun eca--connection-ended (connection)
  "Note that the process of CONNECTION has ended."
  (let* ((process (jsonrpc--process connection))
         (status (process-exit-status process))
         (session (eca-connection-session connection)))
    (when (and (eq connection (eca-session-transport session)) (not (eca-connection-ended connection)))
      (setf (eca-connection-ended connection) t)
      (eca--gone session (if (eq (process-status process) 'signal)
                             (format "signal %s" status)
                           (format "exit status %s" status))))))

(cl-defmethod eca-transport-request ((connection eca-connection) method params done failed)
  "Send METHOD with PARAMS over CONNECTION, then call DONE or FAILED.
There is no timeout: older versions of the library stumble over an
answer that nobody waits for."
  (condition-case oops
      (progn (jsonrpc-async-request connection (intern method) (or params (make-hash-table))
                                    :success-fn done :error-fn failed :timeout nil)
             (eca-connection-sent connection))
    (error (if (jsonrpc-running-p connection) (signal (car oops) (cdr oops))
             (funcall failed (list :code -1 :message "The server has ended."))
             nil))))

(cl-defmethod eca-transport-cancel ((connection eca-connection) request)
  "Withdraw REQUEST, the id of a request over CONNECTION.
It is answered all the same, with an error."
  (eca-transport-notify connection "$/cancelRequest" (list :id request)))

(cl-defmethod eca-transport-notify ((connection eca-connection) method params)
  "Send METHOD with PARAMS over CONNECTION, unless its process has just ended."
  (condition-case oops
      (jsonrpc-notify connection (intern method) (or params (make-hash-table)))
    (error (when (jsonrpc-running-p connection) (signal (car oops) (cdr oops))))))

(cl-defmethod eca-transport-live-p ((connection eca-connection))
  "Whether the process of CONNECTION runs."
  (jsonrpc-running-p connection))

(cl-defmethod eca-transport-log ((connection eca-connection))
  "The standard error of CONNECTION's process."
  (jsonrpc-stderr-buffer connection))

(cl-defmethod eca-transport-stop ((connection eca-connection))
  "End the process of CONNECTION."
  (delete-process (jsonrpc--process connection)))

;;; Finding and starting

(defun eca--root ()
  "The folder that the current buffer belongs to."
  (let ((project (project-current)))
    (file-name-as-directory
     (expand-file-name (cond ((null project) default-directory)
                             ((fboundp 'project-root) (project-root project))
                             (t default-directory))))))

(defun eca-current-session ()
  "The session of the current buffer, or nil."
  (or eca--session
      (let ((here (expand-file-name default-directory)))
        (cl-find-if (lambda (session) (string-prefix-p (eca-session-root session) here)) eca--sessions))))

(defun eca-ensure-session ()
  "The session of the current buffer, started if need be."
  (let ((session (or (eca-current-session) (eca--new-session (eca--root)))))
    (when (memq (eca-session-state session) '(stopped failed))
      (eca--start session))
    session))

(defun eca--new-session (root)
  "Make a session for the folder ROOT."
  (let* ((base (file-name-nondirectory (directory-file-name root)))
         (names (mapcar #'eca-session-name eca--sessions))
         (name base)
         (session nil))
    (cl-loop for number from 2 while (member name names) do (setq name (format "%s<%d>" base number)))
    (setq session (eca-session--make :root root :name name))
    (push session eca--sessions)
    session))

(defun eca--capabilities ()
  "What this client can do."
  (list :codeAssistant (list :chat t :rewrite t
                             :editor (list :diagnostics t :definition t :references t)
                             :chatCapabilities (list :askQuestion t))))

(defun eca--start (session)
  "Start the server of SESSION and shake hands with it."
  (let ((connection (eca--connect session)))
    (setf (eca-session-transport session) connection
          (eca-session-state session) 'starting
          (eca-session-leaving session) nil
          (eca-session-tasks session) nil)
    (eca--show-in-mode-line)
    (eca--changed session)
    ;; One that ends at once may have done so before somebody listened.
    (unless (jsonrpc-running-p connection)
      (run-at-time 0 nil #'eca--connection-ended connection))
    (eca-transport-request
     connection "initialize"
     (list :processId (unless (file-remote-p (eca-session-root session)) (emacs-pid))
           :clientInfo (list :name "emacs" :version (format "%s (eca %s)" emacs-version eca-version))
           :capabilities (eca--capabilities)
           :workspaceFolders (vector (list :uri (eca--uri (directory-file-name (eca-session-root session)))
                                           :name (eca-session-name session))))
     (lambda (result)
       (when (eq connection (eca-session-transport session))
         (eca-transport-notify connection "initialized" nil)
         (eca--ready session (plist-get result :chatWelcomeMessage))))
     (lambda (oops)
       (when (and (eq connection (eca-session-transport session)) (jsonrpc-running-p connection))
         (setf (eca-session-state session) 'failed)
         (eca--changed session)
         (message "ECA: the server did not start: %s" (plist-get oops :message)))))))

(defun eca--ready (session welcome)
  "Note that the server of SESSION is ready and said WELCOME."
  (setf (eca-session-state session) 'ready)
  (when welcome (setf (eca-session-welcome session) welcome))
  (run-hook-with-args 'eca-session-ready-functions session)
  (let ((waiting (nreverse (eca-session-waiting session))))
    (setf (eca-session-waiting session) nil)
    (mapc #'funcall waiting))
  (eca--changed session))

(defun eca--changed (session)
  "Have what is shown of SESSION brought up to date."
  (run-hook-with-args 'eca-session-changed-functions session)
  (force-mode-line-update t))

(defun eca--gone (session how)
  "Note that the server of SESSION has ended; HOW tells with what status."
  (let* ((wanted (eca-session-leaving session))
         (now (float-time))
         (deaths (cl-remove-if (lambda (time) (> (- now time) 60)) (eca-session-deaths session)))
         (again (and (not wanted) (< (length deaths) eca-restart-after-crash))))
    (setf (eca-session-state session) (if wanted 'stopped 'failed)
          (eca-session-tasks session) nil
          (eca-session-servers session) nil)
    (unless wanted
      (setf (eca-session-deaths session) (cons now deaths))
      (unless again (setf (eca-session-waiting session) nil))
      (let ((sentence (format (if again "The server ended unexpectedly (%s) and is being started again."
                                "The server ended unexpectedly (%s).  M-x eca-restart starts it again.")
                              how)))
        (run-hook-with-args 'eca-session-gone-functions session sentence)
        (message "ECA: %s  M-x eca-show-log shows what it said." sentence)))
    (eca--changed session)
    (when again
      (run-at-time 0 nil (lambda ()
                           (when (eq (eca-session-state session) 'failed)
                             (condition-case oops (eca--start session)
                               (error (message "ECA: %s" (error-message-string oops))))))))))

(defun eca--when-ready (session function)
  "Call FUNCTION now or when the server of SESSION is ready."
  (if (eq (eca-session-state session) 'ready)
      (funcall function)
    (push function (eca-session-waiting session))
    (when (memq (eca-session-state session) '(stopped failed))
      (eca--start session))))

;;; Sending

(defun eca-notify (session method params)
  "Tell the server of SESSION: METHOD with PARAMS."
  (eca--when-ready session
                   (lambda () (eca-transport-notify (eca-session-transport session) method params))))

(defun eca-request (session method params done &optional failed)
  "Ask the server of SESSION: METHOD with PARAMS.
Call DONE with the result; on an error call FAILED with it, or tell the user.
Return a function that withdraws the request; after that none of them is called."
  (let* ((state 'waiting)
         (transport nil)
         (request nil)
         (end (lambda (function value)
                (unless (eq state 'over)
                  (setq state 'over)
                  (eca--safely method function value)))))
    (eca--when-ready
     session
     (lambda ()
       (unless (eq state 'over)
         (setq transport (eca-session-transport session)
               request (eca-transport-request
                        transport method params
                        (apply-partially end done)
                        (apply-partially end (or failed (apply-partially #'eca--complain method))))))))
    (lambda ()
      (unless (eq state 'over)
        (setq state 'over)
        (when (and request (eca-transport-live-p transport))
          (eca-transport-cancel transport request))))))

(defun eca--safely (method function value)
  "Call FUNCTION with VALUE, the answer to METHOD.
Errors are kept out of the process filter."
  (condition-case-unless-debug oops
      (funcall function value)
    (error (message "ECA: could not use the answer to %s: %s" method (error-message-string oops)))))

(defun eca--complain (method oops)
  "Tell the user that METHOD failed with the error object OOPS."
  (message "ECA: %s" (if (equal (plist-get oops :code) -32601)
                         (format "this server does not offer %s" method)
                       (plist-get oops :message))))

(defun eca-request-wait (session method params &optional seconds)
  "Ask the server of SESSION for METHOD with PARAMS, and wait for the result.
Signal an error if it refuses, or has not answered after SECONDS,
10 if that is nil."
  (let* ((answer nil)
         (deadline (+ (float-time) (or seconds 10))))
    (eca-request session method params
                 (lambda (result) (setq answer (list :result result)))
                 (lambda (oops) (setq answer (list :error oops))))
    (while (and (not answer) (< (float-time) deadline)
                (not (and non-essential (input-pending-p))))
      (accept-process-output nil 0.05))
    (cond ((not answer) (user-error "The server did not answer %s in time" method))
          ((plist-member answer :result) (plist-get answer :result))
          (t (user-error "%s" (eca--get answer :error :message))))))

;;; Ending

(defun eca--stop (session)
  "End the server of SESSION in order, within three seconds."
  (let ((transport (eca-session-transport session))
        (answered nil)
        (deadline (+ (float-time) 3)))
    (setf (eca-session-leaving session) t)
    (when (eca-transport-live-p transport)
      (ignore-errors
        (eca-transport-request transport "shutdown" nil
                               (lambda (_) (setq answered t))
                               (lambda (oops)
                                 (setq answered t)
                                 (message "ECA: %s" (plist-get oops :message))))
        (while (and (not answered) (< (float-time) deadline) (eca-transport-live-p transport))
          (accept-process-output nil 0.05))
        (eca-transport-notify transport "exit" nil)
        (while (and (< (float-time) deadline) (eca-transport-live-p transport))
          (accept-process-output nil 0.05))))
    (when (eca-transport-live-p transport)
      (eca-transport-stop transport))
    (setf (eca-session-state session) 'stopped
          (eca-session-waiting session) nil)
    (eca--changed session)))

(defun eca--leave-all ()
  "Take leave of all servers, because Emacs ends.
Nothing is waited for: a server saves by itself when its client is
gone, and an Emacs whose terminal is gone would wait forever."
  (dolist (session eca--sessions)
    (setf (eca-session-leaving session) t)
    (when (eca-transport-live-p (eca-session-transport session))
      (ignore-errors (eca-transport-notify (eca-session-transport session) "exit" nil)))))

(add-hook 'kill-emacs-hook #'eca--leave-all)

(defun eca--this-session ()
  "The session of the current buffer, or an error."
  (or (eca-current-session) (user-error "No ECA server belongs to this buffer; M-x eca starts one")))

;;;###autoload
(defun eca-stop ()
  "End the server of this project.  Its chats are kept."
  (interactive)
  (eca--stop (eca--this-session))
  (message "ECA: stopped"))

;;;###autoload
(defun eca-restart ()
  "End the server of this project if it runs, and start it again."
  (interactive)
  (let ((session (eca--this-session)))
    (when (eca-transport-live-p (eca-session-transport session))
      (eca--stop session))
    (setf (eca-session-deaths session) nil)
    (eca--start session)))

(defun eca-show-log ()
  "Show what the server of this project wrote to its log."
  (interactive)
  (let ((log (eca-transport-log (eca-session-transport (eca--this-session)))))
    (if (buffer-live-p log) (pop-to-buffer log) (user-error "There is no log"))))

;;; What the server says of itself

(defun eca--config-updated (session params)
  "Take over from PARAMS what can be selected in SESSION.
What is about one chat alone is not for us."
  (let ((chat (plist-get params :chat)))
    (unless (plist-get params :chatId)
      (pcase-dolist (`(,key ,setter)
                     `((:models ,(lambda (value) (setf (eca-session-models session) (append value nil))))
                       (:agents ,(lambda (value) (setf (eca-session-agents session) (append value nil))))
                       (:variants ,(lambda (value) (setf (eca-session-variants session) (append value nil))))
                       (:selectModel ,(lambda (value) (setf (eca-session-model session) value)))
                       (:selectAgent ,(lambda (value) (setf (eca-session-agent session) value)))
                       (:selectVariant ,(lambda (value) (setf (eca-session-variant session) value)))
                       (:selectTrust ,(lambda (value) (setf (eca-session-trust session) (eca--true value))))
                       (:welcomeMessage ,(lambda (value) (setf (eca-session-welcome session) value)))))
        (when (and (plist-member chat key)
                   (or (plist-get chat key) (memq key '(:selectVariant :variants))))
          (funcall setter (plist-get chat key)))))
    (eca--changed session)))

(defun eca--show-message (_session params)
  "Show the message in PARAMS to the user."
  (let ((text (plist-get params :message)))
    (pcase (plist-get params :type)
      ("error" (message "ECA: %s" (propertize text 'face 'error)))
      ("warning" (message "ECA: %s" (propertize text 'face 'warning)))
      (_ (message "ECA: %s" text)))))

(defun eca--progress (session params)
  "Note in SESSION that the start-up task in PARAMS began or ended."
  (let ((task (plist-get params :taskId)))
    (setf (alist-get task (eca-session-tasks session) nil t #'equal)
          (and (equal (plist-get params :type) "start") (or (plist-get params :title) "")))
    (eca--changed session)))

(defun eca--server-updated (session params)
  "Note in SESSION the state of the tool server in PARAMS."
  (let ((name (plist-get params :name))
        (status (plist-get params :status)))
    (when (and (equal status "failed")
               (not (equal status (plist-get (cdr (assoc name (eca-session-servers session))) :status))))
      (message "ECA: the tool server %s failed" name))
    (setf (alist-get name (eca-session-servers session) nil nil #'equal) params)
    (eca--changed session)))

(eca-on-notification "config/updated" #'eca--config-updated)
(eca-on-notification "$/showMessage" #'eca--show-message)
(eca-on-notification "$/progress" #'eca--progress)
(eca-on-notification "tool/serverUpdated" #'eca--server-updated)
(eca-on-notification "tool/serverRemoved"
                     (lambda (session params)
                       (setf (alist-get (plist-get params :name) (eca-session-servers session) nil t #'equal) nil)))

;;; Mode line

(defvar eca-mode-line-status-functions nil
  "Functions that may say in a word or two what a session waits for or does.
Called with the session; the first that returns a string is believed.")

(defun eca-session-status (session)
  "What SESSION does as a whole, in a word or two."
  (pcase (and session (eca-session-state session))
    ('starting "starting")
    ('failed (propertize "crashed" 'face 'error))
    ('ready (or (run-hook-with-args-until-success 'eca-mode-line-status-functions session)
                (cdar (eca-session-tasks session))
                "idle"))
    (_ "stopped")))

(defun eca-mode-line ()
  "What the mode line says about the server of the current buffer's project.
A chat says it itself, where the name of its mode is."
  (let ((session (and eca-mode-line eca--sessions (eca-current-session))))
    (if (or (not session) (derived-mode-p 'eca-chat-mode)) ""
      (concat " ECA[" (eca-session-status session) "]"))))

(defun eca--show-in-mode-line ()
  "Put the state of servers into the mode line, once."
  (add-to-list 'mode-line-misc-info '(:eval (eca-mode-line)) t))

(provide 'eca-session)
;;; eca-session.el ends here
