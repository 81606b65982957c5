#!/usr/bin/env bash
# Builds what is published, with the profile `release`: the wheel of the Python package, in target/dist.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$PWD/target}
dist=$target/dist
say() { printf 'dist: %s\n' "$*" >&2; }

rm -rf "$dist"
mkdir -p "$dist"
environment=$target/python/maturin
[ -x "$environment/bin/maturin" ] || {
  "${PYTHON:-python3}" -m venv "$environment"
  "$environment/bin/python" -m pip install --quiet --disable-pip-version-check "$(grep '^maturin==' crates/python/requirements.txt)"
}
"$environment/bin/maturin" build --quiet --manifest-path crates/python/Cargo.toml --profile release --locked \
  --target-dir "$target" --out "$dist"
# Installed as by a user: into an empty environment, and started there.
"${PYTHON:-python3}" -m venv --clear "$target/python/installed"
"$target/python/installed/bin/python" -m pip install --quiet --disable-pip-version-check --no-index "$dist"/*.whl
"$target/python/installed/bin/lastmile" --version
"$target/python/installed/bin/python" -m pip install --quiet --disable-pip-version-check \
  "$(grep '^pytest==' crates/python/requirements.txt)" "$(grep '^polars==' crates/python/requirements.txt)"
(cd crates/python && LASTMILE_COMMAND=$target/python/installed/bin/lastmile LASTMILE_EMPTY=$target/python/installed PYTHONDONTWRITEBYTECODE=1 \
  "$target/python/installed/bin/python" -m pytest --quiet -p no:cacheprovider tests/test_command.py)
for file in "$dist"/*; do
  say "$file, $(($(stat -c %s "$file") / 1000)) kB"
done
