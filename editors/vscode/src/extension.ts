// The extension: puts the parts together when VS Code starts it.
import * as path from "node:path";
import * as vscode from "vscode";
import type { FromView, QuestionBlock, ToolBlock } from "./bridge";
import type { Chat } from "./chat";
import { Chats, type Shower } from "./chats";
import { Commands } from "./commands";
import { definition, diagnostics, EditorPlaces, LastEditor, references } from "./editor";
import { health } from "./health";
import { InlineCompletion } from "./inline";
import { JobPages } from "./jobpages";
import { Jobs } from "./jobs";
import { Preview, PROPOSED } from "./preview";
import type { Problem, ToolServer } from "./protocol";
import { Rewrites } from "./rewrite";
import { Server, type Handlers, type Launch } from "./server";
import { Status } from "./status";
import { ChatView } from "./view";

const LAST_CHAT = "ecaRs.lastChat";

let running: Server | undefined;

export function activate(context: vscode.ExtensionContext): { server: Server; chats: Chats } {
  const extension = new Extension(context);
  running = extension.server;
  return { server: extension.server, chats: extension.chats };
}

export async function deactivate(): Promise<void> {
  await running?.stop();
}

class Extension implements Shower {
  readonly server: Server;
  readonly chats: Chats;
  private readonly channel = vscode.window.createOutputChannel("ECA");
  private readonly editors = new LastEditor();
  private readonly places = new EditorPlaces(this.editors);
  private readonly preview = new Preview();
  private readonly status = new Status();
  private readonly view: ChatView;
  private readonly rewrites: Rewrites;
  private readonly inline: InlineCompletion;
  private readonly jobs: Jobs;
  private readonly jobPages: JobPages;
  private readonly commands: Commands;
  private keys = new Map<string, boolean>();
  private reopened = false;

  constructor(private readonly context: vscode.ExtensionContext) {
    this.server = new Server({
      launch,
      handlers: this.handlers(),
      channel: this.channel,
      version: (context.extension.packageJSON as { version: string }).version,
      state: (state, problem) => {
        this.chats.serverState = state;
        this.chats.problem = problem;
        if (problem) this.channel.appendLine(problem);
        if (state === "running") this.completionOffered();
        else this.jobsLost();
        this.changed();
      },
      died: (text) => {
        this.channel.appendLine(text);
        this.chats.serverDied(text);
        this.rewrites.lost();
        void this.preview.close(PROPOSED);
        if (this.server.state === "failed") void this.commands.guarded(() => Promise.reject(new Error(text)));
      },
    });
    this.chats = new Chats(this.server, this, this.places);
    this.rewrites = new Rewrites(this.server, this.preview);
    this.commands = new Commands(this.chats, this.server, () => this.server.start());
    this.inline = new InlineCompletion(this.server, (problem) => this.completionTold(problem));
    this.jobs = new Jobs(this.server, () => this.jobsChanged());
    this.jobPages = new JobPages(this.jobs, () => this.chats, (key, value) => this.setKey(key, value), (action) =>
      this.commands.guarded(action),
    );
    this.view = new ChatView(context.extensionUri, () => this.chats, (message) => this.received(message));
    context.subscriptions.push(
      this.channel,
      this.editors,
      this.preview,
      this.status,
      this.inline,
      this.jobPages,
      vscode.window.registerWebviewViewProvider(ChatView.id, this.view),
      vscode.workspace.onDidChangeWorkspaceFolders((event) => this.foldersChanged(event)),
      vscode.workspace.onDidChangeConfiguration((event) => this.configurationChanged(event)),
      ...this.registered(),
    );
    this.changed();
  }

  patched(...[chat, patch]: Parameters<Shower["patched"]>): void {
    this.view.patched(chat, patch);
  }

  changed(): void {
    this.view.headPatched();
    this.status.update(this.chats);
    const waiting = this.chats.list().some((chat) => chat.waitingCall());
    this.setKey("ecaRs.waiting", waiting);
    this.setKey("ecaRs.busy", this.chats.current.busy);
  }

  switched(chat: Chat): void {
    this.view.reset();
    this.changed();
    void this.context.workspaceState.update(LAST_CHAT, chat.id);
  }

  attention(chat: Chat, block: ToolBlock | QuestionBlock): void {
    if (!this.view.visible || chat !== this.chats.current) this.callUser(chat, block);
    if (block.kind !== "tool" || block.details?.type !== "fileChange") return;
    const wanted = vscode.workspace.getConfiguration("ecaRs").get("openDiffOnApproval", true);
    if (wanted && chat === this.chats.current) void this.preview.show(block.details, true, true);
  }

  fileChanged(file: string): void {
    void this.preview.close(PROPOSED, file);
  }

  restore(chat: Chat, text: string): void {
    this.view.restore(chat, text);
  }

  private jobsChanged(): void {
    this.chats.runningJobs = this.jobs.running.length;
    this.jobPages.changed();
    this.changed();
  }

  private jobsLost(): void {
    this.jobPages.lost();
    this.jobs.lost();
  }

  private completionOffered(): void {
    this.inline.completer.serverStarted();
    this.status.completion = "";
  }

  private completionTold(problem?: Problem): void {
    if (problem) this.channel.appendLine(`Completion at the cursor: ${problem.message}`);
    // That the model has nothing to say is no problem.
    this.status.completion = problem && problem.type !== "info" ? `Completion at the cursor failed: ${problem.message}` : "";
    this.status.update(this.chats);
  }

  private callUser(chat: Chat, block: ToolBlock | QuestionBlock): void {
    const what = block.kind === "tool" ? (block.summary ?? block.name) : block.question;
    const show = "Show";
    void vscode.window.showInformationMessage(`ECA needs you: ${what}`, show).then((answer) => {
      if (answer !== show) return;
      this.chats.show(chat);
      void this.view.focus();
    });
  }

  private handlers(): Handlers {
    const nothing = () => {};
    return {
      notifications: {
        "config/updated": (params) => this.chats.configUpdated(params),
        "chat/contentReceived": (params) => this.chats.contentReceived(params),
        "chat/statusChanged": (params) => this.chats.statusChanged(params),
        "chat/opened": (params) => this.chats.opened(params),
        "chat/cleared": (params) => this.chats.cleared(params),
        "chat/deleted": (params) => this.chats.deleted(params),
        "rewrite/contentReceived": (params) => this.rewrites.received(params),
        "tool/serverUpdated": (server: ToolServer) => void this.chats.toolServers.set(server.name, server),
        "tool/serverRemoved": (server: ToolServer) => void this.chats.toolServers.delete(server.name),
        "jobs/updated": (params) => this.jobs.updated(params),
        "providers/updated": nothing,
        // VS Code shows the same once more as `window/showMessage`.
        "$/showMessage": nothing,
      },
      requests: {
        "chat/askQuestion": (params, token) => {
          const cancelled = new Promise((resolve) => token.onCancellationRequested(resolve));
          return this.chats.ask(params, cancelled);
        },
        "editor/getDiagnostics": (params) => diagnostics(params ?? {}),
        "editor/getDefinition": (params) => definition(params),
        "editor/getReferences": (params) => references(params),
      },
    };
  }

  private received(message: FromView): void {
    const { chats, commands } = this;
    const chat = chats.current;
    switch (message.type) {
      case "ready":
        return void this.seen();
      case "send":
        return chats.send(message.text, message.now);
      case "stop":
        return void chat.stop();
      case "approve":
        return this.decide(message.id, (call) => chat.approve(call, message.always));
      case "reject":
        return this.decide(message.id, (call) => chat.reject(call));
      case "diff":
        return this.showDiff(message.id);
      case "answer":
        return chat.answer(message.id, message.answer);
      case "complete":
        return void this.complete(message);
      case "removeContext":
        return chats.removeContext(message.index);
      case "takeBack":
        return chat.takeBack();
      case "run":
        return void vscode.commands.executeCommand(`ecaRs.${message.command}`);
      case "message":
        return void commands.guarded(() =>
          message.action === "fork"
            ? commands.fork(message.contentId)
            : commands.rollback(message.contentId, (text) => this.view.restore(chat, text)),
        );
      case "open":
        return void commands.guarded(() => openTarget(message.target));
      case "copy":
        return void vscode.env.clipboard.writeText(message.text);
    }
  }

  private async complete(message: Extract<FromView, { type: "complete" }>): Promise<void> {
    // A question that cannot be answered offers nothing; the next key asks again.
    const items = await this.chats.complete(message.kind, message.query).catch(() => []);
    this.view.post({ type: "completions", ticket: message.ticket, items });
  }

  /** Decides on a call of the current chat; without an id, on the first that waits anywhere. */
  private decide(id: number | undefined, how: (call: ToolBlock, chat: Chat) => void): void {
    const order = [this.chats.current, ...this.chats.list()];
    const chat = id === undefined ? order.find((one) => one.waitingCall()) : this.chats.current;
    const call = chat?.waitingCall(id);
    if (!chat || !call) return;
    how(call, chat);
    if (call.details?.type === "fileChange") void this.preview.close(PROPOSED, call.details.path);
  }

  private showDiff(id?: number): void {
    const chat = this.chats.current;
    const call = id === undefined ? chat.waitingCall() : chat.blocks.find((block) => block.id === id);
    if (call?.kind !== "tool" || call.details?.type !== "fileChange") {
      return void vscode.window.showInformationMessage("No change of a file waits for you.");
    }
    const { details } = call;
    void this.commands.guarded(() => this.preview.show(details, call.state === "waiting", false));
  }

  private registered(): vscode.Disposable[] {
    const { commands } = this;
    const actions: Record<string, (...args: never[]) => unknown> = {
      focus: () => this.view.focus(),
      newChat: () => {
        this.chats.begin();
        return this.view.focus();
      },
      chats: () => commands.chatList(),
      stop: () => this.chats.current.stop(),
      approve: () => this.decide(undefined, (call, chat) => chat.approve(call, false)),
      approveAlways: () => this.decide(undefined, (call, chat) => chat.approve(call, true)),
      reject: () => this.decide(undefined, (call, chat) => chat.reject(call)),
      showDiff: () => this.showDiff(),
      pickModel: () => commands.pickModel(),
      pickAgent: () => commands.pickAgent(),
      pickVariant: () => commands.pickVariant(),
      toggleTrust: () => commands.toggleTrust(),
      addSelection: () => this.addSelection(),
      addFile: (uri: vscode.Uri, several?: vscode.Uri[]) => this.addFiles(several?.length ? several : [uri]),
      rewrite: () => {
        const editor = this.editors.get();
        return editor && this.rewrites.start(editor);
      },
      acceptRewrite: () => this.rewrites.accept(),
      discardRewrite: () => this.rewrites.discard(),
      complete: () => this.inline.ask(),
      jobs: () => this.jobPages.choose(),
      killJob: () => this.jobPages.kill(),
      renameChat: () => commands.rename(),
      clearChat: () => commands.clear(),
      deleteChat: () => commands.removeCurrent(),
      login: () => commands.login(),
      toolServers: () => commands.toolServers(),
      restart: () => this.server.restart(),
      showLog: () => this.channel.show(true),
      checkHealth: () => this.checkHealth(),
    };
    return Object.entries(actions).map(([name, action]) =>
      vscode.commands.registerCommand(`ecaRs.${name}`, (...args: never[]) => commands.guarded(() => action(...args))),
    );
  }

  /** The server is started when the chat is first seen, and not before: a window that only edits needs none. */
  private async seen(): Promise<void> {
    try {
      await this.server.start();
    } catch {
      return; // The view says why.
    }
    await this.reopen();
  }

  /** A window that was reloaded goes on with the chat it had. */
  private async reopen(): Promise<void> {
    const id = this.context.workspaceState.get<string>(LAST_CHAT);
    if (this.reopened || !id || this.chats.current.blocks.length > 0) return;
    this.reopened = true;
    const before = this.chats.current;
    await this.chats.open(id).catch(() => false);
    // Nothing that the user began meanwhile is taken away.
    if (before.blocks.length > 0) this.chats.show(before);
  }

  private async checkHealth(): Promise<void> {
    const { version } = this.context.extension.packageJSON as { version: string };
    const folders = (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
    const lines = await health(`VS Code ${vscode.version}, extension ${version}`, launch(), this.chats, folders);
    this.channel.appendLine(["", "Health:", ...lines, ""].join("\n"));
    this.channel.show(true);
  }

  private async addSelection(): Promise<void> {
    const editor = this.editors.get();
    if (!editor) return void vscode.window.showInformationMessage("Open a file first.");
    this.chats.addContext(this.places.selection(editor));
    await this.view.focus();
  }

  private async addFiles(uris: vscode.Uri[]): Promise<void> {
    for (const uri of uris) {
      const { type } = await vscode.workspace.fs.stat(uri);
      const kind = type & vscode.FileType.Directory ? ("directory" as const) : ("file" as const);
      this.chats.addContext({ type: kind, path: uri.fsPath });
    }
    await this.view.focus();
  }

  private foldersChanged(event: vscode.WorkspaceFoldersChangeEvent): void {
    const wire = (folder: vscode.WorkspaceFolder) => ({ uri: folder.uri.toString(), name: folder.name });
    this.server.notify("workspace/didChangeWorkspaceFolders", {
      event: { added: event.added.map(wire), removed: event.removed.map(wire) },
    });
  }

  private configurationChanged(event: vscode.ConfigurationChangeEvent): void {
    if (!["serverPath", "serverArgs", "serverEnvironment"].some((key) => event.affectsConfiguration(`ecaRs.${key}`))) return;
    if (this.server.state === "failed") return void this.commands.guarded(() => this.server.restart());
    if (this.server.state === "stopped") return;
    void vscode.window.showInformationMessage("The server's settings have changed.", "Restart Server").then((answer) => {
      if (answer) void this.commands.guarded(() => this.server.restart());
    });
  }

  private setKey(key: string, value: boolean): void {
    if (this.keys.get(key) === value) return;
    this.keys.set(key, value);
    void vscode.commands.executeCommand("setContext", key, value);
  }
}

function launch(): Launch {
  const settings = vscode.workspace.getConfiguration("ecaRs");
  return {
    command: settings.get("serverPath", "eca").trim() || "eca",
    args: settings.get<string[]>("serverArgs", []),
    env: settings.get<Record<string, string>>("serverEnvironment", {}),
    cwd: vscode.workspace.workspaceFolders?.find((folder) => folder.uri.scheme === "file")?.uri.fsPath,
  };
}

/** Opens what a link in a chat names: an address in the browser, a file (`name:line`) in an editor. */
async function openTarget(target: string): Promise<void> {
  if (/^(https?|mailto):/i.test(target)) return void (await vscode.env.openExternal(vscode.Uri.parse(target)));
  const [, name = "", line] = /^(?:file:\/\/)?(.*?)(?:(?::|#L)(\d+).*)?$/.exec(decodeURI(target)) ?? [];
  const roots = path.isAbsolute(name) ? [""] : (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
  for (const root of roots) {
    const uri = vscode.Uri.file(path.join(root, name));
    const found = await vscode.workspace.fs.stat(uri).then(
      () => true,
      () => false,
    );
    if (!found) continue;
    const at = new vscode.Position(Math.max(Number(line ?? 1) - 1, 0), 0);
    await vscode.window.showTextDocument(uri, { selection: new vscode.Range(at, at) });
    return;
  }
  throw new Error(`There is no file ${name}.`);
}
