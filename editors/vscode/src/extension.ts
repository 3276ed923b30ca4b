// Entry point: puts the parts together and starts the server.

import type * as vscode from "vscode";
import { registerCommands } from "./commands";
import { IrViews } from "./ir_view";
import { Kernels } from "./kernels";
import { Results } from "./results";
import { Session } from "./session";
import { StatusItem } from "./status";

let session: Session | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  session = new Session(context);
  const kernels = new Kernels(session);
  const views = new IrViews(session);
  const results = new Results();
  const commands = registerCommands({ session, kernels, views, results });
  context.subscriptions.push(commands, new StatusItem(kernels), results, views, kernels, session);
  await session.start();
}

export async function deactivate(): Promise<void> {
  await session?.stop();
}
