;;; eca-lsp.el --- The server as a client of lsp-mode  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; With `eca-lsp-enable', lsp-mode starts the server beside the language servers of a project, and the
;; chats use that server.  Loaded by `eca' once lsp-mode is there; nothing needs lsp-mode.

;;; Code:

(require 'cl-lib)
(require 'eca-session)

(declare-function lsp-register-client "ext:lsp-mode")
(declare-function make-lsp-client "ext:lsp-mode")
(declare-function lsp-stdio-connection "ext:lsp-mode")
(declare-function lsp-request-async "ext:lsp-mode")
(declare-function lsp-cancel-request-by-token "ext:lsp-mode")
(declare-function lsp-notify "ext:lsp-mode")
(declare-function lsp-workspace-root "ext:lsp-mode")
(declare-function lsp-workspace-shutdown "ext:lsp-mode")
(declare-function lsp--workspace-status "ext:lsp-mode")
(declare-function lsp--workspace-root "ext:lsp-mode")
(declare-function lsp--workspace-cmd-proc "ext:lsp-mode")
(declare-function lsp--workspace-proc "ext:lsp-mode")
(defvar lsp--cur-workspace)
(defvar lsp--buffer-workspaces)

(defcustom eca-lsp-enable nil
  "Whether lsp-mode starts the server for the projects that it manages."
  :type 'boolean :group 'eca)

(defun eca-lsp-plist (value)
  "The JSON VALUE of lsp-mode, hash tables or plists, as plists."
  (cond ((hash-table-p value)
         (cl-loop for key being the hash-keys of value using (hash-values inner)
                  nconc (list (intern (concat ":" key)) (eca-lsp-plist inner))))
        ((vectorp value) (vconcat (mapcar #'eca-lsp-plist value)))
        ((and (consp value) (keywordp (car value)))
         (cl-loop for (key inner) on value by #'cddr nconc (list key (eca-lsp-plist inner))))
        ((consp value) (vconcat (mapcar #'eca-lsp-plist value)))
        (t value)))

(cl-defstruct eca-lsp-transport
  "A server that lsp-mode started."
  workspace)

(defmacro eca-lsp--with (transport &rest body)
  "Run BODY with the workspace of TRANSPORT as lsp-mode wants it."
  (declare (indent 1))
  `(let* ((lsp--cur-workspace (eca-lsp-transport-workspace ,transport))
          (lsp--buffer-workspaces (list lsp--cur-workspace)))
     ,@body))

(cl-defmethod eca-transport-request ((transport eca-lsp-transport) method params done failed)
  "Send METHOD with PARAMS over TRANSPORT, then call DONE or FAILED."
  (let ((token (make-symbol "eca-request")))
    (eca-lsp--with transport
      (lsp-request-async method (or params (make-hash-table))
                         (lambda (result) (funcall done (eca-lsp-plist result)))
                         :error-handler (lambda (oops) (funcall failed (eca-lsp-plist oops)))
                         :mode 'detached
                         :cancel-token token))
    token))

(cl-defmethod eca-transport-cancel ((_transport eca-lsp-transport) request)
  "Withdraw REQUEST, a token of lsp-mode."
  (lsp-cancel-request-by-token request))

(cl-defmethod eca-transport-notify ((transport eca-lsp-transport) method params)
  "Send METHOD with PARAMS over TRANSPORT."
  (eca-lsp--with transport (lsp-notify method (or params (make-hash-table)))))

(cl-defmethod eca-transport-live-p ((transport eca-lsp-transport))
  "Whether the server of TRANSPORT runs."
  (let ((process (lsp--workspace-cmd-proc (eca-lsp-transport-workspace transport))))
    (and process (process-live-p process))))

(cl-defmethod eca-transport-log ((transport eca-lsp-transport))
  "The standard error of the server of TRANSPORT."
  (let ((process (lsp--workspace-cmd-proc (eca-lsp-transport-workspace transport))))
    (and process (get-buffer (format "*%s::stderr*" (process-name process))))))

(cl-defmethod eca-transport-stop ((transport eca-lsp-transport))
  "End the server of TRANSPORT."
  (lsp-workspace-shutdown (eca-lsp-transport-workspace transport)))

(defun eca-lsp--session (workspace)
  "The session whose server is WORKSPACE, or nil."
  (cl-find-if (lambda (session)
                (let ((transport (eca-session-transport session)))
                  (and (eca-lsp-transport-p transport) (eq workspace (eca-lsp-transport-workspace transport)))))
              eca--sessions))

(defun eca-lsp--adopt (workspace)
  "Make WORKSPACE, which lsp-mode has just started, a session's server.
If a server of our own works there already, lsp-mode's is not used."
  (let* ((root (file-name-as-directory (expand-file-name (lsp--workspace-root workspace))))
         (session (or (cl-find root eca--sessions :key #'eca-session-root :test #'equal)
                      (eca--new-session root))))
    (unless (eca-transport-live-p (eca-session-transport session))
      (setf (eca-session-transport session) (make-eca-lsp-transport :workspace workspace)
            (eca-session-leaving session) nil)
      (eca--show-in-mode-line)
      (eca--ready session nil))))

(defun eca-lsp--ended (workspace)
  "Note that the server WORKSPACE of lsp-mode has ended.
lsp-mode cares about starting it again."
  (let ((session (eca-lsp--session workspace)))
    (when session
      (setf (eca-session-leaving session) t)
      (run-hook-with-args 'eca-session-gone-functions session "The server that lsp-mode started has ended.")
      (eca--gone session "lsp-mode"))))

(defun eca-lsp--hear (method)
  "A handler of lsp-mode for the notification METHOD."
  (lambda (workspace params)
    (let ((session (or (eca-lsp--session workspace) (progn (eca-lsp--adopt workspace) (eca-lsp--session workspace)))))
      (when session (eca--hear session method (eca-lsp-plist params))))))

(defun eca-lsp--answer (method)
  "A handler of lsp-mode for the request METHOD."
  (lambda (workspace params callback)
    (run-at-time 0 nil #'eca--answer (eca-lsp--session workspace) method (eca-lsp-plist params) callback
                 (lambda (_code text) (message "ECA: %s" text) (funcall callback nil)))))

(defun eca-lsp--handlers (methods handler)
  "A hash table of METHODS, each with what HANDLER makes of it."
  (let ((table (make-hash-table :test #'equal)))
    (dolist (method methods table)
      (puthash method (funcall handler method) table))))

(defun eca-lsp-register ()
  "Tell lsp-mode about the server."
  (add-hook 'lsp-after-uninitialized-functions #'eca-lsp--ended)
  (lsp-register-client
   (make-lsp-client
    :new-connection (lsp-stdio-connection (lambda () eca-command))
    :activation-fn (lambda (_file _mode) eca-lsp-enable)
    :add-on? t
    :priority -10
    :server-id 'eca
    :custom-capabilities (list (cons 'codeAssistant
                                     (json-parse-string
                                      (json-serialize (plist-get (eca--capabilities) :codeAssistant)
                                                      :false-object :json-false)
                                      :object-type 'alist)))
    :initialized-fn #'eca-lsp--adopt
    ;; `$/progress' is LSP's own here, and the server knows that.
    :notification-handlers (eca-lsp--handlers (remove "$/progress" (eca-notification-methods)) #'eca-lsp--hear)
    :async-request-handlers (eca-lsp--handlers (eca-request-methods) #'eca-lsp--answer))))

(provide 'eca-lsp)
;;; eca-lsp.el ends here
