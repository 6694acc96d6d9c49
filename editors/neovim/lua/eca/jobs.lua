--- What tools started in the background: the list, what a job printed, and its end.

local config = require("eca.config")
local notice = require("eca.notice")
local scratch = require("eca.scratch")
local server = require("eca.server")
local session = require("eca.session")

local M = {}

local namespace = vim.api.nvim_create_namespace("eca_jobs")
--- How often what a running job prints is read again while it can be seen.
local PERIOD_MS = 1000

local views = {} -- The buffers that show an output, by the job's id.

local function find(id)
  for _, job in ipairs(session.jobs) do
    if job.id == id then
      return job
    end
  end
end

--- A job in a few words: its name, how it stands, and what it is called.
local function describe(job)
  local code = type(job.exitCode) == "number" and (" (%d)"):format(job.exitCode) or ""
  return ("%s  %s%s  %s"):format(job.id, job.status, code, job.label or "")
end

--- The same for a list, with what it runs, since when and for which chat.
local function describe_fully(job)
  local command = type(job.summary) == "string" and job.summary:gsub("%s*\n%s*", " ⏎ ") .. ", " or ""
  return ("%s (%s%s, %s)"):format(describe(job), command, job.elapsed, job.chatLabel)
end

--- Ends a job, if the user means it.
function M.kill(id)
  if vim.fn.confirm(("Kill %s?"):format(id), "&Kill\n&Leave", 2) ~= 1 then
    return
  end
  server.ask("jobs/kill", { jobId = id }, function(result)
    notice.show(result.killed and ("%s was killed"):format(id) or ("%s had ended already"):format(id))
  end)
end

local function bar(buffer, id, result)
  local job = { id = id, status = result.status, exitCode = result.exitCode, label = (find(id) or {}).label }
  local text = describe(job):gsub("%%", "%%%%"):gsub("\n", " ")
  local stop = config.options.keys.stop
  local keys = "R read again" .. (job.status == "running" and stop and ("  %s kill"):format(stop) or "")
  for _, window in ipairs(vim.fn.win_findbuf(buffer)) do
    vim.wo[window].winbar = (" %%#EcaTitle#%s%%*%%<%%=%%#EcaReason#%s%%* "):format(text, keys)
  end
end

local function write(buffer, lines)
  local texts = vim.tbl_map(function(line)
    return (line.text:gsub("[\r\n]+", " "))
  end, lines)
  if #texts == 0 then
    texts = { "" }
  end
  if vim.deep_equal(texts, vim.api.nvim_buf_get_lines(buffer, 0, -1, false)) then
    return
  end
  scratch.write(buffer, function()
    vim.api.nvim_buf_set_lines(buffer, 0, -1, false, texts)
    for row, line in ipairs(lines) do
      if line.stream == "stderr" then
        local look = { end_row = row, hl_group = "EcaStderr", strict = false }
        vim.api.nvim_buf_set_extmark(buffer, namespace, row - 1, 0, look)
      end
    end
  end)
end

local refresh

--- Reads again after a while, as long as somebody may be looking. One such wait per buffer is enough.
local function again_later(id, view)
  if view.waits then
    return
  end
  view.waits = true
  vim.defer_fn(function()
    view.waits = false
    if views[id] == view then
      refresh(id)
    end
  end, PERIOD_MS)
end

--- Reads a job's output into its buffer. What cannot be read is told only to those who `asked`.
refresh = function(id, asked)
  local view = views[id]
  server.request("jobs/readOutput", { jobId = id }, function(err, result)
    if views[id] ~= view then
      return
    elseif err or type(result.status) ~= "string" then
      return asked and notice.warn(err or ("the server does not know %s any more"):format(id))
    end
    write(view.buffer, result.lines)
    bar(view.buffer, id, result)
    if result.status == "running" then
      again_later(id, view)
    end
  end)
end

local function new_view(id)
  local buffer = scratch.new("eca://job/" .. id, "eca-job")
  vim.bo[buffer].bufhidden = "wipe"
  views[id] = { buffer = buffer }
  vim.api.nvim_create_autocmd("BufWipeout", {
    buffer = buffer,
    callback = function()
      views[id] = nil
    end,
  })
  local function map(key, action, description)
    scratch.map(buffer, "n", key, action, description)
  end
  map("R", function()
    refresh(id, true)
  end, "read the output again")
  map(config.options.keys.stop, function()
    M.kill(id)
  end, "kill the job")
  map(config.options.keys.close, function()
    vim.api.nvim_win_close(0, true)
  end, "close")
  return buffer
end

--- Shows what a job printed.
function M.read(id)
  local view = views[id]
  local window = view and vim.fn.win_findbuf(view.buffer)[1]
  if window then
    vim.api.nvim_set_current_win(window)
  else
    local buffer = new_view(id)
    -- Beside the chat, whose prompt would otherwise take the room when this is closed.
    local work = require("eca.panel").work_window()
    if work then
      vim.api.nvim_set_current_win(work)
    end
    vim.cmd(("%s %dsplit"):format(work and "belowright" or "botright", math.max(4, math.floor(vim.o.lines / 3))))
    vim.api.nvim_win_set_buf(0, buffer)
    vim.wo[0][0].number = false
    vim.wo[0][0].relativenumber = false
  end
  refresh(id, true)
end

--- Reads it or ends it; a job that has ended can only be read.
local function treat(id)
  local job = find(id)
  if not job or job.status ~= "running" then
    return M.read(id)
  end
  local options = { prompt = describe(job), kind = "eca_job_action" }
  vim.ui.select({ "Read its output", "Kill it" }, options, function(_, number)
    if number == 1 then
      M.read(id)
    elseif number == 2 then
      M.kill(id)
    end
  end)
end

--- Chooses among the jobs.
function M.pick()
  server.ask("jobs/list", vim.empty_dict(), function(result)
    session.jobs = result.jobs
    if #session.jobs == 0 then
      return notice.show("there are no background jobs")
    end
    local options = { prompt = "Background job:", kind = "eca_job", format_item = describe_fully }
    vim.ui.select(session.jobs, options, function(job)
      if job then
        treat(job.id)
      end
    end)
  end)
end

--- The server's list has changed.
function M.updated(params)
  session.jobs = params.jobs or {}
  for id in pairs(views) do
    refresh(id)
  end
end

return M
