// A real VS Code workbench without a display: code-server, installed from npm alone and started on a loopback port.
//
// Release 4.100.3 (VS Code 1.100.3) is the last that runs on node 20. Its own install scripts would fetch one program
// (ripgrep) from a release page and refuse to run as root; therefore everything is installed without scripts, the
// system's ripgrep takes the place of the missing one, and the packages with native code are then built one by one.

import { spawn, spawnSync } from "node:child_process";
import {
  closeSync, copyFileSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, symlinkSync, writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

export const VERSION = "4.100.3";

const NEEDED = ["g++", "make", "python3", "pkg-config", "rg"];

/** Installs once into `folder`, in about half a minute; later calls return at once. */
export function install(folder) {
  const done = path.join(folder, "installed");
  if (existsSync(done)) {
    return;
  }
  const missing = NEEDED.filter((program) => spawnSync("which", [program]).status !== 0);
  if (missing.length > 0) {
    throw new Error(`code-server needs ${missing.join(", ")}: apt-get install g++ make python3 pkg-config libkrb5-dev ripgrep`);
  }
  console.log(`installing code-server ${VERSION} (once)`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, "package.json"), '{ "name": "workbench", "private": true }\n');
  npm(folder, "install", `code-server@${VERSION}`, "--ignore-scripts");
  npm(folder, "rebuild", "argon2");
  installEditor(path.join(folder, "node_modules/code-server/lib/vscode"));
  writeFileSync(done, `${VERSION}\n`);
}

function installEditor(editor) {
  npm(editor, "install", "--omit=dev", "--ignore-scripts");
  npm(path.join(editor, "extensions"), "install", "--omit=dev", "--ignore-scripts");
  const ripgrep = path.join(editor, "node_modules/@vscode/ripgrep/bin");
  mkdirSync(ripgrep, { recursive: true });
  copyFileSync(spawnSync("which", ["rg"], { encoding: "utf8" }).stdout.trim(), path.join(ripgrep, "rg"));
  for (const name of nativePackages(editor)) {
    npm(editor, "rebuild", name);
  }
  link("node_modules", path.join(editor, "node_modules.asar"));
  link("code-linux.sh", path.join(editor, "bin/remote-cli/code-server"));
  link("browser-linux.sh", path.join(editor, "bin/helpers/browser.sh"));
}

/** Top-level packages with an install script, without those for other systems. */
function nativePackages(editor) {
  const { packages } = JSON.parse(readFileSync(path.join(editor, "npm-shrinkwrap.json"), "utf8"));
  return Object.entries(packages)
    .filter(([, entry]) => entry.hasInstallScript)
    .map(([place]) => place.replace(/^node_modules\//, ""))
    .filter((name) => !/node_modules|ripgrep|windows/.test(name));
}

function link(target, place) {
  rmSync(place, { recursive: true, force: true });
  symlinkSync(target, place);
}

function npm(cwd, ...args) {
  // node-pty's script asks npx a question, which npm must not refuse.
  const env = { ...process.env, npm_config_yes: "true", npm_config_fund: "false", npm_config_audit: "false" };
  const { status, stdout, stderr } = spawnSync("npm", args, { cwd, env, encoding: "utf8", maxBuffer: 1 << 28 });
  if (status !== 0) {
    throw new Error(`npm ${args.join(" ")} failed in ${cwd}\n${`${stdout}\n${stderr}`.slice(-4000)}`);
  }
}

/**
 * Starts the workbench's server.
 *
 * @param folder where {@link install} put it
 * @param state an empty folder for its settings, extensions and log
 * @param vsix the packaged extension to install
 * @param settings the user's settings
 * @returns {Promise<{ url: string, log: string, stop: () => void }>}
 */
export async function start({ folder, state, vsix, settings }) {
  const program = path.join(folder, "node_modules/.bin/code-server");
  const userData = path.join(state, "user-data");
  const extensions = path.join(state, "extensions");
  for (const scope of ["User", "Machine"]) {
    mkdirSync(path.join(userData, scope), { recursive: true });
    writeFileSync(path.join(userData, scope, "settings.json"), JSON.stringify(settings, null, 2));
  }
  const env = {
    ...process.env, XDG_CONFIG_HOME: state, XDG_DATA_HOME: state,
    EXTENSIONS_GALLERY: "{}", // no calls to a marketplace
  };
  const folders = ["--user-data-dir", userData, "--extensions-dir", extensions];
  const installed = spawnSync(program, [...folders, "--install-extension", vsix], { env, encoding: "utf8" });
  if (installed.status !== 0) {
    throw new Error(`the extension was not installed\n${installed.stdout}${installed.stderr}`);
  }
  const port = await freePort();
  const log = path.join(state, "server.log");
  const out = openSync(log, "w");
  const child = spawn(program, [
    ...folders, "--bind-addr", `127.0.0.1:${port}`, "--auth", "none", "--disable-telemetry",
    "--disable-update-check", "--disable-workspace-trust", "--disable-getting-started-override",
  ], { env, stdio: ["ignore", out, out], detached: true });
  closeSync(out);
  const url = `http://127.0.0.1:${port}`;
  await healthy(url, child, log);
  // The server leads a process group of its own: its extension hosts end with it.
  return { url, log, stop: () => process.kill(-child.pid, "SIGTERM") };
}

async function healthy(url, child, log) {
  for (let tries = 0; tries < 100; tries++) {
    if (child.exitCode !== null) {
      break;
    }
    const answer = await fetch(`${url}/healthz`).catch(() => undefined);
    if (answer?.ok) {
      return;
    }
    await sleep(100);
  }
  throw new Error(`code-server did not start\n${readFileSync(log, "utf8")}`);
}

function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}
