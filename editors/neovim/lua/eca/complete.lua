--- Completion in the prompt: `@` for contexts, `#` for the names of files, `/` for commands. The server
--- does the matching; this only asks it.

local config = require("eca.config")
local server = require("eca.server")

local M = {}

--- What is being completed before the cursor: its kind, the query, and the column (from 0) where the
--- word begins, its sign included. Nil if nothing is.
function M.token(line, column, row)
  local before = line:sub(1, column)
  if row == 1 and before:find("^/%S*$") then
    return { kind = "command", query = before:sub(2), start = 0 }
  end
  local space, sign, query = before:match("^(.-)([@#])(%S*)$")
  -- Only at the beginning of a word: an address has an `@` too.
  if sign and (space == "" or space:find("[%s(]$")) then
    return { kind = sign == "@" and "context" or "file", query = query, start = #space }
  end
end

local METHODS = {
  command = "chat/queryCommands",
  context = "chat/queryContext",
  file = "chat/queryFiles",
}

local function params(chat, token)
  return {
    chatId = chat.known and chat.id or nil,
    query = token.query,
    contexts = token.kind == "context" and chat.contexts or nil,
  }
end

local function arguments(command)
  local names = {}
  for _, argument in ipairs(command.arguments or {}) do
    table.insert(names, argument.required and argument.name or "[" .. argument.name .. "]")
  end
  return table.concat(names, " ")
end

local KINDS = {
  file = "file",
  directory = "folder",
  repoMap = "overview of the workspace",
  cursor = "where your cursor is",
  mcpResource = "resource",
}

--- The server's answer as a list of words, each with its kind and what is known of it.
local function read(chat, token, result)
  local items = {}
  for _, command in ipairs(result.commands or {}) do
    local words = arguments(command)
    table.insert(items, {
      word = "/" .. command.name,
      label = "/" .. command.name .. (words ~= "" and " " .. words or ""),
      kind = command.type,
      about = command.description,
    })
  end
  local label = require("eca.contexts").label
  for _, context in ipairs(result.contexts or {}) do
    local word = "@" .. label(context)
    chat.mentions[word] = context
    table.insert(items, { word = word, kind = KINDS[context.type] or context.type, about = context.description })
  end
  for _, file in ipairs(result.files or {}) do
    table.insert(items, { word = label(file), label = "#" .. label(file), kind = KINDS[file.type] or file.type })
  end
  return items
end

--- Asks for what fits a token; `callback` gets a list, empty if there is nothing.
function M.query(chat, token, callback)
  server.request(METHODS[token.kind], params(chat, token), function(err, result)
    callback(err and {} or read(chat, token, result or {}))
  end)
end

local function menu_item(item)
  return {
    word = item.word,
    abbr = item.label or item.word,
    menu = item.about or item.kind,
    icase = 1,
    dup = 0,
  }
end

--- The same as LSP has it, for completion plugins; `row` counts from 1.
function M.lsp_items(items, token, row, column)
  local kinds = vim.lsp.protocol.CompletionItemKind
  local function place(character)
    return { line = row - 1, character = character }
  end
  return vim.tbl_map(function(item)
    return {
      label = item.label or item.word,
      filterText = item.word:find("^[@/]") and item.word or "#" .. item.word,
      detail = item.kind,
      documentation = item.about,
      kind = item.kind == "file" and kinds.File or item.kind == "folder" and kinds.Folder or kinds.Keyword,
      textEdit = { newText = item.word, range = { start = place(token.start), ["end"] = place(column) } },
    }
  end, items)
end

--- Vim's `omnifunc`.
function M.omnifunc(findstart, _)
  local buffer = vim.api.nvim_get_current_buf()
  local chat = require("eca.prompt").chat_of(buffer)
  local row, column = unpack(vim.api.nvim_win_get_cursor(0))
  local token = chat and M.token(vim.api.nvim_get_current_line(), column, row)
  if findstart == 1 then
    M.found = token
    return token and token.start or -3
  end
  -- Vim has taken the word away by now; it is the one that was found before.
  token = M.found
  local result = token and server.request_sync(METHODS[token.kind], params(chat, token))
  return vim.tbl_map(menu_item, result and read(chat, token, result) or {})
end

--- Whether a completion plugin looks after the prompt.
local function plugin_at_work()
  return package.loaded["eca.cmp"] ~= nil or package.loaded["eca.blink"] ~= nil
end

local function popup(buffer)
  local chat = require("eca.prompt").chat_of(buffer)
  local row, column = unpack(vim.api.nvim_win_get_cursor(0))
  local line = vim.api.nvim_get_current_line()
  local token = chat and M.token(line, column, row)
  if not token then
    return
  end
  M.query(chat, token, function(items)
    local here = vim.api.nvim_get_current_buf() == buffer
      and vim.api.nvim_get_mode().mode:find("^i")
      and vim.deep_equal(vim.api.nvim_win_get_cursor(0), { row, column })
      and vim.api.nvim_get_current_line() == line
    -- A word that is complete needs no menu.
    local complete = #items == 1 and items[1].word == line:sub(token.start + 1, column)
    if here and #items > 0 and not complete then
      vim.fn.complete(token.start + 1, vim.tbl_map(menu_item, items))
    end
  end)
end

--- Opens the menu by itself while the user writes.
function M.attach(buffer)
  if not config.options.auto_complete then
    return
  end
  local own = "menu,menuone,noinsert,noselect"
  local theirs
  -- The option is not the buffer's own before Neovim 0.11, so it is lent.
  vim.api.nvim_create_autocmd("InsertEnter", {
    buffer = buffer,
    callback = function()
      if not plugin_at_work() then
        theirs, vim.o.completeopt = vim.o.completeopt, own
      end
    end,
  })
  vim.api.nvim_create_autocmd({ "InsertLeave", "BufLeave" }, {
    buffer = buffer,
    callback = function()
      if theirs then
        vim.o.completeopt, theirs = theirs, nil
      end
    end,
  })
  vim.api.nvim_create_autocmd({ "TextChangedI", "TextChangedP" }, {
    buffer = buffer,
    callback = function()
      -- While the user walks through the menu the text changes too, and must not open another.
      local walking = vim.fn.pumvisible() == 1 and vim.fn.complete_info({ "selected" }).selected ~= -1
      if not plugin_at_work() and not walking then
        popup(buffer)
      end
    end,
  })
end

return M
