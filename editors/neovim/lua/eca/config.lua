--- What a user may set, and what counts when nothing is set.

local M = {}

M.defaults = {
  --- The server. `eca` is looked up on the PATH.
  cmd = { "eca", "server" },
  --- More environment for it, as a table.
  cmd_env = nil,
  --- The workspace: a path, a list of paths, or a function that returns either. By default the
  --- repository around the working directory, else the directory itself.
  root = nil,
  --- Passed to the server as `initializationOptions`; any of its settings may stand here.
  init_options = nil,
  window = {
    side = "right", -- or "left"
    width = 0.42, -- of the editor, or a number of columns
    input_height = 6,
  },
  --- Keys that are `false` are not mapped. `a`, `A`, `r` and `d` have a `g` before them in the prompt.
  keys = {
    send = "<CR>", -- in normal mode, in the prompt
    send_insert = "<C-s>", -- in insert mode
    stop = "<C-c>",
    approve = "a",
    always = "A",
    reject = "r",
    diff = "d",
    toggle = "<Tab>",
    next_approval = "]a",
    message_back = "[[", -- to your message before this place
    message_forward = "]]",
    input = "i",
    close = "q",
    history_back = "<C-Up>",
    history_forward = "<C-Down>",
  },
  icons = {
    open = "▾",
    closed = "▸",
    preparing = "…",
    waiting = "?",
    running = "●",
    done = "✓",
    failed = "✗",
    rejected = "⊘",
    bar = "▎",
  },
  --- Suggestions at the cursor. Each one is a request to a model, which may cost money, so they do not
  --- come by themselves unless `auto` is true.
  suggest = {
    auto = false,
    delay_ms = 400, -- the pause in typing after which one is asked for
    --- Which buffers they come by themselves in.
    filter = function(_)
      return true
    end,
    --- These are mapped only while a suggestion is shown, and otherwise do what they always do.
    keys = { accept = "<Tab>", accept_line = "<End>", accept_word = "<C-Right>", dismiss = "<C-]>" },
  },
  --- Whether the menu for `@`, `#` and `/` opens by itself where no completion plugin is at work.
  auto_complete = true,
  --- What is open without being asked to: reasoning that is over, tool calls, and the view of a change
  --- that waits for approval.
  open = { reasoning = false, tool_calls = false, diff = false },
  --- How much of a tool's output is shown.
  max_output_lines = 200,
  --- How often a server that died is started again, and within how many seconds.
  restart = { attempts = 3, seconds = 60 },
}

M.options = vim.deepcopy(M.defaults)

--- Puts the user's settings over the defaults.
function M.set(options)
  vim.validate({ options = { options, "table", true } })
  M.options = vim.tbl_deep_extend("force", vim.deepcopy(M.defaults), options or {})
end

--- The folders of the workspace, as absolute paths.
function M.roots()
  local root = M.options.root
  if type(root) == "function" then
    root = root()
  end
  if root == nil then
    local cwd = assert(vim.uv.cwd())
    root = vim.fs.root(cwd, ".git") or cwd
  end
  local roots = type(root) == "table" and root or { root }
  return vim.tbl_map(function(path)
    return vim.fs.normalize(vim.fn.fnamemodify(path, ":p"))
  end, roots)
end

return M
