--- A source for nvim-cmp. It offers itself in the prompt only.
---
---     require("cmp").register_source("eca", require("eca.cmp").new())

local complete = require("eca.complete")

local Source = {}
Source.__index = Source

function Source.new()
  return setmetatable({}, Source)
end

function Source:is_available()
  return vim.bo.filetype == "eca-prompt"
end

function Source:get_trigger_characters()
  return { "@", "#", "/" }
end

--- Columns are bytes.
function Source:get_position_encoding_kind()
  return "utf-8"
end

function Source:get_keyword_pattern()
  return [[\%(@\|#\|/\)\S*]]
end

function Source:complete(params, callback)
  local chat = require("eca.prompt").chat_of(vim.api.nvim_get_current_buf())
  local cursor = params.context.cursor
  local token = chat and complete.token(params.context.cursor_line, cursor.col - 1, cursor.row)
  if not token then
    return callback({ items = {}, isIncomplete = false })
  end
  complete.query(chat, token, function(items)
    callback({ items = complete.lsp_items(items, token, cursor.row, cursor.col - 1), isIncomplete = true })
  end)
end

return Source
