#!/usr/bin/env bash
# The runner that cargo starts for the binary $1 of tests. It runs those of the packages in $WAITING if $RUN is
# `waiting`, and otherwise those of the other packages. Cargo names the package of the binary.
set -euo pipefail
case " $WAITING " in *" $CARGO_PKG_NAME "*) kind=waiting ;; *) kind=others ;; esac
[ "$kind" = "$RUN" ] || exit 0
exec "$@"
