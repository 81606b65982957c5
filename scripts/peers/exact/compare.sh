#!/usr/bin/env bash
# Queues of a guest's kernel and ours, packet by packet: sends the sequences of experiments.py through the kernel's
# queues in the guest, replays them through ours in the simulator, and prints what both did.
#
#   exact/compare.sh LASTMILE FOLDER [PATTERN]     only experiments whose name matches the pattern (a regular
#                                                  expression)
#
# Experiments with a result in FOLDER are skipped. KERNEL chooses the kernel of the guest (see fetch.sh).
set -euo pipefail
die() { printf 'peers: error: %s\n' "$*" >&2; exit 2; }
[ $# -ge 2 ] || die "which program, and where to? compare.sh LASTMILE FOLDER [PATTERN]"
[ -x "$1" ] || die "no program $1: cargo build --release --package lastmile-cli"
[ -x /usr/bin/python3 ] || die "no /usr/bin/python3"
lastmile=$(realpath "$1") pattern=${3:-.}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$2"
folder=$(realpath "$2")
/usr/bin/python3 "$here/experiments.py" "$folder"
pending=()
for sequence in "$folder"/*.pcap; do
  name=$(basename "$sequence" .pcap)
  grep -qE "$pattern" <<< "$name" || continue
  [ -e "$folder/$name.json" ] || pending+=("$name")
  [ -e "$folder/$name" ] ||
    "$lastmile" run "$folder/$name.toml" --out "$folder/$name" --capture up,dslam-gateway > /dev/null
done
if [ ${#pending[@]} -gt 0 ]; then
  printf 'peers: %s experiments in the guest: %s\n' "${#pending[@]}" "${pending[*]}" >&2
  # shellcheck disable=SC2016 # $SAVE is expanded in the guest.
  "$here/../guest.sh" --timeout $((900 + 300 * ${#pending[@]})) --out "$folder" -- \
    bash -c '/usr/bin/python3 -I -S "$0" "$SAVE" "$1"' "$here/guest.py" "^($(IFS='|'; echo "${pending[*]}"))\$"
fi
rm -f "$folder"/*.pcap
/usr/bin/python3 "$here/judge.py" "$folder"
