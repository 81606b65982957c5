#!/usr/bin/env bash
# Checks the init script without OpenWrt: its syntax by BusyBox, and its commands with stand-ins for procd and UCI.
# usage: check.sh [LASTMILE], a program that must accept the arguments.
set -euo pipefail
cd "$(dirname "$0")"
script=lastmile/files/lastmile.init
shell=(sh)
! command -v busybox >/dev/null || shell=(busybox ash)
"${shell[@]}" -n "$script"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
sed -n 's/^\t#\{0,1\}option \([a-z]*\) .\(.*\).$/\1=\2/p' lastmile/files/lastmile.config >"$scratch/settings"
cat >"$scratch/run.sh" <<EOF
config_get() { eval "\$1=\\\$(sed -n 's/^'\$3'=//p' '$scratch/settings')"; }
config_get_bool() { eval "\$1=1"; }
config_load() { :; }
config_foreach() { "\$1" home; }
logger() { [ -t 0 ] || cat; }
rc_procd() { :; }
stand_in() { printf '%s\n' "\$*"; }
mkdir() { :; }
procd_open_instance() { :; }
procd_close_instance() { :; }
procd_set_param() { [ "\$1" != command ] || { shift; printf '%s\n' "\$@"; }; }
procd_append_param() { shift; printf '%s\n' "\$@"; }
EOF
tail -n +3 "$script" >>"$scratch/run.sh"
echo start_service >>"$scratch/run.sh"
"${shell[@]}" "$scratch/run.sh" >"$scratch/arguments"
sed '$d' "$scratch/run.sh" >"$scratch/reload.sh"
printf 'PROG=stand_in\nreload_service\n' >>"$scratch/reload.sh"
found=$("${shell[@]}" "$scratch/reload.sh")
[ "$found" = 'shape reload --control /var/run/lastmile/home.sock' ] || {
  printf 'a reload of the service runs\n%s\n' "$found" >&2
  exit 1
}
expected='/usr/bin/lastmile shape full-both-ways --lan eth2 --wan eth1 --plain --supervise --make-bridge=lm-home'
expected+=' --control /var/run/lastmile/home.sock --up 768 kbit/s --down 8 Mbit/s --link pppoa-vcmux'
expected+=' --metrics 127.0.0.1:9100 --realtime'
found=$(paste -sd ' ' "$scratch/arguments")
[ "$found" = "$expected" ] || {
  printf 'the init script starts\n%s\ninstead of\n%s\n' "$found" "$expected" >&2
  exit 1
}
if [ -n "${1:-}" ]; then
  # The interfaces are not there: that is the only error.
  mapfile -t arguments < <(tail -n +2 "$scratch/arguments")
  said=$("$1" "${arguments[@]}" 2>&1) && exit 1
  grep -q 'eth[12]' <<<"$said" || { printf '%s\n' "$said" >&2; exit 1; }
fi
echo "the init script gives the arguments of lastmile shape"
