--- Buffers of the plugin: those that only it writes to, and the keys in them.

local M = {}

function M.new(name, filetype)
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(buffer, name)
  vim.bo[buffer].buftype = "nofile"
  vim.bo[buffer].bufhidden = "hide"
  vim.bo[buffer].swapfile = false
  vim.bo[buffer].undolevels = -1
  vim.bo[buffer].filetype = filetype
  vim.bo[buffer].modifiable = false
  return buffer
end

--- Maps a key in a buffer; `false` for a key means that the user does not want it.
function M.map(buffer, modes, key, action, description)
  if key then
    vim.keymap.set(modes, key, action, { buffer = buffer, desc = "eca: " .. description, nowait = true })
  end
end

--- Writes while every window that was at the end stays there.
function M.write(buffer, change)
  local last = vim.api.nvim_buf_line_count(buffer)
  local following = {}
  for _, window in ipairs(vim.fn.win_findbuf(buffer)) do
    if vim.api.nvim_win_get_cursor(window)[1] >= last then
      table.insert(following, window)
    end
  end
  vim.bo[buffer].modifiable = true
  change()
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].modified = false
  last = vim.api.nvim_buf_line_count(buffer)
  for _, window in ipairs(following) do
    vim.api.nvim_win_set_cursor(window, { last, 0 })
  end
end

return M
