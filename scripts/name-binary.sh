#!/usr/bin/env bash
# A runner that cargo starts in the folder of a package for a binary of tests, $1: appends folder and binary to the file
# $BINARIES if the package is one of $PACKAGES.
set -euo pipefail
case " $PACKAGES " in *" $CARGO_PKG_NAME "*) printf '%s\t%s\n' "$PWD" "$1" >>"$BINARIES" ;; esac
