-- Neovim's own LSP client against the server: handshake, buffer traffic, a chat with the offline
-- guide, and a clean stop. Written for 0.7, the version of Debian 12, and good for newer ones: it
-- is an old client, but a real one, and old ones are the stricter test of what a server may send.

local HANG_GUARD_MS = 30000

local function wait(what, condition)
  if not vim.wait(HANG_GUARD_MS, condition, 10) then
    error("hang guard: " .. what, 2)
  end
end

local function check(condition, what)
  if not condition then
    error(what, 2)
  end
end

-- `settings` go over the usual configuration.
local function start(capabilities, settings)
  local home = vim.fn.tempname()
  vim.fn.mkdir(home, "p")
  local config = home .. "/config.json"
  settings = vim.tbl_extend("force", { localDiscovery = false }, settings or {})
  vim.fn.writefile({ vim.fn.json_encode(settings) }, config)
  local seen = { contents = {}, messages = {}, errors = {}, config = nil, exit = nil, initialized = false }
  local id = vim.lsp.start_client({
    name = "eca",
    cmd = { vim.env.ECA_BINARY, "server", "--config-file", config },
    cmd_env = { XDG_DATA_HOME = home, XDG_CACHE_HOME = home },
    root_dir = home,
    capabilities = capabilities,
    handlers = {
      ["chat/contentReceived"] = function(_, params)
        table.insert(seen.contents, params)
      end,
      ["config/updated"] = function(_, params)
        seen.config = params
      end,
      ["tool/serverUpdated"] = function() end,
      ["chat/opened"] = function() end,
      ["$/showMessage"] = function(_, params)
        table.insert(seen.messages, params.message)
      end,
      ["chat/statusChanged"] = function() end,
    },
    on_init = function()
      seen.initialized = true
    end,
    on_error = function(code, err)
      table.insert(seen.errors, vim.inspect({ code, err }))
    end,
    on_exit = function(code, signal)
      seen.exit = { code = code, signal = signal }
    end,
  })
  check(id, "the client did not start")
  wait("initialize", function()
    return seen.initialized
  end)
  wait("config/updated", function()
    return seen.config
  end)
  return vim.lsp.get_client_by_id(id), seen, home
end

local function request(client, method, params)
  local answer
  client.request(method, params, function(err, result)
    answer = { err = err, result = result }
  end)
  wait("response to " .. method, function()
    return answer
  end)
  return answer
end

local function pieces(seen)
  local found = {}
  for _, params in ipairs(seen.contents) do
    if params.role == "assistant" and params.content.type == "text" then
      table.insert(found, params.content.text)
    end
  end
  return found
end

local function finish(seen)
  wait("end of the turn", function()
    local last = seen.contents[#seen.contents]
    return last and last.content.state == "finished"
  end)
end

local function stop(client, seen)
  client.stop()
  wait("exit of the server", function()
    return seen.exit
  end)
  check(seen.exit.code == 0 and seen.exit.signal == 0, "not a clean exit: " .. vim.inspect(seen.exit))
  check(#seen.errors == 0, "the client met errors: " .. table.concat(seen.errors, "\n"))
end

local tests = {}

tests["a chat with the guide"] = function()
  local capabilities = vim.lsp.protocol.make_client_capabilities()
  capabilities.codeAssistant = { chat = true }
  local client, seen = start(capabilities)
  check(vim.tbl_contains(seen.config.chat.models, "eca/guide"), "the guide is not offered")
  local answer = request(client, "chat/prompt", { message = "stream 60 words" })
  check(answer.result and answer.result.status == "prompting", vim.inspect(answer))
  finish(seen)
  local text = table.concat(pieces(seen))
  check(#pieces(seen) > 10, "the text came in " .. #pieces(seen) .. " pieces")
  check(#vim.split(vim.trim(text), "%s+") == 60, "not 60 words: " .. text)
  stop(client, seen)
end

tests["the traffic of a plain LSP client is harmless"] = function()
  local client, seen, home = start(nil)
  local file = home .. "/notes.txt"
  vim.fn.writefile({ "one", "two" }, file)
  vim.cmd("edit " .. file)
  check(vim.lsp.buf_attach_client(0, client.id), "the buffer was not attached")
  vim.api.nvim_buf_set_lines(0, 0, 1, false, { "eins" })
  vim.cmd("silent write")
  vim.cmd("bdelete")
  local answer = request(client, "chat/list", {})
  check(answer.result and #answer.result.chats == 0, vim.inspect(answer))
  stop(client, seen)
end

-- A model that does what the prompt says. Ends with `vim.fn.jobstop`.
local function scripted_model()
  local address
  local here = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h")
  local job = vim.fn.jobstart({ "python3", "-B", here .. "/../mock_model.py" }, {
    on_stdout = function(_, lines)
      address = address or (lines[1] ~= "" and lines[1]) or nil
    end,
  })
  check(job > 0, "the scripted model did not start")
  wait("the address of the model", function()
    return address
  end)
  return job, address
end

tests["what is typed and not saved is changed in the buffer"] = function()
  local job, address = scripted_model()
  local mock = { api = "openai-chat", url = address, key = "none", fetchModels = false }
  mock.models = { m = vim.empty_dict() }
  local client, seen, home = start(nil, {
    defaultModel = "mock/m",
    chat = { title = false },
    providers = { mock = mock },
    toolCall = { approval = { byDefault = "allow" } },
  })
  local file = home .. "/notes.txt"
  vim.fn.writefile({ "one", "two" }, file)
  vim.cmd("edit " .. file)
  check(vim.lsp.buf_attach_client(0, client.id), "the buffer was not attached")
  vim.api.nvim_buf_set_lines(0, 0, 1, false, { "ein 😀 typed", "and more" })
  local arguments = { path = file, original_content = "typed\nand", new_content = "TYPED\nAND" }
  local prompt = "call eca__edit_file " .. vim.fn.json_encode(arguments)
  check(request(client, "chat/prompt", { message = prompt }).result, "the prompt was refused")
  finish(seen)
  local lines = vim.api.nvim_buf_get_lines(0, 0, -1, false)
  check(vim.deep_equal(lines, { "ein 😀 TYPED", "AND more", "two" }), vim.inspect({ lines, seen.contents }))
  check(vim.bo.modified, "the buffer is still the user's to save")
  check(vim.deep_equal(vim.fn.readfile(file), { "one", "two" }), "the disk was written")
  check(#seen.messages > 0 and seen.messages[#seen.messages]:find("save"), vim.inspect(seen.messages))
  vim.cmd("bdelete!")
  vim.fn.jobstop(job)
  stop(client, seen)
end

tests["an unknown method is an error of the request"] = function()
  local client, seen = start(nil)
  local answer = request(client, "no/suchMethod", {})
  check(answer.err and answer.err.code == -32601, vim.inspect(answer))
  stop(client, seen)
end

tests["stop in mid-stream"] = function()
  local client, seen = start(nil)
  local chat = request(client, "chat/prompt", { message = "stream 20000 words" }).result.chatId
  wait("some text", function()
    return #pieces(seen) >= 5
  end)
  client.notify("chat/promptStop", { chatId = chat })
  finish(seen)
  check(#pieces(seen) < 20000, "the answer was not cut")
  stop(client, seen)
end

local good, bad = 0, 0
local lines = {}
for name, test in pairs(tests) do
  local ok, err = xpcall(test, debug.traceback)
  table.insert(lines, (ok and "ok " or "FAILED ") .. name .. (ok and "" or ": " .. tostring(err)))
  good, bad = good + (ok and 1 or 0), bad + (ok and 0 or 1)
end
-- What the client itself complained about is in its log and in its messages.
local log = io.open(vim.lsp.get_log_path())
local complaints = log and log:read("*a") or ""
for line in complaints:gmatch("[^\n]+") do
  -- Everything the server writes on stderr is logged as an error; only the rest is the client's.
  if line:find("^%[ERROR%]") and not line:find('"stderr"', 1, true) then
    table.insert(lines, "FAILED the log of the client: " .. line)
    bad = bad + 1
  end
end
if vim.v.errmsg ~= "" then
  table.insert(lines, "FAILED an error in the editor: " .. vim.v.errmsg)
  bad = bad + 1
end
table.insert(lines, string.format("%d passed, %d failed\n", good, bad))
io.stdout:write("\n" .. table.concat(lines, "\n"))
vim.cmd(bad == 0 and "qall!" or "cquit")
