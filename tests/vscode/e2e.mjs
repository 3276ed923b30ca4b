// The extension in a real workbench, in a browser, against a real server.
//
//   node tests/vscode/e2e.mjs --tile PATH [--screenshots DIR]
//
// Ends with "N passed, N failed"; exit status 0 when none failed, 1 when some did, 2 when the test could not start.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import * as codeServer from "./code_server.mjs";

const HERE = path.dirname(fileURLToPath(import.meta.url));
const ROOT = path.resolve(HERE, "../..");
const EXTENSION = path.join(ROOT, "editors/vscode");
const FILE = "vector_add.py";
/** A kernel with configurations that differ, written into the workspace. */
const TUNED = "tuned.py";
const TUNED_TEXT = `import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 16}),
        triton.Config({"BLOCK": 1024}, num_warps=8),
    ],
    key=[],
)
@triton.jit
def fill_kernel(out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, 1.0, mask=offsets < n)


@triton.jit
def guessed_kernel(x_ptr, WIDTH: tl.constexpr):
    tl.static_assert(WIDTH >= 2048)
    tl.store(x_ptr + tl.arange(0, WIDTH), 1.0)


# tile: out = empty(65_536)
# tile: fill_kernel[lambda meta: (cdiv(65_536, meta["BLOCK"]),)](out, 65_536)
# tile: assert allclose(out, ones(65_536))
`;

const { values: options } = parseArgs({
  options: {
    tile: { type: "string" },
    examples: { type: "string", default: path.join(ROOT, "examples") },
    screenshots: { type: "string" },
  },
});

/** The steps of one session, in order: each finds the workbench as the one before it left it. */
function steps({ workbench, tile, text, kernel, picture }) {
  const { page } = workbench;
  const def = `def ${kernel}`;
  const squiggles = workbench.editor().locator(".squiggly-error");
  const ptx = workbench.editor(`${kernel}.ptx`);
  const linked = (wanted) =>
    workbench.until(`linked PTX with ${wanted}`, async () =>
      (await linkedLines(page, `${kernel}.ptx`)).some((line) => wanted.test(line)),
    );
  const another = async (act) => {
    const before = servers(tile);
    assert.equal(before.length, 1);
    await act();
    await workbench.until("another server", () => {
      const now = servers(tile);
      return now.length === 1 && now[0] !== before[0];
    });
  };
  const gone = () => workbench.until("the squiggle goes", async () => (await squiggles.count()) === 0);
  return {
    async "lenses show Run, PTX and what the kernel takes"() {
      await workbench.lens("▶ Run").waitFor();
      await workbench.lens("PTX").waitFor();
      await workbench.lens(/\d+ regs · \d+ B shared · .* spills · occupancy \d\.\d\d/).waitFor();
      assert.equal(await squiggles.count(), 0, "the example has no errors");
    },
    async "the status bar names the kernel and its specialization"() {
      const item = page.locator(".statusbar-item", { hasText: kernel });
      await workbench.goTo(lineOf(text, def), 6);
      await item.waitFor();
      assert.match(await item.innerText(), /BLOCK_SIZE=\d+/);
    },
    async "hovering over the kernel's name tells its registers"() {
      const hover = await workbench.hover(def, kernel, /registers/);
      assert.match(hover, /\b\d+ registers\b/);
      await picture("hover");
      await page.keyboard.press("Escape");
    },
    async "a mask of the wrong shape is underlined while typing"() {
      await workbench.retype(text, "mask = offsets < ", "mask = tl.arange(0, 2 * BLOCK_SIZE) < ");
      // Half of an expression may have had an error of its own.
      const message = page.locator(".marker-widget").first();
      await workbench.until("the error about shapes", async () => {
        await page.keyboard.press("F8");
        await message.waitFor({ timeout: 500 }).catch(() => undefined);
        return (await message.isVisible()) && /shape \[/.test(await message.innerText());
      });
      await picture("shape");
      await page.keyboard.press("Escape");
      await workbench.retype(
        text.replace("mask = offsets < ", "mask = tl.arange(0, 2 * BLOCK_SIZE) < "),
        "mask = tl.arange(0, 2 * BLOCK_SIZE) < ",
        "mask = offsets < ",
      );
      await gone();
    },
    async "a misspelled name is mended by its quick fix"() {
      const line = await workbench.retype(text, "tl.arange(", "tl.arrange(");
      await squiggles.first().waitFor();
      await workbench.goTo(line, text.split("\n")[line - 1].indexOf("tl.arange(") + 5);
      await page.keyboard.press("Control+.");
      // The preferred fix comes first and is selected.
      const fix = page.locator(".action-widget .monaco-list-row.focused", { hasText: /\barange\b/ });
      await fix.waitFor();
      await picture("quickfix");
      await page.keyboard.press("Enter");
      await workbench.lines("tl.arange(").first().waitFor();
      await gone();
    },
    async "PTX opens beside and the lines are linked"() {
      await workbench.press("PTX", ptx.locator(".view-line", { hasText: `.entry ${kernel}` }).first());
      await workbench.goTo(lineOf(text, "tl.load("), 9);
      await linked(/ld\.global/);
      assert.equal((await linkedLines(page, FILE)).length, 1, "the source line is marked as well");
      await picture("ptx");
    },
    async "the link follows the cursor"() {
      await workbench.goTo(lineOf(text, "tl.store("), 9);
      await linked(/st\.global/);
    },
    async "the PTX follows an edit, through an error as well"() {
      const wrong = " * missing";
      const kernelAt = text.indexOf(def);
      await workbench.retype(text, "x + y", "x * y", kernelAt);
      await linked(/mul\.(rn\.)?f32/);
      await page.keyboard.type(wrong);
      await workbench.lens("does not compile").waitFor();
      await linked(/mul\.(rn\.)?f32/);
      for (let n = 0; n < wrong.length; n++) {
        await page.keyboard.press("Backspace");
      }
      const product = text.slice(0, kernelAt) + text.slice(kernelAt).replace("x + y", "x * y");
      await workbench.retype(product, "x * y", "x + y", kernelAt);
      await linked(/add\.(rn\.)?f32/);
    },
    async "the cursor in the PTX marks the source line"() {
      await page.keyboard.press("Control+2");
      await workbench.find("st.global");
      const marked = await workbench.until("a linked source line", async () =>
        nonEmpty(await linkedLines(page, FILE)),
      );
      assert.equal(marked.length, 1);
      assert.match(marked[0], /tl\.store\(/);
    },
    async "debug directives can be shown"() {
      assert.equal(await ptx.locator(".view-line", { hasText: ".loc" }).count(), 0);
      await workbench.command("Tile: Show or Hide Debug Directives");
      await workbench.editor(`${kernel}.raw.ptx`).locator(".view-line", { hasText: /\.(loc|file)/ }).first().waitFor();
      await workbench.command("Tile: Show or Hide Debug Directives");
      await ptx.locator(".view-line").first().waitFor();
    },
    async "another stage opens in the same column"() {
      await workbench.goTo(lineOf(text, def), 6);
      await workbench.command("Tile: Show IR Stage");
      await workbench.quickInput("tile IR");
      await workbench.editor(`${kernel}.tile`).locator(".view-line", { hasText: kernel }).first().waitFor();
      await page.locator(".codelens-decoration", { hasText: "(scenario)" }).first().waitFor();
      await picture("tile_ir");
    },
    async "Run tells the outcome beside the kernel and in the panel"() {
      await workbench.lens("▶ Run").click();
      const note = await workbench.until("the note after def", () => workbench.noteAfter(def));
      assert.match(note, /✓ \d+ asserts?/);
      await workbench.command("Tile: Show Results");
      await page.locator(".panel .view-line", { hasText: `✓ ${kernel}` }).first().waitFor();
      await picture("run");
    },
    async "every configuration is measured"() {
      await workbench.command("View: Close Editors in Other Groups");
      await workbench.openFile(TUNED);
      await workbench.lens("Measure 2 configurations").click();
      const row = (values) => page.locator(".panel .view-line", { hasText: new RegExp(`${values}:\\s\\d+\\sregisters`) });
      await row("BLOCK=16").first().waitFor();
      await row("BLOCK=1024,\\snum_warps=8").first().waitFor();
    },
    async "the status item selects another specialization"() {
      await workbench.goTo(lineOf(TUNED_TEXT, "def fill_kernel"), 6);
      const item = page.locator(".statusbar-item", { hasText: "fill_kernel" });
      await item.waitFor();
      assert.match(await item.innerText(), /BLOCK=16\b/);
      await workbench.lens("BLOCK=16 (scenario, 1 of 2)").waitFor();
      await item.click();
      await workbench.quickInput("BLOCK=1024");
      await page.locator(".statusbar-item", { hasText: /fill_kernel: .*BLOCK=1024, num_warps=8/ }).waitFor();
      await workbench.lens("BLOCK=1024, num_warps=8 (autotune, 2 of 2)").waitFor();
      await picture("specialization");
    },
    async "a guess that was repaired says so"() {
      await workbench.lens("WIDTH=2048 (guess, repaired)").waitFor();
      await workbench.goTo(lineOf(TUNED_TEXT, "def guessed_kernel"), 6);
      await page.locator(".statusbar-item", { hasText: /guessed_kernel: .*WIDTH=2048 \(guess, repaired\)/ }).waitFor();
    },
    async "Tune lists the configurations and puts the fastest first"() {
      await workbench.goTo(lineOf(TUNED_TEXT, "def fill_kernel"), 6);
      await workbench.lens(/^Tune$/).click();
      const toast = page.locator(".notifications-toasts .notification-list-item", { hasText: "fastest configuration of fill_kernel" });
      await toast.waitFor();
      await page.locator(".panel .view-line", { hasText: "fastest first" }).first().waitFor();
      const note = await workbench.until("the note after def", () => workbench.noteAfter("def fill_kernel", TUNED));
      assert.match(note, /fastest: BLOCK=1024/);
      await picture("tune");
      await toast.locator(".monaco-button", { hasText: "Put First" }).click();
      const first = workbench.lines("Config(", TUNED).first();
      await workbench.until("the fastest comes first", async () => (await first.innerText()).includes("1024"));
      await workbench.openFile(FILE);
    },
    async "the server can be restarted"() {
      await another(() => workbench.command("Tile: Restart Server"));
      await workbench.hover(def, kernel, /registers/);
    },
    async "a server that dies is started again"() {
      await another(() => process.kill(servers(tile)[0], "SIGKILL"));
      await workbench.hover(def, kernel, /registers/);
    },
  };
}

/** Process ids of the servers that run. */
function servers(tile) {
  const commandLine = (id) => {
    try {
      return readFileSync(`/proc/${id}/cmdline`, "utf8");
    } catch {
      return ""; // ended in between
    }
  };
  const ids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return ids.filter((id) => commandLine(id).endsWith(`${tile}\0lsp\0`)).map(Number);
}

/** Texts of the drawn lines of an editor that carry the link's background. */
function linkedLines(page, name) {
  return page.evaluate((wanted) => {
    const editor = document.querySelector(`.editor-instance .monaco-editor[data-uri*="${wanted}"]`);
    const tops = new Set();
    for (const mark of editor?.querySelectorAll(".view-overlays [class*='ced-'].cdr") ?? []) {
      if (getComputedStyle(mark).backgroundColor !== "rgba(0, 0, 0, 0)") {
        tops.add(mark.parentElement.style.top);
      }
    }
    return [...(editor?.querySelectorAll(".view-line") ?? [])]
      .filter((line) => tops.has(line.style.top))
      .map((line) => line.textContent.replaceAll("\u00a0", " "));
  }, name);
}

function nonEmpty(list) {
  return list.length > 0 && list;
}

/** From 1. */
function lineOf(text, wanted) {
  const index = text.split("\n").findIndex((line) => line.includes(wanted));
  assert.ok(index >= 0, `${FILE} has a line with ${wanted}`);
  return index + 1;
}

function npm(folder, ...args) {
  const { status, stdout, stderr } = spawnSync("npm", args, { cwd: folder, encoding: "utf8" });
  if (status !== 0) {
    throw new Error(`npm ${args.join(" ")} failed in ${folder}\n${stdout}${stderr}`);
  }
}

/** Packages the extension as it is released and returns the package's path. */
function packageExtension() {
  if (!existsSync(path.join(EXTENSION, "node_modules"))) {
    npm(EXTENSION, "ci");
  }
  npm(EXTENSION, "run", "package");
  return path.join(EXTENSION, "tile.vsix");
}

async function prepare(state, tile) {
  if (!existsSync(path.join(HERE, "node_modules"))) {
    npm(HERE, "ci");
  }
  const folder = path.join(ROOT, ".tile", `code-server-${codeServer.VERSION}`);
  codeServer.install(folder);
  const workspace = path.join(state, "kernels");
  cpSync(options.examples, workspace, { recursive: true });
  writeFileSync(path.join(workspace, TUNED), TUNED_TEXT);
  const settings = {
    "tile.server.path": tile,
    "tile.device": "cpu",
    "workbench.startupEditor": "none",
    "workbench.tips.enabled": false,
    "workbench.colorTheme": "Default Dark Modern",
    "security.workspace.trust.enabled": false,
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
    "extensions.autoUpdate": false,
    "git.enabled": false,
    "editor.minimap.enabled": false,
    "editor.stickyScroll.enabled": false,
    "editor.fontSize": 15,
    "workbench.layoutControl.enabled": false,
    "editor.quickSuggestions": { other: "off", comments: "off", strings: "off" },
    "editor.suggestOnTriggerCharacters": false,
    "editor.parameterHints.enabled": false,
    "editor.autoClosingBrackets": "never",
    "files.autoSave": "off",
  };
  const server = await codeServer.start({ folder, state, vsix: packageExtension(), settings });
  return { server, workspace };
}

async function main() {
  if (options.tile === undefined) {
    throw new Error("usage: node tests/vscode/e2e.mjs --tile PATH [--examples DIR] [--screenshots DIR]");
  }
  const state = mkdtempSync(path.join(tmpdir(), "tile-vscode-"));
  const tile = path.resolve(options.tile);
  const { server, workspace } = await prepare(state, tile);
  const { Workbench } = await import("./workbench.mjs");
  try {
    const workbench = await Workbench.open({ url: server.url, workspace, file: FILE });
    try {
      return await run(workbench, tile, readFileSync(path.join(workspace, FILE), "utf8"));
    } finally {
      await workbench.close();
    }
  } finally {
    server.stop();
    rmSync(state, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }
}

/** Runs the steps; the first failure ends the session, and the steps after it count as failed. */
async function run(workbench, tile, text) {
  const kernel = /def (\w+)\(/.exec(text.slice(text.indexOf("@triton.jit")))[1];
  const all = Object.entries(steps({ workbench, tile, text, kernel, picture: picturesOf(workbench) }));
  let passed = 0;
  for (const [name, step] of all) {
    const begin = Date.now();
    try {
      await step();
    } catch (error) {
      console.error(`FAIL ${name}\n${error.stack ?? error}`);
      await workbench.page.screenshot({ path: path.join(tmpdir(), "tile-vscode-failure.png") });
      console.error(`the workbench at that moment: ${path.join(tmpdir(), "tile-vscode-failure.png")}`);
      break;
    }
    passed++;
    console.log(`ok   ${name} (${Date.now() - begin} ms)`);
  }
  console.log(`${passed} passed, ${all.length - passed} failed`);
  return passed === all.length ? 0 : 1;
}

function picturesOf(workbench) {
  const folder = options.screenshots;
  if (folder === undefined) {
    return async () => {};
  }
  mkdirSync(folder, { recursive: true });
  return async (name) => {
    await workbench.page.waitForTimeout(400); // let scroll bars and fades come to rest
    await workbench.page.screenshot({ path: path.join(folder, `${name}.png`) });
  };
}

process.exitCode = await main().catch((error) => {
  console.error(error.stack ?? String(error));
  return 2;
});
