// Builds script and style of the dashboard into the crate that has the page in the binary. `node dashboard.mjs` writes
// the files; `node dashboard.mjs --check` says whether they are what the sources give.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import path from "node:path";
import * as esbuild from "esbuild";
import { notices } from "./notices.mjs";

const root = path.dirname(fileURLToPath(import.meta.url));
const page = path.join(root, "../crates/dashboard/page");

/** The most that all files may take: they are in every binary. */
const MOST_BYTES = 120_000;

const built = await esbuild.build({
  absWorkingDir: root,
  entryPoints: { dashboard: "src/dashboard/main.ts" },
  bundle: true,
  minify: true,
  format: "iife",
  charset: "ascii",
  target: ["es2022"],
  legalComments: "none",
  metafile: true,
  outdir: "out",
  write: false,
  logLevel: "warning",
});
const styles = await esbuild.build({
  absWorkingDir: root,
  entryPoints: { dashboard: "src/dashboard/dashboard.css" },
  bundle: true,
  minify: true,
  outdir: "out",
  write: false,
  logLevel: "warning",
});
const legal = await notices(root, built.metafile);
const files = new Map([["dashboard.js", legal + built.outputFiles[0].text]]);
for (const { path: name, text } of styles.outputFiles) files.set(path.basename(name), text);
const bytes = [...files.values()].reduce((sum, text) => sum + Buffer.byteLength(text), 0);
if (bytes > MOST_BYTES) throw new Error(`the page takes ${bytes} bytes, more than ${MOST_BYTES}`);

if (process.argv.includes("--check")) {
  for (const [name, text] of files) {
    const kept = await readFile(path.join(page, name), "utf8").catch(() => "");
    if (kept !== text) {
      console.error(`crates/dashboard/page/${name} is not what web/src/dashboard gives: make web writes it`);
      process.exitCode = 1;
    }
  }
} else {
  await mkdir(page, { recursive: true });
  for (const [name, text] of files) await writeFile(path.join(page, name), text);
}
console.log(`dashboard: ${bytes} bytes`);
