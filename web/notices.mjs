// The licences of the packages that are in the scripts of a page.
import { readFile, readdir } from "node:fs/promises";
import path from "node:path";

/** The texts of the licences as comments for the beginning of a script, from the metafiles of its builds by esbuild. */
export async function notices(root, ...metafiles) {
  const inputs = metafiles.flatMap((metafile) => Object.keys(metafile.inputs));
  const names = new Set(inputs.flatMap((input) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(input)?.[1] ?? []));
  const texts = new Map();
  for (const name of [...names].sort()) {
    const folder = path.join(root, "node_modules", name);
    const read = (file) => readFile(path.join(folder, file), "utf8");
    const file = (await readdir(folder)).find((entry) => /^licen[cs]e/i.test(entry));
    // A package without a file for its licence may begin with it.
    const main = file ? "" : await read(JSON.parse(await read("package.json")).main);
    const text = file ? await read(file) : /^\/\*!(.*?)\*\//s.exec(main)?.[1];
    if (text === undefined) throw new Error(`${name} has no text of its licence`);
    const plain = text.trim().replaceAll("*/", "* /");
    texts.set(plain, [...(texts.get(plain) ?? []), name]);
  }
  return [...texts].map(([text, of]) => `/*! ${of.join(", ")}:\n\n${text}\n*/\n`).join("");
}
