--- What the model may ask of the editor: problems, definitions and uses, answered by the language
--- servers that Neovim is connected to anyway.

local M = {}

local SEVERITIES = {
  [vim.diagnostic.severity.ERROR] = "error",
  [vim.diagnostic.severity.WARN] = "warning",
  [vim.diagnostic.severity.INFO] = "information",
  [vim.diagnostic.severity.HINT] = "hint",
}
--- How long the language servers of one buffer may take together.
local PATIENCE_MS = 10000

local method_call = vim.fn.has("nvim-0.11") == 1

--- The problems of one file, or of all. Lines count from 0, as everywhere in Neovim; the server knows
--- this of Neovim.
function M.diagnostics(params)
  local buffer
  if params.uri then
    buffer = vim.fn.bufnr(vim.uri_to_fname(params.uri))
    if buffer == -1 then
      return { diagnostics = {} }
    end
  end
  local found = {}
  for _, problem in ipairs(vim.diagnostic.get(buffer)) do
    table.insert(found, {
      uri = vim.uri_from_bufnr(problem.bufnr),
      severity = SEVERITIES[problem.severity] or "information",
      source = problem.source,
      code = problem.code and tostring(problem.code) or nil,
      message = problem.message,
      range = {
        start = { line = problem.lnum, character = problem.col },
        ["end"] = { line = problem.end_lnum or problem.lnum, character = problem.end_col or problem.col },
      },
    })
  end
  return { diagnostics = found }
end

local function buffer_of(uri)
  local path = vim.uri_to_fname(uri)
  if vim.fn.filereadable(path) == 0 then
    return nil
  end
  local buffer = vim.fn.bufadd(path)
  local fresh = not vim.api.nvim_buf_is_loaded(buffer)
  if fresh then
    vim.fn.bufload(buffer)
    -- Loading alone does not tell the kind of file, and so would start no language server.
    local kind = vim.filetype.match({ buf = buffer })
    if kind and vim.bo[buffer].filetype == "" then
      vim.bo[buffer].filetype = kind
    end
  end
  return buffer, fresh
end

--- LSP counts from 0, ECA from 1.
local function shifted(range)
  local function place(position)
    return { line = position.line + 1, character = position.character + 1 }
  end
  return { start = place(range.start), ["end"] = place(range["end"]) }
end

local function read_locations(result, locations)
  if not result then
    return
  end
  for _, one in ipairs(result.uri and { result } or result.targetUri and { result } or result) do
    local uri, range = one.uri or one.targetUri, one.range or one.targetSelectionRange or one.targetRange
    if uri and range then
      table.insert(locations, { uri = uri, range = shifted(range) })
    end
  end
end

--- ECA counts from 1, in UTF-16; a language server counts from 0, in what it agreed on with Neovim.
local function position_for(client, buffer, position)
  local line, character = math.max(position.line - 1, 0), math.max(position.character - 1, 0)
  if client.offset_encoding ~= "utf-16" then
    local text = vim.api.nvim_buf_get_lines(buffer, line, line + 1, false)[1] or ""
    local ok, byte = pcall(vim.lsp.util._str_byteindex_enc, text, character, "utf-16")
    byte = ok and byte or #text
    character = client.offset_encoding == "utf-8" and byte or vim.fn.strchars(text:sub(1, byte))
  end
  return { line = line, character = character }
end

local function able_clients(buffer, method)
  local able = {}
  for _, client in ipairs(vim.lsp.get_clients({ bufnr = buffer })) do
    local can
    if method_call then
      can = client:supports_method(method, buffer)
    else
      can = client.supports_method(method, { bufnr = buffer })
    end
    if client.name ~= "eca" and can then
      table.insert(able, client)
    end
  end
  return able
end

--- Whether a language server of this buffer is still on its way.
local function starting(buffer, fresh)
  if fresh then
    return true
  end
  for _, client in ipairs(vim.lsp.get_clients({ bufnr = buffer, _uninitialized = true })) do
    if client.name ~= "eca" and not client.initialized then
      return true
    end
  end
  return false
end

local function locate(params, method, extra)
  local buffer, fresh = buffer_of(params.uri)
  if not buffer then
    return { status = "error", message = "there is no such file" }
  end
  local clients = able_clients(buffer, method)
  if #clients == 0 then
    return { status = starting(buffer, fresh) and "starting" or "no-server" }
  end
  local co = assert(coroutine.running())
  local open, locations, problems, finished = #clients, {}, {}, false
  local function finish()
    if not finished then
      finished = true
      vim.schedule(function()
        coroutine.resume(co)
      end)
    end
  end
  local function answered(err, result)
    if err then
      table.insert(problems, err.message or vim.inspect(err))
    else
      read_locations(result, locations)
    end
    open = open - 1
    if open == 0 then
      finish()
    end
  end
  for _, client in ipairs(clients) do
    local position = position_for(client, buffer, params.position)
    local request = vim.tbl_extend("force", { textDocument = { uri = params.uri }, position = position }, extra)
    if method_call then
      client:request(method, request, answered, buffer)
    else
      client.request(method, request, answered, buffer)
    end
  end
  vim.defer_fn(finish, PATIENCE_MS)
  coroutine.yield()
  if open > 0 and #locations == 0 then
    table.insert(problems, "the language server did not answer in time")
  end
  if #locations == 0 and #problems > 0 then
    return { status = "error", message = table.concat(problems, "; ") }
  end
  return { status = "success", locations = locations }
end

function M.definition(params)
  return locate(params, "textDocument/definition", {})
end

function M.references(params)
  local context = { includeDeclaration = params.includeDeclaration ~= false }
  return locate(params, "textDocument/references", { context = context })
end

return M
