#!/usr/bin/env bash
# Fetches a kernel for guest.sh: a Debian kernel with its modules, unpacked into a cache folder (never installed), and a
# small initramfs. Prints the folder. Existing files are kept.
#
# KERNEL is a series (7, 7.2, 6.12) or the name of a package (linux-image-VERSION-amd64). The default is the newest of
# 6.12, or of the Debian release's own kernel if there is none. What the machine's own sources lack comes from a newer
# suite of the same mirror, by a temporary list of sources in the cache: the kernel's packages, and an iproute2 that
# knows that kernel's queues, for the guest alone.
set -euo pipefail

cache=${XDG_CACHE_HOME:-$HOME/.cache}/lastmile/peers
here=$(cd "$(dirname "$0")" && pwd)
have() { command -v "$1" >/dev/null 2>&1; }
say() { printf 'peers: %s\n' "$*" >&2; }
die() { printf 'peers: error: %s\n' "$*" >&2; exit 2; }

package= series=
case ${KERNEL:-} in
  "") ;;
  linux-image-*) package=$KERNEL ;;
  *[!0-9.]* | .*)
    die "KERNEL=$KERNEL is neither a series, such as 7 or 6.12, nor a package, such as linux-image-VERSION-amd64"
    ;;
  *) series=$KERNEL ;;
esac

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
trap 'rm -rf "$cache/apt-$$"' EXIT
cached() { # SERIES or package: the newest of it in the cache; of all, if it is empty
  local pattern=linux-image-*
  case $1 in linux-image-*) pattern=$1 ;; ?*) pattern="linux-image-$1[.+-]*" ;; esac
  find "$cache" -mindepth 1 -maxdepth 1 -type d -name "$pattern" 2>/dev/null | sort -V | tail -n1
}
# Options of apt: empty for the machine's own sources, or those of a newer suite.
apt=()
# The newest package of a series. Packages without a version of their own, and those for clouds and real time, are
# passed over.
offered() { # SERIES
  [ -n "$1" ] || return 0
  { apt-cache "${apt[@]}" pkgnames "linux-image-$1" || true; } |
    { grep -E "^linux-image-${1//./\\.}[.+-]" || true; } |
    { grep -E '^linux-image-[0-9.]+[^-]*(-[0-9]+)?-amd64$' || true; } |
    { grep -v '^linux-image-[0-9]*\.[0-9]*-amd64$' || true; } |
    sort -V | tail -n1
}
# The series of the Debian release's own kernel.
release_series() {
  apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/.*Depends: linux-image-\([0-9.]*\).*/\1/p' | head -n1
}
# Points `apt` to a suite of the mirror that the machine's own sources name for Debian's main archive.
use_suite() { # SUITE
  local folder=$cache/apt-$$/$1 mirror ring=/usr/share/keyrings/debian-archive-keyring.gpg
  # shellcheck disable=SC2016 # apt-get expands these.
  mirror=$(apt-get indextargets --format '$(ORIGIN) $(COMPONENT) $(CODENAME) $(REPO_URI)' 'Created-By: Packages' \
    2>/dev/null | awk '$1 == "Debian" && $2 == "main" && $3 !~ /-/ {print $4; exit}')
  [ -n "$mirror" ] || die "the sources of apt name no mirror of Debian's archive (apt-get update first?)," \
    "so that no newer suite can be asked for $wanted"
  mkdir -p "$folder"/lists/partial "$folder"/archives/partial
  printf 'deb %s%s %s main\n' "$([ ! -e $ring ] || printf '[signed-by=%s] ' $ring)" "$mirror" "$1" \
    > "$folder/sources.list"
  apt=(-o "Dir::Etc::sourcelist=$folder/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o "Dir::State::lists=$folder/lists" -o "Dir::Cache=$folder"
    -o Acquire::Languages=none -o APT::Sandbox::User=root)
  apt-get "${apt[@]}" update -qq >/dev/null 2>&1 || { say "the mirror has no usable suite $1"; return 1; }
}
# Packages that a package needs, itself included, whose names match.
needed() { # PACKAGE PATTERN
  apt-cache "${apt[@]}" depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces \
    --no-enhances "$1" | { grep -E "$2" || true; } | sort -u
}
unpack() { # FOLDER PACKAGE...
  local folder=$1 download=$cache/download
  shift
  say "fetching $*"
  rm -rf "$download"
  mkdir -p "$download" "$folder"
  (cd "$download" && apt-get "${apt[@]}" download -qq "$@" >/dev/null 2>&1) || die "could not download $*"
  for file in "$download"/*.deb; do dpkg -x "$file" "$folder"; done
  rm -rf "$download"
}
# tc, ip and bridge of the suite, with their libraries, below FOLDER/tools: they need a newer libc than the machine may
# have.
tools() { # FOLDER
  local from=$1/unpacked to=$1/tools loader library
  local -a packages
  mapfile -t packages < <(needed iproute2 '^(iproute2|lib[^ ]*|zlib1g)$')
  unpack "$from" "${packages[@]}"
  mkdir -p "$to/bin" "$to/lib"
  library=$from/usr/lib/x86_64-linux-gnu
  loader=$(find "$from" -name 'ld-linux-x86-64.so.2' -type f | head -n1)
  [ -n "$loader" ] || die "the libc of the suite has no ld-linux-x86-64.so.2"
  cp "$loader" "$to/lib/"
  for tool in tc ip bridge; do
    cp "$(find "$from" -path "*bin/$tool" -type f | head -n1)" "$to/lib/$tool"
    "$loader" --library-path "$library" --list "$to/lib/$tool" |
      { grep -o "$library/[^ ]*" || true; } |
      while read -r file; do cp -L "$file" "$to/lib/"; done
    # shellcheck disable=SC2016 # $0 is the guest's.
    {
      printf '#!/bin/sh\nlib=${0%%/*}/../lib\n'
      printf 'TC_LIB_DIR=$lib exec "$lib/ld-linux-x86-64.so.2" --library-path "$lib" "$lib/%s" "$@"\n' "$tool"
    } > "$to/bin/$tool"
    chmod +x "$to/bin/$tool"
  done
  # Distributions of netem.
  find "$from" -path '*/tc/*.dist' -exec cp {} "$to/lib/" \;
  rm -rf "$from"
}

wanted=${KERNEL:-a kernel of 6.12}
if [ -n "${KERNEL:-}" ]; then kernel=$(cached "$KERNEL"); else kernel=$(cached 6.12); fi
if [ -z "$kernel" ]; then
  have apt-get || die "no apt-get: unpack a Debian kernel package into $cache/linux-image-VERSION"
  newer=no
  if [ -n "$package" ]; then
    apt-cache show "$package" >/dev/null 2>&1 || newer=yes
  elif [ -n "$series" ]; then
    package=$(offered "$series")
    [ -n "$package" ] || newer=yes
  else
    package=$(offered 6.12)
    [ -n "$package" ] || package=$(offered "$(release_series)")
    [ -n "$package" ] || kernel=$(cached "")
  fi
  if [ $newer = yes ]; then
    for suite in testing unstable; do
      use_suite $suite || continue
      if [ -n "$series" ]; then
        package=$(offered "$series")
      elif ! apt-cache "${apt[@]}" show "$package" >/dev/null 2>&1; then
        continue
      fi
      [ -z "$package" ] || { newer=$suite; break; }
    done
    [ $newer != yes ] || die "neither the machine's own sources nor Debian's testing and unstable have $wanted:" \
      "apt-cache pkgnames linux-image- lists what there is"
  fi
fi
if [ -z "$kernel" ]; then
  [ -n "$package" ] ||
    die "no kernel package found (apt-cache pkgnames linux-image-); name one: KERNEL=linux-image-VERSION-amd64"
  release=${package#linux-image-}
  rm -rf "$cache/part"
  # One package, or several of the same release: linux-base, linux-binary, linux-image, linux-modules.
  mapfile -t packages < <(needed "$package" "^linux-[a-z]+-${release//[.+]/.}\$")
  unpack "$cache/part" "${packages[@]}"
  # Newer packages have modules and kernel below /usr/lib/modules; guest.sh looks for lib/modules and boot.
  if [ ! -d "$cache/part/lib/modules" ]; then
    mkdir -p "$cache/part/lib" && mv "$cache/part/usr/lib/modules" "$cache/part/lib/modules"
  fi
  release=$(ls "$cache/part/lib/modules")
  if ! compgen -G "$cache/part/boot/vmlinuz-*" >/dev/null; then
    mkdir -p "$cache/part/boot"
    mv "$cache/part/lib/modules/$release/vmlinuz" "$cache/part/boot/vmlinuz-$release" ||
      die "$package has no kernel in boot or lib/modules"
  fi
  # Uncompressed modules, because busybox's modprobe reads no others.
  find "$cache/part" -name '*.ko.xz' -exec xz -d {} +
  find "$cache/part" -name '*.ko.zst' -exec zstd -q --rm -d {} +
  if have depmod; then
    depmod -b "$cache/part" "$release"
  else
    (cd "$cache/part/lib/modules/$release" && busybox depmod -b "$cache/part" "$release")
  fi
  [ ${#apt[@]} = 0 ] || tools "$cache/part"
  mv "$cache/part" "$cache/$package"
  kernel=$cache/$package
fi
release=$(ls "$kernel/lib/modules")

# The initramfs: busybox, the modules of 9p and overlay, and init.
image=$kernel/initramfs
if [ ! -e "$image" ] || [ "$here/init" -nt "$image" ]; then
  root=$(mktemp -d)
  trap 'rm -rf "$root" "$cache/apt-$$"' EXIT
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
