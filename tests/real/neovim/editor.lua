-- A real Neovim in a process of its own, driven by keys, for the tests of the plugin.
--
-- The editor runs without a terminal, but it draws: what a user would see can be read from its screen.

local M = {}

local HANG_GUARD_MS = 30000
local here = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":h")
local plugin = vim.fn.fnamemodify(here .. "/../../../editors/neovim", ":p")
local program = vim.env.ECA_NEOVIM or vim.v.progpath

local Editor = {}
Editor.__index = Editor

--- The scripted model; ends when its stdin is closed, at the latest with this process.
function M.start_model()
  local address
  local job = vim.fn.jobstart({ "python3", "-B", here .. "/../mock_model.py" }, {
    on_stdout = function(_, lines)
      address = address or (lines[1] ~= "" and lines[1] or nil)
    end,
  })
  M.wait("the scripted model", function()
    return address
  end)
  return { url = address, job = job }
end

--- The bodies of the requests that the model got.
function M.requests(model)
  local result = vim.system({ "curl", "-s", "-m", "20", model.url .. "/requests" }, { text = true }):wait()
  return vim.json.decode(result.stdout)
end

function M.wait(what, condition)
  local value
  local ok = vim.wait(HANG_GUARD_MS, function()
    value = condition()
    return value
  end, 15)
  if not ok then
    error("hang guard: " .. what, 2)
  end
  return value
end

function M.write(path, text)
  vim.fn.mkdir(vim.fn.fnamemodify(path, ":h"), "p")
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
end

function M.read(path)
  local file = assert(io.open(path))
  local text = file:read("*a")
  file:close()
  return text
end

--- A folder with a small program in it, and a home with a configuration; `more` goes over it.
function M.workspace(model, more)
  local root = vim.fn.tempname()
  vim.fn.mkdir(root, "p")
  root = assert(vim.uv.fs_realpath(root))
  M.write(root .. "/project/src/main.rs", 'fn main() {\n    println!("hello");\n}\n')
  M.write(root .. "/project/notes.md", "# Notes\n\nThe secret word is marzipan.\n")
  M.write(root .. "/config.json", vim.json.encode(vim.tbl_extend("force", {
    localDiscovery = false,
    modelsDev = false,
    chat = { title = false },
    defaultModel = "mock/scripted",
    providers = {
      mock = {
        api = "openai-chat",
        url = model.url,
        fetchModels = false,
        models = { scripted = { limit = { context = 32000, output = 4000 } }, other = vim.empty_dict() },
      },
    },
  }, more or {})))
  return { root = root, project = root .. "/project", main = root .. "/project/src/main.rs" }
end

--- Starts an editor in a workspace. `settings` are the plugin's.
function M.open(workspace, settings)
  local environment = {
    HOME = workspace.root .. "/home",
    XDG_CONFIG_HOME = workspace.root .. "/home",
    XDG_DATA_HOME = workspace.root .. "/home",
    XDG_STATE_HOME = workspace.root .. "/home",
    XDG_CACHE_HOME = workspace.root .. "/home",
  }
  vim.fn.mkdir(environment.HOME, "p")
  local channel = vim.fn.jobstart({
    program,
    "--clean",
    "-n",
    "--headless",
    "--embed",
    "--cmd",
    "set rtp^=" .. vim.fn.fnameescape(plugin),
    workspace.main,
  }, { rpc = true, cwd = workspace.project, env = environment })
  assert(channel > 0, "the editor could not be started")
  local self = setmetatable({ channel = channel, workspace = workspace }, Editor)
  self:lua([[
    vim.o.columns, vim.o.lines = 120, 40
    notices = {}
    vim.notify = function(message) table.insert(notices, message) end
  ]])
  settings = vim.tbl_deep_extend("force", {
    cmd = { vim.env.ECA_BINARY, "server", "--config-file", workspace.root .. "/config.json" },
  }, settings or {})
  self:lua("require('eca').setup(...)", settings)
  return self
end

--- Runs Lua in the editor.
function Editor:lua(code, ...)
  return vim.fn.rpcrequest(self.channel, "nvim_exec_lua", code, { ... })
end

--- Types, in Vim's notation of keys.
function Editor:keys(keys)
  vim.fn.rpcrequest(self.channel, "nvim_input", keys)
end

--- Leaves whatever mode it is in. By itself, because a `<C-c>` that is typed too early interrupts.
function Editor:normal(keys)
  self:keys("<Esc>")
  M.wait("normal mode", function()
    return vim.fn.rpcrequest(self.channel, "nvim_get_mode").mode == "n"
  end)
  self:keys(keys or "")
end

function Editor:command(line)
  vim.fn.rpcrequest(self.channel, "nvim_command", line)
end

--- What is in the transcript of the chat that is shown.
function Editor:transcript()
  return self:lua([[
    local chat = require("eca.session").current
    local buffer = chat and chat.transcript.buffer
    return buffer and table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), "\n") or ""
  ]])
end

--- The lines of the buffer that the cursor is in.
function Editor:lines()
  return self:lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)")
end

--- What is on the screen.
function Editor:screen()
  return self:lua([[
    vim.cmd.redraw()
    local lines = {}
    for row = 1, vim.o.lines do
      local cells = {}
      for column = 1, vim.o.columns do
        table.insert(cells, vim.fn.screenstring(row, column))
      end
      table.insert(lines, (table.concat(cells):gsub("%s+$", "")))
    end
    return table.concat(lines, "\n")
  ]])
end

function Editor:sees(text)
  M.wait(("%q on the screen"):format(text), function()
    return self:screen():find(text, 1, true)
  end)
end

function Editor:says(text)
  M.wait(("%q in the transcript"):format(text), function()
    return self:transcript():find(text, 1, true)
  end)
end

function Editor:notified(text)
  M.wait(("the notice %q"):format(text), function()
    return self:lua("return table.concat(notices, '\\n')"):find(text, 1, true)
  end)
end

--- Waits until something that was on the screen is there no more.
function Editor:misses(text)
  M.wait(("the screen without %q"):format(text), function()
    return not self:screen():find(text, 1, true)
  end)
end

--- Whether the chat's turn is over.
function Editor:idle()
  return self:lua("local chat = require('eca.session').current return chat ~= nil and not chat:busy()")
end

--- Types a message into the prompt and sends it.
function Editor:prompt(message)
  self:command("Eca open")
  self:keys("<Esc>ggdGi" .. message:gsub("<", "<lt>"):gsub("\n", "<CR>") .. "<C-s>")
  M.wait("the echo of " .. message, function()
    return self:transcript():find(vim.trim(message:match("^[^\n]*")), 1, true)
  end)
end

function Editor:finish()
  M.wait("the end of the turn", function()
    return self:idle()
  end)
end

--- The state of the last call of a tool.
function Editor:call()
  return self:lua([[
    local found
    for _, block in ipairs(require("eca.session").current.transcript.blocks) do
      found = block.kind == "tool" and block.state or found
    end
    return found or "none"
  ]])
end

function Editor:called(state)
  M.wait("a call that is " .. state, function()
    return self:call() == state
  end)
end

--- Process ids of the servers that this editor started.
function Editor:server_pids()
  return vim.api.nvim_get_proc_children(vim.fn.jobpid(self.channel))
end

--- Leaves as a user does, and looks whether everything went well.
function Editor:close()
  local errmsg = self:lua("return vim.v.errmsg")
  local messages = self:lua("return vim.fn.execute('messages')")
  local log = self:lua("return vim.lsp.get_log_path()")
  local servers = self:server_pids()
  vim.fn.rpcnotify(self.channel, "nvim_command", "qall!")
  local code = vim.fn.jobwait({ self.channel }, HANG_GUARD_MS)[1]
  if code ~= 0 then
    error("the editor ended with " .. code)
  elseif errmsg ~= "" then
    error("an error in the editor: " .. errmsg .. "\n" .. messages)
  end
  M.wait("the end of the server", function()
    return vim.iter(servers):all(function(pid)
      return vim.uv.kill(pid, 0) ~= 0
    end)
  end)
  local file = io.open(log)
  for line in (file and file:read("*a") or ""):gmatch("[^\n]+") do
    -- Everything that the server writes on stderr is logged as an error; only the rest is the client's.
    if line:find("^%[ERROR%]") and not line:find('"stderr"', 1, true) then
      error("the log of the client: " .. line)
    end
  end
end

return M
