--- Suggestions at the cursor: when the server is asked, what is shown, and what becomes of it.
---
--- A suggestion is for one text and one place. As soon as either is another, it is gone, and so is the
--- request that is still on its way.

local config = require("eca.config")
local ghost = require("eca.ghost")
local notice = require("eca.notice")
local server = require("eca.server")

local M = {}

--- Larger buffers are not sent around with every pause.
local MOST_BYTES = 2 * 1024 * 1024
--- How many different problems of automatic requests are told.
local MOST_PROBLEMS = 5

local auto = false
local timer = assert(vim.uv.new_timer())
--- The place that counts: one where a request is due, or is on its way (`cancel`), or where a suggestion
--- is shown (`text`).
local current
local lent = {} -- The keys that are a suggestion's while it is shown.
local told = {} -- Problems of automatic requests.
local last_problem
local refused_by -- The client of a server that makes no suggestions.

--- Where the cursor is, and in which text.
local function here()
  local buffer = vim.api.nvim_get_current_buf()
  local row, column = unpack(vim.api.nvim_win_get_cursor(0))
  return {
    buffer = buffer,
    window = vim.api.nvim_get_current_win(),
    tick = vim.api.nvim_buf_get_changedtick(buffer),
    row = row - 1,
    column = column,
  }
end

local function inserting()
  return vim.api.nvim_get_mode().mode:find("^i") ~= nil
end

--- Whether the user is still at a place, in the same text.
local function still_at(place)
  local now = here()
  return inserting()
    and now.buffer == place.buffer
    and now.window == place.window
    and now.tick == place.tick
    and now.row == place.row
    and now.column == place.column
end

--- Whether a completion menu is open: it has the first right to the keys.
local function menu_open()
  if vim.fn.pumvisible() == 1 then
    return true
  end
  for plugin, visible in pairs({ cmp = "visible", ["blink.cmp"] = "is_visible" }) do
    local loaded = package.loaded[plugin]
    if type(loaded) == "table" and type(loaded[visible]) == "function" then
      local ok, open = pcall(loaded[visible])
      if ok and open then
        return true
      end
    end
  end
  return false
end

--- Why there are no suggestions in a buffer; nil if there are.
local function unsuited(buffer)
  if vim.bo[buffer].buftype ~= "" or vim.bo[buffer].filetype:find("^eca%-") then
    return "suggestions are for files only"
  elseif not vim.bo[buffer].modifiable or vim.bo[buffer].readonly then
    return "this buffer cannot be changed"
  elseif vim.api.nvim_buf_get_offset(buffer, vim.api.nvim_buf_line_count(buffer)) > MOST_BYTES then
    return "this buffer is too large for suggestions"
  end
end

--- Gives the keys back to those who had them.
local function give_back(buffer)
  local keys = lent
  lent = {}
  if not vim.api.nvim_buf_is_valid(buffer) then
    return
  end
  vim.api.nvim_buf_call(buffer, function()
    for _, one in vim.iter(keys):rev():enumerate() do
      -- Whoever has mapped it meanwhile keeps it.
      if vim.fn.maparg(one.key, "i", false, true).callback == one.action then
        vim.keymap.del("i", one.key, { buffer = buffer })
        if one.before then
          vim.fn.mapset("i", false, one.before)
        end
      end
    end
  end)
end

--- Takes everything back: what is shown, what was asked, and what was going to be.
local function withdraw()
  timer:stop()
  local old = current
  current = nil
  if not old then
    return
  end
  if old.cancel then
    old.cancel()
  end
  ghost.clear(old.buffer)
  if old.text then
    give_back(old.buffer)
  end
end

--- A step of its own for undo, so that a suggestion can be taken back without what was typed before it.
local function break_undo(buffer)
  vim.bo[buffer].undolevels = vim.bo[buffer].undolevels
end

--- Puts a piece of the suggestion into the text; the rest stays shown. False if there is none.
local function take(piece_of)
  local now = current
  if not M.visible() or not still_at(now) then
    withdraw()
    return false
  end
  local piece = piece_of(now.text)
  local lines = vim.split(piece, "\n", { plain = true })
  break_undo(now.buffer)
  vim.api.nvim_buf_set_text(now.buffer, now.row, now.column, now.row, now.column, lines)
  now.column = #lines > 1 and #lines[#lines] or now.column + #lines[1]
  now.row = now.row + #lines - 1
  vim.api.nvim_win_set_cursor(now.window, { now.row + 1, now.column })
  now.tick = vim.api.nvim_buf_get_changedtick(now.buffer)
  now.text = now.text:sub(#piece + 1)
  if vim.trim(now.text) == "" then
    withdraw()
  else
    ghost.draw(now.buffer, now.row, now.column, now.text)
  end
  return true
end

--- Takes the whole suggestion. Like the others here it returns whether there was one.
function M.accept()
  return take(function(text)
    return text
  end)
end

function M.accept_line()
  return take(ghost.first_line)
end

function M.accept_word()
  return take(ghost.first_word)
end

function M.dismiss()
  local any = M.visible()
  withdraw()
  return any
end

function M.visible()
  return current ~= nil and current.text ~= nil
end

local DESCRIPTIONS = {
  accept = "take the suggestion",
  accept_line = "take a line of the suggestion",
  accept_word = "take a word of the suggestion",
  dismiss = "leave the suggestion",
}

--- Lets the suggestion have its keys, in its buffer and as long as it is shown. Mappings that are not the
--- buffer's own are not touched at all; those that are come back.
local function lend(buffer)
  for name, description in pairs(DESCRIPTIONS) do
    local key = config.options.suggest.keys[name]
    if key then
      local before = vim.fn.maparg(key, "i", false, true)
      local function action()
        if menu_open() or not M[name]() then
          withdraw()
          vim.api.nvim_feedkeys(vim.keycode(key), "im", false)
        end
      end
      vim.keymap.set("i", key, action, { buffer = buffer, nowait = true, desc = "eca: " .. description })
      table.insert(lent, { key = key, action = action, before = before.buffer == 1 and before or nil })
    end
  end
end

local function show(place, text)
  place.text = text
  ghost.draw(place.buffer, place.row, place.column, text)
  lend(place.buffer)
end

local LEVELS = { error = vim.log.levels.ERROR, warning = vim.log.levels.WARN }

--- Tells why there is no suggestion: always if the user asked for one, else once.
local function complain(asked, message, kind)
  if kind ~= "info" then
    last_problem = message
  end
  if not asked then
    if told[message] or vim.tbl_count(told) >= MOST_PROBLEMS then
      return
    end
    told[message] = true
  end
  notice.show(message, LEVELS[kind])
end

--- The text that an answer proposes for a place; nil, and why, if there is none.
local function proposal(result, params)
  result = result or {}
  if result.error then
    return nil, result.error.message, result.error.type
  end
  local item = (result.items or {})[1]
  if not item then
    return nil, "there is nothing to suggest here", "info"
  end
  local at = params.position
  if item.docVersion ~= params.docVersion or not vim.deep_equal(item.range, { start = at, ["end"] = at }) then
    return nil, "the server suggests something for another place", "warning"
  end
  return (item.text:gsub("\r\n?", "\n"))
end

local function params_of(place)
  local lines = vim.api.nvim_buf_get_lines(place.buffer, 0, -1, false)
  local before = lines[place.row + 1]:sub(1, place.column)
  local name = vim.api.nvim_buf_get_name(place.buffer)
  return {
    docText = table.concat(lines, "\n") .. "\n",
    docVersion = place.tick,
    -- The server counts from 1, in UTF-16.
    position = { line = place.row + 1, character = vim.fn.strutf16len(before) + 1 },
    path = name ~= "" and name or nil,
  }
end

--- Asks for a suggestion at the cursor; `asked` if the user did.
local function request(asked)
  withdraw()
  local place = here()
  local params = params_of(place)
  current = place
  if asked then
    ghost.wait(place.buffer, place.row)
  end
  place.cancel = server.request("completion/inline", params, function(err, result, raw)
    if current ~= place then
      return
    elseif asked then
      ghost.clear(place.buffer)
    end
    if raw and raw.code == vim.lsp.protocol.ErrorCodes.MethodNotFound then
      refused_by = server.client()
      return complain(asked, "this server makes no suggestions", "warning")
    elseif err then
      return complain(asked, err, "error")
    end
    local text, message, kind = proposal(result, params)
    if not text then
      return complain(asked, message, kind)
    end
    last_problem = nil
    if still_at(place) and not menu_open() then
      show(place, text)
    else
      withdraw()
    end
  end)
end

--- Asks once, wherever the cursor is; from normal mode, insert mode is begun there.
function M.ask()
  local buffer = vim.api.nvim_get_current_buf()
  local reason = unsuited(buffer)
  if reason then
    return notice.show(reason)
  elseif menu_open() then
    return notice.show("the completion menu is open")
  elseif inserting() then
    return request(true)
  end
  vim.api.nvim_create_autocmd("InsertEnter", {
    buffer = buffer,
    once = true,
    callback = vim.schedule_wrap(function()
      if inserting() and vim.api.nvim_get_current_buf() == buffer then
        request(true)
      end
    end),
  })
  local at_end = vim.api.nvim_win_get_cursor(0)[2] >= #vim.api.nvim_get_current_line() - 1
  vim.cmd.startinsert({ bang = at_end })
end

--- Whether the server is asked when the user pauses, in this buffer and now.
local function wanted(buffer)
  return auto
    and inserting()
    and server.state ~= "failed"
    and (refused_by == nil or refused_by ~= server.client())
    and vim.fn.reg_executing() == ""
    and not unsuited(buffer)
    and not menu_open()
    and config.options.suggest.filter(buffer)
end

local function text_changed()
  if current and still_at(current) then
    return
  end
  withdraw()
  if not wanted(vim.api.nvim_get_current_buf()) then
    return
  end
  local place = here()
  current = place
  timer:start(config.options.suggest.delay_ms, 0, function()
    vim.schedule(function()
      if current == place and still_at(place) and wanted(place.buffer) then
        request(false)
      end
    end)
  end)
end

--- Suggestions by themselves, while the user types.
function M.enable()
  auto, told, refused_by = true, {}, nil
end

function M.disable()
  auto = false
  withdraw()
end

--- For the health check: whether they come by themselves, and what went wrong last.
function M.state()
  return auto, last_problem
end

local group = vim.api.nvim_create_augroup("eca_suggest", {})

local function on(events, callback, pattern)
  vim.api.nvim_create_autocmd(events, { group = group, callback = callback, pattern = pattern })
end

on("TextChangedI", text_changed)
on({ "CursorMovedI", "TextChangedP" }, function()
  if current and not still_at(current) then
    withdraw()
  end
end)
on({ "BufLeave", "WinLeave" }, withdraw)
-- `InsertLeave` is not told of <C-c>.
on("ModeChanged", withdraw, "i*:[^i]*")
on("CompleteChanged", vim.schedule_wrap(withdraw))
server.on_death(withdraw)

return M
