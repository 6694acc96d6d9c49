// All chats of a window, and what the server offers to them. Nothing here knows the editor.
import { randomUUID } from "node:crypto";
import type { Completion, Head, QueryKind, ServerState } from "./bridge";
import { Chat, type Selection, type Watcher, type Wire } from "./chat";
import { countText } from "./jobs";
import type {
  Answer,
  AskQuestion,
  ChatOpenResult,
  Command,
  ConfigUpdated,
  ContentReceived,
  Context,
  QueryResult,
  ToolServer,
} from "./protocol";

/** What only the editor knows about the places that contexts name. */
export interface Places {
  /** A short name of a path. */
  short(path: string): string;
  /** Where the user's cursor is, if it is in a file. */
  cursor(): Context | undefined;
  /** The context as the user sees it: text that is not saved takes the place of the file. */
  current(context: Context): Context;
}

export interface Shower extends Watcher {
  /** Another chat is the current one now. */
  switched(chat: Chat): void;
}

/** Subagents may have subagents, but not without end. */
const DEEPEST = 16;

const METHODS: Record<QueryKind, string> = {
  command: "chat/queryCommands",
  context: "chat/queryContext",
  file: "chat/queryFiles",
};

const KINDS: Record<string, string> = {
  file: "file",
  directory: "folder",
  repoMap: "overview of the workspace",
  cursor: "where your cursor is",
  mcpResource: "resource",
};

export class Chats {
  models: string[] = [];
  agents: string[] = [];
  welcome = "";
  serverState: ServerState = "stopped";
  problem = "";
  runningJobs = 0;
  readonly toolServers = new Map<string, ToolServer>();
  private readonly all = new Map<string, Chat>();
  private readonly parents = new Map<string, string>();
  private readonly selected: Selection = {};
  private shown: Chat | undefined;

  constructor(
    private readonly wire: Wire,
    private readonly shower: Shower,
    private readonly places: Places,
  ) {}

  get current(): Chat {
    this.shown ??= this.make(randomUUID());
    return this.shown;
  }

  get(id: string): Chat | undefined {
    return this.all.get(id);
  }

  list(): Chat[] {
    return [...this.all.values()];
  }

  begin(): Chat {
    // A chat in which nothing happened yet is as good as a new one.
    const unused = this.shown && this.shown.blocks.length === 0 && !this.shown.known ? this.shown : undefined;
    const chat = unused ?? this.make(randomUUID());
    this.show(chat);
    return chat;
  }

  show(chat: Chat): void {
    this.shown = chat;
    this.shower.switched(chat);
  }

  /** Shows a chat that the server keeps; false if it does not know it. */
  async open(id: string): Promise<boolean> {
    const already = this.all.get(id);
    if (already && already.blocks.length > 0) {
      this.show(already);
      return true;
    }
    const chat = already ?? this.make(id);
    const result = await this.wire.request<ChatOpenResult>("chat/open", { chatId: id });
    if (!result.found) {
      this.all.delete(id);
      return false;
    }
    chat.known = true;
    chat.title = result.title || chat.title;
    const { model, ...selection } = result.selection ?? {};
    Object.assign(chat.selected, selection, model ? { model } : {});
    this.show(chat);
    return true;
  }

  /** Sends what the user wrote in the current chat, with all that it mentions; `now` ends the running turn for it. */
  send(text: string, now = false): void {
    const chat = this.current;
    const message = text.trim();
    if (message === "") return;
    const contexts = [...chat.contexts];
    for (const [word, context] of chat.mentions) {
      const named = context.type === "cursor" ? this.places.cursor() : context;
      if (named && mentions(message, word)) contexts.push(named);
    }
    chat.contexts = [];
    chat.send(message, contexts.map((context) => this.places.current(context)), now);
  }

  addContext(context: Context): void {
    const chat = this.current;
    const key = JSON.stringify(context);
    if (!chat.contexts.some((other) => JSON.stringify(other) === key)) chat.contexts.push(context);
    this.shower.changed(chat);
  }

  removeContext(index: number): void {
    this.current.contexts.splice(index, 1);
    this.shower.changed(this.current);
  }

  selection(chat: Chat): Selection {
    const variant = [chat.chosen, chat.selected, this.selected].find((from) => from.variant !== undefined)?.variant;
    return {
      model: chat.chosen.model ?? chat.selected.model ?? this.selected.model,
      agent: chat.chosen.agent ?? chat.selected.agent ?? this.selected.agent,
      variant,
      variants: chat.selected.variants ?? this.selected.variants ?? [],
      trust: chat.chosen.trust ?? chat.selected.trust ?? this.selected.trust ?? false,
    };
  }

  chooseModel(chat: Chat, model: string): void {
    chat.chosen.model = model;
    chat.chosen.variant = undefined;
    this.wire.notify("chat/selectedModelChanged", { model, ...scope(chat) });
    this.shower.changed(chat);
  }

  chooseAgent(chat: Chat, agent: string): void {
    chat.chosen.agent = agent;
    this.wire.notify("chat/selectedAgentChanged", { agent, ...scope(chat) });
    this.shower.changed(chat);
  }

  chooseVariant(chat: Chat, variant: string | null): void {
    chat.chosen.variant = variant;
    this.wire.notify("chat/selectedModelChanged", { model: this.selection(chat).model, variant, ...scope(chat) });
    this.shower.changed(chat);
  }

  /** Whether the chat's tools run without asking. */
  async setTrust(chat: Chat, trust: boolean): Promise<void> {
    chat.chosen.trust = trust;
    this.shower.changed(chat);
    if (chat.known) await this.wire.request("chat/update", { chatId: chat.id, trust });
  }

  /** What fits a word that the user begins; the server does the matching. */
  async complete(kind: QueryKind, query: string): Promise<Completion[]> {
    const chat = this.current;
    const params = { ...scope(chat), query, ...(kind === "context" ? { contexts: chat.contexts } : {}) };
    const result = await this.wire.request<QueryResult>(METHODS[kind], params);
    const items: Completion[] = (result.commands ?? []).map((command) => ({
      word: `/${command.name}`,
      label: `/${command.name} ${argumentsOf(command)}`.trim(),
      detail: command.description ?? command.type ?? "",
    }));
    for (const context of result.contexts ?? []) {
      const word = `@${this.label(context)}`;
      chat.mentions.set(word, context);
      items.push({ word, label: word, detail: KINDS[context.type] ?? context.type });
    }
    for (const file of result.files ?? []) {
      items.push({ word: this.label(file), label: `#${this.label(file)}`, detail: KINDS[file.type] ?? file.type });
    }
    return items;
  }

  /** A short name of a context; also the word that stands for it after `@`. */
  label(context: Context): string {
    switch (context.type) {
      case "file": {
        const range = context.linesRange;
        return this.places.short(context.path) + (range ? `:${range.start}-${range.end}` : "");
      }
      case "directory":
        return this.places.short(context.path).replace(/\/?$/, "/");
      case "text":
        return context.label;
      case "mcpResource":
        return `${context.server ?? "mcp"}:${context.name ?? context.uri}`;
      case "web":
        return context.url;
      case "cursor": {
        const at = context.position?.start;
        return context.path && at ? `${this.places.short(context.path)}:${at.line}:${at.character}` : "cursor";
      }
      default:
        return context.type;
    }
  }

  head(): Head {
    const chat = this.current;
    const selection = this.selection(chat);
    return {
      chatId: chat.id,
      title: chat.title,
      busy: chat.busy,
      stopping: chat.status === "stopping",
      progress: chat.progress,
      usage: chat.usage,
      model: selection.model ?? "",
      agent: selection.agent ?? "",
      variant: selection.variant ?? "",
      variants: selection.variants ?? [],
      trust: selection.trust ?? false,
      contexts: chat.contexts.map((context) => this.label(context)),
      queued: chat.unseen(),
      elsewhere: this.list().filter((other) => other !== chat && other.waiting().length > 0).length,
      jobs: countText(this.runningJobs),
      server: this.serverState,
      problem: this.problem,
      welcome: this.welcome,
    };
  }

  serverDied(text: string): void {
    for (const chat of this.all.values()) chat.serverDied(text);
  }

  configUpdated(params: ConfigUpdated): void {
    const said = params.chat ?? {};
    this.models = said.models ?? this.models;
    this.agents = said.agents ?? said.behaviors ?? this.agents;
    this.welcome = said.welcomeMessage ?? this.welcome;
    const chat = params.chatId ? this.all.get(params.chatId) : undefined;
    if (params.chatId && !chat) return;
    const into = chat ? chat.selected : this.selected;
    into.model = said.selectModel ?? into.model;
    into.agent = said.selectAgent ?? said.selectBehavior ?? into.agent;
    into.variants = said.variants ?? into.variants;
    if (said.selectVariant !== undefined) into.variant = said.selectVariant;
    if (said.selectTrust !== undefined) into.trust = said.selectTrust;
    this.shower.changed(this.current);
  }

  contentReceived(params: ContentReceived): void {
    if (params.parentChatId) this.parents.set(params.chatId, params.parentChatId);
    this.home(params.chatId).receive(params);
  }

  statusChanged(params: { chatId: string; status: Chat["status"] }): void {
    const chat = this.all.get(params.chatId);
    // `idle` is left to the content that ends the turn, so that nothing is ended twice.
    if (!chat || params.status === "idle") return;
    chat.status = params.status;
    this.shower.changed(chat);
  }

  /** A chat that nobody here began is one that the server made, such as a fork: show it. */
  opened(params: { chatId: string; title?: string }): void {
    const before = this.all.get(params.chatId);
    const chat = before ?? this.make(params.chatId);
    chat.title = params.title || chat.title;
    chat.known = true;
    if (before) this.shower.changed(chat);
    else this.show(chat);
  }

  cleared(params: { chatId: string; messages?: boolean }): void {
    if (params.messages !== false) this.all.get(params.chatId)?.clear();
  }

  deleted(params: { chatId: string }): void {
    const chat = this.all.get(params.chatId);
    if (!chat) return;
    this.all.delete(params.chatId);
    chat.clear();
    if (this.shown === chat) {
      this.shown = undefined;
      this.show(this.current);
    }
  }

  ask(params: AskQuestion, cancelled: Promise<unknown>): Promise<Answer> {
    return this.home(params.chatId).ask(params, cancelled);
  }

  /** The chat that shows what is said in the chat `id`: itself, or the one that a subagent works for. */
  private home(id: string): Chat {
    for (let depth = 0; depth < DEEPEST; depth += 1) {
      const parent = this.parents.get(id);
      if (parent === undefined) break;
      id = parent;
    }
    return this.all.get(id) ?? this.make(id);
  }

  private make(id: string): Chat {
    const chat = new Chat(id, this.wire, this.shower);
    this.all.set(id, chat);
    return chat;
  }
}

/** An id that the server has not heard of would only puzzle it. */
function scope(chat: Chat): { chatId?: string } {
  return chat.known ? { chatId: chat.id } : {};
}

function argumentsOf(command: Command): string {
  return (command.arguments ?? []).map((one) => (one.required ? one.name : `[${one.name}]`)).join(" ");
}

/** Whether `word` stands in `text` by itself, not as the beginning of a longer one. */
export function mentions(text: string, word: string): boolean {
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
    const after = text.slice(at + word.length, at + word.length + 1);
    const before = at === 0 ? "" : text[at - 1]!;
    if (/^[\s,;:!?).]?$/.test(after) && /^[\s(]?$/.test(before)) return true;
  }
  return false;
}
