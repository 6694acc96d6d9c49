--- The server's process and the connection to it, on Neovim's own LSP client.

local config = require("eca.config")

local M = {
  --- "stopped", "starting", "running" or "failed".
  state = "stopped",
  --- What the server said of itself when it started.
  info = nil,
  welcome = nil,
}

local client ---@type vim.lsp.Client?
local waiting = {} -- What to do once the server runs.
local leaving = false
local deaths = {} -- When the server died, in seconds.
local listeners = {} ---@type fun(code: integer, signal: integer, again: boolean)[]
local method_call = vim.fn.has("nvim-0.11") == 1

local function capabilities()
  local all = vim.lsp.protocol.make_client_capabilities()
  all.codeAssistant = {
    chat = true,
    rewrite = true,
    editor = { diagnostics = true, definition = true, references = true },
    chatCapabilities = { askQuestion = true },
  }
  return all
end

--- A hidden buffer to attach the client to: Neovim 0.10 cannot start one without, and the user's
--- buffers are none of this server's business.
local function anchor()
  local buffer = vim.fn.bufadd("eca://server")
  vim.bo[buffer].buftype = "nofile"
  vim.bo[buffer].swapfile = false
  vim.fn.bufload(buffer)
  return buffer
end

--- Calls `listener` when the server ends without having been asked to.
function M.on_death(listener)
  table.insert(listeners, listener)
end

local function flush(err)
  local callbacks = waiting
  waiting = {}
  for _, callback in ipairs(callbacks) do
    callback(err)
  end
end

local function refresh()
  require("eca.panel").refresh()
end

local function died(code, signal)
  client = nil
  if leaving then
    leaving = false
    M.state = "stopped"
    flush("the server was stopped")
    refresh()
    return
  end
  local now = vim.uv.now() / 1000
  local limit = config.options.restart
  deaths = vim.tbl_filter(function(time)
    return now - time < limit.seconds
  end, deaths)
  table.insert(deaths, now)
  local was_running = M.state == "running"
  -- A server that never came up will not do so the next time either.
  local again = was_running and #deaths <= limit.attempts
  M.state = again and "starting" or "failed"
  for _, listener in ipairs(listeners) do
    listener(code, signal, again)
  end
  if again then
    M.state = "stopped"
    M.start()
  else
    flush(("the server ended with code %d, signal %d; `:Eca log` shows why"):format(code, signal))
  end
  refresh()
end

local function cannot_start(reason)
  M.state = "failed"
  flush(reason)
  refresh()
end

local function folders()
  return vim.tbl_map(function(root)
    return { uri = vim.uri_from_fname(root), name = vim.fs.basename(root) }
  end, config.roots())
end

--- Starts the server, if it does not run, and calls `callback(err)` when it does.
function M.start(callback)
  if M.state == "running" then
    if callback then
      callback(nil)
    end
    return
  end
  if callback then
    table.insert(waiting, callback)
  end
  if M.state == "starting" then
    return
  end
  M.state = "starting"
  local command = config.options.cmd
  if vim.fn.executable(command[1]) == 0 then
    return cannot_start(("`%s` is not an executable program; see `:checkhealth eca`"):format(command[1]))
  end
  local workspace = folders()
  local id = vim.lsp.start({
    name = "eca",
    cmd = command,
    cmd_env = config.options.cmd_env,
    cmd_cwd = vim.uri_to_fname(workspace[1].uri),
    root_dir = vim.uri_to_fname(workspace[1].uri),
    workspace_folders = workspace,
    init_options = config.options.init_options or vim.empty_dict(),
    capabilities = capabilities(),
    handlers = require("eca.handlers"),
    flags = { exit_timeout = 3000 },
    on_init = function(started, result)
      client = started
      M.state = "running"
      M.info = result.serverInfo
      M.welcome = result.chatWelcomeMessage
      flush(nil)
      refresh()
    end,
    on_exit = vim.schedule_wrap(died),
  }, {
    bufnr = anchor(),
    attach = false,
    silent = true,
    reuse_client = function()
      return false
    end,
  })
  if not id then
    cannot_start(("`%s` could not be started"):format(table.concat(command, " ")))
  end
end

--- Ends the server; `callback` is called when it has ended.
function M.stop(callback)
  if not client then
    if callback then
      callback()
    end
    return
  end
  leaving = true
  if callback then
    table.insert(waiting, callback)
  end
  if method_call then
    client:stop()
  else
    client.stop()
  end
end

function M.restart()
  deaths = {}
  M.stop(function()
    M.state = "stopped"
    M.start()
  end)
end

--- Sends a request, as soon as the server runs; `callback(err, result)` always gets its turn, and
--- `err` is a sentence. Returns a function that takes the request back: then nothing is called.
function M.request(method, params, callback)
  callback = callback or function() end
  local over, cancel = false, nil
  local function answer(...)
    if not over then
      over = true
      callback(...)
    end
  end
  M.start(function(problem)
    if problem or over then
      return answer(problem)
    end
    local function answered(err, result)
      answer(err and (err.message or vim.inspect(err)) or nil, result, err)
    end
    local sent, id
    local asked = client
    if method_call then
      sent, id = asked:request(method, params, answered)
    else
      sent, id = asked.request(method, params, answered)
    end
    if not sent then
      return answer("the server is gone")
    end
    cancel = function()
      if asked ~= client then
        return
      elseif method_call then
        asked:cancel_request(id)
      else
        asked.cancel_request(id)
      end
    end
  end)
  return function()
    if not over then
      over = true
      if cancel then
        cancel()
      end
    end
  end
end

--- A request whose failure the user should hear of.
function M.ask(method, params, callback)
  M.request(method, params, function(err, result)
    if err then
      require("eca.notice").error(err)
    elseif callback then
      callback(result)
    end
  end)
end

--- Waits for the answer, up to two seconds; nil if there is none. For functions that Neovim wants to
--- be synchronous, and only when the server runs.
function M.request_sync(method, params)
  if M.state ~= "running" or not client then
    return nil
  end
  local answer
  if method_call then
    answer = client:request_sync(method, params, 2000)
  else
    answer = client.request_sync(method, params, 2000)
  end
  return answer and answer.result
end

--- Sends a notification; nothing happens if the server does not run.
function M.notify(method, params)
  if not client then
    return false
  end
  if method_call then
    return client:notify(method, params)
  end
  return client.notify(method, params)
end

--- The LSP client, for the health check and for tests.
function M.client()
  return client
end

return M
