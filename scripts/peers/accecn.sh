#!/usr/bin/env bash
# Marks of a download with Accurate ECN behind ACK regulators: the kernel's TCP at both ends, `lastmile emulate` as the
# line of accecn.toml, whose DSLAM marks. As root in a guest with a kernel that has Accurate ECN (KERNEL=7). Prints a
# line for each run, and writes NAME.json.
#
#   accecn.sh FOLDER [QUEUE:CONGESTION_CONTROL]...     default: fifo, sad, ack-filter and cake-ack-filter with cubic,
#                                                      and three with dctcp
set -euo pipefail
: "${LASTMILE:?}"
folder=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
DURATION=${DURATION:-10}
[ $# -gt 0 ] || set -- sad:cubic fifo:cubic ack-filter:cubic cake-ack-filter:cubic sad:dctcp ack-filter:dctcp fifo:dctcp
spaces=(client modem server)
work=$(mktemp -d)
clean() {
  for space in "${spaces[@]}"; do ip netns delete "marks-$space" 2> /dev/null || true; done
  rm -rf "$work"
}
trap clean EXIT
for space in "${spaces[@]}"; do
  ip netns add "marks-$space"
  ip netns exec "marks-$space" sh -c \
    'for name in all default; do echo 1 > /proc/sys/net/ipv6/conf/$name/disable_ipv6; done'
done
for space in client server; do
  ip netns exec "marks-$space" sh -c 'echo 3 > /proc/sys/net/ipv4/tcp_ecn' || {
    echo "accecn: this kernel has no Accurate ECN" >&2
    exit 1
  }
done
ip link add c0 netns marks-client type veth peer name m0 netns marks-modem
ip link add s0 netns marks-server type veth peer name m1 netns marks-modem
for end in client:c0:198.18.0.2 server:s0:198.18.0.1; do
  IFS=: read -r space device address <<< "$end"
  ip netns exec "marks-$space" ethtool -K "$device" tx off gso off tso off gro off > /dev/null 2>&1
  # A packet belongs to its sender until netem releases it: see trial.sh.
  tc -n "marks-$space" qdisc add dev "$device" root netem delay 1us limit 10000
  ip -n "marks-$space" addr add "$address/24" dev "$device"
  ip -n "marks-$space" link set "$device" up
done
for device in m0 m1; do ip -n marks-modem link set $device up; done

for run in "$@"; do
  IFS=: read -r queue control <<< "$run"
  name=$queue-$control
  rm -f "$work"/*
  ip netns exec marks-modem "$LASTMILE" emulate "$here/accecn.toml" --set "access.up.queue={kind=\"$queue\"}" \
    --bridge m0,m1 --realtime --json > "$work/emulate.json" 2> "$work/emulate.log" &
  emulator=$!
  until ip netns exec marks-client ping -c 1 -W 1 198.18.0.1 > /dev/null 2>&1; do
    kill -0 $emulator || { cat "$work/emulate.log" >&2; exit 1; }
    sleep 0.1
  done
  ip netns exec marks-server /usr/bin/python3 -I -S "$here/accecn.py" \
    server "$work/server.json" "$control" "$DURATION" &
  server=$!
  until [ -e "$work/server.json.ready" ]; do sleep 0.05; done
  ip netns exec marks-client /usr/bin/python3 -I -S "$here/accecn.py" \
    client "$work/client.json" "$control" "$DURATION"
  wait $server
  kill $emulator
  wait $emulator || true
  mkdir -p "$folder/$name"
  cp "$work"/*.json "$folder/$name/"
  echo "$name: $(cut -c1-300 "$work/server.json") $(cut -c1-300 "$work/client.json")" >&2
done
