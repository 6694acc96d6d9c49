--- One chat: what was said in it, what it is doing, and what waits for the user.

local Transcript = require("eca.transcript")
local config = require("eca.config")
local server = require("eca.server")

local Chat = {}
Chat.__index = Chat

local function new_id()
  local bytes = { assert(vim.uv.random(16)):byte(1, 16) }
  bytes[7] = bit.bor(bit.band(bytes[7], 0x0f), 0x40)
  bytes[9] = bit.bor(bit.band(bytes[9], 0x3f), 0x80)
  local hex = ("%02x"):rep(16):format(unpack(bytes))
  return ("%s-%s-%s-%s-%s"):format(hex:sub(1, 8), hex:sub(9, 12), hex:sub(13, 16), hex:sub(17, 20), hex:sub(21))
end

local count = 0

--- A new chat, or one that the server knows by `id`.
function Chat.new(id)
  id = id or new_id()
  count = count + 1
  return setmetatable({
    id = id,
    --- What its buffers are called by; ids are long.
    number = count,
    title = nil,
    --- "idle", "running", "stopping" or "login".
    status = "idle",
    progress = nil,
    usage = nil,
    --- Whether the server has heard of it.
    known = false,
    --- What the user chose here; sent with every prompt.
    chosen = {},
    --- What the server says is in use here.
    selected = {},
    --- Contexts for the next prompt.
    contexts = {},
    --- What the words after `@` stand for, as completion offered them.
    mentions = {},
    --- A message for the running turn that the model has not seen yet.
    steering = nil,
    --- What waits for the end of the turn: messages with contexts, and commands.
    queue = {},
    calls = {},
    reasons = {},
    transcript = Transcript.new("eca://chat/" .. count),
  }, Chat)
end

function Chat:busy()
  return self.status == "running" or self.status == "stopping"
end

--- Sends a message. In a running turn it is handed to the model at the next occasion; if there is
--- none, it becomes the next prompt. What cannot be handed over waits for the end of the turn, unless it
--- is to be sent `now`: then the turn is stopped, and what waits goes back into the prompt.
function Chat:send(message, contexts, now)
  if not self:busy() or now then
    self:take_back()
    self:prompt(message, contexts)
  elseif self.status == "running" and #contexts == 0 and not message:find("^/") then
    self.steering = self.steering and self.steering .. "\n" .. message or message
    server.notify("chat/promptSteer", { chatId = self.id, message = message })
  else
    table.insert(self.queue, { message = message, contexts = contexts })
  end
  self:changed()
end

function Chat:prompt(message, contexts)
  self.status, self.progress, self.known = "running", "Sending", true
  local params = {
    chatId = self.id,
    message = message,
    model = self.chosen.model,
    agent = self.chosen.agent,
    variant = self.chosen.variant,
    trust = self.chosen.trust,
    contexts = #contexts > 0 and contexts or nil,
  }
  server.request("chat/prompt", params, function(err, result)
    if err then
      self:ended()
      self:note("This could not be sent: " .. err, message)
    elseif result.status == "error" or result.status == "idle" then
      self:ended()
      if result.status == "error" and result.resultMessage and self:last_kind() ~= "system" then
        self:note(result.resultMessage)
      end
    end
    self:changed()
  end)
end

--- A remark of the editor's own; a message that was not delivered goes back into the prompt.
function Chat:note(text, undelivered)
  self.transcript:add({ kind = "note", text = text, closed = true })
  if undelivered then
    require("eca.prompt").restore(self, undelivered)
  end
end

function Chat:last_kind()
  local last = self.transcript:last()
  return last and last.kind
end

function Chat:stop()
  if not self:busy() then
    return false
  end
  self:take_back()
  server.notify("chat/promptStop", { chatId = self.id })
  return true
end

--- What the model has not seen goes back into the prompt.
function Chat:take_back()
  local messages = { self.steering }
  for _, waiting in ipairs(self.queue) do
    table.insert(messages, waiting.message)
    vim.list_extend(self.contexts, waiting.contexts)
  end
  self.steering, self.queue = nil, {}
  if #messages > 0 then
    require("eca.prompt").restore(self, table.concat(messages, "\n"))
  end
end

--- The turn is over.
function Chat:ended()
  self.status, self.progress = "idle", nil
  require("eca.question").drop(self)
  local last = self.transcript:last()
  if last and not last.closed then
    self.transcript:close(last)
  end
  if self.steering then
    local message = self.steering
    self.steering = nil
    self:prompt(message, {})
  elseif #self.queue > 0 then
    local following = table.remove(self.queue, 1)
    self:prompt(following.message, following.contexts)
  end
end

--- The server died: what was open will never be closed by it.
function Chat:server_died(text)
  local was_busy = self:busy()
  for _, block in ipairs(self.transcript.blocks) do
    if block.kind == "tool" and (block.state == "preparing" or block.state == "waiting" or block.state == "running") then
      block.state, block.reason, block.expanded = "rejected", "lost", false
      self.transcript:redraw(block)
    elseif block.kind == "reason" and not block.closed then
      block.closed, block.expanded = true, false
      self.transcript:redraw(block)
    end
  end
  self:take_back()
  self:ended()
  if was_busy then
    self:note(text)
  end
end

--- Something about the chat changed that bars and status lines show.
function Chat:changed()
  require("eca.panel").refresh(self)
end

--- The calls that wait for the user, oldest first.
function Chat:waiting()
  return vim.tbl_filter(function(block)
    return block.kind == "tool" and block.state == "waiting"
  end, self.transcript.blocks)
end

--- Lets a call run: `save` is nil or "session".
function Chat:approve(block, save)
  block.state, block.expanded = "running", config.options.open.tool_calls
  self.transcript:redraw(block)
  server.notify("chat/toolCallApprove", { chatId = block.chat_id, toolCallId = block.content.id, save = save })
end

function Chat:reject(block)
  block.state, block.reason, block.expanded = "rejected", "user-choice", false
  self.transcript:redraw(block)
  server.notify("chat/toolCallReject", { chatId = block.chat_id, toolCallId = block.content.id })
end

local take = {}

local function stream(self, kind, text)
  local last = self.transcript:last()
  if last and last.kind == kind and not last.closed then
    return self.transcript:append(last, text)
  end
  text = text:gsub("^%s*\n", "")
  if text ~= "" then
    self.transcript:add({ kind = kind, text = text })
  end
end

function take.text(self, content, role)
  if role == "user" then
    if self.steering and vim.trim(content.text):find(vim.trim(self.steering), 1, true) then
      self.steering = nil
    end
    self.transcript:add({ kind = "user", text = content.text, content_id = content.contentId, closed = true })
  else
    stream(self, role == "system" and "system" or "assistant", content.text)
  end
end

function take.progress(self, content)
  if content.state == "finished" then
    self:ended()
  else
    self.progress = content.text
    if self.status == "idle" then
      self.status = "running"
    end
  end
end

function take.usage(self, content)
  self.usage = content
end

function take.metadata(self, content)
  self.title = content.title
end

function take.reasonStarted(self, content)
  self.reasons[content.id] = self.transcript:add({ kind = "reason", text = "", expanded = true })
end

function take.reasonText(self, content)
  local block = self.reasons[content.id]
  if block then
    self.transcript:append(block, content.text)
  end
end

function take.reasonFinished(self, content)
  local block = self.reasons[content.id]
  if block then
    block.closed, block.time, block.expanded = true, content.totalTimeMs, config.options.open.reasoning
    self.transcript:redraw(block)
  end
end

--- The block of a call, made when it is first heard of. `change` alters it before it is drawn.
local function call(self, content, chat_id, change)
  local key = chat_id .. "\0" .. content.id
  local block = self.calls[key]
  local fresh = not block
  if fresh then
    block = {
      kind = "tool",
      state = "preparing",
      content = {},
      arguments_text = "",
      chat_id = chat_id,
      nested = chat_id ~= self.id,
      expanded = config.options.open.tool_calls,
    }
    self.calls[key] = block
  end
  block.content = vim.tbl_extend("force", block.content, content)
  change(block)
  if fresh then
    self.transcript:add(block)
  else
    self.transcript:redraw(block)
  end
end

function take.toolCallPrepare(self, content, _, chat_id)
  call(self, content, chat_id, function(block)
    block.arguments_text = block.arguments_text .. (content.argumentsText or "")
  end)
end

function take.toolCallRun(self, content, _, chat_id)
  call(self, content, chat_id, function(block)
    if content.manualApproval then
      block.state, block.expanded = "waiting", true
    end
  end)
  if content.manualApproval then
    require("eca.panel").attention(self)
    if config.options.open.diff then
      require("eca.actions").show_waiting(self)
    end
  end
end

function take.toolCallRunning(self, content, _, chat_id)
  call(self, content, chat_id, function(block)
    block.state = "running"
  end)
end

function take.toolCalled(self, content, _, chat_id)
  call(self, content, chat_id, function(block)
    block.state, block.time = content.error and "failed" or "done", content.totalTimeMs
  end)
  local details = content.details
  if details and details.type == "fileChange" then
    local buffer = vim.fn.bufnr(details.path)
    if buffer ~= -1 then
      vim.cmd.checktime(buffer)
    end
  end
end

function take.toolCallRejected(self, content, _, chat_id)
  call(self, content, chat_id, function(block)
    block.state, block.reason, block.expanded = "rejected", content.reason, false
  end)
end

function take.url(self, content)
  stream(self, "assistant", ("\n[%s](%s)\n"):format(content.title or content.url, content.url))
end

function take.image(self, content)
  local size = math.floor(#(content.base64 or "") * 3 / 4 / 1024)
  self:note(("An image (%s, %d KiB); Neovim cannot show it here."):format(content.mediaType, size))
end

function take.flag(self, content)
  self:note("⚑ " .. content.text)
end

function take.hookActionFinished(self, content)
  if content.status ~= 0 or content.error then
    local reason = content.error or ("status %s"):format(content.status)
    self:note(("The hook %s failed: %s"):format(content.name, reason))
  elseif content.output and vim.trim(content.output) ~= "" then
    self:note(("%s: %s"):format(content.name, vim.trim(content.output)))
  end
end

--- What a subagent does is shown in its parent's chat; what it says comes back as the call's output.
local FROM_SUBAGENT = {
  toolCallPrepare = true,
  toolCallRun = true,
  toolCallRunning = true,
  toolCalled = true,
  toolCallRejected = true,
}

--- A piece of content. Kinds that are not known are of a newer server, and left out.
function Chat:receive(params)
  local content, from = params.content, params.chatId
  if from ~= self.id and not FROM_SUBAGENT[content.type] then
    return
  end
  self.known = true
  local taker = take[content.type]
  if taker then
    taker(self, content, params.role, from)
    self:changed()
  end
end

function Chat:clear()
  self.calls, self.reasons = {}, {}
  self.transcript:clear()
end

return Chat
