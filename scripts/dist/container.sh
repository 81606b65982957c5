#!/usr/bin/env bash
# Container images of the static programs (scripts/dist/static.sh) as OCI archives, in target/dist, by buildah. `podman load` and
# `docker load` read them. Where podman can run containers, the image is tried.
source "$(dirname "$0")/common.bash"
command -v buildah >/dev/null || die "no buildah"
container_name() { case $1 in x86_64) echo amd64 ;; aarch64) echo arm64 ;; *) echo "$1" ;; esac; }
# Storage of its own below target, in plain folders: neither a daemon nor overlay mounts are needed.
storage=(--root "$target/dist-work/containers" --runroot "$target/dist-work/containers-run" --storage-driver vfs)
licences=$target/dist-work/THIRD-PARTY
[ -e "$licences" ] || scripts/dist/licences.py "$licences"
for architecture in "${architectures[@]}"; do
  context=$target/dist-work/container-$architecture
  rm -rf "$context"
  mkdir -p "$context/licences"
  cp scripts/dist/container/Containerfile "$target/dist-work/lastmile-$version-$architecture-linux/lastmile" "$context/"
  cp "$licences" LICENSE-MIT LICENSE-APACHE "$context/licences/"
  tag=localhost/lastmile:$version-$(container_name "$architecture")
  archive=$dist/lastmile-$version-$(container_name "$architecture").oci.tar
  buildah "${storage[@]}" build --quiet --isolation chroot --arch "$(container_name "$architecture")" \
    --timestamp "$SOURCE_DATE_EPOCH" --tag "$tag" "$context" >/dev/null
  rm -f "$archive"
  buildah "${storage[@]}" push --quiet "$tag" "oci-archive:$archive:lastmile:$version"
  say "$archive"
done
tag=localhost/lastmile:$version-$(container_name "$(uname -m)")
if command -v podman >/dev/null &&
  shown=$(podman "${storage[@]}" --cgroup-manager cgroupfs run --rm --network none --cgroups disabled "$tag" --version 2>"$target/dist-work/podman.log"); then
  [ "$shown" = "lastmile $version" ] || die "the image prints $shown"
  say "the image runs: $shown"
else
  say "continuing without podman, or without the right to run containers: the image is not started ($target/dist-work/podman.log)"
fi
