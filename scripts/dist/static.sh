#!/usr/bin/env bash
# The program `lastmile` without shared libraries, for each architecture, in target/dist. zig compiles the C code (SQLite, ring)
# and links with musl. A program for another architecture runs in qemu-user, where it is installed.
source "$(dirname "$0")/common.bash"
prepare_tools
mkdir -p "$dist"
scenario=scenarios/upload-starves-download.toml
for architecture in "${architectures[@]}"; do
  rustup target add "$architecture-unknown-linux-musl" >&2
  say "static program for $architecture, profile $profile"
  cargo-zigbuild zigbuild --quiet --profile "$profile" --locked --package lastmile-cli --target "$architecture-unknown-linux-musl" \
    --target-dir "$target"
  program=$(static_program "$architecture")
  ! readelf -d "$program" | grep -q NEEDED || die "$program needs shared libraries"
  name=lastmile-$version-$architecture-linux
  rm -rf "$target/dist-work/$name"
  mkdir -p "$target/dist-work/$name"
  cp "$program" README.md LICENSE-MIT LICENSE-APACHE "$target/dist-work/$name/"
  tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C "$target/dist-work" -cf - "$name" |
    gzip -9n >"$dist/$name.tar.gz"
done

# Each program gives the bytes of the others.
reference=
for architecture in "${architectures[@]}"; do
  program=$target/dist-work/lastmile-$version-$architecture-linux/lastmile
  status=0
  shown=$(on_architecture "$architecture" "$program" --version) || status=$?
  if [ "$status" = 77 ]; then
    say "continuing without qemu-$architecture-static: its program is not run"
    continue
  fi
  [ "$shown" = "lastmile $version" ] || die "$program --version: $shown"
  sum=$(on_architecture "$architecture" "$program" run "$scenario" --json | sha256sum)
  [ "${reference:=$sum}" = "$sum" ] || die "$program gives other results than the first architecture"
  say "$architecture: $shown, results ${sum:0:16}"
done
