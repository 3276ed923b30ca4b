// The kernels of open documents, as the server last told them.

import * as vscode from "vscode";
import { type Kernel, type KernelStatus, kernelsRequest, type Specialization } from "./protocol";
import type { Session } from "./session";

/** Milliseconds without typing after which the kernels of a document are asked for again. */
const SETTLE_MS = 300;

export class Kernels implements vscode.Disposable {
  private readonly byUri = new Map<string, Kernel[]>();
  private readonly statuses = new Map<string, KernelStatus>();
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly disposables: vscode.Disposable[] = [this.changed];
  private timer: NodeJS.Timeout | undefined;

  /** Kernels or their status changed somewhere. */
  readonly onDidChange = this.changed.event;

  constructor(private readonly session: Session) {
    this.disposables.push(
      session.onDidStart(() => this.refreshVisible()),
      session.onKernelStatus((status) => this.accept(status)),
      vscode.window.onDidChangeVisibleTextEditors(() => this.refreshVisible()),
      vscode.workspace.onDidChangeTextDocument(({ document }) => this.settle(document)),
      vscode.workspace.onDidCloseTextDocument((document) => this.byUri.delete(document.uri.toString())),
    );
  }

  /** Asks the server; [] where it does not run or does not answer about the document. */
  async refresh(document: vscode.TextDocument): Promise<Kernel[]> {
    const client = this.session.connection;
    if (client === undefined || !this.session.covers(document)) {
      return [];
    }
    const textDocument = client.code2ProtocolConverter.asTextDocumentIdentifier(document);
    const kernels = await client.sendRequest(kernelsRequest, { textDocument });
    this.byUri.set(document.uri.toString(), kernels);
    this.changed.fire();
    return kernels;
  }

  /** What was last known of the document, without asking. */
  known(uri: vscode.Uri): Kernel[] {
    return this.byUri.get(uri.toString()) ?? [];
  }

  find(uri: vscode.Uri, name: string): Kernel | undefined {
    return this.known(uri).find((kernel) => kernel.name === name);
  }

  /** The kernel around the position; where the file has only one, that one. */
  at(uri: vscode.Uri, position: vscode.Position): Kernel | undefined {
    const kernels = this.known(uri);
    const around = kernels.find(
      ({ range }) => range.start.line <= position.line && position.line <= range.end.line,
    );
    return around ?? (kernels.length === 1 ? kernels[0] : undefined);
  }

  status(uri: vscode.Uri, kernel: string): KernelStatus | undefined {
    return this.statuses.get(key(uri, kernel));
  }

  /** The kernel under the cursor, else the user's choice among the kernels of the file. */
  async choose(editor: vscode.TextEditor | undefined): Promise<{ uri: vscode.Uri; kernel: Kernel } | undefined> {
    if (editor === undefined || !this.session.covers(editor.document)) {
      void vscode.window.showInformationMessage("Tile: open a file with kernels first.");
      return undefined;
    }
    const { document, selection } = editor;
    const kernels = await this.refresh(document);
    const kernel = this.at(document.uri, selection.active) ?? (await pickKernel(kernels));
    return kernel && { uri: document.uri, kernel };
  }

  dispose(): void {
    clearTimeout(this.timer);
    vscode.Disposable.from(...this.disposables).dispose();
  }

  private accept(status: KernelStatus): void {
    const uri = vscode.Uri.parse(status.uri);
    this.statuses.set(key(uri, status.kernel), status);
    this.changed.fire();
    const kernel = this.find(uri, status.kernel);
    const document = vscode.workspace.textDocuments.find((open) => open.uri.toString() === uri.toString());
    if (document !== undefined && (!kernel || activeSpecialization(kernel)?.label !== status.specialization)) {
      this.settle(document);
    }
  }

  private settle(document: vscode.TextDocument): void {
    if (this.session.covers(document)) {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => void this.quietRefresh(document), SETTLE_MS);
    }
  }

  private refreshVisible(): void {
    for (const { document } of vscode.window.visibleTextEditors) {
      void this.quietRefresh(document);
    }
  }

  /** The status item and the menus can wait for the next change when one answer is missing. */
  private async quietRefresh(document: vscode.TextDocument): Promise<void> {
    try {
      await this.refresh(document);
    } catch {
      this.byUri.delete(document.uri.toString());
    }
  }
}

export function activeSpecialization(kernel: Kernel): Specialization | undefined {
  return kernel.specializations.find(({ active }) => active);
}

function key(uri: vscode.Uri, kernel: string): string {
  return `${uri.toString()}#${kernel}`;
}

async function pickKernel(kernels: Kernel[]): Promise<Kernel | undefined> {
  if (kernels.length === 0) {
    void vscode.window.showInformationMessage("Tile: this file has no kernels.");
    return undefined;
  }
  const items = kernels.map((kernel) => ({ label: kernel.name, description: `line ${kernel.range.start.line + 1}`, kernel }));
  return (await vscode.window.showQuickPick(items, { title: "Tile: Kernel" }))?.kernel;
}
