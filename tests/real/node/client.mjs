// A client as the VS Code extension is one: vscode-jsonrpc over the pipes of a child process.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { createMessageConnection, StreamMessageReader, StreamMessageWriter } from "vscode-jsonrpc/node.js";

const HANG_GUARD_MS = 30_000;

/** Rejects with `what` when `promise` does not settle; the only clock in these tests. */
export function within(promise, what) {
  let timer;
  const guard = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`hang guard: ${what}`)), HANG_GUARD_MS);
  });
  return Promise.race([promise, guard]).finally(() => clearTimeout(timer));
}

export class Client {
  /** Every notification and the responses to requests, in the order in which they arrived. */
  log = [];
  #watchers = new Set();

  constructor({ config = {}, home = mkdtempSync(join(tmpdir(), "eca-node-")) } = {}) {
    this.home = home;
    const configFile = join(home, "config.json");
    writeFileSync(configFile, JSON.stringify({ localDiscovery: false, ...config }));
    this.child = spawn(process.env.ECA_BINARY, ["server", "--config-file", configFile], {
      cwd: home,
      env: { ...process.env, XDG_DATA_HOME: join(home, "data"), XDG_CACHE_HOME: join(home, "cache") },
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.exited = new Promise((resolve) => this.child.on("exit", (code, signal) => resolve({ code, signal })));
    this.connection = createMessageConnection(
      new StreamMessageReader(this.child.stdout),
      new StreamMessageWriter(this.child.stdin),
    );
    this.connection.onNotification((method, params) => this.#note({ method, params }));
    this.connection.listen();
  }

  /** The first messages of eca-vscode. */
  async handshake({ codeAssistant = defaultCapabilities(), folders = [this.home] } = {}) {
    const result = await this.request("initialize", {
      processId: process.pid,
      clientInfo: { name: "VsCode", version: "XXX" },
      capabilities: { codeAssistant },
      initializationOptions: {},
      workspaceFolders: folders.map((path) => ({ name: "folder", uri: pathToFileURL(path).href })),
    });
    await this.notify("initialized", {});
    return result;
  }

  request(method, params, token) {
    const sent = token
      ? this.connection.sendRequest(method, params, token)
      : this.connection.sendRequest(method, params);
    return within(sent, `response to ${method}`).then((result) => {
      this.#note({ response: method, result });
      return result;
    });
  }

  notify(method, params) {
    return this.connection.sendNotification(method, params);
  }

  /** Waits for the first message, old or new, that fits. */
  until(fits, what) {
    const found = new Promise((resolve) => {
      const look = (entry) => fits(entry) && (this.#watchers.delete(look), resolve(entry));
      const old = this.log.find(fits);
      old ? resolve(old) : this.#watchers.add(look);
    });
    return within(found, what);
  }

  /** Content messages of a chat, in order. */
  contents(chatId) {
    return this.log
      .filter((entry) => entry.method === "chat/contentReceived" && entry.params.chatId === chatId)
      .map((entry) => entry.params);
  }

  answer(chatId) {
    return this.contents(chatId)
      .filter(({ role, content }) => role === "assistant" && content.type === "text")
      .map(({ content }) => content.text);
  }

  /** Waits until `turns` turns of the chat have ended. */
  finished(chatId, turns = 1) {
    return this.until(
      () => this.contents(chatId).filter(({ content }) => isFinished(content)).length >= turns,
      `end of turn ${turns} of ${chatId}`,
    );
  }

  async leave() {
    const result = await this.request("shutdown", {});
    await this.notify("exit", {});
    return { result, ...(await within(this.exited, "exit of the server")) };
  }

  /** For the end of every test, however it went. */
  dispose() {
    this.connection.dispose();
    this.child.kill("SIGKILL");
    rmSync(this.home, { recursive: true, force: true });
  }

  #note(entry) {
    this.log.push(entry);
    for (const look of [...this.#watchers]) look(entry);
  }
}

export function isFinished(content) {
  return content.type === "progress" && content.state === "finished";
}

export function defaultCapabilities() {
  return {
    chat: true,
    rewrite: true,
    editor: { diagnostics: true, definition: true, references: true },
    chatCapabilities: { askQuestion: true },
  };
}

/** A client that has shaken hands, gone at the end of test `t`. */
export async function connected(t, options = {}) {
  const client = new Client(options);
  t.after(() => client.dispose());
  await client.handshake(options);
  return client;
}
