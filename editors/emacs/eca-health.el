;;; eca-health.el --- What is there and what is missing  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; `eca-check-health' looks at Emacs, the program, the server of the project and its models, and says
;; in a buffer how they are and what would help.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'eca-session)

;;;###autoload
(defun eca-check-health ()
  "Show whether all is there that a chat in this project needs."
  (interactive)
  (let* ((root (eca--root))
         (session (eca-current-session))
         (findings (append (list (eca--health-emacs) (eca--health-program root))
                           (eca--health-server session)
                           (list (cons 'info (format "The project is %s"
                                                     (abbreviate-file-name (if session (eca-session-root session) root))))))))
    (with-current-buffer (get-buffer-create "*eca health*")
      (let ((inhibit-read-only t))
        (erase-buffer)
        (pcase-dolist (`(,kind . ,text) findings)
          (insert (pcase kind
                    ('good (propertize "✓ " 'face 'success))
                    ('warning (propertize "! " 'face 'warning))
                    ('bad (propertize "✗ " 'face 'error))
                    (_ "  "))
                  text "\n")))
      (goto-char (point-min))
      (special-mode))
    (pop-to-buffer "*eca health*")))

(defun eca--health-emacs ()
  "Whether this Emacs can do it."
  (if (ignore-errors (equal (json-serialize '(:a 1)) "{\"a\":1}"))
      (cons 'good (format "Emacs %s" emacs-version))
    (cons 'warning (format "Emacs %s was built without its own JSON, so messages are read slowly" emacs-version))))

(defun eca--health-program (root)
  "Whether the program is there, on the host of the folder ROOT."
  (let* ((default-directory root)
         (program (car eca-command))
         (path (executable-find program t)))
    (if (not path)
        (cons 'bad (format "`%s' is not a program; install it on the PATH of Emacs, or name it in `eca-command'" program))
      (with-temp-buffer
        (setq default-directory root)
        (let ((status (condition-case oops (process-file program nil t nil "--version")
                        (error (error-message-string oops)))))
          (if (equal status 0) (cons 'good (format "%s (%s)" (string-trim (buffer-string)) path))
            (cons 'bad (format "`%s --version' fails: %s %s" path status (string-trim (buffer-string))))))))))

(defun eca--health-server (session)
  "How the server of SESSION is, which may be nil; a list."
  (pcase (and session (eca-session-state session))
    ('ready (append (list (cons 'good "The server runs"))
                    (eca--health-models session)
                    (mapcar (lambda (server) (eca--health-tools (car server) (cdr server)))
                            (reverse (eca-session-servers session)))))
    ('starting (list (cons 'info "The server is starting")))
    ('failed (list (cons 'bad (substitute-command-keys
                               "The server could not be started, or died; \\[eca-show-log] shows what it said"))))
    (_ (list (cons 'info (substitute-command-keys "The server does not run; \\[eca] starts it"))))))

(defun eca--health-models (session)
  "Which models SESSION offers; a list."
  (let ((models (eca-session-models session)))
    (cond ((null models) (list (cons 'warning "It offers no models yet")))
          ((equal models '("eca/guide"))
           (list (cons 'warning (substitute-command-keys
                                 "Only the built-in guide answers; \\[eca-login] asks for a key, docs/config.md tells more"))))
          (t (list (cons 'good (format "%d models; %s is selected" (length models)
                                       (or (eca-session-model session) "none"))))))))

(defun eca--health-tools (name state)
  "How the tool server NAME is, whose last STATE the server told."
  (let ((status (plist-get state :status)))
    (cons (if (member status '("failed" "requires-auth")) 'warning 'info)
          (format "Tools of %s: %s, %d" name (or status "there") (length (plist-get state :tools))))))

(provide 'eca-health)
;;; eca-health.el ends here
