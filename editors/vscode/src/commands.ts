// The commands of the palette, and what is shown when a server command comes from a code lens.

import * as vscode from "vscode";
import { type ExecuteCommandParams, ExecuteCommandRequest, LSPErrorCodes, ResponseError } from "vscode-languageclient/node";
import { type IrViews, viewedKernel } from "./ir_view";
import type { Kernels } from "./kernels";
import { type BenchResult, type KernelTarget, type Measured, type RunResult, ServerCommand } from "./protocol";
import { configurationText, type Results } from "./results";
import type { Session } from "./session";

/** Milliseconds after which a running command gets a notification with a button that cancels it. */
const PATIENCE_MS = 1500;

interface Features {
  session: Session;
  kernels: Kernels;
  views: IrViews;
  results: Results;
}

export function registerCommands(features: Features): vscode.Disposable {
  const { session, views, results } = features;
  session.intercept(ServerCommand.run, ([target]) => run(features, target as KernelTarget));
  session.intercept(ServerCommand.bench, ([target]) => bench(features, target as KernelTarget));
  session.intercept(ServerCommand.tune, ([target]) => tune(features, target as KernelTarget));
  session.intercept(ServerCommand.measure, ([target]) => measure(features, target as KernelTarget));
  session.intercept(ServerCommand.viewIr, ([target]) => {
    const { uri, kernel, stage } = target as KernelTarget;
    return views.open(vscode.Uri.parse(uri), kernel, stage ?? "ptx");
  });
  session.intercept(ServerCommand.selectSpecialization, ([target]) =>
    selectSpecialization(features, target as KernelTarget),
  );
  const palette: Record<string, () => unknown> = {
    "tile.showPtx": () => onKernel(features, ({ uri, kernel }) => views.open(vscode.Uri.parse(uri), kernel, "ptx")),
    "tile.showIrStage": () => onKernel(features, ({ uri, kernel }) => views.pickStage(vscode.Uri.parse(uri), kernel)),
    "tile.toggleRawIr": () => views.toggleRaw(),
    "tile.runKernelHere": () => onKernel(features, (target) => run(features, target)),
    "tile.benchKernelHere": () => onKernel(features, (target) => bench(features, target)),
    "tile.tuneKernelHere": () => onKernel(features, (target) => tune(features, target)),
    "tile.measureKernelHere": () => onKernel(features, (target) => measure(features, target)),
    "tile.chooseSpecialization": () => onKernel(features, (target) => selectSpecialization(features, target)),
    "tile.restartServer": () => session.restart(),
    "tile.restartCompiler": () => restartCompiler(features),
    "tile.showResults": () => results.reveal(),
    "tile.showServerLog": () => session.showLog(),
  };
  const registered = Object.entries(palette).map(([name, handler]) => vscode.commands.registerCommand(name, handler));
  return vscode.Disposable.from(...registered);
}

/** Calls `action` with the kernel of the active view or under the cursor. */
async function onKernel({ kernels }: Features, action: (target: KernelTarget) => unknown): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  const viewed = editor && viewedKernel(editor.document.uri);
  if (viewed !== undefined) {
    await action({ uri: viewed.source.toString(), kernel: viewed.kernel });
    return;
  }
  const chosen = await kernels.choose(editor);
  if (chosen !== undefined) {
    await action({ uri: chosen.uri.toString(), kernel: chosen.kernel.name });
  }
}

async function run(features: Features, target: KernelTarget): Promise<void> {
  const runs = await execute<RunResult[]>(features, ServerCommand.run, "Running", target);
  if (runs !== undefined) {
    const { uri, defLine } = await place(features, target);
    features.results.showRuns(uri, defLine, runs);
  }
}

async function bench(features: Features, target: KernelTarget): Promise<void> {
  const benches = await execute<BenchResult[]>(features, ServerCommand.bench, "Benchmarking", target);
  if (benches !== undefined) {
    const { uri, defLine } = await place(features, target);
    features.results.showBenches(uri, defLine, benches);
    features.results.reveal();
  }
}

/** Times the kernel's autotune configurations; a code action then applies the fastest. */
async function tune(features: Features, target: KernelTarget): Promise<void> {
  const benches = await execute<BenchResult[]>(features, ServerCommand.tune, "Tuning", target);
  if (benches !== undefined) {
    const { uri, defLine } = await place(features, target);
    features.results.showTuned(uri, defLine, target.kernel, benches);
    features.results.reveal();
    void offerToApply(target, benches);
  }
}

/** Offers the code action that puts the fastest configuration in front, where there is one. */
async function offerToApply({ uri, kernel }: KernelTarget, benches: BenchResult[]): Promise<void> {
  const fastest = benches[0];
  if (fastest === undefined) {
    return;
  }
  const document = await vscode.workspace.openTextDocument(vscode.Uri.parse(uri));
  const name = new RegExp(`^\\s*def\\s+${kernel}\\b`, "m").exec(document.getText());
  const at = document.positionAt((name?.index ?? 0) + (name?.[0].length ?? 0));
  const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>(
    "vscode.executeCodeActionProvider",
    document.uri,
    new vscode.Range(at, at),
    vscode.CodeActionKind.RefactorRewrite.value,
  );
  const edit = actions.find(({ title }) => title.startsWith("Apply the fastest configuration"))?.edit;
  const apply = "Put First";
  const message = `Tile: the fastest configuration of ${kernel} is ${configurationText(fastest)}.`;
  const offers = edit === undefined ? [] : [apply];
  if ((await vscode.window.showInformationMessage(message, ...offers)) === apply && edit !== undefined) {
    await vscode.workspace.applyEdit(edit);
  }
}

async function measure(features: Features, target: KernelTarget): Promise<void> {
  const rows = await execute<Measured[]>(features, ServerCommand.measure, "Measuring", target);
  if (rows !== undefined) {
    features.results.showMeasured(target.kernel, rows);
    features.results.reveal();
  }
}

/** Lets the user choose one of the kernel's specializations, or the server's own choice again. */
async function selectSpecialization(features: Features, target: KernelTarget): Promise<unknown> {
  const { kernels } = features;
  if (target.specialization !== undefined) {
    return request(features, ServerCommand.selectSpecialization, target);
  }
  const uri = vscode.Uri.parse(target.uri);
  const document = await vscode.workspace.openTextDocument(uri);
  await kernels.refresh(document);
  const found = kernels.find(uri, target.kernel)?.specializations ?? [];
  const automatic = { label: "$(discard) Automatic", description: "the first that the server finds", choice: null };
  const items = found.map(({ label, origin, active, repaired }) => ({
    label: `${active ? "$(check) " : ""}${label}`,
    description: repaired === undefined ? origin : `${origin}, repaired: ${repaired.join(", ")}`,
    choice: label as string | null,
  }));
  const picked = await vscode.window.showQuickPick([...items, automatic], {
    title: `Tile: Specialization of ${target.kernel}`,
    matchOnDescription: true,
  });
  if (picked === undefined) {
    return undefined;
  }
  const answer = await attempt(features, () =>
    request(features, ServerCommand.selectSpecialization, { ...target, specialization: picked.choice }),
  );
  await kernels.refresh(document);
  return answer;
}

async function restartCompiler(features: Features): Promise<void> {
  await attempt(features, () => request(features, ServerCommand.restartWorker));
}

/** Sends a command that takes a while; undefined when it was cancelled, or failed, which has then been told. */
async function execute<T>(
  features: Features,
  command: string,
  verb: string,
  target: KernelTarget,
): Promise<T | undefined> {
  const title = `Tile: ${verb} ${target.kernel}`;
  const source = new vscode.CancellationTokenSource();
  const outcome = attempt(features, () => request<T>(features, command, target, source.token), title);
  const patience = setTimeout(() => offerToCancel(title, outcome, source), PATIENCE_MS);
  try {
    const options = { location: vscode.ProgressLocation.Window, title };
    return await vscode.window.withProgress(options, () => outcome);
  } finally {
    clearTimeout(patience);
    source.dispose();
  }
}

function offerToCancel(title: string, outcome: Promise<unknown>, source: vscode.CancellationTokenSource): void {
  const options = { location: vscode.ProgressLocation.Notification, title, cancellable: true };
  void vscode.window.withProgress(options, (_, token) => {
    token.onCancellationRequested(() => source.cancel());
    return outcome;
  });
}

async function attempt<T>({ results }: Features, action: () => Promise<T>, title = "Tile"): Promise<T | undefined> {
  try {
    return await action();
  } catch (error) {
    if (error instanceof ResponseError && error.code === LSPErrorCodes.RequestCancelled) {
      return undefined;
    }
    const message = error instanceof Error ? error.message : String(error);
    results.showFailure(title, message);
    void vscode.window.showErrorMessage(`Tile: ${message}`);
    return undefined;
  }
}

async function request<T>(
  { session }: Features,
  command: string,
  target?: KernelTarget,
  token?: vscode.CancellationToken,
): Promise<T> {
  const client = session.connection;
  if (client === undefined) {
    throw new Error("the server does not run; use “Tile: Restart Server”.");
  }
  const params: ExecuteCommandParams = { command, arguments: target === undefined ? [] : [target] };
  return client.sendRequest(ExecuteCommandRequest.type, params, token) as Promise<T>;
}

/** Where the outcome about a kernel is noted. */
async function place(
  { kernels }: Features,
  target: KernelTarget,
): Promise<{ uri: vscode.Uri; defLine: number | undefined }> {
  const uri = vscode.Uri.parse(target.uri);
  const document = await vscode.workspace.openTextDocument(uri);
  await kernels.refresh(document);
  return { uri, defLine: kernels.find(uri, target.kernel)?.selectionRange.start.line };
}
