// TypeScript for the tests of pure parts.
import { fileURLToPath } from "node:url";
import path from "node:path";
import * as esbuild from "esbuild";

const web = path.join(path.dirname(fileURLToPath(import.meta.url)), "..");

/** The exports of a file of TypeScript, which is bundled. */
export async function load(file) {
  const built = await esbuild.build({
    entryPoints: [path.join(web, file)],
    bundle: true,
    format: "esm",
    write: false,
    loader: { ".css": "text" },
  });
  return import(`data:text/javascript;base64,${Buffer.from(built.outputFiles[0].contents).toString("base64")}`);
}
