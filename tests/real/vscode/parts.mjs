// The extension's own modules, bundled for Node: with the real language client, and a stand-in for VS Code itself.
import { mkdtempSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { extension, here } from "./support.mjs";

const { build } = createRequire(join(extension, "package.json"))("esbuild");

const ENTRY = `
export { Server, notOffered } from "./src/server";
export { Chats, mentions } from "./src/chats";
export { apply, revert, sides } from "./src/patch";
export { Completer, MOST_CHARACTERS } from "./src/completer";
export { health } from "./src/health";
export { InlineCompletion } from "./src/inline";
export { Jobs, countText, pageText, stateText } from "./src/jobs";
export { page } from "./src/page";
export * as vscode from "vscode";
export { tokenAt } from "./webview/composer";
`;

let bundled;

/** All tests share one bundle, and so one set of classes. */
export function parts() {
  bundled ??= bundle();
  return bundled;
}

async function bundle() {
  const outfile = join(mkdtempSync(join(tmpdir(), "eca-parts-")), "parts.cjs");
  await build({
    stdin: { contents: ENTRY, resolveDir: extension, loader: "ts" },
    bundle: true,
    platform: "node",
    format: "cjs",
    alias: { vscode: join(here, "fake-vscode.cjs") },
    outfile,
    logLevel: "error",
  });
  return createRequire(import.meta.url)(outfile);
}
