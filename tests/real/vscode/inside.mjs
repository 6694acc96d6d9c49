// The inside of the extension, with the real language client and the real server, for tests.
import { rmSync } from "node:fs";
import { parts } from "./parts.mjs";
import { binary, wait, workspace } from "./support.mjs";

const { Server, Chats, Jobs } = await parts();

/** The extension's inside: a server, the chats, and a record of what a view would have been told. */
export function client(place, changes = {}) {
  globalThis.testFolders = [place.project];
  const seen = { patches: [], attention: [], restored: [], deaths: [], states: [], asked: [] };
  const shower = {
    patched: (_, patch) => seen.patches.push(patch),
    changed: () => {},
    switched: (chat) => (seen.shown = chat),
    attention: (_, block) => seen.attention.push(block.kind),
    fileChanged: (path) => (seen.file = path),
    restore: (_, text) => seen.restored.push(text),
  };
  const places = {
    short: (path) => path.replace(`${place.project}/`, ""),
    cursor: () => ({ type: "cursor", path: place.main, position: { start: { line: 2, character: 5 }, end: { line: 2, character: 5 } } }),
    current: (context) => context,
  };
  const channel = { append: () => {}, appendLine: () => {}, show: () => {}, dispose: () => {}, clear: () => {} };
  const notifications = Object.fromEntries(
    ["configUpdated", "contentReceived", "statusChanged", "opened", "cleared", "deleted"].map((name) => [
      name === "configUpdated" ? "config/updated" : `chat/${name}`,
      (params) => chats[name](params),
    ]),
  );
  notifications["jobs/updated"] = (params) => jobs.updated(params);
  const server = new Server({
    launch: () => ({ command: binary, args: place.args, env: place.env, cwd: place.project, ...changes }),
    handlers: {
      notifications,
      requests: {
        "chat/askQuestion": (params) => chats.ask(params, new Promise(() => {})),
        "editor/getDiagnostics": (params) => {
          seen.asked.push(params);
          const range = { start: { line: 2, character: 5 }, end: { line: 2, character: 10 } };
          const uri = `file://${place.main}`;
          return { diagnostics: [{ uri, severity: "error", source: "test", message: "the soup is cold", range }] };
        },
        "editor/getDefinition": () => ({ status: "no-server" }),
        "editor/getReferences": () => ({ status: "no-server" }),
      },
    },
    channel,
    version: "0",
    state: (state, problem) => {
      chats.serverState = state;
      if (state !== "running") jobs.lost();
      seen.states.push([state, problem]);
    },
    died: (text) => {
      seen.deaths.push(text);
      chats.serverDied(text);
    },
  });
  const chats = new Chats(server, shower, places);
  const jobs = new Jobs(server, () => (chats.runningJobs = jobs.running.length));
  return {
    server,
    chats,
    jobs,
    seen,
    text: () => chats.current.blocks.filter((block) => block.kind === "text").map((block) => block.text).join("\n"),
    call: (state) => wait(`a call that is ${state}`, () => chats.current.blocks.find((block) => block.kind === "tool" && block.state === state)),
    finish: () => wait("the end of the turn", () => !chats.current.busy),
    prompt(text) {
      chats.send(text);
      return this.finish();
    },
  };
}

/** Runs a test with an inside of its own. */
export async function withClientOf(model, run, changes) {
  const place = workspace(model);
  const one = client(place, changes);
  try {
    await run(one, place);
  } finally {
    await one.server.stop();
    rmSync(place.root, { recursive: true, force: true });
  }
}
