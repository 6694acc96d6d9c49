--- What a prompt may carry besides its text: files, selections, the cursor.

local M = {}

local function relative(path)
  return vim.fn.fnamemodify(path, ":~:.")
end

--- A short name of a context; also the word that stands for it after `@`.
function M.label(context)
  local kind = context.type
  if kind == "file" then
    local range = context.linesRange
    return relative(context.path) .. (range and (":%d-%d"):format(range.start, range["end"]) or "")
  elseif kind == "directory" then
    local path = relative(context.path)
    return path:sub(-1) == "/" and path or path .. "/"
  elseif kind == "text" then
    return context.label
  elseif kind == "mcpResource" then
    return ("%s:%s"):format(context.server or "mcp", context.name or context.uri)
  elseif kind == "web" then
    return context.url
  end
  return kind
end

local function path_of(buffer)
  local name = vim.api.nvim_buf_get_name(buffer)
  if name ~= "" and vim.bo[buffer].buftype == "" then
    return vim.fn.fnamemodify(name, ":p")
  end
end

--- Lines of a buffer. The server reads files from the disk, so what is not saved is sent as text.
function M.lines(buffer, first, last)
  local path = path_of(buffer)
  if path and not vim.bo[buffer].modified and vim.fn.filereadable(path) == 1 then
    local whole = first == nil
    return { type = "file", path = path, linesRange = not whole and { start = first, ["end"] = last } or nil }
  end
  local lines = vim.api.nvim_buf_get_lines(buffer, (first or 1) - 1, last or -1, false)
  local name = path and relative(path) or "unnamed buffer"
  local range = first and (":%d-%d"):format(first, last) or ""
  return { type = "text", label = name .. range, content = table.concat(lines, "\n") }
end

--- Where the user's cursor is, outside of the panel; nil if that is not in a file.
function M.cursor()
  local window = require("eca.panel").work_window()
  local path = window and path_of(vim.api.nvim_win_get_buf(window))
  if not path then
    return nil
  end
  local row, column = unpack(vim.api.nvim_win_get_cursor(window))
  local place = { line = row, character = column + 1 }
  return { type = "cursor", path = path, position = { start = place, ["end"] = place } }
end

--- Adds a context to a chat, once.
function M.add(chat, context)
  for _, other in ipairs(chat.contexts) do
    if vim.deep_equal(other, context) then
      return
    end
  end
  table.insert(chat.contexts, context)
  chat:changed()
end

--- Whether `word` stands in `text` by itself, not as the beginning of a longer one.
local function mentioned(text, word)
  local from = 1
  while true do
    local first, last = text:find(word, from, true)
    if not first then
      return false
    end
    local after = text:sub(last + 1, last + 1)
    if after == "" or after:find("[%s,;:!?)]") or after == "." then
      return true
    end
    from = last + 1
  end
end

--- What goes with a message: what was added to the chat, and what its words after `@` stand for.
function M.for_message(chat, message)
  local all = vim.deepcopy(chat.contexts)
  for word, context in pairs(chat.mentions) do
    if mentioned(message, word) then
      local said = context.type == "cursor" and M.cursor() or context
      if said.type ~= "cursor" or said.path then
        table.insert(all, said)
      end
    end
  end
  return all
end

return M
