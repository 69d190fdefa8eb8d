#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Makes build/kernels/KIND ready to boot and to build modules against:
#   vmlinuz  release  initrd.gz
#   headers  link to the KDIR of external modules
#   root/    what the image package brought (lib/modules), stock kernels only
# usage: tests/vm/kernel.sh 6.1|6.12|debug
# Stock kernels come as Debian packages that are unpacked and never installed. Everything is made once.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

kind=${1:-}
dir=$BUILD/kernels/$kind

# The image that the series' meta package names today, and its headers, which must be of the same build: a module
# built against another one does not load. They are an ordinary package with absolute paths, so they are installed.
stock() {
	local meta=$1 image release version
	# Usable as long as its headers are there, whatever the archive has by now.
	[[ ! -e $dir/ready || ! -e $dir/headers/Makefile ]] || return 0

	image=$(apt-cache depends "linux-image-$meta" 2>/dev/null | awk '$1 == "Depends:" { print $2; exit }')
	[[ $image ]] || die "apt knows no linux-image-$meta: is this Debian 12 with its lists up to date?"
	release=${image#linux-image-}
	version=$(dpkg-query -W -f '${Version}' "linux-headers-$release" 2>/dev/null) ||
		die "linux-headers-$release is not installed (for $image)"
	say "Fetching $image $version"
	rm -rf "$dir"
	mkdir -p "$dir"
	deb_unpack "$dir/root" "$image=$version"
	depmod -b "$dir/root" "$release"
	cp "$dir/root/boot/vmlinuz-$release" "$dir/vmlinuz"
	ln -sfn "/lib/modules/$release/build" "$dir/headers"
	[[ -e $dir/headers ]] || ln -sfn "/usr/src/linux-headers-$release" "$dir/headers"
	echo "$release" >"$dir/release"
	touch "$dir/ready"
}

case $kind in
6.1) stock_meta=amd64 ;;
6.12) stock_meta=6.12-amd64 ;;
debug) ;;
*) die "usage: kernel.sh 6.1|6.12|debug" ;;
esac
lock "kernel-$kind"
if [[ $kind == debug ]]; then
	"$TOP/tests/vm/debug-kernel.sh" "$dir"
	modules=()
else
	stock "$stock_meta"
	# What it takes to reach the root file system.
	modules=(virtio_pci 9pnet_virtio 9p overlay)
fi
for source in "$dir/release" "$TOP/tests/vm/init" "$TOP/tests/vm/initrd.sh"; do
	[[ $dir/initrd.gz -nt $source ]] || {
		"$TOP/tests/vm/initrd.sh" "$dir" "${modules[@]}"
		break
	}
done
