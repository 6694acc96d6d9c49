--- The buffer in which a message is written.

local config = require("eca.config")

local M = {}

local namespace = vim.api.nvim_create_namespace("eca_prompt")
local buffers = {} -- by chat id
--- What was sent, newest last, and where the user is in it.
local history = {}
local place = 1
local HISTORY_LIMIT = 200

local function session()
  return require("eca.session")
end

local function text_of(buffer)
  return table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), "\n")
end

local function set_text(buffer, text)
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split(text, "\n", { plain = true }))
end

local function hint(buffer)
  vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
  if text_of(buffer) == "" then
    vim.api.nvim_buf_set_extmark(buffer, namespace, 0, 0, {
      virt_text = { { "Ask anything…", "EcaReason" } },
      virt_text_pos = "overlay",
    })
  end
end

--- Sends what is written in the prompt of a chat; `now` stops the answer for it.
function M.send(chat, now)
  local buffer = M.buffer(chat)
  local message = vim.trim(text_of(buffer))
  if message == "" then
    return
  end
  table.insert(history, message)
  if #history > HISTORY_LIMIT then
    table.remove(history, 1)
  end
  place = #history + 1
  set_text(buffer, "")
  hint(buffer)
  local contexts = require("eca.contexts").for_message(chat, message)
  chat.contexts = {}
  chat:send(message, contexts, now)
end

--- Puts a message that was not delivered back, before what was written since.
function M.restore(chat, message)
  local buffer = M.buffer(chat)
  local since = text_of(buffer)
  set_text(buffer, since == "" and message or message .. "\n" .. since)
  hint(buffer)
end

local function recall(buffer, step)
  if #history == 0 then
    return
  end
  place = math.max(1, math.min(#history + 1, place + step))
  set_text(buffer, history[place] or "")
  local last = vim.api.nvim_buf_line_count(buffer)
  vim.api.nvim_win_set_cursor(0, { last, #vim.api.nvim_buf_get_lines(buffer, last - 1, last, false)[1] })
end

local function keys(chat, buffer)
  local set, actions = config.options.keys, require("eca.actions")
  local function map(modes, key, action, description)
    require("eca.scratch").map(buffer, modes, key, action, description)
  end
  local function send()
    M.send(chat)
  end
  map("n", set.send, send, "send")
  map("i", set.send_insert, send, "send")
  map("n", set.stop, actions.stop, "stop the answer")
  map("n", set.close, function()
    require("eca.panel").close()
  end, "close the panel")
  map("n", set.next_approval, actions.next_approval, "go to the next call that waits")
  for name, description in pairs({
    approve = "let the tool call run",
    always = "let this tool run in this chat from now on",
    reject = "reject the tool call",
    diff = "see the change side by side",
  }) do
    map("n", set[name] and "g" .. set[name], actions[name], description)
  end
  map({ "n", "i" }, set.history_back, function()
    recall(buffer, -1)
  end, "the message before")
  map({ "n", "i" }, set.history_forward, function()
    recall(buffer, 1)
  end, "the message after")
end

--- The buffer of a chat's prompt.
function M.buffer(chat)
  local buffer = buffers[chat.id]
  if buffer and vim.api.nvim_buf_is_valid(buffer) then
    return buffer
  end
  buffer = vim.api.nvim_create_buf(false, true)
  buffers[chat.id] = buffer
  vim.api.nvim_buf_set_name(buffer, "eca://prompt/" .. chat.number)
  vim.bo[buffer].bufhidden = "hide"
  vim.bo[buffer].swapfile = false
  vim.bo[buffer].filetype = "eca-prompt"
  vim.bo[buffer].omnifunc = "v:lua.require'eca.complete'.omnifunc"
  keys(chat, buffer)
  vim.api.nvim_create_autocmd({ "TextChanged", "TextChangedI", "TextChangedP" }, {
    buffer = buffer,
    callback = function()
      hint(buffer)
    end,
  })
  require("eca.complete").attach(buffer)
  hint(buffer)
  return buffer
end

--- The chat whose prompt a buffer is.
function M.chat_of(buffer)
  for id, other in pairs(buffers) do
    if other == buffer then
      return session().chats[id]
    end
  end
end

function M.forget(chat)
  local buffer = buffers[chat.id]
  buffers[chat.id] = nil
  if buffer and vim.api.nvim_buf_is_valid(buffer) then
    vim.api.nvim_buf_delete(buffer, { force = true })
  end
end

return M
