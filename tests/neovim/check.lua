-- Run by run.mjs inside Neovim (0.7 or newer): TILE is the program, TILE_FILE the kernel file to edit,
-- TILE_OTHERS those of other projects, a line each.
-- Each step finds the buffer as the one before it left it.

local WAIT_MS = 20000
local file = os.getenv("TILE_FILE")
local others = vim.split(os.getenv("TILE_OTHERS") or "", "\n", { trimempty = true })
local buffer, client_id, client

local function say(text)
  io.stdout:write(text .. "\n")
end

local function await(what, condition)
  assert(vim.wait(WAIT_MS, condition, 10), "timed out: " .. what)
end

local function request(method, params)
  local answers, problem = vim.lsp.buf_request_sync(buffer, method, params, WAIT_MS)
  assert(answers, method .. ": " .. tostring(problem))
  local _, answer = next(answers)
  assert(answer and not answer.err and not answer.error, method .. ": " .. vim.inspect(answer))
  return answer.result
end

local function lines()
  return vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
end

--- The first place of `text`, counted from 0, as line and column; from a line on if one is given.
local function find(text, from)
  for index, line in ipairs(lines()) do
    local column = index > (from or 0) and line:find(text, 1, true)
    if column then
      return index - 1, column - 1
    end
  end
  error("the example no longer has " .. text)
end

local function retype(from, to)
  local line, column = find(from)
  vim.api.nvim_buf_set_text(buffer, line, column, line, column + #from, { to })
end

local function errors()
  return vim.diagnostic.get(buffer, { severity = vim.diagnostic.severity.ERROR })
end

local function document()
  return { uri = vim.uri_from_bufnr(buffer) }
end

local function kernel()
  local line = find("@triton.jit")
  while true do
    line = line + 1
    local name = lines()[line + 1]:match("^def ([%w_]+)")
    if name then
      return name, line
    end
  end
end

local function execute(command, target)
  return request("workspace/executeCommand", {
    command = command,
    arguments = { vim.tbl_extend("force", { uri = document().uri, kernel = kernel() }, target or {}) },
  })
end

--- Opens a file that nobody here wrote: nothing is wrong with it but what is typed wrong in a kernel.
local function edit_other(path)
  vim.cmd("edit " .. vim.fn.fnameescape(path))
  buffer = vim.api.nvim_get_current_buf()
  vim.bo[buffer].filetype = "python"
  assert(vim.lsp.buf_attach_client(buffer, client_id), "the client did not attach")
  local name, line = kernel()
  local _, column = lines()[line + 1]:find("def ")
  local place = { textDocument = document(), position = { line = line, character = column } }
  local hover = request("textDocument/hover", place)
  assert(hover and hover.contents.value:find(name, 1, true), path .. ": " .. vim.inspect(hover))
  assert(#errors() == 0, path .. ": " .. vim.inspect(errors()))
  local load, start = find(" tl.load(", line)
  local typed = { start + #" tl.load", start + #" tl.load" }
  vim.api.nvim_buf_set_text(buffer, load, typed[1], load, typed[2], { "ed" })
  -- Where nobody launches the kernel so that the line runs, it is a warning.
  local function is_told()
    local names_it = function(found) return found.lnum == load and found.message:find("loaded", 1, true) end
    return #vim.tbl_filter(names_it, vim.diagnostic.get(buffer)) > 0
  end
  await("a finding in " .. path, is_told)
  vim.api.nvim_buf_set_text(buffer, load, typed[1], load, typed[1] + #"ed", {})
  await("no finding in " .. path, function() return not is_told() end)
  assert(#errors() == 0, path .. ": " .. vim.inspect(errors()))
end

local steps = {
  {
    "the server starts and finds nothing wrong",
    function()
      vim.cmd("edit " .. vim.fn.fnameescape(file))
      buffer = vim.api.nvim_get_current_buf()
      vim.bo[buffer].filetype = "python"
      client_id = assert(vim.lsp.start_client({
        name = "tile",
        cmd = { os.getenv("TILE"), "lsp" },
        root_dir = vim.fn.fnamemodify(file, ":h"),
        init_options = { device = "cpu" },
      }))
      client = vim.lsp.get_client_by_id(client_id)
      assert(vim.lsp.buf_attach_client(buffer, client_id), "the client did not attach")
      await("initialize", function() return client.initialized end)
      local symbols = request("textDocument/documentSymbol", { textDocument = document() })
      assert(vim.inspect(symbols):find(kernel(), 1, true), "the outline has the kernel")
      assert(#errors() == 0, vim.inspect(errors()))
    end,
  },
  {
    "hovering over the kernel's name tells its registers once it is compiled",
    function()
      local name, line = kernel()
      local _, column = lines()[line + 1]:find("def ")
      local text = ""
      await("registers in the hover", function()
        local hover = request("textDocument/hover", {
          textDocument = document(),
          position = { line = line, character = column },
        })
        text = hover and hover.contents.value or ""
        return text:find("%d+ registers") ~= nil
      end)
      assert(text:find(name, 1, true), text)
    end,
  },
  {
    "a mask of the wrong shape is an error, and mending it clears the error",
    function()
      retype("mask = offsets < ", "mask = tl.arange(0, 2 * BLOCK_SIZE) < ")
      await("a shape error", function() return #errors() > 0 end)
      assert(errors()[1].message:find("shape", 1, true), errors()[1].message)
      retype("mask = tl.arange(0, 2 * BLOCK_SIZE) < ", "mask = offsets < ")
      await("no error", function() return #errors() == 0 end)
    end,
  },
  {
    "a misspelled name is mended by its quick fix",
    function()
      retype("tl.arange(", "tl.arrange(")
      await("a name error", function() return #errors() > 0 end)
      local found = errors()[1]
      local range = {
        start = { line = found.lnum, character = found.col },
        ["end"] = { line = found.end_lnum, character = found.end_col },
      }
      local actions = request("textDocument/codeAction", {
        textDocument = document(),
        range = range,
        context = { diagnostics = { found.user_data.lsp and vim.tbl_extend("force", {
          range = range, message = found.message, severity = found.severity, source = found.source,
        }, found.user_data.lsp) } },
      })
      local fix = vim.tbl_filter(function(action) return action.title:find("%f[%w]arange%f[%W]") end, actions)[1]
      assert(fix and fix.edit, "no fix that says arange: " .. vim.inspect(actions))
      vim.lsp.util.apply_workspace_edit(fix.edit, client.offset_encoding)
      find("tl.arange(")
      await("no error", function() return #errors() == 0 end)
    end,
  },
  {
    "code lenses offer Run and PTX",
    function()
      local titles = vim.tbl_map(
        function(lens) return lens.command.title end,
        request("textDocument/codeLens", { textDocument = document() })
      )
      assert(vim.tbl_contains(titles, "▶ Run"), vim.inspect(titles))
      assert(vim.tbl_contains(titles, "PTX"), vim.inspect(titles))
    end,
  },
  {
    "the command behind PTX writes a file with the kernel's PTX",
    function()
      local path = execute("tile.viewIr", { stage = "ptx" }).path
      local text = table.concat(vim.fn.readfile(path), "\n")
      assert(text:find(".entry " .. kernel(), 1, true), text:sub(1, 400))
    end,
  },
  {
    "the command behind Run runs the scenario",
    function()
      local runs = execute("tile.runKernel")
      assert(#runs > 0, "no runs")
      for _, run in ipairs(runs) do
        assert(run.ok and #run.asserts > 0, vim.inspect(run))
      end
    end,
  },
  {
    "kernels of files that are not open are found, and who launches one",
    function()
      local names = vim.tbl_map(
        function(symbol) return symbol.name end,
        request("workspace/symbol", { query = "kernel" })
      )
      assert(#names > 1 and vim.tbl_contains(names, kernel()), vim.inspect(names))
      local _, line = kernel()
      local _, column = lines()[line + 1]:find("def ")
      local place = { textDocument = document(), position = { line = line, character = column } }
      local item = request("textDocument/prepareCallHierarchy", place)[1]
      local callers = request("callHierarchy/incomingCalls", { item = item })
      assert(callers[1].from.detail == "scenario", vim.inspect(callers))
    end,
  },
  {
    "every stage is written to a file, and every configuration is measured",
    function()
      for _, stage in ipairs({ "ast", "tile", "gpu", "llvm", "ptx" }) do
        local path = execute("tile.viewIr", { stage = stage }).path
        assert(#vim.fn.readfile(path) > 3, stage)
      end
      local rows = execute("tile.measureConfigurations")
      assert(#rows > 0 and rows[1].resources.registers > 0, vim.inspect(rows))
    end,
  },
  {
    ("nothing is wrong with %d files of other projects but what is typed wrong there"):format(#others),
    function()
      for _, path in ipairs(others) do
        edit_other(path)
      end
    end,
  },
  {
    "the server ends when it is told to",
    function()
      vim.lsp.stop_client(client_id)
      await("the end of the server", function() return client.is_stopped() end)
    end,
  },
}

local passed = 0
for _, step in ipairs(steps) do
  local name, action = step[1], step[2]
  local ok, problem = xpcall(action, debug.traceback)
  if not ok then
    say("FAIL " .. name .. "\n" .. tostring(problem))
    break
  end
  passed = passed + 1
  say("ok   " .. name)
end
say(("%d passed, %d failed"):format(passed, #steps - passed))
vim.cmd(passed == #steps and "qall!" or "cquit 1")
