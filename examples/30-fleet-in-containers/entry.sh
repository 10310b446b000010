#!/bin/sh
# Checks what a container often lacks, and starts `holdfast`. `tini` passes signals on, and ends the zombies that agents leave.
set -eu

refuse() {
  printf 'error[%s]: %s\n  fix: %s\n' "$1" "$2" "$3" >&2
  exit "$4"
}

case "${1:-}" in
healthy)
  exec node -e 'fetch("http://127.0.0.1:8765/livez").then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))'
  ;;
coordinator | runner)
  [ "$(id -u)" != 0 ] ||
    refuse E_USAGE "the container runs as root, and agents would, too" "leave --user out: the image has the user 10001" 2
  grep -q ' /data ' /proc/self/mountinfo ||
    refuse E_USAGE "/data is no volume: sessions and tokens would be lost with the container" \
      "add -v holdfast:/data, or for a trial that keeps nothing --tmpfs /data:mode=1777" 2
  [ -w /data ] ||
    refuse E_STORAGE_READONLY "the user $(id -u) cannot write to the volume /data" "make it theirs: chown $(id -u):$(id -g) FOLDER" 10
  ;;
esac
exec tini -- holdfast "$@"
