// The page in the chat view: takes what the extension says and draws it.
import type { Block, FromView, Head, Patch, ToView } from "../src/bridge";
import { draw, type Drawn } from "./blocks";
import { Composer, usageText } from "./composer";
import { button, h } from "./dom";
import { render, Stream } from "./markdown";

interface Kept {
  drafts?: Record<string, string>;
}

declare function acquireVsCodeApi(): { postMessage(message: FromView): void; getState(): Kept | undefined; setState(state: Kept): void };

/** So close to the end the user follows the answer. */
const FOLLOW_PX = 48;
/** Drafts of so many chats are kept. */
const MOST_DRAFTS = 20;

const host = acquireVsCodeApi();
const post = (message: FromView) => host.postMessage(message);

class Page {
  private readonly banner = h("div", { class: "banner", role: "alert", hidden: true });
  private readonly welcome = h("div", { class: "welcome markdown" });
  private readonly list = h("div", { class: "list" });
  private readonly log = h("section", { class: "log", "aria-label": "Chat", tabindex: 0 }, this.welcome, this.list);
  private readonly working = h("span", { class: "working" });
  private readonly jobs = h("button", {
    type: "button",
    class: "quiet jobs",
    title: "See what they print, or end them",
    click: () => post({ type: "run", command: "jobs" }),
  });
  private readonly usage = h("span", { class: "usage", title: "How full the model's context is, and what the chat has cost" });
  private readonly progress = h("div", { class: "progress" }, this.working, this.jobs, this.usage);
  private readonly latest = button("↓ Latest", "", () => this.follow(true), "latest");
  private readonly polite = h("div", { class: "spoken", role: "status", "aria-live": "polite" });
  private readonly urgent = h("div", { class: "spoken", role: "alert", "aria-live": "assertive" });
  private readonly composer = new Composer(post, (draft) => this.keep(draft));
  private readonly drawn = new Map<number, Drawn>();
  private readonly said: string[] = [];
  private head: Head | undefined;
  private openReasoning = false;
  private following = true;

  constructor() {
    document.body.append(this.banner, this.log, this.latest, this.progress, this.composer.element, this.polite, this.urgent);
    this.latest.hidden = true;
    this.log.addEventListener("scroll", () => this.scrolled());
    this.log.addEventListener("click", (event) => this.clicked(event));
    document.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.follow(false)).observe(this.log);
    window.addEventListener("message", (event: MessageEvent<ToView>) => this.receive(event.data));
    post({ type: "ready" });
  }

  private receive(message: ToView): void {
    switch (message.type) {
      case "state":
        return this.state(message);
      case "patches":
        for (const patch of message.patches) this.patch(patch);
        return this.follow(false);
      case "completions":
        return this.composer.offer(message.ticket, message.items);
      case "draft":
        return this.composer.restore(message.text);
      case "focus":
        return this.composer.focus();
    }
  }

  private state(message: Extract<ToView, { type: "state" }>): void {
    this.openReasoning = message.openReasoning;
    const another = this.head?.chatId !== message.head.chatId;
    this.clear();
    for (const block of message.blocks) this.add(block);
    this.showHead(message.head);
    if (another) this.composer.draft = host.getState()?.drafts?.[message.head.chatId] ?? "";
    if (message.draft) this.composer.restore(message.draft);
    this.follow(true);
  }

  private patch(patch: Patch): void {
    switch (patch.type) {
      case "head":
        return this.showHead(patch.head);
      case "add":
        return this.add(patch.block);
      case "put":
        this.announce(patch.block);
        return this.drawn.get(patch.block.id)?.put(patch.block);
      case "append":
        return this.drawn.get(patch.id)?.append(patch.text);
      case "clear":
        return this.clear();
    }
  }

  private add(block: Block): void {
    const around = { post, openReasoning: this.openReasoning, grown: () => this.follow(false) };
    const drawn = draw(block, around);
    this.drawn.set(block.id, drawn);
    this.list.append(drawn.element);
    this.welcome.hidden = true;
    if (block.kind === "user") {
      this.said.push(block.text);
      this.composer.history(this.said);
      this.following = true;
    }
    this.announce(block);
  }

  private clear(): void {
    this.drawn.clear();
    this.list.replaceChildren();
    this.said.length = 0;
    this.welcome.hidden = false;
  }

  private showHead(head: Head): void {
    const before = this.head;
    this.head = head;
    this.composer.show(head);
    const doing = head.stopping ? "Stopping" : head.progress || "Working";
    this.working.replaceChildren(h("span", { class: "spinner", "aria-hidden": "true" }), doing);
    this.working.hidden = !head.busy;
    this.usage.textContent = usageText(head);
    this.jobs.textContent = head.jobs;
    this.jobs.hidden = head.jobs === "";
    this.progress.hidden = !head.busy && head.jobs === "" && this.usage.textContent === "";
    this.log.setAttribute("aria-busy", String(head.busy));
    if (before?.chatId === head.chatId && before.busy && !head.busy) this.polite.textContent = "The answer is complete.";
    if (head.busy && before?.progress !== head.progress) this.polite.textContent = head.progress;
    if (before?.welcome !== head.welcome || !this.welcome.hasChildNodes()) this.greet(head.welcome);
    this.showBanner(head);
  }

  private greet(welcome: string): void {
    this.welcome.innerHTML = render(welcome || "Welcome.");
    const keys: [string, string][] = [
      ["Enter", "sends; Shift+Enter begins a new line"],
      ["Escape", "stops the answer"],
      ["Alt+↑ Alt+↓", "walk through what was said"],
      ["a  A  r  d", "approve, always, reject, diff, on a tool call"],
    ];
    this.welcome.append(h("dl", { class: "keys" }, ...keys.flatMap(([key, does]) => [h("dt", {}, key), h("dd", {}, does)])));
  }

  private showBanner(head: Head): void {
    const run = (command: string) => () => post({ type: "run", command });
    const parts: Node[] = [];
    if (head.server === "failed") {
      parts.push(h("p", {}, head.problem), button("Start again", "", run("restart"), "primary"), button("Show log", "", run("showLog")));
    } else if (head.elsewhere > 0) {
      const text = head.elsewhere === 1 ? "Another chat needs you." : `${head.elsewhere} other chats need you.`;
      parts.push(h("p", {}, text), button("Chats", "", run("chats")));
    }
    // The same again must not be said again.
    const key = parts.map((part) => part.textContent).join("|");
    if (this.banner.dataset.key === key) return;
    this.banner.dataset.key = key;
    this.banner.classList.toggle("error", head.server === "failed");
    this.banner.replaceChildren(...parts);
    this.banner.hidden = parts.length === 0;
  }

  private announce(block: Block): void {
    if (block.kind === "tool" && block.state === "waiting") {
      this.urgent.textContent = `${block.summary ?? block.name} waits for your approval.`;
    } else if (block.kind === "question" && block.answer === undefined) {
      this.urgent.textContent = `The model asks: ${block.question}`;
    }
  }

  private keep(draft: string): void {
    const id = this.head?.chatId;
    if (!id) return;
    const { [id]: _, ...others } = host.getState()?.drafts ?? {};
    const entries = Object.entries(others).slice(-(MOST_DRAFTS - 1));
    host.setState({ drafts: { ...Object.fromEntries(entries), ...(draft ? { [id]: draft } : {}) } });
  }

  private scrolled(): void {
    const { scrollTop, scrollHeight, clientHeight } = this.log;
    this.following = scrollHeight - scrollTop - clientHeight < FOLLOW_PX;
    this.latest.hidden = this.following;
  }

  private follow(force: boolean): void {
    if (force) this.following = true;
    if (this.following) this.log.scrollTop = this.log.scrollHeight;
  }

  private clicked(event: MouseEvent): void {
    const target = event.target instanceof Element ? event.target : undefined;
    const link = target?.closest("a");
    const copy = target?.closest<HTMLElement>("button.copy");
    if (link) {
      event.preventDefault();
      const address = link.getAttribute("href");
      if (address) post({ type: "open", target: address });
    } else if (copy) {
      post({ type: "copy", text: copy.closest(".code")?.querySelector("code")?.textContent ?? "" });
      copy.textContent = "Copied";
      setTimeout(() => (copy.textContent = "Copy"), 1500);
    }
  }

  private key(event: KeyboardEvent): void {
    const inField = event.target instanceof HTMLTextAreaElement || event.target instanceof HTMLInputElement;
    if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
      event.preventDefault();
      this.walk(event.key === "ArrowUp" ? -1 : 1);
    } else if (event.key === "Escape" && !inField) {
      event.preventDefault();
      this.composer.focus();
    } else if (event.key === "Enter" && event.target instanceof HTMLElement && event.target.matches("article")) {
      const fold = event.target.querySelector("details");
      if (fold) fold.open = !fold.open;
    }
  }

  /** To the block before or behind the one that has the keyboard; behind the last one is the prompt. */
  private walk(step: number): void {
    const all = [...this.list.children] as HTMLElement[];
    const now = all.findIndex((element) => element.contains(document.activeElement));
    const next = now < 0 ? (step < 0 ? all.length - 1 : all.length) : now + step;
    const element = all[Math.max(next, 0)];
    if (next >= all.length || !element) return this.composer.focus();
    element.focus();
    element.scrollIntoView({ block: "nearest" });
  }
}

// For tests: how much was drawn so far.
Object.assign(window, { ecaRendered: () => Stream.rendered });

new Page();
