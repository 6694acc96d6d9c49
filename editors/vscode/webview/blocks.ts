// What was said and done, block by block. A block is drawn once and then changed in place.
import type { Block, FromView, QuestionBlock, TextBlock, ToolBlock, ToolState } from "../src/bridge";
import type { FileChange } from "../src/protocol";
import { button, h, spoken } from "./dom";
import { render, Stream } from "./markdown";

type Post = (message: FromView) => void;

/** A diff or an output that is longer is cut here; the diff editor has all of it. */
const MOST_LINES = 400;

const STATES: Record<ToolState, { glyph: string; said: string }> = {
  preparing: { glyph: "…", said: "being prepared" },
  waiting: { glyph: "?", said: "waits for your approval" },
  running: { glyph: "▸", said: "running" },
  done: { glyph: "✓", said: "done" },
  failed: { glyph: "!", said: "failed" },
  rejected: { glyph: "✕", said: "not run" },
};

/** Why a call was not run: in a word, and said in full. */
const REASONS: Record<string, [string, string]> = {
  "user-choice": ["rejected", "rejected by you"],
  "user-config": ["forbidden", "forbidden by the configuration"],
  "user-prompt-stop": ["stopped", "stopped by you"],
  "hook-rejected": ["by a hook", "rejected by a hook"],
  lost: ["lost", "lost with the server"],
};

export interface Drawn {
  readonly element: HTMLElement;
  put(block: Block): void;
  append(text: string): void;
}

export interface Surroundings {
  post: Post;
  openReasoning: boolean;
  /** Something grew. */
  grown: () => void;
}

export function draw(block: Block, around: Surroundings): Drawn {
  switch (block.kind) {
    case "user":
      return still(userMessage(block, around.post));
    case "text":
    case "system":
      return new Said(block, around);
    case "reason":
      return new Reasoning(block, around);
    case "tool":
      return new Call(block, around);
    case "question":
      return new Question(block, around.post);
    case "image":
      return still(picture(block));
    case "note":
      return still(article("note", "Remark", h("p", {}, block.text)));
  }
}

function article(style: string, label: string, ...children: (Node | string | undefined | false)[]): HTMLElement {
  return h("article", { class: `block ${style}`, tabindex: -1, "aria-label": label }, ...children);
}

function still(element: HTMLElement): Drawn {
  return { element, put: () => {}, append: () => {} };
}

function userMessage(block: Extract<Block, { kind: "user" }>, post: Post): HTMLElement {
  const { contentId } = block;
  const actions =
    contentId &&
    h(
      "div",
      { class: "actions quiet-actions" },
      button("Go back", "to before this message", () => post({ type: "message", contentId, action: "rollback" }), "quiet"),
      button("Fork", "a copy of the chat up to here", () => post({ type: "message", contentId, action: "fork" }), "quiet"),
    );
  return article("user", "You", h("div", { class: "said" }, block.text), actions || undefined);
}

function picture(block: Extract<Block, { kind: "image" }>): HTMLElement {
  const known = /^image\/[\w.+-]+$/.test(block.mediaType) && /^[\w+/=\s-]*$/.test(block.base64);
  const source = `data:${block.mediaType};base64,${block.base64}`;
  const shown = known ? h("img", { src: source, alt: "Picture made by the model" }) : h("p", {}, "A picture that cannot be shown.");
  return article("image", "Picture", shown);
}

/** What the model or the server says. */
class Said implements Drawn {
  readonly element: HTMLElement;
  private readonly stream: Stream;

  constructor(block: TextBlock, around: Surroundings) {
    const body = h("div", { class: "markdown" });
    this.element = article(block.kind, block.kind === "text" ? "Answer" : "Server", body);
    this.stream = new Stream(body, around.grown);
    this.stream.append(block.text);
    if (!block.open) this.stream.close();
  }

  append(text: string): void {
    this.stream.append(text);
  }

  put(block: Block): void {
    if (block.kind === "text" || block.kind === "system") {
      if (!block.open) this.stream.close();
    }
  }
}

class Reasoning implements Drawn {
  readonly element: HTMLElement;
  private readonly fold: HTMLDetailsElement;
  private readonly title = h("span", { class: "title" });
  private readonly stream: Stream;

  constructor(
    block: TextBlock,
    private readonly around: Surroundings,
  ) {
    const body = h("div", { class: "markdown body" });
    this.fold = h("details", { open: block.open || around.openReasoning }, h("summary", {}, this.title), body);
    this.element = article("reason", "Reasoning", this.fold);
    this.stream = new Stream(body, around.grown);
    this.stream.append(block.text);
    this.label(block);
    if (!block.open) this.stream.close();
  }

  append(text: string): void {
    this.stream.append(text);
  }

  put(block: Block): void {
    if (block.kind !== "reason") return;
    this.label(block);
    if (block.open) return;
    this.stream.close();
    if (!this.around.openReasoning) this.fold.open = false;
  }

  private label(block: TextBlock): void {
    this.title.textContent = block.open ? "Thinking…" : `Thought${duration(block.ms, " for ")}`;
  }
}

class Call implements Drawn {
  readonly element: HTMLElement;
  private readonly fold: HTMLDetailsElement;
  private readonly line = h("summary");
  private readonly body = h("div", { class: "body" });
  private readonly actions = h("div", { class: "actions" });
  private block: ToolBlock;
  /** Folds that nobody opened stay empty. */
  private stale = true;

  constructor(
    block: ToolBlock,
    private readonly around: Surroundings,
  ) {
    this.block = block;
    this.fold = h("details", { toggle: () => this.fill() }, this.line, this.body);
    this.element = article("tool", "Tool call", this.fold, this.actions);
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.put(block);
  }

  append(text: string): void {
    this.block.arguments += text;
    this.stale = true;
    this.fill();
  }

  put(block: Block): void {
    if (block.kind !== "tool") return;
    const before = this.block.state;
    const fresh = this.stale && this.line.childNodes.length === 0;
    this.block = block;
    this.stale = true;
    this.element.className = `block tool ${block.state}${block.nested ? " nested" : ""}`;
    this.drawLine();
    if (fresh || before !== block.state) this.drawActions();
    // A call that waits shows what it would do; one that is decided gets out of the way.
    if (block.state === "waiting") this.fold.open = true;
    else if (before === "waiting") this.fold.open = false;
    this.fill();
    this.around.grown();
  }

  private drawLine(): void {
    const { block } = this;
    const state = STATES[block.state];
    const known = REASONS[block.reason ?? ""] ?? [block.reason ?? state.said, block.reason ?? state.said];
    const [short, why] = block.state === "rejected" ? known : [duration(block.ms, ""), state.said];
    this.line.replaceChildren(
      h("span", { class: "glyph", "aria-hidden": "true" }, state.glyph),
      h("span", { class: "title" }, titleOf(block)),
      ...counts(block),
      h("span", { class: "when", title: why }, short),
      spoken(`, ${why}`),
    );
  }

  private drawActions(): void {
    const { block } = this;
    const { post } = this.around;
    const rows: Node[] = [];
    const changes = block.details?.type === "fileChange";
    if (block.state === "waiting") {
      rows.push(
        button("Approve", "a", () => post({ type: "approve", id: block.id, always: false }), "primary"),
        button("Always", "Shift+A: in this chat, without asking again", () => post({ type: "approve", id: block.id, always: true })),
        button("Reject", "r", () => post({ type: "reject", id: block.id })),
      );
    }
    if (changes) {
      const style = block.state === "waiting" ? "" : "quiet";
      rows.push(button("Diff", "d", () => post({ type: "diff", id: block.id }), style));
    }
    this.actions.replaceChildren(...rows);
    this.actions.hidden = rows.length === 0;
    this.actions.classList.toggle("quiet-actions", block.state !== "waiting");
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { id, state, details } = this.block;
    const waits = state === "waiting";
    const actions: Record<string, FromView | false> = {
      a: waits && { type: "approve", id, always: false },
      A: waits && { type: "approve", id, always: true },
      r: waits && { type: "reject", id },
      d: details?.type === "fileChange" && { type: "diff", id },
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    this.around.post(action);
  }

  private fill(): void {
    if (!this.fold.open || !this.stale) return;
    this.stale = false;
    const { block } = this;
    const parts: Node[] = [];
    const { details } = block;
    if (details?.type === "fileChange") parts.push(diff(details));
    else if (details?.type === "task") parts.push(tasks(details.tasks));
    else if (block.arguments.trim() && block.arguments.trim() !== "{}") parts.push(pre("Arguments", block.arguments));
    const output = details?.type === "jsonOutputs" ? details.jsons.join("\n") : block.output;
    if (output.trim() && details?.type !== "task") parts.push(pre("Output", output));
    if (parts.length === 0) parts.push(h("p", { class: "dim" }, "Nothing to show yet."));
    this.body.replaceChildren(...parts);
  }
}

function titleOf(block: ToolBlock): string {
  if (block.details?.type === "subagent" && block.details.step) {
    const { step, maxSteps } = block.details;
    return `${block.summary ?? block.details.agentName ?? block.name} (step ${step}${maxSteps ? ` of ${maxSteps}` : ""})`;
  }
  if (block.summary) return block.summary;
  return block.server && block.server !== "eca" ? `${block.server}: ${block.name}` : block.name;
}

function counts(block: ToolBlock): Node[] {
  if (block.details?.type !== "fileChange") return [];
  const { linesAdded = 0, linesRemoved = 0, path } = block.details;
  const name = path.split(/[\\/]/).pop() ?? path;
  const named = titleOf(block).includes(name);
  return [
    ...(named ? [] : [h("span", { class: "file", title: path }, name)]),
    h("span", { class: "added" }, `+${linesAdded}`),
    h("span", { class: "removed" }, `−${linesRemoved}`),
  ];
}

function diff(change: FileChange): HTMLElement {
  const lines = change.diff.replace(/\n$/, "").split("\n").filter((line) => !/^(---|\+\+\+|diff |index )/.test(line));
  const code = h("code");
  for (const line of lines.slice(0, MOST_LINES)) {
    const style = line.startsWith("@@") ? "hunk" : line.startsWith("+") ? "add" : line.startsWith("-") ? "del" : "same";
    code.append(h("span", { class: `line ${style}` }, `${line}\n`));
  }
  if (lines.length > MOST_LINES) code.append(h("span", { class: "line hunk" }, `${lines.length - MOST_LINES} more lines\n`));
  return h("pre", { class: "diff", tabindex: 0, "aria-label": `Change of ${change.path}` }, code);
}

function pre(label: string, text: string): HTMLElement {
  const lines = text.split("\n");
  const cut = lines.length > MOST_LINES ? [...lines.slice(0, MOST_LINES), `${lines.length - MOST_LINES} more lines`] : lines;
  return h("div", { class: "labelled" }, h("div", { class: "dim" }, label), h("pre", { tabindex: 0, "aria-label": label }, cut.join("\n")));
}

function tasks(all: { subject: string; status: string }[]): HTMLElement {
  const marks: Record<string, string> = { done: "☑", "in-progress": "▶", pending: "☐" };
  return h(
    "ul",
    { class: "tasks" },
    ...all.map((task) => h("li", { class: task.status }, `${marks[task.status] ?? "☐"} ${task.subject}`, spoken(`, ${task.status}`))),
  );
}

/** A question of the model, with the answers it offers. */
class Question implements Drawn {
  readonly element = article("question", "Question of the model");

  constructor(
    block: QuestionBlock,
    private readonly post: Post,
  ) {
    this.put(block);
  }

  append(): void {}

  put(block: Block): void {
    if (block.kind !== "question") return;
    const asked = h("div", { class: "markdown" });
    asked.innerHTML = render(block.question);
    if (block.answer !== undefined) {
      const answer = block.answer === null ? "Not answered." : block.answer;
      this.element.classList.add("over");
      this.element.replaceChildren(asked, h("p", { class: "answered" }, answer));
      return;
    }
    const give = (answer: string | null) => this.post({ type: "answer", id: block.id, answer });
    const options = block.options.map((option) =>
      h(
        "button",
        { type: "button", class: "option", click: () => give(option.label) },
        h("span", {}, option.label),
        option.description ? h("span", { class: "dim" }, option.description) : undefined,
      ),
    );
    const field = h("input", { type: "text", "aria-label": "Your answer", placeholder: block.options.length ? "Something else…" : "Your answer" });
    const submit = (event: Event) => {
      event.preventDefault();
      if (field.value.trim()) give(field.value.trim());
    };
    const free = h("form", { class: "row", submit }, field, h("button", { type: "submit", class: "primary" }, "Answer"));
    const decline = button("Do not answer", "", () => give(null), "quiet");
    this.element.replaceChildren(asked, ...options, ...(block.freeform ? [free] : []), h("div", { class: "actions" }, decline));
  }
}

export function duration(ms: number | undefined, before: string): string {
  // What was over at once needs no time.
  if (ms === undefined || ms < 100) return "";
  const text = ms < 1000 ? `${ms} ms` : ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 60_000)} min`;
  return before + text;
}
