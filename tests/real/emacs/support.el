;;; support.el --- A server, a scripted model and a project for tests  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; Each test gets a project, a home and a server of its own.  The model is `mock_model.py', which does
;; what the prompt says.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'json)

(defconst support-here (file-name-directory (or load-file-name buffer-file-name)))
(defconst support-client (expand-file-name "../../../editors/emacs/" support-here))
(defconst support-hang-guard 40 "Seconds after which a test gives up.")

(add-to-list 'load-path support-client)

(defvar support-model nil "The process of the scripted model.")
(defvar support-project nil "The project of the test that runs.")

(defun support-wait (what condition)
  "Read from processes until CONDITION returns something, and return it; else fail with WHAT."
  (let ((deadline (+ (float-time) support-hang-guard)) result)
    (while (not (setq result (funcall condition)))
      (when (> (float-time) deadline)
        (ert-fail (format "hang guard: %s, with this in the buffer:\n%s" what (buffer-substring-no-properties (max (point-min) (- (point-max) 2000)) (point-max)))))
      (accept-process-output nil 0.05))
    result))

(defmacro support-until (what &rest condition)
  "Wait for WHAT, which is there when CONDITION holds."
  (declare (indent 1))
  `(support-wait ,what (lambda () ,@condition)))

(defun support-model-url ()
  "The address of the scripted model, which is started if need be."
  (unless (process-live-p support-model)
    (setq support-model
          (make-process :name "model" :buffer (generate-new-buffer " *model*") :noquery t :connection-type 'pipe
                        :command (list "python3" "-B" (expand-file-name "../mock_model.py" support-here)))))
  (with-current-buffer (process-buffer support-model)
    (support-until "address of the model" (string-match "http.*/v1" (buffer-string)))
    (match-string 0 (buffer-string))))

(defun support-requests ()
  "The bodies of all requests that the model got, oldest first."
  (with-temp-buffer
    (let ((status (call-process "python3" nil t nil "-c"
                                "import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).read().decode())"
                                (concat (support-model-url) "/requests"))))
      (unless (equal status 0) (error "The model does not answer: %s" (buffer-string))))
    (goto-char (point-min))
    (append (json-parse-buffer :object-type 'plist :null-object nil :false-object nil) nil)))

(defun support-last-turn ()
  "The messages of the last request that belongs to a turn.
A title is asked for without tools, and at any time."
  (plist-get (car (last (cl-remove-if-not (lambda (body) (plist-get body :tools)) (support-requests)))) :messages))

(defun support-make-project ()
  "Make a project with a few files and a configuration, and return its folder."
  (let ((project (file-name-as-directory (file-truename (make-temp-file "eca-emacs-" t)))))
    (make-directory (expand-file-name "home" project))
    (make-directory (expand-file-name "work/src" project) t)
    (pcase-dolist (`(,name . ,text)
                   `(("work/a.txt" . "one\ntwo\nthree\n")
                     ("work/src/main.el" . "(defun my-answer () 42)\n\n(defun my-question () (my-answer))\n")
                     ("config.json" . ,(json-serialize
                                        `(:localDiscovery :false :defaultModel "mock/scripted"
                                          :providers (:mock (:api "openai-chat" :url ,(support-model-url) :key "x"
                                                             :models (:scripted ,(make-hash-table)
                                                                      :other ,(make-hash-table)))))
                                        :false-object :false))))
      (with-temp-file (expand-file-name name project) (insert text)))
    (make-directory (expand-file-name "work/.git" project))
    project))

(defun support-environment (project)
  "The environment of a server for PROJECT."
  (let ((home (expand-file-name "home" project)))
    (append (list (concat "HOME=" home) (concat "XDG_DATA_HOME=" home) (concat "XDG_CACHE_HOME=" home)
                  (concat "XDG_CONFIG_HOME=" home))
            process-environment)))

(defun support-command (project)
  "What starts the server for PROJECT."
  (list (getenv "ECA_BINARY") "server" "--config-file" (expand-file-name "config.json" project)))

(defun support-file (name)
  "The path of NAME in the project of the test."
  (expand-file-name (concat "work/" name) support-project))

(defun support-contents (name)
  "The text of the file NAME of the project."
  (with-temp-buffer
    (insert-file-contents (support-file name))
    (buffer-string)))

(defun support-report ()
  "Run the tests, say how it went in one line, and leave.
The variable ECA_TEST of the environment chooses tests by a regular expression."
  (let* ((selector (getenv "ECA_TEST"))
         (stats (ert-run-tests-batch (or selector t)))
         (bad (+ (ert-stats-completed-unexpected stats) (ert-stats-skipped stats)))
         (good (ert-stats-completed-expected stats)))
    (princ (format "%d passed, %d failed\n" good bad))
    (kill-emacs (if (and (= bad 0) (= (+ good bad) (ert-stats-total stats))) 0 1))))

(provide 'support)
;;; support.el ends here
