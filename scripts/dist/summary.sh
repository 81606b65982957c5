#!/usr/bin/env bash
# SHA256SUMS of what the other scripts have put into target/dist, and a table of its files with their sizes.
source "$(dirname "$0")/common.bash"
cd "$dist"
find . -type f ! -name SHA256SUMS -printf '%P\0' | sort -z | xargs -0 sha256sum >SHA256SUMS
row() { printf '%8s  %s\n' "$(numfmt --to=iec-i --suffix=B <<<"$1")" "$2"; }
while read -r bytes file; do
  row "$bytes" "$file"
done < <(find . -maxdepth 1 -type f -printf '%s %P\n' | sort -k 2)
if [ -d crates ]; then
  row "$(cat crates/*.crate | wc -c)" "crates: $(wc -l <crates/order) packages, $(cat crates/*.crate | wc -c) bytes"
fi
