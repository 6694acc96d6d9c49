// Partners for the tests of the extension: the scripted model, a workspace, a browser, and VS Code's workbench in it.
import assert from "node:assert/strict";
import { spawn, execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

export const HANG_GUARD_MS = 60_000;
export const here = dirname(fileURLToPath(import.meta.url));
export const extension = join(here, "../../../editors/vscode");
export const binary = process.env.ECA_BINARY;
assert.ok(binary, "ECA_BINARY names the server");

/** Where pictures of every state go; nowhere unless asked for. */
const pictures = process.env.ECA_PICTURES;

export async function picture(page, name) {
  if (!pictures) return;
  mkdirSync(pictures, { recursive: true });
  await page.screenshot({ path: join(pictures, `${name}.png`), animations: "disabled" });
}

/** Waits until `condition` gives something, and returns it. */
export async function wait(what, condition, guard = HANG_GUARD_MS) {
  const end = Date.now() + guard;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > end) throw new Error(`hang guard: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

/** The scripted model; it ends when its stdin does, at the latest with this process. */
export async function startModel(...options) {
  const child = spawn("python3", ["-B", join(here, "../mock_model.py"), ...options], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout });
  const url = await new Promise((resolve) => lines.once("line", resolve));
  return {
    url,
    requests: async () => (await fetch(`${url}/requests`)).json(),
    stop: () => child.stdin.end(),
  };
}

/** A folder with a small program in it, and a home with a configuration. */
export function workspace(model) {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "eca-")));
  const write = (path, text) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
    return join(root, path);
  };
  const main = write("project/src/main.rs", 'fn main() {\n    println!("hello");\n}\n');
  write("project/notes.md", "# Notes\n\nThe secret word is marzipan.\n");
  const config = write(
    "config.json",
    JSON.stringify({
      localDiscovery: false,
      modelsDev: false,
      chat: { title: false },
      defaultModel: "mock/scripted",
      providers: {
        mock: {
          api: "openai-chat",
          url: model.url,
          fetchModels: false,
          models: { scripted: { limit: { context: 32000, output: 4000 } }, other: {} },
        },
      },
    }),
  );
  const home = join(root, "home");
  mkdirSync(home);
  const env = {
    HOME: home,
    XDG_CONFIG_HOME: home,
    XDG_DATA_HOME: home,
    XDG_STATE_HOME: home,
    XDG_CACHE_HOME: home,
    MOCK_API_KEY: "none",
  };
  return { root, project: join(root, "project"), main, config, env, args: ["--config-file", config], write, read: () => readFileSync(main, "utf8") };
}

/** A step for the scripted model: an edit of the program. */
export function editCall(place, before, after) {
  return `call edit_file ${JSON.stringify({ path: place.main, original_content: before, new_content: after })}`;
}

export async function launchBrowser() {
  const { chromium } = await import("playwright-core");
  return chromium.launch({
    executablePath: "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

async function freePort() {
  const probe = createServer();
  await new Promise((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

/** code-server with the packaged extension in it, for one workspace. */
export async function startWorkbench(place, settings = {}) {
  const entry = join(here, "node_modules/code-server/out/node/entry.js");
  const data = join(place.root, "code-server");
  const env = { ...process.env, ...place.env };
  const folders = ["--user-data-dir", data, "--extensions-dir", join(data, "extensions")];
  const vsix = process.env.ECA_VSIX ?? join(extension, "eca.vsix");
  await promisify(execFile)(process.execPath, [entry, ...folders, "--install-extension", vsix], { env });
  const write = (name, values) => {
    mkdirSync(join(data, name), { recursive: true });
    writeFileSync(join(data, name, "settings.json"), JSON.stringify(values));
  };
  // The workbench is remote from the browser's point of view, so what belongs to a machine is set there.
  write("Machine", { "ecaRs.serverPath": binary, "ecaRs.serverArgs": place.args, "ecaRs.serverEnvironment": place.env });
  write("User", {
    "workbench.startupEditor": "none",
    "workbench.tips.enabled": false,
    "security.workspace.trust.enabled": false,
    "telemetry.telemetryLevel": "off",
    "extensions.ignoreRecommendations": true,
    "git.enabled": false,
    "editor.minimap.enabled": false,
    ...settings,
  });
  const port = await freePort();
  const options = ["--bind-addr", `127.0.0.1:${port}`, "--auth", "none", "--disable-telemetry", "--disable-update-check"];
  const child = spawn(process.execPath, [entry, ...folders, ...options, "--disable-workspace-trust", "--disable-getting-started-override"], {
    env,
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  let log = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece) => (log += piece));
  const url = `http://127.0.0.1:${port}/?folder=${encodeURIComponent(place.project)}`;
  await wait("code-server", async () => {
    if (child.exitCode !== null) throw new Error(`code-server ended:\n${log}`);
    return fetch(`http://127.0.0.1:${port}/healthz`).then(
      (answer) => answer.ok,
      () => false,
    );
  });
  return {
    url,
    log: () => log,
    stop: async () => {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      // It has children of its own, in the same group.
      process.kill(-child.pid, "SIGTERM");
      const late = setTimeout(() => process.kill(-child.pid, "SIGKILL"), 5_000);
      await ended;
      clearTimeout(late);
    },
  };
}
