--- Messages to the user, all under one title.

local M = {}

function M.show(message, level)
  vim.notify("eca: " .. tostring(message), level or vim.log.levels.INFO, { title = "eca" })
end

function M.warn(message)
  M.show(message, vim.log.levels.WARN)
end

function M.error(message)
  M.show(message, vim.log.levels.ERROR)
end

return M
