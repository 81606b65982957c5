#!/usr/bin/env bash
# What docs/studies/newer-kernels.md measures, in a guest with a kernel of 7.x (or KERNEL): trials with PIE, FQ-PIE,
# HFSC and a line by netem; single packets through the kernel's queues and ours; Accurate ECN behind ACK regulators.
# Writes FOLDER/results.json.
#
#   newer.sh LASTMILE FOLDER
#
# Parts with a result in FOLDER are skipped.
set -euo pipefail
die() { printf 'peers: error: %s\n' "$*" >&2; exit 2; }
[ $# -ge 2 ] || die "which program, and where to? newer.sh LASTMILE FOLDER"
[ -x "$1" ] || die "no program $1: cargo build --release --package lastmile-cli"
lastmile=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$2/accecn"
folder=$(realpath "$2")
export KERNEL=${KERNEL:-7}
"$here/exact/compare.sh" "$lastmile" "$folder/exact"
if [ ! -e "$folder/accecn/done" ]; then
  # shellcheck disable=SC2016 # $SAVE is expanded in the guest.
  "$here/guest.sh" --timeout 3600 --keep "$lastmile" --out "$folder/accecn" \
    env "LASTMILE=$lastmile" bash -c '"$0" "$SAVE"' "$here/accecn.sh"
  touch "$folder/accecn/done"
fi
for run in "$folder"/accecn/*/; do
  name=$(basename "$run")
  [ -e "$run/simulated/summary.json" ] ||
    "$lastmile" run "$here/accecn.toml" --set "access.up.queue={kind=\"${name%-*}\"}" \
      --set "tcp.variant=${name##*-}" --out "$run/simulated" > /dev/null
done
"$here/compare.sh" "$lastmile" "$folder/trials" '^newer-' > /dev/null
/usr/bin/python3 "$here/newer.py" "$folder"
