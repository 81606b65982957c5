#!/usr/bin/env bash
# Trials, one after the other, each to a file of $SAVE (or of the folder FOLDER): what the guest runs.
#
#   trials.sh FOLDER < list     lines of: NAME REMEDY LINE POLICY "UP" "DOWN" LINK OVERHEAD, separated by commas
set -uo pipefail
folder=$1
here=$(cd "$(dirname "$0")" && pwd)
own=$(mktemp -d)
# A first run of what is not in memory yet.
/usr/bin/python3 -I -S -c 'import json, socket, threading'
"$LASTMILE" --version > /dev/null
uname -r > "$folder/kernel"
while IFS=, read -r name remedy line policy up down link overhead; do
  [ ! -e "$folder/$name.json" ] || continue
  if UP=$up DOWN=$down LINK=$link OVERHEAD=$overhead "$here/trial.sh" "$remedy" "$line" "$policy" "$own/result" < /dev/null; then
    cp "$own/result" "$folder/$name.json"
    echo "$name: $(cut -c1-190 "$own/result")" >&2
  else
    echo "$name: failed" >&2
  fi
done
