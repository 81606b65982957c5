#!/usr/bin/env bash
# Prints the trials of the comparison, one a line, for trials.sh: the most telling first.
set -euo pipefail
own=scripts/peers/policies
on() { # NAME of the line, UP, DOWN, LINK, OVERHEAD
  local line=$1 rest=$2,$3,$4,$5
  trial() { printf '%s-%s-%s-%s,%s,%s,%s,%s\n' "$line" "$1" "$2" "$(basename "$3" .toml)" "$1" "$2" "$3" "$rest"; }
  case $6 in
    1)
      trial none emulate none
      trial tc emulate $own/ack-priority-and-ping.toml
      trial tc emulate $own/one-fq-codel.toml
      trial tc emulate $own/cake-plain.toml
      trial tc emulate cake
      trial shape emulate $own/ack-priority-and-ping.toml
      trial shape emulate $own/one-fq-codel.toml
      trial shape emulate cake
      trial shape emulate full-both-ways
      ;;
    2)
      trial tc emulate $own/both-90.toml
      trial shape emulate $own/sad-cbq-and-ping.toml
      trial shape emulate adsl-optimizer
      trial shape emulate fq-codel-sqm
      trial shape emulate $own/cake-plain.toml
      trial none kernel none
      trial tc kernel $own/ack-priority-and-ping.toml
      trial shape kernel full-both-ways
      ;;
    3)
      trial tc emulate $own/both-97.toml
      trial tc emulate fq-codel-sqm
      trial tc kernel cake
      trial shape kernel $own/ack-priority-and-ping.toml
      trial shape kernel cake
      ;;
  esac
}
for part in 1 2 3; do
  on bridged "512 kbit/s" "2 Mbit/s" bridged-vcmux-fcs 28 $part
  on pppoa "768 kbit/s" "8 Mbit/s" pppoa-vcmux 10 $part
done
