// Read-only documents with the IR of a kernel, kept current and linked line by line with the source.

import * as vscode from "vscode";
import { type LineMapEntry, resourcesLine, type Stage, STAGES, viewIrRequest, type ViewIrResult } from "./protocol";
import type { Session } from "./session";

export const SCHEME = "tile-ir";

/** What a view shows; carried in the query of its address. */
interface Subject {
  source: string;
  kernel: string;
  stage: Stage;
  raw: boolean;
}

interface View {
  subject: Subject;
  /** Undefined until the first answer and after a failure. */
  result: ViewIrResult | undefined;
}

/** Milliseconds that a view may be closed before its text is forgotten. */
const FORGET_MS = 1000;

const STAGE_TITLES: Record<Stage, string> = {
  ast: "Syntax tree of the kernel",
  tile: "Tile IR: operations on whole tiles",
  gpu: "GPU IR: layouts, shared memory and asynchronous copies made explicit",
  llvm: "LLVM IR",
  ptx: "PTX, the virtual assembly",
  sass: "SASS, the machine code",
};

export class IrViews implements vscode.TextDocumentContentProvider, vscode.CodeLensProvider, vscode.Disposable {
  private readonly views = new Map<string, View>();
  private readonly contentChange = new vscode.EventEmitter<vscode.Uri>();
  private readonly lensChange = new vscode.EventEmitter<void>();
  private readonly linked = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new vscode.ThemeColor("tile.linkedLineBackground"),
    overviewRulerColor: new vscode.ThemeColor("tile.linkedLineBackground"),
    overviewRulerLane: vscode.OverviewRulerLane.Center,
  });
  private readonly disposables: vscode.Disposable[];

  readonly onDidChange = this.contentChange.event;
  readonly onDidChangeCodeLenses = this.lensChange.event;

  constructor(private readonly session: Session) {
    this.disposables = [
      this.contentChange,
      this.lensChange,
      this.linked,
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      vscode.languages.registerCodeLensProvider({ scheme: SCHEME }, this),
      session.onIrChanged(({ uri, kernel }) => this.refresh(vscode.Uri.parse(uri), kernel)),
      session.onDidStart(() => this.refreshAll()),
      vscode.workspace.onDidCloseTextDocument(({ uri }) => setTimeout(() => this.forget(uri), FORGET_MS)),
      vscode.workspace.onDidChangeTextDocument(({ document }) => this.afterContent(document)),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor, kind }) => this.link(textEditor, kind !== undefined)),
      vscode.window.onDidChangeVisibleTextEditors(() => this.linkFromActive()),
    ];
  }

  /** Opens the view beside the source, or brings it to the front. The cursor stays where it is. */
  async open(source: vscode.Uri, kernel: string, stage: Stage): Promise<void> {
    await this.show({ source: source.toString(), kernel, stage, raw: false });
  }

  /** Opens the stage that the user picks. */
  async pickStage(source: vscode.Uri, kernel: string): Promise<void> {
    const items = STAGES.map((stage) => ({ label: stage, description: STAGE_TITLES[stage] }));
    const picked = await vscode.window.showQuickPick(items, { title: `Tile: IR of ${kernel}`, matchOnDescription: true });
    if (picked !== undefined) {
      await this.open(source, kernel, picked.label);
    }
  }

  /** Shows or hides debug directives in the active view, in its place. */
  async toggleRaw(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const subject = editor && subjectOf(editor.document.uri);
    if (editor === undefined || subject === undefined) {
      return;
    }
    const column = editor.viewColumn;
    await vscode.commands.executeCommand("workbench.action.closeActiveEditor");
    await this.show({ ...subject, raw: !subject.raw }, column);
  }

  async provideTextDocumentContent(uri: vscode.Uri, token: vscode.CancellationToken): Promise<string> {
    const subject = subjectOf(uri);
    if (subject === undefined) {
      return "// This address names no kernel.\n";
    }
    const view: View = this.views.get(uri.toString()) ?? { subject, result: undefined };
    this.views.set(uri.toString(), view);
    const client = this.session.connection;
    if (client === undefined) {
      return "// Tile's server does not run.\n";
    }
    const { source, kernel, stage, raw } = subject;
    try {
      const params = { textDocument: { uri: serverUri(source, client) }, kernel, stage, raw };
      const result = await client.sendRequest(viewIrRequest, params, token);
      view.result = result;
      this.lensChange.fire();
      // The same text as before is no change of the document, but it may belong to other lines of the source now.
      this.linkFromActive();
      return result.text === "" ? explain(result) : result.text;
    } catch (error) {
      view.result = undefined;
      return `// ${error instanceof Error ? error.message : String(error)}\n`;
    }
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    const view = this.views.get(document.uri.toString());
    const result = view?.result;
    if (view === undefined || result === undefined) {
      return [];
    }
    const top = new vscode.Range(0, 0, 0, 0);
    const note = (title: string, command = "", ...args: unknown[]): vscode.CodeLens =>
      new vscode.CodeLens(top, { title, command, arguments: args });
    const lenses: vscode.CodeLens[] = [];
    if (isBelowGpu(result.stage)) {
      lenses.push(note(view.subject.raw ? "Hide Directives" : "Show Directives", "tile.toggleRawIr"));
    }
    if (result.error !== undefined) {
      lenses.push(note(`$(warning) ${result.stale ? "older text: " : ""}${result.error}`));
    }
    if (result.resources !== undefined) {
      lenses.push(note(resourcesLine(result.resources)));
    }
    lenses.push(note(`${result.specialization} (${result.origin})`));
    return lenses;
  }

  dispose(): void {
    vscode.Disposable.from(...this.disposables).dispose();
  }

  private async show(subject: Subject, column?: vscode.ViewColumn): Promise<void> {
    const uri = addressOf(subject);
    if (this.views.has(uri.toString())) {
      this.contentChange.fire(uri);
    }
    const document = await vscode.workspace.openTextDocument(uri);
    await this.setLanguage(document);
    await vscode.window.showTextDocument(document, {
      viewColumn: column ?? this.columnFor(subject),
      preserveFocus: column === undefined,
      preview: false,
    });
    this.linkFromActive();
  }

  /** Views share one column: the one of a view that is open, else the one beside the source. */
  private columnFor(subject: Subject): vscode.ViewColumn {
    const visible = vscode.window.visibleTextEditors;
    const other = visible.find(({ document }) => subjectOf(document.uri)?.source === subject.source);
    return other?.viewColumn ?? vscode.ViewColumn.Beside;
  }

  private async setLanguage(document: vscode.TextDocument): Promise<void> {
    const wanted = this.views.get(document.uri.toString())?.result?.languageId;
    if (wanted === undefined || wanted === document.languageId) {
      return;
    }
    const known = await vscode.languages.getLanguages();
    const language = [wanted, "tile-ir"].find((id) => known.includes(id));
    if (language !== undefined) {
      await vscode.languages.setTextDocumentLanguage(document, language);
    }
  }

  private refresh(source: vscode.Uri, kernel: string): void {
    for (const [address, { subject }] of this.views) {
      if (subject.source === source.toString() && subject.kernel === kernel) {
        this.contentChange.fire(vscode.Uri.parse(address));
      }
    }
  }

  private refreshAll(): void {
    for (const address of this.views.keys()) {
      this.contentChange.fire(vscode.Uri.parse(address));
    }
  }

  private afterContent(document: vscode.TextDocument): void {
    if (document.uri.scheme === SCHEME) {
      void this.setLanguage(document);
      this.linkFromActive();
    }
  }

  /** A change of language closes a document and opens it again at once; only one that stays closed is forgotten. */
  private forget(uri: vscode.Uri): void {
    const address = uri.toString();
    if (!vscode.workspace.textDocuments.some((document) => document.uri.toString() === address)) {
      this.views.delete(address);
    }
  }

  private linkFromActive(): void {
    const editor = vscode.window.activeTextEditor;
    if (editor !== undefined) {
      this.link(editor, false);
    }
  }

  /** Highlights the counterparts of the cursor's line; `reveal` scrolls them into view. */
  private link(editor: vscode.TextEditor, reveal: boolean): void {
    if (editor !== vscode.window.activeTextEditor) {
      return;
    }
    if (editor.document.uri.scheme === SCHEME) {
      this.linkFromIr(editor, reveal);
    } else {
      this.linkFromSource(editor.document.uri, editor.selection.active.line, reveal);
    }
  }

  private linkFromSource(source: vscode.Uri, line: number, reveal: boolean): void {
    const address = source.toString();
    let shown = false;
    for (const editor of vscode.window.visibleTextEditors) {
      const view = this.views.get(editor.document.uri.toString());
      const ranges = view?.result ? rangesFrom(view.result.lineMap, address, line) : [];
      if (view !== undefined) {
        this.mark(editor, ranges, reveal);
        shown ||= view.subject.source === address;
      }
    }
    for (const editor of vscode.window.visibleTextEditors) {
      if (editor.document.uri.toString() === address) {
        editor.setDecorations(this.linked, shown ? [lines(line, line + 1)] : []);
      }
    }
  }

  private linkFromIr(editor: vscode.TextEditor, reveal: boolean): void {
    const view = this.views.get(editor.document.uri.toString());
    const line = editor.selection.active.line;
    const entry = view?.result?.lineMap.find(({ start, end }) => start <= line && line < end);
    const source = entry && vscode.Uri.parse(entry.source.uri).toString();
    for (const other of vscode.window.visibleTextEditors) {
      const address = other.document.uri.toString();
      const map = this.views.get(address)?.result?.lineMap;
      if (map !== undefined) {
        const ranges = source === undefined ? [] : rangesFrom(map, source, entry?.source.line ?? 0);
        this.mark(other, ranges, reveal && other !== editor);
      } else if (view !== undefined && other.document.uri.scheme !== SCHEME) {
        this.mark(other, address === source && entry ? [lines(entry.source.line, entry.source.line + 1)] : [], reveal);
      }
    }
  }

  private mark(editor: vscode.TextEditor, ranges: vscode.Range[], reveal: boolean): void {
    editor.setDecorations(this.linked, ranges);
    const first = ranges[0];
    const visible = ranges.some((range) => editor.visibleRanges.some((shown) => shown.intersection(range)));
    if (reveal && first !== undefined && !visible) {
      editor.revealRange(first, vscode.TextEditorRevealType.InCenter);
    }
  }
}

/** The kernel of the view that the address names. */
export function viewedKernel(uri: vscode.Uri): { source: vscode.Uri; kernel: string } | undefined {
  const subject = subjectOf(uri);
  return subject && { source: vscode.Uri.parse(subject.source), kernel: subject.kernel };
}

function addressOf(subject: Subject): vscode.Uri {
  const suffix = subject.raw ? `raw.${subject.stage}` : subject.stage;
  return vscode.Uri.from({ scheme: SCHEME, path: `/${subject.kernel}.${suffix}`, query: JSON.stringify(subject) });
}

function subjectOf(uri: vscode.Uri): Subject | undefined {
  if (uri.scheme !== SCHEME) {
    return undefined;
  }
  try {
    return JSON.parse(uri.query) as Subject;
  } catch {
    return undefined;
  }
}

function serverUri(
  source: string,
  client: { code2ProtocolConverter: { asUri(uri: vscode.Uri): string } },
): string {
  return client.code2ProtocolConverter.asUri(vscode.Uri.parse(source));
}

function explain({ kernel, error }: ViewIrResult): string {
  return `// ${kernel} has no text at this stage${error === undefined ? "" : `: ${error}`}\n`;
}

function isBelowGpu(stage: Stage): boolean {
  return stage === "llvm" || stage === "ptx" || stage === "sass";
}

function rangesFrom(map: LineMapEntry[], source: string, line: number): vscode.Range[] {
  return map
    .filter((entry) => entry.source.line === line && vscode.Uri.parse(entry.source.uri).toString() === source)
    .map(({ start, end }) => lines(start, end));
}

/** Whole lines, the end exclusive. */
function lines(start: number, end: number): vscode.Range {
  return new vscode.Range(start, 0, Math.max(start, end - 1), Number.MAX_SAFE_INTEGER);
}
