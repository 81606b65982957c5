#!/usr/bin/env bash
# Runs the live tests of the binaries on standard input: a line has the folder to run in, a tabulator, and the binary.
# Each test is a separate process, because namespaces are named after the process that created them, and several run at
# once: as many as there are processors where they measure a line, otherwise four times as many, for most of a test is
# waiting. Tests of minutes run beside these. Tests that need a processor for themselves run last, one after the other.
# Arguments are parts of the names of the tests to run, or --nocapture, which shows all their output. A test that fails
# among others runs once more without them, because other processes can delay what it measures. A test that passes only
# then is reported as `late` at the end.
set -euo pipefail
export SHOW=failures
# One that waits for ever fails; those that are asked to run for long have no limit.
export LIMIT=10m
[ -z "${LASTMILE_LONG-}${LASTMILE_HOSTILE_S-}" ] || LIMIT=0

# Tests that measure lateness or speed, or keep a processor busy.
alone='^soak::|^timely::|^exact::|takes_as_long|same_round_trip|a_flood_leaves|packet_rates|in_and_in_order'
alone+='|answers_live_as_published|lost_under_load'
# Tests that measure a line's rates and delays.
few='^measure::[dfmt]|^autorate::a_shaper_finds'
minutes='^detect::'

names=()
for argument in "$@"; do
  if [ "$argument" = --nocapture ]; then SHOW=everything; else names+=("$argument"); fi
done

# run_one WORD TEST: runs the test, which is its folder, binary and name, and prints WORD if it passes.
run_one() {
  local word=$1 folder binary name began=$EPOCHREALTIME output=
  IFS=$'\t' read -r folder binary name <<<"$2"
  cd "$folder"
  if [ "$SHOW" = everything ]; then
    timeout "$LIMIT" "$binary" --ignored --exact --nocapture "$name" || word=FAILED
  else
    output=$(timeout "$LIMIT" "$binary" --ignored --exact --nocapture "$name" 2>&1) || word=FAILED
  fi
  local ended=$EPOCHREALTIME
  printf '%-6s %3d s  %s\n' "$word" "$(((${ended/[.,]/} - ${began/[.,]/} + 500000) / 1000000))" "$name"
  [ "$word" = FAILED ] || return 0
  printf '%s\n' "$output"
  printf '%s\n' "$2" >>"$FAILED/$1"
}
export -f run_one

# run WORD AT-ONCE: runs the tests on standard input, and adds those that fail to the file $FAILED/WORD.
run() {
  xargs --no-run-if-empty --delimiter='\n' --max-args=1 --max-procs="$2" bash -c 'run_one "$@"' run_one "$1"
}

FAILED=$(mktemp -d)
export FAILED
trap 'rm -rf "$FAILED"' EXIT
touch "$FAILED/ok"

tests=$(
  while IFS=$'\t' read -r folder binary; do
    "$binary" --ignored --list --format terse "${names[@]}" | sed -n "s|\(.*\): test\$|$folder\t$binary\t\1|p"
  done
)
# some AT-ONCE CONDITION: runs the tests whose names meet the condition of awk.
some() {
  awk -F '\t' -v alone="$alone" -v few="$few" -v minutes="$minutes" "NF && $2" <<<"$tests" | run ok "$1"
}
some "$(nproc)" '$3 ~ minutes' &
some $((4 * $(nproc))) '$3 !~ alone && $3 !~ few && $3 !~ minutes'
some "$(nproc)" '$3 ~ few'
wait
some 1 '$3 ~ alone'
run late 1 <"$FAILED/ok"
[ ! -e "$FAILED/late" ]
