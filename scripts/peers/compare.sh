#!/usr/bin/env bash
# The comparison with the kernel's queues: every trial of list.sh in the guest, its simulation, and the tables.
#
#   compare.sh LASTMILE FOLDER [PATTERN]     only trials whose name matches the pattern (an extended regular expression)
#
# Trials with a result in FOLDER are skipped. With HERE=yes the trials run on this machine instead of the guest (as
# root, with a kernel that has the required features). Exit code 1: a trial failed; 2: it could not begin.
set -euo pipefail
say() { printf 'peers: %s\n' "$*" >&2; }
die() { say "error: $*"; exit 2; }
[ $# -ge 2 ] || die "which program, and where to? compare.sh LASTMILE FOLDER [PATTERN]"
[ -x "$1" ] || die "no program $1: cargo build --release --package lastmile-cli"
[ -x /usr/bin/python3 ] || die "no /usr/bin/python3"
lastmile=$(realpath "$1")
folder=$2
pattern=${3:-.}
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
mkdir -p "$folder"
folder=$(realpath "$folder")
export DURATION=${DURATION:-30}
scripts/peers/margins.sh "$folder/margins"
scripts/peers/list.sh "$folder/margins" > "$folder/all"
awk -F, -v pattern="$pattern" '$1 ~ pattern' "$folder/all" > "$folder/list"
[ -s "$folder/list" ] || die "no trial's name matches '$pattern'; all are in $folder/all"
without_result() {
  while IFS=, read -r name _; do
    [ -e "$folder/$name/trial.json" ] || echo "$name"
  done < "$folder/list"
}
total=$(wc -l < "$folder/list") pending=$(without_result | wc -l)
say "$pending of $total trials to run, results in $folder: half a minute to a minute of processor time each"

if [ "$pending" = 0 ]; then
  :
elif [ "${HERE:-no}" = yes ]; then
  [ "$(id -u)" = 0 ] || die "on this machine it takes root, for namespaces and the kernel's queues"
  LASTMILE=$lastmile scripts/peers/trials.sh "$folder" < "$folder/list"
else
  # shellcheck disable=SC2016 # $SAVE is expanded in the guest.
  scripts/peers/guest.sh --timeout $((600 + 240 * pending)) --keep "$lastmile" --out "$folder" \
    env "LASTMILE=$lastmile" "DURATION=$DURATION" "LIST=$folder/list" \
    bash -c 'scripts/peers/trials.sh "$SAVE" < "$LIST"'
fi

while IFS=, read -r name remedy line policy up down link _ window start _ downloads offset; do
  simulated=$folder/${name/-"$remedy"-"$line"-/-simulated-}
  [ ! -e "$simulated" ] || continue
  choice=()
  [ "$policy" = none ] || choice=(--policy "$policy")
  "$lastmile" run scripts/peers/line.toml "${choice[@]}" \
    --set "duration=$DURATION s" --set "traffic.ping.start=$start s" \
    --set "access.up.rate=$up" --set "access.down.rate=$down" --set "access.encapsulation=$link" \
    --set "tcp.receive_window=$window B" --set "traffic.download.count=${downloads:-1}" \
    --set "traffic.upload.start=${offset:-0} ms" --out "$simulated.part" > /dev/null
  mv "$simulated.part" "$simulated"
done < "$folder/list"
for line in $(cut -d- -f1 "$folder/list" | sort -u); do
  "$lastmile" report --out "$folder/$line.html" "$folder/$line"-*/ > /dev/null
done
/usr/bin/python3 scripts/peers/report.py "$folder" > "$folder/tables.md"
cat "$folder/tables.md"
failed=$(without_result | tr '\n' ' ')
say "$((SECONDS / 60)) min $((SECONDS % 60)) s"
[ -z "$failed" ] || { say "failed: $failed"; exit 1; }
