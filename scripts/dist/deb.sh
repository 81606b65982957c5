#!/usr/bin/env bash
# Debian packages of the static programs (scripts/dist/static.sh), in target/dist: the program, manual pages,
# completions for bash, zsh and fish, units for systemd and the folder of their settings, scenarios as examples. The
# packages depend on no other package.
source "$(dirname "$0")/common.bash"
command -v dpkg-deb >/dev/null || {
  say "continuing without dpkg-deb: no Debian packages"
  exit 0
}
native=$work/lastmile-$version-$(uname -m)-linux/lastmile
[[ " ${architectures[*]} " == *" $(uname -m) "* ]] || {
  say "continuing without a program for $(uname -m), which writes the manual pages: no Debian packages"
  exit 0
}
licences=$work/THIRD-PARTY
rm -f "$dist"/*.deb

# Files that are equal on all architectures, below $1.
common_files() {
  local root=$1 doc=$1/usr/share/doc/lastmile
  mkdir -p "$root"/usr/share/{man/man1,bash-completion/completions,zsh/vendor-completions} \
    "$root"/usr/share/{fish/vendor_completions.d,lintian/overrides}
  mkdir -p "$root/usr/lib/systemd/system" "$doc/examples" "$root/etc/lastmile"
  "$native" man "$root/usr/share/man/man1" 2>/dev/null
  gzip -9n "$root"/usr/share/man/man1/*.1
  "$native" completions bash >"$root/usr/share/bash-completion/completions/lastmile"
  "$native" completions zsh >"$root/usr/share/zsh/vendor-completions/_lastmile"
  "$native" completions fish >"$root/usr/share/fish/vendor_completions.d/lastmile.fish"
  "$native" shape unit --program /usr/bin/lastmile >"$root/usr/lib/systemd/system/lastmile-shape@.service"
  "$native" watch unit --program /usr/bin/lastmile >"$root/usr/lib/systemd/system/lastmile-watch.service"
  "$native" measure unit --program /usr/bin/lastmile >"$root/usr/lib/systemd/system/lastmile-measure.service"
  cp README.md "$doc/"
  gzip -9n <"$licences" >"$doc/THIRD-PARTY.gz"
  gzip -9n <CHANGELOG.md >"$doc/NEWS.gz"
  {
    printf 'lastmile (%s) unstable; urgency=medium\n\n  * NEWS.gz has the changes.\n\n' "$version"
    printf ' -- The lastmile authors <lastmile@localhost>  %s\n' "$(date -uRd "@$SOURCE_DATE_EPOCH")"
  } | gzip -9n >"$doc/changelog.gz"
  cp scripts/dist/debian/copyright "$doc/copyright"
  cp scripts/dist/debian/lintian-overrides "$root/usr/share/lintian/overrides/lastmile"
  cp -r scenarios policies "$doc/examples/"
}

for architecture in "${architectures[@]}"; do
  root=$work/deb-$architecture
  rm -rf "$root"
  mkdir -p "$root/usr/bin" "$root/DEBIAN"
  cp "$work/lastmile-$version-$architecture-linux/lastmile" "$root/usr/bin/"
  common_files "$root"
  find "$root" -type d -exec chmod 755 {} + -o -type f -exec chmod 644 {} +
  chmod 755 "$root/usr/bin/lastmile"
  install -m 755 scripts/dist/debian/{postinst,prerm,postrm} "$root/DEBIAN/"
  sed -e "s/@VERSION@/$version/" -e "s/@ARCHITECTURE@/$(short_name "$architecture")/" \
    -e "s/@SIZE@/$(du -ks --apparent-size "$root/usr" | cut -f1)/" scripts/dist/debian/control >"$root/DEBIAN/control"
  (cd "$root" &&
    find usr -type f -printf '%P\0' | sort -z | (cd usr && xargs -0 md5sum) | sed 's|  |  usr/|' >DEBIAN/md5sums)
  find "$root" -newermt "@$SOURCE_DATE_EPOCH" -exec touch --no-dereference --date "@$SOURCE_DATE_EPOCH" {} +
  package=$dist/lastmile_${version}_$(short_name "$architecture").deb
  dpkg-deb --root-owner-group -Zxz --build "$root" "$package" >/dev/null
  say "$package"
  if command -v lintian >/dev/null; then
    lintian --fail-on error --tag-display-limit 0 --allow-root "$package" >&2 || die "lintian finds errors in $package"
  else
    say "continuing without lintian: the package is not checked"
  fi
done
