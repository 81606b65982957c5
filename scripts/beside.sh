#!/usr/bin/env bash
# Runs COMMAND with its output shown, and at the lowest priority, beside it, the shell command BACKGROUND, whose output follows at the end.
# Fails if either fails. COMMAND mostly waits, as live tests do for their lines; BACKGROUND takes the processor time that it leaves.
set -euo pipefail
background=${1:?usage: scripts/beside.sh BACKGROUND COMMAND...}
shift

output=$(mktemp)
trap 'rm -f "$output"' EXIT
idle=(nice -n 19)
! chrt --idle 0 true 2>/dev/null || idle+=(chrt --idle 0)

# A few seconds later, so that COMMAND has the lock of cargo's target directory first.
(sleep 5; exec "${idle[@]}" bash -c "$background") >"$output" 2>&1 &
status=0
"$@" || status=$?
wait $! || status=$?
cat "$output"
exit "$status"
