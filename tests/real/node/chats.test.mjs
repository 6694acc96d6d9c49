// Chats with the offline guide: order, streaming, stopping, several at once, list and delete.

import assert from "node:assert/strict";
import test from "node:test";
import { Client, connected, isFinished } from "./client.mjs";

const vscodePrompt = (chatId, message) => ({
  chatId,
  message,
  model: "eca/guide",
  agent: "code",
  requestId: "0",
  contexts: [],
});

test("a prompt is answered in the order clients rely on", async (t) => {
  const client = await connected(t, { config: { chat: { title: false } } });
  const answer = await client.request("chat/prompt", vscodePrompt("c1", "  stream 40 words "));
  assert.equal(answer.chatId, "c1");
  assert.equal(answer.model, "eca/guide");
  assert.equal(answer.status, "prompting");
  await client.finished("c1");

  const ofChat = client.log.filter(({ response, params }) => response === "chat/prompt" || params?.chatId === "c1");
  const names = ofChat.map(({ response, method, params }) => {
    if (response) return "response";
    if (method !== "chat/contentReceived") return `${method} ${params.status ?? ""}`.trim();
    const { role, content } = params;
    return content.type === "progress" ? `progress ${content.state}` : `${role} ${content.type}`;
  });
  const first = (name) => names.indexOf(name);
  assert.ok(first("progress running") >= 0, names.join(", "));
  assert.ok(first("progress running") < first("user text"), "progress comes before the echo");
  assert.equal(first("response"), first("user text") + 1, "the response follows the echo at once");
  assert.ok(first("response") < first("chat/statusChanged running"));
  assert.ok(first("chat/statusChanged running") < first("assistant text"));
  assert.ok(names.lastIndexOf("assistant text") < first("system usage"));
  assert.ok(first("system usage") < first("chat/statusChanged idle"));
  assert.equal(first("progress finished"), names.length - 1, "finished is last");

  const echo = client.contents("c1").find(({ role }) => role === "user").content;
  assert.equal(echo.text, "stream 40 words\n");
  assert.ok(echo.contentId);
});

test("an answer is streamed whole and in pieces", async (t) => {
  const client = await connected(t);
  const { chatId } = await client.request("chat/prompt", { message: "stream 200 words" });
  await client.finished(chatId);
  const pieces = client.answer(chatId);
  assert.ok(pieces.length > 50, `only ${pieces.length} pieces`);
  const words = pieces.join("").trim().split(/\s+/);
  assert.equal(words.length, 200);
  // Every tenth word is its own number, so a lost, doubled or swapped piece shows.
  words.forEach((word, at) => (at + 1) % 10 === 0 && assert.equal(word, String(at + 1)));
});

test("reasoning comes in its own block before the text", async (t) => {
  const client = await connected(t);
  const { chatId } = await client.request("chat/prompt", { message: "think" });
  await client.finished(chatId);
  const types = client.contents(chatId).filter(({ role }) => role === "assistant").map(({ content }) => content.type);
  const steps = types.filter((type, at) => type !== types[at - 1]);
  assert.deepEqual(steps, ["reasonStarted", "reasonText", "reasonFinished", "text"]);
});

test("a chat gets a title", async (t) => {
  const client = await connected(t, { config: { chat: { title: true } } });
  const { chatId } = await client.request("chat/prompt", { message: "stream 20 words" });
  const isTitle = ({ params }) => params?.chatId === chatId && params.content?.type === "metadata";
  const { params } = await client.until(isTitle, "title");
  assert.ok(params.content.title.length > 0 && params.content.title.length <= 40);
});

test("stop in mid-stream ends the turn and the chat goes on", async (t) => {
  const client = await connected(t);
  await client.request("chat/prompt", vscodePrompt("c1", "stream 20000 words"));
  await client.until(() => client.answer("c1").length >= 5, "some text");
  await client.notify("chat/promptStop", { chatId: "c1" });
  await client.finished("c1");
  const streamed = client.answer("c1").length;
  assert.ok(streamed < 20_000, "the answer was not cut");
  const statuses = client.log.filter(({ method }) => method === "chat/statusChanged").map(({ params }) => params.status);
  assert.deepEqual(statuses, ["running", "stopping", "idle"]);

  await client.request("chat/prompt", vscodePrompt("c1", "stream 30 words"));
  await client.finished("c1", 2);
  assert.equal(client.answer("c1").slice(streamed).join("").trim().split(/\s+/).length, 30);
});

test("a stop without a running turn is harmless", async (t) => {
  const client = await connected(t);
  await client.notify("chat/promptStop", { chatId: "nobody" });
  assert.deepEqual(await client.request("chat/list", {}), { chats: [] });
});

test("chats that stream at once keep to themselves", async (t) => {
  const client = await connected(t);
  const sizes = { a: 60, b: 90, c: 120 };
  await Promise.all(
    Object.entries(sizes).map(([id, words]) => client.request("chat/prompt", vscodePrompt(id, `stream ${words} words`))),
  );
  await Promise.all(Object.keys(sizes).map((id) => client.finished(id)));
  for (const [id, words] of Object.entries(sizes)) {
    assert.equal(client.answer(id).join("").trim().split(/\s+/).length, words);
    assert.equal(client.contents(id).filter(({ content }) => isFinished(content)).length, 1);
  }
  const order = client.log.filter(({ params }) => params?.content?.type === "text").map(({ params }) => params.chatId);
  const switches = order.filter((id, at) => at > 0 && id !== order[at - 1]).length;
  assert.ok(switches > 10, `the chats ran one after another (${switches} switches)`);
});

test("chats are listed, survive a restart and can be deleted", async (t) => {
  const client = await connected(t);
  for (const id of ["first", "second"]) {
    await client.request("chat/prompt", vscodePrompt(id, "stream 5 words"));
    await client.finished(id);
  }
  const listed = await client.request("chat/list", { limit: 100, sortBy: "updatedAt" });
  assert.deepEqual(listed.chats.map(({ id }) => id), ["second", "first"]);
  for (const chat of listed.chats) {
    assert.equal(chat.status, "idle");
    assert.equal(chat.model, "eca/guide");
    assert.ok(chat.messageCount >= 2);
    assert.ok(chat.updatedAt >= chat.createdAt);
  }
  await client.leave();

  const again = new Client({ home: client.home });
  t.after(() => again.dispose());
  await again.handshake();
  assert.equal((await again.request("chat/list", {})).chats.length, 2);
  assert.deepEqual(await again.request("chat/delete", { chatId: "second" }), {});
  const left = await again.request("chat/list", {});
  assert.deepEqual(left.chats.map(({ id }) => id), ["first"]);
});

test("a failing model ends the turn as text, not as an error of the request", async (t) => {
  const client = await connected(t);
  await client.request("chat/prompt", vscodePrompt("c1", "show me an error"));
  await client.finished("c1");
  const said = client.contents("c1").filter(({ role, content }) => role === "system" && content.type === "text");
  assert.match(said.map(({ content }) => content.text).join(""), /error you asked/);
});
