#!/usr/bin/env bash
# The comparison with the kernel's queues: every trial of list.sh in the guest, the same simulated, and the tables.
#
#   compare.sh LASTMILE FOLDER [PATTERN]     only trials whose name matches the pattern (grep -E)
#
# What has a result in FOLDER already is not run again. With HERE=yes the trials run on this machine in place of the guest (as root; the
# kernel must have what they ask for).
set -euo pipefail
lastmile=$(realpath "$1")
folder=$2
pattern=${3:-.}
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
mkdir -p "$folder"
folder=$(realpath "$folder")
export DURATION=${DURATION:-30}
scripts/peers/margins.sh "$folder/margins"
scripts/peers/list.sh "$folder/margins" | grep -E "$pattern" > "$folder/list"

if [ "${HERE:-no}" = yes ]; then
  LASTMILE=$lastmile scripts/peers/trials.sh "$folder" < "$folder/list"
else
  # shellcheck disable=SC2016 # The guest knows what $SAVE is.
  scripts/peers/guest.sh --timeout 7200 --keep "$lastmile" --out "$folder" \
    env "LASTMILE=$lastmile" "DURATION=$DURATION" "LIST=$folder/list" \
    bash -c 'scripts/peers/trials.sh "$SAVE" < "$LIST"'
fi

while IFS=, read -r name remedy line policy up down link _ window start _ downloads offset; do
  simulated=$folder/${name/-"$remedy"-"$line"-/-simulated-}
  [ ! -e "$simulated" ] || continue
  choice=()
  [ "$policy" = none ] || choice=(--policy "$policy")
  "$lastmile" run scripts/peers/line.toml "${choice[@]}" --set "duration=$DURATION s" --set "traffic.ping.start=$start s" \
    --set "access.up.rate=$up" --set "access.down.rate=$down" --set "access.encapsulation=$link" --set "tcp.receive_window=$window B" \
    --set "traffic.download.count=${downloads:-1}" --set "traffic.upload.start=${offset:-0} ms" \
    --out "$simulated.part" > /dev/null
  mv "$simulated.part" "$simulated"
done < "$folder/list"
for line in $(cut -d- -f1 "$folder/list" | sort -u); do
  "$lastmile" report --out "$folder/$line.html" "$folder/$line"-*/ > /dev/null
done
/usr/bin/python3 scripts/peers/report.py "$folder" > "$folder/tables.md"
cat "$folder/tables.md"
