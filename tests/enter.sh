#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs a command in a Debian root, where this checkout is visible at /srv/flexmem, so that paths which are written into
# the root's folder are the same for every checkout. Works in a virtual machine and in a chroot as well. Mounting needs
# root; the command itself runs as the caller, so that the caller can remove what it makes.
# usage: tests/enter.sh ROOT COMMAND [ARGUMENT...]      in /srv/flexmem, with an empty environment
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/lib.sh"

if [[ ${1:-} != --mounted ]]; then
	need_root "$0"
	# unshare ends the mounts with the command. In a chroot the mounts cannot be made private.
	how=(--mount)
	"${as_root[@]}" unshare "${how[@]}" true 2>/dev/null || how+=(--propagation unchanged)
	exec "${as_root[@]}" unshare "${how[@]}" "$0" --mounted "$EUID:$(id -g)" "$(id -G | tr ' ' ,)" "$@"
fi
caller=(--userspec="$2" --groups="$3")
root=$4
shift 4
mkdir -p "$root/srv/flexmem"
mount --bind "$root" "$root"
mount --make-private "$root"
trap 'umount -l "$root"' EXIT
for name in dev sys proc; do
	mount --rbind "/$name" "$root/$name"
	mount --make-rslave "$root/$name"
done
mount --bind "$TOP" "$root/srv/flexmem"
status=0
env -i HOME=/srv/flexmem/build TERM="${TERM:-dumb}" LC_ALL=C.UTF-8 \
	PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
	chroot "${caller[@]}" "$root" bash -c 'cd /srv/flexmem && exec "$@"' enter "$@" || status=$?
exit "$status"
