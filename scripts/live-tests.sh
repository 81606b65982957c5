#!/usr/bin/env bash
# The tests with real packets. They need root, network namespaces, TUN devices and ping; without them the script prints
# a message and passes. Arguments are parts of the names of the tests to run, and options of the test binary.
set -euo pipefail
cd "$(dirname "$0")/.."

skip() { printf 'live tests skipped: %s\n' "$*"; exit 0; }

[ "$(uname -s)" = Linux ] || skip "not Linux"
[ "$(id -u)" = 0 ] || skip "not root"
command -v ip >/dev/null || skip "no ip(8)"
command -v ping >/dev/null || skip "no ping(8)"
[ -c /dev/net/tun ] || skip "no /dev/net/tun"
probe="lastmile-probe-$$"
ip netns add "$probe" 2>/dev/null || skip "network namespaces are not allowed here"
ip netns delete "$probe"

# cargo calls the runner in each package's folder with its binary. All packages, so that cargo takes the features and
# thus the binaries of `cargo test --workspace`: with three packages alone it would compile most of the workspace again.
binaries=$(mktemp)
trap 'rm -f "$binaries"' EXIT
export BINARIES=$binaries PACKAGES='lastmile-live lastmile-measure lastmile-cli'
"${CARGO:-cargo}" test --config 'target."cfg(unix)".runner="scripts/name-binary.sh"' \
  --locked --workspace --tests --quiet
scripts/test-processes.sh "$@" <"$binaries"
