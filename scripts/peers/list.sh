#!/usr/bin/env bash
# Prints the trials of the comparison, one a line, for trials.sh: the most informative first.
#
#   list.sh MARGINS     MARGINS: the output folder of margins.sh
set -euo pipefail
own=scripts/peers/policies
margins=$1
# NAME of the line, its UP,DOWN,LINK,OVERHEAD,WINDOW,START,JUMPS,DOWNLOADS,OFFSET, and trials as words
# REMEDY:LINE:POLICY.
on() {
  local name=$1 rest=$2 trial remedy line policy after
  IFS=, read -r _ _ _ _ _ _ _ _ after <<< "$rest"
  for trial in "${@:3}"; do
    IFS=: read -r remedy line policy <<< "$trial"
    printf '%s-%s-%s-%s%s,%s,%s,%s,%s\n' \
      "$name" "$remedy" "$line" "$(basename "$policy" .toml)" "${after:+-after-$after}" \
      "$remedy" "$line" "$policy" "$rest"
  done
}
bridged() { on bridged "512 kbit/s,2 Mbit/s,bridged-vcmux-fcs,28,65536,10," "$@"; }
pppoa() { on pppoa "768 kbit/s,8 Mbit/s,pppoa-vcmux,10,65536,10," "$@"; }
# Windows of 44 whole segments, as a simulated sender uses for 64 KiB.
whole() { on whole "512 kbit/s,2 Mbit/s,bridged-vcmux-fcs,28,64240,10," "$@"; }
# Windows above the line's queues, and the ping while they grow.
wide() { on wide "512 kbit/s,2 Mbit/s,bridged-vcmux-fcs,28,1048576,1," "$@"; }
# The margins of scripts/both-ways.py.
full2() { on full2 "512 kbit/s,2 Mbit/s,bridged-vcmux-fcs,28,262144,10," "$@"; }
full8() { on full8 "768 kbit/s,8 Mbit/s,pppoa-vcmux,10,262144,10," "$@"; }
# The claims of full-both-ways: by number of downloads, window in KiB, and offset of the upload in ms.
claim2() {
  on "claim2x$1w$2" "512 kbit/s,2 Mbit/s,bridged-vcmux-fcs,28,$(($2 * 1024)),10,,$1,$3" shape:emulate:full-both-ways
}
claim8() {
  on "claim8x$1w$2" "768 kbit/s,8 Mbit/s,pppoa-vcmux,10,$(($2 * 1024)),10,,$1,$3" shape:emulate:full-both-ways
}
# Queues of newer kernels: see docs/studies/newer-kernels.md.
newer() { on newer "512 kbit/s,2 Mbit/s,bridged-vcmux-fcs,28,65536,10," "$@"; }
# With jumps of the clocks.
clock() { on clock "512 kbit/s,2 Mbit/s,bridged-vcmux-fcs,28,65536,10,scripts/peers/jumps" "$@"; }

acks=$own/ack-priority-and-ping.toml fq_codel=$own/one-fq-codel.toml cake=$own/cake-plain.toml
first=(none:emulate:none "tc:emulate:$acks" "tc:emulate:$fq_codel" "tc:emulate:$cake" tc:emulate:cake
  "shape:emulate:$acks" "shape:emulate:$fq_codel" shape:emulate:cake shape:emulate:full-both-ways)
bridged "${first[@]}"
pppoa "${first[@]}"
wide none:emulate:none shape:emulate:full-both-ways
for margin in 90 97 fifo-90 fifo-97 99 95 98 93; do wide "tc:emulate:$margins/margin-$margin.toml"; done
for share in 90 97; do wide "shape:emulate:$margins/margin-$share.toml"; done
curve=()
for share in 97 90 99 95; do
  curve+=("shape:emulate:$margins/full-$share.toml" "tc:emulate:$margins/full-htb-$share.toml")
done
full2 "${curve[@]}"
full8 "${curve[@]}"
clock shape:emulate:full-both-ways
bridged none:kernel:none tc:kernel:cake shape:kernel:full-both-ways
pppoa none:kernel:none tc:kernel:$acks tc:kernel:cake shape:kernel:full-both-ways
bridged tc:emulate:$own/both-90.toml tc:emulate:$own/both-97.toml tc:emulate:full-both-ways
for share in 90 97 99 95; do bridged "tc:emulate:$margins/margin-$share.toml"; done
whole tc:emulate:cake "shape:emulate:$fq_codel"
# On a line by the kernel: ACK remedies, and a transmitter in place of a token bucket.
for policy in $acks $own/sad-cbq-and-ping.toml adsl-optimizer; do
  bridged "shape:kernel:$policy" "tc:kernel:$policy"
done
bridged none:netem:none shape:netem:full-both-ways
# The built-in policies, by the kernel and by shape.
for policy in ack-priority adsl-optimizer fifo fq-codel-sqm sad sad-cbq; do
  bridged "tc:emulate:$policy" "shape:emulate:$policy"
done
for share in 90 97; do pppoa "tc:emulate:$margins/margin-$share.toml"; done
pppoa tc:emulate:$own/both-90.toml tc:emulate:$own/both-97.toml \
  shape:emulate:$own/sad-cbq-and-ping.toml shape:emulate:adsl-optimizer
bridged shape:kernel:cake shape:emulate:$cake shape:emulate:$own/sad-cbq-and-ping.toml
pppoa shape:kernel:$acks shape:kernel:cake shape:emulate:$cake
for offset in 0 137 411 822 1507; do
  for load in "1 64" "1 1024" "4 64" "4 1024"; do
    # shellcheck disable=SC2086 # Two words.
    claim2 $load $offset
    # shellcheck disable=SC2086
    claim8 $load $offset
  done
done
for policy in one-pie one-fq-pie hfsc-and-ping; do newer "tc:emulate:$own/$policy.toml"; done
newer none:emulate:none none:netem:none tc:emulate:cake
for policy in one-pie one-fq-pie hfsc-and-ping; do newer "shape:emulate:$own/$policy.toml"; done
