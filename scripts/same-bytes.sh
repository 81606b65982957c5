#!/usr/bin/env bash
# Equal seeds give equal bytes, however the program was compiled: runs scenarios with a debug and an optimised build and
# compares every file that they write.
set -euo pipefail
cd "$(dirname "$0")/.."

export DEBUG=${1:?usage: scripts/same-bytes.sh DEBUG_BINARY OPTIMISED_BINARY}
export OPTIMISED=${2:?usage: scripts/same-bytes.sh DEBUG_BINARY OPTIMISED_BINARY}

compare() {
  local scenario=$1 link=down build
  # Not local: it goes when this process does.
  out=$(mktemp -d)
  trap 'rm -rf "$out"' EXIT
  for build in DEBUG OPTIMISED; do
    "${!build}" run "$scenario" --seed 7 --out "$out/$build" >/dev/null || return
    # With an access line there is a link called down to capture at, or down-1 of several; other networks have links of their own.
    if grep -q '^\[access\]' "$scenario"; then
      if grep -q '^lines' "$scenario"; then link=down-1; fi
      "${!build}" run "$scenario" --seed 7 --out "$out/$build" --capture "$link" >/dev/null || return
    fi
  done
  diff -r "$out/DEBUG" "$out/OPTIMISED" || { echo "same-bytes: $scenario differs between a debug and an optimised build" >&2; return 1; }
  echo "same bytes in both builds: $scenario"
}
export -f compare

printf '%s\n' scenarios/*.toml scenarios/*/*.toml | xargs --max-args=1 --max-procs="$(nproc)" bash -c 'compare "$1"' compare
