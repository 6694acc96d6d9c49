--- `:checkhealth eca`.

local config = require("eca.config")

local M = {}

local function check_neovim()
  if vim.fn.has("nvim-0.10") == 1 then
    vim.health.ok("Neovim " .. tostring(vim.version()))
  else
    vim.health.error("Neovim 0.10 or newer is needed")
  end
end

local function check_program()
  local command = config.options.cmd
  local path = vim.fn.exepath(command[1])
  if path == "" then
    vim.health.error(("`%s` is not an executable program"):format(command[1]), {
      "Install eca so that it is on the PATH of Neovim, or",
      'name it: require("eca").setup({ cmd = { "/path/to/eca", "server" } })',
    })
    return
  end
  local ok, result = pcall(function()
    return vim.system({ path, "--version" }, { text = true, timeout = 5000 }):wait()
  end)
  if ok and result.code == 0 then
    vim.health.ok(("%s (%s)"):format(vim.trim(result.stdout), path))
  else
    vim.health.error(("`%s --version` fails"):format(path), ok and vim.trim(result.stderr or "") or tostring(result))
  end
end

local function check_server()
  local server, session = require("eca.server"), require("eca.session")
  if server.state == "running" then
    local info = server.info or {}
    vim.health.ok(("the server runs: %s %s"):format(info.name or "eca", info.version or ""))
    if #session.models == 0 then
      vim.health.warn("it offers no models yet")
    else
      vim.health.ok(("%d models; %s is selected"):format(#session.models, session.selected.model or "none"))
    end
    if vim.deep_equal(session.models, { "eca/guide" }) then
      vim.health.warn("only the built-in guide answers", "Set up a provider: /login in a chat, or docs/config.md")
    end
    for name, tools in vim.spairs(session.tool_servers) do
      local count = #(tools.tools or {})
      local report = tools.status == "failed" and vim.health.warn or vim.health.info
      report(("tools of %s: %s, %d"):format(name, tools.status, count))
    end
  elseif server.state == "failed" then
    vim.health.error("the server could not be started, or died too often", "`:Eca log` shows what it said")
  else
    vim.health.info("the server does not run; `:Eca` starts it")
  end
  vim.health.info("workspace: " .. table.concat(config.roots(), ", "))
end

local function check_suggestions()
  local auto, problem = require("eca.suggest").state()
  vim.health.info(auto and "they come while you type" or "they come when you ask: `:Eca suggest`, or `:Eca suggest on`")
  if problem then
    vim.health.warn("the last one failed: " .. problem)
  end
  local suggest = config.options.suggest
  for name, default in vim.spairs(config.defaults.suggest) do
    if type(suggest[name]) ~= type(default) then
      vim.health.error(("`suggest.%s` is to be a %s"):format(name, type(default)))
    end
  end
end

local function check_extras()
  for _, language in ipairs({ "markdown", "markdown_inline" }) do
    if #vim.api.nvim_get_runtime_file(("parser/%s.so"):format(language), false) > 0 then
      vim.health.ok(("the parser for %s is there"):format(language))
    else
      vim.health.warn(("the parser for %s is missing: answers have simpler highlighting"):format(language))
    end
  end
  local plugin = package.loaded["eca.blink"] and "blink.cmp" or package.loaded["eca.cmp"] and "nvim-cmp"
  if plugin then
    vim.health.ok("completion in the prompt by " .. plugin)
  else
    vim.health.info("completion in the prompt by Neovim itself")
  end
end

function M.check()
  vim.health.start("eca: program")
  check_neovim()
  check_program()
  vim.health.start("eca: server")
  check_server()
  vim.health.start("eca: suggestions")
  check_suggestions()
  vim.health.start("eca: extras")
  check_extras()
end

return M
