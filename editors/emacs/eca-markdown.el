;;; eca-markdown.el --- Markdown that arrives piece by piece  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; A model's answer grows at its end.  A run remembers where the last unfinished line begins and
;; whether it stands inside a fence, so each piece costs only the lines it touches.  Marks such as
;; `**' are hidden, not removed: what is copied from the buffer is the Markdown itself.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'browse-url)

(defface eca-heading '((t :inherit bold :height 1.1)) "Headings." :group 'eca)
(defface eca-code '((t :inherit font-lock-constant-face)) "Code inside a sentence." :group 'eca)
(defface eca-code-block '((((background dark)) :background "#262626" :extend t)
                          (t :background "#f2f2f2" :extend t))
  "Blocks of code." :group 'eca)
(defface eca-quote '((t :inherit font-lock-comment-face)) "Quotations." :group 'eca)
(defface eca-link '((t :inherit link)) "Links." :group 'eca)

(defcustom eca-code-modes
  '(("c++" . c++-mode) ("bash" . sh-mode) ("shell" . sh-mode) ("zsh" . sh-mode) ("console" . sh-mode)
    ("elisp" . emacs-lisp-mode) ("js" . js-mode) ("javascript" . js-mode) ("ts" . typescript-mode)
    ("html" . mhtml-mode) ("py" . python-mode) ("rs" . rust-mode) ("yml" . yaml-mode) ("diff" . diff-mode)
    ("patch" . diff-mode))
  "Major modes for the names of languages that do not follow the rule NAME-mode."
  :type '(alist :key-type string :value-type function)
  :group 'eca)

(cl-defstruct eca-run
  "A stretch of Markdown that is still growing."
  line                                  ; marker: beginning of the first unfinished line
  fence)                                ; (MARKER . LANGUAGE): the open fence's first code line

(defun eca-run-begin ()
  "A run that begins at point."
  (make-eca-run :line (copy-marker (point))))

(defun eca-run-extend (run end)
  "Make RUN look like Markdown up to END, where it now ends."
  (save-excursion
    (goto-char (eca-run-line run))
    (while (and (< (line-end-position) end) (< (point) end))
      (eca--markdown-line run (point) (line-end-position))
      (forward-line)
      (set-marker (eca-run-line run) (point)))
    (when (< (point) end)
      (eca--markdown-last-line run (point) end))))

(defun eca--markdown-line (run begin end)
  "Treat the complete line from BEGIN to END of RUN."
  (eca--markdown-reset begin end)
  (let ((fence (eca-run-fence run)))
    (cond
     ((progn (goto-char begin) (looking-at "[ \t]*\\(?:```+\\|~~~+\\)[ \t]*\\([^ \t\n`]*\\)"))
      (let ((language (match-string-no-properties 1)))
        (put-text-property begin end 'face '(eca-code-block shadow))
        (put-text-property end (1+ end) 'face 'eca-code-block)
        (if (not fence)
            (setf (eca-run-fence run) (cons (copy-marker (1+ end)) (downcase language)))
          (eca--highlight (car fence) begin (cdr fence))
          (setf (eca-run-fence run) nil))))
     (fence (put-text-property begin (1+ end) 'face 'eca-code-block))
     (t (eca--markdown-prose begin end)))
    (goto-char begin)))

(defun eca--markdown-last-line (run begin end)
  "Treat the line from BEGIN to END, which may still grow, of RUN."
  (eca--markdown-reset begin end)
  (if (eca-run-fence run)
      (put-text-property begin end 'face 'eca-code-block)
    (eca--markdown-prose begin end)))

(defun eca--markdown-reset (begin end)
  "Take away from BEGIN to END what an earlier, shorter reading put there."
  (remove-list-of-text-properties begin end '(face invisible eca-target help-echo mouse-face display)))

(defun eca--markdown-prose (begin end)
  "Dress the line from BEGIN to END, which is no code."
  (goto-char begin)
  (cond ((looking-at "\\(#+ +\\).*")
         (eca--hide (match-beginning 1) (match-end 1))
         (add-face-text-property (match-end 1) end 'eca-heading))
        ((looking-at "[ \t]*>.*") (add-face-text-property begin end 'eca-quote))
        ((looking-at "[ \t]*\\([-*+]\\) ") (put-text-property (match-beginning 1) (match-end 1) 'display "•"))
        ((looking-at "[ \t]*\\(?:---+\\|\\*\\*\\*+\\)[ \t]*$") (add-face-text-property begin end 'shadow)))
  (eca--dress "\\(`+\\)\\([^`\n]+\\)\\1" begin end 'eca-code)
  (eca--dress "\\(\\*\\*\\|__\\)\\([^ \t\n*_][^\n]*?\\)\\1" begin end 'bold)
  (eca--dress "\\(?:^\\|[^*[:alnum:]]\\)\\(\\*\\)\\([^ \t\n*][^*\n]*\\)\\1" begin end 'italic)
  (eca--dress "\\(~~\\)\\([^\n~]+\\)\\1" begin end '(:strike-through t))
  (goto-char begin)
  (while (re-search-forward "\\(\\[\\)\\([^]\n]+\\)\\(](\\([^) \n]+\\)[^)\n]*)\\)" end t)
    (unless (eca--code-p (match-beginning 0))
      (eca--hide (match-beginning 1) (match-end 1))
      (eca--hide (match-beginning 3) (match-end 3))
      (eca--link (match-beginning 2) (match-end 2) (match-string-no-properties 4))))
  (goto-char begin)
  (while (re-search-forward "\\bhttps?://[^][ \t\n<>()\"'`]*[^][ \t\n<>()\"'`.,;:!?]" end t)
    (unless (or (eca--code-p (match-beginning 0)) (invisible-p (match-beginning 0)))
      (eca--link (match-beginning 0) (match-end 0) (match-string-no-properties 0)))))

(defun eca--code-p (position)
  "Whether there is code at POSITION."
  (let ((face (get-text-property position 'face)))
    (if (listp face) (memq 'eca-code face) (eq face 'eca-code))))

(defun eca--dress (regexp begin end face)
  "Give FACE to group 2 of what REGEXP finds from BEGIN to END.
The marks around it, which are group 1, are hidden."
  (goto-char begin)
  (while (re-search-forward regexp end t)
    (unless (eca--code-p (match-beginning 2))
      (eca--hide (match-beginning 1) (match-end 1))
      (eca--hide (match-end 2) (match-end 0))
      (add-face-text-property (match-beginning 2) (match-end 2) face))))

(defun eca--hide (begin end)
  "Hide the mark from BEGIN to END."
  (put-text-property begin end 'invisible 'eca-mark))

(defun eca--link (begin end target)
  "Make the text from BEGIN to END lead to TARGET."
  (add-face-text-property begin end 'eca-link)
  (add-text-properties begin end (list 'eca-target target 'help-echo target 'mouse-face 'highlight)))

(defun eca-follow-link ()
  "Go where the link at point leads."
  (interactive)
  (let ((target (get-text-property (point) 'eca-target)))
    (cond ((null target) (user-error "There is no link here"))
          ((string-match-p "\\`[a-z]+://" target) (browse-url target))
          ((string-match "\\`\\([^#]+?\\)\\(?:[:#]L?\\([0-9]+\\)\\)?\\'" target)
           (let ((line (match-string 2 target)))
             (find-file-other-window (match-string 1 target))
             (when line
               (goto-char (point-min))
               (forward-line (1- (string-to-number line)))))))))

(defun eca--highlight (begin end language)
  "Colour the code from BEGIN to END as LANGUAGE, if there is a mode for it."
  (let ((mode (or (cdr (assoc language eca-code-modes)) (intern (concat language "-mode")))))
    (when (and (not (string-empty-p language)) (fboundp mode) (< (- end begin) 100000))
      (let ((code (buffer-substring-no-properties begin end))
            (faces nil))
        (with-temp-buffer
          (insert code)
          (when (ignore-errors (let ((inhibit-message t)) (delay-mode-hooks (funcall mode))) t)
            (ignore-errors (font-lock-ensure))
            (goto-char (point-min))
            (while (not (eobp))
              (let ((next (or (next-single-property-change (point) 'face) (point-max)))
                    (face (get-text-property (point) 'face)))
                (when face (push (list (1- (point)) (1- next) face) faces))
                (goto-char next)))))
        (pcase-dolist (`(,from ,to ,face) faces)
          (add-face-text-property (+ begin from) (+ begin to) face))))))

(provide 'eca-markdown)
;;; eca-markdown.el ends here
