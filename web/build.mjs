// Builds the scripts of pages. `node build.mjs report` writes the script that reports embed, and its digest (`--check`:
// compares); `node build.mjs site MODULE.wasm OUT` writes the playground.
import { createHash } from "node:crypto";
import { execFileSync } from "node:child_process";
import { copyFile, mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { fileURLToPath } from "node:url";
import path from "node:path";
import * as esbuild from "esbuild";
import { notices } from "./notices.mjs";

const root = path.dirname(fileURLToPath(import.meta.url));
/** The module is for tests: a minute less of optimising and compressing. */
const quick = process.env.LASTMILE_WASM_OPT === "0";
const [what = "report", ...rest] = process.argv.slice(2);

/** Style sheets are texts, which scripts add to a page. */
const shared = {
  bundle: true,
  minify: true,
  charset: "ascii",
  target: ["es2022"],
  // The texts of licences are at the beginning of a script (notices.mjs).
  legalComments: "none",
  metafile: true,
  write: false,
  loader: { ".css": "text" },
  logLevel: "warning",
  absWorkingDir: root,
};

/** The script that reports embed, for the crate `results`. */
async function report(check) {
  const built = await esbuild.build({ ...shared, entryPoints: ["src/report/main.ts"], format: "iife" });
  const script = (await notices(root, built.metafile)) + built.outputFiles[0].text.trim();
  // The text of a script element ends at this sequence.
  const text = script.replaceAll("</script", "<\\/script");
  const assets = path.join(root, "../crates/results/assets");
  const digest = createHash("sha256").update(text).digest("base64");
  if (check) {
    const stored = await readFile(path.join(assets, "report.js"), "utf8");
    if (stored !== text)
      throw new Error("crates/results/assets/report.js is not what web/src/report gives: `make web`");
    return;
  }
  await writeFile(path.join(assets, "report.js"), text);
  await writeFile(path.join(assets, "report.js.sha256"), `sha256-${digest}\n`);
  console.log(`report.js: ${text.length} bytes`);
}

/** Style sheets of pages, from the crate `results`. */
async function pageStyle() {
  const assets = ["tokens.css", "drawing.css", "text.css"].map((name) =>
    path.join(root, "../crates/results/assets", name),
  );
  return (await Promise.all(assets.map((file) => readFile(file, "utf8")))).join("");
}

/** Every scenario that ships, with the files that it names. */
async function examples() {
  const folder = path.join(root, "../scenarios");
  const entries = await readdir(folder, { recursive: true });
  const found = [];
  for (const entry of entries.filter((name) => name.endsWith(".toml")).sort()) {
    const file = path.join(folder, entry);
    const text = await readFile(file, "utf8");
    const files = {};
    const binary = {};
    // A path in a scenario counts from its folder.
    for (const [, name] of text.matchAll(/^[^#\n]*\b(?:file|policy|distribution)\s*=\s*"([^"]*[./][^"]*)"/gm)) {
      const bytes = await readFile(path.join(path.dirname(file), name)).catch(() => null);
      if (bytes === null) continue;
      if (bytes.includes(0)) binary[name] = bytes.toString("base64");
      else files[name] = bytes.toString("utf8");
    }
    const title = /^name\s*=\s*"([^"]*)"/m.exec(text)?.[1] ?? path.basename(entry, ".toml");
    found.push({ path: `scenarios/${entry}`, title, text, files, binary });
  }
  return found;
}

/** The playground, from the module of the crate `playground`, into a folder. */
async function site(module, out) {
  if (out === undefined) throw new Error("node build.mjs site MODULE.wasm OUT");
  await mkdir(out, { recursive: true });
  const built = (name, define = {}) => esbuild.build({ ...shared, entryPoints: [name], format: "iife", define });
  const worker = await built("src/engine/worker.ts");
  const define = { WORKER: JSON.stringify(worker.outputFiles[0].text), EXAMPLES: JSON.stringify(await examples()) };
  for (const [name, source, defined] of [
    ["app.js", "src/playground/app.ts", define],
    ["stories.js", "src/stories/app.ts", { ...define, EXAMPLES: "[]" }],
  ]) {
    const script = await built(source, defined);
    const legal = await notices(root, worker.metafile, script.metafile);
    await writeFile(path.join(out, name), legal + script.outputFiles[0].text);
  }
  const own = await Promise.all(
    [
      "node_modules/uplot/dist/uPlot.min.css",
      "src/report/report.css",
      "src/playground/site.css",
      "src/stories/stories.css",
    ].map((name) => readFile(path.join(root, name), "utf8")),
  );
  const style = await esbuild.transform((await pageStyle()) + own.join("\n"), { loader: "css", minify: true });
  await writeFile(path.join(out, "site.css"), style.code);
  await copyFile(path.join(root, "site.html"), path.join(out, "index.html"));
  await copyFile(path.join(root, "stories.html"), path.join(out, "stories.html"));
  // A page from disk may fetch no file, but may load a script: the module is one, compressed.
  const bytes = await optimised(module);
  // XZ takes a quarter less than DEFLATE, which browsers have built in.
  const level = quick ? ["-1"] : ["-9", "--extreme"];
  const packed = execFileSync("xz", ["--check=crc32", ...level, "--stdout"], {
    input: bytes,
    maxBuffer: 1 << 26,
  });
  await writeFile(path.join(out, "module.js"), `window.lastmileModule="${packed.toString("base64")}";\n`);
  let sum = 0;
  for (const name of ["index.html", "app.js", "stories.html", "stories.js", "site.css", "module.js"]) {
    const text = await readFile(path.join(out, name));
    const compressed = gzipSync(text, { level: 9 }).length;
    sum += compressed;
    console.log(`${name}: ${text.length} bytes, ${compressed} compressed`);
  }
  console.log(`together: ${sum} bytes compressed`);
}

/** The module after the optimiser of Binaryen, if there is one; it takes a minute. */
async function optimised(module) {
  const bytes = await readFile(module);
  if (quick) return bytes;
  const target = `${module}.optimised`;
  const features = [
    "bulk-memory",
    "nontrapping-float-to-int",
    "sign-ext",
    "mutable-globals",
    "reference-types",
    "multivalue",
  ];
  const flags = features.map((name) => `--enable-${name}`);
  execFileSync(path.join(root, "node_modules/.bin/wasm-opt"), [
    module,
    "-O2",
    "--strip-producers",
    ...flags,
    "-o",
    target,
  ]);
  return readFile(target);
}

if (what === "report") await report(rest.includes("--check"));
else if (what === "site") await site(...rest);
else throw new Error(`unknown: ${what}; known: report, site`);
