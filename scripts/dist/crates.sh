#!/usr/bin/env bash
# The packages for crates.io, in target/dist/crates, in the order in which they can be published (`order`). The command
# is compiled from them alone, so that no package lacks a file.
source "$(dirname "$0")/common.bash"
out=$dist/crates
work=$work/crates
rm -rf "$out" "$work"
mkdir -p "$out" "$work"
python=${PYTHON:-python3}

# Names in the order of dependencies, for those that are published; an error for one that lacks what crates.io asks for.
cargo metadata --format-version 1 --no-deps --locked | "$python" scripts/dist/crates.py >"$out/order"
mapfile -t names <"$out/order"
say "packing ${#names[@]} crates"
arguments=()
for name in "${names[@]}"; do arguments+=(--package "$name"); done
git diff --quiet HEAD 2>/dev/null || arguments+=(--allow-dirty)
usual='manifest has no documentation\|^  |$\|^  = note: see\|^warning: .*$\|Updating'
cargo package --quiet --no-verify --locked "${arguments[@]}" 2>&1 | { grep -v "$usual" || true; } >&2

# A workspace of the unpacked packages, each in place of the one of the registry. Their files are of now: cargo compiles
# them anew.
{
  printf '[workspace]\nresolver = "3"\nmembers = ["*"]\nexclude = ["target"]\n\n[patch.crates-io]\n'
  for name in "${names[@]}"; do
    cp "$target/package/$name-$version.crate" "$out/"
    tar -xzmf "$out/$name-$version.crate" -C "$work"
    printf '%s = { path = "%s" }\n' "$name" "$name-$version"
  done
} >"$work/Cargo.toml"
cp Cargo.lock "$work/"
say "compiling the command from them"
cargo check --quiet --offline --manifest-path "$work/lastmile-cli-$version/Cargo.toml" --target-dir "$target"
say "$(du -ch "$out"/*.crate | tail -n 1 | cut -f1) in ${#names[@]} packages"
