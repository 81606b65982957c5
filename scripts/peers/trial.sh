#!/usr/bin/env bash
# One trial: a download, an upload and a ping through a remedy and over a line, between its own network namespaces. As
# root, in the guest or on this machine.
#
#   trial.sh REMEDY LINE POLICY OUT
#
#   REMEDY  none; tc (the kernel's queues, by `lastmile tc POLICY`); shape (`lastmile shape POLICY`)
#   LINE    emulate (`lastmile emulate`); kernel (HTB with a size table, and netem for the delay); netem (its rate, with
#           cells)
#   OUT     a folder for the results: see result.py
#
# Environment: LASTMILE, UP, DOWN, LINK (the line), OVERHEAD (bytes over an IP packet before cells), WINDOW (of TCP, in
#              bytes), DURATION, START (of the ping, in s), DOWNLOADS (number), OFFSET (of the upload, ms), JUMPS (a
#              file of lines SECOND EVENT with changes of the clocks, see jump; in the guest only)
#
#   client --- box (bridge: the remedy) --- modem [--- dslam] --- server
set -euo pipefail
remedy=$1 line=$2 policy=$3 out=$4
here=$(cd "$(dirname "$0")" && pwd)
: "${LASTMILE:?}" "${UP:?}" "${DOWN:?}" "${LINK:?}" "${OVERHEAD:?}"
: "${WINDOW:=65536}" "${DURATION:=40}" "${START:=10}" "${DOWNLOADS:=1}" "${OFFSET:=0}"
PYTHON=${PYTHON:-/usr/bin/python3}
work=$(mktemp -d)
spaces=(client wire box modem dslam server)
processes=()

clean() {
  for process in "${processes[@]}"; do kill "$process" 2>/dev/null || true; done
  wait 2>/dev/null || true
  for space in "${spaces[@]}"; do ip netns delete "peers-$space" 2>/dev/null || true; done
  rm -rf "$work"
}
trap clean EXIT

in_space() { ip netns exec "peers-$1" "${@:2}"; }
# Few processes, because each takes the guest tens of milliseconds.
{
  for space in "${spaces[@]}"; do echo "netns add peers-$space"; done
} | ip -batch -
cables=()
cable() { cables+=("$*"); }
# Between machines a transmitted packet no longer belongs to its sender. Between namespaces it does until it is
# received, and TCP small queues would hold the sender back while the packet is in another host's queue. A delay by
# netem releases the packet, and so does a program that carries it.
if tc -n peers-client qdisc add dev lo root netem delay 1us 2>/dev/null; then
  netem=yes
  cable client c0 box b0
else
  netem=no
  cable client c0 wire w0
  cable wire w1 box b0
fi
cable box b1 modem m0
if [ "$line" != emulate ]; then
  cable modem m1 dslam d0
  cable dslam d1 server s0
else
  cable modem m1 server s0
fi
for space in "${spaces[@]}"; do
  in_space "$space" sh -c 'for name in all default; do echo 1 > /proc/sys/net/ipv6/conf/$name/disable_ipv6; done
    echo 0 > /proc/sys/net/ipv4/tcp_timestamps' 2>/dev/null || true
done
for ends in "${cables[@]}"; do
  read -r near device far other <<< "$ends"
  echo "link add $device netns peers-$near type veth peer name $other netns peers-$far"
done | ip -batch -
# Without segmentation offload, and with checksums.
in_space client ethtool -K c0 tx off gso off tso off gro off > /dev/null 2>&1
in_space server ethtool -K s0 tx off gso off tso off gro off > /dev/null 2>&1
bridge() {
  echo "link add br0 type bridge forward_delay 0 mcast_snooping 0"
  for device in "${@:2}"; do echo "link set $device master br0"; done
  echo "link set br0 up"
}
for space in "${spaces[@]}"; do
  {
    for ends in "${cables[@]}"; do
      read -r near device far other <<< "$ends"
      [ "$near" != "$space" ] || echo "link set $device up"
      [ "$far" != "$space" ] || echo "link set $other up"
    done
    case $space in
      client)
        echo "link set c0 address 02:00:00:00:01:01"
        echo "addr add 198.18.0.2/24 dev c0"
        echo "neigh replace 198.18.0.1 lladdr 02:00:00:00:01:02 dev c0"
        # The ping's own address selects the first class of the adsl-optimizer.
        echo "route add 203.0.113.10/32 via 198.18.0.1"
        ;;
      server)
        echo "link set s0 address 02:00:00:00:01:02"
        echo "addr add 198.18.0.1/24 dev s0"
        echo "addr add 203.0.113.10/32 dev s0"
        echo "neigh replace 198.18.0.2 lladdr 02:00:00:00:01:01 dev s0"
        ;;
      box) [ "$remedy" = shape ] || bridge box b0 b1 ;;
      modem) [ "$line" = emulate ] || bridge modem m0 m1 ;;
      dslam) [ "$line" = emulate ] || bridge dslam d0 d1 ;;
    esac
  } | ip -n "peers-$space" -batch -
done
if [ $netem = yes ]; then
  tc -n peers-client qdisc add dev c0 root netem delay 1us limit 10000
else
  ip netns exec peers-wire "$LASTMILE" emulate "$here/line.toml" --set access.encapsulation=ethernet \
    --set 'access.up={rate="1 Gbit/s"}' --set 'access.down={rate="1 Gbit/s"}' \
    --bridge w0,w1 --realtime 2> "$work/wire.log" > /dev/null &
  processes+=($!)
fi

emulator=
case $line in
  kernel | netem)
    # A size table and netem's packet overhead count from the frame, which has 14 bytes in front of the IP packet.
    shaped() {
      if [ "$line" = netem ]; then
        # One packet after the other, as on a line. The limit is in packets of any size.
        tc -n "peers-$1" qdisc add dev "$2" root handle 1: netem rate "$3" $((OVERHEAD - 14)) 48 5 limit $(($4 / 1696))
        return
      fi
      tc -n "peers-$1" qdisc add dev "$2" root handle 1: stab overhead $((OVERHEAD - 14)) mpu "${MPU:-0}" \
        linklayer atm mtu 2047 tsize 2048 htb default 1
      tc -n "peers-$1" class add dev "$2" parent 1: classid 1:1 htb rate "$3" burst 5088 cburst 5088 quantum 1696
      tc -n "peers-$1" qdisc add dev "$2" parent 1:1 handle 2: bfifo limit "$4"
    }
    bits() { sed 's/ *kbit.s$/kbit/; s/ *Mbit.s$/mbit/' <<< "$1"; }
    # The limit of bfifo counts the bytes of the size table: 206 kB and 64 kB of IP packets of 1500 bytes in 1696 bytes
    # of cells.
    shaped modem m1 "$(bits "$UP")" $((206000 / 1500 * 1696))
    shaped dslam d0 "$(bits "$DOWN")" $((64000 / 1500 * 1696))
    tc -n peers-server qdisc add dev s0 root netem delay 1us limit 10000
    tc -n peers-dslam qdisc add dev d1 root netem delay 4ms limit 10000
    tc -n peers-modem qdisc add dev m0 root netem delay 4ms limit 10000
    ;;
  emulate)
    ip netns exec peers-modem "$LASTMILE" emulate "$here/line.toml" --set "access.encapsulation=$LINK" \
      --set "access.up.rate=$UP" --set "access.down.rate=$DOWN" --bridge m0,m1 --realtime --json \
      > "$work/emulate.json" 2> "$work/emulate.log" &
    emulator=$!
    processes+=("$emulator")
    ;;
esac

shaper=
case $remedy in
  none) ;;
  tc)
    in_space box "$LASTMILE" tc "$policy" --up "$UP" --down "$DOWN" --link "$LINK" --device b1 --apply \
      > "$work/tc.log" 2>&1 || { cat "$work/tc.log" >&2; exit 1; }
    ;;
  shape)
    ip netns exec peers-box "$LASTMILE" shape "$policy" --up "$UP" --down "$DOWN" --link "$LINK" \
      --lan b0 --wan b1 --make-bridge --realtime --control "$work/control" --json \
      > "$work/shape.json" 2> "$work/shape.log" &
    shaper=$!
    processes+=("$shaper")
    ;;
esac

# Waits until a ping is answered.
reached=no
for _ in $(seq 50); do
  if in_space client ping -c 1 -W 1 203.0.113.10 >/dev/null 2>&1; then reached=yes; break; fi
  sleep 0.1
done
if [ $reached = no ]; then
  cat "$work"/*.log >&2
  echo "trial: nothing comes through" >&2
  exit 1
fi

ip netns exec peers-server "$PYTHON" -I -S "$here/load.py" \
  server "$work/server.json" s0 "$DURATION" "$WINDOW" "$DOWNLOADS" &
server=$!
# The guest's clock runs while it waits for this machine: Python may take ten of its seconds to start.
ready() { # FILE PROCESS: until it is there
  until [ -e "$1" ]; do
    kill -0 "$2" || { echo "trial: the load did not begin" >&2; exit 1; }
    sleep 0.05
  done
}
ready "$work/server.json.ready" "$server"
busy() { awk '/^cpu /{print $2+$3+$4+$6+$7+$8, $2+$3+$4+$5+$6+$7+$8}' /proc/stat; }
used() { [ -z "$shaper" ] || awk '{print $14+$15}' "/proc/$shaper/stat"; }
read -r busy_before all_before <<< "$(busy)"
used_before=$(used)
ip netns exec peers-client "$PYTHON" -I -S "$here/load.py" \
  client "$work/client.json" c0 "$DURATION" "$WINDOW" "$DOWNLOADS" "$OFFSET" &
client=$!
ready "$work/client.json.ready" "$client"
sleep "$START"
# Changes of the clocks while packets pass.
jump() {
  case $1 in
    ahead) date -s "@$(($(date +%s) + 3600))" > /dev/null ;;
    back) date -s "@$(($(date +%s) - 7200))" > /dev/null ;;
    # Running programs get no notice of the elapsed time.
    stop) kill -STOP $shaper $emulator; sleep 0.5; kill -CONT $shaper $emulator ;;
  esac
}
jumps() {
  local now=$START second what
  while read -r second what; do
    sleep "$((second - now))"
    now=$second
    jump "$what" || echo "trial: no $what" >&2
  done < "$JUMPS"
}
if [ -n "${JUMPS:-}" ]; then
  [ -d /run/guest ] || { echo "trial: the clocks of this machine are not to be set" >&2; exit 1; }
  cp "$JUMPS" "$work/jumps"
  jumps &
  processes+=($!)
fi
in_space client ping -i 0.101 -Q 0xb8 -w $((DURATION - START)) 203.0.113.10 > "$work/ping.txt" || true
wait "$client" "$server"
read -r busy_after all_after <<< "$(busy)"
used_after=$(used)
[ "$remedy" != shape ] ||
  in_space box "$LASTMILE" shape status --control "$work/control" --json > "$work/status.json" || true
tc -n peers-box -s -j qdisc show dev b1 > "$work/tc.json"
tc -n peers-box -s -j qdisc show dev ifb-b1 > "$work/tc-down.json" 2> /dev/null || true
if [ "$line" != emulate ]; then
  tc -n peers-modem -s -j qdisc show dev m1 > "$work/line-up.json"
  tc -n peers-dslam -s -j qdisc show dev d0 > "$work/line-down.json"
fi
# It prints its counters at the end.
[ -z "$emulator" ] || { kill "$emulator" && wait "$emulator" || true; }
"$PYTHON" -I -S "$here/result.py" "$work" "$out.part" \
  "start=$START" "duration=$DURATION" "overhead=$OVERHEAD" "window=$WINDOW" "offset=$OFFSET" \
  "busy=$(awk "BEGIN{print ($busy_after-$busy_before)/($all_after-$all_before)}")" \
  "ticks=$(( ${used_after:-0} - ${used_before:-0} ))" \
  "up=$UP" "down=$DOWN" "link=$LINK" "remedy=$remedy" "line=$line" "policy=$policy"
mv "$out.part" "$out"
