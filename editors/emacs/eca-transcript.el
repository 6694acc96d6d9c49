;;; eca-transcript.el --- A growing text above an input  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; The buffer of a chat has a transcript, which only this package writes, a line, and below it the
;; input, which belongs to the user.  `eca--tail' is the end of the transcript, `eca--input' the
;; beginning of the input.
;;
;; Most of the transcript only grows.  What changes later or can be folded, such as a tool call, is a
;; block: a heading, and a body that is in the buffer only while the block is open.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'eca-markdown)

(defface eca-user '((t :inherit bold)) "What you said." :group 'eca)
(defface eca-user-bar '((t :inherit success)) "The bar beside what you said." :group 'eca)
(defface eca-note '((t :inherit shadow)) "What the server or Emacs remarks." :group 'eca)
(defface eca-separator '((((supports :underline t)) :inherit shadow :underline t :extend t)
                         (t :inherit shadow :extend t))
  "The line above the input." :group 'eca)
(defface eca-prompt '((t :inherit minibuffer-prompt)) "The sign before the input." :group 'eca)
(defface eca-block-heading '((t :inherit font-lock-function-name-face)) "Headings of blocks." :group 'eca)
(defface eca-block-body '((t :inherit default)) "Bodies of blocks." :group 'eca)

(defvar-local eca--tail nil "Marker: the end of the transcript.")
(defvar-local eca--input nil "Marker: the beginning of the input.")
(defvar-local eca--footer nil "Overlay that shows contexts and progress above the input.")
(defvar-local eca--blocks nil "Hash table: key of a block -> the block.")
(defvar-local eca--run nil "The Markdown at the end of the transcript, if it may still grow.")
(defvar-local eca--run-role nil "Who speaks in `eca--run'.")

(defvar eca-transcript-map (make-sparse-keymap) "Keys that hold in the transcript but not in the input.")

(cl-defstruct eca-block
  "A part of the transcript that is drawn again when it changes."
  key kind data start end open
  touched)                              ; whether the user folded or unfolded it

(cl-defgeneric eca-block-title (kind block)
  "The heading of BLOCK, which is of KIND.")

(cl-defgeneric eca-block-text (kind block)
  "The body of BLOCK, which is of KIND; nil if there is none.")

(defun eca-block-get (block key)
  "What BLOCK holds under KEY."
  (plist-get (eca-block-data block) key))

(defun eca-block-put (block &rest pairs)
  "Have BLOCK hold PAIRS of key and value."
  (cl-loop for (key value) on pairs by #'cddr
           do (setf (eca-block-data block) (plist-put (eca-block-data block) key value))))

;;; Writing

(defmacro eca--writing (&rest body)
  "Change the transcript in BODY without undo and without moving point.
The input keeps an undo of its own."
  (declare (indent 0) (debug t))
  `(let ((inhibit-read-only t)
         (deactivate-mark nil)
         (size (buffer-size)))
     (let ((buffer-undo-list t))
       (save-excursion ,@body))
     (eca--shift-undo (- (buffer-size) size))
     (restore-buffer-modified-p nil)))

(defun eca--shift-undo (distance)
  "The input moved by DISTANCE: let the user's undo find it."
  (unless (or (eq buffer-undo-list t) (zerop distance))
    (setq buffer-undo-list
          (mapcar (lambda (entry)
                    (pcase entry
                      ((pred integerp) (+ entry distance))
                      (`(,(and from (pred integerp)) . ,(and to (pred integerp)))
                       (cons (+ from distance) (+ to distance)))
                      (`(,(and text (pred stringp)) . ,(and place (pred integerp)))
                       (cons text (if (< place 0) (- place distance) (+ place distance))))
                      (`(nil ,property ,value ,from . ,to)
                       `(nil ,property ,value ,(+ from distance) . ,(+ to distance)))
                      (_ entry)))
                  buffer-undo-list))))

(defun eca--own (begin end &rest properties)
  "Make the text from BEGIN to END part of the transcript, with PROPERTIES."
  (add-text-properties begin end `(read-only t front-sticky (read-only) keymap ,eca-transcript-map ,@properties)))

(defun eca--put (text &rest properties)
  "Add TEXT with PROPERTIES to the transcript; return where it begins."
  (goto-char eca--tail)
  (let ((begin (point)))
    (insert text)
    (apply #'eca--own begin (point) properties)
    begin))

(defun eca--space (lines)
  "End the last line of the transcript and have LINES - 1 blank lines after it."
  (when (> eca--tail (point-min))
    (goto-char eca--tail)
    (let ((there (- (point) (save-excursion (skip-chars-backward "\n") (point)))))
      (when (< there lines)
        (eca--put (make-string (- lines there) ?\n))))))

(defun eca--end-run ()
  "Whatever comes next is not part of the last text."
  (setq eca--run nil eca--run-role nil))

(defun eca--quote (text &rest properties)
  "Add TEXT with PROPERTIES to the transcript, letter by letter as it is."
  (eca--end-run)
  (eca--writing
    (eca--space 2)
    (apply #'eca--put text properties)))

(defun eca--say (role text &rest properties)
  "Let ROLE say TEXT, as Markdown with PROPERTIES, after what ROLE said so far."
  (eca--writing
    (unless (and eca--run (eq role eca--run-role))
      (setq text (string-trim-left text "\n+"))
      (unless (string-empty-p text)
        (eca--space 2)
        (goto-char eca--tail)
        (setq eca--run (eca-run-begin) eca--run-role role)))
    (unless (string-empty-p text)
      (apply #'eca--put text properties)
      (eca-run-extend eca--run (marker-position eca--tail)))))

(defun eca--bar (face)
  "Properties that draw a bar of FACE beside a text."
  (let ((bar (propertize "▌ " 'face face)))
    (list 'line-prefix bar 'wrap-prefix bar)))

(defun eca--note (text)
  "Add TEXT to the transcript, as a remark of its own."
  (eca--end-run)
  (apply #'eca--say 'note text (eca--bar 'eca-note))
  (eca--end-run))

;;; Blocks

(defun eca--fold-sign (block)
  "What stands before the heading of BLOCK."
  (propertize (if (eca-block-open block) "▾ " "▸ ") 'face 'shadow))

(defun eca--draw-block (block)
  "Insert BLOCK at point."
  (let ((begin (point))
        (body (and (eca-block-open block) (eca-block-text (eca-block-kind block) block))))
    (insert (eca--fold-sign block) (eca-block-title (eca-block-kind block) block))
    (when (and body (not (string-empty-p body)))
      (let ((start (point)))
        (insert "\n" (string-trim-right body))
        (add-text-properties (1+ start) (point) '(line-prefix "    " wrap-prefix "    "))))
    (eca--own begin (point) 'eca-block block 'mouse-face nil)))

(defun eca--add-block (key kind &rest data)
  "Add a block of KIND with DATA to the transcript, known by KEY."
  (eca--end-run)
  (let ((block (make-eca-block :key key :kind kind :data data)))
    (puthash key block eca--blocks)
    (eca--writing
      (goto-char eca--tail)
      (eca--space (if (get-text-property (max (point-min) (- (point) 2)) 'eca-block) 1 2))
      (goto-char eca--tail)
      (let ((begin (point)))
        (eca--draw-block block)
        (setf (eca-block-start block) (copy-marker begin)
              (eca-block-end block) (copy-marker (point))))
      (eca--put "\n"))
    block))

(defun eca--find-block (key)
  "The block known by KEY, or nil."
  (and key (gethash key eca--blocks)))

(defun eca--redraw-block (block)
  "Draw BLOCK again.  Points inside it stay as near as they can to where they were."
  (let* ((start (marker-position (eca-block-start block)))
         (end (marker-position (eca-block-end block)))
         (inside (lambda (place) (and (> place start) (<= place end) (- place start))))
         (point (funcall inside (point)))
         (windows (cl-loop for window in (get-buffer-window-list nil nil t)
                           for offset = (funcall inside (window-point window))
                           when offset collect (cons window offset))))
    (eca--writing
      (goto-char start)
      (eca--draw-block block)
      (delete-region (point) (eca-block-end block))
      (set-marker (eca-block-end block) (point)))
    (let ((size (- (eca-block-end block) start)))
      (when point (goto-char (+ start (min point size))))
      (pcase-dolist (`(,window . ,offset) windows)
        (set-window-point window (+ start (min offset size)))))))

(defun eca--grow-block (block text)
  "Add TEXT to the end of the open BLOCK's body."
  (eca--writing
    (goto-char (eca-block-end block))
    (let ((begin (point)))
      (insert text)
      (eca--own begin (point) 'eca-block block 'face 'eca-note 'line-prefix "    " 'wrap-prefix "    ")
      (set-marker (eca-block-end block) (point)))))

(defun eca--block-here ()
  "The block at point or at the beginning of its line, or nil."
  (or (get-text-property (point) 'eca-block)
      (get-text-property (line-beginning-position) 'eca-block)))

(defun eca-toggle-block ()
  "Open or fold the block at point."
  (interactive)
  (let ((block (eca--block-here)))
    (unless block (user-error "There is nothing to unfold here"))
    (setf (eca-block-open block) (not (eca-block-open block))
          (eca-block-touched block) t)
    (eca--redraw-block block)
    (goto-char (eca-block-start block))))

(defun eca--set-open (block open)
  "Open BLOCK if OPEN and else fold it, then draw it.
What the user folded or unfolded stays so."
  (unless (eca-block-touched block)
    (setf (eca-block-open block) open))
  (eca--redraw-block block))

;;; The frame around it

(defun eca--make-transcript ()
  "Make the current buffer an empty transcript with an input below."
  (let ((inhibit-read-only t))
    (erase-buffer)
    ;; The overlay needs a line break of its own: what it shows takes over the look of what is below.
    (insert "\n" (propertize "\n" 'face 'eca-separator) (propertize "> " 'face 'eca-prompt))
    (add-text-properties (point-min) (point)
                         '(read-only t front-sticky (read-only) rear-nonsticky t field eca-frame))
    (setq eca--tail (copy-marker (point-min) t)
          eca--input (copy-marker (point))
          eca--blocks (make-hash-table :test #'equal)
          eca--footer (make-overlay (point-min) (1+ (point-min)) nil t nil))
    (setq buffer-undo-list nil)
    (goto-char (point-max))))

(defun eca--clear-transcript ()
  "Empty the transcript and leave the input alone."
  (eca--end-run)
  (clrhash eca--blocks)
  (eca--writing (delete-region (point-min) eca--tail)))

(defun eca--set-footer (text)
  "Show TEXT between transcript and input."
  (unless (equal text (overlay-get eca--footer 'before-string))
    (overlay-put eca--footer 'before-string text)))

(defun eca--input-text ()
  "What is in the input."
  (buffer-substring-no-properties eca--input (point-max)))

(defun eca--set-input (text)
  "Put TEXT into the input, in place of what is there."
  (delete-region eca--input (point-max))
  (goto-char (point-max))
  (insert text))

(provide 'eca-transcript)
;;; eca-transcript.el ends here
