#!/usr/bin/env bash
# The runner that cargo starts for a binary of live tests, $1. Each test is a separate process, because namespaces are
# named after the process that created them, and several run at once: as many as there are processors where they measure
# a line, otherwise three times as many. Tests that need a processor for themselves run last, one after the other.
# Further arguments are parts of the names of the tests to run, or --nocapture, which shows all their output. A test
# that fails among others runs once more without them, because other processes can delay what it measures. A test that
# passes only then is reported as `late` at the end.
set -euo pipefail
export BINARY=${1:?usage: scripts/test-processes.sh BINARY [--nocapture] [PART-OF-A-NAME...]} SHOW=failures
shift

# Cargo names the package of the binary. Only those named in $PACKAGES have live tests.
case " ${PACKAGES:-$CARGO_PKG_NAME} " in *" $CARGO_PKG_NAME "*) ;; *) exit 0 ;; esac

# Tests that measure lateness or speed, or keep a processor busy.
alone='^soak::|^timely::|^exact::|takes_as_long|same_round_trip|a_flood_leaves|packet_rates|in_and_in_order'
alone+='|answers_live_as_published'
# Tests that measure a line's rates and delays.
few='^measure::[dfmt]'

names=()
for argument in "$@"; do
  if [ "$argument" = --nocapture ]; then SHOW=everything; else names+=("$argument"); fi
done

# run_one WORD NAME: runs the test NAME, and prints WORD if it passes.
run_one() {
  local word=$1 name=$2 began=$EPOCHREALTIME output=
  if [ "$SHOW" = everything ]; then
    "$BINARY" --ignored --exact --nocapture "$name" || word=FAILED
  else
    output=$("$BINARY" --ignored --exact --nocapture "$name" 2>&1) || word=FAILED
  fi
  local ended=$EPOCHREALTIME
  printf '%-6s %3d s  %s\n' "$word" "$(((${ended/[.,]/} - ${began/[.,]/} + 500000) / 1000000))" "$name"
  [ "$word" = FAILED ] || return 0
  printf '%s\n' "$output"
  printf '%s\n' "$name" >>"$FAILED"
}
export -f run_one

# run WORD AT-ONCE: runs the tests named on standard input, and writes the names of those that fail to $FAILED.
run() {
  : >"$FAILED"
  xargs --no-run-if-empty --delimiter='\n' --max-args=1 --max-procs="$2" bash -c 'run_one "$@"' run_one "$1"
}

FAILED=$(mktemp)
export FAILED
trap 'rm -f "$FAILED"' EXIT

tests=$("$BINARY" --ignored --list --format terse "${names[@]}" | sed -n 's/: test$//p')
# Those of minutes begin first, so that no other waits for them at the end.
tests=$(grep '^detect::' <<<"$tests" || true; grep -v '^detect::' <<<"$tests" || true)
again=
# some AT-ONCE CONDITION: runs the tests whose names meet the condition of awk.
some() {
  awk -v alone="$alone" -v few="$few" "NF && $2" <<<"$tests" | run ok "$1"
  again+=$'\n'$(<"$FAILED")
}
some $((3 * $(nproc))) '$0 !~ alone && $0 !~ few'
some "$(nproc)" '$0 ~ few'
some 1 '$0 ~ alone'
awk NF <<<"$again" | run late 1
[ ! -s "$FAILED" ]
