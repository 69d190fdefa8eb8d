#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Makes build/kernels/KIND ready to boot and to build modules against:
#   vmlinuz  release  initrd.gz
#   headers  link to the KDIR of external modules
#   root/    what the image package brought (lib/modules), stock kernels only
# usage: tests/vm/kernel.sh 6.1|6.12|debug|kcsan
# Stock kernels come as Debian packages that are unpacked and never installed. Everything is made once.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

kind=${1:-}
dir=$BUILD/kernels/$kind

# The image that the series' meta package names today, and its headers, which must be of the same build: a module
# built against another one does not load. They are an ordinary package with absolute paths, so they are installed.
newest() {
	image=$(apt-cache depends "linux-image-$1" 2>/dev/null | awk '$1 == "Depends:" { print $2; exit }')
	release=${image#linux-image-}
	version=$(apt-cache policy "$image" 2>/dev/null | awk '$1 == "Candidate:" { print $2 }')
}
headers_version() {
	dpkg-query -W -f '${Version}' "linux-headers-$release" 2>/dev/null || true
}
stock() {
	local meta=$1 image release version
	# Usable as long as its headers are there, whatever the archive has by now.
	if [[ -s $dir/ready ]]; then
		release=$(<"$dir/release")
		[[ $(headers_version) != "$(<"$dir/ready")" ]] || return 0
	fi

	newest "$meta"
	if [[ ! $image ]]; then
		"$TOP/tests/setup.sh" --refresh
		newest "$meta"
		[[ $image ]] || die "apt knows no linux-image-$meta: is this Debian 12?"
	fi
	if [[ $(headers_version) != "$version" ]]; then
		"$TOP/tests/setup.sh" --latest "linux-headers-$meta"
		newest "$meta"
		[[ $(headers_version) == "$version" ]] || die "linux-headers-$release is not of version $version"
	fi
	say "Fetching $image $version"
	rm -rf "$dir"
	mkdir -p "$dir"
	deb_unpack "$dir/root" "$image=$version"
	depmod -b "$dir/root" "$release"
	cp "$dir/root/boot/vmlinuz-$release" "$dir/vmlinuz"
	ln -sfn "/lib/modules/$release/build" "$dir/headers"
	[[ -e $dir/headers ]] || ln -sfn "/usr/src/linux-headers-$release" "$dir/headers"
	echo "$release" >"$dir/release"
	echo "$version" >"$dir/ready"
}

case $kind in
6.1) stock_meta=amd64 ;;
6.12) stock_meta=6.12-amd64 ;;
debug | kcsan) ;;
*) die "usage: kernel.sh 6.1|6.12|debug|kcsan" ;;
esac
lock "kernel-$kind"
if [[ ! ${stock_meta:-} ]]; then
	"$TOP/tests/vm/debug-kernel.sh" "$dir" "$kind"
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
