// Replacing a selection by what the model makes of it, once the user has seen it.
import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import { REWRITE, BEFORE, type Preview } from "./preview";
import type { Wire } from "./chat";
import { notOffered } from "./server";

interface Job {
  id: string;
  document: vscode.TextDocument;
  range: vscode.Range;
  before: string;
  text: string;
  settle: (outcome: { error?: string }) => void;
}

type Content =
  | { type: "started" | "reasoning" }
  | { type: "text" | "replace"; text: string }
  | { type: "error"; message: string }
  | { type: "finished" };

export class Rewrites {
  private readonly running = new Map<string, Job>();
  private proposed: Job | undefined;

  constructor(
    private readonly wire: Wire,
    private readonly preview: Preview,
  ) {}

  async start(editor: vscode.TextEditor): Promise<void> {
    const { document, selection } = editor;
    if (selection.isEmpty) {
      void vscode.window.showInformationMessage("Select what shall be rewritten first.");
      return;
    }
    const prompt = await vscode.window.showInputBox({ prompt: "Rewrite the selection how?", ignoreFocusOut: true });
    if (!prompt?.trim()) return;
    const range = new vscode.Range(selection.start, selection.end);
    const job: Job = { id: randomUUID(), document, range, before: document.getText(range), text: "", settle: () => {} };
    const finished = new Promise<{ error?: string }>((resolve) => {
      job.settle = resolve;
    });
    this.running.set(job.id, job);
    const options = { location: vscode.ProgressLocation.Notification, title: "Rewriting…", cancellable: true };
    const outcome = await vscode.window.withProgress(options, (_, token) => {
      token.onCancellationRequested(() => job.settle({ error: "" }));
      this.ask(job, prompt.trim());
      return finished;
    });
    this.running.delete(job.id);
    if (outcome.error === undefined) await this.propose(job);
    else if (outcome.error) void vscode.window.showWarningMessage(outcome.error);
  }

  private ask(job: Job, prompt: string): void {
    const place = (position: vscode.Position) => ({ line: position.line + 1, character: position.character + 1 });
    const params = {
      id: job.id,
      text: job.before,
      prompt,
      path: job.document.uri.scheme === "file" ? job.document.uri.fsPath : undefined,
      range: { start: place(job.range.start), end: place(job.range.end) },
    };
    this.wire.request("rewrite/prompt", params).catch((error: Error) => {
      const missing = "This server does not rewrite yet; ask for the change in a chat instead.";
      job.settle({ error: notOffered(error) ? missing : error.message });
    });
  }

  received(params: { rewriteId: string; content: Content }): void {
    const job = this.running.get(params.rewriteId);
    if (!job) return;
    const { content } = params;
    if (content.type === "text") job.text += content.text;
    else if (content.type === "replace") job.text = content.text;
    else if (content.type === "error") job.settle({ error: content.message });
    else if (content.type === "finished") job.settle({});
  }

  /** The server is gone, and its rewrites with it. */
  lost(): void {
    for (const job of this.running.values()) job.settle({ error: "The server ended before the rewrite was done." });
  }

  private async propose(job: Job): Promise<void> {
    if (job.text === job.before) {
      void vscode.window.showInformationMessage("The model would leave it as it is.");
      return;
    }
    await this.discard();
    this.proposed = job;
    const whole = job.document.getText();
    const [from, to] = [job.document.offsetAt(job.range.start), job.document.offsetAt(job.range.end)];
    const after = whole.slice(0, from) + job.text + whole.slice(to);
    const uri = job.document.uri;
    const name = vscode.workspace.asRelativePath(uri);
    await this.preview.open(
      this.preview.keep(BEFORE, uri, whole),
      this.preview.keep(REWRITE, uri, after),
      `${name} (proposed rewrite)`,
      false,
    );
    await vscode.commands.executeCommand("setContext", "ecaRs.rewriteProposed", true);
    const choice = await vscode.window.showInformationMessage("Replace the selection by the proposal?", "Replace", "Discard");
    if (choice === "Replace") await this.accept();
    else if (choice === "Discard") await this.discard();
  }

  async accept(): Promise<void> {
    const job = this.proposed;
    await this.discard();
    if (!job) return;
    if (job.document.isClosed || job.document.getText(job.range) !== job.before) {
      await vscode.env.clipboard.writeText(job.text);
      void vscode.window.showWarningMessage("The text has changed since; nothing was replaced. The proposal is in the clipboard.");
      return;
    }
    const edit = new vscode.WorkspaceEdit();
    edit.replace(job.document.uri, job.range, job.text);
    await vscode.workspace.applyEdit(edit);
  }

  async discard(): Promise<void> {
    this.proposed = undefined;
    await vscode.commands.executeCommand("setContext", "ecaRs.rewriteProposed", false);
    await this.preview.close(REWRITE);
  }
}
