// The whole extension, as it is packaged, in VS Code's workbench: driven by keys and the mouse in a real browser.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { editCall, HANG_GUARD_MS, launchBrowser, picture, startModel, startWorkbench, wait, workspace } from "./support.mjs";

let model, place, bench, browser, page, chat;

before(async () => {
  model = await startModel();
  place = workspace(model);
  place.write("project/look.css", ":root { --main: red; }\na { color: var(--main); }\n");
  place.write("project/evening.rs", "/*\nsay 1234 + evening();\n*/\nfn main() {\n    let sum = \n}\n");
  place.write("project/silent.rs", "/*\nfail 401 the key is wrong\n*/\nfn main() {\n    silent(\n}\n");
  place.write("project/broken.json", '{"a": 1, "b" }\n');
  [bench, browser] = await Promise.all([startWorkbench(place), launchBrowser()]);
  page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  page.setDefaultTimeout(HANG_GUARD_MS);
  await page.goto(bench.url);
  await page.locator('.activitybar a[aria-label="ECA"]').click();
  await page.mouse.move(700, 500);
  chat = page.frameLocator("iframe.webview.ready").frameLocator("#active-frame");
  await see(".model", "scripted");
});

after(async () => {
  await browser?.close();
  await bench?.stop();
  model?.stop();
});

/** A test; what was on the screen when it failed is kept if pictures are. */
function check(name, run) {
  test(name, async () => {
    try {
      await run();
    } catch (error) {
      await picture(page, `failed-${name.replace(/\W+/g, "-")}`);
      throw error;
    }
  });
}

/** Waits until a part of the chat shows a text. */
function see(selector, text) {
  return chat.locator(selector, { hasText: text }).last().waitFor();
}

/** Waits until the last answer has begun so far. */
function answered(text) {
  return wait(`an answer with ${text}`, async () => (await chat.locator(".block.text").last().innerText()).includes(text));
}

async function type(text) {
  const field = chat.locator("textarea");
  await field.fill(text);
  await field.press("Enter");
}

async function idle() {
  await wait("the end of the turn", async () => !(await chat.locator(".working").isVisible()));
}

async function palette(command) {
  await page.keyboard.press("F1");
  await page.locator(".quick-input-widget input").fill(`>${command}`);
  await page.locator(".quick-input-widget .monaco-list-row", { hasText: command }).first().waitFor();
  await page.keyboard.press("Enter");
}

async function openFile(name) {
  await page.keyboard.press("Control+p");
  await page.locator(".quick-input-widget input").fill(name);
  // The list of files that were open before is there first.
  await page.locator(".quick-input-widget .monaco-list-row.focused", { hasText: name }).waitFor();
  await page.keyboard.press("Enter");
  await page.locator(".tab.active", { hasText: name }).waitFor();
}

const lastRequest = async () => JSON.stringify((await model.requests()).at(-1).messages);
const statusBar = () => page.locator(".statusbar-item", { hasText: "ECA" }).innerText();

/** The server's process: the one that was given this test's configuration. */
function serverProcess() {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .find((name) => {
      try {
        const words = readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0");
        return words[1] === "server" && words.includes(place.config);
      } catch {
        return false;
      }
    });
}

check("the chat greets, and the status bar is there", async () => {
  await see(".welcome", "Welcome");
  assert.match(await statusBar(), /ECA/);
  await picture(page, "workbench-welcome");
});

check("health is told in the output channel", async () => {
  await palette("ECA: Check Health");
  await page.locator(".panel .view-line", { hasText: "The server runs" }).waitFor();
  await picture(page, "workbench-health");
  await palette("View: Hide Panel");
  await page.locator(".panel .view-line").first().waitFor({ state: "hidden" });
});

check("a prompt and its streamed answer", async () => {
  await type("words 150 15");
  await see(".block.text", "word3 ");
  assert.doesNotMatch(await chat.locator(".block.text").last().innerText(), /word149/);
  assert.match(await statusBar(), /Generating|Waiting/);
  await see(".block.text", "word149");
  await idle();
  await see(".usage", "/32k");
  await type("say # Title\\n\\nSome **bold** text.\\n\\n```rust\\nfn main() {}\\n```\\n");
  await see(".block.text h1", "Title");
  await see(".block.text .code code", "fn main() {}");
  await idle();
  await picture(page, "workbench-answer");
});

check("an edit is shown in the diff editor, and made when it is approved by a key", async () => {
  const before = place.read();
  await type(`${editCall(place, "hello", "good morning")}\nsay finished it`);
  await see(".tool.waiting", "main.rs");
  await page.locator(".tab", { hasText: "main.rs (proposed change)" }).waitFor();
  await page.locator(".monaco-diff-editor .modified .view-line", { hasText: "good morning" }).waitFor();
  await page.locator(".monaco-diff-editor .original .view-line", { hasText: "hello" }).waitFor();
  assert.equal(place.read(), before);
  assert.match(await statusBar(), /needs you/);
  await picture(page, "workbench-approval");
  // The keyboard is still in the prompt.
  await page.keyboard.press("Control+k");
  await page.keyboard.press("y");
  await see(".block.text", "finished it");
  await see(".tool.done", "main.rs");
  assert.match(place.read(), /good morning/);
  await page.locator(".tab", { hasText: "proposed change" }).waitFor({ state: "detached" });
  await idle();
  // The change that was made can be looked at again.
  await chat.locator(".tool.done").last().hover();
  await chat.locator(".tool.done").last().getByRole("button", { name: "Diff" }).click();
  await page.locator(".tab", { hasText: "main.rs (change that was made)" }).waitFor();
  await page.locator(".monaco-diff-editor .original .view-line", { hasText: "hello" }).waitFor();
  await page.keyboard.press("Control+F4");
});

check("an edit is rejected from the diff editor, and with a key on the call", async () => {
  const before = place.read();
  await type(`${editCall(place, "good morning", "bye")}\nsay as you wish`);
  await page.locator(".tab", { hasText: "proposed change" }).waitFor();
  await page.locator('.editor-actions [aria-label^="Reject the Tool Call"]').first().click();
  await see(".tool.rejected", "rejected by you");
  await see(".block.text", "as you wish");
  await idle();
  await type(`${editCall(place, "good morning", "bye")}\nsay never mind`);
  await see(".tool.waiting", "main.rs");
  await chat.locator("textarea").press("Alt+ArrowUp");
  await page.keyboard.press("r");
  await see(".block.text", "never mind");
  await idle();
  assert.equal(place.read(), before);
  assert.match(await lastRequest(), /reject|refus|declin/i);
  await page.locator(".tab", { hasText: "proposed change" }).waitFor({ state: "detached" });
});

check("a stop with Escape", async () => {
  await type("words 5000 20");
  await answered("word3 ");
  await chat.locator("textarea").press("Escape");
  await idle();
  await see(".block.system", "Stopped");
  assert.doesNotMatch(await chat.locator(".block.text").last().innerText(), /word4999/);
});

check("completion of a context, which goes along", async () => {
  const field = chat.locator("textarea");
  await field.pressSequentially("reset what is in @notes");
  await chat.locator("#completions li", { hasText: "@notes.md" }).waitFor();
  await picture(page, "workbench-completion");
  await field.press("Enter");
  assert.equal(await field.inputValue(), "reset what is in @notes.md ");
  await field.press("Enter");
  await see(".block.text", "You said");
  await idle();
  assert.match(await lastRequest(), /marzipan/);
});

check("the selection goes along", async () => {
  await openFile("main.rs");
  await page.locator(".monaco-editor .view-line", { hasText: "good morning" }).first().click();
  await page.keyboard.press("Home");
  await page.keyboard.press("Shift+End");
  await palette("ECA: Add Selection or Cursor to Chat");
  await see(".chip", "src/main.rs:2-2");
  await type("what is this?");
  await see(".block.text", "what is this");
  await idle();
  const request = await lastRequest();
  assert.match(request, /good morning/);
  assert.ok(!(await chat.locator(".chip").count()));
});

check("a selection is rewritten once its proposal is accepted", async () => {
  await openFile("main.rs");
  await page.locator(".monaco-editor .view-line", { hasText: "good morning" }).first().click();
  await page.keyboard.press("Home");
  await page.keyboard.press("Shift+End");
  await palette("ECA: Rewrite Selection…");
  await page.locator(".quick-input-widget", { hasText: "Rewrite the selection how?" }).waitFor();
  await page.locator(".quick-input-widget input").fill('say println!("rewritten");');
  await page.keyboard.press("Enter");
  await page.locator(".tab", { hasText: "main.rs (proposed rewrite)" }).waitFor();
  await page.locator(".monaco-diff-editor .modified .view-line", { hasText: "rewritten" }).waitFor();
  await picture(page, "workbench-rewrite");
  await page.locator(".notifications-toasts").getByRole("button", { name: "Replace" }).click();
  await page.locator(".tab", { hasText: "proposed rewrite" }).waitFor({ state: "detached" });
  await page.locator(".monaco-editor .view-line", { hasText: "rewritten" }).first().waitFor();
  // It is in the editor, where it can be undone; the file on the disk is the user's to save.
  assert.match(place.read(), /good morning/);
  await page.locator(".monaco-editor .view-line", { hasText: "rewritten" }).first().click();
  await page.keyboard.press("Control+z");
  await page.locator(".monaco-editor .view-line", { hasText: "good morning" }).first().waitFor();
});

/** Puts the cursor at the end of a line of the open file. */
async function toEndOf(line) {
  await page.locator(".monaco-editor .view-line", { hasText: line }).first().click();
  await page.keyboard.press("End");
}

/** Chooses when completions come, in the editor of settings. */
async function turnOn(when) {
  await palette("Preferences: Open Settings (UI)");
  await page.locator(".settings-editor .search-container .native-edit-context, .settings-editor .search-container textarea").first().focus();
  await page.keyboard.type("ecaRs.inlineCompletion");
  const choice = page.locator(".settings-editor .setting-item-contents", { hasText: "Inline Completion" }).first().locator("select");
  await choice.waitFor();
  await picture(page, "workbench-settings");
  await choice.selectOption(when);
  // It is marked as set once it is written.
  await page.locator(".settings-editor .setting-item-contents.is-configured", { hasText: "Inline Completion" }).waitFor();
}

const ghost = () => page.locator(".monaco-editor .ghost-text-decoration, .monaco-editor .ghost-text-decoration-preview", { hasText: "evening" }).first();
/** Longer than the pause in typing that is waited for: whoever would ask has asked then. */
const nobodyAsks = () => page.waitForTimeout(1_000);
const asked = async () => (await model.requests()).length;

check("a completion is asked for at the cursor, shown as ghost text, and accepted with Tab", async () => {
  await openFile("evening.rs");
  await toEndOf("let sum =");
  const before = await asked();
  await page.keyboard.press("Control+k");
  await page.keyboard.press("Space");
  await ghost().waitFor();
  await picture(page, "workbench-ghost");
  await page.keyboard.press("Tab");
  await page.locator(".monaco-editor .view-line", { hasText: "let sum = 1234 + evening();" }).first().waitFor();
  assert.equal(await ghost().count(), 0);
  assert.equal(await asked(), before + 1);
  await page.keyboard.press("Control+z");
  // It is off unless the user turns it on: VS Code asks, and nobody answers.
  await palette("Trigger Inline Suggestion");
  await page.keyboard.type("7");
  await page.locator(".monaco-editor .view-line", { hasText: "let sum = 7" }).first().waitFor();
  await nobodyAsks();
  assert.equal(await asked(), before + 1);
});

check("why there is no completion is said to who asked", async () => {
  await openFile("silent.rs");
  await toEndOf("silent(");
  await palette("ECA: Complete at the Cursor");
  const toast = page.locator(".notifications-toasts", { hasText: "the key is wrong" });
  await toast.getByRole("button", { name: "Show Log" }).waitFor();
  await picture(page, "workbench-ghost-refused");
  await palette("Notifications: Clear All Notifications");
  await toast.waitFor({ state: "hidden" });
});

check("completions come while typing, once that is turned on", async () => {
  await turnOn("whileTyping");
  await openFile("evening.rs");
  await toEndOf("let sum =");
  await page.keyboard.type(" ");
  await ghost().waitFor();
  await picture(page, "workbench-ghost-typing");
  // What was put away comes back when VS Code is told so, and costs nothing.
  const paid = await asked();
  await page.keyboard.press("Escape");
  await ghost().waitFor({ state: "detached" });
  await palette("Trigger Inline Suggestion");
  await ghost().waitFor();
  // Who types along is not asked about again.
  await page.keyboard.type("12");
  await nobodyAsks();
  assert.equal(await asked(), paid);
  await ghost().waitFor();
  await page.keyboard.press("Tab");
  await page.locator(".monaco-editor .view-line", { hasText: /let\ssum.*1234\s\+\sevening/ }).first().waitFor();
  await palette("File: Revert File");
});

check("problems that VS Code knows reach the model", async () => {
  await openFile("broken.json");
  await page.locator(".squiggly-error").first().waitFor();
  await type("call editor_diagnostics {}\nsay I see");
  await see(".block.text", "I see");
  await idle();
  const request = await lastRequest();
  assert.match(request, /broken\.json/);
  assert.match(request, /[Cc]olon expected/);
});

check("definitions and uses come from VS Code's extensions", async () => {
  const path = `${place.project}/look.css`;
  await type(`call editor_definition ${JSON.stringify({ path, line: 2, symbol: "--main" })}\nsay found it`);
  await see(".block.text", "found it");
  await idle();
  assert.match(await lastRequest(), /look\.css:1:\d+/);
  await type(`call editor_references ${JSON.stringify({ path, line: 1, symbol: "--main" })}\nsay found them`);
  await see(".block.text", "found them");
  await idle();
  assert.match(await lastRequest(), /look\.css:2:\d+/);
});

check("a question of the model is answered in the chat", async () => {
  await type('call ask_user {"question":"Which colour?","options":[{"label":"red","description":"warm"},{"label":"blue"}]}\nsay thanks');
  await see(".question", "Which colour?");
  await picture(page, "workbench-question");
  await chat.locator(".question .option", { hasText: "red" }).click();
  await see(".block.text", "thanks");
  await idle();
  assert.match(await lastRequest(), /red/);
});

check("another model is picked, in another chat", async () => {
  await palette("ECA: New Chat");
  await see(".welcome", "Welcome");
  await chat.locator(".model").click();
  await page.locator(".quick-input-widget .monaco-list-row", { hasText: "mock/other" }).click();
  await see(".model", "other");
  await type("say from the other");
  await see(".block.text", "from the other");
  await idle();
  assert.equal((await model.requests()).at(-1).model, "other");
  await palette("ECA: Chats…");
  const rows = page.locator(".quick-input-widget .monaco-list-row");
  await rows.nth(1).waitFor();
  await picture(page, "workbench-chats");
  await page.locator(".quick-input-widget .monaco-list-row:not(:has-text('shown'))").first().click();
  await see(".block.text", "thanks");
  await see(".model", "scripted");
});

check("a server that is killed is started again, and the chat goes on", async () => {
  await type("words 5000 20");
  await answered("word3 ");
  const old = serverProcess();
  assert.ok(old, "the server's process was not found");
  process.kill(Number(old), "SIGKILL");
  await see(".block.note", "SIGKILL");
  await picture(page, "workbench-crash");
  await type("reset\nsay back again");
  await see(".block.text", "back again");
  await idle();
  assert.notEqual(serverProcess(), old);
  assert.match(await lastRequest(), /Which colour/);
});

check("a window that is loaded again goes on with the same chat", async () => {
  await page.reload();
  await see(".block.text", "back again");
  await see(".model", "scripted");
  await picture(page, "workbench-reloaded");
});

check("a background job is listed, read as it prints, and killed", async () => {
  const shell = { command: "for i in 1 2 3; do echo line $i; done; while sleep 1; do date; done", background: "clock" };
  await type(`call shell_command ${JSON.stringify(shell)}\nsay the clock runs`);
  await see(".tool.waiting", "clock");
  await chat.locator(".tool.waiting").getByRole("button", { name: /^Approve/ }).first().click();
  await see(".block.text", "the clock runs");
  await idle();
  await see(".progress .jobs", "1 background job");
  await picture(page, "workbench-job-chat");
  await chat.locator(".progress .jobs").click();
  const row = page.locator(".quick-input-widget .monaco-list-row", { hasText: "clock" });
  await row.waitFor();
  assert.match(await row.innerText(), /running/);
  await picture(page, "workbench-jobs");
  await page.keyboard.press("Enter");
  await page.locator(".tab.active", { hasText: "clock (job-1).log" }).waitFor();
  const line = (text) => page.locator(".monaco-editor .view-line", { hasText: text }).first();
  await line("line 3").waitFor();
  const lines = () => page.locator(".monaco-editor .view-line").count();
  const before = await lines();
  await wait("more output", async () => (await lines()) > before);
  await picture(page, "workbench-job");
  await page.keyboard.type("x");
  await page.locator(".monaco-editor-overlaymessage", { hasText: "read-only" }).waitFor();
  await page.locator(".statusbar-item", { hasText: "ECA" }).hover();
  await page.locator(".monaco-hover, .workbench-hover", { hasText: "1 background job" }).first().waitFor();
  await picture(page, "workbench-job-tooltip");
  await line("line 3").click();
  await palette("ECA: Kill Background Job…");
  const dialog = page.locator(".monaco-dialog-box", { hasText: "Kill “clock”?" });
  await dialog.waitFor();
  await picture(page, "workbench-job-kill");
  await dialog.getByRole("button", { name: "Kill" }).click();
  await line("[killed after").waitFor();
  await chat.locator(".progress .jobs").waitFor({ state: "hidden" });
  await picture(page, "workbench-job-killed");
  await palette("ECA: Kill Background Job…");
  await page.locator(".notifications-toasts", { hasText: "No background job is running." }).waitFor();
  await palette("ECA: Background Jobs…");
  await row.waitFor();
  assert.match(await row.innerText(), /killed/);
  await page.keyboard.press("Escape");
  // The server dies, and a job with it.
  await type(`call shell_command ${JSON.stringify({ ...shell, background: "second clock" })}\nsay it runs again`);
  await chat.locator(".tool.waiting").getByRole("button", { name: /^Approve/ }).first().click();
  await see(".progress .jobs", "1 background job");
  await palette("ECA: Background Jobs…");
  await page.locator(".quick-input-widget .monaco-list-row", { hasText: "second clock" }).waitFor();
  await page.keyboard.press("Enter");
  await page.locator(".tab.active", { hasText: "second clock (job-2).log" }).waitFor();
  process.kill(Number(serverProcess()), "SIGKILL");
  await line("[this job ended with its server]").waitFor();
  await chat.locator(".progress .jobs").waitFor({ state: "hidden" });
  await picture(page, "workbench-job-lost");
});
