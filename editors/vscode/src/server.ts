// Where the `tile` program is.

import { accessSync, constants, statSync } from "node:fs";
import * as path from "node:path";
import * as vscode from "vscode";

export type Located = { path: string } | { problem: string };

const PROGRAM = process.platform === "win32" ? "tile.exe" : "tile";

/** Looks in the setting, then in the extension's own folder, then on PATH. */
export function locateServer(context: vscode.ExtensionContext): Located {
  const configured = vscode.workspace.getConfiguration("tile").get<string>("server.path", "").trim();
  if (configured !== "") {
    const resolved = resolveConfigured(configured);
    return isProgram(resolved)
      ? { path: resolved }
      : { problem: `The setting tile.server.path names ${resolved}, which is not a program.` };
  }
  const bundled = context.asAbsolutePath(path.join("server", PROGRAM));
  const found = [bundled, ...onPath()].find(isProgram);
  return found === undefined
    ? { problem: "The program tile was not found: it is not on PATH and tile.server.path is empty." }
    : { path: found };
}

function resolveConfigured(configured: string): string {
  const home = process.env["HOME"] ?? process.env["USERPROFILE"] ?? "";
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? "";
  const expanded = configured
    .replace(/^~(?=[\\/])/, () => home)
    .replaceAll("${workspaceFolder}", () => folder);
  return path.isAbsolute(expanded) ? expanded : path.resolve(folder, expanded);
}

function onPath(): string[] {
  return (process.env["PATH"] ?? "")
    .split(path.delimiter)
    .filter((folder) => folder !== "")
    .map((folder) => path.join(folder, PROGRAM));
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/** Says why the server cannot start and offers the ways out. */
export async function reportMissingServer(problem: string): Promise<void> {
  const settings = "Open Setting";
  const help = "How to Install";
  const chosen = await vscode.window.showErrorMessage(`Tile: ${problem}`, settings, help);
  if (chosen === settings) {
    await vscode.commands.executeCommand("workbench.action.openSettings", "tile.server.path");
  } else if (chosen === help) {
    await vscode.env.openExternal(vscode.Uri.parse("https://github.com/tile-lang/tile#install"));
  }
}
