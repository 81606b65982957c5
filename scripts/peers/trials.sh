#!/usr/bin/env bash
# Trials, one after the other, each into a folder in $SAVE (or in FOLDER). This runs in the guest.
#
#   trials.sh FOLDER < list     lines of: NAME REMEDY LINE POLICY "UP" "DOWN" LINK OVERHEAD WINDOW START JUMPS DOWNLOADS
#                               OFFSET, separated by commas; see trial.sh
set -uo pipefail
folder=$1
here=$(cd "$(dirname "$0")" && pwd)
own=$(mktemp -d)
# A first run reads the programs into memory.
/usr/bin/python3 -I -S -c 'import csv, json, pathlib, socket, threading'
"$LASTMILE" --version > /dev/null
# A folder is for one kernel: its name is that of all its rows.
if [ -s "$folder/kernel" ] && [ "$(cat "$folder/kernel")" != "$(uname -r)" ] &&
  compgen -G "$folder/*/trial.json" > /dev/null; then
  echo "peers: error: $folder has trials with $(cat "$folder/kernel"), and this kernel is $(uname -r):" \
    "name another folder (make peers PEERS_OUT=FOLDER)" >&2
  exit 2
fi
uname -r > "$folder/kernel"
while IFS=, read -r name remedy line policy up down link overhead window start jumps downloads offset; do
  [ ! -e "$folder/$name" ] || continue
  if UP=$up DOWN=$down LINK=$link OVERHEAD=$overhead WINDOW=$window START=$start JUMPS=$jumps \
    DOWNLOADS=${downloads:-1} OFFSET=${offset:-0} \
    "$here/trial.sh" "$remedy" "$line" "$policy" "$own/$name" < /dev/null; then
    cp -r "$own/$name" "$folder/$name.part"
    mv "$folder/$name.part" "$folder/$name"
    echo "$name: $(cut -c1-190 "$own/$name/trial.json")" >&2
  else
    echo "$name: failed" >&2
  fi
done
