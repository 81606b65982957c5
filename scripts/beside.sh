#!/usr/bin/env bash
# Runs COMMAND with its output shown, and with it the shell command OTHER, whose output follows at the end: `beside.sh
# [--idle] OTHER COMMAND...`. Fails if either fails. With --idle OTHER has the lowest priority: COMMAND mostly waits, as
# live tests do for their lines, and OTHER takes the processor time that it leaves. Without, both share.
set -euo pipefail
idle=()
if [ "${1:-}" = --idle ]; then
  shift
  idle=(nice -n 19)
  ! chrt --idle 0 true 2>/dev/null || idle+=(chrt --idle 0)
fi
other=${1:?usage: scripts/beside.sh [--idle] OTHER COMMAND...}
shift

output=$(mktemp)
trap 'rm -f "$output"' EXIT
# A few seconds later, so that COMMAND has the lock of cargo's target directory first.
(sleep 5; exec "${idle[@]}" bash -euo pipefail -c "$other") >"$output" 2>&1 &
status=0
"$@" || status=$?
wait $! || status=$?
cat "$output"
exit "$status"
