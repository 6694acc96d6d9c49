--- The text of a chat, as blocks in a buffer that only this file writes to.
---
--- A block knows its first row and its height, so that one in the middle can be drawn again without
--- touching the others. Growing text at the end, which is most of what happens, is appended in place.

local blocks = require("eca.blocks")
local scratch = require("eca.scratch")

local Transcript = {}
Transcript.__index = Transcript

local namespace = vim.api.nvim_create_namespace("eca")

function Transcript.new(name)
  local buffer = scratch.new(name, "eca-chat")
  -- A parser that is missing must not cost the chat; the old highlighting is good enough.
  if not pcall(vim.treesitter.start, buffer, "markdown") then
    vim.bo[buffer].syntax = "markdown"
  end
  return setmetatable({ buffer = buffer, blocks = {}, height = 0 }, Transcript)
end

function Transcript:write(change)
  scratch.write(self.buffer, change)
end

--- What a block looks like: its lines, with an empty one before all but the first.
function Transcript:drawn(block)
  local drawing = blocks.draw(block)
  if block.row > 0 then
    table.insert(drawing.lines, 1, "")
    drawing.offset = 1
  else
    drawing.offset = 0
  end
  return drawing
end

function Transcript:mark(block, drawing)
  local function put(row, column, options)
    options.priority = options.priority or 210
    vim.api.nvim_buf_set_extmark(self.buffer, namespace, block.row + drawing.offset + row, column, options)
  end
  for _, mark in ipairs(drawing.marks) do
    put(mark.row, mark.from or 0, {
      end_col = mark.to or #drawing.lines[drawing.offset + mark.row + 1],
      hl_group = mark.group,
      hl_eol = false,
    })
  end
  for _, bar in ipairs(drawing.bars) do
    put(bar.row, 0, {
      virt_text = { { bar.text .. " ", bar.group } },
      virt_text_pos = "inline",
      line_hl_group = bar.line,
      right_gravity = false,
    })
  end
end

function Transcript:shift(after, by)
  if by == 0 then
    return
  end
  self.height = self.height + by
  for index = #self.blocks, 1, -1 do
    local block = self.blocks[index]
    if block == after then
      return
    end
    block.row = block.row + by
  end
end

--- Adds a block at the end.
function Transcript:add(block)
  local before = self.blocks[#self.blocks]
  if before and not before.closed then
    self:close(before)
  end
  block.row, block.height = self.height, 0
  table.insert(self.blocks, block)
  self:redraw(block)
  return block
end

--- Draws a block again, wherever it is.
function Transcript:redraw(block)
  local drawing = self:drawn(block)
  self:write(function()
    vim.api.nvim_buf_clear_namespace(self.buffer, namespace, block.row, block.row + block.height)
    local empty = self.height == 0
    local stop = empty and -1 or block.row + block.height
    vim.api.nvim_buf_set_lines(self.buffer, block.row, stop, false, drawing.lines)
    self:shift(block, #drawing.lines - block.height)
    block.height = #drawing.lines
    self:mark(block, drawing)
  end)
end

--- Adds to a block's text; in place where that is possible.
function Transcript:append(block, text)
  block.text = block.text .. text
  if block ~= self.blocks[#self.blocks] or not blocks.grows_in_place(block) then
    return self:redraw(block)
  end
  local pieces = vim.split(text, "\n", { plain = true })
  self:write(function()
    local row = block.row + block.height - 1
    local line = vim.api.nvim_buf_get_lines(self.buffer, row, row + 1, false)[1]
    vim.api.nvim_buf_set_text(self.buffer, row, #line, row, #line, pieces)
    block.height = block.height + #pieces - 1
    self.height = self.height + #pieces - 1
  end)
end

--- Nothing more comes to this block: space at its end goes, and so does a fence that it leaves open
--- and that would swallow everything after it.
function Transcript:close(block)
  block.closed = true
  local fence = block.text and blocks.open_fence(block)
  if fence then
    block.text = block.text:gsub("%s+$", "") .. "\n" .. fence
  end
  if fence or block.kind == "assistant" and block.text:find("%s$") then
    self:redraw(block)
  end
end

--- The block at a row, counted from 0.
function Transcript:at(row)
  for index = #self.blocks, 1, -1 do
    if self.blocks[index].row <= row then
      return self.blocks[index]
    end
  end
end

function Transcript:last()
  return self.blocks[#self.blocks]
end

function Transcript:clear()
  self.blocks, self.height = {}, 0
  self:write(function()
    vim.api.nvim_buf_clear_namespace(self.buffer, namespace, 0, -1)
    vim.api.nvim_buf_set_lines(self.buffer, 0, -1, false, {})
  end)
end

return Transcript
