#!/usr/bin/env bash
# Prepares a machine for the make target named in $1. Installs only missing programs that this target needs. A missing
# Rust toolchain or linker is an error, because nothing can be built without them. Other missing programs are named, and
# their tests are skipped.
set -euo pipefail
target=${1:?usage: scripts/setup.sh TARGET}
cd "$(dirname "$0")/.."

have() { command -v "$1" >/dev/null 2>&1; }
say() { printf 'setup: %s\n' "$*" >&2; }
die() { printf 'setup: error: %s\n' "$*" >&2; exit 2; }

apt_updated=no
# Installs packages if that needs no interaction; otherwise prints a message.
apt_install() {
  if [ "$(id -u)" != 0 ] || ! have apt-get; then
    say "missing: $* (install with your package manager, for example: sudo apt-get install $*)"
    return 1
  fi
  if [ "$apt_updated" = no ]; then
    DEBIAN_FRONTEND=noninteractive apt-get update -qq >/dev/null 2>&1 || true
    apt_updated=yes
  fi
  say "installing $*"
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1 || {
    say "could not install $*"
    return 1
  }
}

# Installs the package $2 if the program $1 is missing. If that fails, prints its purpose $3 and continues.
want() {
  have "$1" || apt_install "$2" || say "continuing without $1: $3"
}

# Python with its module venv, which Debian packages separately.
want_python() {
  python3 -c 'import ensurepip, venv' 2>/dev/null || apt_install python3 python3-venv ||
    say "continuing without python3: no tests of the package"
}

# mdBook in target/tools, unless it is on the PATH.
install_mdbook() {
  have mdbook || [ -x "${TOOLS:=$PWD/target/tools}/bin/mdbook" ] || {
    say "installing mdBook into $TOOLS"
    cargo install --locked --root "$TOOLS" mdbook >&2 || die "could not install mdBook: cargo install --locked mdbook"
  }
}

# What the pages are built with.
need_node() {
  have node || apt_install nodejs || die "no node: install Node.js 20 or newer"
  have npm || apt_install npm || die "no npm: install npm"
  [ "$(node -p 'Number(process.versions.node.split(".")[0]) >= 20')" = true ] ||
    die "node $(node --version) is too old: 20 or newer is needed"
  scripts/web-packages.sh || die "could not install the packages of web/package-lock.json"
}

# The target of the module that simulates in a page.
need_wasm() {
  have xz || apt_install xz-utils || die "no xz, which compresses the module: install xz-utils"
  rustc --print target-libdir --target wasm32-unknown-unknown | xargs test -d || {
    have rustup && rustup target add wasm32-unknown-unknown >&2
  } || die "no target wasm32-unknown-unknown: rustup target add wasm32-unknown-unknown"
}

# Node for pages, browsers for their tests, and the target of the module that simulates in a page.
want_web() {
  want node nodejs "pages are not tested"
  want npm npm "pages are not tested"
  have chromium-browser || have google-chrome || want chromium chromium "pages are not tested in a browser"
  have firefox || want firefox-esr firefox-esr "pages are not tested in Firefox"
  want xz xz-utils "playground and stories are not tested"
  ! have rustup || rustup target add wasm32-unknown-unknown >/dev/null 2>&1 ||
    say "continuing without wasm32-unknown-unknown"
}

rust_minimum() { sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml; }

install_rust() {
  [ -f "$HOME/.cargo/env" ] && . "$HOME/.cargo/env"
  have cargo && return 0
  have curl || apt_install curl ca-certificates || true
  if have curl; then
    say "no cargo found: installing the stable Rust toolchain with rustup into ~/.cargo"
    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs |
      sh -s -- -y --profile minimal --component clippy --component rustfmt --no-modify-path >&2 || true
    [ -f "$HOME/.cargo/env" ] && . "$HOME/.cargo/env"
  fi
  have cargo || apt_install cargo rustc || true
  have cargo || die "no Rust toolchain: install Rust $(rust_minimum) or newer (rustup.rs), then run this again"
}

check_rust() {
  local minimum found
  minimum=$(rust_minimum)
  found=$(rustc --version | cut -d' ' -f2)
  if [ "$(printf '%s\n%s\n' "$minimum" "${found%%-*}" | sort -V | head -n1)" != "$minimum" ]; then
    die "Rust $found is too old: $minimum or newer is needed (rustup update stable)"
  fi
}

install_rust
check_rust
have cc || apt_install gcc libc6-dev || die "no C linker (cc): install gcc or clang"

case $target in
  test | lint | rustdoc | python)
    for component in fmt clippy; do
      have "cargo-$component" || rustup component add "${component/fmt/rustfmt}" >&2 ||
        die "cargo $component is missing: rustup component add ${component/fmt/rustfmt}"
    done
    ;;
esac

case $target in
  test)
    want tshark tshark "captures are not checked by an independent reader"
    want ip iproute2 "no live tests"
    want ping iputils-ping "no live tests"
    want nft nftables "kernel rules are not tested"
    want iperf3 iperf3 "measurements against iperf3 are not tested"
    want irtt irtt "measurements against irtt are not tested"
    want ethtool ethtool "frames that the kernel merges are not tested"
    want_python
    want_web
    ;;
  python) want_python ;;
  dist)
    want_python
    have rustup || die "no rustup, which installs the targets of static programs: rustup.rs"
    want readelf binutils "static programs are not built"
    want qemu-aarch64-static qemu-user-static "the program for arm64 is not run"
    want dpkg-deb dpkg "no Debian packages"
    want lintian lintian "Debian packages are not checked"
    want buildah buildah "no container images"
    ;;
  bench)
    want valgrind valgrind "no instruction counts"
    want tcptrace tcptrace "reading captures is not compared with it"
    want tshark tshark "reading captures is not compared with it"
    ;;
  carried) have ip || apt_install iproute2 || die "no ip: it makes the networks between which packets are forwarded" ;;
  what-helps) have python3 || apt_install python3 || die "no python3: it starts the simulations" ;;
  book) install_mdbook ;;
  web) need_node ;;
  site)
    need_node
    need_wasm
    install_mdbook
    have python3 || apt_install python3 || die "no python3: it writes the page of the Python API"
    ;;
  fuzz)
    have c++ || apt_install g++ || die "libFuzzer needs a C++ compiler: install g++ or clang"
    cargo fuzz --version >/dev/null 2>&1 || {
      say "installing cargo-fuzz"
      cargo install --locked cargo-fuzz >&2 || die "could not install cargo-fuzz: cargo install cargo-fuzz"
    }
    ;;
esac
