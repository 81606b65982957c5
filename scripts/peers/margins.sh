#!/usr/bin/env bash
# policies/margin.toml at each share of the line, as files of their own: margin-90.toml to margin-99.toml.
#
#   margins.sh FOLDER
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
for share in 90 93 95 96 97 98 99; do
  sed -e "s/share = \"90 %\"/share = \"$share %\"/" -e "s/name = \"margin\"/name = \"margin-$share\"/" "$here/policies/margin.toml" > "$1/margin-$share.toml"
done
