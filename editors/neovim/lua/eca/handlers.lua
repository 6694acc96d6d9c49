--- What the server says and asks, by method: the table that Neovim's LSP client dispatches on.

local notice = require("eca.notice")
local session = require("eca.session")

local handlers = {}

--- A notification with parameters. An error in a handler must not end the connection's dispatch, so
--- Neovim reports it; nothing is caught here.
local function on(method, take)
  handlers[method] = function(_, params)
    take(params or {})
  end
end

--- A request. `answer` may wait, in its coroutine, for the user or for another language server.
local function answers(method, answer)
  handlers[method] = function(_, params)
    return answer(params or {})
  end
end

on("config/updated", function(params)
  session.config_updated(params)
end)

on("tool/serverUpdated", function(params)
  require("eca.servers").updated(params)
end)

on("tool/serverRemoved", function(params)
  session.tool_server_removed(params)
end)

on("chat/contentReceived", function(params)
  session.content_received(params)
end)

on("chat/statusChanged", function(params)
  session.status_changed(params)
end)

on("chat/opened", function(params)
  session.opened(params)
end)

on("chat/cleared", function(params)
  session.cleared(params)
end)

on("chat/deleted", function(params)
  session.deleted(params)
end)

on("jobs/updated", function(params)
  require("eca.jobs").updated(params)
end)

on("providers/updated", function(params)
  require("eca.providers").updated(params)
end)

on("rewrite/contentReceived", function(params)
  require("eca.rewrite").content_received(params)
end)

local levels = { error = vim.log.levels.ERROR, warning = vim.log.levels.WARN, info = vim.log.levels.INFO }

on("$/showMessage", function(params)
  notice.show(params.message, levels[params.type] or vim.log.levels.INFO)
end)

-- The same once more, for clients that do not know ECA.
on("window/showMessage", function() end)

answers("chat/askQuestion", function(params)
  return require("eca.question").ask(params)
end)

answers("editor/getDiagnostics", function(params)
  return require("eca.editor").diagnostics(params)
end)

answers("editor/getDefinition", function(params)
  return require("eca.editor").definition(params)
end)

answers("editor/getReferences", function(params)
  return require("eca.editor").references(params)
end)

return handlers
