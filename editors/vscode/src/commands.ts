// What commands and buttons do: the pickers, the list of chats, and all that asks the user something first.
import * as vscode from "vscode";
import type { Chat, Wire } from "./chat";
import type { Chats } from "./chats";
import type { ChatSummary } from "./protocol";

const MOST_CHATS = 100;

interface LoginAction {
  action: "choose-method" | "authorize" | "device-code" | "input" | "done";
  methods?: { key: string; label: string }[];
  fields?: { key: string; label: string; type: "secret" | "text" }[];
  url?: string;
  code?: string;
  message?: string;
}

export class Commands {
  constructor(
    private readonly chats: Chats,
    private readonly wire: Wire,
    private readonly started: () => Promise<void>,
  ) {}

  async pickModel(): Promise<void> {
    await this.started();
    const chat = this.chats.current;
    const model = await pick(this.chats.models, "Model for this chat", this.chats.selection(chat).model, "models");
    if (model !== undefined) this.chats.chooseModel(chat, model);
  }

  async pickAgent(): Promise<void> {
    await this.started();
    const chat = this.chats.current;
    const agent = await pick(this.chats.agents, "Agent for this chat", this.chats.selection(chat).agent, "agents");
    if (agent !== undefined) this.chats.chooseAgent(chat, agent);
  }

  async pickVariant(): Promise<void> {
    await this.started();
    const chat = this.chats.current;
    const { variants = [], variant } = this.chats.selection(chat);
    const usual = "the model's default";
    const all = variants.length > 0 ? [usual, ...variants] : [];
    const choice = await pick(all, "Variant of the model", variant ?? usual, "variants of this model");
    if (choice !== undefined) this.chats.chooseVariant(chat, choice === usual ? null : choice);
  }

  async toggleTrust(): Promise<void> {
    const chat = this.chats.current;
    const trust = !this.chats.selection(chat).trust;
    if (trust) {
      const yes = "Run Without Asking";
      const detail = "Commands and changes of files then happen at once, in this chat only. What the configuration forbids stays forbidden.";
      const answer = await vscode.window.showWarningMessage("Let the tools run without asking?", { modal: true, detail }, yes);
      if (answer !== yes) return;
    }
    await this.chats.setTrust(chat, trust);
  }

  /** The chats of the workspace: those of this window first, then those that the server keeps. */
  async chatList(): Promise<void> {
    const stored = await this.wire.request<{ chats: ChatSummary[] }>("chat/list", { limit: MOST_CHATS, sortBy: "updatedAt" });
    const remove: vscode.QuickInputButton = { iconPath: new vscode.ThemeIcon("trash"), tooltip: "Delete" };
    type Item = vscode.QuickPickItem & { id: string };
    const item = (summary: ChatSummary): Item => {
      const chat = this.chats.get(summary.id);
      return {
        id: summary.id,
        label: `${iconOf(chat)}${summary.title || nameOf(chat)}`,
        description: [summary.id === this.chats.current.id ? "shown" : "", ago(summary.updatedAt)].filter(Boolean).join(" · "),
        buttons: [remove],
      };
    };
    const list = vscode.window.createQuickPick<Item>();
    list.title = "Chats";
    list.placeholder = stored.chats.length > 0 ? "Open a chat" : "There are no chats in this workspace yet";
    list.items = stored.chats.map(item);
    list.onDidTriggerItemButton(async ({ item: gone }) => {
      if (await this.remove(gone.id, gone.label)) list.items = list.items.filter((one) => one.id !== gone.id);
    });
    list.onDidAccept(() => {
      const chosen = list.selectedItems[0];
      list.hide();
      if (chosen) void this.guarded(() => this.open(chosen.id));
    });
    list.onDidHide(() => list.dispose());
    list.show();
  }

  private async open(id: string): Promise<void> {
    if (!(await this.chats.open(id))) throw new Error("The server does not know this chat any more.");
  }

  async rename(): Promise<void> {
    const chat = this.chats.current;
    if (!chat.known) return void vscode.window.showInformationMessage("Send a message first; then the chat can have a name.");
    const title = await vscode.window.showInputBox({ prompt: "Title of the chat", value: chat.title });
    if (title?.trim()) await this.wire.request("chat/update", { chatId: chat.id, title: title.trim() });
  }

  async clear(): Promise<void> {
    const chat = this.chats.current;
    if (chat.known) await this.wire.request("chat/clear", { chatId: chat.id, messages: true });
  }

  async removeCurrent(): Promise<void> {
    const chat = this.chats.current;
    if (chat.known) await this.remove(chat.id, chat.title || "this chat");
    else this.chats.deleted({ chatId: chat.id });
  }

  private async remove(id: string, label: string): Promise<boolean> {
    const name = label.replace(/^\$\([^)]*\) /, "");
    const answer = await vscode.window.showWarningMessage(`Delete “${name}”?`, { modal: true }, "Delete");
    if (answer !== "Delete") return false;
    await this.wire.request("chat/delete", { chatId: id });
    return true;
  }

  /** Goes back to before a message of the user's. */
  async rollback(contentId: string, restore: (text: string) => void): Promise<void> {
    const chat = this.chats.current;
    const message = chat.blocks.find((block) => block.kind === "user" && block.contentId === contentId);
    const choices: (vscode.QuickPickItem & { include: string[] })[] = [
      { label: "Messages and files", description: "as if it had never been said", include: ["messages", "tools"] },
      { label: "Only messages", description: "files stay as they are", include: ["messages"] },
      { label: "Only files", description: "the chat stays as it is", include: ["tools"] },
    ];
    const choice = await vscode.window.showQuickPick(choices, { title: "Go back to before this message" });
    if (!choice) return;
    await this.wire.request("chat/rollback", { chatId: chat.id, contentId, include: choice.include });
    if (message?.kind === "user" && choice.include.includes("messages")) restore(message.text);
  }

  /** A copy of the chat up to a message of the user's; the server opens it. */
  async fork(contentId: string): Promise<void> {
    await this.wire.request("chat/fork", { chatId: this.chats.current.id, contentId });
  }

  async login(): Promise<void> {
    interface Provider {
      id: string;
      label?: string;
      auth?: { status?: string };
    }
    const { providers } = await this.wire.request<{ providers: Provider[] }>("providers/list", {});
    const items = providers.map((one) => ({ label: one.label ?? one.id, description: one.auth?.status, id: one.id }));
    const provider = await vscode.window.showQuickPick(items, { title: "Log in to a provider", matchOnDescription: true });
    if (!provider) return;
    await this.loginStep(provider.id, await this.wire.request<LoginAction>("providers/login", { provider: provider.id }));
  }

  private async loginStep(provider: string, step: LoginAction): Promise<void> {
    if (step.action === "choose-method") {
      const items = (step.methods ?? []).map((method) => ({ label: method.label, key: method.key }));
      const method = await vscode.window.showQuickPick(items, { title: "How?" });
      if (!method) return;
      const next = await this.wire.request<LoginAction>("providers/login", { provider, method: method.key });
      return this.loginStep(provider, next);
    }
    if (step.url) {
      const text = [step.message, step.code ? `Code: ${step.code}` : ""].filter(Boolean).join(" ");
      const answer = await vscode.window.showInformationMessage(text || "Log in with the browser.", "Open Browser");
      if (answer) await vscode.env.openExternal(vscode.Uri.parse(step.url));
    }
    if (step.fields?.length) {
      const data: Record<string, string> = {};
      for (const field of step.fields) {
        const options = { prompt: field.label, password: field.type === "secret", ignoreFocusOut: true };
        const value = await vscode.window.showInputBox(options);
        if (!value) return;
        data[field.key] = value;
      }
      const next = await this.wire.request<LoginAction>("providers/loginInput", { provider, data });
      return this.loginStep(provider, next);
    }
    if (step.action === "done") void vscode.window.showInformationMessage(`Logged in to ${provider}.`);
  }

  /** The tool servers and what can be done with each. */
  async toolServers(): Promise<void> {
    await this.started();
    const items = [...this.chats.toolServers.values()].map((server) => ({
      label: server.name,
      description: server.status,
      detail: server.tools?.length ? server.tools.map((tool) => tool.name).join(", ") : undefined,
      server,
    }));
    const chosen = await vscode.window.showQuickPick(items, { title: "Tool servers" });
    if (!chosen || chosen.server.type !== "mcp") return;
    const actions = [
      { label: "Start", method: "mcp/startServer" },
      { label: "Stop", method: "mcp/stopServer" },
      { label: "Log in", method: "mcp/connectServer" },
      { label: "Log out", method: "mcp/logoutServer" },
      { label: "Disable", method: "mcp/disableServer" },
      { label: "Enable", method: "mcp/enableServer" },
    ];
    const action = await vscode.window.showQuickPick(actions, { title: chosen.label });
    if (action) this.wire.notify(action.method, { name: chosen.label });
  }

  /** Runs what may fail, and tells the user if it does. */
  async guarded(action: () => unknown): Promise<void> {
    try {
      await action();
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      const answer = await vscode.window.showErrorMessage(`ECA: ${message}`, "Show Log");
      if (answer) await vscode.commands.executeCommand("ecaRs.showLog");
    }
  }
}

async function pick(all: string[], title: string, current: string | undefined, what: string): Promise<string | undefined> {
  if (all.length === 0) {
    void vscode.window.showInformationMessage(`The server offers no ${what}.`);
    return undefined;
  }
  const items = all.map((label) => ({ label, description: label === current ? "in use" : undefined }));
  items.sort((a, b) => Number(b.label === current) - Number(a.label === current));
  return (await vscode.window.showQuickPick(items, { title }))?.label;
}

/** A chat that has no title yet is called by what was said first. */
export function nameOf(chat: Chat | undefined): string {
  const first = chat?.blocks.find((block) => block.kind === "user");
  const words = first?.kind === "user" ? first.text.replace(/\s+/g, " ").slice(0, 60) : "";
  return chat?.title || words || "Untitled";
}

function iconOf(chat: Chat | undefined): string {
  if (chat?.waiting().length) return "$(bell-dot) ";
  return chat?.busy ? "$(loading~spin) " : "$(comment) ";
}

export function ago(time: number | undefined, now = Date.now()): string {
  if (!time) return "";
  const minutes = Math.round((now - time) / 60_000);
  if (minutes < 2) return "just now";
  if (minutes < 90) return `${minutes} min ago`;
  if (minutes < 36 * 60) return `${Math.round(minutes / 60)} h ago`;
  return `${Math.round(minutes / 1440)} days ago`;
}
