// Our server under the official library of the Agent Client Protocol, and every message of both
// sides under its schema.

import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { Editor, startModel } from "./editor.mjs";

const allow = (optionId) => () => ({ outcome: { outcome: "selected", optionId } });

test("a session is opened, talked to and left", async (t) => {
  const editor = new Editor(t, { url: await startModel(t) });
  const welcome = await editor.initialize();
  assert.equal(welcome.protocolVersion, 1);
  assert.equal(welcome.agentInfo.name, "eca");
  assert.ok(welcome.agentCapabilities.loadSession);
  const { sessionId, modes, configOptions } = await editor.newSession();
  assert.ok(modes.availableModes.some((mode) => mode.id === modes.currentModeId));
  assert.equal(configOptions.find((option) => option.id === "model").currentValue, "mock/m1");
  assert.deepEqual(await editor.prompt(sessionId, "think hm\n+ say hello there"), { stopReason: "end_turn" });
  assert.equal(editor.text(sessionId).trim(), "hello there");
  assert.ok(editor.updates(sessionId, "agent_thought_chunk").length > 0);
  await editor.until((message) => message.params?.update?.sessionUpdate === "available_commands_update", "commands");
  const first = editor.transcript.findIndex(({ message }) => message.params?.sessionId === sessionId);
  const answer = editor.transcript.findIndex(({ message }) => message.result?.sessionId === sessionId);
  assert.ok(answer < first, "the session's answer comes before everything else about it");
  await editor.finish();
});

test("a call is asked about, shown as a diff, and made", async (t) => {
  const editor = new Editor(t, { url: await startModel(t), answers: { "session/request_permission": allow("allow_once") } });
  await editor.initialize();
  const { sessionId } = await editor.newSession();
  const path = join(editor.workspace, "a.txt");
  const steps = `call eca__write_file ${JSON.stringify({ path, content: "new\n" })}\nsay written`;
  assert.equal((await editor.prompt(sessionId, steps)).stopReason, "end_turn");
  assert.equal(readFileSync(path, "utf8"), "new\n");
  const [{ params }] = editor.asked;
  assert.deepEqual(params.options.map((option) => option.kind), ["allow_once", "allow_always", "reject_once"]);
  assert.deepEqual(params.toolCall.content, [{ type: "diff", path, newText: "new\n" }]);
  const statuses = editor.updates(sessionId).map((update) => update.status).filter(Boolean);
  // A call that is announced is pending, which is what no word means.
  assert.deepEqual(statuses, ["in_progress", "completed"]);
  await editor.finish();
});

test("a rejected call changes nothing", async (t) => {
  const editor = new Editor(t, { url: await startModel(t), answers: { "session/request_permission": allow("reject_once") } });
  await editor.initialize();
  const { sessionId } = await editor.newSession();
  const path = join(editor.workspace, "a.txt");
  await editor.prompt(sessionId, `call eca__write_file ${JSON.stringify({ path, content: "new\n" })}`);
  assert.ok(!existsSync(path));
  assert.equal(editor.updates(sessionId, "tool_call_update").at(-1).status, "failed");
  await editor.finish();
});

test("a cancelled turn says so", async (t) => {
  const editor = new Editor(t, { url: await startModel(t) });
  await editor.initialize();
  const { sessionId } = await editor.newSession();
  const turn = editor.prompt(sessionId, "words 100000 5");
  await editor.until((message) => message.params?.update?.sessionUpdate === "agent_message_chunk", "text");
  await editor.notify("session/cancel", { sessionId });
  assert.deepEqual(await turn, { stopReason: "cancelled" });
  assert.equal((await editor.prompt(sessionId, "say back again")).stopReason, "end_turn");
  await editor.finish();
});

test("sessions are listed, loaded, resumed, closed and deleted", async (t) => {
  const url = await startModel(t);
  const editor = new Editor(t, { url });
  await editor.initialize();
  const { sessionId } = await editor.newSession();
  await editor.prompt(sessionId, "say remember me");
  const listed = await editor.request("session/list", { cwd: editor.workspace });
  assert.deepEqual(listed.sessions.map((session) => [session.sessionId, session.cwd]), [[sessionId, editor.workspace]]);
  await editor.request("session/close", { sessionId });
  const before = editor.updates(sessionId).length;
  const place = { sessionId, cwd: editor.workspace, mcpServers: [] };
  const loaded = await editor.request("session/load", place);
  assert.ok(loaded.modes && loaded.configOptions);
  const shown = editor.updates(sessionId).slice(before);
  assert.deepEqual(shown.filter((update) => /message_chunk$/.test(update.sessionUpdate)).map((update) => update.sessionUpdate), [
    "user_message_chunk",
    "agent_message_chunk",
  ]);
  await editor.request("session/resume", place);
  assert.equal((await editor.prompt(sessionId, "say still here")).stopReason, "end_turn");
  await editor.request("session/delete", { sessionId });
  await editor.request("session/delete", { sessionId });
  assert.deepEqual((await editor.request("session/list", {})).sessions, []);
  await assert.rejects(editor.request("session/load", place), (error) => error.code === -32002);
  await editor.finish();
});

test("modes and options are set, and both forms agree", async (t) => {
  const editor = new Editor(t, { url: await startModel(t) });
  await editor.initialize({ session: { configOptions: { boolean: {} } } });
  const { sessionId, configOptions } = await editor.newSession();
  assert.ok(configOptions.some((option) => option.type === "boolean"));
  await editor.request("session/set_mode", { sessionId, modeId: "plan" });
  const answer = await editor.request("session/set_config_option", { sessionId, configId: "model", value: "mock/m2" });
  const current = Object.fromEntries(answer.configOptions.map((option) => [option.id, option.currentValue]));
  assert.equal(current.mode, "plan");
  assert.equal(current.model, "mock/m2");
  const trusted = { sessionId, configId: "trust", type: "boolean", value: true };
  const { configOptions: all } = await editor.request("session/set_config_option", trusted);
  assert.equal(all.find((option) => option.id === "trust").currentValue, true);
  await editor.finish();
});

test("buffers, terminals and forms of the editor are used", async (t) => {
  const buffers = new Map();
  const editor = new Editor(t, {
    url: await startModel(t),
    answers: {
      "session/request_permission": allow("allow_always"),
      "fs/read_text_file": ({ path }) => ({ content: buffers.get(path) ?? readFileSync(path, "utf8") }),
      "fs/write_text_file": ({ path, content }) => (buffers.set(path, content), {}),
      "terminal/create": () => ({ terminalId: "t1" }),
      "terminal/wait_for_exit": () => ({ exitCode: 0, signal: null }),
      "terminal/output": () => ({ output: "from the terminal\n", truncated: false, exitStatus: { exitCode: 0, signal: null } }),
      "terminal/release": () => ({}),
      "elicitation/create": () => ({ action: "accept", content: { choice: "Blue" } }),
    },
  });
  await editor.initialize({ fs: { readTextFile: true, writeTextFile: true }, terminal: true, elicitation: { form: {} } });
  const { sessionId } = await editor.newSession();
  const path = join(editor.workspace, "a.txt");
  writeFileSync(path, "saved\n");
  buffers.set(path, "saved\nunsaved\n");
  const call = (tool, input) => `call eca__${tool} ${JSON.stringify(input)}`;
  const steps = [
    call("read_file", { path }),
    call("edit_file", { path, original_content: "unsaved", new_content: "changed" }),
    call("shell_command", { command: "true" }),
    call("ask_user", { question: "Which colour?", options: [{ label: "Red" }, { label: "Blue" }] }),
    "say all done",
  ];
  assert.equal((await editor.prompt(sessionId, steps.join("\n"))).stopReason, "end_turn");
  assert.equal(buffers.get(path), "saved\nchanged\n");
  assert.equal(readFileSync(path, "utf8"), "saved\n");
  const asked = editor.asked.map(({ method }) => method);
  for (const method of ["terminal/create", "terminal/release", "elicitation/create"]) assert.ok(asked.includes(method), `${asked}`);
  const contents = editor.updates(sessionId, "tool_call_update").flatMap((update) => update.content ?? []);
  assert.ok(contents.some((content) => content.type === "terminal" && content.terminalId === "t1"));
  assert.ok(contents.some((content) => content.type === "diff" && content.oldText === "saved\nunsaved\n"));
  await editor.finish();
});
