// The life of a connection: handshake, errors, cancellation, leaving.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import test from "node:test";
import { CancellationTokenSource } from "vscode-jsonrpc/node.js";
import { Client, connected, within } from "./client.mjs";

test("handshake as eca-vscode does it", async (t) => {
  const client = new Client();
  t.after(() => client.dispose());
  const result = await client.handshake();
  assert.equal(typeof result.chatWelcomeMessage, "string");
  assert.equal(typeof result.capabilities, "object");
  const { params } = await client.until(({ method }) => method === "config/updated", "config/updated");
  assert.ok(params.chat.models.includes("eca/guide"));
  assert.equal(params.chat.selectModel, "eca/guide");
  assert.ok(params.chat.agents.includes(params.chat.selectAgent));
  const native = await client.until(({ method }) => method === "tool/serverUpdated", "tool/serverUpdated");
  assert.equal(native.params.type, "native");
  // Its handlers are registered only now: nothing may have come before the response.
  assert.equal(client.log[0].response, "initialize");
});

test("nothing is sent before initialized", async (t) => {
  const client = new Client();
  t.after(() => client.dispose());
  await client.request("initialize", { capabilities: {}, workspaceFolders: [] });
  await client.request("chat/list", {});
  assert.deepEqual(client.log.map(({ method }) => method), [undefined, undefined]);
  await client.notify("initialized", {});
  await client.until(({ method }) => method === "config/updated", "config/updated");
});

test("an unknown method is refused and the connection lives", async (t) => {
  const client = await connected(t);
  await assert.rejects(client.request("no/suchMethod", { a: 1 }), { code: -32601 });
  await client.notify("no/suchNotification", {});
  assert.deepEqual(await client.request("chat/list", {}), { chats: [] });
});

test("a pending request can be cancelled", async (t) => {
  // The first dialect of the protocol answers a prompt when the model is connected, and this one
  // takes the call without ever answering it.
  const silent = createServer(() => {}).listen(0, "127.0.0.1");
  await once(silent, "listening");
  const called = once(silent, "connection");
  t.after(() => silent.close());
  const url = `http://127.0.0.1:${silent.address().port}/v1`;
  const client = await connected(t, {
    config: { providers: { silent: { api: "openai-chat", url, fetchModels: false, models: { mute: {} } } } },
    codeAssistant: { chat: true, doc: true, edit: true, fix: true },
  });
  const source = new CancellationTokenSource();
  const prompt = client.request("chat/prompt", { chatId: "c", message: "hi", model: "silent/mute" }, source.token);
  const refused = assert.rejects(prompt, { code: -32800 });
  const [socket] = await within(called, "call of the model");
  t.after(() => socket.destroy());
  source.cancel();
  await refused;
  assert.ok(Array.isArray((await client.request("chat/list", {})).chats));
});

test("shutdown answers null and exit ends the process with 0", async (t) => {
  const client = await connected(t);
  assert.deepEqual(await client.leave(), { result: null, code: 0, signal: null });
});

test("shutdown in the middle of an answer still leaves in order", async (t) => {
  const client = await connected(t);
  await client.request("chat/prompt", { chatId: "busy", message: "stream 2000 words" });
  await client.until(() => client.answer("busy").length > 3, "some text");
  assert.deepEqual(await client.leave(), { result: null, code: 0, signal: null });
});

test("the server goes when its input ends", async (t) => {
  const client = await connected(t);
  client.child.stdin.end();
  const { code } = await within(client.exited, "exit of the server");
  assert.equal(code, 0);
});
