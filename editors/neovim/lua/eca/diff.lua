--- A proposed change of a file, side by side in a tab page of its own.

local config = require("eca.config")
local notice = require("eca.notice")

local M = {}

local shown -- the tab page and what it was opened from

--- Applies a unified diff to lines; nil if it does not fit.
function M.apply(lines, diff)
  local result, at = {}, 1
  local inside = false
  for _, line in ipairs(vim.split((diff:gsub("\n$", "")), "\n", { plain = true })) do
    local start, count = line:match("^@@ %-(%d+),?(%d*) %+%d+,?%d* @@")
    local sign, rest = line:sub(1, 1), line:sub(2)
    if start then
      inside = true
      -- A hunk that removes nothing stands behind the line that it names.
      local first = tonumber(start) + (count == "0" and 1 or 0)
      if first < at or first > #lines + 1 then
        return nil
      end
      vim.list_extend(result, lines, at, first - 1)
      at = first
    elseif inside and (sign == " " or sign == "-" or line == "") then
      if lines[at] ~= rest then
        return nil
      end
      if sign ~= "-" then
        table.insert(result, rest)
      end
      at = at + 1
    elseif inside and sign == "+" then
      table.insert(result, rest)
    end
  end
  if not inside then
    return nil
  end
  vim.list_extend(result, lines, at, #lines)
  return result
end

local function current_lines(path)
  local buffer = vim.fn.bufnr(path)
  if buffer ~= -1 and vim.api.nvim_buf_is_loaded(buffer) then
    return vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
  elseif vim.fn.filereadable(path) == 1 then
    return vim.fn.readfile(path)
  end
  return {}
end

local function scratch(name, lines, filetype)
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.bo[buffer].bufhidden = "wipe"
  pcall(vim.api.nvim_buf_set_name, buffer, name)
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
  vim.bo[buffer].modifiable = false
  -- The name of a language alone: a language server has no business here.
  vim.bo[buffer].syntax = filetype or ""
  local keys, actions = config.options.keys, require("eca.actions")
  local function map(key, action, description)
    require("eca.scratch").map(buffer, "n", key, action, description)
  end
  map(keys.approve, actions.approve, "let the tool call run")
  map(keys.always, actions.always, "let this tool run in this chat from now on")
  map(keys.reject, actions.reject, "reject the tool call")
  map(keys.close, M.close, "close")
  return buffer
end

local function bar(window, title, hint)
  local escaped = title:gsub("%%", "%%%%")
  vim.wo[window].winbar = " %#EcaTitle#" .. escaped .. "%*" .. (hint and "%=%#EcaReason#" .. hint .. "%* " or "")
end

local function hint(block)
  local keys = config.options.keys
  if block.state ~= "waiting" then
    return (keys.close or "") .. " close"
  end
  return ("%s approve  %s always  %s reject  %s close"):format(
    keys.approve or "",
    keys.always or "",
    keys.reject or "",
    keys.close or ""
  )
end

--- Opens the view for a call that changes a file. A call that has run is shown as the diff it was: the
--- file as it was before is gone.
function M.show(block)
  M.close()
  local details = block.content.details
  local path = details.path
  local name = vim.fn.fnamemodify(path, ":~:.")
  local before = current_lines(path)
  local after = block.state == "waiting" and M.apply(before, details.diff)
  local origin = vim.api.nvim_get_current_tabpage()
  vim.cmd.tabnew()
  shown = { tab = vim.api.nvim_get_current_tabpage(), origin = origin }
  local stale = vim.api.nvim_get_current_buf()
  if after then
    local filetype = vim.filetype.match({ filename = path })
    vim.api.nvim_win_set_buf(0, scratch("eca://before/" .. path, before, filetype))
    bar(0, name .. " now")
    vim.cmd.diffthis()
    vim.cmd("rightbelow vsplit")
    vim.api.nvim_win_set_buf(0, scratch("eca://after/" .. path, after, filetype))
    bar(0, name .. " proposed", hint(block))
    vim.cmd.diffthis()
    vim.cmd("silent! normal! gg]c")
  else
    if block.state == "waiting" then
      notice.warn("the file has changed since; this is the change as it was proposed")
    end
    local lines = vim.split((details.diff:gsub("\n$", "")), "\n", { plain = true })
    vim.api.nvim_win_set_buf(0, scratch("eca://diff/" .. path, lines, "diff"))
    bar(0, name, hint(block))
  end
  if vim.api.nvim_buf_is_valid(stale) and vim.api.nvim_buf_get_name(stale) == "" then
    vim.api.nvim_buf_delete(stale, { force = true })
  end
end

--- Closes the view, if it is open, and goes back.
function M.close()
  local old = shown
  shown = nil
  if not old or not vim.api.nvim_tabpage_is_valid(old.tab) then
    return
  end
  if #vim.api.nvim_list_tabpages() > 1 then
    vim.cmd(vim.api.nvim_tabpage_get_number(old.tab) .. "tabclose")
  end
  if vim.api.nvim_tabpage_is_valid(old.origin) then
    vim.api.nvim_set_current_tabpage(old.origin)
  end
end

--- Whether the view is open, for tests.
function M.is_open()
  return shown ~= nil and vim.api.nvim_tabpage_is_valid(shown.tab)
end

return M
