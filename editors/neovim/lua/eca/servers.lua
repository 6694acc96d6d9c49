--- The MCP servers: how they stand, and what can be done with each.

local notice = require("eca.notice")
local server = require("eca.server")
local session = require("eca.session")

local M = {}

--- The states of one that is not disabled.
local ENABLED = { "stopped", "failed", "running", "starting", "requires-auth" }
--- What a user may do with a server, and in which state that has a meaning.
local ACTIONS = {
  { label = "Start", method = "mcp/startServer", on = { "stopped", "failed", "unknown" } },
  { label = "Stop", method = "mcp/stopServer", on = { "running", "starting", "requires-auth" } },
  { label = "Log in", method = "mcp/connectServer", on = { "requires-auth" } },
  { label = "Log out", method = "mcp/logoutServer", on = { "running", "failed", "stopped" }, needs_login = true },
  { label = "Enable", method = "mcp/enableServer", on = { "disabled" } },
  { label = "Disable", method = "mcp/disableServer", on = ENABLED },
}
--- States that another one follows by itself.
local PASSING = { starting = true, stopping = true }

local expected = {} -- Names of servers with which the user did something.

local function describe(one)
  local count = #(one.tools or {})
  local tools = one.status == "running" and (", %d %s"):format(count, count == 1 and "tool" or "tools") or ""
  return ("%s  %s%s"):format(one.name, one.status, tools)
end

local function treat(name)
  local one = session.tool_servers[name]
  local actions = vim.tbl_filter(function(action)
    return one and vim.list_contains(action.on, one.status) and (one.hasAuth or not action.needs_login)
  end, ACTIONS)
  if #actions == 0 then
    return notice.show(("%s is busy or gone; nothing can be done with it now"):format(name))
  end
  vim.ui.select(actions, {
    prompt = describe(one),
    kind = "eca_server_action",
    format_item = function(action)
      return action.label
    end,
  }, function(action)
    if action then
      expected[name] = true
      server.notify(action.method, { name = name })
    end
  end)
end

--- Chooses among the MCP servers.
function M.pick()
  server.start(function(err)
    if err then
      return notice.error(err)
    end
    local all = {}
    for _, one in vim.spairs(session.tool_servers) do
      if one.type ~= "native" then
        table.insert(all, one)
      end
    end
    if #all == 0 then
      return notice.show("no MCP servers are configured")
    end
    vim.ui.select(all, { prompt = "MCP server:", kind = "eca_server", format_item = describe }, function(one)
      if one then
        treat(one.name)
      end
    end)
  end)
end

--- A server is in another state: tell the user who wanted that.
function M.updated(params)
  session.tool_server_updated(params)
  if expected[params.name] and not PASSING[params.status] then
    expected[params.name] = nil
    local failed = params.status == "failed"
    notice.show(describe(params) .. (failed and "; `:Eca log` shows why" or ""), failed and vim.log.levels.WARN or nil)
  end
end

return M
