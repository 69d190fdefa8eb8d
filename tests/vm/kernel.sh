#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Makes build/kernels/KIND ready to boot and to build modules against:
#   vmlinuz  release  initrd.gz
#   headers  link to the KDIR of external modules
#   root/    what the packages brought (lib/modules, usr/src), stock kernels only
# usage: tests/vm/kernel.sh 6.1|6.12|debug|kcsan
#        tests/vm/kernel.sh --known KIND        only whether it is one of these
# Stock kernels and their headers come as Debian packages that are unpacked and never installed. Everything is made once.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

if [[ ${1:-} == --known ]]; then
	known_kernel "${2:-}"
	exit
fi
kind=${1:-}
known_kernel "$kind"
dir=$BUILD/kernels/$kind

# The image that the series' meta package names today, and its headers, which must be of the same build: a module built
# against another one does not load.
newest() {
	local package
	image=$(apt-cache depends "linux-image-$1" 2>/dev/null | awk '$1 == "Depends:" { print $2; exit }')
	release=${image#linux-image-}
	[[ ! $image || $release == "$kind".* ]] ||
		die "apt's linux-image-$1 is $release, not of the series $kind: is this Debian 12?"
	version=$(apt-cache policy "$image" 2>/dev/null | awk '$1 == "Candidate:" { print $2 }')
	packages=("$image=$version")
	for package in "linux-headers-$release" $(apt-cache depends "linux-headers-$release" 2>/dev/null |
		awk '$1 == "Depends:" && $2 ~ /^linux-(headers|kbuild)-/ { print $2 }'); do
		packages+=("$package=$version")
	done
}
# Headers name each other by absolute paths, as if they were installed: here by relative ones, so that this directory can
# be moved and lent.
unpack_headers() {
	local headers=root/usr/src/linux-headers-$release
	# shellcheck disable=SC2016	# make expands it
	sed -i -E 's|^include /usr/src/(linux-headers-[^/]+)/Makefile$|include $(dir $(lastword $(MAKEFILE_LIST)))../\1/Makefile|' \
		"$dir/$headers/Makefile"
	ln -sfn "$headers" "$dir/headers"
}
# Usable as long as its headers are there, whatever the archive has by now. They were installed once.
usable() {
	[[ -s $dir/ready && -e $dir/headers/Makefile ]] || return 1
	[[ $(readlink "$dir/headers") != /* ]] ||
		[[ $(dpkg-query -W -f '${Version}' "linux-headers-$(<"$dir/release")" 2>/dev/null) == "$(<"$dir/ready")" ]]
}
stock() {
	local meta=$1 image release version before packages
	! usable || return 0
	newest "$meta"
	if [[ ! $image ]]; then
		"$TOP/tests/setup.sh" --refresh
		newest "$meta"
		[[ $image ]] || die "apt knows no linux-image-$meta: is this Debian 12?"
	fi
	rm -rf "$dir"
	mkdir -p "$dir"
	say "Fetching $image $version"
	if ! deb_unpack "$dir/root" "${packages[@]}"; then
		# The archive has moved on since the package lists were fetched, which they are again by now.
		before=$image=$version
		newest "$meta"
		[[ $image=$version != "$before" ]] || die "cannot fetch $image $version"
		say "Fetching $image $version instead"
		deb_unpack "$dir/root" "${packages[@]}" || die "cannot fetch $image $version"
	fi
	depmod -b "$dir/root" "$release"
	cp "$dir/root/boot/vmlinuz-$release" "$dir/vmlinuz"
	unpack_headers
	echo "$release" >"$dir/release"
	echo "$version" >"$dir/ready"
}

case $kind in
6.1) stock_meta=amd64 ;;
6.12) stock_meta=6.12-amd64 ;;
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
