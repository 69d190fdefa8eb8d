#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs a command in the root that root.sh has made, where this checkout is visible at /srv/flexmem, so that paths which
# are written into build/torch are the same for every checkout. Works in a virtual machine and in a chroot as well.
# Mounting needs root; the command itself runs as the caller, so that the caller can remove what it makes.
# usage: tests/torch/enter.sh COMMAND [ARGUMENT...]      in /srv/flexmem; FLEX* and PYTORCH_ALLOC_CONF are passed on
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

if [[ ${1:-} != --mounted ]]; then
	need_root "$0"
	((!${#as_root[@]})) || as_root+=(--preserve-env)
	# unshare ends the mounts with the command. In a chroot the mounts cannot be made private.
	how=(--mount)
	"${as_root[@]}" unshare "${how[@]}" true 2>/dev/null || how+=(--propagation unchanged)
	exec "${as_root[@]}" unshare "${how[@]}" "$0" --mounted "$EUID:$(id -g)" "$(id -G | tr ' ' ,)" "$@"
fi
caller=(--userspec="$2" --groups="$3")
shift 3
root=$TORCH/root
made=/srv/flexmem/${TORCH#"$TOP/"}
mkdir -p "$root/srv/flexmem"
mount --bind "$root" "$root"
mount --make-private "$root"
trap 'umount -l "$root"' EXIT
for name in dev sys proc; do
	mount --rbind "/$name" "$root/$name"
	mount --make-rslave "$root/$name"
done
mount --bind "$TOP" "$root/srv/flexmem"
variables=()
for name in "${!FLEX@}" PYTORCH_ALLOC_CONF; do
	[[ ! -v $name ]] || variables+=("$name=${!name}")
done
# On some processors (AMD EPYC, PyTorch 2.6) oneDNN's convolutions with AVX-512 give another result in each run,
# sometimes NaN, even without flexmem. Then comparing losses proves nothing.
variables+=(ONEDNN_MAX_CPU_ISA=AVX2)
status=0
env -i HOME="$made" TERM="${TERM:-dumb}" LC_ALL=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
	CCACHE_DIR="$made/ccache" PYTHONDONTWRITEBYTECODE=1 \
	PYTHONPATH="$made/made/binding" "${variables[@]}" \
	chroot "${caller[@]}" "$root" bash -c 'cd /srv/flexmem && exec "$@"' enter "$@" || status=$?
exit "$status"
