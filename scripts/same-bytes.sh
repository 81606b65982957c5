#!/usr/bin/env bash
# Equal seeds give equal bytes with every build: runs scenarios with a debug and an optimised build, and compares every
# file that they write.
set -euo pipefail
cd "$(dirname "$0")/.."

export DEBUG=${1:?usage: scripts/same-bytes.sh DEBUG_BINARY OPTIMISED_BINARY}
export OPTIMISED=${2:?usage: scripts/same-bytes.sh DEBUG_BINARY OPTIMISED_BINARY}

compare() {
  local scenario=$1 link=down build
  # Not local, because the trap runs when this process ends.
  out=$(mktemp -d)
  trap 'rm -rf "$out"' EXIT
  for build in DEBUG OPTIMISED; do
    "${!build}" run "$scenario" --seed 7 --out "$out/$build" >/dev/null || return
    # An access line has a link `down`, several lines have `down-1`; other networks have other links and no capture
    # here.
    if grep -q '^\[access\]' "$scenario"; then
      if grep -q '^lines' "$scenario"; then link=down-1; fi
      "${!build}" run "$scenario" --seed 7 --out "$out/$build" --capture "$link" >/dev/null || return
    fi
  done
  diff -r "$out/DEBUG" "$out/OPTIMISED" || {
    echo "same-bytes: $scenario differs between a debug and an optimised build" >&2
    return 1
  }
  echo "same bytes in both builds: $scenario"
}
export -f compare

printf '%s\n' scenarios/*.toml scenarios/*/*.toml |
  xargs --max-args=1 --max-procs="$(nproc)" bash -c 'compare "$1"' compare
