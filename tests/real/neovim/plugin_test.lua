-- The plugin in `editors/neovim`, in a real Neovim that is driven by keys, against the server with a
-- scripted model behind it.

local here = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":h")
package.path = here .. "/?.lua;" .. package.path
local editors = require("editor")

local model = editors.start_model()
local tests = {}

local function check(condition, what)
  if not condition then
    error(what, 2)
  end
end

local function has(text, part)
  if not text:find(part, 1, true) then
    error(("%q is not in:\n%s"):format(part, text), 2)
  end
end

local function lacks(text, part)
  if text:find(part, 1, true) then
    error(("%q is in:\n%s"):format(part, text), 2)
  end
end

--- What the model was told last, as one text.
local function last_request()
  local all = editors.requests(model)
  return vim.json.encode(all[#all].messages)
end

local function edit_call(workspace, old, new)
  local arguments = { path = workspace.main, original_content = old, new_content = new }
  return "call edit_file " .. vim.json.encode(arguments)
end

--- Runs a test in an editor of its own.
local function with_editor(test, settings, config)
  local workspace = editors.workspace(model, config)
  local editor = editors.open(workspace, settings)
  local ok, err = xpcall(test, debug.traceback, editor, workspace)
  if not ok then
    local seen, screen = pcall(editor.screen, editor)
    pcall(vim.fn.jobstop, editor.channel)
    error(err .. "\n" .. (seen and screen or "the editor is gone"), 0)
  end
  editor:close()
end

tests["a prompt and its streamed answer"] = function()
  with_editor(function(editor)
    editor:command("Eca")
    editor:sees("mock/scripted · code")
    -- Every change of the transcript is counted: an answer that comes in one piece is not streamed.
    editor:lua([[
      changes = 0
      vim.api.nvim_buf_attach(require("eca.session").chat().transcript.buffer, false, {
        on_lines = function() changes = changes + 1 end,
      })
    ]])
    editor:prompt("words 60 2")
    editor:finish()
    editor:says("word59")
    check(editor:lua("return changes") > 20, "the answer came in too few pieces")
    has(editor:lua("return require('eca').status()"), "mock/scripted")
    has(editor:screen(), "/32k")
  end)
end

tests["reasoning is folded when it is over and opens with a key"] = function()
  with_editor(function(editor)
    editor:prompt("think the cat sat\n+ say hello there")
    editor:says("\nhello there")
    editor:finish()
    local reason = "\nthe cat sat"
    lacks(editor:transcript(), reason)
    has(editor:transcript(), "▸ Thought for")
    editor:keys("<Esc><C-w>k/Thought<CR><Tab>")
    editor:says(reason)
    editor:keys("<Tab>")
    editors.wait("the fold to close", function()
      return not editor:transcript():find(reason, 1, true)
    end)
  end)
end

tests["an edit is shown as a diff, waits, and is made when it is approved"] = function()
  with_editor(function(editor, workspace)
    local before = editors.read(workspace.main)
    editor:prompt(edit_call(workspace, "hello", "good morning") .. "\nsay finished it")
    editor:called("waiting")
    has(editor:transcript(), '-    println!("hello");')
    has(editor:transcript(), '+    println!("good morning");')
    editor:sees("waiting for your approval")
    check(editors.read(workspace.main) == before, "the file was changed before it was approved")
    -- Side by side, in a tab page of its own.
    editor:keys("<Esc>gd")
    editor:sees("src/main.rs proposed")
    has(editor:screen(), 'println!("hello");')
    has(editor:screen(), 'println!("good morning");')
    editor:keys("a")
    editor:called("done")
    editor:says("\nfinished it")
    has(editors.read(workspace.main), "good morning")
    check(not editor:lua("return require('eca.diff').is_open()"), "the view is still open")
    -- The buffer in which the user had the file shows the new text.
    local text = editor:lua("return table.concat(vim.fn.getbufline(vim.fn.bufnr(...), 1, '$'), '\\n')", workspace.main)
    has(text, "good morning")
  end)
end

tests["a rejected edit is not made, and the model hears of it"] = function()
  with_editor(function(editor, workspace)
    local before = editors.read(workspace.main)
    editor:prompt(edit_call(workspace, "hello", "bye") .. "\nsay as you wish")
    editor:called("waiting")
    editor:keys("<Esc>gr")
    editor:called("rejected")
    editor:says("\nas you wish")
    editor:finish()
    has(editor:transcript(), "rejected by you")
    check(editors.read(workspace.main) == before, "the file was changed")
    has(last_request(), '"role":"tool"')
  end)
end

tests["a tool that is always allowed does not ask again"] = function()
  with_editor(function(editor, workspace)
    local first, second = edit_call(workspace, "hello", "one"), edit_call(workspace, "one", "two")
    editor:prompt(first .. "\n" .. second .. "\nsay both made")
    editor:called("waiting")
    editor:keys("<Esc>gA")
    editor:says("\nboth made")
    has(editors.read(workspace.main), "two")
  end)
end

tests["stop in mid-stream, then another prompt"] = function()
  with_editor(function(editor)
    editor:prompt("words 20000 3")
    editor:says("word20 ")
    editor:normal("<C-c>")
    editor:finish()
    local stopped = editor:transcript()
    lacks(stopped, "word19999")
    editor:prompt("say back again")
    editor:says("\nback again")
    editor:finish()
    has(editor:transcript(), "back again")
  end)
end

tests["a call that waits is closed by a stop"] = function()
  with_editor(function(editor, workspace)
    editor:prompt(edit_call(workspace, "hello", "bye"))
    editor:called("waiting")
    editor:normal("<C-c>")
    editor:called("rejected")
    editor:finish()
    has(editors.read(workspace.main), "hello")
  end)
end

tests["a message for the running turn is not lost"] = function()
  with_editor(function(editor)
    editor:prompt("words 150 4")
    editor:says("word3 ")
    editor:keys("<Esc>isay heard you<C-s>")
    editor:says("\nheard you")
    editor:finish()
    has(editor:transcript(), "word149")
  end)
end

tests["a message that is sent at once stops the answer"] = function()
  with_editor(function(editor)
    editor:prompt("words 20000 3")
    editor:says("word3 ")
    editor:keys("say later<C-s>")
    editor:sees("1 waiting")
    editor:command("Eca! send say instead")
    editor:says("\ninstead")
    editor:finish()
    lacks(editor:transcript(), "word19999")
    lacks(editor:transcript(), "\nlater")
    -- What waited is not lost.
    editor:sees("say later")
  end)
end

tests["completion of contexts and commands while typing"] = function()
  with_editor(function(editor)
    editor:command("Eca open")
    editor:sees("mock/scripted")
    editor:keys("what is in @note")
    editor:sees("@notes.md")
    editor:keys("<C-n><C-y>")
    editors.wait("the chosen word", function()
      return editor:lua("return vim.api.nvim_get_current_line()") == "what is in @notes.md"
    end)
    editor:keys("?<C-s>")
    editor:says("You said:")
    editor:finish()
    has(last_request(), "marzipan")
    editor:keys("/cos")
    editor:sees("/costs")
    editor:keys("<Esc>cc/cos<C-x><C-o>")
    editors.wait("the command from omnifunc", function()
      local words = editor:lua("return vim.fn.complete_info({ 'items' }).items")
      return words[1] and words[1].word == "/costs"
    end)
    editor:keys("<C-e><Esc>")
  end)
end

tests["a selection, a file and the cursor go with a prompt"] = function()
  with_editor(function(editor, workspace)
    editor:keys("ggjV:Eca add<CR>")
    editor:sees("@src/main.rs:2-2")
    editor:keys(":Eca add notes.md<CR>:Eca add cursor<CR>")
    editor:sees("@notes.md")
    editor:prompt("say seen")
    editor:says("\nseen")
    editor:finish()
    local told = last_request()
    has(told, "println!")
    has(told, "marzipan")
    lacks(told, "fn main()")
    lacks(editor:screen(), "@notes.md")
    -- What is not on the disk is sent as text.
    editor:keys("<Esc>:wincmd p<CR>:1wincmd w<CR>")
    editor:lua("vim.api.nvim_win_set_buf(1000, vim.fn.bufnr(...))", workspace.main)
    editor:lua("vim.api.nvim_set_current_win(1000) vim.api.nvim_buf_set_lines(0, 0, 1, false, { 'fn unsaved() {' })")
    editor:command("1Eca add")
    editor:prompt("say seen again")
    editor:says("\nseen again")
    editor:finish()
    has(last_request(), "fn unsaved() {")
    editor:lua("vim.bo[vim.fn.bufnr(...)].modified = false", workspace.main)
  end)
end

tests["models and agents are picked"] = function()
  with_editor(function(editor)
    editor:lua([[
      offered = {}
      vim.ui.select = function(items, options, done)
        offered[options.kind] = items
        done(options.kind == "eca_agent" and "plan" or "mock/other")
      end
    ]])
    editor:command("Eca open")
    editor:sees("mock/scripted · code")
    editors.wait("all models", function()
      return editor:lua("return #require('eca.session').models") == 3
    end)
    editor:keys("<Esc>:Eca model<CR>:Eca agent<CR>")
    editor:sees("mock/other · plan")
    check(vim.tbl_contains(editor:lua("return offered.eca_model"), "mock/scripted"), "a model is not offered")
    check(vim.tbl_contains(editor:lua("return offered.eca_agent"), "code"), "an agent is not offered")
    editor:prompt("say by another")
    editor:says("\nby another")
    editor:finish()
    local all = editors.requests(model)
    check(all[#all].model == "other", "the model was " .. all[#all].model)
  end)
end

tests["the server dies in mid-stream, is started again and remembers"] = function()
  with_editor(function(editor)
    editor:prompt("say the first thing")
    editor:says("\nthe first thing")
    editor:finish()
    editor:prompt("words 20000 3")
    editor:says("word10 ")
    local killed = editor:server_pids()
    check(#killed > 0, "no server is running")
    for _, pid in ipairs(killed) do
      vim.uv.kill(pid, "sigkill")
    end
    editor:says("The server ended unexpectedly (signal 9). It was started again")
    editor:finish()
    editor:prompt("reset\nsay alive")
    editor:says("\nalive")
    editor:finish()
    has(last_request(), "the first thing")
    check(not vim.deep_equal(killed, editor:server_pids()), "it is the same server")
  end)
end

tests["a program that cannot run is said once, not tried again and again"] = function()
  with_editor(function(editor)
    editor:command("Eca open")
    editor:notified("is not an executable program")
    editor:keys("hello<C-s>")
    editor:says("This could not be sent")
    local line = editor:lua("return vim.api.nvim_get_current_line()")
    check(line == "hello", "the message is gone: " .. line)
  end, { cmd = { "/nonexistent/eca", "server" } })
  with_editor(function(editor)
    editor:command("Eca open")
    editor:notified("the server ended with code 1")
    check(#editor:server_pids() == 0, "it was started again")
  end, { cmd = { "false" } })
end

tests["chats are listed and opened in another editor"] = function()
  local workspace = editors.workspace(model)
  local first = editors.open(workspace)
  first:prompt("say remember me")
  first:says("\nremember me")
  first:finish()
  first:close()
  local second = editors.open(workspace)
  second:lua("vim.ui.select = function(items, _, done) listed = #items done(items[1]) end")
  second:command("Eca chats")
  second:says("\nremember me")
  check(second:lua("return listed") == 1, "not one chat")
  second:prompt("say and go on")
  second:says("\nand go on")
  second:finish()
  has(last_request(), "remember me")
  second:close()
end

--- A language server inside the editor, for what the plugin asks of others.
local LANGUAGE_SERVER = [[
  local file = ...
  local uri = vim.uri_from_fname(file)
  local place = { uri = uri, range = { start = { line = 1, character = 4 }, ["end"] = { line = 1, character = 9 } } }
  local answers = {
    initialize = { capabilities = { definitionProvider = true, referencesProvider = true } },
    ["textDocument/definition"] = place,
    ["textDocument/references"] = { place, place },
  }
  asked = {}
  local id = vim.lsp.start({
    name = "little",
    root_dir = vim.fs.dirname(file),
    cmd = function()
      return {
        request = function(method, params, done)
          asked[method] = params
          vim.schedule(function() done(nil, answers[method] or vim.NIL) end)
          return true, 1
        end,
        notify = function() return true end,
        is_closing = function() return false end,
        terminate = function() end,
      }
    end,
  }, { bufnr = vim.fn.bufnr(file) })
  vim.diagnostic.set(vim.api.nvim_create_namespace("little"), vim.fn.bufnr(file), {
    { lnum = 1, col = 4, end_lnum = 1, end_col = 9, message = "odd", severity = 2, source = "little", code = 7 },
  })
]]

--- Calls a handler as the LSP client does, in a coroutine, and waits for what it returns.
local function ask_handler(editor, method, params)
  editor:lua([[
    local method, params = ...
    answer = nil
    coroutine.wrap(function()
      answer = require("eca.handlers")[method](nil, params, {})
    end)()
  ]], method, params)
  editors.wait("an answer to " .. method, function()
    return editor:lua("return answer ~= nil")
  end)
  return editor:lua("return answer")
end

tests["diagnostics, definitions and references come from the editor's own language servers"] = function()
  with_editor(function(editor, workspace)
    local uri = vim.uri_from_fname(workspace.main)
    local position = { line = 2, character = 5 }
    local none = ask_handler(editor, "editor/getDefinition", { uri = uri, position = position })
    check(none.status == "no-server", vim.inspect(none))
    editor:lua(LANGUAGE_SERVER, workspace.main)
    local found = ask_handler(editor, "editor/getDiagnostics", { uri = uri }).diagnostics
    check(#found == 1 and found[1].severity == "warning" and found[1].code == "7", vim.inspect(found))
    check(found[1].range.start.line == 1 and found[1].uri == uri, vim.inspect(found))
    local other = vim.uri_from_fname(workspace.project .. "/notes.md")
    check(#ask_handler(editor, "editor/getDiagnostics", { uri = other }).diagnostics == 0, "problems of another file")
    local definition = ask_handler(editor, "editor/getDefinition", { uri = uri, position = position })
    check(definition.status == "success" and #definition.locations == 1, vim.inspect(definition))
    check(definition.locations[1].range.start.line == 2, "lines are to count from 1")
    local asked = editor:lua("return asked['textDocument/definition'].position")
    check(asked.line == 1 and asked.character == 4, vim.inspect(asked))
    local uses = ask_handler(editor, "editor/getReferences", { uri = uri, position = position, includeDeclaration = false })
    check(uses.status == "success" and #uses.locations == 2, vim.inspect(uses))
    check(editor:lua("return asked['textDocument/references'].context.includeDeclaration") == false, "declaration")
    local missing = { uri = vim.uri_from_fname(workspace.project .. "/none.rs"), position = position }
    check(ask_handler(editor, "editor/getDefinition", missing).status == "error", "a file that is not there")
    editor:lua("vim.lsp.stop_client(vim.lsp.get_clients({ name = 'little' }), true)")
  end)
end

tests["questions of the model are put to the user"] = function()
  with_editor(function(editor)
    editor:lua([[
      vim.ui.select = function(items, _, done) picked(items, done) end
      vim.ui.input = function(_, done) done(typed) end
    ]])
    local question = { chatId = "x", question = "Which?", options = { { label = "red" }, { label = "blue" } }, allowFreeform = true }
    editor:lua("picked = function(items, done) done(items[2]) end")
    check(ask_handler(editor, "chat/askQuestion", question).answer == "blue", "an option")
    editor:lua("picked = function(items, done) done(items[3]) end typed = 'green'")
    check(ask_handler(editor, "chat/askQuestion", question).answer == "green", "something else")
    editor:lua("picked = function(items, done) done(items[4]) end")
    local cancelled = ask_handler(editor, "chat/askQuestion", question)
    check(cancelled.cancelled == true and cancelled.answer == vim.NIL, vim.inspect(cancelled))
    editor:lua("typed = ''")
    local empty = ask_handler(editor, "chat/askQuestion", { chatId = "x", question = "Name?", allowFreeform = true })
    check(empty.cancelled == true, vim.inspect(empty))
    editor:lua("typed = 'free'")
    local free = { chatId = "x", question = "Name?", allowFreeform = true }
    check(ask_handler(editor, "chat/askQuestion", free).answer == "free", "a free answer")
    -- And the whole way: model, server, editor, and back.
    editor:lua("picked = function(items, done) done(items[1]) end")
    local options = '"options": [{"label": "violet"}, {"label": "blue"}]'
    editor:prompt('call ask_user {"question": "Which colour?", ' .. options .. "}\nsay I see")
    editor:says("\nI see")
    editor:finish()
    local all = editors.requests(model)
    local told = all[#all].messages
    has(vim.json.encode(told[#told]), "violet")
  end)
end

tests["a question that the user leaves waits for them, until the turn is over"] = function()
  with_editor(function(editor)
    editor:command("Eca answer")
    editor:notified("no question waits for you")
    editor:lua("vim.ui.select = function(items, _, done) done(items[choice]) end")
    local call = 'call ask_user {"question": "Which colour?", "options": [{"label": "violet"}, {"label": "blue"}]}'
    editor:prompt(call .. "\nsay I see")
    editor:notified("`:Eca answer` asks you again")
    editor:sees("waiting for your answer")
    editor:lua("choice = 2")
    editor:normal()
    editor:command("Eca answer")
    editor:says("\nI see")
    editor:finish()
    local all = editors.requests(model)
    has(vim.json.encode(all[#all].messages[#all[#all].messages]), "blue")
    lacks(editor:screen(), "waiting for your answer")
    editor:lua("choice, notices = nil, {}")
    editor:prompt(call .. "\nsay never")
    editor:sees("waiting for your answer")
    editor:normal("<C-c>")
    editor:finish()
    editor:command("Eca answer")
    editor:notified("no question waits for you")
  end)
end

tests["a rewrite is proposed, and made only if the user wants it"] = function()
  with_editor(function(editor, workspace)
    -- The server's part is played here, piece by piece.
    editor:lua([[
      require("eca.server").request = function(method, params, callback)
        sent = { method = method, params = params }
        callback(nil, { status = "prompting", model = "m" })
      end
      function piece(content)
        require("eca.rewrite").content_received({ rewriteId = sent.params.id, content = content })
      end
    ]])
    local function rewrite(text)
      editor:command("2Eca rewrite make it polite")
      editor:lua("piece({ type = 'started' }) piece({ type = 'text', text = 'x' }) piece({ type = 'replace', text = ... })", text)
      editor:lua("piece({ type = 'finished', totalTimeMs = 1 })")
    end
    rewrite('    println!("please");')
    check(editor:lua("return sent.method .. sent.params.text") == 'rewrite/prompt    println!("hello");', "what was sent")
    check(editor:lua("return sent.params.range.start.line") == 2, "lines are to count from 1")
    editor:sees('+    println!("please");')
    local file = function()
      return editor:lua("return table.concat(vim.fn.getbufline(vim.fn.bufnr(...), 1, '$'), '\\n')", workspace.main)
    end
    editor:keys("r")
    editors.wait("the proposal to close", function()
      return not editor:screen():find("please", 1, true)
    end)
    has(file(), "hello")
    rewrite('    println!("please");')
    editor:sees("please")
    editor:keys("a")
    editors.wait("the replacement", function()
      return file():find("please", 1, true)
    end)
    lacks(file(), "hello")
    editor:lua("vim.bo[vim.fn.bufnr(...)].modified = false", workspace.main)
  end)
end

tests["a rewrite goes all the way to the model and back"] = function()
  with_editor(function(editor, workspace)
    editor:command('2Eca rewrite say     println!("kindly");')
    editor:sees('+    println!("kindly");')
    editor:keys("a")
    local lines
    editors.wait("the replacement", function()
      lines = editor:lua("return vim.fn.getbufline(vim.fn.bufnr(...), 1, '$')", workspace.main)
      return lines[2] == '    println!("kindly");'
    end)
    check(#lines == 3, vim.inspect(lines))
    editor:lua("vim.bo[vim.fn.bufnr(...)].modified = false", workspace.main)
  end)
end

tests["a server that cannot rewrite is said so"] = function()
  with_editor(function(editor)
    editor:lua([[
      require("eca.server").request = function(_, _, callback)
        callback("not available", nil, { code = -32601, message = "not available" })
      end
    ]])
    editor:command("2Eca rewrite make it polite")
    editor:notified("cannot rewrite")
  end)
end

--- Puts lines into the buffer of the user's file and the cursor, in insert mode, at the end of the last.
local function writes(editor, lines)
  editor:lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, ...)", lines)
  editor:keys("GA")
  editors.wait("insert mode", function()
    return vim.fn.rpcrequest(editor.channel, "nvim_get_mode").mode == "i"
  end)
end

local function suggested(editor, text)
  editor:sees(text)
  check(editor:lua("return require('eca.suggest').visible()"), "it is not a suggestion")
end

--- How many requests for suggestions the model got.
local function suggestion_requests(part)
  return #vim.tbl_filter(function(request)
    return vim.json.encode(request.messages):find(part, 1, true)
  end, editors.requests(model))
end

--- What becomes of the editor's requests, told by the client itself.
local WATCH_REQUESTS = [[
  requests = {}
  vim.api.nvim_create_autocmd("LspRequest", { callback = function(event)
    local request = event.data.request
    if request.method == "completion/inline" then table.insert(requests, request.type) end
  end })
]]

--- Types, and waits for a timer that was set later, and for longer, than one of the plugin's would be.
local function types_and_pauses(editor, keys)
  editor:lua([[
    paused = false
    vim.api.nvim_create_autocmd("TextChangedI", { once = true, callback = function()
      vim.defer_fn(function() paused = true end, 2 * require("eca.config").options.suggest.delay_ms)
    end })
  ]])
  editor:keys(keys)
  editors.wait("the pause", function()
    return editor:lua("return paused")
  end)
end

local function saved(editor)
  editor:normal()
  editor:lua("vim.bo.modified = false")
end

tests["a suggestion is shown when it is asked for, and taken whole, by line and by word"] = function()
  with_editor(function(editor)
    writes(editor, { "say greet(name);\\n\tlet x = 1;\\ndone()", "\thällo 😀." })
    editor:keys("<Cmd>Eca suggest<CR>")
    suggested(editor, "        hällo 😀.greet(name);\n        let x = 1;\ndone()")
    check(#editor:lines() == 2, "a suggestion is not to be in the text")
    local look = editor:lua("return vim.api.nvim_get_hl(0, { name = 'EcaSuggestion' })")
    check(look.italic and look.ctermfg and look.fg, "it looks like text: " .. vim.inspect(look))
    -- The model saw the text with the mark at the cursor, which is not where bytes would put it.
    has(last_request(), "😀.<ECA_TAG>")
    editor:keys("<C-Right>")
    editors.wait("the first word", function()
      return editor:lines()[2] == "\thällo 😀.greet"
    end)
    suggested(editor, "😀.greet(name);\n        let x")
    editor:keys("<End>")
    editors.wait("the first line", function()
      return editor:lines()[2] == "\thällo 😀.greet(name);"
    end)
    editor:keys("<Tab>!")
    editors.wait("the rest", function()
      return vim.deep_equal(vim.list_slice(editor:lines(), 2), { "\thällo 😀.greet(name);", "\tlet x = 1;", "done()!" })
    end)
    check(not editor:lua("return require('eca.suggest').visible()"), "it is still shown")
    -- What was taken is undone by itself.
    editor:normal("u")
    editors.wait("the undoing", function()
      return editor:lines()[2] == "\thällo 😀.greet(name);" and #editor:lines() == 2
    end)
    saved(editor)
  end)
end

tests["a suggestion that was asked for in normal mode is at the cursor"] = function()
  with_editor(function(editor)
    editor:lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'say  = 2', 'let x', 'end' })")
    editor:normal("2G$:Eca suggest<CR>")
    suggested(editor, "let x = 2")
    editor:keys("<C-]>")
    editor:misses("let x = 2")
    check(editor:lines()[2] == "let x", "it was taken")
    saved(editor)
  end)
end

tests["a suggestion is gone when the text or the place is another"] = function()
  with_editor(function(editor)
    local function again()
      writes(editor, { "say GHOST()", "x." })
      editor:keys("<Cmd>Eca suggest<CR>")
      suggested(editor, "x.GHOST()")
    end
    again()
    editor:keys("y")
    editor:misses("x.GHOST()")
    editor:misses("x.yGHOST()")
    for _, key in ipairs({ "<Left>", "<Esc>", "<C-c>", "<C-o>", "<Cmd>new<CR>" }) do
      editor:normal()
      again()
      editor:keys(key)
      editor:misses("x.GHOST()")
      check(not editor:lua("return require('eca.suggest').visible()"), "it is still there after " .. key)
      check(editor:lua("return vim.fn.maparg('<Tab>', 'i')") == "", "the key is still mapped after " .. key)
      editor:keys("<Esc>")
    end
    editor:normal()
    editor:command("close!")
    -- Whatever changes the text behind its back: it is not taken, and the key does what it always does.
    again()
    local taken = editor:lua([[
      vim.api.nvim_buf_set_lines(0, 0, 0, false, { "behind its back" })
      return require("eca.suggest").accept()
    ]])
    check(taken == false, "it was taken into another text")
    check(vim.deep_equal(editor:lines(), { "behind its back", "say GHOST()", "x." }), vim.inspect(editor:lines()))
    saved(editor)
  end)
end

tests["an answer for a text that has changed is not shown, and its request is cancelled"] = function()
  with_editor(function(editor)
    editor:lua(WATCH_REQUESTS)
    writes(editor, { "words 1500 3", "x." })
    editor:keys("<Cmd>Eca suggest<CR>")
    editor:sees("suggesting…")
    editors.wait("the request", function()
      return vim.deep_equal(editor:lua("return requests"), { "pending" })
    end)
    editor:keys("y")
    editors.wait("the cancelling", function()
      return vim.deep_equal(editor:lua("return requests"), { "pending", "cancel", "complete" })
        or vim.deep_equal(editor:lua("return requests"), { "pending", "cancel", "cancel" })
    end)
    editor:misses("suggesting…")
    -- And an answer that comes all the same finds another text.
    local visible = editor:lua([[
      local server = require("eca.server")
      local request = server.request
      server.request = function(_, params, callback)
        server.request = request
        answer = function()
          local at = { start = params.position, ["end"] = params.position }
          callback(nil, { items = { { text = "LATE", docVersion = params.docVersion, range = at } } })
        end
        return function() end
      end
      require("eca.suggest").ask()
      vim.api.nvim_buf_set_lines(0, 0, 0, false, { "changed" })
      answer()
      return require("eca.suggest").visible()
    ]])
    check(not visible, "an answer for another text is shown")
    lacks(editor:screen(), "LATE")
    saved(editor)
  end)
end

tests["suggestions come while typing only if they are wanted, and once per pause"] = function()
  with_editor(function(editor)
    editor:lua(WATCH_REQUESTS)
    writes(editor, { "say OFF_BY_DEFAULT", "x" })
    types_and_pauses(editor, ".a")
    check(#editor:lua("return requests") == 0, "it was asked before it was wanted")
    editor:command("Eca suggest on")
    editor:notified("each is a request to a model")
    editor:keys(".b.c")
    suggested(editor, "x.a.b.cOFF_BY_DEFAULT")
    check(suggestion_requests("x.a.b.c<ECA_TAG>") == 1, "the pause was not asked for once")
    -- While one is on its way, another takes its place.
    editor:normal()
    editor:lua("requests = {}")
    writes(editor, { "words 1500 3", "slow" })
    editor:keys("1")
    editors.wait("the first request", function()
      return suggestion_requests("slow1<ECA_TAG>") == 1
    end)
    editor:keys("2")
    editors.wait("the second request", function()
      return suggestion_requests("slow12<ECA_TAG>") == 1
    end)
    check(vim.tbl_contains(editor:lua("return requests"), "cancel"), "the first one was not cancelled")
    editor:normal()
    editor:command("Eca suggest off")
    editor:lua("requests = {}")
    writes(editor, { "say NEVER", "quiet" })
    types_and_pauses(editor, "3")
    check(not vim.tbl_contains(editor:lua("return requests"), "pending"), "it was asked although it is off")
    saved(editor)
  end, { suggest = { delay_ms = 60 } })
end

tests["suggestions while typing are turned on by a setting, and never in a chat"] = function()
  with_editor(function(editor)
    editor:lua(WATCH_REQUESTS)
    writes(editor, { "say BY_SETTING", "x" })
    editor:keys(".")
    suggested(editor, "x.BY_SETTING")
    editor:keys("<Esc>")
    editor:misses("x.BY_SETTING")
    editor:lua("requests = {}")
    editor:command("Eca open")
    editor:keys("hello")
    editor:sees("hello")
    editor:normal(":enew | setlocal buftype=nofile<CR>isay hidden")
    editor:sees("say hidden")
    editor:normal(":Eca suggest<CR>")
    editor:notified("suggestions are for files only")
    check(#editor:lua("return requests") == 0, "it was asked in a buffer that is not a file")
  end, { suggest = { auto = true, delay_ms = 0 } })
end

tests["keys are a suggestion's only while it is shown"] = function()
  with_editor(function(editor)
    editor:lua([[
      vim.keymap.set("i", "<Tab>", "GLOBAL")
      vim.keymap.set("i", "<C-]>", function() vim.api.nvim_put({ "OWN" }, "c", false, true) end, { buffer = true })
    ]])
    writes(editor, { "say +1", "" })
    editor:keys("<Tab>")
    editors.wait("the user's mapping", function()
      return editor:lines()[2] == "GLOBAL"
    end)
    editor:keys("<Cmd>Eca suggest<CR>")
    suggested(editor, "GLOBAL+1")
    editor:keys("<Tab>")
    editors.wait("the suggestion", function()
      return editor:lines()[2] == "GLOBAL+1"
    end)
    editor:keys("<Tab><C-]>")
    editors.wait("both mappings of the user", function()
      return editor:lines()[2] == "GLOBAL+1GLOBALOWN"
    end)
    -- A menu that is open has the first right.
    editor:keys("<Esc>ccGLOBAL<Cmd>Eca suggest<CR>")
    suggested(editor, "GLOBAL+1")
    editor:lua("package.loaded.cmp = { visible = function() return true end }")
    editor:keys("<Tab>")
    editors.wait("the user's mapping, while a menu is open", function()
      return editor:lines()[2] == "GLOBALGLOBAL"
    end)
    saved(editor)
  end)
end

tests["why there is no suggestion is told, once if nobody asked"] = function()
  with_editor(function(editor)
    local function told(part)
      return editor:lua([[
        local part = ...
        return #vim.tbl_filter(function(notice) return notice:find(part, 1, true) end, notices)
      ]], part)
    end
    writes(editor, { "fail 400 no luck today", "luck" })
    for number = 1, 3 do
      editor:keys(".")
      local text = "luck" .. ("."):rep(number) .. "<ECA_TAG>"
      editors.wait("request " .. number, function()
        return suggestion_requests(text) > 0 and editor:lua("return next(require('eca.server').client().requests) == nil")
      end)
    end
    check(told("no luck today") == 1, "told " .. told("no luck today") .. " times")
    editor:keys("<Cmd>Eca suggest<CR>")
    editors.wait("the answer to one who asked", function()
      return told("no luck today") == 2
    end)
    editor:normal()
    editor:command("checkhealth eca")
    has(table.concat(editor:lines(), "\n"), "no luck today")
  end, { suggest = { auto = true, delay_ms = 0 } })
  with_editor(function(editor)
    editor:lua([[
      asked = 0
      require("eca.server").request = function(_, _, callback)
        asked = asked + 1
        callback("not available", nil, { code = -32601, message = "not available" })
        return function() end
      end
      require("eca.server").client = function() return "the same" end
    ]])
    writes(editor, { "x" })
    editor:keys(".")
    editor:notified("this server makes no suggestions")
    editor:keys("..")
    editors.wait("what was typed", function()
      return editor:lines()[1] == "x..."
    end)
    check(editor:lua("return asked") == 1, "it was asked again")
    saved(editor)
  end, { suggest = { auto = true, delay_ms = 0 } })
end

tests["a context is removed again"] = function()
  with_editor(function(editor)
    editor:command("Eca remove")
    editor:notified("nothing was added")
    editor:command("Eca add notes.md")
    editor:command("Eca add src/main.rs")
    editor:sees("@src/main.rs")
    editor:lua("vim.ui.select = function(items, options, done) label = options.format_item(items[1]) done(items[1]) end")
    editor:command("Eca remove")
    editor:misses("@notes.md")
    check(editor:lua("return label") == "notes.md", "it has another name")
    editor:prompt("say seen")
    editor:says("\nseen")
    lacks(last_request(), "marzipan")
    has(last_request(), "fn main()")
  end)
end

tests["the cursor walks through the user's messages"] = function()
  with_editor(function(editor)
    for _, word in ipairs({ "one", "two", "three" }) do
      editor:prompt("say " .. word)
      editor:says("\n" .. word)
      editor:finish()
    end
    local function at(message)
      editors.wait("the cursor at " .. message, function()
        local row = editor:lua("return vim.fn.line('.')")
        return editor:lines()[row] == "You" and editor:lines()[row + 1] == message
      end)
    end
    editor:normal("<C-w>kG[[")
    at("say three")
    editor:keys("[[[[")
    at("say one")
    editor:keys("[[]]")
    at("say two")
  end)
end

tests["a variant is chosen, and the model's default again"] = function()
  with_editor(function(editor)
    editor:lua([[
      vim.ui.select = function(items, _, done) offered = items done(choice) end
      choice = "calm"
    ]])
    editor:command("Eca open")
    editors.wait("the variants", function()
      local session = "require('eca.session')"
      return #editor:lua(("return %s.selection(%s.chat(), 'variants') or {}"):format(session, session)) > 0
    end)
    editor:normal(":Eca variant<CR>")
    editor:sees("mock/scripted · calm")
    editor:prompt("say once")
    editor:finish()
    local all = editors.requests(model)
    check(all[#all].temperature == 0.1, "the variant was not used")
    editor:lua("choice = offered[1]")
    editor:command("Eca variant")
    editor:misses("calm")
    editor:prompt("say twice")
    editor:finish()
    all = editors.requests(model)
    check(all[#all].temperature == nil, "the variant is still used")
  end, nil, {
    providers = {
      mock = {
        api = "openai-chat",
        url = model.url,
        fetchModels = false,
        models = { scripted = { variants = { calm = { temperature = 0.1 } } } },
      },
    },
  })
end

tests["what is to be open is open"] = function()
  with_editor(function(editor, workspace)
    editor:prompt("think the cat sat\n+ " .. edit_call(workspace, "hello", "bye") .. "\nsay changed")
    editor:sees("src/main.rs proposed")
    editor:keys("a")
    editor:says("\nchanged")
    editor:finish()
    has(editor:transcript(), "\nthe cat sat")
    has(editor:transcript(), '+    println!("bye");')
    check(not editor:lua("return require('eca.diff').is_open()"), "the view is still open")
    -- Nobody is taken away from their own file.
    editor:normal()
    editor:command("1wincmd w")
    editor:command("Eca send " .. edit_call(workspace, "bye", "hi"))
    editor:called("waiting")
    check(not editor:lua("return require('eca.diff').is_open()"), "the view opened itself over the user's work")
    editor:command("Eca reject")
    editor:finish()
  end, { open = { reasoning = true, tool_calls = true, diff = true } })
end

tests["jobs are listed, read and killed"] = function()
  with_editor(function(editor)
    -- What comes from two pipes comes in any order.
    local function printed()
      local lines = editor:lines()
      table.sort(lines)
      return lines
    end
    local function prompt_height()
      return editor:lua("return vim.api.nvim_win_get_height(require('eca.panel').windows().input)")
    end
    local function listed()
      return editor:lua("return offered.eca_job[1]")
    end
    editor:lua([[
      offered = {}
      vim.ui.select = function(items, options, done)
        offered[options.kind] = vim.tbl_map(options.format_item or tostring, items)
        local number = choose(options.kind, items)
        done(items[number], number)
      end
      vim.fn.confirm = function(question) asked = question return decision end
    ]])
    editor:command("Eca jobs")
    editor:notified("there are no background jobs")
    local command = "echo first; echo oops >&2; while [ ! -e go ]; do sleep 0.1; done; printf 'sec%s\\n' ond; sleep 600"
    editor:prompt("call shell_command " .. vim.json.encode({ command = command, background = "watcher" }) .. "\nsay begun")
    editor:called("waiting")
    editor:normal("ga")
    editor:says("\nbegun")
    editor:finish()
    editor:lua("choose = function() return 1 end")
    editor:command("Eca jobs")
    editor:sees("job-1  running  watcher")
    check(vim.deep_equal(printed(), { "first", "oops" }), vim.inspect(printed()))
    has(listed(), "watcher")
    has(listed(), "echo first")
    check(vim.deep_equal(editor:lua("return offered.eca_job_action"), { "Read its output", "Kill it" }), "what can be done")
    check(editor:lua("return vim.bo.filetype .. vim.bo.buftype") == "eca-jobnofile", "not a scratch buffer")
    -- While it can be seen it is kept fresh.
    editors.write(editor.workspace.project .. "/go", "")
    editor:sees("second")
    -- A kill wants to be confirmed.
    editor:lua("decision = 2")
    editor:normal("<C-c>")
    editors.wait("the question", function()
      return editor:lua("return asked") == "Kill job-1?"
    end)
    has(editor:screen(), "job-1  running")
    editor:lua("decision = 1 choose = function(kind) return kind == 'eca_job' and 1 or 2 end")
    editor:command("Eca jobs")
    editor:notified("job-1 was killed")
    editor:sees("job-1  killed")
    editor:keys("q")
    editor:misses("job-1  killed")
    check(prompt_height() == 6, "the prompt has another height: " .. prompt_height())
    -- One that has ended is read at once.
    editor:lua("choose = function(kind) return kind == 'eca_job' and 1 or error(kind) end")
    editor:command("Eca jobs")
    editor:sees("job-1  killed")
    editor:sees("second")
    has(listed(), "killed")
    editor:lua("vim.bo.modifiable = true vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'stale' })")
    editor:keys("R")
    editors.wait("what it printed", function()
      return vim.deep_equal(printed(), { "first", "oops", "second" })
    end)
  end)
end

tests["MCP servers are listed, stopped and started"] = function()
  with_editor(function(editor)
    editor:lua([[
      vim.ui.select = function(items, options, done)
        offered = vim.tbl_map(options.format_item, items)
        done(items[1])
      end
    ]])
    editor:command("Eca open")
    editors.wait("the MCP server", function()
      return editor:lua("local one = require('eca.session').tool_servers.little return one and one.status") == "running"
    end)
    editor:command("Eca servers")
    check(vim.deep_equal(editor:lua("return offered"), { "Stop", "Disable" }), "of a running one")
    editor:notified("little  stopped")
    editor:command("Eca servers")
    check(vim.deep_equal(editor:lua("return offered"), { "Start", "Disable" }), "of a stopped one")
    editor:notified("little  running, 1 tool")
    editor:prompt("call little__greet {}\nsay greeted")
    editor:called("waiting")
    editor:normal("ga")
    editor:says("\ngreeted")
  end, nil, { mcpServers = { little = { command = "python3", args = { "-B", vim.fn.fnamemodify(here, ":p") .. "mcp_server.py" } } } })
  with_editor(function(editor)
    editor:command("Eca servers")
    editor:notified("no MCP servers are configured")
  end)
end

tests["a key is entered for a provider, unseen, and forgotten again"] = function()
  with_editor(function(editor)
    editor:lua([[
      vim.ui.select = function(items, options, done)
        offered = vim.tbl_map(options.format_item, items)
        for _, item in ipairs(items) do
          if item.id == "openai" then return done(item) end
        end
        done(nil)
      end
    ]])
    editor:keys(":Eca login<CR>")
    editor:sees("API key")
    editor:keys("sk-unseen")
    editor:sees("*********")
    lacks(editor:screen(), "sk-unseen")
    editor:keys("<CR>")
    editor:notified("logged in to openai")
    editor:command("Eca logout")
    editor:notified("logged out of openai")
    check(#editor:lua("return offered") == 1, "only what was entered can be forgotten")
    editor:keys(":Eca login openai<CR>")
    editor:sees("API key")
    editor:keys("<CR>")
    editor:notified("the login was given up")
    editor:command("Eca login nobody")
    editor:notified("nobody")
  end)
end

tests["a login in the browser is told when it is complete"] = function()
  with_editor(function(editor)
    -- The server's part is played here: a real one would want a provider with a login page.
    editor:lua([[
      local steps = {
        { action = "choose-method", methods = { { key = "device", label = "With a code" } } },
        { action = "device-code", url = "https://example.org/device", code = "AB-12", message = "Enter the code." },
      }
      require("eca.server").request = function(method, params, callback)
        sent = params
        callback(nil, table.remove(steps, 1))
      end
      vim.ui.select = function(items, _, done) done(items[1]) end
      vim.ui.open = function(url) opened = url return {} end
    ]])
    editor:command("Eca login somebody")
    editor:notified("Enter the code. The code is AB-12")
    check(editor:lua("return opened") == "https://example.org/device", "the page was not opened")
    check(editor:lua("return sent.method") == "device", "the method was not sent")
    editor:lua([[
      require("eca.handlers")["providers/updated"](nil, { id = "somebody", auth = { status = "authenticated" } })
    ]])
    editor:notified("logged in to somebody")
  end)
end

tests["the health check is content"] = function()
  with_editor(function(editor)
    editor:prompt("say hello")
    editor:says("\nhello")
    editor:finish()
    editor:command("checkhealth eca")
    local report = editor:lua("return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')")
    has(report, "the server runs: eca")
    has(report, "mock/scripted is selected")
    lacks(report, "ERROR")
  end)
end

tests["help tags are there"] = function()
  with_editor(function(editor)
    editor:command("helptags " .. vim.fn.fnameescape(vim.fn.fnamemodify(here .. "/../../../editors/neovim/doc", ":p")))
    for _, tag in ipairs({ "eca", ":Eca", "eca-setup", "eca-keys", "eca-suggest", "eca-jobs", "hl-EcaSuggestion" }) do
      editor:command("help " .. tag)
      check(editor:lua("return vim.fn.expand('%:t')") == "eca.txt", "no help on " .. tag)
    end
  end)
end

tests["sources for completion plugins"] = function()
  with_editor(function(editor)
    editor:prompt("say hello")
    editor:finish()
    editor:keys("<Esc>cc@note")
    editor:sees("@notes.md")
    editor:lua([[
      local line = "@note"
      require("eca.blink").new():get_completions({ bufnr = 0 + vim.api.nvim_get_current_buf(), cursor = { 1, 5 }, line = line },
        function(result) blink = result end)
      require("eca.cmp").new():complete({ context = { cursor = { row = 1, col = 6 }, cursor_line = line } },
        function(result) cmp = result end)
    ]])
    for _, plugin in ipairs({ "blink", "cmp" }) do
      local item = editors.wait("items for " .. plugin, function()
        local result = editor:lua("return _G[...] or vim.NIL", plugin)
        return result ~= vim.NIL and result.items[1]
      end)
      check(item.textEdit.newText == "@notes.md", vim.inspect(item))
      check(item.textEdit.range.start.character == 0 and item.textEdit.range["end"].character == 5, vim.inspect(item))
    end
  end)
end

tests["pure parts"] = function()
  vim.opt.rtp:prepend(vim.fn.fnamemodify(here .. "/../../../editors/neovim", ":p"))
  local blocks, diff, complete = require("eca.blocks"), require("eca.diff"), require("eca.complete")
  -- A command must be shown as it is, whatever is in it.
  check(blocks.code("ls *.rs") == "`ls *.rs`", "code")
  check(blocks.code("echo `id`") == "`` echo `id` ``", "back quotes")
  check(not blocks.code("one\ntwo"):find("\n"), "a line break in a title")
  for _, case in ipairs({ { "```lua\nx", "```" }, { "```\nx\n```", nil }, { "~~~~\n```\n", "~~~~" }, { "a ``` b", nil } }) do
    local open = blocks.open_fence({ kind = "assistant", text = case[1] })
    check(open == case[2], ("%q leaves open %s"):format(case[1], tostring(open)))
  end
  for _, case in ipairs({
    { "/co", 3, 1, "command", "co", 0 },
    { "/co", 3, 2 },
    { "see /co", 7, 1 },
    { "see @ma", 7, 1, "context", "ma", 4 },
    { "mail a@b", 8, 1 },
    { "(@x", 3, 1, "context", "x", 1 },
    { "two @a #b", 9, 4, "file", "b", 7 },
    { "@done now", 9, 1 },
  }) do
    local token = complete.token(case[1], case[2], case[3]) or {}
    check(token.kind == case[4] and token.query == case[5] and token.start == case[6], vim.inspect({ case, token }))
  end
  -- Whatever diff Neovim makes of two texts, applying it to the first gives the second.
  math.randomseed(7)
  for _ = 1, 300 do
    local before, after = {}, {}
    for _ = 1, math.random(0, 12) do
      local line = tostring(math.random(4))
      if math.random() < 0.8 then
        table.insert(before, line)
      end
      if math.random() < 0.8 then
        table.insert(after, math.random() < 0.9 and line or "new")
      end
    end
    local function text(lines)
      return #lines > 0 and table.concat(lines, "\n") .. "\n" or ""
    end
    local patch = vim.diff(text(before), text(after), { ctxlen = math.random(0, 3) })
    if patch ~= "" then
      local applied = diff.apply(before, patch)
      check(vim.deep_equal(applied, after), vim.inspect({ before, patch, applied }))
    end
  end
  local ghost = require("eca.ghost")
  for _, case in ipairs({
    { "one two", "one two", "one" },
    { "  (a)\nb", "  (a)", "  (" },
    { "\n  x = 1\n", "\n  x = 1", "\n  x" },
    { "größe_1.x", "größe_1.x", "größe_1" },
    { " \t", " \t", " \t" },
    { "-> b", "-> b", "->" },
  }) do
    local line, word = ghost.first_line(case[1]), ghost.first_word(case[1])
    check(line == case[2] and word == case[3], vim.inspect({ case, line, word }))
  end
  check(ghost.without_tabs("\ta\tü\tb", 3, 4) == " a   ü   b", ghost.without_tabs("\ta\tü\tb", 3, 4))
  check(diff.apply({ "other" }, "@@ -1 +1 @@\n-one\n+two\n") == nil, "a diff that does not fit")
end

local good, bad = 0, 0
local names = vim.tbl_keys(tests)
table.sort(names)
local only = vim.env.ECA_TEST_ONLY
for _, name in ipairs(names) do
  if not only or name:find(only, 1, true) then
    local ok, err = xpcall(tests[name], debug.traceback)
    io.stdout:write((ok and "ok " or "FAILED ") .. name .. (ok and "" or ": " .. tostring(err)) .. "\n")
    good, bad = good + (ok and 1 or 0), bad + (ok and 0 or 1)
  end
end
vim.fn.jobstop(model.job)
io.stdout:write(("%d passed, %d failed\n"):format(good, bad))
vim.cmd(bad == 0 and "qall!" or "cquit")
