--- Questions that the model puts to the user in the middle of a turn.

local M = {}

--- Waits, in the coroutine of a request's handler, until `start(done)` has called `done(value)`.
--- Where there is no coroutine, nothing can wait, and the answer is nil.
local function await(start)
  local running, main = coroutine.running()
  if not running or main then
    return nil
  end
  local answered = false
  start(function(value)
    -- Later, because a picker that answers at once would do so before the yield.
    vim.schedule(function()
      if not answered then
        answered = true
        coroutine.resume(running, value)
      end
    end)
  end)
  return coroutine.yield()
end

local function ask_freely(question)
  return await(function(done)
    vim.ui.input({ prompt = question .. " " }, done)
  end)
end

local OTHER = { label = "Something else…", freeform = true }

local function choose(question, options)
  return await(function(done)
    vim.ui.select(options, {
      prompt = question,
      kind = "eca_question",
      format_item = function(option)
        return option.description and option.label .. " — " .. option.description or option.label
      end,
    }, done)
  end)
end

--- Answers `chat/askQuestion`.
function M.ask(params)
  local options = vim.deepcopy(params.options or {})
  local answer
  if #options == 0 then
    answer = ask_freely(params.question)
  else
    if params.allowFreeform then
      table.insert(options, OTHER)
    end
    local choice = choose(params.question, options)
    if choice and choice.freeform then
      answer = ask_freely(params.question)
    else
      answer = choice and choice.label
    end
  end
  if answer == nil or vim.trim(answer) == "" then
    return { answer = vim.NIL, cancelled = true }
  end
  return { answer = answer, cancelled = false }
end

return M
