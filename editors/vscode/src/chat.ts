// One chat: what was said in it, what it is doing, and what waits for the user. Nothing here knows the editor.
import type { CancellationToken } from "vscode-languageclient/node";
import type { Block, Patch, QuestionBlock, TextBlock, ToolBlock } from "./bridge";
import type { Answer, AskQuestion, Content, ContentReceived, Context, ToolCall, Usage } from "./protocol";

/** The way to the server. A request that fails throws an error whose message is a sentence. */
export interface Wire {
  /** With a token, the server is told when nobody wants the answer any more. */
  request<T>(method: string, params: object, token?: CancellationToken): Promise<T>;
  notify(method: string, params: object): void;
}

/** Who draws the chat, and whom it may need. */
export interface Watcher {
  patched(chat: Chat, patch: Patch): void;
  changed(chat: Chat): void;
  attention(chat: Chat, block: ToolBlock | QuestionBlock): void;
  fileChanged(path: string): void;
  /** Text that was not delivered goes back into the prompt. */
  restore(chat: Chat, text: string): void;
}

export interface Selection {
  model?: string;
  agent?: string;
  variant?: string | null;
  variants?: string[];
  trust?: boolean;
}

interface Waiting {
  message: string;
  contexts: Context[];
}

/** Content of a subagent that its parent's chat shows; what it says comes back as the call's output. */
const FROM_SUBAGENT = new Set(["toolCallPrepare", "toolCallRun", "toolCallRunning", "toolCalled", "toolCallRejected"]);

export class Chat {
  title = "";
  status: "idle" | "running" | "stopping" | "login" = "idle";
  progress = "";
  usage: Usage | undefined;
  /** Whether the server has heard of it. */
  known = false;
  /** What the user chose here; sent with every prompt. */
  chosen: Selection = {};
  /** What the server says is in use here. */
  selected: Selection = {};
  contexts: Context[] = [];
  /** What the words after `@` stand for, as completion offered them. */
  mentions = new Map<string, Context>();
  blocks: Block[] = [];
  /** Handed to the running turn, but not seen by the model yet. */
  private steering: string[] = [];
  private queue: Waiting[] = [];
  private calls = new Map<string, ToolBlock>();
  private owners = new Map<number, { chatId: string; callId: string }>();
  private reasons = new Map<string, TextBlock>();
  private questions = new Map<number, (answer: Answer) => void>();
  /** A prompt that the server has not echoed yet; it would be lost with it. */
  private unechoed = "";
  /** A prompt is on its way, and the turn before it has not ended. */
  private interrupting = false;
  private lastBlock = 0;

  constructor(
    readonly id: string,
    private readonly wire: Wire,
    private readonly watcher: Watcher,
  ) {}

  get busy(): boolean {
    return this.status === "running" || this.status === "stopping";
  }

  /** The calls and questions that wait for the user, oldest first. */
  waiting(): (ToolBlock | QuestionBlock)[] {
    return this.blocks.filter(
      (block): block is ToolBlock | QuestionBlock =>
        (block.kind === "tool" && block.state === "waiting") || (block.kind === "question" && block.answer === undefined),
    );
  }

  waitingCall(id?: number): ToolBlock | undefined {
    const calls = this.waiting().filter((block): block is ToolBlock => block.kind === "tool");
    return id === undefined ? calls[0] : calls.find((block) => block.id === id);
  }

  /** What the user sent and the model has not seen. */
  unseen(): string[] {
    return [...this.steering, ...this.queue.map((waiting) => waiting.message)];
  }

  /** Sends a message. In a running turn it is handed to the model at the next occasion; if there is none, it becomes
   * the next prompt. What cannot be handed over waits for the end of the turn, unless it is to be sent `now`: then the
   * server ends the turn for it, and what waited goes back into the prompt. */
  send(message: string, contexts: Context[], now = false): void {
    if (!this.busy || now) {
      this.interrupting = this.busy;
      if (this.busy) this.takeBack();
      this.prompt(message, contexts);
    } else if (this.status === "running" && contexts.length === 0 && !message.startsWith("/")) {
      this.steering.push(message);
      this.wire.notify("chat/promptSteer", { chatId: this.id, message });
    } else {
      this.queue.push({ message, contexts });
    }
    this.watcher.changed(this);
  }

  stop(): boolean {
    if (!this.busy) return false;
    this.takeBack();
    this.wire.notify("chat/promptStop", { chatId: this.id });
    return true;
  }

  /** What the model has not seen goes back into the prompt. */
  takeBack(): void {
    if (this.steering.length > 0) this.wire.notify("chat/promptSteerRemove", { chatId: this.id });
    const messages = this.unseen();
    for (const waiting of this.queue) this.contexts.push(...waiting.contexts);
    this.steering = [];
    this.queue = [];
    if (messages.length > 0) this.watcher.restore(this, messages.join("\n"));
    this.watcher.changed(this);
  }

  approve(block: ToolBlock, always: boolean): void {
    const owner = this.owners.get(block.id);
    if (!owner || block.state !== "waiting") return;
    block.state = "running";
    this.put(block);
    this.wire.notify("chat/toolCallApprove", {
      chatId: owner.chatId,
      toolCallId: owner.callId,
      ...(always ? { save: "session" } : {}),
    });
    this.watcher.changed(this);
  }

  reject(block: ToolBlock): void {
    const owner = this.owners.get(block.id);
    if (!owner || block.state !== "waiting") return;
    block.state = "rejected";
    block.reason = "user-choice";
    this.put(block);
    this.wire.notify("chat/toolCallReject", { chatId: owner.chatId, toolCallId: owner.callId });
    this.watcher.changed(this);
  }

  /** Puts a question of the model to the user. `cancelled` settles when the server does not want to know any more. */
  ask(params: AskQuestion, cancelled: Promise<unknown>): Promise<Answer> {
    const block: QuestionBlock = {
      kind: "question",
      id: this.nextId(),
      question: params.question,
      options: params.options ?? [],
      freeform: params.allowFreeform !== false || !params.options?.length,
    };
    return new Promise((resolve) => {
      this.questions.set(block.id, resolve);
      void cancelled.then(() => this.answer(block.id, null));
      this.add(block);
      this.watcher.attention(this, block);
      this.watcher.changed(this);
    });
  }

  answer(id: number, answer: string | null): void {
    const settle = this.questions.get(id);
    const block = this.blocks.find((one): one is QuestionBlock => one.id === id && one.kind === "question");
    if (!settle) return;
    this.questions.delete(id);
    if (block) {
      block.answer = answer;
      this.put(block);
    }
    settle({ answer, cancelled: answer === null });
    this.watcher.changed(this);
  }

  /** A remark of the editor's own. */
  note(text: string): void {
    this.add({ kind: "note", id: this.nextId(), text });
  }

  /** The server died: what was open will never be closed by it. */
  serverDied(text: string): void {
    const wasBusy = this.busy;
    for (const block of this.blocks) {
      if (block.kind === "tool" && ["preparing", "waiting", "running"].includes(block.state)) {
        block.state = "rejected";
        block.reason = "lost";
        this.put(block);
      } else if (block.kind === "question" && block.answer === undefined) {
        this.answer(block.id, null);
      }
    }
    const unseen = [this.unechoed, ...this.unseen()].filter(Boolean).join("\n");
    this.unechoed = "";
    for (const waiting of this.queue) this.contexts.push(...waiting.contexts);
    this.steering = [];
    this.queue = [];
    if (unseen) this.watcher.restore(this, unseen);
    this.ended();
    if (wasBusy) this.note(text);
    this.watcher.changed(this);
  }

  clear(): void {
    for (const id of [...this.questions.keys()]) this.answer(id, null);
    this.blocks = [];
    this.calls.clear();
    this.owners.clear();
    this.reasons.clear();
    this.watcher.patched(this, { type: "clear" });
  }

  receive(params: ContentReceived): void {
    const nested = params.chatId !== this.id;
    if (nested && !FROM_SUBAGENT.has(params.content.type)) return;
    this.known = true;
    this.take(params.content, params.role, params.chatId);
  }

  private take(content: Content, role: ContentReceived["role"], chatId: string): void {
    switch (content.type) {
      case "text":
        return role === "user" ? this.echoed(content.text, content.contentId) : this.said(role, content.text);
      case "url":
        return this.said("assistant", `\n[${content.title || content.url}](${content.url})\n`);
      case "progress":
        return this.progressed(content.state, content.text ?? "");
      case "usage":
        this.usage = content;
        return this.watcher.changed(this);
      case "metadata":
        this.title = content.title ?? this.title;
        return this.watcher.changed(this);
      case "reasonStarted":
      case "reasonText":
      case "reasonFinished":
        return this.reasoned(content);
      case "image":
        this.closeLast();
        return this.add({ kind: "image", id: this.nextId(), mediaType: content.mediaType, base64: content.base64 });
      case "flag":
        return this.note(`⚑ ${content.text}`);
      case "hookActionFinished":
        return this.hooked(content);
      case "toolCallPrepare":
      case "toolCallRun":
      case "toolCallRunning":
      case "toolCalled":
      case "toolCallRejected":
        return this.called(content, chatId);
    }
  }

  private echoed(text: string, contentId?: string): void {
    this.closeLast();
    this.unechoed = "";
    const seen = this.steering.findIndex((message) => text.includes(message.trim()));
    if (seen >= 0) this.steering = this.steering.filter((message) => !text.includes(message.trim()));
    this.add({ kind: "user", id: this.nextId(), text: text.trim(), contentId });
    if (seen >= 0) this.watcher.changed(this);
  }

  private said(role: "assistant" | "system", text: string): void {
    const kind = role === "system" ? "system" : "text";
    const last = this.blocks.at(-1);
    if (last?.kind === kind && last.open) return this.append(last, text);
    const start = text.replace(/^\s*\n/, "");
    if (start === "") return;
    this.closeLast();
    this.add({ kind, id: this.nextId(), text: start, open: true });
  }

  private progressed(state: "running" | "finished", text: string): void {
    if (state === "finished" && this.interrupting) {
      this.interrupting = false;
      this.closeOpen();
    } else if (state === "finished") {
      this.ended();
    } else {
      this.progress = text;
      if (this.status === "idle") this.status = "running";
    }
    this.watcher.changed(this);
  }

  private reasoned(content: Extract<Content, { type: "reasonStarted" | "reasonText" | "reasonFinished" }>): void {
    let block = this.reasons.get(content.id);
    if (!block) {
      this.closeLast();
      block = { kind: "reason", id: this.nextId(), text: "", open: true };
      this.reasons.set(content.id, block);
      this.add(block);
    }
    if (content.type === "reasonText") this.append(block, content.text);
    if (content.type === "reasonFinished") {
      block.open = false;
      block.ms = content.totalTimeMs;
      this.put(block);
    }
  }

  private hooked(content: Extract<Content, { type: "hookActionFinished" }>): void {
    const output = content.output?.trim();
    if (content.error || (content.status ?? 0) !== 0) {
      this.note(`The hook ${content.name} failed: ${content.error || `status ${content.status}`}`);
    } else if (output) {
      this.note(`${content.name}: ${output}`);
    }
  }

  private called(
    content: Extract<Content, { type: "toolCallPrepare" | "toolCallRun" | "toolCallRunning" | "toolCalled" | "toolCallRejected" }>,
    chatId: string,
  ): void {
    const { block, fresh } = this.call(content, chatId);
    if (content.type === "toolCallPrepare") {
      const more = content.argumentsText ?? "";
      block.arguments += more;
      if (fresh) this.add(block);
      else if (more) this.watcher.patched(this, { type: "append", id: block.id, text: more });
      return;
    }
    if (content.arguments !== undefined) block.arguments = JSON.stringify(content.arguments, null, 2);
    if (content.type === "toolCallRun" && content.manualApproval) block.state = "waiting";
    if (content.type === "toolCallRunning") block.state = "running";
    if (content.type === "toolCalled") {
      block.state = content.error ? "failed" : "done";
      block.ms = content.totalTimeMs;
      block.output = (content.outputs ?? []).map((output) => output.text ?? "").join("\n");
    }
    if (content.type === "toolCallRejected") {
      block.state = "rejected";
      block.reason ??= content.reason;
    }
    if (fresh) this.add(block);
    else this.put(block);
    if (block.state === "waiting") this.watcher.attention(this, block);
    if (content.type === "toolCalled" && block.details?.type === "fileChange") this.watcher.fileChanged(block.details.path);
    this.watcher.changed(this);
  }

  /** The block of a call, made when it is first heard of. */
  private call(content: ToolCall, chatId: string): { block: ToolBlock; fresh: boolean } {
    const key = `${chatId}\0${content.id}`;
    let block = this.calls.get(key);
    const fresh = !block;
    if (!block) {
      this.closeLast();
      block = {
        kind: "tool",
        id: this.nextId(),
        state: "preparing",
        name: content.name,
        server: content.server ?? "",
        arguments: "",
        output: "",
        nested: chatId !== this.id,
      };
      this.calls.set(key, block);
      this.owners.set(block.id, { chatId, callId: content.id });
    }
    block.name = content.name || block.name;
    block.server = content.server ?? block.server;
    block.summary = content.summary ?? block.summary;
    block.details = content.details ?? block.details;
    return { block, fresh };
  }

  /** The turn is over. */
  private ended(): void {
    this.status = "idle";
    this.progress = "";
    this.interrupting = false;
    this.closeOpen();
    if (this.steering.length > 0) {
      const message = this.steering.join("\n");
      this.steering = [];
      this.prompt(message, []);
    } else {
      const following = this.queue.shift();
      if (following) this.prompt(following.message, following.contexts);
    }
  }

  private closeOpen(): void {
    this.closeLast();
    for (const block of this.reasons.values()) {
      if (block.open) {
        block.open = false;
        this.put(block);
      }
    }
    this.reasons.clear();
  }

  private prompt(message: string, contexts: Context[]): void {
    this.status = "running";
    this.progress = "Sending";
    this.known = true;
    this.unechoed = message;
    const { model, agent, variant, trust } = this.chosen;
    const params = { chatId: this.id, message, model, agent, variant, trust, contexts };
    this.wire.request<{ status?: string; resultMessage?: string }>("chat/prompt", params).then(
      (result) => {
        if (result?.status !== "error" && result?.status !== "idle") return;
        if (this.busy) this.ended();
        if (result.status === "error" && result.resultMessage && this.blocks.at(-1)?.kind !== "system") {
          this.note(result.resultMessage);
        }
        this.watcher.changed(this);
      },
      (error: Error) => {
        // After a crash all that is to be said and restored has been.
        if (!this.busy) return;
        const lost = this.unechoed;
        this.unechoed = "";
        this.ended();
        this.note(`This could not be sent: ${error.message}`);
        if (lost) this.watcher.restore(this, lost);
        this.watcher.changed(this);
      },
    );
  }

  private closeLast(): void {
    const last = this.blocks.at(-1);
    if ((last?.kind === "text" || last?.kind === "system") && last.open) {
      last.open = false;
      this.put(last);
    }
  }

  private append(block: TextBlock, text: string): void {
    block.text += text;
    this.watcher.patched(this, { type: "append", id: block.id, text });
  }

  private add(block: Block): void {
    this.blocks.push(block);
    this.watcher.patched(this, { type: "add", block });
  }

  private put(block: Block): void {
    this.watcher.patched(this, { type: "put", block });
  }

  private nextId(): number {
    this.lastBlock += 1;
    return this.lastBlock;
  }
}
