// The status bar item: the kernel under the cursor, its active specialization and what it takes.

import * as vscode from "vscode";
import { viewedKernel } from "./ir_view";
import { activeSpecialization, type Kernels } from "./kernels";
import { type Kernel, type KernelStatus, resourcesLine } from "./protocol";

const LONGEST_LABEL = 40;

export class StatusItem implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("tile.specialization", vscode.StatusBarAlignment.Right, 90);
  private readonly disposables: vscode.Disposable[];

  constructor(private readonly kernels: Kernels) {
    this.item.name = "Tile: specialization";
    this.item.command = "tile.chooseSpecialization";
    this.disposables = [
      this.item,
      kernels.onDidChange(() => this.update()),
      vscode.window.onDidChangeActiveTextEditor(() => this.update()),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => {
        if (textEditor === vscode.window.activeTextEditor) {
          this.update();
        }
      }),
    ];
  }

  dispose(): void {
    vscode.Disposable.from(...this.disposables).dispose();
  }

  private update(): void {
    const current = this.current();
    void vscode.commands.executeCommand("setContext", "tile.editorHasKernel", current !== undefined);
    if (current === undefined) {
      this.item.hide();
      return;
    }
    this.draw(current.kernel, this.kernels.status(current.uri, current.kernel.name));
  }

  private current(): { uri: vscode.Uri; kernel: Kernel } | undefined {
    const editor = vscode.window.activeTextEditor;
    if (editor === undefined) {
      return undefined;
    }
    const viewed = viewedKernel(editor.document.uri);
    const uri = viewed?.source ?? editor.document.uri;
    const kernel = viewed ? this.kernels.find(uri, viewed.kernel) : this.kernels.at(uri, editor.selection.active);
    return kernel && { uri, kernel };
  }

  private draw(kernel: Kernel, status: KernelStatus | undefined): void {
    const active = activeSpecialization(kernel);
    const label = active?.label ?? "";
    // Values set specializations apart more often than types do.
    const values = label.split(", ").filter((part) => part.includes("=")).join(", ");
    const shown = values === "" ? label : values;
    const short = shown.length > LONGEST_LABEL ? `${shown.slice(0, LONGEST_LABEL - 1)}…` : shown;
    const guess = active?.origin === "guess" ? (active.repaired ? " (guess, repaired)" : " (guess)") : "";
    this.item.text = `${icon(status)} ${kernel.name}${short === "" ? "" : `: ${short}`}${guess}`;
    const tooltip = new vscode.MarkdownString();
    tooltip.appendMarkdown("**").appendText(kernel.name).appendMarkdown("**\n\n");
    tooltip.appendText(active === undefined ? "no specialization" : `${label} (${active.origin})`);
    if (active?.repaired !== undefined) {
      tooltip.appendMarkdown("\n\nThe first guess does not compile, so it was repaired: ");
      tooltip.appendText(active.repaired.join(", "));
    }
    if (status?.message !== undefined) {
      tooltip.appendMarkdown("\n\n").appendText(status.message);
    }
    if (status?.resources !== undefined) {
      tooltip.appendMarkdown("\n\n").appendText(resourcesLine(status.resources));
    }
    tooltip.appendMarkdown("\n\nClick to select a specialization.");
    this.item.tooltip = tooltip;
    this.item.show();
  }
}

function icon(status: KernelStatus | undefined): string {
  switch (status?.state) {
    case "compiling":
      return "$(loading~spin)";
    case "error":
      return "$(error)";
    default:
      return "$(circuit-board)";
  }
}
