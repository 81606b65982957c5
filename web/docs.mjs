// The pages of docs/ as a part of the site: `node docs.mjs MDBOOK OUT [RUSTDOC]` writes OUT/docs by mdBook. Commands in
// the text that run or compare a scenario that ships get a link that opens the playground with it. RUSTDOC is the
// folder of the API reference, if it is built.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), "..");

/** The rows of `lastmile compare` without options. */
export const USUAL = ["none", "cake", "fq-codel-sqm", "full-both-ways"];

/** The words of a command line, as a shell splits it; `null` for anything but words and quotes. */
export function words(line) {
  if (/[|;&<>`$\\]/.test(line)) return null;
  const word = /(?:[^\s'"]|'[^']*'|"[^"]*")+/g;
  if (line.replace(word, "").trim() !== "") return null;
  return line.match(word).map((one) => one.replace(/'([^']*)'|"([^"]*)"/g, "$1$2"));
}

/**
 * The state of the playground that shows what this command shows; `null` if it cannot. `scenario` gives the text of a
 * file that ships.
 */
export function stateOf(line, scenario) {
  const [program, verb, file, ...options] = words(line) ?? [];
  if (program !== "lastmile" || (verb !== "run" && verb !== "compare") || !file?.startsWith("scenarios/")) return null;
  const text = scenario(file);
  if (text === null) return null;
  const state = { source: { from: "example", path: file }, set: {}, policies: [] };
  for (let n = 0; n < options.length; n += 2) {
    const [option, value] = options.slice(n, n + 2);
    if (value === undefined) return null;
    if (option === "--set") {
      const at = value.indexOf("=");
      if (at < 1) return null;
      state.set[value.slice(0, at)] = value.slice(at + 1);
    } else if (option === "--policy") state.policies = value.split(",");
    else if (option === "--duration") state.set.duration = value;
    else if (option === "--seed") state.set.seed = value;
    // Where files go, and what is captured, makes no difference to the report.
    else if (option !== "--out" && option !== "--capture") return null;
  }
  if (verb === "compare" && state.policies.length === 0) {
    // Cases of a scenario are no policies, policies need a line, and the policy of a file is a row of its own.
    if (!/^\[access/m.test(text) || /^\[\[case\]\]|^policy\s*=/m.test(text)) return null;
    state.policies = USUAL;
  }
  return state;
}

/** A page with a link below each block of commands. `address` gives the part after `#`, or `null`. */
export function linked(markdown, base, address) {
  return markdown.replace(/^```console\n([^]*?)^```$/gm, (block, inside) => {
    // A command whose output is an error shows nothing in a browser either.
    const commands = inside.split(/^\$ /m).filter((one) => one.startsWith("lastmile ") && !/^error:/m.test(one));
    const found = commands.map((one) => one.split("\n", 1)[0]).map((line) => [line, address(line)]);
    const links = new Map(found.filter(([, hash]) => hash !== null).map(([line, hash]) => [hash, line]));
    if (links.size === 0) return block;
    const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
    const link = ([hash, line]) => {
      const href = `${base}index.html${encodeURI(decodeURI(hash))}`;
      return `<a class="try" href="${escaped(href)}" title="${escaped(line)}">Try it in the browser</a>`;
    };
    return `${block}\n\n<p class="tries">${[...links].map(link).join(" ")}</p>`;
  });
}

/** Colours of mdBook from the tokens of pages. */
export function colours(tokens) {
  const block = (selector) => {
    const at = tokens.indexOf(`${selector}{`);
    if (at < 0) throw new Error(`tokens.css has no ${selector}`);
    return tokens.slice(at + selector.length + 1, tokens.indexOf("}", at)).replace(/color-scheme:[^;]*;/, "");
  };
  const joined = (selector) => `${block(selector).replace(/\n/g, "").replace(/;$/, "")};`;
  const map = `--bg:var(--paper);--fg:var(--ink);--links:var(--accent);--sidebar-bg:var(--band);--sidebar-fg:var(--ink);
--sidebar-active:var(--accent);--sidebar-non-existant:var(--muted);--sidebar-spacer:var(--rule);
--scrollbar:var(--muted);--icons:var(--muted);--icons-hover:var(--ink);--inline-code-color:var(--ink);
--theme-popup-bg:var(--paper);--theme-popup-border:var(--rule);--theme-hover:var(--band);
--quote-bg:var(--band);--quote-border:var(--rule);
--table-border-color:var(--grid);--table-header-bg:var(--band);--table-alternate-bg:var(--paper);
--searchbar-bg:var(--paper);--searchbar-fg:var(--ink);--searchbar-border-color:var(--rule);
--searchresults-border-color:var(--rule);
--searchresults-header-fg:var(--muted);--searchresults-li-bg:var(--band);--search-mark-bg:var(--accent);`;
  const light = joined(":root");
  const dark = joined(":root[data-theme=dark]");
  return `.light,.rust{${light}${map}}\n.navy,.coal,.ayu{${dark}${map}}\n`;
}

const HEADER = `<nav class="lastmile-top"><b>lastmile</b>
<a href="{{ path_to_root }}../index.html">Playground</a>
<a href="{{ path_to_root }}../stories.html">Stories</a>
<a aria-current="page" href="{{ path_to_root }}index.html">Docs</a></nav>
`;

// The page begins a menu's height above its place, where mdBook puts an empty block.
const STYLE = `
.lastmile-top{position:relative;top:var(--menu-bar-height);z-index:101;background:var(--paper);
margin:0 calc(0px - var(--page-padding));display:flex;flex-wrap:wrap;gap:1.2rem;align-items:baseline;
padding:.7rem 1.2rem;
border-bottom:1px solid var(--rule);font:15px/1.5 var(--text)}
.lastmile-top a{color:var(--muted);text-decoration:none}
.lastmile-top a:hover,.lastmile-top a[aria-current]{color:var(--ink)}
.lastmile-top a[aria-current]{border-bottom:2px solid var(--accent)}
html{font-family:var(--text)}
.content pre,.content code{font-family:var(--mono)}
.content pre>code{background:var(--band)!important;color:var(--ink)}
.content table{font-variant-numeric:tabular-nums}
.tries{margin:.1rem 0 1.2rem}
.try{display:inline-block;border:1px solid var(--rule);
border-radius:999px;padding:.1rem .8rem;font-size:.85em;text-decoration:none}
.try::before{content:"\\25b6\\a0";font-size:.8em}
.try:hover{border-color:var(--accent)}
@media print{.lastmile-top,.tries{display:none}}
`;

function build(mdbook, out, rustdoc) {
  const work = mkdtempSync(path.join(tmpdir(), "lastmile-docs-"));
  try {
    const source = path.join(work, "docs");
    cpSync(path.join(root, "docs"), source, { recursive: true });
    const { toReadable } = requireState();
    const scenario = (file) => {
      const at = path.join(root, file);
      return existsSync(at) ? readFileSync(at, "utf8") : null;
    };
    const address = (line) => {
      const state = stateOf(line, scenario);
      return state === null ? null : toReadable(state);
    };
    let count = 0;
    for (const entry of readdirSync(source, { recursive: true }).filter((name) => name.endsWith(".md"))) {
      const file = path.join(source, entry);
      const text = readFileSync(file, "utf8");
      const base = "../".repeat(entry.split(path.sep).length);
      const page = linked(text, base, (line) => address(line));
      count += page.split('class="try"').length - 1;
      if (page !== text) writeFileSync(file, page);
    }
    references(source, out, rustdoc);
    configure(work);
    rmSync(path.join(out, "docs"), { recursive: true, force: true });
    execFileSync(mdbook, ["build", "--dest-dir", path.resolve(out, "docs")], {
      cwd: work,
      stdio: ["ignore", "ignore", "inherit"],
    });
    console.log(`docs: ${count} links to the playground`);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** The functions of addresses, from their TypeScript. */
function requireState() {
  const built = esbuild.buildSync({
    entryPoints: [path.join(root, "web/src/playground/state.ts")],
    bundle: true,
    format: "cjs",
    write: false,
  });
  const module = { exports: {} };
  new Function("module", "exports", built.outputFiles[0].text)(module, module.exports);
  return module.exports;
}

/** Pages of the APIs: that of Python from its stubs, that of Rust where it is built. */
function references(source, out, rustdoc) {
  const contents = path.join(source, "SUMMARY.md");
  const lines = ["- [Python API](reference/python-api.md)"];
  const python = execFileSync("python3", [path.join(root, "scripts/python-api.py")], { encoding: "utf8" });
  writeFileSync(path.join(source, "reference/python-api.md"), python);
  const api = path.join(out, "api");
  rmSync(api, { recursive: true, force: true });
  if (rustdoc !== undefined && existsSync(path.join(rustdoc, "lastmile/index.html"))) {
    cpSync(rustdoc, api, { recursive: true });
    const text =
      "# Rust API\n\nThe [reference of the crates](../../api/lastmile/index.html) describes every public item.\n";
    writeFileSync(path.join(source, "reference/rust-api.md"), text);
    lines.push("- [Rust API](reference/rust-api.md)");
  }
  const summary = readFileSync(contents, "utf8");
  const heading = /^# Reference\n\n/m;
  if (!heading.test(summary)) throw new Error("docs/SUMMARY.md has no part # Reference");
  writeFileSync(
    contents,
    summary.replace(heading, (found) => `${found}${lines.join("\n")}\n`),
  );
}

/** Configuration, style and the link back to the playground. */
function configure(work) {
  const tokens = readFileSync(path.join(root, "crates/results/assets/tokens.css"), "utf8");
  const style = colours(tokens) + readFileSync(path.join(root, "docs/book.css"), "utf8") + STYLE;
  writeFileSync(path.join(work, "docs/book.css"), style);
  writeFileSync(path.join(work, "book.toml"), readFileSync(path.join(root, "book.toml"), "utf8"));
  mkdirSync(path.join(work, "theme"), { recursive: true });
  writeFileSync(path.join(work, "theme/header.hbs"), HEADER);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [mdbook, out, rustdoc] = process.argv.slice(2);
  if (out === undefined) throw new Error("node docs.mjs MDBOOK OUT [RUSTDOC]");
  build(mdbook, out, rustdoc);
}
