// The chat in the side bar: hands what happens to the web page that draws it, and what the user does there back.
import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import type { FromView, Patch, ToView } from "./bridge";
import type { Chat } from "./chat";
import type { Chats } from "./chats";
import { page } from "./page";

/** Answers come in many small pieces; the page is told about once per frame. */
const FRAME_MS = 16;

export class ChatView implements vscode.WebviewViewProvider {
  static readonly id = "ecaRs.chat";
  private view: vscode.WebviewView | undefined;
  private ready = false;
  private pending: Patch[] = [];
  private timer: NodeJS.Timeout | undefined;
  private headChanged = false;
  /** Text for the prompt that came while there was no page. */
  private draft = "";
  /** The keyboard shall go to the prompt, as soon as there is one. */
  private focusWanted = false;

  constructor(
    private readonly extension: vscode.Uri,
    private readonly chats: () => Chats,
    private readonly received: (message: FromView) => void,
  ) {}

  resolveWebviewView(view: vscode.WebviewView): void {
    this.view = view;
    this.ready = false;
    const dist = vscode.Uri.joinPath(this.extension, "dist");
    view.webview.options = { enableScripts: true, localResourceRoots: [dist] };
    view.webview.html = this.html(view.webview, dist);
    view.webview.onDidReceiveMessage((message: FromView) => {
      if (message.type === "ready") {
        this.ready = true;
        this.reset();
        this.passFocus();
      }
      this.received(message);
    });
    view.onDidDispose(() => {
      this.view = undefined;
      this.ready = false;
    });
    this.headPatched();
  }

  /** Draws everything anew. */
  reset(): void {
    this.pending = [];
    const chats = this.chats();
    const openReasoning = vscode.workspace.getConfiguration("ecaRs").get("openReasoning", false);
    const draft = this.ready ? this.draft : "";
    if (this.ready) this.draft = "";
    this.post({ type: "state", head: chats.head(), blocks: chats.current.blocks, openReasoning, draft });
    this.describe();
  }

  patched(chat: Chat, patch: Patch): void {
    if (!this.ready || chat !== this.chats().current) return;
    const last = this.pending.at(-1);
    if (patch.type === "append" && last?.type === "append" && last.id === patch.id) {
      last.text += patch.text;
    } else {
      // A block goes on changing here while its patch waits, so what is sent is a copy.
      this.pending.push("block" in patch ? { ...patch, block: { ...patch.block } } : { ...patch });
    }
    this.schedule();
  }

  headPatched(): void {
    this.headChanged = true;
    this.schedule();
  }

  restore(chat: Chat, text: string): void {
    if (chat !== this.chats().current) return;
    if (this.ready) this.post({ type: "draft", text });
    else this.draft = [this.draft, text].filter(Boolean).join("\n");
  }

  async focus(): Promise<void> {
    this.focusWanted = true;
    await vscode.commands.executeCommand(`${ChatView.id}.focus`);
    this.passFocus();
  }

  private passFocus(): void {
    if (!this.ready || !this.focusWanted) return;
    this.focusWanted = false;
    this.post({ type: "focus" });
  }

  get visible(): boolean {
    return this.view?.visible ?? false;
  }

  post(message: ToView): void {
    if (this.ready) void this.view?.webview.postMessage(message);
  }

  private schedule(): void {
    this.timer ??= setTimeout(() => this.flush(), FRAME_MS);
  }

  private flush(): void {
    this.timer = undefined;
    const patches = this.pending;
    this.pending = [];
    if (this.headChanged) {
      this.headChanged = false;
      patches.push({ type: "head", head: this.chats().head() });
      this.describe();
    }
    if (patches.length > 0) this.post({ type: "patches", patches });
  }

  private describe(): void {
    if (!this.view) return;
    const waiting = this.chats()
      .list()
      .filter((chat) => chat.waiting().length > 0).length;
    // Nothing at all would leave the old number standing.
    this.view.badge = { value: waiting, tooltip: waiting > 0 ? "Something waits for you" : "" };
    this.view.description = this.chats().current.title || undefined;
  }

  private html(webview: vscode.Webview, dist: vscode.Uri): string {
    return page({
      nonce: randomBytes(16).toString("base64"),
      source: webview.cspSource,
      script: String(webview.asWebviewUri(vscode.Uri.joinPath(dist, "webview.js"))),
      style: String(webview.asWebviewUri(vscode.Uri.joinPath(dist, "webview.css"))),
    });
  }
}
