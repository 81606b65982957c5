#!/usr/bin/env bash
# Runs every fuzz target for the given number of seconds, and prints executions and findings.
set -euo pipefail
seconds=${1:?usage: scripts/fuzz.sh SECONDS}
cd "$(dirname "$0")/.."

# libFuzzer's instrumentation needs unstable flags; RUSTC_BOOTSTRAP makes a stable compiler accept them.
export RUSTC_BOOTSTRAP=1
# Link-time optimisation removes the instrumentation. More code units than in releases are quicker to build.
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
# The code under test has no unsafe parts: without a sanitizer, a second has about 25 times the inputs.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
for target in $(cargo fuzz list); do
  printf '%-24s' "$target"
  mkdir -p "fuzz/corpus/$target"
  if cargo fuzz run --features libfuzzer --sanitizer none "$target" "fuzz/corpus/$target" "fuzz/seeds/$target" -- \
    -max_total_time="$seconds" -print_final_stats=1 >"$log" 2>&1; then
    findings="no findings"
  else
    findings="FAILED, input stored in fuzz/artifacts/$target"
    status=1
    tail -n 30 "$log" >&2
  fi
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n1)
  printf '%12s executions in %s s, %s\n' "${executions:-0}" "$seconds" "$findings"
done
exit "$status"
