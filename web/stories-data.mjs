// The values behind the figures of stories: published and simulated ones, and verdicts. `node stories-data.mjs
// [LASTMILE]` runs `lastmile reproduce --json` for their tables, which takes up to an hour of one core, and writes
// src/stories/data/stories.json. `node stories-data.mjs --from RESULT.json...` takes results of that command that
// exist.
import { execFileSync } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";
import { parse } from "smol-toml";

const root = path.dirname(fileURLToPath(import.meta.url));
const out = path.join(root, "src/stories/data/stories.json");

/** The stories, from their TypeScript. */
export async function stories() {
  const built = await esbuild.build({
    entryPoints: [path.join(root, "src/stories/stories.ts")],
    bundle: true,
    format: "esm",
    write: false,
  });
  return (await import(`data:text/javascript;base64,${Buffer.from(built.outputFiles[0].contents).toString("base64")}`))
    .STORIES;
}

/** Ids of the tables that the figures of a story take values from, or whose experiments they run. */
export function tables(story) {
  const ids = story.figures.flatMap((figure) => [
    ...figure.series.flatMap((series) => series.tables),
    figure.table,
    ...figure.choices.flatMap(({ options }) => options.map(({ table }) => table).filter(Boolean)),
  ]);
  return [...new Set(ids)];
}

/** The published side of a publication, as the crate `published` has it. */
export async function published(key) {
  return parse(await readFile(path.join(root, `../crates/published/data/${key}.toml`), "utf8"));
}

/** Values that are a number, a text or a switch. */
const plain = (values) => Object.fromEntries(Object.entries(values).filter(([, value]) => typeof value !== "object"));

async function write(results) {
  const found = results.flatMap(({ tables }) => tables);
  const publications = [];
  for (const story of await stories()) {
    const { publication, table } = await published(story.key);
    const kept = tables(story).map((id) => {
      const result = found.find((one) => one.publication === story.key && one.id === id);
      const source = table.find((one) => one.id === id);
      if (result === undefined || source === undefined) throw new Error(`no result of ${story.key}/${id}`);
      const { title, rows, claims, seeds } = result;
      const sides = rows.map(({ params, published, theory, simulated, ci95 }) =>
        Object.fromEntries(
          Object.entries({ params, published, theory, simulated, ci95 }).map(([name, values]) => [name, plain(values)]),
        ),
      );
      return {
        id,
        title,
        where: source.where,
        kind: source.kind,
        seeds: seeds.length,
        scenario: plain(source.scenario),
        rows: sides,
        claims,
      };
    });
    const { key, authors, year, kind, topic } = publication;
    publications.push({ key, authors, year, kind, topic, tables: kept });
  }
  await mkdir(path.dirname(out), { recursive: true });
  await writeFile(out, `${JSON.stringify(publications, null, 1)}\n`);
}

async function main([given = "lastmile", ...files]) {
  if (given === "--from")
    return write(await Promise.all(files.map(async (file) => JSON.parse(await readFile(file, "utf8")))));
  const names = (await stories()).flatMap((story) => tables(story).map((id) => `${story.key}/${id}`));
  try {
    // Code 1 says that a claim is not shown.
    await write([
      JSON.parse(
        execFileSync(given, ["reproduce", ...names, "--json"], {
          maxBuffer: 1 << 28,
          stdio: ["ignore", "pipe", "inherit"],
        }),
      ),
    ]);
  } catch (error) {
    if (error.status !== 1) throw error;
    await write([JSON.parse(error.stdout)]);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2));
