--- The windows of a chat: the transcript above, the prompt below, and the bars over them.

local config = require("eca.config")

local M = {}

local windows = {} -- transcript and input
--- The last window that belongs to the user's work.
local elsewhere

local function valid(window)
  return window and vim.api.nvim_win_is_valid(window)
end

local function session()
  return require("eca.session")
end

--- Whether the panel is open in this tab page.
function M.is_open()
  return valid(windows.transcript)
    and valid(windows.input)
    and vim.api.nvim_win_get_tabpage(windows.transcript) == vim.api.nvim_get_current_tabpage()
end

function M.windows()
  return windows
end

--- The window of the user's work: where the cursor is, if it is not in the panel.
function M.work_window()
  local here = vim.api.nvim_get_current_win()
  if here ~= windows.transcript and here ~= windows.input then
    return here
  end
  return valid(elsewhere) and elsewhere or nil
end

local function width()
  local wanted = config.options.window.width
  return wanted < 1 and math.floor(vim.o.columns * wanted) or wanted
end

local function dress(window, wrap_indent)
  local options = {
    number = false,
    relativenumber = false,
    signcolumn = "no",
    foldcolumn = "0",
    foldenable = false,
    list = false,
    spell = false,
    wrap = true,
    linebreak = true,
    breakindent = wrap_indent,
    cursorline = false,
    colorcolumn = "",
    statuscolumn = "",
    winfixwidth = true,
    fillchars = "eob: ",
  }
  for name, value in pairs(options) do
    vim.api.nvim_set_option_value(name, value, { win = window, scope = "local" })
  end
end

local function escape(text)
  return (text:gsub("%%", "%%%%"):gsub("\n", " "))
end

local function tokens(number)
  return number >= 1000 and ("%.1fk"):format(number / 1000):gsub("%.0k", "k") or tostring(number)
end

--- How full the context window is, and what the chat has cost.
function M.usage(chat)
  local usage = chat.usage
  if not usage or not usage.sessionTokens then
    return nil
  end
  local text = tokens(usage.sessionTokens)
  local limit = usage.limit and usage.limit.context
  if limit and limit > 0 then
    text = ("%s/%s (%d%%)"):format(text, tokens(limit), math.floor(usage.sessionTokens * 100 / limit + 0.5))
  end
  if usage.sessionCost then
    text = text .. " $" .. usage.sessionCost
  end
  return text
end

--- What the chat is doing, in a few words; nil if nothing.
function M.activity(chat)
  local server = require("eca.server")
  if server.state == "failed" then
    return "server not running", "EcaToolFailed"
  elseif server.state == "starting" then
    return "starting", "EcaToolRunning"
  elseif #chat:waiting() > 0 then
    return "waiting for your approval", "EcaToolWaiting"
  elseif require("eca.question").waits(chat) then
    return "waiting for your answer", "EcaToolWaiting"
  elseif chat.status == "stopping" then
    return "stopping", "EcaToolRunning"
  elseif chat:busy() then
    return chat.progress or "working", "EcaToolRunning"
  end
end

local function transcript_bar(chat)
  local selection = session().selection
  local left = " %#EcaTitle#" .. escape(chat.title or "New chat") .. "%*"
  local parts = {}
  for _, what in ipairs({ "model", "variant", "agent" }) do
    local value = selection(chat, what)
    if value then
      table.insert(parts, escape(value))
    end
  end
  if selection(chat, "trust") == true then
    table.insert(parts, "%#EcaToolWaiting#trusted%*")
  end
  local right = table.concat(parts, " · ")
  local usage = M.usage(chat)
  if usage then
    right = right .. " · " .. escape(usage)
  end
  return left .. "%=%<" .. right .. " "
end

local function input_bar(chat)
  local activity, group = M.activity(chat)
  local keys = config.options.keys
  local parts = {}
  if activity then
    table.insert(parts, ("%%#%s#%s %s%%*"):format(group, config.options.icons.running, escape(activity)))
  elseif #chat.contexts == 0 then
    local hint = ("%s send   @ context   / command"):format(keys.send_insert or keys.send or "")
    table.insert(parts, "%#EcaReason#" .. escape(hint) .. "%*")
  end
  local waiting = #chat.queue + (chat.steering and 1 or 0)
  if waiting > 0 then
    table.insert(parts, ("%%#EcaReason#%d waiting%%*"):format(waiting))
  end
  for _, context in ipairs(chat.contexts) do
    table.insert(parts, "%#EcaContext#@" .. escape(require("eca.contexts").label(context)) .. "%*")
  end
  return " " .. table.concat(parts, " ") .. "%<"
end

--- Draws the bars again, if `chat` (or any, without it) is shown.
function M.refresh(chat)
  local shown = session().current
  if not shown or (chat and chat ~= shown) then
    return
  end
  if valid(windows.transcript) then
    vim.wo[windows.transcript].winbar = transcript_bar(shown)
  end
  if valid(windows.input) then
    vim.wo[windows.input].winbar = input_bar(shown)
  end
  vim.cmd.redrawstatus({ bang = true })
end

local function greet(chat)
  local welcome = require("eca.server").welcome
  if welcome and #chat.transcript.blocks == 0 then
    chat.transcript:add({ kind = "system", text = welcome, closed = true })
  end
end

--- Shows a chat in the panel, which is opened if need be; the cursor stays where it is.
function M.show(chat)
  session().current = chat
  local input = require("eca.prompt").buffer(chat)
  if M.is_open() then
    vim.api.nvim_win_set_buf(windows.transcript, chat.transcript.buffer)
    vim.api.nvim_win_set_buf(windows.input, input)
  else
    M.close()
    elsewhere = vim.api.nvim_get_current_win()
    local side = config.options.window.side == "left" and "topleft" or "botright"
    vim.cmd(("%s vertical %dsplit"):format(side, width()))
    windows.transcript = vim.api.nvim_get_current_win()
    vim.api.nvim_win_set_buf(windows.transcript, chat.transcript.buffer)
    vim.cmd(("belowright %dsplit"):format(config.options.window.input_height))
    windows.input = vim.api.nvim_get_current_win()
    vim.api.nvim_win_set_buf(windows.input, input)
    vim.api.nvim_set_current_win(elsewhere)
  end
  dress(windows.transcript, true)
  dress(windows.input, false)
  vim.wo[windows.transcript].conceallevel = 2
  vim.wo[windows.transcript].concealcursor = "n"
  vim.wo[windows.input].winfixheight = true
  M.keys(chat)
  local last = vim.api.nvim_buf_line_count(chat.transcript.buffer)
  vim.api.nvim_win_set_cursor(windows.transcript, { last, 0 })
  require("eca.server").start(function(err)
    if err then
      require("eca.notice").error(err)
    else
      greet(chat)
    end
    M.refresh()
  end)
  M.refresh()
end

--- Opens the panel and puts the cursor into the prompt.
function M.focus(chat)
  M.show(chat)
  vim.api.nvim_set_current_win(windows.input)
  vim.cmd.startinsert({ bang = true })
end

--- Shows another chat in place of one that is going away.
function M.replace(old, new)
  if valid(windows.transcript) and vim.api.nvim_win_get_buf(windows.transcript) == old.transcript.buffer then
    M.show(new)
  end
end

function M.close()
  for name, window in pairs(windows) do
    if valid(window) and #vim.api.nvim_tabpage_list_wins(vim.api.nvim_win_get_tabpage(window)) > 1 then
      vim.api.nvim_win_close(window, true)
    end
    windows[name] = nil
  end
end

--- Something waits for the user: say so if it cannot be seen.
function M.attention(chat)
  if not M.is_open() or session().current ~= chat then
    require("eca.notice").show("a tool call waits for your approval; `:Eca` shows it")
  end
end

--- The keys of the transcript.
function M.keys(chat)
  local keys, actions = config.options.keys, require("eca.actions")
  local function map(key, action, description)
    require("eca.scratch").map(chat.transcript.buffer, "n", key, action, description)
  end
  map(keys.approve, actions.approve, "let the tool call run")
  map(keys.always, actions.always, "let this tool run in this chat from now on")
  map(keys.reject, actions.reject, "reject the tool call")
  map(keys.diff, actions.diff, "see the change side by side")
  map(keys.stop, actions.stop, "stop the answer")
  map(keys.next_approval, actions.next_approval, "go to the next call that waits")
  map(keys.message_back, function()
    actions.message(-1)
  end, "go to your message before")
  map(keys.message_forward, function()
    actions.message(1)
  end, "go to your message after")
  map(keys.close, M.close, "close the panel")
  map(keys.input, function()
    M.focus(session().chat())
  end, "write a message")
  map(keys.toggle, actions.toggle, "open or close")
  map("za", actions.toggle, "open or close")
  map("zo", actions.toggle, "open or close")
  map("zc", actions.toggle, "open or close")
  map("zR", function()
    actions.toggle_all(true)
  end, "open all")
  map("zM", function()
    actions.toggle_all(false)
  end, "close all")
end

vim.api.nvim_create_autocmd("WinLeave", {
  group = vim.api.nvim_create_augroup("eca_panel", {}),
  callback = function()
    local window = vim.api.nvim_get_current_win()
    local floats = vim.api.nvim_win_get_config(window).relative ~= ""
    if window ~= windows.transcript and window ~= windows.input and not floats then
      elsewhere = window
    end
  end,
})

return M
