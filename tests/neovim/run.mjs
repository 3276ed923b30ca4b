// The server as an editor without any plugin of ours sees it: headless Neovim.
//
//   node tests/neovim/run.mjs --tile PATH [--others FOLDER]...
//
// The largest kernel files below each folder of other projects are opened and edited too.
//
// Ends with "N passed, N failed"; exit status 0 when none failed, 1 when some did, 2 when the test could not start.

import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const HERE = path.dirname(fileURLToPath(import.meta.url));
const ROOT = path.resolve(HERE, "../..");
const FILE = "vector_add.py";
const LONGEST_MS = 240_000;

// Files of each folder of other projects that are opened.
const MOST_FILES = 8;

const { values: options } = parseArgs({
  options: {
    tile: { type: "string" },
    examples: { type: "string", default: path.join(ROOT, "examples") },
    others: { type: "string", multiple: true, default: [] },
  },
});

/// The largest files below a folder whose kernels load something.
function kernelFiles(folder) {
  const names = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(".py"));
  const files = names.map((name) => path.join(folder, name)).map((file) => [file, readFileSync(file, "utf8")]);
  const kernels = files.filter(([, text]) => text.includes("\n@triton.jit") && text.includes(" tl.load("));
  kernels.sort(([, a], [, b]) => b.length - a.length);
  return kernels.slice(0, MOST_FILES).map(([file]) => file);
}

function main() {
  if (options.tile === undefined) {
    console.error("usage: node tests/neovim/run.mjs --tile PATH [--examples DIR]");
    return 2;
  }
  const state = mkdtempSync(path.join(tmpdir(), "tile-neovim-"));
  try {
    const workspace = path.join(state, "kernels");
    cpSync(options.examples, workspace, { recursive: true });
    return edit(state, path.join(workspace, FILE));
  } finally {
    rmSync(state, { recursive: true, force: true });
  }
}

function edit(state, file) {
  const script = path.join(HERE, "check.lua");
  // The cache stays the user's: the server's own assembler may lie there.
  const { status, error } = spawnSync("nvim", ["--headless", "-u", "NONE", "-i", "NONE", "-n", "-S", script], {
    env: {
      ...process.env, TILE: path.resolve(options.tile), TILE_FILE: file,
      TILE_OTHERS: options.others.flatMap(kernelFiles).join("\n"),
      XDG_STATE_HOME: state, XDG_DATA_HOME: state, XDG_CONFIG_HOME: state,
    },
    stdio: ["ignore", "inherit", "inherit"],
    timeout: LONGEST_MS,
  });
  if (error !== undefined) {
    console.error(`nvim: ${error.message}`);
    return 2;
  }
  return status === 0 ? 0 : 1;
}

process.exitCode = main();
