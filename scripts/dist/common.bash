# What the scripts of this folder share. Sourced, not run.
#
# PROFILE is the profile of cargo (`release`, minutes for each target; `ci` for a trial). TARGETS
# is the list of architectures, as Rust names them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
dist=$target/dist
# What lies between the sources and the products.
work=$target/dist-work
profile=${PROFILE:-release}
read -r -a architectures <<<"${TARGETS:-x86_64 aarch64}"
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
# Equal sources give equal bytes: archives have the time of the last commit.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH
say() { printf 'dist: %s\n' "$*" >&2; }
die() { printf 'dist: error: %s\n' "$*" >&2; exit 1; }
# The name of an architecture in packages of Debian and in images.
short_name() { case $1 in x86_64) echo amd64 ;; aarch64) echo arm64 ;; *) echo "$1" ;; esac; }
# The folder in which cargo puts what it builds with the profile.
folder_of_profile() { case $profile in dev) echo debug ;; *) echo "$profile" ;; esac; }
# Published programs have no symbols.
export "CARGO_PROFILE_${profile^^}_STRIP=symbols"

# Programs from PyPI: maturin, and zig, which compiles C for every target and links against old versions of glibc.
environment=$target/dist-tools
prepare_tools() {
  local wanted
  wanted=$(sha256sum scripts/dist/requirements.txt | cut -c1-16)
  if [ ! -e "$environment/ready-$wanted" ]; then
    say "installing maturin and zig into $environment"
    "${PYTHON:-python3}" -m venv --clear "$environment"
    "$environment/bin/python" -m pip install --quiet --disable-pip-version-check -r scripts/dist/requirements.txt
    touch "$environment/ready-$wanted"
  fi
  export PATH=$environment/bin:$PATH
}
