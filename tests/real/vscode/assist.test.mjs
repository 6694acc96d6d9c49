// Completion at the cursor and background jobs, with the real language client, against the real server.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import { client, withClientOf } from "./inside.mjs";
import { parts } from "./parts.mjs";
import { binary, startModel, wait, workspace } from "./support.mjs";

const { Completer, MOST_CHARACTERS, InlineCompletion, health, countText, pageText, stateText, vscode } = await parts();
const [INVOKE, AUTOMATIC] = [0, 1];

let model;
before(async () => {
  model = await startModel();
});
after(() => model.stop());
afterEach(() => {
  globalThis.testSettings = globalThis.testEditor = globalThis.testCommands = undefined;
  vscode.window.shown.length = 0;
});

const withClient = (run) => withClientOf(model, run);
const source = () => new vscode.CancellationTokenSource();
const spot = (before, after = "", changes = {}) => ({ document: "file:///a", version: 1, before, after, ...changes });
const asked = async () => (await model.requests()).length;

/** A way to a server that answers with these items or errors, one after the other. */
function answering(...answers) {
  const sent = [];
  const request = (method, params) => {
    sent.push({ method, params });
    return Promise.resolve(answers[sent.length - 1]);
  };
  return { sent, request, notify: () => {} };
}

const item = (text, line, from, to = from, docVersion = 1) => ({
  text,
  docVersion,
  range: { start: { line, character: from }, end: { line, character: to } },
});

describe("what is asked and shown", () => {
  test("the cursor is counted from 1, in UTF-16, on the last line before it", async () => {
    const cases = [
      ["", { line: 1, character: 1 }],
      ["ab", { line: 1, character: 3 }],
      ["a\n", { line: 2, character: 1 }],
      ["a\r\n\u{1F600}b", { line: 2, character: 4 }],
    ];
    for (const [text, position] of cases) {
      const wire = answering({});
      await new Completer(wire).ask(spot(text, "rest", { path: "/a" }), source().token);
      const [{ method, params }] = wire.sent;
      assert.equal(method, "completion/inline");
      assert.deepEqual(params, { docText: `${text}rest`, docVersion: 1, position, path: "/a" });
    }
  });

  test("a proposal that does not fit the cursor's line is not shown", async () => {
    const cases = [
      ["at the cursor", item("x", 1, 4), { text: "x", back: 0, ahead: 0 }],
      ["over what is before", item("x", 1, 2, 4), { text: "x", back: 2, ahead: 0 }],
      ["over what is behind", item("x", 1, 4, 5), { text: "x", back: 0, ahead: 1 }],
      ["beyond the end of the line", item("x", 1, 4, 6), undefined],
      ["behind the cursor", item("x", 1, 5), undefined],
      ["before the cursor", item("x", 1, 1), undefined],
      ["on another line", item("x", 2, 1), undefined],
      ["about another text", item("x", 1, 4, 4, 2), undefined],
      ["nothing at all", item("", 1, 4), undefined],
    ];
    for (const [name, only, expected] of cases) {
      const { proposal } = await new Completer(answering({ items: [only] })).ask(spot("abc", "d\nef"), source().token);
      assert.deepEqual(proposal, expected, name);
    }
    assert.deepEqual(await new Completer(answering(null)).ask(spot("abc"), source().token), { problem: undefined });
    const both = answering({ items: [item("no", 2, 1), item("yes", 1, 4)] });
    assert.equal((await new Completer(both).ask(spot("abc"), source().token)).proposal.text, "yes");
  });

  test("who types what is proposed is not asked for money again", async () => {
    const completer = new Completer(answering({ items: [item("print()", 1, 2)] }));
    await completer.ask(spot("a", "\nend"), source().token);
    const known = (before, changes = {}, after = "\nend") => completer.known(spot(before, after, { version: 9, ...changes }))?.proposal?.text;
    assert.equal(known("a"), "print()");
    assert.equal(known("apri"), "nt()");
    assert.equal(known("aprint()"), undefined);
    assert.equal(known("apX"), undefined);
    assert.equal(known(""), undefined);
    assert.equal(known("apri", { document: "file:///b" }), undefined);
    assert.equal(known("apri", {}, ")\nend"), undefined);
  });

  test("where the model had nothing to say it is not asked again, where it failed it is", async () => {
    const silent = new Completer(answering({ error: { type: "info", message: "nothing here" } }));
    await silent.ask(spot("a"), source().token);
    assert.deepEqual(silent.known(spot("a")), { proposal: undefined });
    assert.equal(silent.known(spot("ab")), undefined);
    const failing = new Completer(answering({ error: { type: "warning", message: "it broke" } }));
    const { problem } = await failing.ask(spot("a"), source().token);
    assert.deepEqual(problem, { type: "warning", message: "it broke" });
    assert.equal(failing.known(spot("a")), undefined);
    assert.deepEqual([failing.isNews(problem), failing.isNews(problem)], [true, false]);
    failing.serverStarted();
    assert.equal(failing.isNews(problem), true);
  });

  test("a text that is too large is not sent", async () => {
    const wire = answering({});
    const { problem } = await new Completer(wire).ask(spot("x".repeat(MOST_CHARACTERS), "y"), source().token);
    assert.match(problem.message, /too large/);
    assert.equal(wire.sent.length, 0);
  });
});

/** A document as VS Code has it, with the cursor at `|`. */
function openDocument(marked, uri = "file:///project/a.rs") {
  const [before, after] = marked.split("|");
  const lines = before.split("\n");
  const document = {
    uri: Object.assign(vscode.Uri.parse(uri), { scheme: uri.split(":")[0] }),
    version: 1,
    isClosed: false,
    getText: () => before + after,
    offsetAt: ({ line, character }) => lines.slice(0, line).join("\n").length + (line > 0 ? 1 : 0) + character,
  };
  return { document, position: new vscode.Position(lines.length - 1, lines.at(-1).length) };
}

describe("completion with the server", () => {
  /** Ghost text as VS Code asks for it; `told` is what went to the log. */
  function ghost(server) {
    const told = [];
    const inline = new InlineCompletion(server, (problem) => told.push(problem?.message));
    const provide = ({ document, position }, triggerKind, token = source().token, chosen) =>
      inline.provideInlineCompletionItems(document, position, { triggerKind, selectedCompletionInfo: chosen }, token);
    return { inline, told, provide };
  }

  test("the model sees the text around the cursor, and its answer goes there", () =>
    withClient(async ({ server }) => {
      await server.start();
      const text = openDocument("/*\nsay print(1);\n*/\n\u{1F600}x.|\nend", "file:///project/a.rs");
      globalThis.testSettings = { inlineCompletion: "onRequest" };
      const { provide, told } = ghost(server);
      const [proposed, ...others] = await provide(text, INVOKE);
      assert.deepEqual(others, []);
      assert.equal(proposed.insertText, "print(1);");
      assert.deepEqual([proposed.range.start, proposed.range.end], [text.position, text.position]);
      const request = JSON.stringify((await model.requests()).at(-1).messages);
      assert.match(request, /\/project\/a\.rs/);
      assert.match(request, /\u{1F600}x\.<ECA_TAG>\\nend/u);
      const before = await asked();
      assert.equal((await provide(text, INVOKE)).length, 1);
      assert.equal(await asked(), before, "the same was asked twice");
      assert.deepEqual(told, [undefined, undefined]);
    }));

  test("nothing is asked unless the user turned it on", () =>
    withClient(async ({ server }) => {
      await server.start();
      const { provide } = ghost(server);
      const before = await asked();
      for (const [setting, kind, expected] of [
        [undefined, AUTOMATIC, 0],
        [undefined, INVOKE, 0],
        ["off", INVOKE, 0],
        ["onRequest", AUTOMATIC, 0],
        ["onRequest", INVOKE, 1],
        ["whileTyping", AUTOMATIC, 1],
      ]) {
        globalThis.testSettings = { inlineCompletion: setting };
        // Each time another text, so that nothing is known of it.
        const items = await provide(openDocument(`say yes\n${setting}${kind}|`), kind);
        assert.equal(items.length, expected, `${setting} ${kind}`);
      }
      assert.equal((await asked()) - before, 2);
    }));

  test("the own command asks even so, once, and says why nothing came", () =>
    withClient(async ({ server }) => {
      const { inline, provide } = ghost(server);
      const run = async (text) => {
        globalThis.testEditor = text;
        let items = [];
        globalThis.testCommands = { "editor.action.inlineSuggest.trigger": async () => (items = await provide(text, INVOKE)) };
        await inline.ask();
        return items.map((one) => one.insertText);
      };
      // The server is started for it.
      assert.deepEqual(await run(openDocument("say yes\n|")), ["yes"]);
      assert.equal(server.state, "running");
      const before = await asked();
      assert.deepEqual(await run(openDocument("say yes\n|")), ["yes"]);
      assert.equal((await asked()) - before, 1, "who asks expressly gets a new answer");
      assert.deepEqual(await provide(openDocument("say yes\n|"), INVOKE), [], "the wish is fulfilled once");
      assert.deepEqual(vscode.window.shown, []);
      await assert.rejects(run(openDocument("fail 401 the key is wrong\n|")), /No completion: .*the key is wrong/);
      assert.deepEqual(await run(openDocument("say  \n|")), []);
      assert.match(vscode.window.shown.at(-1).message, /^No completion: the model has nothing/);
      await run(openDocument("say yes\n|", "git:///project/a.rs"));
      assert.match(vscode.window.shown.at(-1).message, /cursor into a file/);
      // VS Code, with suggestions switched off, does not come back.
      globalThis.testEditor = openDocument("say yes\n|");
      globalThis.testCommands = {};
      await inline.ask();
      assert.match(vscode.window.shown.at(-1).message, /shows no inline suggestions/);
    }));

  test("who types on is not asked about, and the server hears of it", () =>
    withClient(async ({ server }) => {
      await server.start();
      globalThis.testSettings = { inlineCompletion: "whileTyping" };
      const { provide, told } = ghost(server);
      const before = await asked();
      const early = source();
      const first = provide(openDocument("say yes\na|"), AUTOMATIC, early.token);
      early.cancel();
      assert.deepEqual(await first, []);
      assert.equal(await asked(), before);
      // An answer of a hundred seconds: it ends now only if the server is told that nobody waits for it.
      const late = source();
      const second = provide(openDocument("words 5000 20\nb|"), AUTOMATIC, late.token);
      await wait("the question", async () => (await asked()) > before);
      late.cancel();
      assert.deepEqual(await second, []);
      assert.deepEqual(told, []);
    }));

  test("a text that changed meanwhile gets nothing of the old answer", () =>
    withClient(async ({ server }) => {
      await server.start();
      globalThis.testSettings = { inlineCompletion: "onRequest" };
      const { provide } = ghost(server);
      for (const change of [{ version: 2 }, { isClosed: true }]) {
        const text = openDocument(`words 20 10\n${Object.keys(change)}|`);
        const before = await asked();
        const answer = provide(text, INVOKE);
        await wait("the question", async () => (await asked()) > before);
        Object.assign(text.document, change);
        assert.deepEqual(await answer, []);
      }
    }));

  test("a problem is told once while typing, and forgotten when something is proposed again", () =>
    withClient(async ({ server }) => {
      await server.start();
      globalThis.testSettings = { inlineCompletion: "whileTyping" };
      const { provide, told } = ghost(server);
      for (const letter of ["a", "b"]) {
        assert.deepEqual(await provide(openDocument(`fail 401 the key is wrong\n${letter}|`), AUTOMATIC), []);
      }
      assert.equal(told.length, 1);
      assert.match(told[0], /the key is wrong/);
      assert.deepEqual(vscode.window.shown, []);
      assert.equal((await provide(openDocument("say yes\nc|"), AUTOMATIC)).length, 1);
      assert.equal(told.at(-1), undefined);
    }));

  test("what is chosen in the list of suggestions is gone on from", () =>
    withClient(async ({ server }) => {
      await server.start();
      globalThis.testSettings = { inlineCompletion: "whileTyping" };
      const text = openDocument("say (1);\npri|\nend");
      const range = new vscode.Range(new vscode.Position(1, 0), new vscode.Position(1, 3));
      const [proposed] = await ghost(server).provide(text, AUTOMATIC, source().token, { range, text: "println!" });
      assert.equal(proposed.insertText, "println!(1);");
      assert.equal(proposed.range, range);
      assert.match(JSON.stringify((await model.requests()).at(-1).messages), /println!<ECA_TAG>\\nend/);
    }));

  test("a server that does not run is woken, and nothing is asked before it runs", () =>
    withClient(async ({ server }) => {
      globalThis.testSettings = { inlineCompletion: "whileTyping" };
      const { provide } = ghost(server);
      const before = await asked();
      const text = openDocument("say yes\n|");
      assert.deepEqual(await provide(text, AUTOMATIC), []);
      assert.equal(server.state, "starting");
      assert.deepEqual(await provide(text, INVOKE), []);
      assert.match(vscode.window.shown.at(-1).message, /not running yet/);
      await server.start();
      assert.equal(await asked(), before);
      assert.equal((await provide(text, AUTOMATIC)).length, 1);
    }));

  test("a server that cannot start is not started by typing", async () => {
    globalThis.testSettings = { inlineCompletion: "whileTyping" };
    const { server, seen } = client(workspace(model), { command: "/bin/false" });
    const { provide } = ghost(server);
    assert.deepEqual(await provide(openDocument("say yes\n|"), AUTOMATIC), []);
    await wait("the failure", () => server.state === "failed");
    const states = seen.states.length;
    assert.deepEqual(await provide(openDocument("say yes\n|"), AUTOMATIC), []);
    assert.equal(seen.states.length, states);
  });

  test("a server that does not offer it is asked once", () =>
    withClient(async ({ server }) => {
      await server.start();
      let sent = 0;
      const other = {
        state: "running",
        request: () => {
          sent += 1;
          return server.request("no/such", {});
        },
      };
      globalThis.testSettings = { inlineCompletion: "whileTyping" };
      const { inline, provide, told } = ghost(other);
      for (const letter of ["a", "b"]) assert.deepEqual(await provide(openDocument(`x${letter}|`), AUTOMATIC), []);
      assert.deepEqual(await provide(openDocument("x|"), INVOKE), []);
      assert.equal(sent, 1);
      assert.deepEqual(told, ["This server does not complete at the cursor."]);
      inline.completer.serverStarted();
      await provide(openDocument("xc|"), AUTOMATIC);
      assert.equal(sent, 2);
    }));
});

describe("health", () => {
  test("says what is well", () =>
    withClient(async ({ server, chats }, place) => {
      const launch = { command: binary, args: [], env: {}, cwd: place.project };
      assert.deepEqual((await health("an editor", launch, chats, ["/a", "/b"])).slice(2), ["  The server is stopped; the chat starts it", "  The workspace is /a, /b"]);
      await server.start();
      await wait("models", () => chats.models.length > 0);
      chats.toolServers.set("broken", { type: "mcp", name: "broken", status: "failed" });
      const [editor, program, ...rest] = await health("an editor", launch, chats, []);
      assert.equal(editor, "✓ an editor");
      assert.match(program, /^✓ eca \d+\.\d+.* \(.*\)$/);
      assert.deepEqual(rest, [
        "✓ The server runs",
        `✓ It offers ${chats.models.length} models; the chat has mock/scripted`,
        "! Tools of broken: 0, failed",
        "! No folder is open",
      ]);
      chats.models = ["eca/guide"];
      assert.match((await health("", launch, chats, [])).join("\n"), /^! Only the built-in guide/m);
    }));

  test("says what is wrong", async () => {
    const { chats } = client(workspace(model));
    Object.assign(chats, { serverState: "failed", problem: "It fell over." });
    const launch = { args: [], env: {}, cwd: undefined };
    const missing = await health("", { ...launch, command: "no-such-program" }, chats, []);
    assert.match(missing[1], /^✗ There is no program no-such-program; .*ecaRs\.serverPath/);
    assert.equal(missing[2], "✗ It fell over.");
    assert.match((await health("", { ...launch, command: "/bin/false" }, chats, []))[1], /^✗ \/bin\/false --version fails/);
  });
});

describe("background jobs", () => {
  const start = (command, label) => `call shell_command ${JSON.stringify({ command, background: label })}`;

  test("are put into words", () => {
    const job = { id: "job-1", label: "server", summary: "npm start", status: "running", elapsed: "5s", chatId: "c" };
    const printed = { lines: [{ text: "one", stream: "stdout" }, { text: "two", stream: "stderr" }] };
    assert.equal(pageText(job, { lines: [] }), "$ npm start\n\n(nothing printed so far)\n");
    assert.equal(pageText(job, printed), "$ npm start\n\none\ntwo\n");
    const failed = { ...job, status: "failed", exitCode: 2 };
    assert.equal(pageText(failed, printed), "$ npm start\n\none\ntwo\n\n[failed with exit code 2 after 5s]\n");
    assert.equal(pageText({ ...failed, elapsed: "" }, { lines: [] }), "$ npm start\n\n(nothing printed)\n\n[failed with exit code 2]\n");
    assert.deepEqual(["running", "completed", "killed", "resting"].map((status) => stateText({ status, exitCode: 0 })), [
      "running",
      "ended",
      "killed",
      "resting",
    ]);
    assert.deepEqual([0, 1, 2].map(countText), ["", "1 background job", "2 background jobs"]);
  });

  test("are listed, read and killed", () =>
    withClient(async (one) => {
      await one.chats.setTrust(one.chats.current, true);
      const first = start("echo ready; sleep 600", "sleeper");
      await one.prompt(`${first}\n${start("echo oops >&2; exit 3", "failer")}\nsay both`);
      await wait("the end of the second", () => one.jobs.list.some((job) => job.status === "failed") || one.jobs.list.length === 1);
      const [job] = one.jobs.running;
      assert.equal(job.label, "sleeper");
      assert.equal(job.summary, "echo ready; sleep 600");
      assert.equal(job.chatId, one.chats.current.id);
      assert.equal(one.chats.head().jobs, "1 background job");
      await wait("its output", async () => /ready/.test(pageText(job, await one.jobs.read(job.id))));
      await one.jobs.refresh();
      assert.equal(one.jobs.list[0].id, job.id, "what runs comes first");
      assert.equal(await one.jobs.kill(job.id), true);
      assert.equal(await one.jobs.kill(job.id), false);
      await wait("its end", () => one.jobs.running.length === 0);
      assert.equal(one.jobs.get(job.id).status, "killed");
      assert.equal(one.chats.head().jobs, "");
      assert.equal(await one.jobs.kill("job-99"), false);
      assert.deepEqual((await one.jobs.read("job-99")).lines, []);
    }));

  test("end with their server", () =>
    withClient(async (one) => {
      await one.chats.setTrust(one.chats.current, true);
      await one.prompt(`${start("sleep 600", "sleeper")}\nsay it runs`);
      assert.equal(one.jobs.running.length, 1);
      process.kill(one.server.processId, "SIGKILL");
      await wait("their end", () => one.jobs.list.length === 0);
      await wait("another server", () => one.server.state === "running");
      await one.jobs.refresh();
      assert.deepEqual(one.jobs.list, []);
    }));
});
