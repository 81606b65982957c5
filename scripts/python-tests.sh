#!/usr/bin/env bash
# The tests of the Python package: a wheel with the profile `dev`, installed into an environment below target/python,
# and pytest there. Arguments go to pytest; `--run PROGRAM` runs a program of Python there instead. Without Python 3.11
# or newer, nothing is tested. The wheel is without the command, which is half of the compile time: results are compared
# with the program that `cargo test --workspace` has built. scripts/dist/wheels.sh tests the command of the wheel.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$PWD/target}
home=$target/python
pyright_version=1.1.414
say() { printf 'python: %s\n' "$*" >&2; }

python=
for candidate in "${PYTHON:-python3}" python3.14 python3.13 python3.12 python3.11; do
  if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    python=$candidate
    break
  fi
done
if [ -z "$python" ]; then
  say "continuing without Python 3.11 or newer and its venv: the package is not tested"
  exit 0
fi

# An environment for each set of packages and each Python.
wanted=$("$python" -c 'import sys; print(sys.version)' | cat - crates/python/requirements.txt | sha256sum | cut -c1-16)
environment=$home/environment-$wanted
if [ ! -e "$environment/ready" ]; then
  say "installing what the tests need into $environment"
  rm -rf "$home"/environment-*
  "$python" -m venv "$environment"
  "$environment/bin/python" -m pip install --quiet --disable-pip-version-check -r crates/python/requirements.txt || {
    say "continuing without these packages: the package is not tested"
    exit 0
  }
  touch "$environment/ready"
fi

# pyright is a program of Node.js. PyPI's package of that name would download Node.js when it runs.
pyright=$home/pyright-$pyright_version/node_modules/.bin/pyright
if [ ! -x "$pyright" ] && command -v node > /dev/null && command -v npm > /dev/null; then
  say "installing pyright into $home/pyright-$pyright_version"
  npm install --silent --no-audit --no-fund --prefix "$home/pyright-$pyright_version" "pyright@$pyright_version" ||
    say "continuing without pyright"
fi

rm -rf "$home/wheels"
"$environment/bin/maturin" build --quiet --manifest-path crates/python/Cargo.toml --features extension \
  --profile dev --locked --auditwheel skip --target-dir "$target" --interpreter "$environment/bin/python" \
  --out "$home/wheels"
"$environment/bin/python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps \
  --force-reinstall "$home"/wheels/*.whl
rm -rf "$home/empty"
"$python" -m venv --without-pip "$home/empty"
"$environment/bin/python" -m pip --python "$home/empty/bin/python" install --quiet --disable-pip-version-check \
  --no-index "$home"/wheels/*.whl

[ -x "$target/debug/lastmile" ] || "${CARGO:-cargo}" test --workspace --locked --no-run --quiet
export LASTMILE_PYRIGHT=$pyright LASTMILE_EMPTY=$home/empty LASTMILE_COMMAND=$target/debug/lastmile
export MPLBACKEND=agg PYTHONDONTWRITEBYTECODE=1
if [ "${1:-}" = --run ]; then
  shift
  exec "$environment/bin/python" "$@"
fi
cd crates/python
exec "$environment/bin/python" -m pytest --quiet -p no:cacheprovider "$@"
