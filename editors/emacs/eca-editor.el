;;; eca-editor.el --- What Emacs knows about the code, for the model  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; The server asks for problems, definitions and references.  Problems come from flymake (so from
;; eglot, too), flycheck and lsp-mode, whichever is on; the others from whatever xref uses in the
;; file.  Nothing here may ask the user something: `inhibit-interaction' turns that into an error.

;;; Code:

(require 'cl-lib)
(require 'flymake)
(require 'subr-x)
(require 'xref)
(require 'eca-session)
(require 'eca-context)

(declare-function flycheck-error-pos "ext:flycheck")
(declare-function flycheck-error-line "ext:flycheck")
(declare-function flycheck-error-column "ext:flycheck")
(declare-function flycheck-error-end-line "ext:flycheck")
(declare-function flycheck-error-end-column "ext:flycheck")
(declare-function flycheck-error-level "ext:flycheck")
(declare-function flycheck-error-message "ext:flycheck")
(declare-function flycheck-error-checker "ext:flycheck")
(declare-function flycheck-error-id "ext:flycheck")
(declare-function lsp-diagnostics "ext:lsp-mode")
(defvar flycheck-current-errors)
(defvar tags-file-name)
(defvar tags-table-list)

(declare-function eca-lsp-plist "eca-lsp")

;;; Problems

(defun eca--flymake-severity (diagnostic)
  "How bad the flymake DIAGNOSTIC is."
  (let ((type (flymake-diagnostic-type diagnostic)))
    (pcase (or (flymake--lookup-type-property type 'severity)
               (warning-numeric-level :error))
      ((and level (guard (>= level (warning-numeric-level :error)))) "error")
      ((and level (guard (>= level (warning-numeric-level :warning)))) "warning")
      (_ "info"))))

(declare-function flymake--lookup-type-property "flymake")
(declare-function warning-numeric-level "warnings")

(defun eca--flymake-problems (uri)
  "The problems that flymake has found in the current buffer, whose file is URI."
  (cl-loop for diagnostic in (flymake-diagnostics)
           for begin = (flymake-diagnostic-beg diagnostic)
           for end = (flymake-diagnostic-end diagnostic)
           when (and (integer-or-marker-p begin) (integer-or-marker-p end))
           collect (list :uri uri
                         :severity (eca--flymake-severity diagnostic)
                         :source (let ((backend (flymake-diagnostic-backend diagnostic)))
                                   (if (symbolp backend) (symbol-name backend) "flymake"))
                         :range (eca-range (min begin (point-max)) (min end (point-max)))
                         :message (eca--text (flymake-diagnostic-text diagnostic)))))

(defun eca--flycheck-problems (uri)
  "The problems that flycheck has found in the current buffer, whose file is URI."
  (cl-loop for problem in (bound-and-true-p flycheck-current-errors)
           for line = (or (flycheck-error-line problem) 1)
           for column = (or (flycheck-error-column problem) 1)
           collect (append
                    (list :uri uri
                          :severity (pcase (flycheck-error-level problem) ('error "error") ('warning "warning") (_ "info"))
                          :source (format "%s" (flycheck-error-checker problem))
                          :range (list :start (list :line line :character column)
                                       :end (list :line (or (flycheck-error-end-line problem) line)
                                                  :character (or (flycheck-error-end-column problem) (1+ column))))
                          :message (eca--text (or (flycheck-error-message problem) "")))
                    (eca--plist :code (and (flycheck-error-id problem) (format "%s" (flycheck-error-id problem)))))))

(defun eca--lsp-problem (uri problem)
  "PROBLEM of the file URI, as lsp-mode keeps it, for the server."
  (let* ((data (eca-lsp-plist problem))
         (place (lambda (side)
                  (let ((position (eca--get data :range side)))
                    (list :line (1+ (plist-get position :line)) :character (1+ (plist-get position :character)))))))
    (append (list :uri uri
                  :severity (pcase (plist-get data :severity) (1 "error") (2 "warning") (4 "hint") (_ "info"))
                  :source (or (plist-get data :source) "lsp")
                  :range (list :start (funcall place :start) :end (funcall place :end))
                  :message (eca--text (plist-get data :message)))
            (eca--plist :code (let ((code (plist-get data :code))) (and code (format "%s" code)))))))

(defun eca--lsp-problems (wanted)
  "What lsp-mode has found, by file; only in the file WANTED if it is given."
  (when (fboundp 'lsp-diagnostics)
    (cl-loop for path being the hash-keys of (lsp-diagnostics) using (hash-values problems)
             when (or (null wanted) (file-equal-p wanted path))
             collect (cons (expand-file-name path)
                           (mapcar (apply-partially #'eca--lsp-problem (eca--uri path)) problems)))))

(defun eca--buffer-problems (buffer)
  "The problems that flymake and flycheck have found in BUFFER."
  (with-current-buffer buffer
    (let ((uri (eca--uri buffer-file-name)))
      (append (when (bound-and-true-p flymake-mode) (eca--flymake-problems uri))
              (when (bound-and-true-p flycheck-mode) (eca--flycheck-problems uri))))))

(defun eca--get-diagnostics (session params reply)
  "REPLY with the problems of the file in PARAMS, or of all files of SESSION."
  (let* ((uri (plist-get params :uri))
         (wanted (and uri (eca--file-of-uri uri session)))
         (lsp (eca--lsp-problems wanted))
         (buffers (if wanted (delq nil (list (find-buffer-visiting wanted)))
                    (cl-remove-if-not
                     (lambda (buffer)
                       (let ((file (buffer-file-name buffer)))
                         (and file (string-prefix-p (eca-session-root session) (expand-file-name file)))))
                     (buffer-list)))))
    ;; lsp-mode feeds flymake or flycheck: what it has itself is more exact and not said twice.
    (setq buffers (cl-remove-if (lambda (buffer) (assoc (expand-file-name (buffer-file-name buffer)) lsp)) buffers))
    (funcall reply (list :diagnostics (vconcat (mapcan #'cdr lsp) (mapcan #'eca--buffer-problems buffers))))))

;;; Definitions and references

(defun eca--xref-location (item)
  "Where the xref ITEM leads, as a location; nil if to no file."
  (let* ((location (xref-item-location item))
         (marker (ignore-errors (xref-location-marker location)))
         (buffer (and marker (marker-buffer marker))))
    (when (and buffer (buffer-file-name buffer))
      (with-current-buffer buffer
        (list :uri (eca--uri buffer-file-name)
              :range (eca-range marker (save-excursion
                                         (goto-char marker)
                                         (or (cdr (bounds-of-thing-at-point 'symbol)) (point)))))))))

(defun eca--xref (session params find)
  "What FIND brings at the place in PARAMS, as an answer for the server of SESSION.
FIND takes an xref backend and an identifier."
  (let ((file (eca--file-of-uri (plist-get params :uri) session)))
    (if (not (file-readable-p file))
        (list :status "error" :message (format "Emacs cannot read %s" file))
      (with-current-buffer (or (find-buffer-visiting file) (let ((inhibit-message t)) (find-file-noselect file t)))
        (save-excursion
          (save-restriction
            (eca-goto-position (plist-get params :position))
            (let ((backend (xref-find-backend)))
              (if (or (null backend)
                      (and (eq backend 'etags) (not (or (bound-and-true-p tags-file-name) (bound-and-true-p tags-table-list)))))
                  (list :status "no-server" :message "Emacs has nothing that knows symbols in this file")
                (eca--xref-answer backend find)))))))))

(defun eca--xref-answer (backend find)
  "What FIND brings with BACKEND at point, as an answer."
  (condition-case oops
      (let* ((inhibit-interaction t)
             (identifier (xref-backend-identifier-at-point backend)))
        (if (not identifier) (list :status "error" :message "There is no symbol at this place")
          (list :status "success"
                :locations (vconcat (delq nil (mapcar #'eca--xref-location (funcall find backend identifier)))))))
    (error (list :status "error" :message (error-message-string oops)))))

(eca-on-request "editor/getDiagnostics" #'eca--get-diagnostics)
(eca-on-request "editor/getDefinition"
                (lambda (session params reply) (funcall reply (eca--xref session params #'xref-backend-definitions))))
(eca-on-request "editor/getReferences"
                (lambda (session params reply) (funcall reply (eca--xref session params #'xref-backend-references))))

(provide 'eca-editor)
;;; eca-editor.el ends here
