// One running server and the connection to it, over restarts.

import * as vscode from "vscode";
import {
  DidChangeConfigurationNotification,
  type DocumentSelector,
  type ExecuteCommandSignature,
  LanguageClient,
  type LanguageClientOptions,
  RevealOutputChannelOn,
  State,
  type StaticFeature,
} from "vscode-languageclient/node";
import { irChanged, type KernelStatus, kernelStatus } from "./protocol";
import { locateServer, reportMissingServer } from "./server";

/** Shows the outcome of a server command; `next` sends it. Installed with {@link Session.intercept}. */
export type CommandHandler = (args: unknown[], next: ExecuteCommandSignature) => unknown;

const LANGUAGES = ["python", "tile"];
const DOCUMENTS: DocumentSelector = ["file", "untitled"].flatMap((scheme) =>
  LANGUAGES.map((language) => ({ scheme, language })),
);

export class Session implements vscode.Disposable {
  private client: LanguageClient | undefined;
  private readonly settings: vscode.Disposable;
  private waiting: vscode.Disposable | undefined;
  private readonly log: vscode.LogOutputChannel;
  private readonly handlers = new Map<string, CommandHandler>();
  private readonly started = new vscode.EventEmitter<void>();
  private readonly irChange = new vscode.EventEmitter<{ uri: string; kernel: string }>();
  private readonly statusChange = new vscode.EventEmitter<KernelStatus>();

  /** A server has been started, for the first time or again. */
  readonly onDidStart = this.started.event;
  readonly onIrChanged = this.irChange.event;
  readonly onKernelStatus = this.statusChange.event;

  constructor(private readonly context: vscode.ExtensionContext) {
    this.log = vscode.window.createOutputChannel("Tile Language Server", { log: true });
    this.settings = vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("tile.server")) {
        void this.restart();
      }
    });
  }

  /** Whether the server answers about this document. */
  covers(document: vscode.TextDocument): boolean {
    return vscode.languages.match(DOCUMENTS as vscode.DocumentSelector, document) > 0;
  }

  /** The connection, or undefined where no server runs. */
  get connection(): LanguageClient | undefined {
    return this.client?.isRunning() === true ? this.client : undefined;
  }

  /** Takes over a server command that the user invoked, from a code lens for example. */
  intercept(command: string, handler: CommandHandler): void {
    this.handlers.set(command, handler);
  }

  async start(): Promise<void> {
    const located = locateServer(this.context);
    if ("problem" in located) {
      this.log.error(located.problem);
      this.reportOnceNeeded(located.problem);
      return;
    }
    this.log.info(`starting ${located.path} lsp`);
    const client = new LanguageClient("tile", "Tile", this.executable(located.path), this.options());
    client.registerFeature(displayCapabilities);
    client.onNotification(irChanged, (change) => this.irChange.fire(change));
    client.onNotification(kernelStatus, (status) => this.statusChange.fire(status));
    // Also after a crash, when the client starts the server again by itself. The start is complete, and open documents
    // are known to the server, a little later than the state says.
    client.onDidChangeState(({ newState }) => {
      if (newState === State.Running) {
        void client.start().then(() => this.started.fire());
      }
    });
    this.client = client;
    try {
      await client.start();
    } catch (error) {
      this.log.error(`the server did not start: ${String(error)}`);
      void reportMissingServer(`The server ${located.path} did not start; see its log.`);
    }
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  async stop(): Promise<void> {
    this.waiting?.dispose();
    this.waiting = undefined;
    const client = this.client;
    this.client = undefined;
    await client?.dispose(2000).catch((error: unknown) => this.log.warn(String(error)));
  }

  showLog(): void {
    this.log.show(true);
  }

  dispose(): void {
    void this.stop();
    this.settings.dispose();
    this.log.dispose();
    this.started.dispose();
    this.irChange.dispose();
    this.statusChange.dispose();
  }

  /** Python files without kernels are none of Tile's business: the report waits for one that has some. */
  private reportOnceNeeded(problem: string): void {
    this.waiting?.dispose();
    this.waiting = undefined;
    if (vscode.workspace.textDocuments.some((document) => this.mayHaveKernels(document))) {
      void reportMissingServer(problem);
      return;
    }
    this.waiting = vscode.workspace.onDidOpenTextDocument((document) => {
      if (this.mayHaveKernels(document)) {
        this.waiting?.dispose();
        this.waiting = undefined;
        void reportMissingServer(problem);
      }
    });
  }

  private mayHaveKernels(document: vscode.TextDocument): boolean {
    return this.covers(document) && (document.languageId === "tile" || /\btriton\b/.test(document.getText()));
  }

  private executable(command: string): { command: string; args: string[]; options: { env: NodeJS.ProcessEnv } } {
    const added = vscode.workspace.getConfiguration("tile").get<Record<string, string>>("server.env", {});
    return { command, args: ["lsp"], options: { env: { ...process.env, ...added } } };
  }

  /** The settings that somebody chose: defaults are the server's own, so that project files can set them. */
  private chosen(scope?: vscode.Uri): Record<string, unknown> {
    const settings = vscode.workspace.getConfiguration("tile", scope);
    const properties = this.context.extension.packageJSON.contributes.configuration.properties as object;
    const names = Object.keys(properties).map((name) => name.slice("tile.".length));
    const isChosen = (name: string): boolean => {
      const found = settings.inspect(name);
      const values = [found?.globalValue, found?.workspaceValue, found?.workspaceFolderValue];
      return values.some((value) => value !== undefined);
    };
    return Object.fromEntries(names.filter(isChosen).map((name) => [name, settings.get(name)]));
  }

  private options(): LanguageClientOptions {
    return {
      documentSelector: DOCUMENTS,
      outputChannel: this.log,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      initializationOptions: this.chosen(),
      synchronize: { configurationSection: "tile" },
      middleware: {
        workspace: {
          configuration: ({ items }) =>
            items.map(({ scopeUri }) => this.chosen(scopeUri === undefined ? undefined : vscode.Uri.parse(scopeUri))),
          // The server asks for what holds in each folder.
          didChangeConfiguration: async () =>
            this.client?.sendNotification(DidChangeConfigurationNotification.type, { settings: null }),
        },
        executeCommand: (command, args, next) => {
          const handler = this.handlers.get(command);
          return handler === undefined ? next(command, args) : handler(args, next);
        },
      },
    };
  }
}

/** Tells the server that this client shows results and follows compiles by itself. */
const displayCapabilities: StaticFeature = {
  fillClientCapabilities(capabilities) {
    const experimental = (capabilities.experimental ?? {}) as Record<string, unknown>;
    capabilities.experimental = { ...experimental, tile: { showsResults: true, kernelStatus: true } };
  },
  initialize() {},
  getState() {
    return { kind: "static" };
  },
  clear() {},
};
