// Markdown that arrives in pieces. What is complete is drawn once and left alone, so that a long answer costs as much
// per piece as a short one. Nothing in a text can become a script, a style or a remote picture: raw HTML is shown as
// text, addresses are checked, and pictures become links.
import MarkdownIt from "markdown-it";

const markdown = new MarkdownIt({ html: false, linkify: true });

markdown.renderer.rules.image = (tokens, index) => {
  const token = tokens[index]!;
  const source = markdown.utils.escapeHtml(token.attrGet("src") ?? "");
  return `<a href="${source}">${markdown.utils.escapeHtml(token.content || "picture")}</a>`;
};
markdown.renderer.rules.fence = (tokens, index) => {
  const token = tokens[index]!;
  const language = token.info.trim().split(/\s+/)[0] ?? "";
  return codeBlock(language, markdown.utils.escapeHtml(token.content));
};
markdown.renderer.rules.code_block = (tokens, index) => codeBlock("", markdown.utils.escapeHtml(tokens[index]!.content));
// Columns of tables would get style attributes, which the page's policy forbids.
for (const cell of ["th_open", "td_open"]) {
  markdown.renderer.rules[cell] = (tokens, index, options, _, renderer) => {
    const token = tokens[index]!;
    const side = /text-align:(\w+)/.exec(token.attrGet("style") ?? "")?.[1];
    token.attrs = side ? [["class", `align-${side}`]] : null;
    return renderer.renderToken(tokens, index, options);
  };
}
markdown.renderer.rules.table_open = () => '<div class="table" tabindex="0" role="region" aria-label="Table"><table>';
markdown.renderer.rules.table_close = () => "</table></div>";

function codeBlock(language: string, escaped: string): string {
  const name = markdown.utils.escapeHtml(language);
  return (
    `<div class="code"><div class="code-bar"><span>${name}</span>` +
    `<button type="button" class="quiet copy" aria-label="Copy code">Copy</button></div>` +
    `<pre tabindex="0"><code>${escaped}</code></pre></div>`
  );
}

export function render(text: string): string {
  return markdown.render(text);
}

const FENCE = /^ {0,3}(`{3,}|~{3,})([^`\n]*)$/;

/** With so many characters a line that has not ended is no longer mistaken for the beginning of a list's item. */
const ENOUGH = 6;

/** An open fence, while its code arrives. */
interface Code {
  mark: string;
  text: Text;
  /** The line that has not ended yet. */
  line: string;
  /** How much of it is drawn. */
  drawn: number;
}

export class Stream {
  /** How many characters were given to the renderer, for tests: it must stay in proportion to the text. */
  static rendered = 0;
  private readonly settled = document.createElement("div");
  private readonly live = document.createElement("div");
  private whole = "";
  private tail = "";
  private code: Code | undefined;
  private frame = 0;

  constructor(
    element: HTMLElement,
    private readonly drawn: () => void,
  ) {
    this.settled.className = "settled";
    this.live.className = "live";
    element.replaceChildren(this.settled, this.live);
  }

  append(text: string): void {
    this.whole += text;
    this.tail += text;
    this.frame ||= requestAnimationFrame(() => this.draw());
  }

  /** No more will come. */
  close(): void {
    if (this.frame) cancelAnimationFrame(this.frame);
    this.draw();
    this.live.remove();
    // A definition of a link may stand anywhere; only a text that has one is drawn as a whole.
    if (/^ {0,3}\[[^\]]+\]:\s*\S/m.test(this.whole)) this.settled.innerHTML = this.html(this.whole);
    else if (this.tail.trim() && !this.code) this.settle(this.tail);
    else if (this.code) this.endCode();
    this.tail = "";
    this.drawn();
  }

  get text(): string {
    return this.whole;
  }

  private draw(): void {
    this.frame = 0;
    for (let going = true; going; ) {
      going = this.code ? this.takeCode() : this.takeBlocks();
    }
    if (!this.code) this.live.innerHTML = this.tail.trim() ? this.html(this.tail) : "";
    this.drawn();
  }

  /** Settles the blocks that are complete; true if code begins behind them. */
  private takeBlocks(): boolean {
    let start = 0;
    let blank = false;
    let complete = 0;
    while (start < this.tail.length) {
      const end = this.tail.indexOf("\n", start);
      if (end < 0) {
        const begun = this.tail.slice(start);
        if (blank && begun.length >= ENOUGH && startsBlock(begun)) complete = start;
        break;
      }
      const line = this.tail.slice(start, end);
      const fence = FENCE.exec(line);
      if (fence) {
        this.settle(this.tail.slice(0, start));
        this.tail = this.tail.slice(end + 1);
        this.beginCode(fence[1]!, fence[2]!.trim().split(/\s+/)[0] ?? "");
        return true;
      }
      if (line.trim() === "") blank = true;
      else {
        if (blank && startsBlock(line)) complete = start;
        blank = false;
      }
      start = end + 1;
    }
    if (complete > 0) {
      this.settle(this.tail.slice(0, complete));
      this.tail = this.tail.slice(complete);
    }
    return false;
  }

  /** Moves code into the open block; true if the block ended. */
  private takeCode(): boolean {
    const code = this.code!;
    const text = this.tail;
    let start = 0;
    for (;;) {
      const end = text.indexOf("\n", start);
      code.line += end < 0 ? text.slice(start) : text.slice(start, end);
      if (end < 0) break;
      start = end + 1;
      if (closes(code.line, code.mark)) {
        this.tail = text.slice(start);
        this.endCode();
        return true;
      }
      code.text.appendData(`${code.line.slice(code.drawn)}\n`);
      code.line = "";
      code.drawn = 0;
    }
    this.tail = "";
    // What may become the closing fence is not shown yet.
    if (!/^ {0,3}[`~]*$/.test(code.line)) {
      code.text.appendData(code.line.slice(code.drawn));
      code.drawn = code.line.length;
    }
    return false;
  }

  private beginCode(mark: string, language: string): void {
    const holder = document.createElement("div");
    holder.innerHTML = codeBlock(language, "");
    const text = document.createTextNode("");
    holder.querySelector("code")!.append(text);
    this.settled.append(...holder.childNodes);
    this.live.replaceChildren();
    this.code = { mark, text, line: "", drawn: 0 };
  }

  private endCode(): void {
    this.code = undefined;
  }

  private settle(text: string): void {
    if (text.trim() === "") return;
    const holder = document.createElement("template");
    holder.innerHTML = this.html(text);
    this.settled.append(holder.content);
  }

  private html(text: string): string {
    Stream.rendered += text.length;
    return render(text);
  }
}

/** Whether a line behind an empty one begins something new, not another item or paragraph of a list. */
function startsBlock(line: string): boolean {
  return /^\S/.test(line) && !/^([-*+]|\d+[.)])\s/.test(line);
}

function closes(line: string, mark: string): boolean {
  const found = /^ {0,3}(`{3,}|~{3,})\s*$/.exec(line)?.[1];
  return found !== undefined && found[0] === mark[0] && found.length >= mark.length;
}
