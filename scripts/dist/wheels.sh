#!/usr/bin/env bash
# The source archive and the wheels of the Python package, in target/dist. Wheels are built from the unpacked archive,
# so that it lacks no file. zig links them against glibc 2.17, which makes them manylinux2014. One wheel serves Python
# 3.11 and newer; free-threaded Python has a wheel of its own (FREE_THREADED, 3.14t by default).
source "$(dirname "$0")/common.bash"
prepare_tools
mkdir -p "$dist" "$work"
rm -f "$dist"/*.whl "$dist/lastmile_tcp-$version.tar.gz"
read -r -a free_threaded <<<"${FREE_THREADED-3.14t}"

# license-files of pyproject.toml names it: archive and wheels have it.
licences=crates/python/LICENSE-THIRD-PARTY
trap 'rm -f "$licences"' EXIT
scripts/dist/licences.py "$licences" lastmile-python "${architectures[@]/%/-unknown-linux-gnu}"
maturin sdist --manifest-path crates/python/Cargo.toml --out "$dist"
archive=$work/lastmile_tcp-$version
rm -rf "$archive"
tar -xzmf "$dist/lastmile_tcp-$version.tar.gz" -C "$work"
# Its files are of now: cargo compiles them anew. Its lock file is that of the workspace: cargo takes out what members
# outside the archive need.
cargo metadata --format-version 1 --manifest-path "$archive/Cargo.toml" >/dev/null

build() { # architecture, interpreter
  say "wheel for $1, $2, profile $profile"
  # As for another machine: maturin knows the settings of an interpreter that is not installed.
  (cd "$archive" && PYO3_CROSS=1 maturin build --quiet --profile "$profile" --locked --zig \
    --compatibility manylinux2014 --target "$1-unknown-linux-gnu" --interpreter "$2" \
    --target-dir "$target" --out "$dist")
}
for architecture in "${architectures[@]}"; do
  rustup target add "$architecture-unknown-linux-gnu" >&2
  for python in 3.11 "${free_threaded[@]}"; do
    build "$architecture" "$python"
  done
done
twine check --strict "$dist"/*.whl "$dist/lastmile_tcp-$version.tar.gz" >&2

# Installed as by a user: into an empty environment, and started there. Then the tests of the command.
[[ " ${architectures[*]} " == *" $(uname -m) "* ]] || {
  say "continuing without a wheel for $(uname -m): none is installed"
  exit 0
}
installed=$target/python/installed
"${PYTHON:-python3}" -m venv --clear "$installed"
"$installed/bin/python" -m pip install --quiet --disable-pip-version-check --no-index --find-links "$dist" \
  "lastmile-tcp==$version"
shown=$("$installed/bin/lastmile" --version)
[ "$shown" = "lastmile $version" ] || die "the command of the wheel prints $shown"
"$installed/bin/python" -c 'from importlib.metadata import distribution
notices = distribution("lastmile-tcp").read_text("licenses/LICENSE-THIRD-PARTY") or ""
absent = [name for name in ("uplot (in pages)", "standard library", "pyo3 ", "DejaVu") if name not in notices]
raise SystemExit(f"dist: error: the wheel has no licences of {absent}" if absent else 0)'
picture=$work/wheel.svg
"$installed/bin/lastmile" plot scenarios/upload-starves-download.toml --panel Goodput --out "$picture" 2>/dev/null
"$installed/bin/python" -c \
  'import lastmile as lm; print(lm.run("scenarios/upload-starves-download.toml").limits("download"))' >&2
"$installed/bin/python" -m pip install --quiet --disable-pip-version-check \
  "$(grep '^pytest==' crates/python/requirements.txt)" "$(grep '^polars==' crates/python/requirements.txt)"
(cd crates/python && LASTMILE_COMMAND=$installed/bin/lastmile LASTMILE_EMPTY=$installed PYTHONDONTWRITEBYTECODE=1 \
  "$installed/bin/python" -m pytest --quiet -p no:cacheprovider tests/test_command.py)
