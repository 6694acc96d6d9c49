;;; client-test.el --- The Emacs client with a real server  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; The client of editors/emacs, a real server and a scripted model, without a terminal.  What needs
;; keys and a screen is in terminal-test.el.

;;; Code:

(load (expand-file-name "support" (file-name-directory (or load-file-name buffer-file-name))) nil t)
(require 'bytecomp)
(require 'checkdoc)
(require 'eca)

(defmacro client-test (name documentation &rest body)
  "Define the test NAME with DOCUMENTATION: BODY runs in a new chat of a new project."
  (declare (indent 1) (doc-string 2))
  `(ert-deftest ,name ()
     ,documentation
     (let* ((support-project (support-make-project))
            (process-environment (support-environment support-project))
            (eca-command (support-command support-project))
            (default-directory (support-file ""))
            (inhibit-message t)
            (eca--sessions nil))
       (unwind-protect
           (with-current-buffer (eca--current-chat) ,@body)
         (mapc #'eca--stop eca--sessions)
         (dolist (session eca--sessions)
           (mapc #'kill-buffer (eca--chat-buffers session)))
         (dolist (buffer (buffer-list))
           (when (and (buffer-file-name buffer) (string-prefix-p support-project (buffer-file-name buffer)))
             (with-current-buffer buffer (set-buffer-modified-p nil))
             (kill-buffer buffer)))
         (delete-directory support-project t)))))

(defun client-ask (&rest lines)
  "Write LINES into the input and send them."
  (eca--set-input (string-join lines "\n"))
  (eca-chat-send))

(defun client-finish ()
  "Wait until the server has ended its work in this chat."
  (support-until "end of the turn" (not eca--busy)))

(defun client-transcript ()
  "What is above the input."
  (buffer-substring-no-properties (point-min) eca--tail))

(defun client-shows (text)
  "Whether the transcript shows TEXT."
  (string-search text (client-transcript)))

(defun client-blocks (text)
  "How many blocks have TEXT in their heading."
  (cl-count-if (lambda (line) (and (string-match-p "\\`[▸▾] " line) (string-search text line)))
               (split-string (client-transcript) "\n")))

(defun client-pending ()
  "Wait for a call that needs consent and return its block."
  (support-until "a call that waits" (car (eca--pending-calls))))

(defun client-call (tool &rest arguments)
  "A step of the scripted model: call TOOL with ARGUMENTS, a plist."
  (format "call eca__%s %s" tool (json-serialize arguments)))

(defun client-edit (old new)
  "A step of the scripted model: change OLD to NEW in a.txt."
  (client-call "edit_file" :path (support-file "a.txt") :original_content old :new_content new))

(defun client-faces (text)
  "The faces of the last TEXT in the transcript."
  (save-excursion
    (goto-char eca--tail)
    (search-backward text)
    (let ((face (get-text-property (match-beginning 0) 'face)))
      (if (listp face) face (list face)))))

(defun client-mode-lines ()
  "What the mode lines of this chat and of a file of its project say."
  (list (substring-no-properties (eca--chat-mode-line))
        (with-temp-buffer
          (setq default-directory (support-file ""))
          (substring-no-properties (eca-mode-line)))))

;;; The package

(ert-deftest client-compiles-without-warnings ()
  "Every file of the client is compiled, and no warning is given."
  (let ((byte-compile-error-on-warn t)
        (byte-compile-dest-file-function (lambda (_) (make-temp-file "eca-" nil ".elc"))))
    (dolist (file (directory-files support-client t "\\.el\\'"))
      (should (byte-compile-file file)))))

(ert-deftest client-documents-itself ()
  "Checkdoc has nothing to say about any file of the client."
  (dolist (file (directory-files support-client t "\\.el\\'"))
    (let* ((complaints nil)
           ;; It takes every verb of a sentence for the command's own.
           (checkdoc-verb-check-experimental-flag nil)
           (checkdoc-create-error-function (lambda (text &rest _) (push text complaints) nil)))
      (with-temp-buffer
        (insert-file-contents file)
        (setq buffer-file-name file)
        (emacs-lisp-mode)
        (checkdoc-current-buffer t)
        (set-buffer-modified-p nil)
        (setq buffer-file-name nil))
      (should (equal (cons file complaints) (list file))))))

;;; Chat

(client-test client-tells-the-keys
  "A chat in which nothing was said tells how to use it, and stops doing so."
  (support-until "greeting" (client-shows "Ask anything"))
  (should (string-search "sends" (overlay-get eca--footer 'before-string)))
  (client-ask "say hello")
  (client-finish)
  (should-not (overlay-get eca--footer 'before-string))
  (support-until "idle" (equal (client-mode-lines) '("[idle]" " ECA[idle]"))))

(client-test client-streams-markdown
  "An answer comes piece by piece, is dressed as Markdown, and stays Markdown when copied."
  (client-ask "say # Head\\n\\nSome **bold** words, `code` and [a link](https://example.org).\\n\\n```elisp\\n(defun f ())\\n```\\nEnd")
  (client-finish)
  (should (client-shows "Some **bold** words, `code` and [a link](https://example.org)."))
  (should (memq 'eca-heading (client-faces "Head")))
  (should (memq 'bold (client-faces "bold")))
  (should (memq 'eca-code (client-faces "code")))
  (should (memq 'font-lock-keyword-face (client-faces "defun")))
  (save-excursion
    (goto-char eca--tail)
    (search-backward "a link")
    (should (equal (get-text-property (match-beginning 0) 'eca-target) "https://example.org"))
    (search-backward "**")
    (should (invisible-p (match-beginning 0))))
  (should (string-empty-p (eca--input-text)))
  (should (memq 'eca-user (client-faces "say # Head"))))

(client-test client-counts-every-word
  "Nothing of a long answer is lost or doubled."
  (client-ask "words 500")
  (client-finish)
  (should (client-shows (concat (mapconcat (lambda (number) (format "word%d" number)) (number-sequence 0 499) " ")))))

(client-test client-folds-reasoning
  "Reasoning is one line until it is unfolded."
  (client-ask "think deep thoughts" "+ say shallow words")
  (client-finish)
  (should (client-shows "▸ Thought"))
  (should-not (string-search "\ndeep thoughts" (client-transcript)))
  (goto-char (point-min))
  (search-forward "▸ Thought")
  (eca-toggle-block)
  (should (client-shows "▾ Thought\ndeep thoughts"))
  (eca-toggle-block)
  (should-not (client-shows "▾ Thought")))

(client-test client-shows-failures-of-the-model
  "What a provider refuses is told in the chat, and the chat can go on."
  (client-ask "fail 401 no such key")
  (client-finish)
  (should (client-shows "no such key"))
  (client-ask "say better now")
  (client-finish)
  (should (client-shows "better now")))

(client-test client-keeps-the-input-while-text-streams
  "What the user types meanwhile stays, with its undo."
  (buffer-enable-undo)
  (client-ask "words 200 2")
  (support-until "first words" (client-shows "word3"))
  (goto-char (point-max))
  (insert "a draft")
  (undo-boundary)
  (insert " and more")
  (client-finish)
  (should (equal (eca--input-text) "a draft and more"))
  (undo-boundary)
  (let ((last-command nil)) (undo))
  (should (equal (eca--input-text) "a draft"))
  (should (client-shows "word199")))

(client-test client-sends-what-json-cannot-say
  "Raw bytes in the input become replacement characters instead of an error."
  (client-ask (concat "say odd " (string (unibyte-char-to-multibyte 200))))
  (client-finish)
  (should (client-shows "odd �")))

;;; Tools

(client-test client-approves-an-edit
  "A change waits, shows its diff, and happens after consent; an open buffer follows."
  (let ((file (find-file-noselect (support-file "a.txt"))))
    (client-ask (client-edit "two" "TWO") "say changed")
    (let ((block (client-pending)))
      (should (eca-block-open block))
      (should (client-shows "-two\n+TWO"))
      (should (memq 'diff-added (client-faces "+TWO")))
      (should (equal (support-contents "a.txt") "one\ntwo\nthree\n"))
      (should (equal (client-mode-lines) '("[needs you]" " ECA[needs you]")))
      (save-window-excursion
        (eca-show-diff)
        (should (derived-mode-p 'diff-mode))
        (should (string-search "+++ " (buffer-string)))
        (should (string-search "+TWO" (buffer-string)))
        (eca-approve)))
    (client-finish)
    (should (equal (support-contents "a.txt") "one\nTWO\nthree\n"))
    (should (client-shows "✓ Editing a.txt +1 -1"))
    (should (client-shows "changed"))
    (should (equal (with-current-buffer file (buffer-string)) "one\nTWO\nthree\n"))))

(client-test client-decides-from-anywhere
  "Outside of the chat the call that waits is shown first, then decided about, and what was decided is said."
  (let ((chat (current-buffer)) (said nil))
    (client-ask (client-edit "two" "TWO") "say changed")
    (client-pending)
    (save-window-excursion
      (delete-other-windows)
      (switch-to-buffer (find-file-noselect (support-file "a.txt")))
      (should-error (eca-approve) :type 'user-error)
      (should (get-buffer-window chat))
      (should (looking-at ".*needs your consent"))
      (should (equal (support-contents "a.txt") "one\ntwo\nthree\n"))
      (select-window (get-buffer-window (find-buffer-visiting (support-file "a.txt"))))
      (save-window-excursion
        (eca-show-diff)
        (should (string-search "+TWO" (buffer-string))))
      (with-current-buffer (find-buffer-visiting (support-file "a.txt"))
        (cl-letf (((symbol-function 'message) (lambda (&rest arguments) (push (apply #'format arguments) said))))
          (eca-approve)))
      (should (equal (car said) "ECA: approved: Editing a.txt"))
      (with-current-buffer chat
        (client-finish)
        (should (equal (support-contents "a.txt") "one\nTWO\nthree\n")))
      (should-error (eca-reject) :type 'user-error))))

(client-test client-shows-the-diff-at-once
  "If that is wanted, a change that waits opens its diff beside the chat, and closes it when it is decided."
  (let ((eca-show-diff-at-once t) (chat (current-buffer)))
    (save-window-excursion
      (delete-other-windows)
      (switch-to-buffer chat)
      (client-ask (client-edit "two" "TWO") "say changed")
      (client-pending)
      (support-until "the diff" (get-buffer-window "*eca diff: a.txt*"))
      (should (eq (window-buffer) chat))
      (eca-approve)
      (should-not (get-buffer-window "*eca diff: a.txt*"))
      (client-finish))))

(client-test client-rejects-an-edit
  "After a rejection nothing happens to the file, and the model is told."
  (client-ask (client-edit "two" "TWO") "say understood")
  (client-pending)
  (eca-reject)
  (client-finish)
  (should (equal (support-contents "a.txt") "one\ntwo\nthree\n"))
  (should (client-shows "rejected by you"))
  (should (client-shows "understood"))
  (should-error (eca-approve) :type 'user-error))

(client-test client-approves-always
  "The second call of the same tool is not asked about."
  (client-ask (client-edit "two" "TWO") (client-edit "three" "THREE") "say both")
  (client-pending)
  (eca-approve-always)
  (client-finish)
  (should (equal (support-contents "a.txt") "one\nTWO\nTHREE\n"))
  (should (client-shows "both")))

(client-test client-shows-other-tools
  "A call that needs no consent is one line, with arguments and output when it is unfolded."
  (client-ask (client-call "read_file" :path (support-file "a.txt")) "say read")
  (client-finish)
  (should-not (client-shows "path: "))
  (goto-char (point-min))
  (search-forward "✓")
  (eca-toggle-block)
  (should (client-shows (concat "path: " (support-file "a.txt"))))
  (should (client-shows "three")))

(client-test client-shows-tasks
  "A task list says how far it is, and lists its tasks once."
  (client-ask (client-call "task" :op "plan" :tasks [(:subject "Read it" :description "all") (:subject "Mend it" :description "well")])
              (client-call "task" :op "start" :ids [1] :active_summary "Reading")
              "say planned")
  (client-finish)
  (should (client-shows "Tasks 0/2\n"))
  (should (client-shows "Tasks 0/2: Reading"))
  (goto-char (point-min))
  (search-forward "Tasks 0/2: Reading")
  (eca-toggle-block)
  (should (client-shows "[>] Read it\n[ ] Mend it\n\nplanned")))

(client-test client-stops-an-answer
  "A stop ends the turn, and the chat goes on."
  (client-ask "words 10000 10")
  (support-until "first words" (client-shows "word1 "))
  (eca-chat-stop)
  (client-finish)
  (should (client-shows "Stopped."))
  (should-not (client-shows "word9999"))
  (should-error (eca-chat-stop) :type 'user-error)
  (client-ask "say once more")
  (client-finish)
  (should (client-shows "once more")))

(defun client-steer (message)
  "Send MESSAGE into the running turn."
  (eca--set-input message)
  (cl-letf (((symbol-function 'read-multiple-choice) (lambda (&rest _) '(?s "steer")))) (eca-chat-send)))

(client-test client-steers-a-turn
  "A message into the running turn reaches the model with the next step; it is announced until then."
  (client-ask (client-edit "two" "TWO") "say ignored")
  (client-pending)
  (client-steer "say as you please")
  (should (string-search "Not seen yet: say as you please" (overlay-get eca--footer 'before-string)))
  (should (string-empty-p (eca--input-text)))
  (eca-approve)
  (client-finish)
  (should-not eca--steering)
  (should (client-shows "\nas you please"))
  (should-not (overlay-get eca--footer 'before-string)))

(client-test client-sends-what-came-too-late
  "A message that the turn had no use for becomes the next prompt; contexts and draft stay where they are."
  (client-ask "words 100 5")
  (support-until "first words" (client-shows "word1 "))
  (client-steer "say in time after all")
  (push '(:type "text" :label "mine" :content "not yet") eca--contexts)
  (insert "my draft")
  (goto-char (- (point-max) 2))
  (support-until "the answer" (client-shows "\nin time after all"))
  (client-finish)
  (should-not eca--steering)
  (should (equal (eca--input-text) "my draft"))
  (should (= (point) (- (point-max) 2)))
  (should (= (length eca--contexts) 1))
  (should-not (string-search "not yet" (format "%S" (support-last-turn)))))

(client-test client-takes-back-what-was-not-seen
  "What the model has not seen can be taken back, and a stop does so."
  (client-ask "words 10000 10")
  (support-until "first words" (client-shows "word1 "))
  (should-error (eca-chat-take-back) :type 'user-error)
  (client-steer "say one")
  (client-steer "say two")
  (insert "a draft")
  (eca-chat-take-back)
  (should (equal (eca--input-text) "say one\nsay two\na draft"))
  (should-not eca--steering)
  (client-steer "say three")
  (eca-chat-stop)
  (client-finish)
  (should (equal (eca--input-text) "say three"))
  (should-not (client-shows "say three"))
  (client-ask "say four")
  (client-finish)
  (should (client-shows "\nfour"))
  (should-not (client-shows "\none"))
  (should-not (client-shows "\nthree")))

(client-test client-walks-through-messages
  "From one of your messages to the next, and to the input after the last."
  (client-ask "say a")
  (client-finish)
  (client-ask "say b")
  (client-finish)
  (eca-previous-message)
  (should (looking-at "say b"))
  (eca-previous-message)
  (should (looking-at "say a"))
  (should-error (eca-previous-message) :type 'user-error)
  (eca-next-message)
  (should (looking-at "say b"))
  (eca-next-message)
  (should (= (point) (point-max))))

(client-test client-stops-a-call-that-waits
  "A stop closes what waits for consent."
  (client-ask (client-edit "two" "TWO"))
  (client-pending)
  (eca-chat-stop)
  (client-finish)
  (should-not (eca--pending-calls))
  (should (equal (support-contents "a.txt") "one\ntwo\nthree\n")))

(client-test client-answers-questions
  "A question waits in the chat; its answer reaches the model."
  (client-ask (client-call "ask_user" :question "Which?" :options [(:label "red" :description "warm") (:label "blue")])
              "say thanks")
  (support-until "the question" eca--question)
  (should (client-shows "▾ ? Which?\n[red]  warm\n[blue]\nC-c C-q answers\n"))
  (should (= (client-blocks "Which?") 1))
  (goto-char (point-min))
  (search-forward "[blu")
  (eca-chat-return)
  (client-finish)
  (should (client-shows "▸ ✓ Which? → blue\n"))
  (should (= (client-blocks "Which?") 1))
  (should (client-shows "thanks"))
  (let ((last (support-last-turn)))
    (should (seq-some (lambda (message) (and (equal (plist-get message :role) "tool")
                                             (string-search "blue" (format "%s" (plist-get message :content)))))
                      last))))

(defun client-question (&rest more)
  "Let the server ask with MORE parameters; return a function that tells the answer."
  (let ((answer nil))
    (eca--ask-question eca--session (append (list :chatId eca--chat-id :question "Which?" :options [(:label "red")]) more)
                       (lambda (result) (setq answer result)))
    (lambda () answer)))

(client-test client-takes-questions-in-any-order
  "A question that overtakes what is said of its tool call stands once all the same; one of no call does too."
  (cl-flet ((call (type &rest more)
              (eca--hear eca--session "chat/contentReceived"
                         (list :chatId eca--chat-id :role "assistant"
                               :content (append (list :type type :id "c1" :name "ask_user" :server "eca" :summary "Q: Which?"
                                                      :arguments '(:question "Which?")) more)))))
    (let ((answer (client-question :toolCallId "c1")))
      (call "toolCallPrepare" :argumentsText "")
      (call "toolCallRun" :manualApproval :json-false)
      (call "toolCallRunning")
      (should eca--question)
      (should (client-shows "▾ ? Which?\n[red]\nC-c C-q answers"))
      (should-not (funcall answer))
      (eca--settle-question "red")
      (should (equal (funcall answer) '(:answer "red" :cancelled :json-false)))
      (should (client-shows "▸ … Which? → red"))
      (call "toolCalled" :outputs [(:type "text" :text "red")])
      (should (client-shows "▸ ✓ Which? → red"))
      (should (= (client-blocks "Which?") 1)))
    ;; The call has ended: there is nothing to answer.
    (should (equal (funcall (client-question :toolCallId "c1")) '(:answer nil :cancelled t)))
    (should-not eca--question)
    ;; The call ends while it asks.
    (let ((answer (client-question :toolCallId "c2")))
      (should eca--question)
      (eca--hear eca--session "chat/contentReceived"
                 (list :chatId eca--chat-id :role "assistant"
                       :content '(:type "toolCallRejected" :id "c2" :name "ask_user" :server "eca" :reason "user-prompt-stop")))
      (should-not eca--question)
      (should (equal (funcall answer) '(:answer nil :cancelled t)))
      (should (client-shows "▸ ⊘ Which? stopped")))
    (client-question)
    (should (= (client-blocks "Which?") 3))
    (eca--settle-question "green")
    (should (client-shows "▸ ? Which? → green"))))

(client-test client-shows-answers-of-stored-chats
  "In a chat that is opened again, too, a question stands once, with its answer or without."
  (client-ask (client-call "ask_user" :question "Which?" :options ["red" "blue"])
              (client-call "ask_user" :question "And then?") "say fine")
  (support-until "the question" eca--question)
  (eca--settle-question "a colour\nof my own")
  (support-until "the next one" eca--question)
  (eca--settle-question nil)
  (client-finish)
  (cl-flet ((check ()
              (should (client-shows "▸ ✓ Which? → a colour of my own\n▸ ✗ And then? → no answer\n"))
              (goto-char (point-min))
              (search-forward "✓ Which?")
              (eca-toggle-block)
              (should (client-shows "[red]\n[blue]\n→ a colour\nof my own\n"))))
    (check)
    (let ((id eca--chat-id) (session eca--session))
      (kill-buffer)
      (eca-request-wait session "chat/open" (list :chatId id))
      (with-current-buffer (gethash id (eca-session-chats session))
        (support-until "the chat" (client-shows "fine"))
        (check)
        (should-error (eca--answer-here) :type 'user-error)))))

(client-test client-drops-a-question-when-stopped
  "A stop closes the question; the server is not left waiting."
  (client-ask (client-call "ask_user" :question "Which?"))
  (support-until "the question" eca--question)
  (eca-chat-stop)
  (client-finish)
  (should-not eca--question)
  (should (= (client-blocks "Which?") 1))
  (client-ask "say on we go")
  (client-finish)
  (should (client-shows "on we go")))

;;; Contexts and completion

(defun client-completions ()
  "What completion offers at the end of the input."
  (goto-char (point-max))
  (pcase-let ((`(,begin ,end ,table . ,_) (eca-completion-at-point)))
    (completion-all-completions (buffer-substring begin end) table nil (- end begin)
                                (completion-metadata (buffer-substring begin end) table nil))))

(defun client-plain (completions)
  "COMPLETIONS as a plain list of plain strings."
  (let (result)
    (while (consp completions) (push (substring-no-properties (pop completions)) result))
    (nreverse result)))

(client-test client-completes-contexts
  "`@' offers what the server finds, also in the middle of a path; a mention is sent along."
  (eca--set-input "look at @main")
  (should (equal (client-plain (client-completions)) '("src/main.el")))
  (completion-at-point)
  (should (equal (eca--input-text) "look at @src/main.el"))
  (eca--set-input "@")
  (should (member "a.txt" (client-plain (client-completions))))
  (should (member "cursor" (client-plain (client-completions))))
  (client-ask "look at @src/main.el, please")
  (client-finish)
  (should (string-search "defun my-answer" (format "%S" (support-last-turn)))))

(client-test client-completes-names-of-files
  "`#' offers files alone, and leaves the name in the message."
  (eca--set-input "look at #")
  (let ((found (client-plain (client-completions))))
    (should (member "a.txt" found))
    (should-not (member "cursor" found)))
  (eca--set-input "look at #main")
  (completion-at-point)
  (should (equal (eca--input-text) "look at src/main.el")))

(client-test client-sends-files-of-dired
  "In Dired the marked files go along."
  (let ((chat (current-buffer)) (eca-chat-display-action nil))
    (with-current-buffer (dired-noselect (support-file ""))
      (unwind-protect
          (save-window-excursion
            (dired-mark-files-regexp "\\`\\(a\\.txt\\|src\\)\\'")
            (eca-add-context))
        (kill-buffer (dired-noselect (support-file "")))))
    (with-current-buffer chat
      (should (equal (sort (mapcar #'eca-context-label eca--contexts) #'string<) '("a.txt" "src/"))))))

(client-test client-checks-health
  "What is there and what is missing is listed."
  (eca--await-ready eca--session)
  (cl-flet ((health () (save-window-excursion (eca-check-health) (buffer-string))))
    (let ((text (health)))
      (should (string-match-p "✓ eca .*(.*)\n✓ The server runs\n✓ [0-9]+ models; mock/scripted is selected\n" text))
      (should (string-match-p "^  Tools of eca: [a-z]+, [1-9]" text)))
    (eca--stop eca--session)
    (let ((eca-command '("/no/such/eca" "server")))
      (should (string-search "✗ `/no/such/eca' is not a program" (health)))
      (should (string-search "The server does not run" (health))))
    (let ((eca-command '("false" "server")))
      (should (string-match-p "✗ `.*/false --version' fails: 1" (health))))))

(client-test client-completes-commands
  "`/' offers the server's commands, with what they do; elsewhere it is a slash."
  (eca--set-input "/")
  (should (member "compact" (client-plain (client-completions))))
  (should (string-search "summary" (eca--command-help "compact")))
  (eca--set-input "/compa")
  (completion-at-point)
  (should (string-prefix-p "/compact" (eca--input-text)))
  (eca--set-input "either/or")
  (should-not (eca-completion-at-point)))

(client-test client-sends-a-region
  "A region of a saved file goes as lines of it, one of a changed buffer as text."
  (let ((chat (current-buffer)))
    (with-current-buffer (find-file-noselect (support-file "a.txt"))
      (should (equal (eca-region-context (point-min) (+ (point-min) 8))
                     (list :type "file" :path (support-file "a.txt") :linesRange '(:start 1 :end 2))))
      (goto-char (point-max))
      (insert "unsaved ünïcode\n")
      (let ((context (eca-region-context (- (point-max) 16) (point-max))))
        (should (equal (plist-get context :type) "text"))
        (should (equal (plist-get context :label) "a.txt:4-4"))
        (with-current-buffer chat
          (push context eca--contexts)
          (eca--show-footer)
          (should (string-search "@a.txt:4-4" (overlay-get eca--footer 'before-string)))
          (client-ask "say seen")
          (client-finish)
          (should-not eca--contexts)
          (should (string-search "unsaved ünïcode" (format "%S" (support-last-turn)))))))))

(client-test client-counts-places-as-the-server-does
  "Lines and characters count from 1, characters in UTF-16 units."
  (with-temp-buffer
    (insert "x\n😀é|\n")
    (goto-char (point-min))
    (search-forward "é")
    (should (equal (eca-position (point)) '(:line 2 :character 4)))
    (goto-char (point-min))
    (eca-goto-position '(:line 2 :character 4))
    (should (looking-at "|"))))

;;; What Emacs tells the model

(defun client-answer (method params)
  "What this client answers to METHOD with PARAMS."
  (let (answer)
    (eca--answer eca--session method params (lambda (result) (setq answer result))
                 (lambda (code text) (setq answer (list :code code :message text))))
    answer))

(client-test client-answers-with-diagnostics
  "Problems that flymake found are told, for one file and for all."
  (let ((uri (eca--uri (support-file "a.txt"))))
    (with-current-buffer (find-file-noselect (support-file "a.txt"))
      (setq-local flymake-diagnostic-functions
                  (list (lambda (report &rest _)
                          (funcall report (list (flymake-make-diagnostic (current-buffer) 5 8 :warning "two is odd"))))))
      (flymake-mode 1)
      (flymake-start)
      (support-until "flymake" (flymake-diagnostics)))
    (dolist (params (list (list :uri uri) nil))
      (let ((found (aref (plist-get (client-answer "editor/getDiagnostics" params) :diagnostics) 0)))
        (should (equal (plist-get found :uri) uri))
        (should (equal (plist-get found :severity) "warning"))
        (should (equal (plist-get found :message) "two is odd"))
        (should (equal (plist-get found :range) '(:start (:line 2 :character 1) :end (:line 2 :character 4))))))
    (should (equal (client-answer "editor/getDiagnostics" (list :uri (eca--uri "/no/such/file"))) '(:diagnostics [])))))

(client-test client-answers-with-definitions
  "xref finds a definition; where nothing knows symbols, that is said and nobody is asked."
  (load (support-file "src/main.el") nil t)
  (let ((answer (client-answer "editor/getDefinition"
                               (list :uri (eca--uri (support-file "src/main.el")) :position '(:line 3 :character 26)))))
    (should (equal (plist-get answer :status) "success"))
    (should (equal (eca--get (aref (plist-get answer :locations) 0) :range :start :line) 1)))
  (should (equal (plist-get (client-answer "editor/getReferences"
                                           (list :uri (eca--uri (support-file "a.txt")) :position '(:line 1 :character 1)))
                            :status)
                 "no-server"))
  (should (equal (plist-get (client-answer "editor/getDefinition" (list :uri "file:///no/such" :position '(:line 1 :character 1)))
                            :status)
                 "error"))
  (should (equal (plist-get (client-answer "no/such" nil) :code) -32601)))

;;; Selections and stored chats

(client-test client-selects-model-and-agent
  "The chosen model and agent are used by the next prompt and shown."
  (eca--await-ready eca--session)
  (should (member "mock/other" (eca-session-models eca--session)))
  (eca-select-model "mock/other")
  (eca-select-agent "plan")
  (client-ask "say with the other")
  (client-finish)
  (should (equal (delete-dups
                  (mapcar (lambda (body) (plist-get body :model))
                          (cl-remove-if-not (lambda (body) (string-search "with the other" (format "%S" body)))
                                            (support-requests))))
                 '("other")))
  (should (string-search "plan · mock/other" (eca--header))))

(client-test client-opens-a-stored-chat
  "A chat whose buffer was killed is shown again as it was, tool calls included."
  (client-ask "think twice" "+ say first answer" )
  (client-finish)
  (client-ask (client-call "read_file" :path (support-file "a.txt")) "say second answer")
  (client-finish)
  (let ((id eca--chat-id) (session eca--session) (eca-chat-display-action nil))
    (kill-buffer)
    (cl-letf (((symbol-function 'eca--pick-chat) (lambda (&rest _) id)))
      (let ((eca--session session)) (eca-chat-open)))
    (let ((buffer (support-until "the chat" (let ((buffer (gethash id (eca-session-chats session))))
                                              (and buffer (with-current-buffer buffer (client-shows "second answer")) buffer)))))
      (with-current-buffer buffer
        (should (client-shows "first answer"))
        (should (client-shows "▸ Thought"))
        (should (client-shows "▸ ✓"))
        (should-not eca--busy)
        (client-ask "say third answer")
        (client-finish)
        (should (client-shows "third answer"))))))

(client-test client-deletes-a-chat
  "A deleted chat has no buffer and is no longer listed."
  (client-ask "say something")
  (client-finish)
  (let ((session eca--session) (buffer (current-buffer)))
    (cl-letf (((symbol-function 'yes-or-no-p) #'always)) (eca-chat-delete))
    (support-until "the end of the buffer" (not (buffer-live-p buffer)))
    (should (equal (eca-request-wait session "chat/list" nil) '(:chats [])))))

;;; The server's life

(client-test client-starts-again-after-a-crash
  "A server that is killed in the middle of an answer comes back, and the chat goes on with its history."
  (client-ask "say remember the number 7")
  (client-finish)
  (client-ask "words 300 10")
  (support-until "first words" (client-shows "word1 "))
  (goto-char (point-max))
  (insert "my draft")
  (let ((process (jsonrpc--process (eca-session-transport eca--session))))
    (signal-process process 'KILL)
    (support-until "the note" (client-shows "ended unexpectedly"))
    (should-not eca--busy)
    (should (client-shows "incomplete"))
    (support-until "the new server" (eq (eca-session-state eca--session) 'ready))
    (should-not (eq process (jsonrpc--process (eca-session-transport eca--session)))))
  (should (equal (eca--input-text) "my draft"))
  (client-ask "say back again")
  (client-finish)
  (should (client-shows "\nback again"))
  (let ((history (format "%S" (support-last-turn))))
    (should (string-search "remember the number 7" history))
    (should (string-search "back again" history))))

(client-test client-does-not-start-for-ever
  "A server that dies at once is tried a few times and then left."
  (eca--stop eca--session)
  (let ((eca-command '("sh" "-c" "exit 3")) (starts 0))
    (cl-letf* ((connect (symbol-function 'eca--connect))
               ((symbol-function 'eca--connect) (lambda (session) (cl-incf starts) (funcall connect session))))
      (eca--start eca--session)
      (support-until "giving up" (and (> starts eca-restart-after-crash) (eq (eca-session-state eca--session) 'failed)))
      (accept-process-output nil 0.5)
      (should (= starts (1+ eca-restart-after-crash)))
      (should (eq (eca-session-state eca--session) 'failed))
      (should (equal (client-mode-lines) '("[crashed]" " ECA[crashed]")))))
  (eca-restart)
  (client-ask "say recovered")
  (client-finish)
  (should (client-shows "recovered")))

(client-test client-names-a-missing-program
  "Without the program there is a clear error, and the message stays."
  (eca--stop eca--session)
  (let ((eca-command '("/no/such/eca" "server")))
    (client-ask "hello")
    (should (client-shows "Cannot find the program"))
    (should (equal (eca--input-text) "hello"))
    (should-not eca--busy)))

(client-test client-leaves-in-order
  "The server ends with status 0 when it is stopped, and starts again when it is needed."
  (client-ask "say one")
  (client-finish)
  (let ((process (jsonrpc--process (eca-session-transport eca--session))))
    (eca--stop eca--session)
    (should-not (process-live-p process))
    (should (equal (process-exit-status process) 0)))
  (should-not (client-shows "unexpectedly"))
  (client-ask "say two")
  (client-finish)
  (should (client-shows "two")))

;;; Rewriting and suggesting, with a transport that only pretends

(cl-defstruct client-fake
  "A server that notes what it is asked, and answers with REFUSAL or nothing.
If it is SLOW, it answers when `client-fake-answer' is called."
  refusal asked slow waiting withdrawn)

(cl-defmethod eca-transport-live-p ((_ client-fake)) "It always lives." t)
(cl-defmethod eca-transport-stop ((_ client-fake)) "It has nothing to stop." nil)
(cl-defmethod eca-transport-notify ((_ client-fake) _method _params) "It does not listen." nil)
(cl-defmethod eca-transport-request ((fake client-fake) method params done failed)
  "Note METHOD with PARAMS in FAKE, then call DONE or FAILED."
  (push (cons method params) (client-fake-asked fake))
  (cond ((client-fake-slow fake) (push (cons (length (client-fake-asked fake)) done) (client-fake-waiting fake)))
        ((client-fake-refusal fake) (funcall failed (client-fake-refusal fake)))
        (t (funcall done nil)))
  (length (client-fake-asked fake)))
(cl-defmethod eca-transport-cancel ((fake client-fake) request)
  "Note in FAKE that REQUEST was withdrawn."
  (push request (client-fake-withdrawn fake)))

(defun client-fake-answer (fake result &optional number)
  "Let FAKE give RESULT to the request NUMBER, or to the last one."
  (funcall (cdr (if number (assoc number (client-fake-waiting fake)) (car (client-fake-waiting fake)))) result))

(defmacro client-with-fake (refusal &rest body)
  "Run BODY in a buffer with the text `old', with a server that answers with REFUSAL."
  (declare (indent 1))
  `(let* ((default-directory (file-name-as-directory (file-truename temporary-file-directory)))
          (fake (make-client-fake :refusal ,refusal))
          (session (eca-session--make :root default-directory :name "fake" :transport fake :state 'ready))
          (eca--sessions (list session))
          (inhibit-message t))
     (with-temp-buffer
       (insert "before\nold\nafter\n")
       (let ((say (lambda (&rest content)
                    (eca--hear session "rewrite/contentReceived"
                               (list :rewriteId (plist-get (cdar (client-fake-asked fake)) :id) :content content)))))
         (ignore say)
         ,@body))))

(ert-deftest client-rewrites-a-region ()
  "The new text is shown first and put in place when it is accepted."
  (client-with-fake nil
    (eca-rewrite 8 12 "make it new")
    (should (equal (plist-get (cdar (client-fake-asked fake)) :text) "old\n"))
    (should (equal (plist-get (cdar (client-fake-asked fake)) :range)
                   '(:start (:line 2 :character 1) :end (:line 3 :character 1))))
    (funcall say :type "started")
    (funcall say :type "text" :text "```\nne")
    (should-error (eca-rewrite-accept) :type 'user-error)
    (funcall say :type "text" :text "w\n```")
    (funcall say :type "replace" :text "new\n")
    (funcall say :type "finished" :totalTimeMs 5)
    (should (equal (buffer-string) "before\nold\nafter\n"))
    (should (string-search "new" (overlay-get (car (overlays-in 8 12)) 'after-string)))
    (eca-rewrite-accept)
    (should (equal (buffer-string) "before\nnew\nafter\n"))
    (should-not (overlays-in (point-min) (point-max)))))

(client-test client-rewrites-with-the-model
  "A rewrite goes all the way to the model and back."
  (with-current-buffer (find-file-noselect (support-file "a.txt"))
    (goto-char (point-min))
    (let ((before (buffer-string))
          (end (line-beginning-position 2)))
      (eca-rewrite (point-min) end "say kindly")
      (support-wait "the new text" (lambda ()
                                      (eca-rewrite-state-done
                                       (overlay-get (car (overlays-in 1 end)) 'eca-rewrite))))
      (eca-rewrite-accept)
      (should (equal (buffer-string) (concat "kindly\n" (substring before (1- end))))))))

(ert-deftest client-does-not-overwrite-what-changed ()
  "A text that was edited while the model worked is kept; the new one is in the kill ring."
  (client-with-fake nil
    (eca-rewrite 8 12 "make it new")
    (funcall say :type "text" :text "new\n")
    (funcall say :type "finished" :totalTimeMs 5)
    (goto-char 9)
    (insert "X")
    (should-error (eca-rewrite-accept) :type 'user-error)
    (should (equal (buffer-string) "before\noXld\nafter\n"))
    (should (equal (current-kill 0) "new\n"))))

(ert-deftest client-says-when-rewriting-is-not-offered ()
  "A server without rewriting is no mystery, and nothing is left in the buffer."
  (client-with-fake '(:code -32601 :message "Method not found")
    (let (said)
      (cl-letf (((symbol-function 'message) (lambda (&rest arguments) (setq said (apply #'format arguments)))))
        (eca-rewrite 8 12 "make it new"))
      (should (string-search "does not offer rewriting" said))
      (should-not (overlays-in (point-min) (point-max))))))

;;; Suggestions

(defun client-command (command)
  "Call COMMAND as the command loop does."
  (let ((this-command command))
    (run-hooks 'pre-command-hook)
    (call-interactively command)
    (run-hooks 'post-command-hook)))

(defun client-type (text)
  "Type TEXT, as one command."
  (let ((this-command 'self-insert-command))
    (run-hooks 'pre-command-hook)
    (insert text)
    (run-hooks 'post-command-hook)))

(defun client-ghost ()
  "The suggestion that is shown, or nil."
  (let ((shown (cl-loop for overlay in (overlays-in (point-min) (point-max))
                        when (eq (overlay-get overlay 'keymap) eca-suggestion-map) collect overlay)))
    (should-not (cdr shown))
    (when shown
      (should (= (overlay-start (car shown)) (overlay-end (car shown)) (point)))
      (substring-no-properties (overlay-get (car shown) 'after-string)))))

(defun client-suggestion (text &rest more)
  "An answer of the server that suggests TEXT at point; MORE replaces properties of the item."
  (let ((item (list :text text :docVersion (buffer-chars-modified-tick)
                    :range (list :start (eca-position (point)) :end (eca-position (point))))))
    (cl-loop for (key value) on more by #'cddr do (setq item (plist-put item key value)))
    (list :items (vector item))))

(defmacro client-suggesting (&rest body)
  "Run BODY in a text that is on the screen, with a slow server called `fake'.
What is said meanwhile is in `said', newest first."
  (declare (indent 0))
  `(client-with-fake nil
     (setf (client-fake-slow fake) t)
     (let ((eca--suggestion nil) (eca--suggest-request nil) (eca--suggest-timer nil) (said nil))
       (text-mode)
       (goto-char 11)
       (buffer-enable-undo)
       (save-window-excursion
         (switch-to-buffer (current-buffer))
         (unwind-protect
             (cl-letf (((symbol-function 'message)
                        (lambda (format &rest arguments) (when format (push (apply #'format format arguments) said)))))
               ,@body)
           (eca-suggest-dismiss)
           (eca--suggest-withdraw)
           (eca--suggest-wait nil))
         (should-not (memq #'eca--suggest-watch (default-value 'post-command-hook)))
         (should-not (memq #'eca--suggest-before-command (default-value 'pre-command-hook)))
         (should-not (memq #'eca-suggest-dismiss after-change-functions))))))

(defun client-suggestion-keys ()
  "What TAB and the other keys of a suggestion do at point."
  (mapcar (lambda (key) (key-binding (kbd key))) '("TAB" "<tab>" "M-f" "C-e" "C-g")))

(ert-deftest client-accepts-a-suggestion ()
  "The whole text goes along, what comes is a ghost, and its keys hold while it is there, not longer."
  (client-suggesting
    (let ((before (client-suggestion-keys)))
      (should (equal before '(indent-for-tab-command nil forward-word move-end-of-line keyboard-quit)))
      (client-command #'eca-suggest)
      (should (equal before (client-suggestion-keys)))
      (pcase-let ((`(,method . ,params) (car (client-fake-asked fake))))
        (should (equal method "completion/inline"))
        (should (equal (plist-get params :docText) "before\nold\nafter\n"))
        (should (equal (plist-get params :position) '(:line 2 :character 4)))
        (should (equal (plist-get params :docVersion) (buffer-chars-modified-tick))))
      (client-fake-answer fake (client-suggestion " and\r\nwise"))
      (should (equal (client-ghost) " and\nwise"))
      (should (equal (buffer-string) "before\nold\nafter\n"))
      (should (equal (client-suggestion-keys) '(eca-suggest-accept eca-suggest-accept eca-suggest-accept-word
                                                eca-suggest-accept-line eca-suggest-dismiss)))
      (should (eq (save-excursion (forward-char -1) (key-binding (kbd "TAB"))) 'indent-for-tab-command))
      (undo-boundary)
      (client-command (key-binding (kbd "TAB")))
      (should (equal (buffer-string) "before\nold and\nwise\nafter\n"))
      (should (looking-at "\nafter"))
      (should-not (client-ghost))
      (should (equal before (client-suggestion-keys)))
      (should-error (eca-suggest-accept) :type 'user-error)
      (undo-boundary)
      (let ((last-command nil)) (undo))
      (should (equal (buffer-string) "before\nold\nafter\n")))))

(ert-deftest client-accepts-parts-of-a-suggestion ()
  "A word, then a line; what is left stays, and nothing more is asked."
  (client-suggesting
    (client-command #'eca-suggest)
    (client-fake-answer fake (client-suggestion " (and wise)\nas owls\n\nare"))
    (client-command #'eca-suggest-accept-word)
    (should (equal (buffer-substring 8 (point)) "old (and"))
    (should (equal (client-ghost) " wise)\nas owls\n\nare"))
    (client-command #'eca-suggest-accept-line)
    (should (equal (buffer-substring 8 (point)) "old (and wise)"))
    ;; The blank is for the cursor.
    (should (equal (client-ghost) " \nas owls\n\nare"))
    (client-command #'eca-suggest-accept-line)
    (should (equal (client-ghost) " \n\nare"))
    (client-command #'eca-suggest-accept-word)
    (should (equal (buffer-string) "before\nold (and wise)\nas owls\n\nare\nafter\n"))
    (should-not (client-ghost))
    (should (= (length (client-fake-asked fake)) 1))))

(ert-deftest client-drops-a-suggestion-for-another-text ()
  "Whatever changes the text or moves point before the answer comes: it is not shown."
  (dolist (change (list (lambda () (insert "x"))
                        (lambda () (save-excursion (goto-char (point-max)) (insert "x")))
                        (lambda () (insert "x") (delete-char -1))
                        (lambda () (forward-char -1))
                        (lambda () (switch-to-buffer (get-buffer-create "*scratch*")))))
    (client-suggesting
      (let ((buffer (current-buffer)) (answer (client-suggestion " new")))
        (client-command #'eca-suggest)
        (funcall change)
        (client-fake-answer fake answer)
        (with-current-buffer buffer
          (should-not (client-ghost))
          (should-not eca--suggest-request))))))

(ert-deftest client-takes-a-suggestion-away ()
  "A suggestion is gone with the next command of another kind, and when something else changes the buffer."
  (dolist (change (list (lambda () (client-command #'backward-char))
                        (lambda () (client-type "x"))
                        (lambda () (client-command #'ignore))
                        (lambda () (client-command #'eca-suggest-dismiss))
                        (lambda () (save-excursion (goto-char (point-max)) (insert "x")))
                        (lambda () (forward-line -1) (run-hooks 'post-command-hook))
                        (lambda () (run-hooks 'completion-in-region-mode-hook))
                        (lambda () (run-hook-with-args 'company-completion-started-hook nil))))
    (client-suggesting
      (client-command #'eca-suggest)
      (client-fake-answer fake (client-suggestion " new"))
      (should (client-ghost))
      (funcall change)
      (should-not (client-ghost))
      (should-not (string-search "new" (buffer-string)))
      (should (eq (key-binding (kbd "TAB")) 'indent-for-tab-command)))))

(ert-deftest client-never-accepts-a-stale-suggestion ()
  "Should a suggestion still be there when point has moved, TAB inserts nothing."
  (client-suggesting
    (client-command #'eca-suggest)
    (client-fake-answer fake (client-suggestion " new"))
    (forward-char -1)
    (should-error (eca-suggest-accept) :type 'user-error)
    (should (equal (buffer-string) "before\nold\nafter\n"))
    (should-not eca--suggestion)))

(ert-deftest client-makes-way-for-other-completion ()
  "While candidates of another completion are shown, a suggestion is not, and none is asked for."
  (dolist (popup '(company-candidates completion-in-region-mode ac-completing))
    (client-suggesting
      (eca-suggest-mode 1)
      (client-command #'eca-suggest)
      (cl-progv (list popup) '(("one" "two"))
        (client-fake-answer fake (client-suggestion " new"))
        (should-not (client-ghost))
        (client-type "x")
        (eca--suggest-rested (current-buffer) (buffer-chars-modified-tick) (point))
        (should (= (length (client-fake-asked fake)) 1)))
      (should (string-search "something else is being completed" (car said))))))

(ert-deftest client-inserts-only-what-is-new ()
  "What a suggestion repeats of its range is not inserted; one for another text is not used."
  (client-suggesting
    (let ((line '(:start (:line 2 :character 1) :end (:line 2 :character 4))))
      (dolist (case `(("older" (:range ,line) "er")
                      ("bolder" (:range ,line) nil)
                      ("old" (:range ,line) nil)
                      (" news" (:docVersion 1) nil)
                      (" news" (:docVersion nil :range nil) " news")
                      ("" nil nil)))
        (client-command #'eca-suggest)
        (client-fake-answer fake (apply #'client-suggestion (car case) (nth 1 case)))
        (should (equal (client-ghost) (nth 2 case))))
      (goto-char 9)
      (client-command #'eca-suggest)
      (client-fake-answer fake (client-suggestion "o-l-d" :range line))
      (should-not (client-ghost))
      (client-command #'eca-suggest)
      (client-fake-answer fake (client-suggestion "o, ho, hold" :range line))
      (should (equal (client-ghost) ", ho, ho"))
      (narrow-to-region 9 10)
      (client-command #'eca-suggest)
      (should (equal (plist-get (cdar (client-fake-asked fake)) :position) '(:line 2 :character 2)))
      (client-fake-answer fake (client-suggestion "o, ho, hold" :range line))
      (should (equal (client-ghost) ", ho, ho")))))

(ert-deftest client-withdraws-older-requests ()
  "There is one request at a time, and none when the user went on."
  (client-suggesting
    (let ((answer (client-suggestion " new")))
      (client-command #'eca-suggest)
      (client-command #'eca-suggest)
      (should (equal (client-fake-withdrawn fake) '(1)))
      (client-fake-answer fake answer 1)
      (should-not (client-ghost))
      (client-type "x")
      (should (equal (client-fake-withdrawn fake) '(2 1)))
      (client-fake-answer fake answer 2)
      (should-not (client-ghost))
      (client-command #'eca-suggest)
      (let ((this-command 'keyboard-quit)) (run-hooks 'post-command-hook))
      (should (equal (client-fake-withdrawn fake) '(3 2 1)))
      (client-command #'eca-suggest)
      (client-fake-answer fake (client-suggestion " new"))
      (should (equal (client-ghost) " new"))
      (client-command #'eca-suggest-dismiss)
      (should (equal (client-fake-withdrawn fake) '(3 2 1))))))

(ert-deftest client-suggests-when-the-user-rests ()
  "The mode asks after something was typed, and not for anything else."
  (client-suggesting
    (cl-flet ((rest () (when eca--suggest-timer (apply (timer--function eca--suggest-timer) (timer--args eca--suggest-timer))))
              (asked () (length (client-fake-asked fake))))
      (client-type "x")
      (should-not eca--suggest-timer)
      (eca-suggest-mode 1)
      (client-command #'forward-char)
      (insert "by something else")
      (client-command #'forward-char)
      (should-not eca--suggest-timer)
      (client-type "y")
      (should (timer--idle-delay eca--suggest-timer))
      (rest)
      (should (= (asked) 1))
      (client-fake-answer fake (client-suggestion " new and better"))
      (should (client-ghost))
      (should-not said)
      (client-command #'eca-suggest-accept-word)
      (rest)
      (client-command #'eca-suggest-dismiss)
      (should-not eca--suggest-timer)
      (client-type "z")
      (let ((this-command 'undo)) (run-hooks 'pre-command-hook) (delete-char -1) (run-hooks 'post-command-hook))
      (should-not eca--suggest-timer)
      (client-type "z")
      (forward-char -1)
      (rest)
      (should (= (asked) 1))
      (dolist (hinder (list (lambda () (set-mark 1) (setq mark-active t))
                            (lambda () (setq-local eca-suggest-inhibit-functions (list #'always)))
                            (lambda () (setq buffer-read-only t))
                            (lambda () (setf (eca-session-state session) 'starting))
                            (lambda () (eca-suggest-mode -1))))
        (client-type "w")
        (let ((transient-mark-mode t)) (funcall hinder) (rest))
        (should (= (asked) 1))
        (setq mark-active nil buffer-read-only nil eca-suggest-inhibit-functions nil)
        (setf (eca-session-state session) 'ready)))))

(ert-deftest client-tells-why-nothing-is-suggested ()
  "Who asked is always told why there is nothing; else each reason is told once."
  (client-suggesting
    (cl-flet ((ask (asked result) (setq said nil) (eca--suggest-ask session asked) (client-fake-answer fake result)
                   (let ((told said)) (setq said nil) told)))
      (let ((none '(:error (:type "info" :message "nothing to propose")))
            (late (lambda (seconds) (list :error (list :type "warning" :message (format "come back in %d s" seconds))))))
        (should (equal (ask t none) '("ECA: no suggestion: nothing to propose")))
        (should (equal (ask t none) '("ECA: no suggestion: nothing to propose")))
        (should-not (ask nil none))
        (should (equal (ask nil (funcall late 7)) '("ECA: no suggestion: come back in 7 s")))
        (should-not (ask nil (funcall late 9)))
        (should (equal (ask t (funcall late 9)) '("ECA: no suggestion: come back in 9 s")))
        (should (equal (ask t '(:items [])) '("ECA: no suggestion: the model has nothing to suggest here")))
        (run-hook-with-args 'eca-session-ready-functions session)
        (should (equal (ask nil none) '("ECA: no suggestion: nothing to propose")))
        (dotimes (number 50) (ask nil (list :error (list :message (make-string (+ number 30) ?x)))))
        (should (<= (length (eca-session-reasons session)) 21))))))

(ert-deftest client-asks-no-server-that-does-not-suggest ()
  "After a refusal of the method itself nothing is asked any more, unless the user does."
  (client-suggesting
    (setf (client-fake-slow fake) nil
          (client-fake-refusal fake) '(:code -32601 :message "Method not found"))
    (eca-suggest-mode 1)
    (dotimes (_ 3)
      (client-type "x")
      (eca--suggest-rested (current-buffer) (buffer-chars-modified-tick) (point)))
    (should (= (length (client-fake-asked fake)) 1))
    (should (equal said '("ECA: no suggestion: this server does not offer suggestions")))
    (client-command #'eca-suggest)
    (should (= (length said) 2))
    (should (= (length (client-fake-asked fake)) 2))))

(ert-deftest client-suggests-in-texts-only ()
  "Not in chats, minibuffers, shells, lists, encrypted, read-only or huge texts; also not when asked."
  (cl-flet ((refuses (prepare)
              (client-suggesting
                (funcall prepare)
                (should-error (eca-suggest) :type 'user-error)
                (should-not (client-fake-asked fake)))))
    (dolist (mode '(eca-chat-mode special-mode comint-mode dired-mode fundamental-mode))
      (refuses (lambda () (let ((inhibit-read-only t)) (delay-mode-hooks (funcall mode)))))
      (with-temp-buffer
        (setq major-mode mode)
        (eca--suggest-turn-on)
        (should-not eca-suggest-mode)))
    (refuses (lambda () (setq buffer-read-only t)))
    (refuses (lambda () (put-text-property 8 12 'read-only t)))
    (refuses (lambda () (setq-local eca-suggest-largest-buffer 5)))
    (refuses (lambda () (setq-local buffer-file-name "/no/such/keys.txt.gpg")))
    (refuses (lambda () (switch-to-buffer (get-buffer-create " *Minibuf-0*"))))
    (with-temp-buffer
      (text-mode)
      (eca--suggest-turn-on)
      (should eca-suggest-mode))))

(client-test client-suggests-with-the-model
  "A suggestion goes all the way to the model and back; one that nobody waits for is withdrawn."
  (support-until "the server" (eq (eca-session-state eca--session) 'ready))
  (let* ((session eca--session)
         (continuations (jsonrpc--request-continuations (eca-session-transport session))))
    (with-temp-file (support-file "b.txt") (insert "say ünï **world**\nhello 😀 \nwords 100\n"))
    (save-window-excursion
      (switch-to-buffer (find-file-noselect (support-file "b.txt")))
      (goto-char (point-min))
      (end-of-line 2)
      (client-command #'eca-suggest)
      (support-until "the suggestion" (client-ghost))
      (should (equal (client-ghost) "ünï **world**"))
      (let ((request (format "%S" (plist-get (car (last (support-requests))) :messages))))
        (should (string-search "b.txt" request))
        (should (string-match-p "hello 😀 [^ \n]+\nwords 100" request)))
      (client-command (key-binding (kbd "TAB")))
      (should (equal (buffer-string) "say ünï **world**\nhello 😀 ünï **world**\nwords 100\n"))
      ;; This one would take a hundred seconds.
      (goto-char (point-min))
      (delete-region (point) (line-end-position))
      (client-type "words 10000 10")
      (client-command #'eca-suggest)
      (should eca--suggest-request)
      (client-type "0")
      (should-not eca--suggest-request)
      (support-until "the end of the request" (zerop (hash-table-count continuations)))
      (delete-region (line-beginning-position) (line-end-position))
      (insert "fail 401 no such key")
      (let ((said nil))
        (cl-letf (((symbol-function 'message) (lambda (format &rest arguments) (when format (push (apply #'format format arguments) said)))))
          (client-command #'eca-suggest)
          (support-until "the reason" (not eca--suggest-request)))
        (should (string-search "no such key" (car said)))
        (should-not (client-ghost))))))

(support-report)
;;; client-test.el ends here
