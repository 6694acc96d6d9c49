--- How each kind of block is drawn: pure functions from a block to lines and highlights.
---
--- The transcript is Markdown, and Markdown hides characters. Whatever a user must see exactly (a
--- command, a path, a diff) therefore stands in a code span or in a fence.

local config = require("eca.config")

local M = {}

--- Shorter times of tools are noise.
local WORTH_SAYING_MS = 100
local BARS = { user = "EcaUser", system = "EcaSystem", note = "EcaNote" }

--- A code span that shows `text` as it is, whatever back quotes are in it.
function M.code(text)
  text = text:gsub("%s*\n%s*", " ⏎ ")
  local longest = 0
  for run in text:gmatch("`+") do
    longest = math.max(longest, #run)
  end
  local quotes = ("`"):rep(longest + 1)
  local space = longest > 0 and " " or ""
  return quotes .. space .. text .. space .. quotes
end

local function fence_for(lines)
  local longest = 2
  for _, line in ipairs(lines) do
    local run = line:match("^%s*(`+)")
    longest = math.max(longest, run and #run or 0)
  end
  return ("`"):rep(longest + 1)
end

local function fenced(lines, language)
  local fence = fence_for(lines)
  local all = { fence .. (language or "") }
  vim.list_extend(all, lines)
  table.insert(all, fence)
  return all
end

local function split(text)
  return vim.split(text, "\n", { plain = true })
end

--- The fence that is open at the end of some Markdown.
local function open_fence(lines)
  local open
  for _, line in ipairs(lines) do
    local fence, rest = line:match("^ ? ? ?(```+)(.*)$")
    if not fence then
      fence, rest = line:match("^ ? ? ?(~~~+)(.*)$")
    end
    if fence and not open then
      open = fence
    elseif fence and fence:sub(1, 1) == open:sub(1, 1) and #fence >= #open and vim.trim(rest) == "" then
      open = nil
    end
  end
  return open
end

--- The first lines of a long output, and how many are left out.
local function limited(lines)
  local most = config.options.max_output_lines
  if #lines <= most then
    return lines
  end
  local kept = vim.list_slice(lines, 1, most)
  table.insert(kept, ("… %d more lines"):format(#lines - most))
  return kept
end

local function relative(path)
  return vim.fn.fnamemodify(path, ":~:.")
end

local function seconds(milliseconds)
  if milliseconds < 1000 then
    return ("%d ms"):format(milliseconds)
  elseif milliseconds < 60000 then
    return ("%.1f s"):format(milliseconds / 1000)
  end
  return ("%d min %d s"):format(math.floor(milliseconds / 60000), math.floor(milliseconds / 1000) % 60)
end
M.seconds = seconds

local Drawing = {}
Drawing.__index = Drawing

local function drawing()
  return setmetatable({ lines = {}, marks = {}, bars = {} }, Drawing)
end

function Drawing:line(text, group)
  table.insert(self.lines, text)
  if group then
    table.insert(self.marks, { row = #self.lines - 1, group = group })
  end
end

--- A line of parts, each a text or a text with a group.
function Drawing:parts(parts)
  local text = ""
  for _, part in ipairs(parts) do
    if type(part) == "table" then
      table.insert(self.marks, { row = #self.lines, from = #text, to = #text + #part[1], group = part[2] })
      text = text .. part[1]
    else
      text = text .. part
    end
  end
  table.insert(self.lines, text)
end

function Drawing:fence(lines, language, group_of)
  local first = #self.lines
  vim.list_extend(self.lines, fenced(lines, language))
  if group_of then
    for index, line in ipairs(lines) do
      local group = group_of(line)
      if group then
        table.insert(self.marks, { row = first + index, group = group })
      end
    end
  end
end

local function diff_group(line)
  local first = line:sub(1, 1)
  return first == "+" and "EcaDiffAdd" or first == "-" and "EcaDiffDelete" or first == "@" and "EcaDiffHunk" or nil
end

local function draw_text(block)
  local result = drawing()
  local bar = BARS[block.kind]
  if block.kind == "user" then
    result:line("You", "EcaUser")
  end
  local text = block.text
  if block.kind ~= "assistant" or block.closed then
    text = text:gsub("^%s*\n", ""):gsub("%s+$", "")
  end
  for _, line in ipairs(split(text)) do
    result:line(line, block.kind == "note" and "EcaNote" or nil)
  end
  if bar then
    for row = 0, #result.lines - 1 do
      table.insert(result.bars, {
        row = row,
        text = config.options.icons.bar,
        group = bar,
        line = block.kind == "user" and "EcaUserLine" or nil,
      })
    end
  end
  return result
end

local function draw_reason(block)
  local icons = config.options.icons
  local result = drawing()
  local arrow = block.expanded and icons.open or icons.closed
  local title = block.time and ("Thought for %s"):format(seconds(block.time))
    or block.closed and "Thought"
    or "Thinking…"
  result:line(arrow .. " " .. title, "EcaReason")
  if block.expanded then
    local lines = split(vim.trim(block.text))
    table.insert(lines, open_fence(lines))
    for _, line in ipairs(lines) do
      result:line(line, "EcaReason")
      table.insert(result.bars, { row = #result.lines - 1, text = "│", group = "EcaReason" })
    end
  end
  return result
end

local STATES = {
  preparing = { icon = "preparing", group = "EcaToolPreparing" },
  waiting = { icon = "waiting", group = "EcaToolWaiting" },
  running = { icon = "running", group = "EcaToolRunning" },
  done = { icon = "done", group = "EcaToolDone" },
  failed = { icon = "failed", group = "EcaToolFailed" },
  rejected = { icon = "rejected", group = "EcaToolRejected" },
}

local REASONS = {
  ["user-choice"] = "rejected by you",
  ["user-config"] = "forbidden by the configuration",
  ["user-prompt-stop"] = "stopped",
  ["hook-rejected"] = "rejected by a hook",
  lost = "lost with the server",
}

local function tool_title(block)
  local content = block.content
  local details = content.details or {}
  local title = content.summary
  if not title or title == "" then
    title = content.server and content.server ~= "eca" and content.server .. "__" .. content.name or content.name
  end
  if details.type == "fileChange" and not title:find(vim.fs.basename(details.path), 1, true) then
    title = title .. " " .. relative(details.path)
  elseif details.type == "subagent" then
    local steps = details.maxSteps and ("%d/%d"):format(details.step or 0, details.maxSteps) or tostring(details.step or 0)
    title = ("%s (%s, step %s)"):format(title, details.agentName or "agent", steps)
  end
  return title
end

local function tool_header(block, result)
  local icons = config.options.icons
  local state = STATES[block.state]
  local details = block.content.details or {}
  local arrow = block.expanded and icons.open or icons.closed
  local parts = { { arrow .. " ", "EcaTool" }, { icons[state.icon] .. " ", state.group } }
  if block.nested then
    table.insert(parts, 1, { "↳ ", "EcaTool" })
  end
  table.insert(parts, { M.code(tool_title(block)), "EcaTool" })
  if details.type == "fileChange" then
    table.insert(parts, { ("  +%d"):format(details.linesAdded or 0), "EcaDiffAdd" })
    table.insert(parts, { (" −%d"):format(details.linesRemoved or 0), "EcaDiffDelete" })
  end
  if block.state == "rejected" then
    table.insert(parts, { "  " .. (REASONS[block.reason] or "rejected"), "EcaToolRejected" })
  elseif block.time and block.time >= WORTH_SAYING_MS then
    table.insert(parts, { "  " .. seconds(block.time), "EcaReason" })
  end
  result:parts(parts)
end

local function argument_lines(arguments)
  local lines, names = {}, vim.tbl_keys(arguments or {})
  table.sort(names)
  for _, name in ipairs(names) do
    local value = arguments[name]
    value = type(value) == "string" and value or vim.json.encode(value)
    local pieces = split(value)
    table.insert(lines, name .. ": " .. (#pieces == 1 and pieces[1] or ""))
    if #pieces > 1 then
      for _, piece in ipairs(pieces) do
        table.insert(lines, "  " .. piece)
      end
    end
  end
  return lines
end

local TASKS = { done = "✓", ["in-progress"] = "●", pending = "·" }

local function diff_lines(diff)
  local lines = split((diff:gsub("\n$", "")))
  -- The names of the files are in the title.
  while lines[1] and (vim.startswith(lines[1], "--- ") or vim.startswith(lines[1], "+++ ")) do
    table.remove(lines, 1)
  end
  return lines
end

local function output_lines(content)
  local texts = vim.tbl_map(function(output)
    return output.text or ""
  end, content.outputs or {})
  local text = vim.trim(table.concat(texts, "\n"))
  return text ~= "" and split(text) or {}
end

local function tool_body(block, result)
  local content = block.content
  local details = content.details or {}
  local output = output_lines(content)
  if details.type == "fileChange" and details.diff then
    result:fence(limited(diff_lines(details.diff)), "diff", diff_group)
    -- That it went well is known from the title.
    if block.state == "failed" then
      result:fence(limited(output))
    end
    return
  elseif details.type == "task" then
    for _, task in ipairs(details.tasks or {}) do
      result:line(("%s %s"):format(TASKS[task.status] or "·", M.code(task.subject or "")))
    end
    return
  end
  local lines = {}
  if content.arguments and next(content.arguments) then
    lines = argument_lines(content.arguments)
  elseif block.arguments_text ~= "" then
    lines = split(block.arguments_text)
  end
  if #output > 0 then
    if #lines > 0 then
      table.insert(lines, "")
    end
    vim.list_extend(lines, output)
  end
  if #lines > 0 then
    result:fence(limited(lines))
  end
end

local function tool_keys(block, result)
  local keys = config.options.keys
  local details = block.content.details or {}
  local parts = {}
  local function offer(key, text)
    if key then
      table.insert(parts, { M.code(key), "EcaKey" })
      table.insert(parts, " " .. text .. "   ")
    end
  end
  offer(keys.approve, "approve")
  offer(keys.always, "always")
  offer(keys.reject, "reject")
  if details.type == "fileChange" then
    offer(keys.diff, "diff")
  end
  result:parts(parts)
end

local function draw_tool(block)
  local result = drawing()
  tool_header(block, result)
  if block.expanded then
    tool_body(block, result)
  end
  if block.state == "waiting" then
    tool_keys(block, result)
  end
  return result
end

local DRAWERS = {
  user = draw_text,
  assistant = draw_text,
  system = draw_text,
  note = draw_text,
  reason = draw_reason,
  tool = draw_tool,
}

--- The lines of a block, their highlights and the bars before them.
function M.draw(block)
  local result = DRAWERS[block.kind](block)
  if #result.lines == 0 then
    result:line("")
  end
  return result
end

--- Whether text may be put after what is drawn already.
function M.grows_in_place(block)
  return block.kind == "assistant" and block.height > 0
end

--- The fence that a block's text opens and does not close, or nil. Other blocks close their own.
function M.open_fence(block)
  if block.kind == "tool" or block.kind == "reason" then
    return nil
  end
  return open_fence(split(block.text))
end

--- Whether a block can be opened and closed.
function M.folds(block)
  return block.kind == "tool" or block.kind == "reason"
end

return M
