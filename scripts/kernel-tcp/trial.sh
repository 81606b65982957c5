#!/usr/bin/env bash
# One trial with the kernel's TCP: a download, an upload and a ping between its own network namespaces. As root.
#
#   trial.sh FOLDER
#
# FOLDER gets server.json and client.json (see load.py), ping.txt, machine.txt, and with CAPTURE=yes headers of both
# hosts in pcap files. Environment: LASTMILE; DOWN_MBIT, UP_MBIT (rates of IP bytes); DOWN_PACKETS, UP_PACKETS (limits
# of the FIFOs); RTT_MS; CONGESTION (cubic, reno, bbr); TRACE (more keys of both directions, for emulate); DURATION (s);
# UPLOAD_AFTER_MS; LINE: kernel (HTB over pfifo), netem (HTB over pfifo, delays by netem), or emulate (`lastmile
# emulate` alone).
#
#   client --- near (delay) --- line (HTB, pfifo, both ways) --- far (a relay) --- server
#   client (netem) --- line (HTB, pfifo, both ways) --- (netem) server
#
# `lastmile emulate` carries packets through `near`, which adds the whole delay, and `far`, which adds none. A packet
# read by a program is released from its sender's socket. Between plain namespaces it is released only when received,
# and TCP small queues would hold the sender back while its packets are in the line's queue. Offloads of the hosts are
# off: packets of one MTU, and bursts only by TCP.
set -euo pipefail
out=$1
here=$(cd "$(dirname "$0")" && pwd)
: "${LASTMILE:?}" "${DOWN_MBIT:?}" "${UP_MBIT:?}" "${DOWN_PACKETS:?}" "${UP_PACKETS:?}" "${RTT_MS:?}"
: "${CONGESTION:=cubic}" "${DURATION:=30}" "${TRACE:=}" "${UPLOAD_AFTER_MS:=0}" "${LINE:=kernel}" "${CAPTURE:=no}"
PYTHON=${PYTHON:-/usr/bin/python3}
prefix=kt$$
spaces=(client near line far server)
processes=()
mkdir -p "$out"

clean() {
  for process in "${processes[@]}"; do kill "$process" 2> /dev/null || true; done
  wait 2> /dev/null || true
  for space in "${spaces[@]}"; do ip netns delete "$prefix-$space" 2> /dev/null || true; done
}
trap clean EXIT
in_space() { ip netns exec "$prefix-$1" "${@:2}"; }
urgent() { chrt -f 10 "$@"; }

for space in "${spaces[@]}"; do
  ip netns add "$prefix-$space"
  in_space "$space" sh -c 'for name in all default; do echo 1 > /proc/sys/net/ipv6/conf/$name/disable_ipv6; done'
  in_space "$space" ip link set lo up
done
for space in client server; do
  # The kernel's own defaults, independent of this machine's settings.
  in_space "$space" sh -c 'cd /proc/sys/net/ipv4
    echo "4096 131072 6291456" > tcp_rmem; echo "4096 16384 4194304" > tcp_wmem
    echo 1 > tcp_no_metrics_save; echo 1 > tcp_timestamps; echo 1 > tcp_sack'
done
cable() { ip -n "$prefix-$1" link add "$2" type veth peer name "$4" netns "$prefix-$3"; }
if [ "$LINE" = kernel ]; then
  cable client c0 near n0; cable near n1 line l0; cable line l1 far f0; cable far f1 server s0
elif [ "$LINE" = netem ]; then
  cable client c0 line l0; cable line l1 server s0
else
  cable client c0 near n0; cable near n1 server s0
fi
for space in "${spaces[@]}"; do
  for device in $(ip -n "$prefix-$space" -o link | awk -F'[ :@]+' '$2 != "lo" {print $2}'); do
    in_space "$space" ethtool -K "$device" tx off gso off tso off gro off > /dev/null 2>&1
    ip -n "$prefix-$space" link set "$device" txqueuelen 10000 up
  done
done
ip -n "$prefix-client" addr add 198.18.0.2/24 dev c0
ip -n "$prefix-server" addr add 198.18.0.1/24 dev s0
mac() { ip -n "$prefix-$1" -o link show "$2" | sed 's/.*ether \([^ ]*\).*/\1/'; }
ip -n "$prefix-client" neigh replace 198.18.0.1 lladdr "$(mac server s0)" dev c0
ip -n "$prefix-server" neigh replace 198.18.0.2 lladdr "$(mac client c0)" dev s0

carry() { # SPACE IF1,IF2 --set ...
  ip netns exec "$prefix-$1" chrt -f 10 "$LASTMILE" emulate "$here/line.toml" --bridge "$2" --spin 0us "${@:3}" \
    > /dev/null 2> "$out/$1.log" &
  processes+=($!)
}
link() { # RATE DELAY_MS PACKETS
  echo "{ rate = \"$1 Mbit/s\", delay = \"$2 ms\", queue = { limit = \"$3 packets\" }$TRACE }"
}
half=$(awk "BEGIN{print $RTT_MS/2}")
shaped() { # DEVICE MBIT PACKETS: rates are of IP bytes, so the 14 of the frame's header are taken off
  tc -n "$prefix-line" qdisc add dev "$1" root handle 1: stab overhead -14 linklayer ethernet htb default 1
  tc -n "$prefix-line" class add dev "$1" parent 1: classid 1:1 htb rate "$2mbit" burst 3000 cburst 3000 quantum 1500
  tc -n "$prefix-line" qdisc add dev "$1" parent 1:1 handle 2: pfifo limit "$3"
}
carried_from=$(date +%s.%N)
if [ "$LINE" = emulate ]; then
  carry near n0,n1 --set "access.down=$(link "$DOWN_MBIT" "$half" "$DOWN_PACKETS")" \
    --set "access.up=$(link "$UP_MBIT" "$half" "$UP_PACKETS")"
else
  if [ "$LINE" = netem ]; then
    tc -n "$prefix-client" qdisc add dev c0 root netem delay "${half}ms" limit 100000
    tc -n "$prefix-server" qdisc add dev s0 root netem delay "${half}ms" limit 100000
  else
    carry near n0,n1 --set "access.down=$(link 2000 "$half" 10000)" --set "access.up=$(link 2000 "$half" 10000)"
    carry far f0,f1 --set "access.down=$(link 2000 0 10000)" --set "access.up=$(link 2000 0 10000)"
  fi
  ip -n "$prefix-line" link add br0 type bridge forward_delay 0 mcast_snooping 0
  for device in l0 l1; do ip -n "$prefix-line" link set "$device" master br0; done
  ip -n "$prefix-line" link set br0 up
  shaped l1 "$UP_MBIT" "$UP_PACKETS"
  shaped l0 "$DOWN_MBIT" "$DOWN_PACKETS"
fi

reached=no
for _ in $(seq 50); do
  if in_space client ping -c 1 -W 1 198.18.0.1 > /dev/null 2>&1; then reached=yes; break; fi
  sleep 0.1
done
[ $reached = yes ] || { cat "$out"/*.log >&2; echo "trial: nothing comes through" >&2; exit 1; }
if [ "$CAPTURE" = yes ]; then
  for end in client:c0 server:s0; do
    ip netns exec "$prefix-${end%:*}" dumpcap -q -i "${end#*:}" -s 100 -B 64 -w "$out/${end%:*}.pcapng" \
      > /dev/null 2>&1 &
    processes+=($!)
  done
  sleep 1
fi
rm -f "$out"/*.ready
ip netns exec "$prefix-server" chrt -f 5 "$PYTHON" -I -S "$here/load.py" \
  server "$out/server.json" "$CONGESTION" "$DURATION" &
server=$!
ready() {
  until [ -e "$1" ]; do
    kill -0 "$2" || { echo "trial: the load did not begin" >&2; exit 1; }
    sleep 0.02
  done
}
ready "$out/server.json.ready" "$server"
busy() { awk '/^cpu /{print $2+$3+$4+$6+$7+$8+$9, $2+$3+$4+$5+$6+$7+$8+$9}' /proc/stat; }
read -r busy_before all_before <<< "$(busy)"
ip netns exec "$prefix-client" chrt -f 5 "$PYTHON" -I -S "$here/load.py" \
  client "$out/client.json" "$CONGESTION" "$DURATION" "$UPLOAD_AFTER_MS" &
client=$!
ready "$out/client.json.ready" "$client"
carried_until=$(date +%s.%N)
urgent ip netns exec "$prefix-client" ping -i 0.101 -w "$DURATION" 198.18.0.1 > "$out/ping.txt" || true
wait "$client" "$server"
read -r busy_after all_after <<< "$(busy)"
{
  uname -r
  awk -F': ' '/model name/{print $2; exit}' /proc/cpuinfo
  awk "BEGIN{printf \"%.2f\n\", ($busy_after-$busy_before)/($all_after-$all_before)}"
  awk "BEGIN{printf \"%.2f\n\", $carried_until-$carried_from}"
} > "$out/machine.txt"
if [ "$LINE" != emulate ]; then
  tc -n "$prefix-line" -s -j qdisc show dev l1 > "$out/line-up.json"
  tc -n "$prefix-line" -s -j qdisc show dev l0 > "$out/line-down.json"
fi
rm -f "$out"/*.ready
