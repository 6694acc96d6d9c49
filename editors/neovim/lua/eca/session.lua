--- Everything that is known while Neovim runs: the chats, and what the server offers.

local Chat = require("eca.chat")
local server = require("eca.server")

local M = {
  --- Chats by id.
  chats = {}, ---@type table<string, table>
  --- The one that is shown.
  current = nil,
  models = {},
  agents = {},
  --- What counts where a chat says nothing else.
  selected = {},
  --- Tool servers by name.
  tool_servers = {},
  jobs = {},
}

--- Subagents' chats, with the chat they work for.
local parents = {}

local function show(chat)
  require("eca.panel").show(chat)
end

--- The chat that is shown; a new one if there is none.
function M.chat()
  if not M.current then
    M.current = M.new_chat()
  end
  return M.current
end

function M.new_chat(id)
  local chat = Chat.new(id)
  M.chats[chat.id] = chat
  return chat
end

--- The model, agent or variant in use in a chat.
function M.selection(chat, what)
  local value = chat and (chat.chosen[what] or chat.selected[what]) or M.selected[what]
  if value == vim.NIL then
    return nil
  end
  return value
end

function M.config_updated(params)
  local said = params.chat or {}
  M.models = said.models or M.models
  M.agents = said.agents or said.behaviors or M.agents
  local chat = params.chatId and M.chats[params.chatId]
  if params.chatId and not chat then
    return
  end
  local into = chat and chat.selected or M.selected
  into.model = said.selectModel or into.model
  into.agent = said.selectAgent or said.selectBehavior or into.agent
  into.variants = said.variants or into.variants
  if said.selectVariant ~= nil then
    into.variant = said.selectVariant
  end
  if said.selectTrust ~= nil then
    into.trust = said.selectTrust
  end
  server.welcome = said.welcomeMessage or server.welcome
  require("eca.panel").refresh(chat)
end

function M.tool_server_updated(params)
  M.tool_servers[params.name] = params
end

function M.tool_server_removed(params)
  M.tool_servers[params.name] = nil
end

--- The chat that shows what is said in the chat `id`: itself, or the one a subagent works for.
function M.home(id, parent)
  if parent then
    parents[id] = parent
  end
  local seen = 0
  while parents[id] and seen < 16 do
    id, seen = parents[id], seen + 1
  end
  return M.chats[id], id
end

function M.content_received(params)
  local chat, id = M.home(params.chatId, params.parentChatId)
  chat = chat or M.new_chat(id)
  chat:receive(params)
end

function M.status_changed(params)
  local chat = M.chats[params.chatId]
  -- `idle` is left to the content that ends the turn, so that nothing is ended twice.
  if chat and params.status ~= "idle" then
    chat.status = params.status
    chat:changed()
  end
end

--- A chat that nobody here began is one that the server made, such as a fork: show it.
function M.opened(params)
  local chat = M.chats[params.chatId]
  local fresh = not chat
  chat = chat or M.new_chat(params.chatId)
  chat.title = params.title or chat.title
  chat.known = true
  if fresh then
    show(chat)
  end
end

function M.cleared(params)
  local chat = M.chats[params.chatId]
  if chat and params.messages ~= false then
    chat:clear()
  end
end

function M.deleted(params)
  local chat = M.chats[params.chatId]
  if not chat then
    return
  end
  M.chats[params.chatId] = nil
  if M.current == chat then
    M.current = nil
    require("eca.panel").replace(chat, M.chat())
  end
  require("eca.prompt").forget(chat)
  vim.api.nvim_buf_delete(chat.transcript.buffer, { force = true })
end

--- Tells every chat that was at work that its turn is lost.
server.on_death(function(code, signal, again)
  local how = signal ~= 0 and ("signal %d"):format(signal) or ("code %d"):format(code)
  local text = ("The server ended unexpectedly (%s). "):format(how)
    .. (again and "It was started again; what was said before is kept." or "`:Eca restart` starts it again.")
  require("eca.notice").warn(text)
  for _, chat in pairs(M.chats) do
    chat:server_died(text)
    chat:changed()
  end
end)

return M
