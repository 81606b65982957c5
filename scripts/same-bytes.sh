#!/usr/bin/env bash
# Equal seeds give equal bytes, however the program was compiled: runs scenarios with a debug and an optimised build and
# compares every file that they write.
set -euo pipefail
cd "$(dirname "$0")/.."

debug=${1:?usage: scripts/same-bytes.sh DEBUG_BINARY OPTIMISED_BINARY}
optimised=${2:?usage: scripts/same-bytes.sh DEBUG_BINARY OPTIMISED_BINARY}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

for scenario in scenarios/*.toml scenarios/*/*.toml; do
  for build in debug optimised; do
    "${!build}" run "$scenario" --seed 7 --out "$out/$build" >/dev/null
    # With an access line there is a link called down to capture at, or down-1 of several; other networks have links of their own.
    if grep -q '^\[access\]' "$scenario"; then
      link=down
      if grep -q '^lines' "$scenario"; then link=down-1; fi
      "${!build}" run "$scenario" --seed 7 --out "$out/$build" --capture "$link" >/dev/null
    fi
  done
  diff -r "$out/debug" "$out/optimised" || { echo "same-bytes: $scenario differs between a debug and an optimised build" >&2; exit 1; }
  rm -rf "$out/debug" "$out/optimised"
  echo "same bytes in both builds: $scenario"
done
