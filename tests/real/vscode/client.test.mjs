// The parts of the extension that do not need VS Code, with the real language client, against the real server.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { parts } from "./parts.mjs";
import { client, withClientOf } from "./inside.mjs";
import { editCall, startModel, wait, workspace } from "./support.mjs";

const { notOffered, Chats, mentions, apply, revert, sides, page, tokenAt } = await parts();

let model;
before(async () => {
  model = await startModel();
});
after(() => model.stop());

const withClient = (run, changes) => withClientOf(model, run, changes);

const lastRequest = async () => JSON.stringify((await model.requests()).at(-1).messages);

describe("without a server", () => {
  test("a diff gives both sides of a change", () => {
    const cases = [
      ["a\nb\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", "a\nB\nc\n"],
      ["a\r\nb\r\n", "@@ -1,2 +1,2 @@\n a\n-b\n+B\n", "a\r\nB\r\n"],
      ["", "--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+one\n+two\n", "one\ntwo\n"],
      ["a\nb\n", "@@ -1,2 +1,4 @@\n a\n+x\n+y\n b\n", "a\nx\ny\nb\n"],
      ["a\nb\nc\nd\ne\n", "@@ -1 +1 @@\n-a\n+A\n@@ -5 +5 @@\n-e\n+E\n", "A\nb\nc\nd\nE\n"],
      ["-- x\ny\n", "@@ -1,2 +1 @@\n--- x\n y\n", "y\n"],
      ["a\n\nb\n", "@@ -1,3 +1,3 @@\n a\n \n-b\n+c\n", "a\n\nc\n"],
      ["a", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n", "b"],
    ];
    for (const [old, diff, fresh] of cases) {
      assert.equal(apply(old, diff), fresh, diff);
      assert.equal(revert(fresh, diff), old, diff);
    }
  });

  test("a diff of another text is refused, and still shows its hunks", () => {
    const diff = "@@ -1,2 +1,2 @@\n a\n-b\n+B\n@@ -9,1 +9,1 @@\n-i\n+I\n";
    for (const text of ["x\ny\n", "", "a\n"]) assert.equal(apply(text, diff), undefined);
    assert.equal(apply("a\nb\n", "no diff at all"), undefined);
    assert.deepEqual(sides(diff), { before: "a\nb\n⋯\ni", after: "a\nB\n⋯\nI" });
  });

  test("what is being completed is found before the cursor", () => {
    const cases = [
      ["/co", { kind: "command", query: "co", start: 0 }],
      ["look at @src/m", { kind: "context", query: "src/m", start: 8 }],
      ["(#ma", { kind: "file", query: "ma", start: 1 }],
      ["@", { kind: "context", query: "", start: 0 }],
      ["me@example.org", undefined],
      ["a /co", undefined],
      ["@file and more", undefined],
      ["", undefined],
    ];
    for (const [text, expected] of cases) assert.deepEqual(tokenAt(text, text.length), expected, text);
    assert.deepEqual(tokenAt("@ab cd", 3), { kind: "context", query: "ab", start: 0 });
  });

  test("a mention is a word by itself", () => {
    for (const [text, expected] of [
      ["see @a.rs", true],
      ["see @a.rs, please", true],
      ["(@a.rs)", true],
      ["see @a.rs2", false],
      ["x@a.rs", false],
      ["@a.rs2 and @a.rs", true],
    ]) {
      assert.equal(mentions(text, "@a.rs"), expected, text);
    }
  });

  test("the page allows nothing but its own script and style", () => {
    const html = page({ nonce: "N", source: "self:", script: "s.js", style: "s.css" });
    const policy = /Content-Security-Policy" content="([^"]*)"/.exec(html)[1];
    assert.equal(policy, "default-src 'none'; img-src data:; style-src self:; script-src 'nonce-N'");
    assert.ok(!/https?:/.test(html));
  });

  test("a message that the server never took comes back", async () => {
    const restored = [];
    const nobody = () => {};
    const shower = { patched: nobody, changed: nobody, switched: nobody, attention: nobody, fileChanged: nobody, restore: (_, text) => restored.push(text) };
    let fail;
    const wire = { notify: nobody, request: () => new Promise((_, reject) => (fail = reject)) };
    const chats = new Chats(wire, shower, { short: (path) => path, cursor: nobody, current: (context) => context });
    chats.send("hello");
    chats.serverDied("gone");
    fail(new Error("the connection is gone"));
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(restored, ["hello"]);
    assert.deepEqual(chats.current.blocks.map((block) => block.text), ["gone"]);
    chats.send("again");
    fail(new Error("it is full"));
    await wait("the refusal", () => !chats.current.busy);
    assert.deepEqual(restored, ["hello", "again"]);
    assert.match(chats.current.blocks.at(-1).text, /could not be sent: it is full/);
  });

  test("a program that is not there is named", async () => {
    const place = workspace(model);
    const { server, seen } = client(place, { command: `${place.root}/no-such-program` });
    await assert.rejects(server.start(), /no-such-program' could not be started: there is no such program.*ecaRs\.serverPath/);
    assert.equal(seen.states.at(-1)[0], "failed");
    await assert.rejects(server.request("chat/list", {}), /no such program/);
  });

  test("a program that ends at once is a failure, not a loop", async () => {
    const place = workspace(model);
    const { server, seen } = client(place, { command: "/bin/false" });
    await assert.rejects(server.start(), /ended before it was ready \(code 1\)/);
    assert.equal(server.state, "failed");
    assert.equal(seen.deaths.length, 0);
  });
});

describe("with the server", () => {
  test("the client says what it can, and is told what there is", () =>
    withClient(async ({ server, chats }) => {
      await server.start();
      await wait("models", () => chats.models.includes("mock/other"));
      assert.deepEqual(chats.agents.slice(0, 2), ["code", "plan"]);
      const head = chats.head();
      assert.equal(head.model, "mock/scripted");
      assert.equal(head.agent, "code");
      assert.ok(head.welcome.length > 0);
      await assert.rejects(server.request("no/such", {}), (error) => notOffered(error));
      await assert.rejects(server.request("chat/update", { chatId: "nobody" }), (error) => !notOffered(error));
    }));

  test("an answer streams in pieces and ends", () =>
    withClient(async ({ chats, seen, text, finish }) => {
      chats.send("words 60 2");
      assert.ok(chats.current.busy);
      await finish();
      assert.match(text(), /word0 .*word59/);
      assert.ok(seen.patches.filter((patch) => patch.type === "append").length > 20, "it came in too few pieces");
      assert.deepEqual(chats.current.blocks.map((block) => block.kind), ["user", "text"]);
      assert.equal(chats.current.blocks[1].open, false);
      assert.ok(chats.head().usage.sessionTokens > 0);
      assert.equal(chats.head().usage.limit.context, 32000);
    }));

  test("reasoning is a block of its own, with its time", () =>
    withClient(async (one) => {
      await one.prompt("think the cat sat\n+ say hello there");
      const [, reason, said] = one.chats.current.blocks;
      assert.equal(reason.kind, "reason");
      assert.match(reason.text, /the cat sat/);
      assert.equal(reason.open, false);
      assert.equal(typeof reason.ms, "number");
      assert.match(said.text, /hello there/);
    }));

  test("an edit waits with its diff, and is made when it is approved", () =>
    withClient(async (one, place) => {
      const before = place.read();
      one.chats.send(`${editCall(place, "hello", "good morning")}\nsay finished it`);
      const call = await one.call("waiting");
      assert.equal(call.details.type, "fileChange");
      assert.equal(apply(before, call.details.diff), before.replace("hello", "good morning"));
      assert.equal(place.read(), before);
      assert.deepEqual(one.seen.attention, ["tool"]);
      one.chats.current.approve(call, false);
      await one.finish();
      assert.equal(call.state, "done");
      assert.match(one.text(), /finished it/);
      assert.match(place.read(), /good morning/);
      assert.equal(one.seen.file, place.main);
      assert.equal(revert(place.read(), call.details.diff), before);
    }));

  test("a rejected edit is not made, and the model hears of it", () =>
    withClient(async (one, place) => {
      const before = place.read();
      one.chats.send(`${editCall(place, "hello", "bye")}\nsay as you wish`);
      one.chats.current.reject(await one.call("waiting"));
      await one.finish();
      assert.equal(place.read(), before);
      assert.match(await lastRequest(), /reject|refus|declin/i);
      assert.equal(one.chats.current.waiting().length, 0);
    }));

  test("always means the rest of the chat", () =>
    withClient(async (one, place) => {
      one.chats.send(`${editCall(place, "hello", "one")}\n${editCall(place, "one", "two")}\nsay both`);
      one.chats.current.approve(await one.call("waiting"), true);
      await one.finish();
      assert.match(place.read(), /two/);
      assert.deepEqual(one.seen.attention, ["tool"]);
    }));

  test("a stop ends the answer, and what waits goes back into the prompt", () =>
    withClient(async (one) => {
      one.chats.send("words 5000 20");
      await wait("the first words", () => /word3/.test(one.text()));
      one.chats.send("and be quick");
      assert.deepEqual(one.chats.head().queued, ["and be quick"]);
      assert.ok(one.chats.current.stop());
      await one.finish();
      assert.deepEqual(one.seen.restored, ["and be quick"]);
      assert.doesNotMatch(one.text(), /word4999/);
      assert.equal(one.chats.current.stop(), false);
      await one.prompt("say still here");
      assert.match(one.text(), /still here/);
    }));

  test("a message during an answer reaches the model", () =>
    withClient(async (one, place) => {
      one.chats.send(`${editCall(place, "hello", "bye")}\nsay fine`);
      const call = await one.call("waiting");
      one.chats.send("use marzipan");
      one.chats.current.approve(call, false);
      await wait("both turns", () => !one.chats.current.busy && one.chats.head().queued.length === 0);
      assert.match(await lastRequest(), /use marzipan/);
      assert.ok(one.chats.current.blocks.some((block) => block.kind === "user" && block.text === "use marzipan"));
    }));

  test("a message that is sent at once takes the place of the answer", () =>
    withClient(async (one) => {
      one.chats.send("words 5000 20");
      await wait("the first words", () => /word3/.test(one.text()));
      one.chats.send("and be quick");
      one.chats.send("reset\nsay instead of it", true);
      assert.deepEqual(one.seen.restored, ["and be quick"]);
      await wait("the new answer", () => {
        if (/instead of it/.test(one.text())) return true;
        assert.ok(one.chats.current.busy, "it seemed to be over in between");
        return false;
      });
      await one.finish();
      assert.doesNotMatch(one.text(), /word4999/);
      assert.deepEqual(one.chats.head().queued, []);
      await one.prompt("say and so on");
      assert.match(one.text(), /and so on/);
    }));

  test("what is mentioned goes along, and what is added", () =>
    withClient(async (one, place) => {
      await one.server.start();
      const items = await wait("the file", async () => {
        const found = await one.chats.complete("context", "notes");
        return found.some((item) => item.word === "@notes.md") && found;
      });
      assert.equal(items.find((item) => item.word === "@notes.md").detail, "file");
      const files = await one.chats.complete("file", "main");
      assert.ok(files.some((item) => item.word === "src/main.rs" && item.label === "#src/main.rs"));
      assert.ok(Array.isArray(await one.chats.complete("command", "")));
      one.chats.addContext({ type: "file", path: place.main, linesRange: { start: 2, end: 2 } });
      one.chats.addContext({ type: "file", path: place.main, linesRange: { start: 2, end: 2 } });
      assert.deepEqual(one.chats.head().contexts, ["src/main.rs:2-2"]);
      await one.prompt("what is in @notes.md ?");
      const request = await lastRequest();
      assert.match(request, /marzipan/);
      assert.match(request, /println/);
      assert.doesNotMatch(request, /fn main/);
      assert.deepEqual(one.chats.head().contexts, []);
    }));

  test("model and agent are chosen per chat", () =>
    withClient(async (one) => {
      await one.server.start();
      await wait("models", () => one.chats.models.length > 1);
      one.chats.chooseModel(one.chats.current, "mock/other");
      one.chats.chooseAgent(one.chats.current, "plan");
      await one.prompt("say hi");
      assert.equal((await model.requests()).at(-1).model, "other");
      assert.equal(one.chats.head().agent, "plan");
      one.chats.begin();
      assert.equal(one.chats.head().model, "mock/scripted");
      assert.equal(one.chats.head().agent, "code");
    }));

  test("trust lets tools run without asking", () =>
    withClient(async (one, place) => {
      await one.chats.setTrust(one.chats.current, true);
      await one.prompt(`${editCall(place, "hello", "trusted")}\nsay done it`);
      assert.match(place.read(), /trusted/);
      assert.deepEqual(one.seen.attention, []);
    }));

  test("a question of the model is answered in the chat", () =>
    withClient(async (one) => {
      const options = [{ label: "red" }, { label: "blue" }];
      one.chats.send(`call ask_user ${JSON.stringify({ question: "Which colour?", options })}\nsay thanks`);
      const block = await wait("the question", () => one.chats.current.blocks.find((some) => some.kind === "question"));
      assert.equal(block.question, "Which colour?");
      assert.deepEqual(block.options.map((option) => option.label), ["red", "blue"]);
      one.chats.current.answer(block.id, "blue");
      await one.finish();
      assert.equal(block.answer, "blue");
      assert.match(await lastRequest(), /blue/);
    }));

  test("the problems that the editor knows reach the model", () =>
    withClient(async (one) => {
      await one.prompt("call editor_diagnostics {}\nsay I see");
      const request = await lastRequest();
      assert.equal(one.seen.asked.length, 1, request);
      assert.match(request, /the soup is cold/);
      assert.match(request, /main\.rs[^"]*2/);
    }));

  test("several chats, a fork, a way back, a new name, and deletion", () =>
    withClient(async (one, place) => {
      const first = one.chats.current;
      await one.prompt(`${editCall(place, "hello", "first")}\nsay one`.replace(/^call/, "say hello\ncall"));
      const { contentId } = first.blocks[0];
      assert.ok(contentId);
      await one.server.request("chat/update", { chatId: first.id, title: "Breakfast" });
      await wait("the title", () => one.chats.get(first.id).title === "Breakfast");
      const second = one.chats.begin();
      assert.notEqual(second, first);
      await one.prompt("say two");
      assert.match(one.text(), /two/);
      await one.server.request("chat/fork", { chatId: first.id, contentId });
      await wait("the fork", () => one.seen.shown && one.seen.shown !== first && one.seen.shown !== second);
      assert.equal(one.chats.current.blocks[0].kind, "user");
      await one.server.request("chat/rollback", { chatId: second.id, contentId: second.blocks[0].contentId, include: ["messages"] });
      assert.equal(second.blocks.length, 0);
      await one.chats.open(first.id);
      await one.server.request("chat/delete", { chatId: first.id });
      await wait("its end", () => !one.chats.get(first.id));
      assert.notEqual(one.chats.current, first);
      const { chats } = await one.server.request("chat/list", {});
      assert.ok(!chats.some((chat) => chat.id === first.id));
    }));

  test("a stored chat is opened again by a new server", () =>
    withClient(async (one, place) => {
      await one.prompt("think about it\n+ say I remember");
      const { id } = one.chats.current;
      await one.server.stop();
      const other = client(place);
      assert.equal(await other.chats.open("nobody"), false);
      assert.equal(await other.chats.open(id), true);
      assert.match(other.text(), /I remember/);
      assert.equal(other.chats.current.id, id);
      await other.prompt("say and go on");
      assert.match(other.text(), /and go on/);
      await other.server.stop();
    }));

  test("a server that is killed is started again, and the chat goes on", () =>
    withClient(async (one) => {
      await one.prompt("say before");
      one.chats.send("words 5000 20");
      await wait("the first words", () => /word3/.test(one.text()));
      process.kill(one.server.processId, "SIGKILL");
      await wait("its death", () => one.seen.deaths.length === 1);
      assert.match(one.seen.deaths[0], /signal SIGKILL.*started again/);
      assert.equal(one.chats.current.busy, false);
      assert.equal(one.chats.current.blocks.at(-1).kind, "note");
      await one.prompt("reset\nsay after");
      assert.match(one.text(), /after/);
      assert.match(await lastRequest(), /say before/);
    }));

  test("a server that dies again and again is left alone, until the user wants it", () =>
    withClient(async (one) => {
      for (let death = 1; death <= 4; death += 1) {
        await wait("the server", () => one.server.state === "running" || one.server.start().then(() => true, () => false));
        process.kill(one.server.processId, "SIGKILL");
        await wait("its death", () => one.seen.deaths.length === death);
      }
      assert.equal(one.server.state, "failed");
      assert.match(one.seen.states.at(-1)[1], /ended unexpectedly/);
      await one.server.restart();
      await one.prompt("say back again");
      assert.match(one.text(), /back again/);
    }));
});
