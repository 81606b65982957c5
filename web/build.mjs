// Builds the scripts of pages. `node build.mjs report` writes the script that reports embed, and its digest;
// `node build.mjs site WASM OUT` writes the playground. Without an argument: report, and nothing else.
import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import path from "node:path";
import * as esbuild from "esbuild";

const root = path.dirname(fileURLToPath(import.meta.url));
const [what = "report", ...rest] = process.argv.slice(2);

/** Style sheets are texts, which scripts add to a page. */
const shared = {
  bundle: true,
  minify: true,
  charset: "ascii",
  target: ["es2022"],
  legalComments: "none",
  loader: { ".css": "text" },
  logLevel: "warning",
  absWorkingDir: root,
};

/** The script that reports embed, for the crate `results`. */
async function report() {
  const built = await esbuild.build({ ...shared, entryPoints: ["src/report/main.ts"], format: "iife", write: false });
  // The text of a script element ends at this sequence.
  const text = built.outputFiles[0].text.trim().replaceAll("</script", "<\\/script");
  const assets = path.join(root, "../crates/results/assets");
  const digest = createHash("sha256").update(text).digest("base64");
  await writeFile(path.join(assets, "report.js"), text);
  await writeFile(path.join(assets, "report.js.sha256"), `sha256-${digest}\n`);
  console.log(`report.js: ${text.length} bytes`);
}

if (what === "report") await report();
else throw new Error(`unknown: ${what} ${rest}`);
