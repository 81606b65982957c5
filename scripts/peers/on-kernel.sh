#!/usr/bin/env bash
# `lastmile tc` with every built-in policy and with one for each discipline of the kernel: applies it, reads it back,
# measures rates of packets by size, removes it. Prints a line each, and writes the --json of each to FOLDER. As root,
# in the guest or on this machine.
#
#   on-kernel.sh FOLDER [PATTERN]
set -uo pipefail
folder=$1 pattern=${2:-.}
: "${LASTMILE:?}"
here=$(cd "$(dirname "$0")" && pwd)
own=$(mktemp -d)
space=peers-on-kernel
trap 'ip netns delete "$space" 2>/dev/null; rm -rf "$own"' EXIT
ip netns delete "$space" 2>/dev/null
ip netns add "$space"
ip netns exec "$space" ip link add veth0 type veth peer name veth1
ip netns exec "$space" ip link set veth0 up
ip netns exec "$space" ip link set veth1 up

policy() { cat > "$own/$1.toml"; }
one() { printf '[scheduler]\nkind = "none"\nqueue = %s\n' "$2" | policy "$1"; }
one pfifo '{ kind = "fifo", limit = "50 packets" }'
one pfifo-head-drop '{ kind = "fifo", limit = "50 packets", drop = "head" }'
one sfq '{ kind = "sfq" }'
one sfq-perturbed \
  '{ kind = "sfq", divisor = 512, perturb = "10 s", drop = "head", limit = "100 packets", depth = "50 packets" }'
one red '{ kind = "red", limit = "60 packets", avpkt = "500 B", bandwidth = "512 kbit/s", probability = "5 %" }'
one red-ecn '{ kind = "red", min = "6 kB", max = "18 kB", limit = "60 kB", ecn = true, harddrop = true }'
one codel '{ kind = "codel", ecn = true }'
one fq-codel '{ kind = "fq-codel", flows = 256, limit = "500 packets", memory = "1 MB", ecn = true }'
one pie '{ kind = "pie" }'
one pie-ecn '{ kind = "pie", target = "60 ms", alpha = 4, beta = 40, ecn = true, limit = "200 packets" }'
one fq-pie '{ kind = "fq-pie", flows = 256, memory = "1 MB" }'
one dualpi2 '{ kind = "dualpi2" }'
one drr '{ kind = "drr" }'
one tbf '{ kind = "tbf", rate = "400 kbit/s", burst = "5088 wire bytes", limit = "50 packets" }'
one cake-besteffort '{ kind = "cake", diffserv = "besteffort", isolation = "flows", rtt = "50 ms", memory = "1 MB" }'
one cake-aggressive '{ kind = "cake", diffserv = "diffserv8", isolation = "dual-srchost", ack_filter = "aggressive" }'
one cake-precedence '{ kind = "cake", diffserv = "precedence", isolation = "hosts" }'
one ack-filter '{ kind = "cake-ack-filter", limit = "60 kB" }'
classes() {
  {
    printf '[scheduler]\nkind = "%s"\n\n' "$2"
    printf '[[class]]\nname = "fast"\n%squeue = %s\n\n' "$3" "$4"
    printf '[[class]]\nname = "default"\n%squeue = %s\n\n' "$3" "$5"
    printf '[[rule]]\nclass = "fast"\nmatch = { protocol = "icmp" }\n'
  } | policy "$1"
}
classes prio priority '' '{ kind = "fifo", limit = "20 packets" }' '{ kind = "sfq" }'
classes prio-red priority '' '{ kind = "codel" }' '{ kind = "red", limit = "60 packets" }'
classes custom custom $'rate = "50 %"\n' '{ kind = "sfq" }' '{ kind = "fifo", limit = "60 kB" }'
classes hfsc hfsc $'rate = "30 %"\ndelay = "60 ms"\n' \
  '{ kind = "fifo", limit = "20 packets" }' '{ kind = "pie", target = "60 ms" }'
classes cbq cbq $'rate = "50 %"\n' '{ kind = "sad" }' '{ kind = "cake" }'
down() { printf '[scheduler]\nkind = "none"\n\n[down]\n%s\n' "$2" | policy "$1"; }
down police 'police = { share = "95 %" }'
down ifb $'share = "95 %"\nqueue = { kind = "fq-codel" }'
down ifb-cake $'share = "95 %"\nkind = "none"\nqueue = { kind = "cake", ack_filter = "normal" }'

list=$({ basename -s .toml -a "$here"/../../policies/*.toml; ls "$own"/*.toml; } | grep -E "$pattern")
run() {
  ip netns exec "$space" "$LASTMILE" tc "$1" --up "${UP:-512 kbit/s}" --down "${DOWN:-2 Mbit/s}" \
    --link "${LINK:-bridged-vcmux-fcs}" --device veth0 "${@:2}"
}
bad=0
for policy in $list; do
  name=$(basename "$policy" .toml)
  if ! run "$policy" --apply > "$own/apply" 2>&1; then
    echo "$name: FAILED: $(tr '\n' ' ' < "$own/apply")"
    bad=1
    continue
  fi
  lacking=$(grep lacks "$own/apply" | tr '\n' ';')
  ip netns exec "$space" tc -d qdisc show dev veth0 > "$own/shown"
  ip netns exec "$space" tc -d filter show dev veth0 ingress >> "$own/shown"
  run "$policy" --verify --json > "$own/verify.json" 2> "$own/verify.log"
  held=$?
  cp "$own/verify.json" "$folder/$name.json"
  cp "$own/shown" "$folder/$name.tc"
  run "$policy" --remove > /dev/null 2>&1
  left=$(ip netns exec "$space" tc qdisc show dev veth0 | grep -vc noqueue)
  left=$((left + $(ip netns exec "$space" ip link show | grep -c ifb)))
  echo "$name: $([ $held = 0 ] && echo holds || echo "DOES NOT HOLD ($held)"), left: $left ${lacking:+($lacking)}" \
    "$(/usr/bin/python3 -I -S - "$own/verify.json" <<'PYTHON'
import json, sys
try:
    found = json.load(open(sys.argv[1]))
except ValueError:
    print("no JSON")
    sys.exit()
wrong = [
    f"{one['name']}.{one['key']}: wanted {one['wanted']}, found {one['found']}"
    for one in found["read_back"]
    if not one["ok"]
]
off = [one["deviation"] for one in found["sizes"]]
sizes = f"{len(off)} sizes, at most {max(map(abs, off)):.1e} off" if off else "no sizes"
print(f"{len(found['read_back'])} values;", "; ".join(wrong), sizes)
PYTHON
)" "$(grep -v measuring "$own/verify.log" | tr '\n' ' ')"
  [ "$held" = 0 ] && [ "$left" = 0 ] || bad=1
done
exit $bad
