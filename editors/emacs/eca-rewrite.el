;;; eca-rewrite.el --- Have the model rewrite a region  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; The new text is shown in place of the old one, as it comes, by an overlay; the buffer changes only
;; when you accept it.  If you changed the old text in the meantime, it is not overwritten.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'eca-session)
(require 'eca-context)

(defface eca-rewrite '((t :inherit diff-added :extend t)) "The new text of a rewrite." :group 'eca)

(cl-defstruct eca-rewrite-state
  "A rewrite that is not accepted yet."
  id overlay old (new "") done)

(defvar eca--rewrites (make-hash-table :test #'equal) "Hash table: id -> rewrite.")

(defvar eca-rewrite-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-y") #'eca-rewrite-accept)
    (define-key map (kbd "C-c C-n") #'eca-rewrite-reject)
    (define-key map (kbd "C-c C-d") #'eca-rewrite-diff)
    map)
  "Keys on a rewrite.")

;;;###autoload
(defun eca-rewrite (begin end prompt)
  "Have the text from BEGIN to END rewritten as PROMPT says."
  (interactive (if (use-region-p)
                   (list (region-beginning) (region-end) (read-string "Rewrite the region so that: "))
                 (user-error "Mark what shall be rewritten first")))
  (barf-if-buffer-read-only)
  (let* ((session (eca-ensure-session))
         (overlay (make-overlay begin end nil t nil))
         (state (make-eca-rewrite-state :id (eca--uuid) :overlay overlay
                                        :old (buffer-substring-no-properties begin end))))
    (overlay-put overlay 'eca-rewrite state)
    (overlay-put overlay 'keymap eca-rewrite-map)
    (puthash (eca-rewrite-state-id state) state eca--rewrites)
    (deactivate-mark)
    (eca--rewrite-show state "Asking the model")
    (eca-request session "rewrite/prompt"
                 (append (list :id (eca-rewrite-state-id state)
                               :text (eca--text (eca-rewrite-state-old state)) :prompt prompt
                               :range (eca-range begin end))
                         (eca--plist :path (and buffer-file-name (eca--server-path buffer-file-name))))
                 #'ignore
                 (lambda (oops)
                   (eca--rewrite-end state)
                   (message "ECA: %s" (if (equal (plist-get oops :code) -32601)
                                          "this server does not offer rewriting"
                                        (plist-get oops :message)))))))

(defun eca--rewrite-show (state &optional doing)
  "Show the new text of STATE, or what is DOING."
  (let ((overlay (eca-rewrite-state-overlay state))
        (new (eca-rewrite-state-new state)))
    (when (overlay-buffer overlay)
      (overlay-put overlay 'face 'diff-removed)
      (overlay-put
       overlay 'after-string
       (concat
        (unless (string-empty-p new)
          (concat (unless (string-suffix-p "\n" (eca-rewrite-state-old state)) "\n") (propertize new 'face 'eca-rewrite)))
        (propertize
         (substitute-command-keys
          (if (eca-rewrite-state-done state)
              "\n\\<eca-rewrite-map>\\[eca-rewrite-accept] accept   \\[eca-rewrite-reject] reject   \\[eca-rewrite-diff] diff\n"
            (format "\n%s…  \\<eca-rewrite-map>\\[eca-rewrite-reject] cancels\n" (or doing "Rewriting"))))
         'face 'shadow))))))

(defun eca--rewrite-end (state)
  "Forget STATE and show the buffer as it is."
  (remhash (eca-rewrite-state-id state) eca--rewrites)
  (delete-overlay (eca-rewrite-state-overlay state)))

(defun eca--rewrite-received (_session params)
  "Take over what PARAMS say about a rewrite."
  (let ((state (gethash (plist-get params :rewriteId) eca--rewrites))
        (content (plist-get params :content)))
    (when state
      (pcase (plist-get content :type)
        ("text" (setf (eca-rewrite-state-new state) (concat (eca-rewrite-state-new state) (plist-get content :text)))
         (eca--rewrite-show state))
        ("replace" (setf (eca-rewrite-state-new state) (plist-get content :text))
         (eca--rewrite-show state))
        ("reasoning" (eca--rewrite-show state "Thinking"))
        ("error" (eca--rewrite-end state)
         (message "ECA: not rewritten: %s" (plist-get content :message)))
        ("finished" (setf (eca-rewrite-state-done state) t)
         (eca--rewrite-show state)
         (message "ECA: rewritten.  %s"
                  (substitute-command-keys
                   "\\<eca-rewrite-map>\\[eca-rewrite-accept] accept, \\[eca-rewrite-reject] reject, \\[eca-rewrite-diff] diff")))))))

(eca-on-notification "rewrite/contentReceived" #'eca--rewrite-received)

(add-hook 'eca-session-gone-functions
          (lambda (_session _sentence)
            (dolist (state (hash-table-values eca--rewrites))
              (unless (eca-rewrite-state-done state) (eca--rewrite-end state)))))

(defun eca--rewrite-here ()
  "The rewrite at point, or the only one of the buffer."
  (let ((all (lambda (overlays) (delq nil (mapcar (lambda (overlay) (overlay-get overlay 'eca-rewrite)) overlays)))))
    (or (car (funcall all (overlays-in (max (point-min) (1- (point))) (min (point-max) (1+ (point))))))
        (car (funcall all (overlays-in (point-min) (point-max))))
        (user-error "Nothing was rewritten here"))))

(defun eca-rewrite-accept ()
  "Put the new text in place of the old one."
  (interactive)
  (let* ((state (eca--rewrite-here))
         (overlay (eca-rewrite-state-overlay state))
         (begin (overlay-start overlay))
         (end (overlay-end overlay))
         (new (eca-rewrite-state-new state)))
    (unless (eca-rewrite-state-done state) (user-error "The new text is not complete yet"))
    (unless (equal (eca-rewrite-state-old state) (buffer-substring-no-properties begin end))
      (kill-new new)
      (eca--rewrite-end state)
      (user-error "You changed this text in the meantime; the new one is in the kill ring"))
    (eca--rewrite-end state)
    (save-excursion
      (goto-char begin)
      (insert new)
      (delete-region (point) (+ (point) (- end begin))))))

(defun eca-rewrite-reject ()
  "Keep the old text."
  (interactive)
  (eca--rewrite-end (eca--rewrite-here)))

(defun eca-rewrite-diff ()
  "Compare the old and the new text."
  (interactive)
  (let* ((state (eca--rewrite-here))
         (old (generate-new-buffer " *eca old*"))
         (new (generate-new-buffer " *eca new*")))
    (unwind-protect
        (progn
          (with-current-buffer old (insert (eca-rewrite-state-old state)))
          (with-current-buffer new (insert (eca-rewrite-state-new state)))
          (diff old new nil t))
      (kill-buffer old)
      (kill-buffer new))))

(provide 'eca-rewrite)
;;; eca-rewrite.el ends here
