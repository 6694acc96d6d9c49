--- What keys and commands do in a chat.

local blocks = require("eca.blocks")
local notice = require("eca.notice")
local panel = require("eca.panel")
local server = require("eca.server")
local session = require("eca.session")

local ask = server.ask

local M = {}

--- The block under the cursor, if the cursor is in the transcript.
local function block_here(chat)
  if vim.api.nvim_get_current_buf() == chat.transcript.buffer then
    return chat.transcript:at(vim.api.nvim_win_get_cursor(0)[1] - 1)
  end
end

--- The row of a block's first line, for a cursor; an empty line stands before all blocks but the first.
local function heading(block)
  return block.row + (block.row > 0 and 2 or 1)
end

--- The call to decide on: the one under the cursor if it waits, else the first that does.
local function decision()
  local chat = session.chat()
  local here = block_here(chat)
  if here and here.kind == "tool" and here.state == "waiting" then
    return chat, here
  end
  local first = chat:waiting()[1]
  if not first then
    notice.show("no tool call waits for you")
  end
  return chat, first
end

local function decide(how)
  local chat, block = decision()
  if block then
    require("eca.diff").close()
    how(chat, block)
    chat:changed()
  end
end

function M.approve()
  decide(function(chat, block)
    chat:approve(block)
  end)
end

function M.always()
  decide(function(chat, block)
    chat:approve(block, "session")
  end)
end

function M.reject()
  decide(function(chat, block)
    chat:reject(block)
  end)
end

--- Shows a change of a file: the one under the cursor, else the first that waits.
function M.diff()
  local chat = session.chat()
  local block = block_here(chat)
  if not (block and block.kind == "tool") then
    block = chat:waiting()[1]
  end
  local details = block and block.content.details
  if not details or details.type ~= "fileChange" then
    return notice.show("there is no change of a file here")
  end
  require("eca.diff").show(block)
end

--- Shows the change that waits, to a user who is in the chat: others are not taken away from their work.
function M.show_waiting(chat)
  local block = chat:waiting()[1]
  local details = block and block.content.details
  local view = require("eca.diff")
  local in_panel = vim.list_contains(vim.tbl_values(panel.windows()), vim.api.nvim_get_current_win())
  local in_chat = in_panel and session.current == chat
  if details and details.type == "fileChange" and in_chat and not view.is_open() then
    vim.cmd.stopinsert()
    view.show(block)
  end
end

function M.stop()
  if not session.chat():stop() then
    notice.show("nothing is running")
  end
end

function M.toggle()
  local chat = session.chat()
  local block = block_here(chat)
  if block and blocks.folds(block) then
    block.expanded = not block.expanded
    chat.transcript:redraw(block)
    local row = math.min(heading(block), vim.api.nvim_buf_line_count(0))
    vim.api.nvim_win_set_cursor(0, { row, 0 })
  end
end

function M.toggle_all(open)
  local chat = session.chat()
  for _, block in ipairs(chat.transcript.blocks) do
    if blocks.folds(block) and block.state ~= "waiting" and block.expanded ~= open then
      block.expanded = open
      chat.transcript:redraw(block)
    end
  end
end

--- Puts the cursor on the first call that waits.
function M.next_approval()
  local chat = session.chat()
  local block = chat:waiting()[1]
  if not block then
    return notice.show("no tool call waits for you")
  end
  panel.show(chat)
  local window = panel.windows().transcript
  vim.api.nvim_set_current_win(window)
  vim.api.nvim_win_set_cursor(window, { heading(block), 0 })
end

--- Goes to the user's message before the cursor, or after it.
function M.message(step)
  local chat = session.chat()
  local here, found = block_here(chat), nil
  for _, block in ipairs(chat.transcript.blocks) do
    local before = here and block.row < here.row
    local after = here and block.row > here.row
    if block.kind == "user" and (step < 0 and before or step > 0 and after and not found) then
      found = block
    end
  end
  if found then
    vim.api.nvim_win_set_cursor(0, { heading(found), 0 })
  end
end

--- Chooses among `items`; `what` names the choice to the user.
local function pick(items, what, current, callback)
  if #items == 0 then
    return notice.show(("the server offers no %s"):format(what))
  end
  vim.ui.select(items, {
    prompt = ("Choose %s:"):format(what),
    kind = "eca_" .. what,
    format_item = function(item)
      return (item == current and "● " or "  ") .. item
    end,
  }, function(choice)
    if choice then
      callback(choice)
      panel.refresh()
    end
  end)
end

local function running(callback)
  server.start(function(err)
    if err then
      notice.error(err)
    else
      callback()
    end
  end)
end

local function choose_model(chat, model)
  chat.chosen.model, chat.chosen.variant = model, nil
  server.notify("chat/selectedModelChanged", { model = model, chatId = chat.known and chat.id or nil })
  panel.refresh()
end

local function choose_agent(chat, agent)
  chat.chosen.agent = agent
  server.notify("chat/selectedAgentChanged", { agent = agent, chatId = chat.known and chat.id or nil })
  panel.refresh()
end

function M.model(name)
  running(function()
    local chat = session.chat()
    if name then
      return choose_model(chat, name)
    end
    pick(session.models, "model", session.selection(chat, "model"), function(model)
      choose_model(chat, model)
    end)
  end)
end

function M.agent(name)
  running(function()
    local chat = session.chat()
    if name then
      return choose_agent(chat, name)
    end
    pick(session.agents, "agent", session.selection(chat, "agent"), function(agent)
      choose_agent(chat, agent)
    end)
  end)
end

function M.variant()
  running(function()
    local chat = session.chat()
    local variants = session.selection(chat, "variants") or {}
    local usual = "the model's default"
    local all = #variants > 0 and vim.list_extend({ usual }, variants) or {}
    pick(all, "variant", session.selection(chat, "variant") or usual, function(choice)
      local variant = choice ~= usual and choice or vim.NIL
      chat.chosen.variant = variant
      local model = session.selection(chat, "model")
      local id = chat.known and chat.id or nil
      server.notify("chat/selectedModelChanged", { model = model, variant = variant, chatId = id })
    end)
  end)
end

--- Whether the chat's tools run without asking.
function M.trust()
  local chat = session.chat()
  local trust = session.selection(chat, "trust") ~= true
  chat.chosen.trust = trust
  if chat.known then
    server.request("chat/update", { chatId = chat.id, trust = trust }, function(err)
      if err then
        notice.warn("the running turn still asks: " .. err)
      end
    end)
  end
  notice.show(trust and "tools run without asking in this chat" or "tools ask again in this chat")
  panel.refresh()
end

--- Takes a context away from the next message.
function M.remove()
  local chat = session.chat()
  if #chat.contexts == 0 then
    return notice.show("nothing was added to the next message")
  end
  vim.ui.select(chat.contexts, {
    prompt = "Remove:",
    kind = "eca_context",
    format_item = require("eca.contexts").label,
  }, function(context)
    if context then
      chat.contexts = vim.tbl_filter(function(other)
        return other ~= context
      end, chat.contexts)
      chat:changed()
    end
  end)
end

function M.new()
  panel.focus(session.new_chat())
end

local function ago(milliseconds)
  local seconds = os.time() - math.floor((milliseconds or 0) / 1000)
  if seconds < 90 then
    return "just now"
  elseif seconds < 5400 then
    return ("%d min ago"):format(math.floor(seconds / 60 + 0.5))
  elseif seconds < 129600 then
    return ("%d h ago"):format(math.floor(seconds / 3600 + 0.5))
  end
  return ("%d days ago"):format(math.floor(seconds / 86400 + 0.5))
end

local function open(id)
  local chat = session.chats[id]
  if chat and #chat.transcript.blocks > 0 then
    return panel.focus(chat)
  end
  chat = chat or session.new_chat(id)
  -- Shown first, so that it is not greeted as a new one before it is filled.
  ask("chat/open", { chatId = id }, function(result)
    if not result.found then
      session.chats[id] = nil
      return notice.error("the server does not know this chat any more")
    end
    chat.title, chat.known = result.title or chat.title, true
    local selection = result.selection or {}
    chat.selected = vim.tbl_extend("force", chat.selected, {
      model = selection.model ~= vim.NIL and selection.model or nil,
      agent = selection.agent,
      trust = selection.trust,
    })
    panel.focus(chat)
  end)
end

--- Chooses among the chats of the workspace.
function M.chats()
  ask("chat/list", { limit = 100, sortBy = "updatedAt" }, function(result)
    local chats = result.chats
    if #chats == 0 then
      return notice.show("there are no chats in this workspace yet")
    end
    vim.ui.select(chats, {
      prompt = "Open chat:",
      kind = "eca_chat",
      format_item = function(chat)
        local title = type(chat.title) == "string" and chat.title or "Untitled"
        local running = chat.status == "running" and ", running" or ""
        return ("%s (%s%s)"):format(title, ago(chat.updatedAt), running)
      end,
    }, function(choice)
      if choice then
        open(choice.id)
      end
    end)
  end)
end

function M.delete()
  local chat = session.chat()
  if vim.fn.confirm("Delete this chat?", "&Delete\n&Keep", 2) ~= 1 then
    return
  end
  if not chat.known then
    return session.deleted({ chatId = chat.id })
  end
  ask("chat/delete", { chatId = chat.id })
end

function M.clear()
  local chat = session.chat()
  ask("chat/clear", { chatId = chat.id, messages = true })
end

function M.rename(title)
  local chat = session.chat()
  local function rename(name)
    if name and vim.trim(name) ~= "" then
      ask("chat/update", { chatId = chat.id, title = vim.trim(name) })
    end
  end
  if title then
    return rename(title)
  end
  vim.ui.input({ prompt = "Title: ", default = chat.title }, rename)
end

--- The user's message at or above the cursor; the last one, if the cursor is not in the transcript.
local function message_here(chat)
  local here = block_here(chat)
  local found
  for _, block in ipairs(chat.transcript.blocks) do
    if block.kind == "user" and block.content_id then
      found = block
    end
    if block == here then
      break
    end
  end
  if not found then
    notice.show("there is no message of yours here")
  end
  return found
end

--- Goes back to before a message of the user's.
function M.rollback()
  local chat = session.chat()
  local block = message_here(chat)
  if not block then
    return
  end
  local choice = vim.fn.confirm(
    "Go back to before this message?",
    "&Messages and files\n&Only messages\nOnly &files\n&Cancel",
    4
  )
  local include = ({ { "messages", "tools" }, { "messages" }, { "tools" } })[choice]
  if not include then
    return
  end
  ask("chat/rollback", { chatId = chat.id, contentId = block.content_id, include = include }, function()
    vim.cmd.checktime()
    if include[1] == "messages" then
      require("eca.prompt").restore(chat, vim.trim(block.text))
    end
  end)
end

--- A copy of the chat up to a message of the user's; the server opens it.
function M.fork()
  local chat = session.chat()
  local block = message_here(chat)
  if block then
    ask("chat/fork", { chatId = chat.id, contentId = block.content_id })
  end
end

return M
