--- Logging in to providers of models, and out.

local notice = require("eca.notice")
local server = require("eca.server")

local M = {}

local awaited = {} -- Providers whose login goes on in a browser.

--- Asks for all fields, one after the other; nothing is sent if the user leaves one empty.
local function fill(fields, data, callback)
  local field = fields[1]
  if not field then
    return callback(data)
  end
  local function entered(value)
    if not value or value == "" then
      return notice.show("the login was given up")
    end
    data[field.key] = value
    fill(vim.list_slice(fields, 2), data, callback)
  end
  if field.type == "secret" then
    -- `vim.ui.input` would show it.
    entered(vim.fn.inputsecret(field.label .. ": "))
  else
    vim.ui.input({ prompt = field.label .. ": " }, entered)
  end
end

local step

--- Begins a login, by one of the methods that the server offered if it has asked for that.
local function login(provider, method)
  server.ask("providers/login", { provider = provider, method = method }, function(result)
    step(provider, result)
  end)
end

local function choose_method(provider, methods)
  vim.ui.select(methods, {
    prompt = "How?",
    kind = "eca_login_method",
    format_item = function(method)
      return method.label
    end,
  }, function(method)
    if method then
      login(provider, method.key)
    end
  end)
end

local function open(url)
  local process, problem = vim.ui.open(url)
  if not process then
    notice.warn(("open this yourself: %s (%s)"):format(url, problem or "no browser"))
  end
end

--- Does what the server wants to be done next.
step = function(provider, wish)
  if wish.action == "done" then
    return notice.show(("logged in to %s"):format(provider))
  elseif wish.action == "choose-method" then
    return choose_method(provider, wish.methods)
  end
  local lines = { wish.message, wish.code and ("The code is %s"):format(wish.code) or nil }
  if #lines > 0 then
    notice.show(table.concat(lines, " "))
  end
  if wish.url then
    awaited[provider] = true
    if wish.code and vim.fn.has("clipboard") == 1 then
      vim.fn.setreg("+", wish.code)
    end
    open(wish.url)
  end
  if wish.fields and #wish.fields > 0 then
    fill(wish.fields, {}, function(data)
      server.ask("providers/loginInput", { provider = provider, data = data }, function(result)
        step(provider, result)
      end)
    end)
  end
end

local function logout(provider)
  server.ask("providers/logout", { provider = provider }, function()
    notice.show(("logged out of %s"):format(provider))
  end)
end

--- Chooses a provider that fits, unless `name` names one, and calls `action` with its id.
local function pick(name, prompt, fits, action)
  if name then
    return action(name)
  end
  server.ask("providers/list", vim.empty_dict(), function(result)
    local providers = vim.tbl_filter(fits, result.providers)
    if #providers == 0 then
      return notice.show("there is no such provider")
    end
    vim.ui.select(providers, {
      prompt = prompt,
      kind = "eca_provider",
      format_item = function(provider)
        return ("%s  %s"):format(provider.label or provider.id, provider.auth.status)
      end,
    }, function(provider)
      if provider then
        action(provider.id)
      end
    end)
  end)
end

function M.login(name)
  pick(name, "Log in to:", function()
    return true
  end, login)
end

--- Only what was entered can be forgotten; keys of the configuration and the environment stay.
function M.logout(name)
  pick(name, "Log out of:", function(provider)
    return provider.auth.source == "login"
  end, logout)
end

--- A provider stands otherwise: a login in the browser is complete when this is told.
function M.updated(provider)
  if awaited[provider.id] and provider.auth.status == "authenticated" then
    awaited[provider.id] = nil
    notice.show(("logged in to %s"):format(provider.label or provider.id))
  end
end

return M
