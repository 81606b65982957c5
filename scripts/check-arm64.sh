#!/usr/bin/env bash
# Checks for arm64 the crates that make system calls: C's types differ between architectures (`char` has no sign there).
# Nothing is linked, so the C code of dependencies is not compiled either.
set -euo pipefail
cd "$(dirname "$0")/.."
target=aarch64-unknown-linux-gnu
rustc --print target-libdir --target "$target" | xargs test -d || rustup target add "$target" >/dev/null 2>&1 || {
  printf 'continuing without %s: nothing is checked for arm64\n' "$target" >&2
  exit 0
}
# `make test` lints and documents crates once, for the machine (scripts/rustc-of-tests.sh).
unset RUSTC_WORKSPACE_WRAPPER
export CC_aarch64_unknown_linux_gnu=true AR_aarch64_unknown_linux_gnu=true
exec "${CARGO:-cargo}" check --package lastmile-live --package lastmile-scenario --target "$target" --locked --quiet
