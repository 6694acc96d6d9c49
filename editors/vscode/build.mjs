// Bundles the two halves of the extension: what runs in the editor's extension host, and what runs in the view.
import { build } from "esbuild";
import { copyFile, rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const production = process.argv.includes("--production");
const common = {
  absWorkingDir: here,
  bundle: true,
  minify: production,
  sourcemap: production ? false : "linked",
  logLevel: "warning",
  legalComments: "eof",
};

await rm(`${here}dist`, { recursive: true, force: true });
await Promise.all([
  build({
    ...common,
    entryPoints: ["src/extension.ts"],
    outfile: "dist/extension.js",
    platform: "node",
    target: "node18",
    format: "cjs",
    external: ["vscode"],
  }),
  build({
    ...common,
    entryPoints: ["webview/main.ts"],
    outfile: "dist/webview.js",
    platform: "browser",
    target: "chrome114",
    format: "iife",
  }),
]);
await copyFile(`${here}webview/style.css`, `${here}dist/webview.css`);
