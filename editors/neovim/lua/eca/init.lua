--- The plugin's face: settings, and what other plugins and mappings may call.

local M = {}

local LINKS = {
  EcaTitle = "Title",
  EcaUser = "Identifier",
  EcaUserLine = "CursorLine",
  EcaSystem = "NonText",
  EcaNote = "WarningMsg",
  EcaReason = "Comment",
  EcaTool = "Normal",
  EcaToolPreparing = "Comment",
  EcaToolWaiting = "WarningMsg",
  EcaToolRunning = "Special",
  EcaToolDone = "String",
  EcaToolFailed = "ErrorMsg",
  EcaToolRejected = "Comment",
  EcaDiffAdd = "Added",
  EcaDiffDelete = "Removed",
  EcaDiffHunk = "Special",
  EcaContext = "Directory",
  EcaKey = "Keyword",
  EcaRewrite = "Visual",
  EcaStderr = "WarningMsg",
}

local function highlights()
  for group, target in pairs(LINKS) do
    vim.api.nvim_set_hl(0, group, { link = target, default = true })
  end
  -- What is not in the text must look so in every terminal; comments do not in those with few colours.
  local comment = vim.api.nvim_get_hl(0, { name = "Comment", link = false })
  vim.api.nvim_set_hl(0, "EcaSuggestion", {
    fg = comment.fg,
    ctermfg = comment.ctermfg or 8,
    italic = true,
    cterm = { italic = true },
    default = true,
  })
end

--- Applies settings; all of them are optional, and so is the call.
function M.setup(options)
  require("eca.config").set(options)
  local automatic = require("eca.config").options.suggest.auto
  if automatic or package.loaded["eca.suggest"] then
    local suggest = require("eca.suggest")
    if automatic then
      suggest.enable()
    else
      suggest.disable()
    end
  end
end

--- Opens the chat, or closes it if it is open.
function M.toggle()
  local panel = require("eca.panel")
  if panel.is_open() then
    panel.close()
  else
    M.open()
  end
end

--- Opens the chat and puts the cursor into the prompt.
function M.open()
  require("eca.panel").focus(require("eca.session").chat())
end

--- Sends a message in the current chat, as if it had been typed; `now` stops the answer for it.
function M.send(message, now)
  local session = require("eca.session")
  local chat = session.chat()
  require("eca.panel").show(chat)
  local contexts = require("eca.contexts").for_message(chat, message)
  chat.contexts = {}
  chat:send(message, contexts, now)
end

--- Adds lines of the current buffer to the next message: a range (counted from 1), or all of them.
function M.add_lines(first, last)
  local session, contexts = require("eca.session"), require("eca.contexts")
  contexts.add(session.chat(), contexts.lines(vim.api.nvim_get_current_buf(), first, last))
  require("eca.panel").show(session.chat())
end

--- Adds a file or a folder by its path.
function M.add_path(path)
  local session, contexts = require("eca.session"), require("eca.contexts")
  local full = vim.fn.fnamemodify(vim.fn.expand(path), ":p"):gsub("(.)/$", "%1")
  if not vim.uv.fs_stat(full) then
    return require("eca.notice").error(("there is no %s"):format(path))
  end
  local kind = vim.fn.isdirectory(full) == 1 and "directory" or "file"
  contexts.add(session.chat(), { type = kind, path = full })
  require("eca.panel").show(session.chat())
end

--- Adds the place of the cursor.
function M.add_cursor()
  local session, contexts = require("eca.session"), require("eca.contexts")
  local context = contexts.cursor()
  if not context then
    return require("eca.notice").error("the cursor is not in a file")
  end
  contexts.add(session.chat(), context)
  require("eca.panel").show(session.chat())
end

--- Asks for a suggestion at the cursor.
function M.suggest()
  require("eca.suggest").ask()
end

--- One line about the current chat, for a status line; empty as long as nothing was started.
function M.status()
  local loaded = package.loaded["eca.session"]
  local server = package.loaded["eca.server"]
  if not loaded or not server or server.state == "stopped" or not loaded.current then
    return ""
  end
  local chat = loaded.current
  local panel = require("eca.panel")
  local activity = panel.activity(chat)
  for _, other in pairs(loaded.chats) do
    if #chat:waiting() == 0 and #other:waiting() > 0 then
      activity = "another chat waits for your approval"
    end
  end
  local parts = { activity and "● " .. activity or "eca" }
  for _, part in ipairs({ loaded.selection(chat, "model") or false, panel.usage(chat) or false }) do
    if part then
      table.insert(parts, part)
    end
  end
  return table.concat(parts, " · ")
end

highlights()
vim.api.nvim_create_autocmd("ColorScheme", {
  group = vim.api.nvim_create_augroup("eca_highlights", {}),
  callback = highlights,
})

return M
