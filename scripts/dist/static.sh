#!/usr/bin/env bash
# The program `lastmile` without shared libraries, for each architecture, in target/dist. zig compiles the C code
# (SQLite, ring) and links with musl. Each program is tried in a root folder that holds nothing else; one for another
# architecture in qemu-user, where it is installed.
source "$(dirname "$0")/common.bash"
command -v readelf >/dev/null || die "no readelf, which lists the shared libraries of a program: install binutils"
prepare_tools
mkdir -p "$dist" "$work"
rm -f "$dist"/lastmile-*-linux.tar.gz
scripts/dist/licences.py "$work/THIRD-PARTY" lastmile-cli "${architectures[@]/%/-unknown-linux-musl}"
for architecture in "${architectures[@]}"; do
  rustup target add "$architecture-unknown-linux-musl" >&2
  say "static program for $architecture, profile $profile"
  cargo-zigbuild zigbuild --quiet --profile "$profile" --locked --package lastmile-cli \
    --target "$architecture-unknown-linux-musl" --target-dir "$target"
  program=$target/$architecture-unknown-linux-musl/$(folder_of_profile)/lastmile
  sections=$(readelf -d "$program")
  [[ $sections != *NEEDED* ]] || die "$program needs shared libraries"
  name=lastmile-$version-$architecture-linux
  rm -rf "${work:?}/$name"
  mkdir -p "$work/$name"
  cp "$program" README.md LICENSE-MIT LICENSE-APACHE "$work/THIRD-PARTY" "$work/$name/"
  tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C "$work" -cf - "$name" |
    gzip -9n >"$dist/$name.tar.gz"
done

# Runs the program of architecture $1 with the other arguments in a folder that holds the program and a scenario: as the
# root folder, where the machine allows it. Returns 77 where the program cannot run.
alone() {
  local architecture=$1 root=$work/alone-$1
  shift
  if [ ! -d "$root" ]; then
    mkdir "$root"
    cp "$work/lastmile-$version-$architecture-linux/lastmile" scenarios/upload-starves-download.toml "$root/"
  fi
  if [ "$architecture" != "$(uname -m)" ]; then
    command -v "qemu-$architecture-static" >/dev/null || return 77
    (cd "$root" && "qemu-$architecture-static" ./lastmile "$@")
  elif unshare --map-root-user true 2>/dev/null; then
    unshare --map-root-user --root "$root" --wd / /lastmile "$@"
  else
    (cd "$root" && ./lastmile "$@")
  fi
}

# Each program gives the results of the others, byte for byte; the times and the memory of a run are its own.
own='"\(wall_s\|events_per_s\|speed\|memory_bytes\)":'
reference=
for architecture in "${architectures[@]}"; do
  rm -rf "$work/alone-$architecture"
  status=0
  shown=$(alone "$architecture" --version) || status=$?
  if [ "$status" = 77 ]; then
    say "continuing without qemu-$architecture-static: its program is not run"
    continue
  fi
  [ "$shown" = "lastmile $version" ] || die "the program for $architecture prints ${shown:-nothing} for --version"
  sum=$(alone "$architecture" run upload-starves-download.toml --json | grep -v "$own" | sha256sum)
  [ "${reference:=$sum}" = "$sum" ] || die "the program for $architecture gives other results than the first one"
  say "$architecture: $shown, results ${sum:0:16}"
done

# The service of the package for OpenWrt gives the program arguments that it accepts.
native=$work/lastmile-$version-$(uname -m)-linux/lastmile
[ ! -x "$native" ] || packaging/openwrt/check.sh "$native" >&2
