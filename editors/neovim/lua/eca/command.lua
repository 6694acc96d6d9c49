--- `:Eca`, and what may stand after it.

local M = {}

local function actions()
  return require("eca.actions")
end

local function eca()
  return require("eca")
end

--- A subcommand is called with what stands behind it and with Neovim's table about the call.
local subcommands = {
  open = function()
    eca().open()
  end,
  toggle = function()
    eca().toggle()
  end,
  close = function()
    require("eca.panel").close()
  end,
  send = function(rest, call)
    if call.range > 0 then
      eca().add_lines(call.line1, call.line2)
    end
    if rest == "" then
      return require("eca.prompt").send(require("eca.session").chat(), call.bang)
    end
    eca().send(rest, call.bang)
  end,
  add = function(rest, call)
    if rest == "cursor" then
      eca().add_cursor()
    elseif rest ~= "" then
      eca().add_path(rest)
    elseif call.range > 0 then
      eca().add_lines(call.line1, call.line2)
    else
      eca().add_lines()
    end
  end,
  remove = function()
    actions().remove()
  end,
  rewrite = function(rest, call)
    local first = call.range > 0 and call.line1 or vim.fn.line(".")
    local last = call.range > 0 and call.line2 or first
    require("eca.rewrite").start(first, last, rest)
  end,
  stop = function()
    actions().stop()
  end,
  approve = function(_, call)
    if call.bang then
      actions().always()
    else
      actions().approve()
    end
  end,
  answer = function()
    require("eca.question").again()
  end,
  reject = function()
    actions().reject()
  end,
  diff = function()
    actions().diff()
  end,
  model = function(rest)
    actions().model(rest ~= "" and rest or nil)
  end,
  agent = function(rest)
    actions().agent(rest ~= "" and rest or nil)
  end,
  variant = function()
    actions().variant()
  end,
  trust = function()
    actions().trust()
  end,
  new = function()
    actions().new()
  end,
  chats = function()
    actions().chats()
  end,
  rename = function(rest)
    actions().rename(rest ~= "" and rest or nil)
  end,
  clear = function()
    actions().clear()
  end,
  delete = function()
    actions().delete()
  end,
  rollback = function()
    actions().rollback()
  end,
  fork = function()
    actions().fork()
  end,
  suggest = function(rest)
    local suggest = require("eca.suggest")
    if rest == "" then
      suggest.ask()
    elseif rest == "on" then
      suggest.enable()
      require("eca.notice").show("suggestions come while you type; each is a request to a model")
    elseif rest == "off" then
      suggest.disable()
      require("eca.notice").show("suggestions come only when you ask for one")
    else
      require("eca.notice").error(("`%s` is neither `on` nor `off`"):format(rest))
    end
  end,
  jobs = function()
    require("eca.jobs").pick()
  end,
  servers = function()
    require("eca.servers").pick()
  end,
  login = function(rest)
    require("eca.providers").login(rest ~= "" and rest or nil)
  end,
  logout = function(rest)
    require("eca.providers").logout(rest ~= "" and rest or nil)
  end,
  restart = function()
    require("eca.server").restart()
  end,
  log = function()
    vim.cmd.tabedit(vim.fn.fnameescape(vim.lsp.get_log_path()))
  end,
}

function M.run(call)
  local name, rest = call.args:match("^(%S*)%s*(.-)%s*$")
  local subcommand = subcommands[name == "" and "toggle" or name]
  if not subcommand then
    return require("eca.notice").error(("`%s` is not a command of :Eca"):format(name))
  end
  subcommand(rest, call)
end

local function starting_with(words, lead)
  words = vim.tbl_filter(function(word)
    return vim.startswith(word, lead)
  end, words)
  table.sort(words)
  return words
end

function M.complete(lead, line)
  local name, rest = line:match("^.-Eca!?%s+(%S+)%s+(.*)$")
  if not name then
    return starting_with(vim.tbl_keys(subcommands), lead)
  end
  local session = package.loaded["eca.session"]
  if name == "model" and session then
    return starting_with(session.models, rest)
  elseif name == "agent" and session then
    return starting_with(session.agents, rest)
  elseif name == "suggest" then
    return starting_with({ "on", "off" }, lead)
  elseif name == "add" then
    return vim.list_extend(starting_with({ "cursor" }, lead), vim.fn.getcompletion(lead, "file"))
  end
  return {}
end

return M
