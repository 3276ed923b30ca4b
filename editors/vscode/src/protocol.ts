// The custom part of the server's protocol; docs/protocol.md in the repository is its specification.

import {
  NotificationType,
  type Position,
  type Range,
  RequestType,
  type TextDocumentIdentifier,
} from "vscode-languageclient/node";

export const STAGES = ["ast", "tile", "gpu", "llvm", "ptx", "sass"] as const;
export type Stage = (typeof STAGES)[number];

export type Origin = "scenario" | "launch" | "autotune" | "pin" | "guess";

/** What one kernel takes of a streaming multiprocessor, as an assembler measured it. */
export interface Resources {
  registers: number;
  sharedBytes: number;
  spillLoadBytes: number;
  spillStoreBytes: number;
  occupancy: number;
  limitedBy: string;
  arch: string;
  source: string;
}

export interface ViewIrParams {
  textDocument: TextDocumentIdentifier;
  kernel?: string;
  position?: Position;
  stage: Stage;
  specialization?: number | string;
  raw?: boolean;
}

/** Lines `start` to `end` (exclusive) of the text came from one source line. */
export interface LineMapEntry {
  source: { uri: string; line: number };
  start: number;
  end: number;
}

export interface ViewIrResult {
  kernel: string;
  specialization: string;
  origin: Origin;
  stage: Stage;
  languageId: string;
  text: string;
  lineMap: LineMapEntry[];
  stale: boolean;
  error?: string;
  resources?: Resources;
}

export interface Specialization {
  label: string;
  origin: Origin;
  active: boolean;
  /** Guesses that cannot work and were replaced, each as `NAME: OLD → NEW`. */
  repaired?: string[];
}

export interface Kernel {
  name: string;
  range: Range;
  selectionRange: Range;
  specializations: Specialization[];
}

export interface KernelStatus {
  uri: string;
  kernel: string;
  specialization: string;
  state: "compiling" | "ready" | "error";
  message?: string;
  resources?: Resources;
}

export const viewIrRequest = new RequestType<ViewIrParams, ViewIrResult, void>("tile/viewIr");

export const kernelsRequest = new RequestType<
  { textDocument: TextDocumentIdentifier },
  Kernel[],
  void
>("tile/kernels");

export const irChanged = new NotificationType<{ uri: string; kernel: string }>("tile/irChanged");

export const kernelStatus = new NotificationType<KernelStatus>("tile/kernelStatus");

/** Commands that the server executes; each takes one object. */
export const ServerCommand = {
  run: "tile.runKernel",
  bench: "tile.benchKernel",
  viewIr: "tile.viewIr",
  selectSpecialization: "tile.selectSpecialization",
  measure: "tile.measureConfigurations",
  tune: "tile.tuneKernel",
  restartWorker: "tile.restartWorker",
} as const;

/** The argument of the commands about one kernel. */
export interface KernelTarget {
  uri: string;
  kernel: string;
  scenario?: number;
  device?: string;
  stage?: Stage;
  specialization?: number | string | null;
}

export interface AssertResult {
  line: number;
  ok: boolean;
  max_abs?: number | null;
  max_rel?: number | null;
}

export interface OutputSummary {
  shape: number[];
  dtype: string;
  min?: number | null;
  max?: number | null;
  mean?: number | null;
  nan?: number;
}

export interface Finding {
  code?: string;
  message?: string;
  line?: number;
}

/** One line of `tile run --format json`; lines count from 1. */
export interface RunResult {
  kernel: string;
  device: string;
  ok: boolean;
  asserts: AssertResult[];
  findings: Finding[];
  outputs: Record<string, OutputSummary>;
  ms?: number | null;
  gbps?: number | null;
  tflops?: number | null;
}

/** One line of `tile bench --format json`. */
export interface BenchResult {
  kernel: string;
  specialization: unknown;
  device: string;
  /** Of a run on the CPU, its one time in milliseconds. */
  ms: { median: number; p20: number; p80: number; runs: number } | number;
  /** The configuration that was timed, when tuning. */
  values?: Record<string, string>;
  gbps?: number | null;
  tflops?: number | null;
  registers?: number | null;
  shared_bytes?: number | null;
}

export function resourcesLine(resources: Resources): string {
  const spilled = resources.spillLoadBytes + resources.spillStoreBytes;
  return [
    `${resources.registers} registers`,
    `${resources.sharedBytes} B shared`,
    `${spilled} B spilled`,
    `occupancy ${resources.occupancy.toFixed(2)}, limited by ${resources.limitedBy}`,
    resources.arch,
    resources.source,
  ].join(" · ");
}

/** What one specialization takes, or why it does not compile. */
export interface Measured {
  specialization: string;
  active: boolean;
  resources?: Resources | null;
  error?: string;
}
