// An application of the Copilot CLI contract, as the Electron apps that exist are one: it starts
// `copilot-cli` with a bare environment, writes lines, matches chunks by their request, refuses code
// that contains certain words, and compiles the rest with esbuild.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { build, transform } from "esbuild";

const HANG_GUARD_MS = 60_000;
const here = dirname(fileURLToPath(import.meta.url));

/** What the application looks for before it runs anything. */
const FORBIDDEN = [
  "eval(", "new Function(", "document.cookie", "window.parent", "window.top", "window.opener",
  "require(", "import(", "process.env", "global.", "globalThis.",
];

/** Rejects with `what` when `promise` does not settle; the only clock in these tests. */
export function within(promise, what) {
  let timer;
  const guard = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`hang guard: ${what}`)), HANG_GUARD_MS);
  });
  return Promise.race([promise, guard]).finally(() => clearTimeout(timer));
}

export class Application {
  #waiting = new Map();
  #next = 1;

  constructor(t, config = {}) {
    this.home = mkdtempSync(join(tmpdir(), "copilot-"));
    mkdirSync(join(this.home, ".config", "eca"), { recursive: true });
    const settings = { localDiscovery: false, modelsDev: false, ...config };
    writeFileSync(join(this.home, ".config", "eca", "config.json"), JSON.stringify(settings));
    const program = join(this.home, "copilot-cli");
    symlinkSync(process.env.ECA_BINARY, program);
    this.child = spawn(program, [], { env: { PATH: process.env.PATH, HOME: this.home }, stdio: ["pipe", "pipe", "inherit"] });
    this.exited = new Promise((resolve) => this.child.on("exit", (code, signal) => resolve({ code, signal })));
    createInterface({ input: this.child.stdout }).on("line", (line) => this.#hear(JSON.parse(line)));
    t.after(() => this.dispose());
  }

  /** The result of a request, with the chunks that came for it. */
  async request(method, params) {
    const id = this.#next++;
    const answer = new Promise((resolve) => this.#waiting.set(id, { resolve, chunks: [] }));
    this.child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    const { response, chunks } = await within(answer, `response to ${method}`);
    if (response.error) throw Object.assign(new Error(response.error.message), response.error);
    return { ...response.result, chunks };
  }

  notify(method) {
    this.child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", method })}\n`);
  }

  dispose() {
    this.child.kill("SIGKILL");
    rmSync(this.home, { recursive: true, force: true });
  }

  #hear(message) {
    assert.equal(message.jsonrpc, "2.0");
    if (message.method === "stream/chunk") {
      this.#waiting.get(message.params.requestId).chunks.push(message.params);
    } else {
      const { resolve, chunks } = this.#waiting.get(message.id);
      this.#waiting.delete(message.id);
      resolve({ response: message, chunks });
    }
  }
}

/** Checks an answer with code as the application does, and returns the HTML that it shows first. */
export async function shown({ code, chunks }) {
  assert.equal(chunks.map(({ chunk }) => chunk).join(""), code);
  assert.deepEqual(chunks.map(({ index }) => index), chunks.map((_, at) => at));
  assert.deepEqual(chunks.map(({ done }) => done), chunks.map((_, at) => at === chunks.length - 1));
  for (const word of FORBIDDEN) assert.ok(!code.includes(word), `${word} is in the code`);
  const options = { loader: "tsx", jsx: "automatic", format: "iife" };
  const { warnings } = await transform(code, options);
  assert.deepEqual(warnings, []);
  return render(code);
}

/** Runs the module in this process, with the React that is installed here. */
async function render(code) {
  const entry = 'import App from "module"; import { createElement } from "react";' +
    'import { renderToString } from "react-dom/server"; export const html = renderToString(createElement(App));';
  const plugin = {
    name: "module",
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^module$/ }, () => ({ path: "module", namespace: "generated" }));
      onLoad({ filter: /.*/, namespace: "generated" }, () => ({ contents: code, loader: "tsx", resolveDir: here }));
    },
  };
  const built = await build({
    stdin: { contents: entry, resolveDir: here }, bundle: true, write: false, platform: "node", format: "cjs",
    jsx: "automatic", plugins: [plugin], logLevel: "silent",
  });
  const module = { exports: {} };
  const { createRequire } = await import("node:module");
  new Function("module", "exports", "require", built.outputFiles[0].text)(module, module.exports, createRequire(import.meta.url));
  return module.exports.html;
}

/** A model that streams these texts to every question, and keeps the questions. */
export async function model(t, texts) {
  const asked = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    asked.push(JSON.parse(body));
    response.writeHead(200, { "content-type": "text/event-stream" });
    const event = (delta, finish_reason = null) =>
      response.write(`data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", model: "m", choices: [{ index: 0, delta, finish_reason }] })}\n\n`);
    for (const text of texts) event({ content: text });
    event({}, "stop");
    response.end("data: [DONE]\n\n");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const url = `http://127.0.0.1:${server.address().port}/v1`;
  const provider = { api: "openai-chat", url, fetchModels: false, models: { m: {} } };
  return { asked, config: { defaultModel: "local/m", providers: { local: provider } } };
}
