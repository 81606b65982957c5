#!/usr/bin/env bash
# Runs a command in a Debian kernel on QEMU's virtual clock: time there is counted in instructions, so that no noise of this
# machine reaches it, and idle time passes at once.
#
#   scripts/peers/guest.sh [--out DIR] [--timeout SECONDS] [--shift N] [--memory MB] [--append WORDS] -- COMMAND [ARGUMENT...]
#
# The guest sees this machine's files under their own paths and runs its programs as root; what it writes stays in its memory, but for
# what the command leaves in the folder $OUT, which --out brings back. There is no network but that of its own namespaces.
# Standard error shows as it comes, standard output when the guest is done; the exit code is the command's, or 2 where the guest failed.
#   --out DIR          where to put what is in $OUT of the guest (made where missing), and kernel.log
#   --timeout SECONDS  of this machine's time, after which the guest is stopped (default 1800)
#   --shift N          an instruction takes 2^N ns (default 1: 500 million instructions a second)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
die() { printf 'guest: error: %s\n' "$*" >&2; exit 2; }

out= timeout=1800 shift=1 memory=2048 append=
while [ $# -gt 0 ]; do
  case $1 in
    --out) out=$2; shift 2 ;;
    --timeout) timeout=$2; shift 2 ;;
    --shift) shift=$2; shift 2 ;;
    --memory) memory=$2; shift 2 ;;
    --append) append=$2; shift 2 ;;
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
{
  printf 'export HOME=/root PATH=%q OUT=/run/guest/out\n' "$PATH:/usr/sbin:/sbin:/run/guest/bin"
  printf 'cd %q\n' "$PWD"
  printf '%q ' "$@"
  printf '\n'
} > "$results/command"

# One processor: instructions are what the clock counts. The command line keeps the kernel from waiting for devices that are not there.
status=0
timeout --kill-after 5 "$timeout" qemu-system-x86_64 \
  -accel tcg -icount "shift=$shift,sleep=off" -cpu max -smp 1 -m "$memory" \
  -nodefaults -no-user-config -display none -no-reboot -nic none -rtc clock=vm \
  -kernel "$kernel"/boot/vmlinuz-* -initrd "$kernel/initramfs" \
  -append "console=ttyS0 quiet panic=-1 tsc=reliable mitigations=off nowatchdog audit=0 lastmile.kernel=$kernel $append " \
  -virtfs "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap" \
  -virtfs "local,path=$results,mount_tag=results,security_model=none" \
  -chardev "file,id=boot,path=$results/boot.log" -serial chardev:boot \
  -chardev stdio,id=talk,signal=on -serial chardev:talk < /dev/null >&2 || status=$?

if [ -n "$out" ]; then
  mkdir -p "$out"
  [ ! -e "$results/out.tar" ] || tar -C "$out" --no-same-owner -xf "$results/out.tar"
  [ ! -e "$results/kernel.log" ] || cp "$results/kernel.log" "$out/kernel.log"
fi
if [ ! -e "$results/status" ]; then
  grep -v -e "^\[.*\]  " "$results/boot.log" 2>/dev/null | tail -n 30 >&2 || true
  [ "$status" != 124 ] || die "the guest was not done after $timeout s"
  die "the guest ended (QEMU: $status) before its command did; its last words are above"
fi
cat "$results/stdout"
exit "$(cat "$results/status")"
