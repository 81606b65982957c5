#!/usr/bin/env bash
# Runs a command in a Debian kernel on QEMU's virtual clock. The clock counts instructions, so that other load on this
# machine has no effect, and idle time is skipped. KERNEL in the environment chooses the kernel, as in `KERNEL=7` (see
# fetch.sh).
#
#   scripts/peers/guest.sh [--out DIR] [--timeout SECONDS] [--shift N] [--memory MB] [--append WORDS] [--keep FILE]...
#                          -- COMMAND [ARGUMENT...]
#
# The guest sees this machine's files under their own paths and runs its programs as root. Its writes stay in its
# memory, except for the folder $OUT, which --out copies back at the end, and $SAVE, which is the folder of --out
# itself. Its only network is that of its own namespaces. Standard error is shown immediately, standard output at the
# end. The exit code is the command's, or 2 for a failed guest.
#   --out DIR          folder for the contents of the guest's $OUT, and kernel.log (created if missing)
#   --timeout SECONDS  time limit of the guest, in this machine's time (default 1800)
#   --keep FILE        a program or file that the command reads during a measurement. It is read into memory with its
#                      libraries before the command starts, as the usual network tools are; may be repeated
#   --shift N          an instruction takes 2^N ns (default 1: 500 million instructions a second)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
die() { printf 'guest: error: %s\n' "$*" >&2; exit 2; }

out= timeout=1800 shift=1 memory=2048 append= keep=()
while [ $# -gt 0 ]; do
  case $1 in
    --out) out=$2; shift 2 ;;
    --timeout) timeout=$2; shift 2 ;;
    --shift) shift=$2; shift 2 ;;
    --memory) memory=$2; shift 2 ;;
    --append) append=$2; shift 2 ;;
    --keep) keep+=("$(realpath -s "$2")"); shift 2 ;;
    --) shift; break ;;
    -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    -*) die "no such option: $1 (see --help)" ;;
    *) break ;;
  esac
done
[ $# -gt 0 ] || die "no command (see --help)"

kernel=$("$here/fetch.sh")
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
save=${out:-$results/save}
mkdir -p "$save"
{
  # Programs of the kernel's suite come before the machine's own.
  printf 'export HOME=/root LC_ALL=C OUT=/run/guest/out SAVE=/run/guest/save PATH=%q/tools/bin:' "$kernel"
  printf '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/guest/bin\n'
  printf 'cd %q\n' "$PWD"
  printf '%q ' "$@"
  printf '\n'
} > "$results/command"

# Files to read into memory: programs, their libraries, and the symbolic links on their paths. Opening a file of the
# host takes time on the guest's clock.
tools=(bash sh env cat cp mv rm mkdir mktemp sleep seq sed awk grep cut date ls kill timeout sysctl
  ip tc bridge nft ping ethtool python3)
{
  printf '%s\n' /bin /sbin /lib /lib64 /var/run \
    /etc/ld.so.cache /etc/nsswitch.conf /etc/passwd /etc/group /etc/hosts /etc/protocols
  find -L /etc/iproute2 /usr/share/iproute2 "$kernel/tools" -type f 2>/dev/null || true
  for tool in "${tools[@]}" "${keep[@]}"; do
    program=$(PATH=/usr/sbin:/usr/bin:/sbin:/bin command -v "$tool" || true)
    [ -n "$program" ] || continue
    while [ -L "$program" ]; do
      printf '%s\n' "$program"
      program=$(realpath -s "$(dirname "$program")/$(readlink "$program")" 2>/dev/null) || break
    done
    printf '%s\n' "$program"
    ldd "$program" 2>/dev/null | grep -o '/[^ ]*' | while read -r library; do
      printf '%s\n' "$library"
      realpath "$library"
    done || true
  done
  modules='import json, socket, sys, threading, time
for module in list(sys.modules.values()):
    for name in (getattr(module, "__file__", None), getattr(module, "__cached__", None)):
        print(name or "/etc/hosts")'
  PATH=/usr/sbin:/usr/bin:/sbin:/bin python3 -I -S -c "$modules" 2>/dev/null || true
} | sort -u > "$results/keep"

# One processor, because the clock counts its instructions. The command line avoids waits for missing devices.
words="console=ttyS0 quiet panic=-1 tsc=reliable mitigations=off nowatchdog audit=0 lastmile.kernel=$kernel $append "
status=0
timeout --kill-after 5 "$timeout" qemu-system-x86_64 \
  -accel tcg -icount "shift=$shift,sleep=off" -cpu max,la57=off -smp 1 -m "$memory" \
  -nodefaults -no-user-config -display none -no-reboot -nic none -rtc clock=vm \
  -kernel "$kernel"/boot/vmlinuz-* -initrd "$kernel/initramfs" \
  -append "$words" \
  -virtfs "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap" \
  -virtfs "local,path=$results,mount_tag=results,security_model=none" \
  -virtfs "local,path=$save,mount_tag=save,security_model=none" \
  -chardev "file,id=boot,path=$results/boot.log" -serial chardev:boot \
  -chardev stdio,id=talk,signal=on -serial chardev:talk < /dev/null >&2 || status=$?

if [ -n "$out" ]; then
  [ ! -e "$results/out.tar" ] || tar -C "$out" --no-same-owner --touch -xf "$results/out.tar"
  [ ! -e "$results/kernel.log" ] || cp "$results/kernel.log" "$out/kernel.log"
fi
if [ ! -e "$results/status" ]; then
  grep -v -e "^\[.*\]  " "$results/boot.log" 2>/dev/null | tail -n 30 >&2 || true
  [ "$status" != 124 ] || die "the guest was not done after $timeout s"
  die "the guest ended (QEMU: $status) before its command did; its last words are above"
fi
cat "$results/stdout"
exit "$(cat "$results/status")"
