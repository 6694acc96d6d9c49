--- Replacing a selection by what the model makes of it, once the user has seen it.

local notice = require("eca.notice")
local server = require("eca.server")

local M = {}

local namespace = vim.api.nvim_create_namespace("eca_rewrite")
local running = {} -- by id
local count = 0

local function selected_lines(job)
  local mark = vim.api.nvim_buf_get_extmark_by_id(job.buffer, namespace, job.mark, { details = true })
  if #mark == 0 then
    return nil
  end
  return mark[1], mark[3].end_row, vim.api.nvim_buf_get_lines(job.buffer, mark[1], mark[3].end_row, false)
end

local function show_state(job, text)
  local row = selected_lines(job)
  if row then
    job.label = vim.api.nvim_buf_set_extmark(job.buffer, namespace, row, 0, {
      id = job.label,
      virt_text = { { " " .. text, "EcaToolRunning" } },
      virt_text_pos = "eol",
    })
  end
end

local function done(job)
  running[job.id] = nil
  if vim.api.nvim_buf_is_valid(job.buffer) then
    vim.api.nvim_buf_del_extmark(job.buffer, namespace, job.mark)
    if job.label then
      vim.api.nvim_buf_del_extmark(job.buffer, namespace, job.label)
    end
  end
end

local function apply(job, lines)
  local first, last, now = selected_lines(job)
  if not first or not vim.deep_equal(now, job.lines) then
    notice.warn("the text has changed since; nothing was replaced. The proposal is in register r")
    vim.fn.setreg("r", lines, "l")
  else
    vim.api.nvim_buf_set_lines(job.buffer, first, last, false, lines)
  end
  done(job)
end

--- Shows the difference in a floating window and lets the user decide.
local function propose(job)
  local lines = vim.split((job.text:gsub("\n$", "")), "\n", { plain = true })
  local before = table.concat(job.lines, "\n") .. "\n"
  local diff = vim.diff(before, table.concat(lines, "\n") .. "\n", { ctxlen = 3 })
  if diff == "" then
    done(job)
    return notice.show("the model would leave it as it is")
  end
  local shown = vim.split((diff:gsub("\n$", "")), "\n", { plain = true })
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.bo[buffer].bufhidden = "wipe"
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, shown)
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].filetype = "diff"
  local width = 0
  for _, line in ipairs(shown) do
    width = math.max(width, vim.fn.strdisplaywidth(line))
  end
  local keys = require("eca.config").options.keys
  local window = vim.api.nvim_open_win(buffer, true, {
    relative = "editor",
    width = math.max(40, math.min(width + 1, vim.o.columns - 6)),
    height = math.max(3, math.min(#shown, vim.o.lines - 8)),
    row = 2,
    col = 3,
    style = "minimal",
    border = "rounded",
    title = (" %s replace   %s discard "):format(keys.approve or "<CR>", keys.reject or "q"),
  })
  local function close(decision)
    if vim.api.nvim_win_is_valid(window) then
      vim.api.nvim_win_close(window, true)
    end
    decision(job, lines)
  end
  local function map(key, decision)
    if key then
      vim.keymap.set("n", key, function()
        close(decision)
      end, { buffer = buffer, nowait = true })
    end
  end
  map(keys.approve or "<CR>", apply)
  map(keys.reject, done)
  map("q", done)
  map("<Esc>", done)
end

--- Asks for a rewrite of lines `first` to `last`, counted from 1.
function M.start(first, last, wish)
  if not wish or vim.trim(wish) == "" then
    return vim.ui.input({ prompt = "Rewrite how? " }, function(answer)
      if answer and vim.trim(answer) ~= "" then
        M.start(first, last, answer)
      end
    end)
  end
  local buffer = vim.api.nvim_get_current_buf()
  local lines = vim.api.nvim_buf_get_lines(buffer, first - 1, last, false)
  count = count + 1
  local job = { id = ("rewrite-%d-%d"):format(vim.fn.getpid(), count), buffer = buffer, lines = lines, text = "" }
  job.mark = vim.api.nvim_buf_set_extmark(buffer, namespace, first - 1, 0, {
    end_row = math.min(last, vim.api.nvim_buf_line_count(buffer)),
    strict = false,
    hl_group = "EcaRewrite",
    hl_eol = true,
  })
  running[job.id] = job
  show_state(job, "rewriting…")
  local name = vim.api.nvim_buf_get_name(buffer)
  server.request("rewrite/prompt", {
    id = job.id,
    text = table.concat(lines, "\n"),
    prompt = wish,
    path = name ~= "" and name or nil,
    range = {
      start = { line = first, character = 1 },
      ["end"] = { line = last, character = #(lines[#lines] or "") + 1 },
    },
  }, function(err, _, raw)
    if not err then
      return
    end
    done(job)
    if raw and raw.code == vim.lsp.protocol.ErrorCodes.MethodNotFound then
      notice.warn("this server cannot rewrite; ask for the change in a chat instead")
    else
      notice.error(err)
    end
  end)
end

function M.content_received(params)
  local job = running[params.rewriteId]
  if not job then
    return
  end
  local content = params.content
  if content.type == "text" then
    job.text = job.text .. content.text
  elseif content.type == "replace" then
    job.text = content.text
  elseif content.type == "reasoning" then
    show_state(job, "thinking…")
  elseif content.type == "error" then
    done(job)
    notice.error(content.message)
  elseif content.type == "finished" then
    show_state(job, "done")
    propose(job)
  end
end

return M
