// An editor of the Agent Client Protocol: the official TypeScript library on the pipes of a child
// process. Every message of both sides is kept, and checked against the JSON schema of that library.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import * as acp from "@agentclientprotocol/sdk";
import Ajv2020 from "ajv/dist/2020.js";

const HANG_GUARD_MS = 60_000;
const here = dirname(fileURLToPath(import.meta.url));

/** Rejects with `what` when `promise` does not settle; the only clock in these tests. */
export function within(promise, what) {
  let timer;
  const guard = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`hang guard: ${what}`)), HANG_GUARD_MS);
  });
  return Promise.race([promise, guard]).finally(() => clearTimeout(timer));
}

/** A model that does what the prompt says; see mock_model.py. */
export async function startModel(t) {
  const child = spawn("python3", ["-B", join(here, "..", "mock_model.py")], { stdio: ["pipe", "pipe", "inherit"] });
  t.after(() => child.stdin.end());
  const lines = createInterface({ input: child.stdout });
  const [url] = await within(new Promise((resolve) => lines.once("line", (line) => resolve([line]))), "the model");
  return url.trim();
}

export class Editor {
  /** Every message, in order: who sent it, and what. */
  transcript = [];
  /** What the server asked, with the answers of `answers`. */
  asked = [];

  constructor(t, { url, answers = {}, home } = {}) {
    this.home = home ?? realpathSync(mkdtempSync(join(tmpdir(), "eca-acp-")));
    this.workspace = join(this.home, "workspace");
    mkdirSync(this.workspace, { recursive: true });
    const mock = { api: "openai-chat", url, key: "none", fetchModels: false, models: { m1: {}, m2: {} } };
    const config = { localDiscovery: false, modelsDev: false, chat: { title: false }, providers: { mock }, defaultModel: "mock/m1" };
    const configFile = join(this.home, "config.json");
    writeFileSync(configFile, JSON.stringify(config));
    this.child = spawn(process.env.ECA_BINARY, ["acp", "--config-file", configFile], {
      cwd: this.home,
      env: { ...process.env, XDG_DATA_HOME: join(this.home, "data"), XDG_CACHE_HOME: join(this.home, "cache") },
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.exited = new Promise((resolve) => this.child.on("exit", (code, signal) => resolve({ code, signal })));
    const [read, kept] = Readable.toWeb(this.child.stdout).tee();
    this.#keep("agent", kept);
    const toAgent = new TransformStream();
    const [written, copy] = toAgent.readable.tee();
    written.pipeTo(Writable.toWeb(this.child.stdin)).catch(() => {});
    this.#keep("client", copy);
    const app = acp.client({ name: "eca-tests" });
    const methods = acp.methods.client;
    app.onNotification(methods.session.update, () => {});
    for (const [method, answer] of Object.entries(answers)) {
      app.onRequest(method, ({ params }) => {
        this.asked.push({ method, params });
        return answer(params);
      });
    }
    this.connection = app.connect(acp.ndJsonStream(toAgent.writable, read));
    t.after(() => this.dispose());
  }

  request(method, params) {
    return within(this.connection.agent.request(method, params), `response to ${method}`);
  }

  notify(method, params) {
    return this.connection.agent.notify(method, params);
  }

  initialize(clientCapabilities = {}) {
    const clientInfo = { name: "eca-tests", version: "1" };
    return this.request("initialize", { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities, clientInfo });
  }

  newSession(more = {}) {
    return this.request("session/new", { cwd: this.workspace, mcpServers: [], ...more });
  }

  prompt(sessionId, text) {
    return this.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
  }

  /** The updates of a session so far. */
  updates(sessionId, kind) {
    const of = ({ from, message }) =>
      from === "agent" && message.method === "session/update" && message.params.sessionId === sessionId;
    const updates = this.transcript.filter(of).map(({ message }) => message.params.update);
    return kind ? updates.filter((update) => update.sessionUpdate === kind) : updates;
  }

  text(sessionId) {
    return this.updates(sessionId, "agent_message_chunk").map((update) => update.content.text ?? "").join("");
  }

  /** Waits until something fits in what arrived. */
  async until(fits, what) {
    const arrived = async () => {
      while (!this.transcript.some(({ from, message }) => from === "agent" && fits(message))) {
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    await within(arrived(), what);
  }

  /** Leaves as editors do, and checks everything that was said. */
  async finish() {
    this.child.stdin.end();
    assert.deepEqual(await within(this.exited, "the end"), { code: 0, signal: null });
    checkTranscript(this.transcript);
  }

  dispose() {
    this.child.kill("SIGKILL");
    rmSync(this.home, { recursive: true, force: true });
  }

  async #keep(from, stream) {
    let rest = "";
    const decoder = new TextDecoder();
    try {
      for await (const bytes of stream) {
        const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
        rest = lines.pop();
        for (const line of lines) this.transcript.push({ from, message: JSON.parse(line) });
      }
    } catch (error) {
      if (error.code !== "ERR_STREAM_PREMATURE_CLOSE") throw error;
    }
  }
}

const require = createRequire(import.meta.url);
const schema = JSON.parse(readFileSync(require.resolve("@agentclientprotocol/sdk/schema/v1/schema.json"), "utf8"));
const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
ajv.addSchema(schema, "acp");
const validators = new Map();

/** The definition of a method's message: which side serves it, and whether it is what it sends or gets. */
function definition(method, side, suffix) {
  const fits = ([name, value]) =>
    value["x-method"] === method && [side, "protocol"].includes(value["x-side"]) && suffix.some((end) => name.endsWith(end));
  return Object.entries(schema.$defs).find(fits)?.[0];
}

function check(name, value, what) {
  assert.ok(name, `no definition for ${what}`);
  if (!validators.has(name)) validators.set(name, ajv.compile({ $ref: `acp#/$defs/${name}` }));
  const validate = validators.get(name);
  assert.ok(validate(value), `${what} is no ${name}: ${ajv.errorsText(validate.errors)}\n${JSON.stringify(value)}`);
  const known = schema.$defs[name].properties;
  if (known && !schema.$defs[name].anyOf && !schema.$defs[name].oneOf) {
    for (const key of Object.keys(value ?? {})) assert.ok(key in known, `${what} has an unknown key ${key}`);
  }
}

/** Checks every message against the schema: requests and notifications by method, responses by request. */
export function checkTranscript(transcript) {
  const waiting = { agent: new Map(), client: new Map() };
  for (const { from, message } of transcript) {
    assert.equal(message.jsonrpc, "2.0");
    const other = from === "agent" ? "client" : "agent";
    if (message.method !== undefined) {
      const isRequest = "id" in message;
      const suffix = isRequest ? ["Request"] : ["Notification"];
      check(definition(message.method, other, suffix), message.params, `${message.method} of the ${from}`);
      if (isRequest) waiting[other].set(message.id, message.method);
      continue;
    }
    const method = waiting[from].get(message.id);
    assert.ok(method, `an answer to nothing: ${JSON.stringify(message)}`);
    waiting[from].delete(message.id);
    assert.equal("result" in message, !("error" in message), "either a result or an error");
    if ("error" in message) check("Error", message.error, `the error of ${method}`);
    else check(definition(method, from, ["Response"]), message.result, `the result of ${method}`);
  }
  assert.equal(waiting.agent.size, 0, `not answered: ${[...waiting.agent.values()]}`);
}
