--- Text that stands at the cursor and is not in the buffer: how it is drawn, and in which pieces it can
--- be taken.

local M = {}

local namespace = vim.api.nvim_create_namespace("eca_suggest")

--- The first line of a text; a line break before it belongs to it.
function M.first_line(text)
  return text:match("^\n?[^\n]*")
end

--- The first word of a text, or what is there instead of one; space before it belongs to it.
function M.first_word(text)
  return text:match("^%s*[%w_\128-\255]+") or text:match("^%s*[^%w_%s\128-\255]+") or text
end

--- A line without tabs, for Neovim draws them as characters there. `column` is where it begins.
function M.without_tabs(line, column, tabstop)
  local result = ""
  for part, tab in line:gmatch("([^\t]*)(\t?)") do
    result = result .. part
    if tab ~= "" then
      local at = column + vim.api.nvim_strwidth(result)
      result = result .. (" "):rep(tabstop - at % tabstop)
    end
  end
  return result
end

--- Draws `text` at a place in the current window's buffer; row and column count from 0, in bytes.
function M.draw(buffer, row, column, text)
  M.clear(buffer)
  local lines = vim.split(text, "\n", { plain = true })
  local tabstop = vim.bo[buffer].tabstop
  local before = vim.api.nvim_buf_get_lines(buffer, row, row + 1, false)[1]:sub(1, column)
  local first = M.without_tabs(table.remove(lines, 1), vim.fn.strdisplaywidth(before), tabstop)
  vim.api.nvim_buf_set_extmark(buffer, namespace, row, column, {
    virt_text = { { first, "EcaSuggestion" } },
    virt_text_pos = "inline",
    virt_lines = vim.tbl_map(function(line)
      return { { M.without_tabs(line, 0, tabstop), "EcaSuggestion" } }
    end, lines),
  })
end

--- Says behind a line that an answer is on its way.
function M.wait(buffer, row)
  M.clear(buffer)
  vim.api.nvim_buf_set_extmark(buffer, namespace, row, 0, {
    virt_text = { { " suggesting…", "EcaToolRunning" } },
    virt_text_pos = "eol",
  })
end

function M.clear(buffer)
  if vim.api.nvim_buf_is_valid(buffer) then
    vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
  end
end

return M
