#!/usr/bin/env bash
# The tests of pages: types, the scripts in binaries, and reports, dashboard and playground in the browsers of the
# machine. Arguments go to node's test runner. Without node, npm or Chromium, nothing is tested.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$PWD/target}
cargo=${CARGO:-cargo}
say() { printf 'web: %s\n' "$*" >&2; }

for program in node npm; do
  command -v "$program" >/dev/null || {
    say "continuing without $program: pages are not tested"
    exit 0
  }
done
[ "$(node -p 'Number(process.versions.node.split(".")[0]) >= 20')" = true ] || {
  say "continuing with node $(node --version), where 20 or newer is needed: pages are not tested"
  exit 0
}
scripts/web-packages.sh || {
  say "continuing without these packages: pages are not tested"
  exit 0
}
(cd web && npx --no-install tsc --noEmit && node build.mjs report --check && node dashboard.mjs --check >/dev/null)
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || {
  say "continuing without chromium: pages are not tested in a browser"
  exit 0
}

cd web
options=("$@")
# run FILE...: files of tests wait for browsers most of the time, so two run at once.
run() { LASTMILE=$target/debug/lastmile SITE=$target/web/site node --test --test-concurrency=2 "${options[@]}" "$@"; }
# Files that need the module are tested as soon as it is built, beside the others.
with_module=(tests/playground.test.mjs tests/stories-page.test.mjs)
others=()
for file in tests/*.test.mjs; do
  [[ " ${with_module[*]} " == *" $file "* ]] || others+=("$file")
done
test_with_module() {
  # The profile `dev`: its macros and build scripts are compiled already. The released module is optimised for three
  # minutes more.
  (unset RUSTC_WORKSPACE_WRAPPER && cd .. && CARGO_PROFILE_DEV_DEBUG=false "$cargo" build --quiet --locked \
    --target wasm32-unknown-unknown --package lastmile-playground)
  local module=$target/wasm32-unknown-unknown/debug/lastmile_playground.wasm
  LASTMILE_WASM_OPT=0 node build.mjs site "$module" "$target/web/site" >/dev/null
  run "${with_module[@]}"
}
[ -x "$target/debug/lastmile" ] || (cd .. && "$cargo" test --workspace --locked --no-run --quiet)
output=$(mktemp)
trap 'rm -f "$output"' EXIT
if rustc --print target-libdir --target wasm32-unknown-unknown | xargs test -d && command -v xz >/dev/null; then
  test_with_module >"$output" 2>&1 &
else
  say "continuing without the target wasm32-unknown-unknown or xz: playground and stories are not tested"
  true &
fi
status=0
run "${others[@]}" || status=$?
wait $! || status=$?
cat "$output"
exit "$status"
