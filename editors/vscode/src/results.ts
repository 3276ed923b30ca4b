// Outcomes of runs and benchmarks: a table in the output panel and a note at the end of the kernel's def line.

import * as vscode from "vscode";
import type { AssertResult, BenchResult, Finding, Measured, OutputSummary, Resources, RunResult } from "./protocol";

/** A note at the end of a line; lines count from 0. */
interface Note {
  line: number;
  text: string;
  ok: boolean;
}

export class Results implements vscode.Disposable {
  private readonly channel = vscode.window.createOutputChannel("Tile Results");
  private readonly notes = new Map<string, Note[]>();
  private readonly good = noteStyle("tile.good");
  private readonly bad = noteStyle("tile.bad");
  private readonly disposables: vscode.Disposable[];

  constructor() {
    this.disposables = [
      this.channel,
      this.good,
      this.bad,
      vscode.window.onDidChangeVisibleTextEditors(() => this.redraw()),
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        if (contentChanges.length > 0) {
          this.clear(document.uri);
        }
      }),
    ];
  }

  /** Reports the runs of one kernel. `defLine` is the line of its `def`, from 0. */
  showRuns(uri: vscode.Uri, defLine: number | undefined, runs: RunResult[]): void {
    this.print(runs.flatMap(runTable), !runs.every(({ ok }) => ok));
    const notes = runs.flatMap(runNotes);
    if (defLine !== undefined) {
      notes.unshift({ line: defLine, ...runHeadline(runs) });
    }
    this.note(uri, notes);
  }

  showBenches(uri: vscode.Uri, defLine: number | undefined, benches: BenchResult[]): void {
    this.print(benchTable(benches), false);
    const best = [...benches].sort((a, b) => median(a) - median(b))[0];
    if (defLine !== undefined && best !== undefined) {
      const text = [milliseconds(median(best)), ...rates(best), best.device].join(" · ");
      this.note(uri, [{ line: defLine, text, ok: true }]);
    }
  }

  /** Lists the configurations of a kernel that were timed, fastest first. */
  showTuned(uri: vscode.Uri, defLine: number | undefined, kernel: string, benches: BenchResult[]): void {
    const rows = benches.map((bench, index) => [
      `${index === 0 ? "▸" : " "} ${configurationText(bench)}`,
      milliseconds(median(bench)),
      figure(bench.gbps),
      figure(bench.tflops),
      bench.registers == null ? "" : String(bench.registers),
    ]);
    const device = benches[0]?.device ?? "";
    const head = ["  configuration", "median", "GB/s", "TFLOP/s", "registers"];
    this.print([`Configurations of ${kernel} on ${device}, fastest first`, ...columns(head, rows)], false);
    const best = benches[0];
    if (defLine !== undefined && best !== undefined) {
      const text = [`fastest: ${configurationText(best)}`, milliseconds(median(best)), ...rates(best)].join(" · ");
      this.note(uri, [{ line: defLine, text, ok: true }]);
    }
  }

  /** Lists what every configuration of a kernel takes. */
  showMeasured(kernel: string, rows: Measured[]): void {
    const lines = rows.map(({ specialization, active, resources, error }) => {
      const mark = active ? "▸" : " ";
      return `${mark} ${specialization}: ${error ?? (resources ? resourcesLine(resources) : "not measured: there is no ptxas; `tile doctor --fix` fetches it")}`;
    });
    this.print([`Configurations of ${kernel}`, ...lines], false);
  }

  showFailure(title: string, message: string): void {
    this.print([title, ...message.split("\n").map((line) => `  ${line}`)], true);
  }

  reveal(): void {
    this.channel.show(true);
  }

  dispose(): void {
    vscode.Disposable.from(...this.disposables).dispose();
  }

  private print(lines: string[], open: boolean): void {
    this.channel.appendLine(`── ${new Date().toLocaleTimeString()} ${"─".repeat(40)}`);
    for (const line of lines) {
      this.channel.appendLine(line);
    }
    this.channel.appendLine("");
    if (open) {
      this.reveal();
    }
  }

  private note(uri: vscode.Uri, notes: Note[]): void {
    this.notes.set(uri.toString(), notes);
    this.redraw();
  }

  private clear(uri: vscode.Uri): void {
    if (this.notes.delete(uri.toString())) {
      this.redraw();
    }
  }

  private redraw(): void {
    for (const editor of vscode.window.visibleTextEditors) {
      const notes = this.notes.get(editor.document.uri.toString()) ?? [];
      editor.setDecorations(this.good, notes.filter(({ ok }) => ok).map((note) => drawn(note, editor.document)));
      editor.setDecorations(this.bad, notes.filter(({ ok }) => !ok).map((note) => drawn(note, editor.document)));
    }
  }
}

function noteStyle(kind: "tile.good" | "tile.bad"): vscode.TextEditorDecorationType {
  const color = kind === "tile.good" ? "testing.iconPassed" : "testing.iconFailed";
  return vscode.window.createTextEditorDecorationType({
    after: { color: new vscode.ThemeColor(color), margin: "0 0 0 2em" },
    rangeBehavior: vscode.DecorationRangeBehavior.ClosedOpen,
  });
}

function drawn(note: Note, document: vscode.TextDocument): vscode.DecorationOptions {
  const line = Math.min(Math.max(note.line, 0), document.lineCount - 1);
  return { range: document.lineAt(line).range, renderOptions: { after: { contentText: note.text } } };
}

function runHeadline(runs: RunResult[]): { text: string; ok: boolean } {
  const asserts = runs.flatMap((run) => run.asserts);
  const failed = asserts.filter(({ ok }) => !ok).length;
  const findings = runs.flatMap((run) => run.findings).length;
  const ok = runs.every((run) => run.ok);
  const last = runs.at(-1);
  const parts = [
    ok ? `✓ ${count(asserts.length, "assert")}` : `✗ ${failed} of ${count(asserts.length, "assert")} failed`,
    ...(findings > 0 ? [count(findings, "finding")] : []),
    ...(last?.ms == null ? [] : [milliseconds(last.ms)]),
    ...(last === undefined ? [] : [...rates(last), last.device]),
  ];
  return { text: parts.join(" · "), ok };
}

function runNotes(run: RunResult): Note[] {
  const asserts = run.asserts.map((assert) => ({
    line: assert.line - 1,
    text: `${assert.ok ? "✓" : "✗"} ${errors(assert)}`,
    ok: assert.ok,
  }));
  const findings = run.findings.flatMap(({ line, message, code }) =>
    line === undefined ? [] : [{ line: line - 1, text: `✗ ${message ?? code ?? "finding"}`, ok: false }],
  );
  return [...asserts, ...findings];
}

function runTable(run: RunResult): string[] {
  const head = [
    `${run.ok ? "✓" : "✗"} ${run.kernel}`,
    run.device,
    ...(run.ms == null ? [] : [milliseconds(run.ms)]),
    ...rates(run),
  ].join(" · ");
  const outputs = Object.entries(run.outputs);
  return [
    head,
    ...(run.asserts.length > 0 ? columns(["  assert", "max abs", "max rel"], run.asserts.map(assertRow)) : []),
    ...run.findings.map(findingLine),
    ...(outputs.length > 0
      ? columns(["  output", "type", "min", "max", "mean", "NaN"], outputs.map(([name, value]) => outputRow(name, value)))
      : []),
  ];
}

function assertRow(assert: AssertResult): string[] {
  return [`  ${assert.ok ? "✓" : "✗"} line ${assert.line}`, figure(assert.max_abs), figure(assert.max_rel)];
}

function outputRow(name: string, value: OutputSummary): string[] {
  const type = `${value.dtype}[${value.shape.join(", ")}]`;
  return [`  ${name}`, type, figure(value.min), figure(value.max), figure(value.mean), String(value.nan ?? 0)];
}

function findingLine({ line, code, message }: Finding): string {
  const place = line === undefined ? "" : `line ${line}: `;
  return `  ✗ ${place}${message ?? ""}${code === undefined ? "" : ` [${code}]`}`;
}

/** The values that set a configuration apart: `BLOCK=128, num_warps=8`. */
export function configurationText({ values, specialization }: BenchResult): string {
  return specializationText(values ?? specialization);
}

/** Milliseconds of one run; a run on the CPU tells one time alone. */
function median({ ms }: BenchResult): number {
  return typeof ms === "number" ? ms : ms.median;
}

function benchTable(benches: BenchResult[]): string[] {
  const rows = benches.map((bench) => [
    `${bench.kernel} ${specializationText(bench.specialization)}`,
    bench.device,
    milliseconds(median(bench)),
    typeof bench.ms === "number" ? "" : `${milliseconds(bench.ms.p20)} to ${milliseconds(bench.ms.p80)}`,
    figure(bench.gbps),
    figure(bench.tflops),
    bench.registers == null ? "" : String(bench.registers),
  ]);
  return columns(["kernel", "device", "median", "p20 to p80", "GB/s", "TFLOP/s", "registers"], rows);
}

function specializationText(specialization: unknown): string {
  if (typeof specialization === "string") {
    return specialization;
  }
  return Object.entries((specialization ?? {}) as Record<string, unknown>)
    .map(([name, value]) => `${name}=${typeof value === "object" ? JSON.stringify(value) : String(value)}`)
    .join(", ");
}

function rates({ gbps, tflops }: { gbps?: number | null; tflops?: number | null }): string[] {
  return [
    ...(gbps ? [`${figure(gbps)} GB/s`] : []),
    ...(tflops ? [`${figure(tflops)} TFLOP/s`] : []),
  ];
}

function errors({ ok, max_abs, max_rel }: AssertResult): string {
  const known = [
    ...(max_abs == null ? [] : [`max abs ${figure(max_abs)}`]),
    ...(max_rel == null ? [] : [`max rel ${figure(max_rel)}`]),
  ];
  return known.length > 0 ? known.join(", ") : ok ? "holds" : "does not hold";
}

function milliseconds(value: number): string {
  return value < 1 ? `${figure(value * 1000)} µs` : `${figure(value)} ms`;
}

function figure(value: number | null | undefined): string {
  return value == null ? "" : Number(value.toPrecision(4)).toString();
}

function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? "" : "s"}`;
}

function columns(head: string[], rows: string[][]): string[] {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  return all.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ").trimEnd());
}

function resourcesLine(found: Resources): string {
  const spilled = found.spillLoadBytes + found.spillStoreBytes;
  return [
    `${found.registers} registers`,
    `${found.sharedBytes} B shared`,
    `${spilled} B spilled`,
    `occupancy ${found.occupancy.toFixed(2)} (${found.arch})`,
  ].join(" · ");
}
