;;; eca.el --- Chat with a model that works on your code  -*- lexical-binding: t; -*-

;; Author: The eca contributors
;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: tools, convenience
;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; `M-x eca' starts the server `eca' for the project of the current buffer and shows its chat.
;; README.md beside this file tells the rest.

;;; Code:

(require 'eca-session)
(require 'eca-chat)
(require 'eca-context)
(require 'eca-select)
(require 'eca-editor)
(require 'eca-rewrite)
(require 'eca-suggest)
(require 'eca-lsp)
(require 'eca-health)

;;;###autoload
(defun eca ()
  "Show the chat of this project; start the server if need be.
If a tool call or a question of any chat waits for you, show that chat."
  (interactive)
  (let* ((session (eca-ensure-session))
         (waiting (cl-find-if (lambda (buffer)
                                (with-current-buffer buffer (or eca--question (eca--pending-calls))))
                              (eca--chat-buffers session))))
    (eca--show-chat (or waiting (eca--current-chat)))))

;;;###autoload
(defvar eca-command-map
  (let ((map (make-sparse-keymap)))
    (define-key map "e" #'eca)
    (define-key map "c" #'eca-add-context)
    (define-key map "f" #'eca-add-file)
    (define-key map "a" #'eca-ask)
    (define-key map "n" #'eca-chat-new)
    (define-key map "o" #'eca-chat-open)
    (define-key map "r" #'eca-rewrite)
    (define-key map "s" #'eca-suggest)
    (define-key map "m" #'eca-select-model)
    (define-key map "b" #'eca-select-agent)
    (define-key map "y" #'eca-approve)
    (define-key map "x" #'eca-reject)
    (define-key map "!" #'eca-approve-always)
    (define-key map "d" #'eca-show-diff)
    (define-key map "k" #'eca-chat-stop)
    (define-key map "R" #'eca-restart)
    map)
  "Commands for any buffer; bind it to a prefix key of your choice.")
(fset 'eca-command-map eca-command-map)

(with-eval-after-load 'lsp-mode
  (eca-lsp-register))

(provide 'eca)
;;; eca.el ends here
