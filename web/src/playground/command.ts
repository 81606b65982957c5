/** The command that gives the results of a page. */

/** A file, values as `--set` has them, and policies; with several policies a comparison. */
export function command(file: string, set: string[], policies: string[]): string {
  const words = policies.length > 1 ? ["compare", file, "--policy", policies.join()] : ["run", file];
  return ["lastmile", ...words, ...set.flatMap((pair) => ["--set", pair])].map(word).join(" ");
}

/** A word for a shell, in one line: values come from addresses, which strangers write. */
function word(text: string): string {
  const line = text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, " ");
  return /^[\w.,:=/-]+$/.test(line) ? line : `'${line.replaceAll("'", "'\\''")}'`;
}
