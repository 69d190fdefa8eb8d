#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Makes a directory with all headers that the driver includes, directly or through other headers. A header of the kernel
# that can be used as it is becomes a link. The others become empty files, because shim.h replaces them.
# usage: tests/native/shim/headers.sh LINUX-SOURCE DIR FILE...
set -euo pipefail

linux=$1
dir=$2
shift 2

# Headers of the kernel that are used as they are.
own=' linux/align.h linux/array_size.h linux/bitmap.h linux/bits.h linux/build_bug.h linux/const.h linux/container_of.h
	linux/dma-fence.h linux/dma-fence-array.h linux/dma-fence-chain.h
	linux/dma-fence-unwrap.h linux/dma-resv.h linux/err.h linux/find.h linux/hash.h linux/kconfig.h linux/kref.h linux/limits.h linux/list.h linux/log2.h linux/math.h linux/math64.h
	linux/minmax.h linux/overflow.h linux/poison.h linux/prandom.h linux/rbtree.h linux/rbtree_augmented.h
	linux/rbtree_types.h linux/sizes.h linux/sync_file.h linux/xarray.h uapi/linux/sync_file.h
	vdso/bits.h vdso/const.h vdso/limits.h vdso/math64.h uapi/linux/bits.h uapi/linux/const.h uapi/linux/limits.h '
# Headers of the C library, or of this project.
others=' asm/errno.h asm/ioctl.h linux/errno.h linux/flexmem.h kunit/test.h linux/futex.h '

declare -A seen=()
scan() {
	local header
	while read -r header; do
		[[ ! ${seen[$header]:-} ]] || continue
		seen[$header]=1
		[[ $others != *" $header "* ]] || continue
		mkdir -p "$dir/${header%/*}"
		if [[ $own =~ [[:space:]]"$header"[[:space:]] ]]; then
			[[ $header == uapi/* || $header == vdso/* || -e $linux/include/$header ]]
			ln -sf "$linux/include/$header" "$dir/$header"
			scan "$dir/$header"
		else
			echo "/* Its contents, as far as they are needed, are in shim.h. */" >"$dir/$header"
		fi
	done < <(sed -nE 's/^[[:space:]]*#[[:space:]]*include <((asm|generated|kunit|linux|uapi|vdso)\/[a-z0-9_\/-]+\.h)>.*/\1/p' "$@" | sort -u)
}
rm -rf "$dir"
mkdir -p "$dir"
scan "$@"
