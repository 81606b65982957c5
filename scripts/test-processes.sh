#!/usr/bin/env bash
# What cargo starts in place of a binary of live tests, $1: each test is a process of its own, since namespaces are called after the
# process that made them, and several run at once. Those that need a processor for themselves come last, one after the other.
# Further arguments are parts of the names of those that shall run, or --nocapture: then all that they print is shown.
set -euo pipefail
export BINARY=${1:?usage: scripts/test-processes.sh BINARY [--nocapture] [PART-OF-A-NAME...]} SHOW=failures
shift

# They measure how late or how fast something is, or keep a processor busy.
alone='^soak::|^exact::|takes_as_long|same_round_trip|a_flood_leaves|packet_rates|in_and_in_order'
at_once=$((2 * $(nproc)))

names=()
for argument in "$@"; do
  if [ "$argument" = --nocapture ]; then SHOW=everything; else names+=("$argument"); fi
done

run_one() {
  local name=$1 began=$EPOCHREALTIME word=ok output=
  if [ "$SHOW" = everything ]; then
    "$BINARY" --ignored --exact --nocapture "$name" || word=FAILED
  else
    output=$("$BINARY" --ignored --exact --nocapture "$name" 2>&1) || word=FAILED
  fi
  local ended=$EPOCHREALTIME
  printf '%-6s %3d s  %s\n' "$word" "$(((${ended/[.,]/} - ${began/[.,]/} + 500000) / 1000000))" "$name"
  [ "$word" = ok ] || { printf '%s\n' "$output"; return 1; }
}
export -f run_one

run() { xargs --no-run-if-empty --delimiter='\n' --max-args=1 --max-procs="$1" bash -c 'run_one "$1"' run_one; }

tests=$("$BINARY" --ignored --list --format terse "${names[@]}" | sed -n 's/: test$//p')
status=0
awk -v alone="$alone" 'NF && $0 !~ alone' <<<"$tests" | run "$at_once" || status=1
awk -v alone="$alone" 'NF && $0 ~ alone' <<<"$tests" | run 1 || status=1
exit "$status"
