// What the model may ask of the editor, and what the user may show it: problems, definitions, uses, places and texts.
import * as vscode from "vscode";
import type { Places } from "./chats";
import type { Context, Position, Range } from "./protocol";

/** How long an extension may take to find a definition or all uses. */
const PATIENCE_MS = 15_000;

const SEVERITIES = ["error", "warning", "information", "hint"];

/** VS Code counts from 0, ECA from 1. */
function outwards(range: vscode.Range): Range {
  const place = (position: vscode.Position) => ({ line: position.line + 1, character: position.character + 1 });
  return { start: place(range.start), end: place(range.end) };
}

function inwards(position: Position): vscode.Position {
  return new vscode.Position(Math.max(position.line - 1, 0), Math.max(position.character - 1, 0));
}

export function diagnostics(params: { uri?: string | null }): object {
  const wanted: [vscode.Uri, readonly vscode.Diagnostic[]][] = params.uri
    ? [[vscode.Uri.parse(params.uri), vscode.languages.getDiagnostics(vscode.Uri.parse(params.uri))]]
    : vscode.languages.getDiagnostics();
  return {
    diagnostics: wanted.flatMap(([uri, problems]) =>
      problems.map((problem) => ({
        uri: uri.toString(),
        severity: SEVERITIES[problem.severity] ?? "information",
        source: problem.source ?? null,
        code: codeOf(problem),
        message: problem.message,
        range: outwards(problem.range),
      })),
    ),
  };
}

function codeOf(problem: vscode.Diagnostic): string | undefined {
  const code = typeof problem.code === "object" ? problem.code.value : problem.code;
  return code === undefined ? undefined : String(code);
}

export function definition(params: { uri: string; position: Position }): Promise<object> {
  return locate("vscode.executeDefinitionProvider", params);
}

export async function references(params: {
  uri: string;
  position: Position;
  includeDeclaration?: boolean;
}): Promise<object> {
  const found = await locate("vscode.executeReferenceProvider", params);
  if (params.includeDeclaration !== false || !("locations" in found)) return found;
  // VS Code lists the declaration among the uses; who does not want it gets the uses without it.
  const declared = await locate("vscode.executeDefinitionProvider", params);
  const known = new Set("locations" in declared ? (declared.locations as object[]).map((one) => JSON.stringify(one)) : []);
  return { ...found, locations: (found.locations as object[]).filter((one) => !known.has(JSON.stringify(one))) };
}

async function locate(command: string, params: { uri: string; position: Position }): Promise<object> {
  const uri = vscode.Uri.parse(params.uri);
  const fresh = !vscode.workspace.textDocuments.some((document) => document.uri.toString() === uri.toString());
  try {
    // An extension answers for a document that is open in VS Code's sense, visible or not.
    await vscode.workspace.openTextDocument(uri);
    type Found = (vscode.Location | vscode.LocationLink)[] | undefined;
    const asked = vscode.commands.executeCommand<Found>(command, uri, inwards(params.position));
    const late = new Promise<"late">((resolve) => setTimeout(() => resolve("late"), PATIENCE_MS));
    const found = await Promise.race([asked, late]);
    if (found === "late") return { status: "error", message: "the language extension did not answer in time" };
    const locations = (found ?? []).map((one) =>
      "targetUri" in one
        ? { uri: one.targetUri.toString(), range: outwards(one.targetSelectionRange ?? one.targetRange) }
        : { uri: one.uri.toString(), range: outwards(one.range) },
    );
    // Nothing, for a file that was just opened, may mean that its extension is still waking up.
    return fresh && locations.length === 0 ? { status: "starting" } : { status: "success", locations };
  } catch (error) {
    return { status: "error", message: error instanceof Error ? error.message : String(error) };
  }
}

/** The text editor that the user had last; a view that takes the keyboard does not change that. */
export class LastEditor implements vscode.Disposable {
  private last: vscode.TextEditor | undefined = vscode.window.activeTextEditor;
  private readonly listener = vscode.window.onDidChangeActiveTextEditor((editor) => {
    if (editor && editor.document.uri.scheme !== "output") this.last = editor;
  });

  get(): vscode.TextEditor | undefined {
    const open = vscode.window.visibleTextEditors;
    return this.last && open.includes(this.last) ? this.last : (vscode.window.activeTextEditor ?? open[0]);
  }

  dispose(): void {
    this.listener.dispose();
  }
}

export class EditorPlaces implements Places {
  constructor(private readonly editors: LastEditor) {}

  short(path: string): string {
    return vscode.workspace.asRelativePath(path, (vscode.workspace.workspaceFolders?.length ?? 0) > 1);
  }

  cursor(): Context | undefined {
    const editor = this.editors.get();
    if (editor?.document.uri.scheme !== "file") return undefined;
    return { type: "cursor", path: editor.document.uri.fsPath, position: outwards(editor.selection) };
  }

  /** The server reads files from the disk, so what is not saved is sent as text. */
  current(context: Context): Context {
    if (context.type !== "file") return context;
    const open = vscode.workspace.textDocuments.find(
      (document) => document.uri.scheme === "file" && document.uri.fsPath === context.path && document.isDirty,
    );
    if (!open) return context;
    const lines = context.linesRange;
    return {
      type: "text",
      label: this.short(context.path) + (lines ? `:${lines.start}-${lines.end}` : ""),
      content: lines ? linesOf(open, lines.start, lines.end) : open.getText(),
    };
  }

  /** The selected lines of an editor, or the place of its cursor if nothing is selected. */
  selection(editor: vscode.TextEditor): Context {
    const { document, selection } = editor;
    const start = selection.start.line + 1;
    // A selection that ends at the beginning of a line does not mean that line.
    const end = Math.max(start, selection.end.line + (selection.end.character === 0 ? 0 : 1));
    if (document.uri.scheme !== "file") {
      const label = selection.isEmpty ? "unsaved text" : `unsaved text:${start}-${end}`;
      return { type: "text", label, content: selection.isEmpty ? document.getText() : linesOf(document, start, end) };
    }
    const path = document.uri.fsPath;
    if (selection.isEmpty) return { type: "cursor", path, position: outwards(selection) };
    return { type: "file", path, linesRange: { start, end } };
  }
}

function linesOf(document: vscode.TextDocument, start: number, end: number): string {
  const last = Math.min(end, document.lineCount) - 1;
  return document.getText(new vscode.Range(start - 1, 0, last, document.lineAt(Math.max(last, 0)).text.length));
}
