;;; lsp-test.el --- The Emacs client on a server that lsp-mode started  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; lsp-mode, as Debian packs it, starts the server beside its language servers; the chats use it.

;;; Code:

(load (expand-file-name "support" (file-name-directory (or load-file-name buffer-file-name))) nil t)
(require 'package)
(add-to-list 'package-directory-list "/usr/share/emacs/site-lisp/elpa")
(package-initialize)
(require 'eca)
(require 'lsp-mode)

(defun lsp-test-ghost ()
  "The suggestion that is shown, or nil."
  (and eca--suggestion (substring-no-properties (overlay-get (eca-suggestion-overlay eca--suggestion) 'after-string))))

(defun lsp-test-suggestions ()
  "Have something suggested in this buffer, and withdraw a request."
  (save-window-excursion
    (switch-to-buffer (current-buffer))
    (erase-buffer)
    (insert "say world\nhello ")
    (eca-suggest)
    (support-until "the suggestion" (lsp-test-ghost))
    (should (equal (lsp-test-ghost) "world"))
    (eca-suggest-accept)
    (should (equal (buffer-string) "say world\nhello world"))
    (erase-buffer)
    ;; This one would take a hundred seconds.
    (insert "words 10000 10\n")
    (eca-suggest)
    (should (= (hash-table-count lsp--cancelable-requests) 1))
    (insert "x")
    (run-hooks 'post-command-hook)
    (should-not eca--suggest-request)
    (should (zerop (hash-table-count lsp--cancelable-requests)))
    (erase-buffer)
    (insert "fail 401 no such key")
    (eca-suggest)
    (support-until "the answer" (not eca--suggest-request))
    (should-not (lsp-test-ghost))
    (should (string-search "no such key" (car (eca-session-reasons (eca-current-session)))))
    (set-buffer-modified-p nil)))

(ert-deftest lsp-mode-carries-a-chat ()
  "Prompt, consent, question, suggestion and the end of the server, all over lsp-mode."
  (let* ((support-project (support-make-project))
         (process-environment (support-environment support-project))
         (eca-command (support-command support-project))
         (eca-lsp-enable t)
         (lsp-session-file (expand-file-name "lsp-session" support-project))
         (lsp-auto-guess-root t)
         (lsp-restart 'ignore)
         (lsp-enable-suggest-server-download nil)
         (eca--sessions nil)
         (inhibit-message t)
         session chat)
    (unwind-protect
        (with-current-buffer (find-file-noselect (support-file "a.txt"))
          (lsp)
          (support-until "lsp-mode's server"
            (setq session (car eca--sessions))
            (and session (eq (eca-session-state session) 'ready) (eca-session-models session)))
          (should (eca-lsp-transport-p (eca-session-transport session)))
          (should (eq session (eca-current-session)))
          (setq chat (eca--current-chat))
          (with-current-buffer chat
            (eca--set-input (concat "call eca__edit_file "
                                    (json-serialize (list :path (support-file "a.txt") :original_content "two"
                                                          :new_content "TWO"))
                                    "\ncall eca__ask_user {\"question\":\"Sure?\"}\nsay over **lsp**"))
            (eca-chat-send)
            (support-until "a call that waits" (eca--pending-calls))
            (should (string-search "-two\n+TWO" (buffer-string)))
            (eca-approve)
            (support-until "the question" eca--question)
            (should (equal (support-contents "a.txt") "one\nTWO\nthree\n"))
            (eca--settle-question "yes")
            (support-until "end of the turn" (not eca--busy))
            (should (string-search "over **lsp**" (buffer-string)))
            (should (string-search "▸ ✓ Sure? → yes\n" (buffer-string)))
            (let ((contexts (plist-get (eca-request-wait session "chat/queryContext" (list :query "main" :contexts [])) :contexts)))
              (should (equal (plist-get (aref contexts 0) :path) (support-file "src/main.el"))))
            (should-error (eca-request-wait session "no/such" nil) :type 'user-error))
          (lsp-test-suggestions)
          (with-current-buffer chat
            (eca-transport-stop (eca-session-transport session))
            (support-until "the end of the server" (eq (eca-session-state session) 'stopped))))
      (when (buffer-live-p chat) (kill-buffer chat))
      (ignore-errors (mapc #'eca--stop eca--sessions))
      (delete-directory support-project t))))

(support-report)
;;; lsp-test.el ends here
