--- Questions that the model puts to the user in the middle of a turn.

local notice = require("eca.notice")

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

--- Those without an answer, oldest first, each with its chat.
local waiting = {}

local OTHER = { label = "Something else…" }
local NONE = { label = "No answer" }

--- Gives the answer; nil is none, and the model is told so.
local function finish(question, answer)
  for index, other in ipairs(waiting) do
    if other == question then
      table.remove(waiting, index)
      question.done(answer)
      require("eca.panel").refresh(question.chat)
    end
  end
end

local function later()
  notice.show("the model waits for your answer; `:Eca answer` asks you again")
end

local function ask_freely(question)
  vim.ui.input({ prompt = question.text .. " " }, function(answer)
    if answer == nil then
      return later()
    end
    finish(question, vim.trim(answer) ~= "" and answer or nil)
  end)
end

--- Puts a question to the user. One who leaves it is asked again when they want.
local function put(question)
  if #question.options == 0 then
    return ask_freely(question)
  end
  local options = vim.list_extend({}, question.options)
  if question.freeform then
    table.insert(options, OTHER)
  end
  table.insert(options, NONE)
  vim.ui.select(options, {
    prompt = question.text,
    kind = "eca_question",
    format_item = function(option)
      return option.description and option.label .. " — " .. option.description or option.label
    end,
  }, function(choice)
    if choice == nil then
      later()
    elseif choice == OTHER then
      ask_freely(question)
    else
      finish(question, choice ~= NONE and choice.label or nil)
    end
  end)
end

--- Answers `chat/askQuestion`.
function M.ask(params)
  local answer = await(function(done)
    local question = {
      text = params.question,
      options = params.options or {},
      freeform = params.allowFreeform,
      chat = require("eca.session").home(params.chatId),
      done = done,
    }
    table.insert(waiting, question)
    put(question)
    require("eca.panel").refresh(question.chat)
  end)
  if answer == nil then
    return { answer = vim.NIL, cancelled = true }
  end
  return { answer = answer, cancelled = false }
end

--- Asks what was left, the oldest first.
function M.again()
  if waiting[1] then
    put(waiting[1])
  else
    notice.show("no question waits for you")
  end
end

--- Whether a chat waits for an answer.
function M.waits(chat)
  return vim.iter(waiting):any(function(question)
    return question.chat == chat
  end)
end

--- The turn of a chat is over: nobody waits for its answers any more.
function M.drop(chat)
  for _, question in ipairs(vim.list_slice(waiting)) do
    if question.chat == chat then
      finish(question, nil)
    end
  end
end

return M
