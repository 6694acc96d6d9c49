-- Defines `:Eca`. Everything else is loaded when it is first used.

if vim.g.loaded_eca then
  return
end
vim.g.loaded_eca = true

if vim.fn.has("nvim-0.10") == 0 then
  vim.notify("eca: Neovim 0.10 or newer is needed", vim.log.levels.ERROR)
  return
end

vim.api.nvim_create_user_command("Eca", function(call)
  require("eca")
  require("eca.command").run(call)
end, {
  nargs = "*",
  range = true,
  bang = true,
  desc = "Chat with ECA; see :help eca",
  complete = function(lead, line)
    return require("eca.command").complete(lead, line)
  end,
})
