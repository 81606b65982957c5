#!/usr/bin/env bash
# Container images of the static programs (scripts/dist/static.sh) as OCI archives, in target/dist, by buildah. `podman
# load` and `docker load` read them.
source "$(dirname "$0")/common.bash"
command -v buildah >/dev/null || {
  say "continuing without buildah: no container images"
  exit 0
}
# Storage of its own below target, in plain folders: neither a daemon nor overlay mounts are needed.
storage=(--root "$work/containers" --runroot "$work/containers-run" --storage-driver vfs)
licences=$work/THIRD-PARTY
for architecture in "${architectures[@]}"; do
  context=$work/container-$architecture
  rm -rf "$context"
  mkdir -p "$context/licences"
  cp scripts/dist/container/Containerfile "$work/lastmile-$version-$architecture-linux/lastmile" "$context/"
  cp "$licences" LICENSE-MIT LICENSE-APACHE "$context/licences/"
  tag=localhost/lastmile:$version-$(short_name "$architecture")
  archive=$dist/lastmile-$version-$(short_name "$architecture").oci.tar
  buildah "${storage[@]}" build --quiet --isolation chroot --arch "$(short_name "$architecture")" \
    --timestamp "$SOURCE_DATE_EPOCH" --tag "$tag" "$context" >/dev/null
  rm -f "$archive"
  buildah "${storage[@]}" push --quiet "$tag" "oci-archive:$archive:lastmile:$version"
  say "$archive"
  [ "$architecture" = "$(uname -m)" ] || continue
  # The archive is read back, and its program started in the root of the image, without a runtime of containers.
  buildah "${storage[@]}" rmi --force "$tag" >/dev/null
  container=$(buildah "${storage[@]}" from "oci-archive:$archive")
  shown=$(buildah "${storage[@]}" run --isolation chroot --volume "$PWD:/work" "$container" -- \
    /usr/bin/lastmile --version)
  buildah "${storage[@]}" rm "$container" >/dev/null
  [ "$shown" = "lastmile $version" ] || die "the image prints $shown"
  say "the image runs: $shown"
done
