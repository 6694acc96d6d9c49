// A proposed change of a file in VS Code's diff editor, from documents that exist nowhere but here.
import * as vscode from "vscode";
import type { FileChange } from "./protocol";
import { apply, revert, sides } from "./patch";

export const PROPOSED = "eca-rs-proposed";
export const BEFORE = "eca-rs-before";
export const REWRITE = "eca-rs-rewrite";
const SCHEMES = [PROPOSED, BEFORE, REWRITE];

/** Texts that are kept for open diff editors; the oldest go first. */
const MOST_TEXTS = 40;

export class Preview implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private readonly registrations = SCHEMES.map((scheme) =>
    vscode.workspace.registerTextDocumentContentProvider(scheme, this),
  );
  private count = 0;

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? "";
  }

  /** Shows the change of a call. `waits` says that it has not been made yet. */
  async show(change: FileChange, waits: boolean, keepFocus: boolean): Promise<void> {
    const file = vscode.Uri.file(change.path);
    const now = await textOf(file);
    const [before, after] = bothSides(change, now, waits);
    const name = vscode.workspace.asRelativePath(file);
    await this.open(
      this.keep(BEFORE, file, before),
      this.keep(PROPOSED, file, after),
      waits ? `${name} (proposed change)` : `${name} (change that was made)`,
      keepFocus,
    );
  }

  async open(left: vscode.Uri, right: vscode.Uri, title: string, preserveFocus: boolean): Promise<void> {
    const options: vscode.TextDocumentShowOptions = { preview: true, preserveFocus };
    await vscode.commands.executeCommand("vscode.diff", left, right, title, options);
  }

  /** A document with this text, named like the file so that it is highlighted like it. */
  keep(scheme: string, file: vscode.Uri, text: string): vscode.Uri {
    this.count += 1;
    const uri = vscode.Uri.from({ scheme, path: file.path, query: String(this.count) });
    this.texts.set(uri.toString(), text);
    for (const oldest of this.texts.keys()) {
      if (this.texts.size <= MOST_TEXTS) break;
      this.texts.delete(oldest);
    }
    return uri;
  }

  /** Closes the diff editors of a scheme, for one file or for all. */
  async close(scheme: string, path?: string): Promise<void> {
    const file = path === undefined ? undefined : vscode.Uri.file(path).path;
    const tabs = vscode.window.tabGroups.all
      .flatMap((group) => group.tabs)
      .filter(({ input }) => {
        if (!(input instanceof vscode.TabInputTextDiff) || input.modified.scheme !== scheme) return false;
        return file === undefined || input.modified.path === file;
      });
    if (tabs.length > 0) await vscode.window.tabGroups.close(tabs, true);
  }

  dispose(): void {
    for (const registration of this.registrations) registration.dispose();
    this.texts.clear();
  }
}

/** The two sides of a change. A file that somebody changed meanwhile is shown as far as the diff tells. */
function bothSides(change: FileChange, now: string, waits: boolean): [string, string] {
  const after = apply(now, change.diff);
  const before = revert(now, change.diff);
  const hunks = sides(change.diff);
  if (waits) return after === undefined ? [hunks.before, hunks.after] : [now, after];
  return before === undefined ? [hunks.before, hunks.after] : [before, now];
}

async function textOf(file: vscode.Uri): Promise<string> {
  const open = vscode.workspace.textDocuments.find((document) => document.uri.toString() === file.toString());
  if (open) return open.getText();
  try {
    return new TextDecoder().decode(await vscode.workspace.fs.readFile(file));
  } catch {
    return "";
  }
}
