#!/usr/bin/env bash
# Fetches a kernel for guest.sh: a Debian kernel with its modules, unpacked into a cache folder (never installed), and a small
# initramfs. Prints the folder. Existing files are kept. KERNEL names a package; the default is the newest of 6.12, or of the Debian
# release's own kernel if there is none.
set -euo pipefail

cache=${XDG_CACHE_HOME:-$HOME/.cache}/lastmile/peers
here=$(cd "$(dirname "$0")" && pwd)
have() { command -v "$1" >/dev/null 2>&1; }
say() { printf 'peers: %s\n' "$*" >&2; }
die() { printf 'peers: error: %s\n' "$*" >&2; exit 2; }

missing=()
have qemu-system-x86_64 || missing+=(qemu-system-x86)
have busybox || missing+=(busybox-static)
have xz || missing+=(xz-utils)
have cpio || missing+=(cpio)
have ip || missing+=(iproute2)
have nft || missing+=(nftables)
have ping || missing+=(iputils-ping)
have ethtool || missing+=(ethtool)
[ -x /usr/bin/python3 ] || missing+=(python3)
if [ ${#missing[@]} -gt 0 ]; then
  [ "$(id -u)" = 0 ] && have apt-get || die "missing: ${missing[*]} (sudo apt-get install ${missing[*]})"
  say "installing ${missing[*]}"
  DEBIAN_FRONTEND=noninteractive apt-get update -qq >/dev/null 2>&1 || true
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null 2>&1 ||
    die "could not install ${missing[*]}"
fi
! ldd "$(command -v busybox)" >/dev/null 2>&1 || die "busybox is linked dynamically: install busybox-static"

mkdir -p "$cache"
# The newest kernel in the cache suffices.
newest() { find "$cache" -mindepth 1 -maxdepth 1 -type d -name "${KERNEL:-linux-image-*}" 2>/dev/null | sort -V | tail -n1; }
kernel=$(newest)
if [ -z "$kernel" ]; then
  have apt-get || die "no apt-get: unpack a Debian kernel package into $cache/linux-image-VERSION"
  package=${KERNEL:-}
  for series in 6.12 "$(apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/.*Depends: linux-image-\([0-9.]*\).*/\1/p' | head -n1)"; do
    [ -n "$package" ] && break
    package=$(apt-cache pkgnames "linux-image-$series" | grep -E '^linux-image-[0-9.]+[^-]*(-[0-9]+)?-amd64$' | grep -v '^linux-image-[0-9]*\.[0-9]*-amd64$' | sort -V | tail -n1)
  done
  [ -n "$package" ] || die "no kernel package found (apt-cache pkgnames linux-image-); name one: KERNEL=linux-image-VERSION-amd64"
  say "fetching $package"
  mkdir -p "$cache/download"
  (cd "$cache/download" && rm -f ./*.deb && apt-get download -qq "$package" 2>/dev/null) || die "could not download $package"
  rm -rf "$cache/part"
  dpkg -x "$cache"/download/*.deb "$cache/part"
  rm -rf "$cache/download"
  # Uncompressed modules, because busybox's modprobe reads no others.
  find "$cache/part" -name '*.ko.xz' -exec xz -d {} +
  find "$cache/part" -name '*.ko.zst' -exec zstd -q --rm -d {} +
  release=$(ls "$cache"/part/lib/modules)
  if have depmod; then depmod -b "$cache/part" "$release"; else (cd "$cache/part/lib/modules/$release" && busybox depmod -b "$cache/part" "$release"); fi
  mv "$cache/part" "$cache/$package"
  kernel=$cache/$package
fi
release=$(ls "$kernel/lib/modules")

# The initramfs: busybox, the modules of 9p and overlay, and init.
image=$kernel/initramfs
if [ ! -e "$image" ] || [ "$here/init" -nt "$image" ]; then
  root=$(mktemp -d)
  trap 'rm -rf "$root"' EXIT
  mkdir -p "$root"/{bin,proc,sys,dev,mnt,modules}
  cp -L "$(command -v busybox)" "$root/bin/busybox"
  ln -s busybox "$root/bin/sh"
  { echo '#!/bin/busybox sh'; cat "$here/init"; } > "$root/init"
  chmod +x "$root/init"
  # In the order of loading; a built-in module has no file.
  number=10
  for module in netfs 9pnet 9pnet_virtio 9p overlay; do
    found=$(find "$kernel/lib/modules/$release" -name "$module.ko" | head -n1)
    [ -n "$found" ] && cp "$found" "$root/modules/$number-$module.ko"
    number=$((number + 1))
  done
  (cd "$root" && find . | cpio --quiet -o -H newc) > "$image.$$"
  # Another guest may be starting.
  mv "$image.$$" "$image"
fi
printf '%s\n' "$kernel"
