--- A source for blink.cmp. It offers itself in the prompt only.
---
---     sources = {
---       per_filetype = { ["eca-prompt"] = { "eca" } },
---       providers = { eca = { name = "eca", module = "eca.blink" } },
---     }

local complete = require("eca.complete")

local Source = {}
Source.__index = Source

function Source.new()
  return setmetatable({}, Source)
end

function Source:enabled()
  return vim.bo.filetype == "eca-prompt"
end

function Source:get_trigger_characters()
  return { "@", "#", "/" }
end

function Source:get_completions(context, callback)
  local chat = require("eca.prompt").chat_of(context.bufnr)
  local row, column = unpack(context.cursor)
  local token = chat and complete.token(context.line, column, row)
  if not token then
    callback({ items = {}, is_incomplete_forward = false, is_incomplete_backward = false })
    return
  end
  local wanted = true
  complete.query(chat, token, function(items)
    if wanted then
      callback({
        items = complete.lsp_items(items, token, row, column),
        is_incomplete_forward = true,
        is_incomplete_backward = true,
      })
    end
  end)
  return function()
    wanted = false
  end
end

return Source
