#!/usr/bin/env bash
# Runs the tests of the workspace, which `cargo test --workspace --no-run` has compiled, at most $RUST_TEST_THREADS of a
# binary at a time. Cargo runs one binary after the other. Those of the packages below mostly wait, so they run beside
# the others.
set -euo pipefail
cd "$(dirname "$0")/.."
export WAITING='lastmile-measure lastmile-watch'
cargo=${CARGO:-cargo}
runner='target."cfg(unix)".runner="scripts/test-runner.sh"'
tests="$cargo test --config '$runner' --workspace --locked"
exec scripts/beside.sh "RUN=waiting $tests --tests" bash -euo pipefail -c "RUN=others $tests"
