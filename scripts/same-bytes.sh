#!/usr/bin/env bash
# Equal seeds give equal bytes, however the program was compiled: runs scenarios with the debug and the release build and
# compares every file that they write.
set -euo pipefail
cd "$(dirname "$0")/.."

debug=${1:?usage: scripts/same-bytes.sh DEBUG_BINARY RELEASE_BINARY}
release=${2:?usage: scripts/same-bytes.sh DEBUG_BINARY RELEASE_BINARY}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

for scenario in scenarios/*.toml scenarios/*/*.toml; do
  for build in debug release; do
    "${!build}" run "$scenario" --seed 7 --out "$out/$build" >/dev/null
    # With an access line there is a link called down to capture at, or down-1 of several; other networks have links of their own.
    if grep -q '^\[access\]' "$scenario"; then
      link=down
      if grep -q '^lines' "$scenario"; then link=down-1; fi
      "${!build}" run "$scenario" --seed 7 --out "$out/$build" --capture "$link" >/dev/null
    fi
  done
  diff -r "$out/debug" "$out/release" || { echo "same-bytes: $scenario differs between debug and release" >&2; exit 1; }
  rm -rf "$out/debug" "$out/release"
  echo "same bytes in debug and release: $scenario"
done
