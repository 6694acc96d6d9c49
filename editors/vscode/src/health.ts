// Whether all is there that a chat needs, in words. Nothing here knows the editor.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Chats } from "./chats";
import type { Launch } from "./server";

const PATIENCE_MS = 5_000;
const ONLY_GUIDE = "eca/guide";

/** One line each: `✓` is well, `!` may be wrong, `✗` is wrong. */
export async function health(editor: string, launch: Launch, chats: Chats, folders: string[]): Promise<string[]> {
  const where = folders.length > 0 ? `  The workspace is ${folders.join(", ")}` : "! No folder is open";
  return [`✓ ${editor}`, await program(launch), ...server(chats), where];
}

async function program({ command, env, cwd }: Launch): Promise<string> {
  try {
    const options = { cwd, env: { ...process.env, ...env }, timeout: PATIENCE_MS };
    const { stdout } = await promisify(execFile)(command, ["--version"], options);
    return `✓ ${stdout.trim()} (${command})`;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return `✗ There is no program ${command}; put it on the PATH, or name it in the setting ecaRs.serverPath`;
    return `✗ ${command} --version fails: ${message}`;
  }
}

function server(chats: Chats): string[] {
  if (chats.serverState === "failed") return [`✗ ${chats.problem}`];
  if (chats.serverState !== "running") return [`  The server is ${chats.serverState}; the chat starts it`];
  const { models } = chats;
  const model = chats.selection(chats.current).model ?? "none";
  const offered = models.every((one) => one === ONLY_GUIDE)
    ? "! Only the built-in guide answers; “ECA: Log in to a Provider…” sets up a model"
    : `✓ It offers ${models.length === 1 ? "one model" : `${models.length} models`}; the chat has ${model}`;
  const tools = [...chats.toolServers.values()].map(
    ({ name, status, tools: all = [] }) => `${status === "failed" ? "!" : " "} Tools of ${name}: ${all.length}, ${status}`,
  );
  return ["✓ The server runs", offered, ...tools];
}
