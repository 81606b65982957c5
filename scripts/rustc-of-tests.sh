#!/usr/bin/env bash
# The compiler of `make test` for crates of the workspace: cargo starts it as RUSTC_WORKSPACE_WRAPPER. One build
# compiles a crate, lints it as `cargo clippy` does, and documents it as `cargo doc` does, with warnings as errors.
# Either command by itself checks all dependencies once more.
# Tests are not optimised; the crates that they call are. To optimise the modules of a crate a second time, as part of
# its unit tests, takes several times the processor time that it saves when these tests run.
set -euo pipefail
rustc=$1
shift
clippy=("${rustc%rustc}clippy-driver" "$rustc" "$@" -D warnings)

kind= folder= options=(-D warnings) previous=
for argument in "$@"; do
  case $argument in
    --emit=*) continue ;;
    --test) exec "${clippy[@]}" -C opt-level=0 ;;
  esac
  case $previous in
    --crate-type) kind=$argument ;;
    --out-dir) folder=$argument argument=${argument%deps}doc ;;
  esac
  options+=("$argument")
  previous=$argument
done

# Libraries and programs are in `deps`; build scripts and examples are elsewhere, and the module for Python is a cdylib.
case $kind-$folder in
  lib-*/deps | rlib-*/deps) ;;
  bin-*/deps) options+=(--document-private-items) ;;
  *) exec "${clippy[@]}" ;;
esac
"${clippy[@]}"
exec "${rustc%rustc}rustdoc" "${options[@]}"
