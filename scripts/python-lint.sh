#!/usr/bin/env bash
# Lints of the Python package's crate with its extension module, which the lints of the workspace leave out.
set -euo pipefail
cd "$(dirname "$0")/.."
# No interpreter is asked and no libpython linked: the module is for the stable interface of Python 3.11.
export PYO3_NO_PYTHON=1 PYO3_BUILD_EXTENSION_MODULE=1
exec "${CARGO:-cargo}" clippy --package lastmile-python --features command --no-deps --locked --quiet -- -D warnings
