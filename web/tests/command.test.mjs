// The command in a saved scenario.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { load } from "./typescript.mjs";

const { command } = await load("src/playground/command.ts");

test("several policies are a comparison, and values are overrides", () => {
  assert.equal(
    command("a.toml", ["access.up.rate=1 Mbit/s"], ["none", "cake"]),
    "lastmile compare a.toml --policy none,cake --set 'access.up.rate=1 Mbit/s'",
  );
  assert.equal(command("a.toml", ["access.policy=cake"], ["cake"]), "lastmile run a.toml --set access.policy=cake");
});

test("a shell takes any value for one word, and the command is one line", () => {
  const value = "name=it's $(id) `id` \u202e;\\ \"x\"";
  const line = command("a b.toml", [value, "x=1\ny=2"], []);
  const said = execFileSync("sh", ["-c", `lastmile() { printf '%s\\n' "$@"; }; ${line}`]).toString();
  assert.deepEqual(said.trim().split("\n"), [
    "run",
    "a b.toml",
    "--set",
    value.replace("\u202e", " "),
    "--set",
    "x=1 y=2",
  ]);
});
