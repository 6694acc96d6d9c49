// Where the user writes: the prompt with its completion, what goes along, and who answers.
import type { Completion, FromView, Head, QueryKind } from "../src/bridge";
import { button, h } from "./dom";

interface Token {
  kind: QueryKind;
  query: string;
  start: number;
}

/** What is being completed before the cursor. An `@` inside a word is an address, not a context. */
export function tokenAt(text: string, cursor: number): Token | undefined {
  const before = text.slice(0, cursor);
  const command = /^\/(\S*)$/.exec(before);
  if (command) return { kind: "command", query: command[1]!, start: 0 };
  const found = /(^|[\s(])([@#])(\S*)$/.exec(before);
  if (!found) return undefined;
  const query = found[3]!;
  return { kind: found[2] === "@" ? "context" : "file", query, start: cursor - query.length - 1 };
}

export class Composer {
  readonly element: HTMLElement;
  readonly field = h("textarea", {
    rows: 2,
    "aria-label": "Message",
    placeholder: "Ask, or say what to do. @\u00a0context, #\u00a0file, /\u00a0command",
    role: "combobox",
    "aria-autocomplete": "list",
    "aria-expanded": "false",
    "aria-controls": "completions",
  });
  private readonly popup = h("ul", { id: "completions", role: "listbox", "aria-label": "Completions", hidden: true });
  private readonly chips = h("ul", { class: "chips", "aria-label": "Goes along" });
  private readonly queued = h("div", { class: "queued" });
  private readonly agent = h("button", { type: "button", class: "pick", click: () => this.run("pickAgent") });
  private readonly model = h("button", { type: "button", class: "pick model", click: () => this.run("pickModel") });
  private readonly variant = h("button", { type: "button", class: "pick", click: () => this.run("pickVariant") });
  private readonly trust = h("button", { type: "button", class: "pick trust", click: () => this.run("toggleTrust") });
  private readonly sendButton = sign("Send", "↑", "Enter", () => this.send(), "primary");
  private readonly stopButton = sign("Stop", "■", "Escape", () => this.post({ type: "stop" }), "stop");
  private items: Completion[] = [];
  private chosen = 0;
  private token: Token | undefined;
  private ticket = 0;
  private sent: string[] = [];
  private recalled = -1;
  private busy = false;

  constructor(
    private readonly post: (message: FromView) => void,
    private readonly changed: (draft: string) => void,
  ) {
    this.element = h(
      "form",
      { class: "composer", submit: (event: Event) => event.preventDefault() },
      this.popup,
      this.queued,
      this.chips,
      this.field,
      h("div", { class: "bar" }, this.agent, this.model, this.variant, this.trust, this.stopButton, this.sendButton),
    );
    this.field.addEventListener("input", () => this.edited());
    this.field.addEventListener("keydown", (event) => this.key(event));
    this.field.addEventListener("blur", () => this.closePopup());
    this.popup.addEventListener("mousedown", (event) => event.preventDefault());
  }

  focus(): void {
    this.field.focus();
  }

  set draft(text: string) {
    this.field.value = text;
    this.resize();
  }

  get draft(): string {
    return this.field.value;
  }

  /** Text that was not delivered, before what is being written. */
  restore(text: string): void {
    this.draft = [text, this.draft].filter((part) => part.trim()).join("\n");
    this.changed(this.draft);
    this.focus();
  }

  /** What was sent before, for the arrow keys. */
  history(messages: string[]): void {
    this.sent = messages;
    this.recalled = -1;
  }

  show(head: Head): void {
    this.busy = head.busy;
    this.stopButton.hidden = !head.busy;
    this.stopButton.disabled = head.stopping;
    this.sendButton.title = head.busy ? "Send for the model's next step (Enter), or in place of this answer (Ctrl+Enter)" : "Send (Enter)";
    this.label(this.agent, head.agent, "Agent");
    this.label(this.model, head.model.split("/").slice(1).join("/") || head.model || "no model", `Model ${head.model}`);
    this.label(this.variant, head.variant || "default", "Variant");
    this.variant.hidden = head.variants.length === 0;
    this.label(this.trust, head.trust ? "runs freely" : "asks first", "Approval");
    this.trust.setAttribute("aria-pressed", String(head.trust));
    this.trust.title = head.trust ? "Tools run without asking in this chat" : "Tools ask before they change something";
    this.chips.replaceChildren(
      ...head.contexts.map((label, index) =>
        h(
          "li",
          { class: "chip" },
          h("span", { title: label }, label),
          h("button", { type: "button", class: "quiet", "aria-label": `Remove ${label}`, click: () => this.post({ type: "removeContext", index }) }, "✕"),
        ),
      ),
    );
    this.chips.hidden = head.contexts.length === 0;
    const waiting = head.queued.map((message) => h("p", {}, message));
    const back = button("Take back", "", () => this.post({ type: "takeBack" }), "quiet");
    this.queued.replaceChildren(...(waiting.length ? [h("span", { class: "dim" }, "Not seen by the model yet:"), ...waiting, back] : []));
    this.queued.hidden = waiting.length === 0;
  }

  /** Answers to a query; late ones are for a text that is not there any more. */
  offer(ticket: number, items: Completion[]): void {
    if (ticket !== this.ticket || !this.token) return;
    const written = this.field.value.slice(this.token.start, this.field.selectionStart);
    // A word that is complete needs no list.
    if (items.length === 0 || (items.length === 1 && items[0]!.word === written)) return this.closePopup();
    this.items = items;
    this.chosen = 0;
    this.drawPopup();
  }

  private label(element: HTMLButtonElement, text: string, name: string): void {
    element.textContent = text;
    element.title = `${name}: ${text}. Click to change it.`;
    element.setAttribute("aria-label", `${name}: ${text}`);
    if (name === "Agent") element.hidden = text === "";
  }

  private run(command: string): void {
    this.post({ type: "run", command });
  }

  private send(now = false): void {
    const text = this.field.value;
    if (!text.trim()) return;
    this.post({ type: "send", text, now });
    this.draft = "";
    this.recalled = -1;
    this.changed("");
    this.closePopup();
  }

  private edited(): void {
    this.resize();
    this.recalled = -1;
    this.changed(this.field.value);
    this.query();
  }

  private query(): void {
    this.token = tokenAt(this.field.value, this.field.selectionStart);
    if (!this.token) return this.closePopup();
    this.ticket += 1;
    this.post({ type: "complete", ticket: this.ticket, kind: this.token.kind, query: this.token.query });
  }

  private key(event: KeyboardEvent): void {
    if (event.isComposing) return;
    if (!this.popup.hidden && this.popupKey(event)) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.send(event.ctrlKey || event.metaKey);
    } else if (event.key === "Escape" && this.busy) {
      event.preventDefault();
      this.post({ type: "stop" });
    } else if ((event.key === "ArrowUp" || event.key === "ArrowDown") && !event.altKey && !event.shiftKey) {
      this.recall(event);
    }
  }

  private popupKey(event: KeyboardEvent): boolean {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      this.chosen = (this.chosen + step + this.items.length) % this.items.length;
      this.drawPopup();
    } else if (event.key === "Enter" || event.key === "Tab") {
      this.accept(this.items[this.chosen]!);
    } else if (event.key === "Escape") {
      this.closePopup();
    } else {
      return false;
    }
    event.preventDefault();
    event.stopPropagation();
    return true;
  }

  private accept(item: Completion): void {
    const { token } = this;
    if (!token) return;
    const before = this.field.value.slice(0, token.start);
    const after = this.field.value.slice(this.field.selectionStart);
    // Behind a folder the user may go on with what is in it.
    const space = item.word.endsWith("/") || after.startsWith(" ") ? "" : " ";
    this.field.value = before + item.word + space + after;
    const cursor = before.length + item.word.length + space.length;
    this.field.setSelectionRange(cursor, cursor);
    this.closePopup();
    this.resize();
    this.changed(this.field.value);
  }

  /** Earlier messages, when the cursor cannot go further in that direction. */
  private recall(event: KeyboardEvent): void {
    const { field } = this;
    const up = event.key === "ArrowUp";
    const edge = up ? field.selectionEnd === 0 : field.selectionStart === field.value.length;
    if (!edge || (this.recalled < 0 && (!up || field.value !== ""))) return;
    const next = this.recalled + (up ? 1 : -1);
    if (next >= this.sent.length) return;
    event.preventDefault();
    this.recalled = next;
    this.draft = next < 0 ? "" : this.sent[this.sent.length - 1 - next]!;
    const place = up ? 0 : field.value.length;
    field.setSelectionRange(place, place);
  }

  private drawPopup(): void {
    this.popup.replaceChildren(
      ...this.items.map((item, index) =>
        h(
          "li",
          { id: `completion-${index}`, role: "option", "aria-selected": String(index === this.chosen), click: () => this.accept(item) },
          h("span", { class: "label" }, item.label),
          h("span", { class: "dim" }, item.detail),
        ),
      ),
    );
    this.popup.hidden = false;
    this.field.setAttribute("aria-expanded", "true");
    this.field.setAttribute("aria-activedescendant", `completion-${this.chosen}`);
    this.popup.children[this.chosen]?.scrollIntoView({ block: "nearest" });
  }

  private closePopup(): void {
    this.ticket += 1;
    this.popup.hidden = true;
    this.field.setAttribute("aria-expanded", "false");
    this.field.removeAttribute("aria-activedescendant");
  }

  private resize(): void {
    this.field.style.height = "auto";
    this.field.style.height = `${Math.min(this.field.scrollHeight + 2, window.innerHeight * 0.4)}px`;
  }
}

/** A button that shows a sign and is called by its name. */
function sign(name: string, glyph: string, key: string, click: () => void, style: string): HTMLButtonElement {
  const made = button(name, key, click, `sign ${style}`);
  made.setAttribute("aria-label", name);
  made.replaceChildren(h("span", { "aria-hidden": "true" }, glyph));
  return made;
}

export function usageText(head: Head): string {
  const short = (count: number) => (count < 1000 ? String(count) : `${Math.round(count / 1000)}k`);
  const { usage } = head;
  if (!usage?.sessionTokens) return "";
  const limit = usage.limit?.context;
  const cost = usage.sessionCost ? ` · $${usage.sessionCost}` : "";
  return `${short(usage.sessionTokens)}${limit ? `/${short(limit)}` : ""}${cost}`;
}
