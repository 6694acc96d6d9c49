// The page of the chat view in a real browser, with a stand-in for the extension: every state, in every kind of theme.
// `themes.json` has the colours that VS Code 1.100 gives to a view in its own four kinds of themes.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { parts } from "./parts.mjs";
import { extension, here, launchBrowser, picture, wait } from "./support.mjs";

const THEMES = JSON.parse(readFileSync(join(here, "themes.json"), "utf8"));
const HEAD = {
  chatId: "one",
  title: "",
  busy: false,
  stopping: false,
  progress: "",
  model: "mock/scripted",
  agent: "code",
  variant: "",
  variants: [],
  trust: false,
  contexts: [],
  queued: [],
  elsewhere: 0,
  jobs: "",
  server: "running",
  problem: "",
  welcome: "# Welcome to ECA\n\nAsk anything about your code.",
};
const DIFF = '--- a/src/main.rs\n+++ b/src/main.rs\n@@ -1,3 +1,4 @@\n fn main() {\n-    println!("hello");\n+    println!("good morning");\n+    println!("and a very long line that does not fit into a narrow side bar at all");\n }\n';
const CHANGE = { type: "fileChange", path: "/p/src/main.rs", diff: DIFF, linesAdded: 2, linesRemoved: 1 };

let server, browser, origin, page;
const served = {};

before(async () => {
  const { page: html } = await parts();
  server = createServer((request, response) => {
    const type = request.url.endsWith(".css") ? "text/css" : request.url.endsWith(".js") ? "text/javascript" : "text/html";
    const file = { "/webview.js": "dist/webview.js", "/webview.css": "dist/webview.css" }[request.url];
    response.writeHead(200, { "Content-Type": `${type}; charset=utf-8` });
    response.end(file ? readFileSync(join(extension, file)) : html({ nonce: "abc", source: "'self'", script: "/webview.js", style: "/webview.css" }));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${server.address().port}`;
  browser = await launchBrowser();
});

after(async () => {
  await browser?.close();
  await new Promise((resolve) => server.close(resolve));
});

beforeEach(() => open("dark", 420));
afterEach(async () => {
  const { page: old, problems } = served;
  await old.close();
  // The page breaks no rule of its own policy, and asks nobody for anything.
  assert.deepEqual(problems, []);
});

/** A page as VS Code would make it: with the theme's colours and the way to the extension. */
async function open(theme, width) {
  await served.page?.close();
  page = await browser.newPage({ viewport: { width, height: 800 } });
  const problems = [];
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("request", (request) => request.url().startsWith(origin) || request.url().startsWith("data:") || problems.push(request.url()));
  await page.addInitScript(() => {
    window.posted = [];
    let kept;
    window.acquireVsCodeApi = () => ({
      postMessage: (message) => window.posted.push(message),
      getState: () => kept,
      setState: (state) => (kept = state),
    });
  });
  await page.goto(`${origin}/`);
  await page.evaluate((colours) => {
    for (const [name, value] of Object.entries(colours)) document.documentElement.style.setProperty(name, value);
    document.documentElement.style.background = colours["--vscode-sideBar-background"];
  }, THEMES[theme]);
  Object.assign(served, { page, problems });
  await wait("the page", () => page.evaluate(() => window.posted.some((message) => message.type === "ready")));
}

const tell = (message) => page.evaluate((sent) => window.postMessage(sent, "*"), message);
const posted = (type) => page.evaluate((wanted) => window.posted.filter((message) => message.type === wanted), type);
const state = (blocks = [], head = {}) => tell({ type: "state", head: { ...HEAD, ...head }, blocks, openReasoning: false });
const patches = (...all) => tell({ type: "patches", patches: all });
const head = (changes) => ({ type: "head", head: { ...HEAD, ...changes } });
const call = (changes) => ({ kind: "tool", id: 9, state: "waiting", name: "edit_file", server: "eca", summary: "Editing", arguments: "{}", output: "", nested: false, ...changes });
const lastPosted = async (type) => wait(type, async () => (await posted(type)).at(-1));

const LONG = `## What I found

The program greets with **hello**; see \`src/main.rs\` and [the guide](docs/guide.md).

1. Read the file
2. Change the greeting
   - only one line

| Name | Count |
|:-----|------:|
| one  | 1     |

\`\`\`rust
fn main() {
    println!("good morning");
}
\`\`\`

> Nothing else was touched.
`;

function conversation() {
  return [
    { kind: "user", id: 1, text: "Please make the greeting friendlier,\nand tell me what you did.", contentId: "c1" },
    { kind: "reason", id: 2, text: "The user wants a friendlier greeting. I shall read the file first.", open: false, ms: 1840 },
    call({ id: 3, state: "done", name: "read_file", summary: "Reading main.rs", output: "fn main() {}", ms: 4 }),
    call({ id: 4, state: "failed", name: "shell_command", summary: "$ cargo test --workspace --all-features", output: "error: no such command", ms: 61_000 }),
    call({ id: 5, state: "rejected", reason: "user-choice", details: CHANGE }),
    call({ id: 6, state: "done", server: "github", name: "search_issues", summary: undefined, ms: 1200, nested: true }),
    { kind: "text", id: 7, text: LONG, open: false },
    { kind: "note", id: 8, text: "The server ended unexpectedly (signal SIGKILL). It was started again; what was said before is kept." },
    call({ id: 9, details: CHANGE }),
  ];
}

describe("what it shows", () => {
  test("an empty chat greets and names the keys", async () => {
    await state();
    await page.getByRole("heading", { name: "Welcome to ECA" }).waitFor();
    assert.match(await page.locator(".keys").innerText(), /Escape/);
  });

  test("markdown, safely", async () => {
    const text = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>

[bad](javascript:window.hacked=1) ![pic](https://example.org/a.png)

| a | b |
|---|--:|
| 1 | 2 |
`;
    await state([{ kind: "text", id: 1, text, open: false }]);
    await page.locator("td.align-right").waitFor();
    assert.equal(await page.locator(".block img, .block script").count(), 0);
    assert.equal(await page.locator(".block.text a").count(), 1);
    await page.locator(".block.text a").click();
    assert.equal((await lastPosted("open")).target, "https://example.org/a.png");
    assert.equal(await page.evaluate(() => window.hacked), undefined);
  });

  test("an answer in pieces looks like the same answer in one", async () => {
    await state([{ kind: "text", id: 1, text: LONG, open: false }]);
    const whole = await page.locator(".block.text .settled").innerHTML();
    for (const size of [1, 7, 64]) {
      await state([{ kind: "text", id: 1, text: "", open: true }]);
      for (let at = 0; at < LONG.length; at += size) await patches({ type: "append", id: 1, text: LONG.slice(at, at + size) });
      await patches({ type: "put", block: { kind: "text", id: 1, text: LONG, open: false } });
      await page.locator(".block.text blockquote").waitFor();
      const clean = (html) => html.replace(/>\s+</g, "><").trim();
      assert.equal(clean(await page.locator(".block.text .settled").innerHTML()), clean(whole), `pieces of ${size}`);
    }
  });

  test("text that ends inside code, with tildes, or with links defined later", async () => {
    for (const [text, expected] of [
      ["```js\nlet a = '``';\n", "let a = '``';\n"],
      ["~~~\na\n```\nb\n~~~\n", "a\n```\nb\n"],
      ["````\n```\ninner\n```\n````\n", "```\ninner\n```\n"],
    ]) {
      await state([{ kind: "text", id: 1, text: "", open: true }]);
      for (const piece of text.match(/[\s\S]{1,3}/g)) await patches({ type: "append", id: 1, text: piece });
      await patches({ type: "put", block: { kind: "text", id: 1, text, open: false } });
      await wait("the code", async () => (await page.locator(".block.text code").textContent()) === expected);
    }
    const later = "See [the guide][g].\n\nMore.\n\n[g]: https://example.org/guide\n";
    await state([{ kind: "text", id: 1, text: "", open: true }]);
    for (const piece of later.match(/[\s\S]{1,5}/g)) await patches({ type: "append", id: 1, text: piece });
    await patches({ type: "put", block: { kind: "text", id: 1, text: later, open: false } });
    await page.locator('.block.text a[href="https://example.org/guide"]').waitFor();
  });

  test("a long answer costs no more per piece than a short one", async () => {
    await state([{ kind: "text", id: 1, text: "", open: true }]);
    const paragraph = `${"Some words of an answer that goes on. ".repeat(6)}\n\n`;
    const code = `\`\`\`\n${"a line of code\n".repeat(200)}\`\`\`\n\n`;
    // Every piece is drawn before the next one comes, as in a slow answer.
    const { rendered, length } = await page.evaluate(
      async ([one, two]) => {
        const text = one.repeat(25) + two + one.repeat(25);
        const before = window.ecaRendered();
        for (let at = 0; at < text.length; at += 40) {
          window.postMessage({ type: "patches", patches: [{ type: "append", id: 1, text: text.slice(at, at + 40) }] }, "*");
          await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
        }
        return { rendered: window.ecaRendered() - before, length: text.length };
      },
      [paragraph, code],
    );
    assert.ok(rendered > 0 && rendered < length * 10, `${rendered} characters were drawn for ${length}`);
  });

  test("the view follows the answer, unless the user reads above", async () => {
    await state(conversation());
    const atEnd = () => page.locator(".log").evaluate((log) => log.scrollHeight - log.scrollTop - log.clientHeight < 5);
    await wait("the end", atEnd);
    await patches({ type: "add", block: { kind: "text", id: 20, text: "line\n\n".repeat(40), open: true } });
    await wait("the end", atEnd);
    await page.locator(".log").evaluate((log) => (log.scrollTop = 0));
    await page.getByRole("button", { name: "Latest" }).waitFor();
    await patches({ type: "append", id: 20, text: "more\n\n".repeat(40) });
    assert.equal(await page.locator(".log").evaluate((log) => log.scrollTop), 0);
    await page.getByRole("button", { name: "Latest" }).click();
    await wait("the end", atEnd);
  });

  test("reasoning is open while it comes, and folded afterwards", async () => {
    await state([{ kind: "reason", id: 1, text: "", open: true }]);
    await patches({ type: "append", id: 1, text: "the cat sat" });
    await page.getByText("the cat sat").waitFor();
    await patches({ type: "put", block: { kind: "reason", id: 1, text: "the cat sat", open: false, ms: 2500 } });
    await page.getByText("Thought for 2.5 s").waitFor();
    assert.equal(await page.getByText("the cat sat").isVisible(), false);
    await page.locator("summary").press("Enter");
    assert.equal(await page.getByText("the cat sat").isVisible(), true);
  });

  test("a call shows its arguments and its output when it is opened", async () => {
    await state([call({ state: "preparing", arguments: "" })]);
    await patches({ type: "append", id: 9, text: '{"path"' });
    const done = call({ state: "done", name: "grep", summary: "Searching: x", arguments: '{\n  "pattern": "x"\n}', output: "a.rs:1: x", ms: 12 });
    await patches({ type: "put", block: done });
    await page.locator(".tool.done summary").click();
    assert.match(await page.locator(".tool .body").innerText(), /"pattern": "x"[\s\S]*a\.rs:1: x/);
  });

  test("what is not said yet, what goes along, and what went wrong", async () => {
    await state([], { contexts: ["src/main.rs:1-3", "docs/"], queued: ["and be quick"], busy: true, progress: "Generating", usage: { sessionTokens: 12_300, sessionCost: "0.02", limit: { context: 200_000 } } });
    assert.match(await page.locator(".progress").innerText(), /Generating[\s\S]*12k\/200k · \$0\.02/);
    await page.getByRole("button", { name: "Remove docs/" }).click();
    assert.equal((await lastPosted("removeContext")).index, 1);
    await page.getByRole("button", { name: "Take back" }).click();
    await lastPosted("takeBack");
    await patches(head({ server: "failed", problem: "The server 'eca' could not be started." }));
    await page.getByRole("alert").getByText("could not be started").waitFor();
    await page.getByRole("button", { name: "Start again" }).click();
    assert.equal((await lastPosted("run")).command, "restart");
    await patches(head({ elsewhere: 2 }));
    await page.getByText("2 other chats need you.").waitFor();
  });

  test("what runs in the background is counted, and leads to the list", async () => {
    await state([]);
    const jobs = page.locator(".jobs");
    assert.equal(await jobs.isVisible(), false);
    await patches(head({ jobs: "2 background jobs" }));
    await page.getByRole("button", { name: "2 background jobs" }).click();
    assert.equal((await lastPosted("run")).command, "jobs");
    await patches(head({ jobs: "2 background jobs", busy: true, progress: "Waiting model", usage: { sessionTokens: 12000, sessionCost: "0.12", limit: { context: 32000 } } }));
    await page.locator(".working", { hasText: "Waiting model" }).waitFor();
    await picture(page, "jobs-and-progress");
    await patches(head({}));
    await wait("the end of the line", async () => !(await jobs.isVisible()));
  });

  test("tasks, and a picture", async () => {
    const tasks = [
      { id: 1, subject: "Read", status: "done" },
      { id: 2, subject: "Write", status: "in-progress" },
    ];
    const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYPj/HwADAgH/p+FUpQAAAABJRU5ErkJggg==";
    await state([
      call({ state: "done", name: "task", summary: "Tasks", details: { type: "task", tasks } }),
      { kind: "image", id: 2, mediaType: "image/png", base64: dot },
      { kind: "image", id: 3, mediaType: 'text/html"><script>', base64: dot },
    ]);
    await page.locator(".tool summary").click();
    assert.match(await page.locator(".tasks").innerText(), /☑ Read/);
    assert.equal(await page.locator("img").count(), 1);
    await wait("the picture", () => page.locator("img").evaluate((image) => image.naturalWidth === 1));
  });
});

describe("what the user does", () => {
  test("Enter sends, Shift+Enter does not, and arrows bring back what was sent", async () => {
    await state([{ kind: "user", id: 1, text: "earlier" }]);
    const field = page.getByRole("combobox", { name: "Message" });
    await field.fill("hello");
    await field.press("Shift+Enter");
    await field.pressSequentially("there");
    await field.press("Enter");
    assert.equal((await lastPosted("send")).text, "hello\nthere");
    assert.equal(await field.inputValue(), "");
    await field.press("Enter");
    assert.equal((await posted("send")).length, 1);
    await field.fill("at once");
    await field.press("Control+Enter");
    assert.deepEqual(await posted("send").then((all) => all.map(({ text, now }) => [text, now])), [
      ["hello\nthere", false],
      ["at once", true],
    ]);
    await field.press("ArrowUp");
    assert.equal(await field.inputValue(), "earlier");
    await field.press("End");
    await field.press("ArrowDown");
    assert.equal(await field.inputValue(), "");
  });

  test("a waiting call is decided by keys and by buttons", async () => {
    await state(conversation());
    assert.match(await page.locator(".tool.waiting .diff").innerText(), /good morning/);
    const field = page.getByRole("combobox", { name: "Message" });
    await field.focus();
    await field.press("a");
    assert.equal((await posted("approve")).length, 0, "a letter in the prompt is a letter");
    await field.press("Alt+ArrowUp");
    for (const [key, type, always] of [
      ["a", "approve", false],
      ["A", "approve", true],
      ["r", "reject", undefined],
      ["d", "diff", undefined],
    ]) {
      await page.keyboard.press(key);
      const message = await lastPosted(type);
      assert.equal(message.id, 9);
      assert.equal(message.always, always);
    }
    await page.getByRole("button", { name: "Approve" }).click();
    await page.getByRole("button", { name: "Reject" }).click();
    assert.equal((await posted("approve")).length, 3);
    assert.equal((await posted("reject")).length, 2);
    await patches({ type: "put", block: call({ state: "running", details: CHANGE }) });
    await page.locator(".tool.running").waitFor();
    assert.equal(await page.getByRole("button", { name: "Approve" }).count(), 0);
    assert.equal(await page.locator(".tool.running .diff").isVisible(), false);
  });

  test("what waits is announced, and so is the end", async () => {
    await state([], { busy: true });
    await patches({ type: "add", block: call({ summary: "Editing main.rs" }) });
    await wait("the announcement", async () => (await page.locator("[aria-live=assertive]").textContent()).includes("Editing main.rs waits for your approval"));
    await patches(head({ busy: false }));
    await wait("the end", async () => (await page.locator("[aria-live=polite]").textContent()) === "The answer is complete.");
  });

  test("Escape stops, and the keyboard walks through the chat", async () => {
    await state(conversation(), { busy: true });
    const field = page.getByRole("combobox", { name: "Message" });
    await field.press("Escape");
    await lastPosted("stop");
    await field.press("Alt+ArrowUp");
    await page.keyboard.press("Alt+ArrowUp");
    assert.match(await page.evaluate(() => document.activeElement.textContent), /ended unexpectedly/);
    await page.keyboard.press("Escape");
    assert.equal(await page.evaluate(() => document.activeElement.tagName), "TEXTAREA");
  });

  test("completion by keys", async () => {
    await state();
    const field = page.getByRole("combobox", { name: "Message" });
    await field.pressSequentially("see @no");
    const asked = await lastPosted("complete");
    assert.deepEqual([asked.kind, asked.query], ["context", "no"]);
    const items = [
      { word: "@notes.md", label: "@notes.md", detail: "file" },
      { word: "@node/", label: "@node/", detail: "folder" },
    ];
    await tell({ type: "completions", ticket: asked.ticket - 1, items });
    await tell({ type: "completions", ticket: asked.ticket, items });
    await page.getByRole("option", { name: "@notes.md" }).waitFor();
    assert.equal(await field.getAttribute("aria-activedescendant"), "completion-0");
    await field.press("ArrowDown");
    assert.equal(await page.getByRole("option", { selected: true }).innerText().then((text) => text.split("\n")[0]), "@node/");
    await field.press("Tab");
    assert.equal(await field.inputValue(), "see @node/");
    assert.equal(await page.getByRole("listbox").count(), 0);
    await field.pressSequentially("x");
    const again = await lastPosted("complete");
    await tell({ type: "completions", ticket: again.ticket, items });
    await page.getByRole("option").first().waitFor();
    await field.press("Escape");
    assert.equal(await page.getByRole("listbox").count(), 0);
    assert.equal((await posted("stop")).length, 0);
  });

  test("a question is answered by an option or freely, or declined", async () => {
    const asked = { kind: "question", id: 4, question: "Which **colour**?", options: [{ label: "red", description: "warm" }, { label: "blue" }], freeform: true };
    await state([asked]);
    await page.getByRole("button", { name: "red" }).click();
    assert.equal((await lastPosted("answer")).answer, "red");
    await page.getByRole("textbox", { name: "Your answer" }).fill("green");
    await page.keyboard.press("Enter");
    assert.equal((await lastPosted("answer")).answer, "green");
    await page.getByRole("button", { name: "Do not answer" }).click();
    assert.equal((await lastPosted("answer")).answer, null);
    await patches({ type: "put", block: { ...asked, answer: "blue" } });
    await page.locator(".answered", { hasText: "blue" }).waitFor();
  });

  test("a draft survives another chat, and undelivered text comes back", async () => {
    await state();
    const field = page.getByRole("combobox", { name: "Message" });
    await field.fill("half a thought");
    await state([], { chatId: "two" });
    assert.equal(await field.inputValue(), "");
    await state();
    assert.equal(await field.inputValue(), "half a thought");
    await tell({ type: "draft", text: "undelivered" });
    await wait("the text", async () => (await field.inputValue()) === "undelivered\nhalf a thought");
  });

  test("messages can be gone back to and forked, code can be copied, who answers can be changed", async () => {
    await state(conversation(), { variants: ["high"], variant: "high" });
    await page.locator(".block.user").hover();
    await page.getByRole("button", { name: "Fork" }).click();
    assert.deepEqual(await lastPosted("message"), { type: "message", contentId: "c1", action: "fork" });
    await page.getByRole("button", { name: "Copy code" }).click();
    assert.match((await lastPosted("copy")).text, /^fn main/);
    for (const [name, command] of [
      ["Agent: code", "pickAgent"],
      ["Model mock/scripted: scripted", "pickModel"],
      ["Variant: high", "pickVariant"],
      ["Approval: asks first", "toggleTrust"],
    ]) {
      await page.getByRole("button", { name }).click();
      assert.equal((await lastPosted("run")).command, command);
    }
  });
});

describe("how it looks", () => {
  const widths = { narrow: 210, usual: 330, wide: 620 };
  for (const theme of Object.keys(THEMES)) {
    for (const [name, width] of Object.entries(widths)) {
      test(`${theme}, ${name}`, async () => {
        await open(theme, width);
        await state();
        await picture(page, `${theme}-${name}-empty`);
        const busy = { busy: true, progress: "Waiting for tool call approval", jobs: "1 background job", contexts: ["src/main.rs:1-3"], usage: { sessionTokens: 12_300, limit: { context: 200_000 } } };
        await state(conversation(), busy);
        await page.locator(".tool.waiting .diff").waitFor();
        await picture(page, `${theme}-${name}-chat`);
        // Nothing sticks out sideways, and the buttons can be reached.
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), true, "the page is too wide");
        for (const part of [".log", ".composer"]) {
          assert.equal(await page.locator(part).evaluate((one) => one.scrollWidth <= one.clientWidth), true, `${part} is too wide`);
        }
        for (const button of ["Send", "Stop", "Approve"]) {
          const box = await page.getByRole("button", { name: button, exact: true }).boundingBox();
          assert.ok(box.x >= 0 && box.x + box.width <= width, `${button} is outside`);
        }
        assert.deepEqual(await faint(), []);
        await page.locator(".log").evaluate((log) => (log.scrollTop = 0));
        await picture(page, `${theme}-${name}-top`);
        const options = [{ label: "red", description: "warm" }, { label: "blue" }];
        const asked = { kind: "question", id: 4, question: "Which **colour**?", options, freeform: true };
        await state([asked], { server: "failed", problem: "The server 'eca' could not be started: there is no such program. The setting ecaRs.serverPath names it." });
        const field = page.getByRole("combobox", { name: "Message" });
        await field.pressSequentially("@n");
        const { ticket } = await lastPosted("complete");
        await tell({ type: "completions", ticket, items: [{ word: "@notes.md", label: "@notes.md", detail: "file" }, { word: "@src/very/long/path/of/some/file.rs", label: "@src/very/long/path/of/some/file.rs", detail: "file" }] });
        await page.getByRole("option").first().waitFor();
        await picture(page, `${theme}-${name}-question`);
        assert.deepEqual(await faint(), []);
      });
    }
  }
});

/** Texts whose contrast with what is behind them is below what WCAG asks for large text or signs (3:1). */
function faint() {
  return page.evaluate(() => {
    const parse = (text) => {
      const [r, g, b, a = 1] = (/rgba?\(([^)]*)\)/.exec(text)?.[1] ?? "0,0,0,0").split(/[,/ ]+/).map(Number);
      return { r, g, b, a };
    };
    const over = (top, below) => {
      const mix = (x, y) => x * top.a + y * (1 - top.a);
      return { r: mix(top.r, below.r), g: mix(top.g, below.g), b: mix(top.b, below.b), a: 1 };
    };
    const behind = (element) => {
      const layers = [];
      for (let one = element; one; one = one.parentElement) layers.unshift(parse(getComputedStyle(one).backgroundColor));
      return layers.reduce((below, top) => over(top, below), { r: 255, g: 255, b: 255, a: 1 });
    };
    const light = ({ r, g, b }) => {
      const [x, y, z] = [r, g, b].map((value) => (value / 255 <= 0.03928 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4));
      return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let text = walker.nextNode(); text; text = walker.nextNode()) {
      const element = text.parentElement;
      const hidden = element.closest("script, .spoken, .quiet-actions") || !element.checkVisibility();
      if (hidden || !text.textContent.trim()) continue;
      const below = behind(element);
      const [one, two] = [light(over(parse(getComputedStyle(element).color), below)), light(below)];
      const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
      if (ratio < 3) found.push(`${element.className || element.tagName} "${text.textContent.trim().slice(0, 30)}" ${ratio.toFixed(2)}`);
    }
    return found;
  });
}
