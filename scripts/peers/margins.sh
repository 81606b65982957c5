#!/usr/bin/env bash
# Writes policies with several shares of the line: margin-90.toml to margin-99.toml from policies/margin.toml;
# margin-fifo-90.toml and margin-fifo-97.toml with a FIFO for the download, as on kernels without FQ-CoDel; full-90.toml
# to full-99.toml, full-both-ways with another share of the downstream; full-htb-90.toml to full-htb-99.toml with that
# share in both directions, because bursts of HTB would queue in the modem.
#
#   margins.sh FOLDER
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
mkdir -p "$folder"
policy() {
  sed -e "s/share = \"90 %\"/share = \"$2 %\"/" -e "s/name = \"margin\"/name = \"$1\"/" "$here/policies/margin.toml"
}
for share in 90 93 95 97 98 99; do policy "margin-$share" "$share" > "$folder/margin-$share.toml"; done
for share in 90 97; do
  policy "margin-fifo-$share" "$share" |
    sed 's/queue = { kind = "fq-codel" }/limit = "1000 packets"/' > "$folder/margin-fifo-$share.toml"
done
for share in 90 95 97 99; do
  sed -e "s/share = \"98 %\"/share = \"$share %\"/" "$here/../../policies/full-both-ways.toml" \
    > "$folder/full-$share.toml"
  sed -e "s/share = \"99 %\"/share = \"$share %\"/" "$folder/full-$share.toml" > "$folder/full-htb-$share.toml"
done
