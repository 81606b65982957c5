#!/usr/bin/env bash
# The tests that move real packets: they need root, network namespaces, TUN devices and ping. Elsewhere they are
# skipped, and this says so. Arguments are parts of the names of those that shall run, and options of the test binary.
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

exec "${CARGO:-cargo}" test --config 'target."cfg(unix)".runner="scripts/test-processes.sh"' \
  --locked --package lastmile-live --package lastmile-cli --tests --no-fail-fast -- "$@"
