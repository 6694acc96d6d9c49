;;; guide-test.el --- Emacs as a client of the server  -*- lexical-binding: t; -*-

;;; Commentary:

;; Emacs' own `jsonrpc' library, which eglot is built on, starts the server, asks the offline guide
;; and leaves.  A second connection frames its messages as eca-emacs does: a line break after each
;; body, counted in Content-Length, and `null' where there are no parameters.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'jsonrpc)

(defconst guide-test-hang-guard 30 "Seconds after which a test gives up.")

(defclass guide-test-connection (jsonrpc-process-connection)
  ((contents :initform nil :documentation "Parameters of chat/contentReceived, newest first.")
   (notifications :initform nil :documentation "Names of all notifications, newest first.")))

(defclass guide-test-eca-emacs-connection (guide-test-connection) ()
  "A connection with the framing of eca-emacs.")

(cl-defmethod jsonrpc-connection-send ((connection guide-test-eca-emacs-connection)
                                       &rest args &key method &allow-other-keys)
  "Send ARGS over CONNECTION as eca-emacs would; METHOD may be a keyword."
  (when (keywordp method)
    (setq args (plist-put args :method (substring (symbol-name method) 1))))
  (let* ((message (append '(:jsonrpc "2.0") args))
         (json (concat (json-serialize message :false-object :json-false :null-object nil) "\n")))
    (process-send-string (jsonrpc--process connection)
                         (format "Content-Length: %d\r\n\r\n%s" (string-bytes json) json))))

(defun guide-test-connect (class)
  "Start the server in a home of its own, with a connection of CLASS."
  (let* ((home (make-temp-file "eca-emacs-" t))
         (config (expand-file-name "config.json" home))
         (process-environment
          (append (list (concat "XDG_DATA_HOME=" home) (concat "XDG_CACHE_HOME=" home)) process-environment)))
    (with-temp-file config (insert "{\"localDiscovery\": false}"))
    (make-instance
     class
     :name "eca"
     :process (make-process :name "eca" :connection-type 'pipe :coding 'utf-8-emacs-unix :noquery t
                            :command (list (getenv "ECA_BINARY") "server" "--config-file" config)
                            :stderr (get-buffer-create "*eca stderr*"))
     :notification-dispatcher
     (lambda (connection method params)
       (push method (slot-value connection 'notifications))
       (when (eq method 'chat/contentReceived)
         (push params (slot-value connection 'contents)))))))

(defun guide-test-initialize (connection capabilities)
  "Shake hands over CONNECTION as a client with CAPABILITIES; return the server's answer."
  (prog1 (jsonrpc-request connection :initialize
                          (list :processId (emacs-pid)
                                :clientInfo '(:name "emacs" :version "28")
                                :capabilities capabilities
                                :initializationOptions '(:chatAgent nil)
                                :workspaceFolders (vector (list :uri (concat "file://" temporary-file-directory)
                                                                :name "tmp")))
                          :timeout guide-test-hang-guard)
    (jsonrpc-notify connection :initialized nil)))

(defun guide-test-wait (what condition)
  "Read from the server until CONDITION holds, or fail with WHAT."
  (with-timeout (guide-test-hang-guard (ert-fail (format "hang guard: %s" what)))
    (while (not (funcall condition))
      (accept-process-output nil 0.1))))

(defun guide-test-contents (connection role type)
  "What came over CONNECTION for ROLE with content of TYPE, oldest first."
  (cl-loop for params in (reverse (slot-value connection 'contents))
           for content = (plist-get params :content)
           when (and (equal (plist-get params :role) role) (equal (plist-get content :type) type))
           collect content))

(defun guide-test-finished (connection)
  "Whether a turn has ended on CONNECTION."
  (cl-some (lambda (content) (equal (plist-get content :state) "finished"))
           (guide-test-contents connection "system" "progress")))

(defun guide-test-leave (connection)
  "End the server of CONNECTION in order and return its exit status."
  (let ((process (jsonrpc--process connection)))
    (should-not (jsonrpc-request connection :shutdown nil :timeout guide-test-hang-guard))
    (jsonrpc-notify connection :exit nil)
    (guide-test-wait "exit of the server" (lambda () (not (process-live-p process))))
    (process-exit-status process)))

(defun guide-test-converse (class capabilities)
  "Have one whole conversation over a connection of CLASS, as a client with CAPABILITIES."
  (let ((connection (guide-test-connect class)))
    (unwind-protect
        (let ((answer (guide-test-initialize connection capabilities)))
          (should (stringp (plist-get answer :chatWelcomeMessage)))
          (should (plist-member answer :capabilities))
          (guide-test-wait "config/updated"
                           (lambda () (memq 'config/updated (slot-value connection 'notifications))))
          (let ((accepted (jsonrpc-request connection :chat/prompt
                                           '(:chatId "émacs" :message "stream 60 words — ünïcode"
                                             :request-id 0 :model nil :agent nil :contexts [])
                                           :timeout guide-test-hang-guard)))
            (should (equal (plist-get accepted :chatId) "émacs"))
            (should (equal (plist-get accepted :status) "prompting")))
          (guide-test-wait "end of the turn" (lambda () (guide-test-finished connection)))
          (should (equal (mapcar (lambda (content) (plist-get content :text))
                                 (guide-test-contents connection "user" "text"))
                         '("stream 60 words — ünïcode\n")))
          (let ((pieces (mapcar (lambda (content) (plist-get content :text))
                                (guide-test-contents connection "assistant" "text"))))
            (should (> (length pieces) 10))
            (should (= (length (split-string (apply #'concat pieces))) 60)))
          (should (= (guide-test-leave connection) 0))
          (slot-value connection 'notifications))
      (when (jsonrpc-running-p connection)
        (delete-process (jsonrpc--process connection))))))

(ert-deftest guide-test-the-jsonrpc-library ()
  "A client that speaks ECA over the library's own framing."
  (guide-test-converse 'guide-test-connection '(:codeAssistant (:chat t))))

(ert-deftest guide-test-the-framing-of-eca-emacs ()
  "A client with eca-emacs' framing and its null parameters."
  (should (memq '$/progress
                (guide-test-converse 'guide-test-eca-emacs-connection
                                     '(:codeAssistant (:chat t :editor (:diagnostics t)))))))

(ert-deftest guide-test-a-plain-lsp-client ()
  "A client that declares what eglot does gets no message that eglot cannot read."
  (should-not (memq '$/progress
                    (guide-test-converse 'guide-test-connection
                                         '(:workspace (:applyEdit t)
                                           :textDocument (:synchronization (:didSave t)))))))

(ert-deftest guide-test-an-unknown-method ()
  "An unknown method is an error of the request, and the connection lives."
  (let ((connection (guide-test-connect 'guide-test-connection)))
    (guide-test-initialize connection '(:codeAssistant (:chat t)))
    (let ((failure (should-error (jsonrpc-request connection :no/suchMethod '(:a 1)) :type 'jsonrpc-error)))
      (should (equal (alist-get 'jsonrpc-error-code (cdr failure)) -32601)))
    (should (equal (jsonrpc-request connection :chat/list nil) '(:chats [])))
    (should (= (guide-test-leave connection) 0))))

(let* ((stats (ert-run-tests-batch t))
       (bad (+ (ert-stats-completed-unexpected stats) (ert-stats-skipped stats)))
       (good (ert-stats-completed-expected stats)))
  (princ (format "%d passed, %d failed\n" good bad))
  (kill-emacs (if (and (= bad 0) (= (+ good bad) (ert-stats-total stats))) 0 1)))

;;; guide-test.el ends here
