;;; terminal-test.el --- The Emacs client as a user sees it  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; An Emacs in a real terminal, which tmux provides: keys go in, the screen is read.

;;; Code:

(load (expand-file-name "support" (file-name-directory (or load-file-name buffer-file-name))) nil t)

(defvar terminal-socket nil "The name of the tmux server of the test that runs.")

(defun terminal-tmux (&rest arguments)
  "Call tmux with ARGUMENTS and return what it prints."
  (with-temp-buffer
    (let ((status (apply #'call-process "tmux" nil t nil "-L" terminal-socket "-f" "/dev/null" arguments)))
      (unless (equal status 0) (error "tmux %S: %s" arguments (buffer-string)))
      (buffer-string))))

(defun terminal-screen ()
  "What is on the screen."
  (terminal-tmux "capture-pane" "-p" "-t" "emacs"))

(defun terminal-keys (&rest keys)
  "Press KEYS: names as tmux knows them, or (TEXT) to type."
  (dolist (key keys)
    (if (consp key) (terminal-tmux "send-keys" "-t" "emacs" "-l" "--" (car key))
      (terminal-tmux "send-keys" "-t" "emacs" key))))

(defun terminal-sees (&rest texts)
  "Wait until all TEXTS are on the screen."
  (let ((deadline (+ (float-time) support-hang-guard)))
    (while (not (cl-every (lambda (text) (string-search text (terminal-screen))) texts))
      (when (> (float-time) deadline)
        (ert-fail (format "hang guard: %S is not on the screen:\n%s" texts (terminal-screen))))
      (accept-process-output nil 0.1))))

(defun terminal-count (regexp)
  "How many lines of the screen match REGEXP."
  (cl-count-if (lambda (line) (string-match-p regexp line)) (split-string (terminal-screen) "\n")))

(defun terminal-cursor-at (text)
  "Wait until the cursor stands behind TEXT at the beginning of a line."
  (support-until (format "cursor behind %S" text)
    (pcase-let ((`(,column ,row) (mapcar #'string-to-number
                                         (split-string (terminal-tmux "display-message" "-p" "-t" "emacs"
                                                                      "#{cursor_x} #{cursor_y}")))))
      (and (= column (length text))
           (string-prefix-p text (nth row (split-string (terminal-screen) "\n")))))))

(defun terminal-loses (text)
  "Wait until TEXT is no longer on the screen."
  (let ((deadline (+ (float-time) support-hang-guard)))
    (while (string-search text (terminal-screen))
      (when (> (float-time) deadline)
        (ert-fail (format "hang guard: %S stays on the screen:\n%s" text (terminal-screen))))
      (accept-process-output nil 0.1))))

(defmacro terminal-test (name documentation &rest body)
  "Define the test NAME with DOCUMENTATION: BODY has an Emacs on a screen, with its chat open."
  (declare (indent 1) (doc-string 2))
  `(ert-deftest ,name ()
     ,documentation
     (let* ((support-project (support-make-project))
            (terminal-socket (format "eca-test-%s-%s" (emacs-pid) ',name))
            (process-environment (append '("TERM=screen-256color" "LANG=C.UTF-8")
                                         (support-environment support-project))))
       (unwind-protect
           (progn (terminal-begin) ,@body)
         (ignore-errors (terminal-tmux "kill-server"))
         (ignore-errors (delete-directory support-project t))))))

(defun terminal-begin ()
  "Start an Emacs on a screen and open the chat."
  (let ((init (expand-file-name "init.el" support-project)))
    (with-temp-file init
      (prin1 `(progn (add-to-list 'load-path ,support-client)
                     (require 'eca)
                     (setq eca-command ',(support-command support-project)
                           ring-bell-function #'ignore)
                     (global-set-key (kbd "C-c e") eca-command-map))
             (current-buffer)))
    (terminal-tmux "new-session" "-d" "-s" "emacs" "-x" "120" "-y" "36"
                   (format "emacs -nw -Q -l %s %s" (shell-quote-argument init)
                           (shell-quote-argument (support-file "a.txt"))))
    (terminal-sees "three" "a.txt")
    (terminal-keys "C-c" "e" "e")
    (terminal-sees "Ask anything about your code" "mock/scripted" "ECA[")))

(defun terminal-edit (old new)
  "A step of the scripted model: change OLD to NEW in a.txt."
  (format "call eca__edit_file %s"
          (json-serialize (list :path (support-file "a.txt") :original_content old :new_content new))))

(terminal-test terminal-prompt-and-stop
  "A prompt is answered on the screen, reasoning folds, and C-c C-k stops."
  (terminal-keys '("think so deep") "C-j" '("+ say Hello **bold** world") "Enter")
  (terminal-sees "Hello bold world" "▸ Thought" "▌ think so deep")
  (terminal-keys "C-r" '("Thought") "Enter" "Tab")
  (terminal-sees "▾ Thought" "    so deep")
  (terminal-keys "Tab")
  (terminal-loses "▾ Thought")
  ;; Typing goes to the input wherever the cursor is.
  (terminal-keys '("words 3000 20") "Enter")
  (terminal-sees "word5 " "C-c C-k stops")
  (terminal-keys "C-c" "C-k")
  (terminal-sees "Stopped.")
  (terminal-loses "C-c C-k stops"))

(terminal-test terminal-approve-an-edit
  "A change is shown as a diff, in the chat and in diff-mode, and made after C-c C-y."
  (terminal-keys (list (terminal-edit "two" "TWO")) "C-j" '("say all done") "Enter")
  (terminal-sees "needs your consent" "-two" "+TWO" "[y] approve" "ECA asks: Editing a.txt")
  (should (equal (support-contents "a.txt") "one\ntwo\nthree\n"))
  (terminal-keys "C-c" "C-d")
  (terminal-sees "+++ " "*eca diff: a.txt*" "C-c C-y approve")
  (terminal-keys "C-c" "C-y")
  (terminal-sees "✓ Editing a.txt +1 -1" "all done")
  (should (equal (support-contents "a.txt") "one\nTWO\nthree\n"))
  (terminal-sees "TWO"))

(terminal-test terminal-decide-from-the-file
  "From the file beside the chat, C-c e d shows the change and C-c e y lets it happen."
  (terminal-keys (list (terminal-edit "two" "TWO")) "C-j" '("say all done") "Enter")
  (terminal-sees "needs your consent")
  (terminal-keys "C-x" "o" "C-c" "e" "d")
  (terminal-sees "*eca diff: a.txt*" "+++ ")
  (terminal-keys "q" "C-c" "e" "y")
  (terminal-sees "✓ Editing a.txt +1 -1" "all done" "ECA: approved: Editing a.txt")
  (should (equal (support-contents "a.txt") "one\nTWO\nthree\n")))

(terminal-test terminal-steer
  "A message during an answer is announced until the model sees it, and can be taken back."
  (terminal-keys '("words 3000 20") "Enter")
  (terminal-sees "word5 ")
  (terminal-keys '("say later") "Enter")
  (terminal-sees "still working")
  (terminal-keys "s")
  (terminal-sees "Not seen yet: say later  (C-c C-u takes it back)")
  (terminal-keys "C-c" "C-u")
  (terminal-sees "> say later")
  (terminal-loses "Not seen yet"))

(terminal-test terminal-reject-on-the-block
  "On the call itself, n rejects."
  (terminal-keys (list (terminal-edit "two" "TWO")) "C-j" '("say as you wish") "Enter")
  (terminal-sees "[n] reject")
  (terminal-keys "C-r" '("needs your") "Enter" "n")
  (terminal-sees "rejected by you" "as you wish")
  (should (equal (support-contents "a.txt") "one\ntwo\nthree\n")))

(terminal-test terminal-completes
  "TAB completes contexts and commands; the region goes along."
  (terminal-keys '("about @main") "Tab")
  (terminal-sees "@src/main.el")
  (terminal-keys "C-a" "C-k" '("/compa") "Tab")
  (terminal-sees "> /compact")
  (terminal-keys "C-a" "C-k" "C-x" "o" "M-<" "C-Space" "C-n" "C-n" "C-c" "e" "c")
  (terminal-sees "@a.txt:1-2")
  (terminal-keys '("say got it") "Enter")
  (terminal-sees "got it" "▌ say got it"))

(terminal-test terminal-question
  "A question opens the minibuffer, with completion, and the answer is shown."
  (terminal-keys '("call eca__ask_user {\"question\":\"Which colour?\",\"options\":[{\"label\":\"red\"},{\"label\":\"blue\"}]}")
                 "C-j" '("say a fine choice") "Enter")
  (terminal-sees "▾ ? Which colour?" "[red]" "[blue]" "\nWhich colour?")
  (should (= (terminal-count "[▸▾] .*Which colour") 1))
  (terminal-keys '("bl") "Tab" "Enter")
  (terminal-sees "▸ ✓ Which colour? → blue" "a fine choice")
  (should (= (terminal-count "[▸▾] ") 1))
  (terminal-loses "[red]"))

(defun terminal-open (name &rest lines)
  "Make the file NAME of LINES and go to its end."
  (with-temp-file (support-file name) (insert (string-join lines "\n")))
  (terminal-keys "C-x" "o" "C-x" "C-f" (list name) "Enter")
  (terminal-sees name (car lines))
  (terminal-keys "M->")
  (terminal-cursor-at (car (last lines))))

(terminal-test terminal-suggestion
  "A suggestion is a ghost behind the cursor; its keys hold while it is there, and TAB is TAB without it."
  (terminal-open "b.el" "say world of\\n(wonders)" "(progn" "hello")
  (terminal-keys "Tab")
  (terminal-cursor-at "  hello")
  (terminal-keys "C-c" "e" "s")
  (terminal-sees "  helloworld of " "\n(wonders) ")
  (terminal-cursor-at "  hello")
  ;; Anything else takes it away, and is done.
  (terminal-keys '("!"))
  (terminal-sees "  hello! ")
  (terminal-loses "\n(wonders)")
  (terminal-keys "C-c" "e" "s")
  (terminal-sees "  hello!world of " "\n(wonders) ")
  (terminal-keys "C-g")
  (terminal-loses "\n(wonders)")
  (terminal-keys "C-c" "e" "s")
  (terminal-sees "\n(wonders) ")
  (terminal-keys "M-f")
  (terminal-cursor-at "  hello!world")
  (terminal-keys "C-e")
  (terminal-cursor-at "  hello!world of")
  (terminal-sees "\n(wonders) ")
  (terminal-keys "Tab")
  (terminal-cursor-at "(wonders)")
  ;; And once more it indents.
  (terminal-keys "Tab")
  (terminal-cursor-at "  (wonders)")
  (terminal-keys "C-x" "C-s")
  (support-until "the file" (equal (support-contents "b.el")
                                   "say world of\\n(wonders)\n(progn\n  hello!world of\n  (wonders)\n")))

(terminal-test terminal-suggestion-while-typing
  "With the mode on, a suggestion comes when the user rests; not one for what was there before."
  (terminal-open "b.txt" "words 3 400" "hello")
  (terminal-keys "M-x" '("global-eca-suggest-mode") "Enter")
  (terminal-sees "Text Suggest")
  (terminal-keys '(" my"))
  (terminal-sees "hello myword0 word1 word2")
  (terminal-cursor-at "hello my")
  ;; Typed on before the answer came: that answer is about another text.
  (terminal-keys '(" dear") "C-c" "e" "s")
  (terminal-sees "asking for a suggestion")
  (terminal-keys '("est"))
  (terminal-sees "hello my dearestword0 word1 word2")
  (terminal-keys "C-g")
  (terminal-loses "word2")
  (terminal-keys "C-c" "e" "s")
  (terminal-sees "asking for a suggestion")
  (terminal-keys "C-g")
  (terminal-sees "Quit")
  (terminal-keys "M-:" '("(list eca--suggest-request eca--suggestion eca--suggest-timer)") "Enter")
  (terminal-sees "(nil nil nil)"))

(terminal-test terminal-suggestion-and-other-completion
  "No suggestion is put beside the candidates of another completion, nor into a chat."
  (terminal-open "b.el" "words 3 400" "(eca-chat-r")
  (terminal-keys "C-c" "e" "s" "Escape" "Tab")
  (terminal-sees "Possible completions" "eca-chat-rollback" "something else is being completed")
  (terminal-keys '(" x") "C-c" "e" "s")
  (terminal-sees "(eca-chat-r xword0 word1 word2")
  (terminal-keys "C-c" "e" "e" "C-c" "e" "s")
  (terminal-sees "Suggestions are for files"))

(terminal-test terminal-crash
  "A server that is killed is named, started again, and used."
  (terminal-keys '("say before") "Enter")
  (terminal-sees "|before" "ECA[idle]")
  (terminal-keys '("my draft") "M-:"
                 '("(signal-process (jsonrpc--process (eca-session-transport eca--session)) 'KILL)") "Enter")
  (terminal-sees "The server ended unexpectedly (signal 9)" "> my draft")
  (terminal-keys "C-a" "C-k" '("say and after") "Enter")
  (terminal-sees "|and after" "▌ say and after" "ECA[idle]"))

(support-report)
;;; terminal-test.el ends here
