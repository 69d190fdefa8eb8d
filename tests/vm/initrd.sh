#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Packs DIR/initrd.gz: a static busybox, tests/vm/init and, in the order they must be loaded, the modules named.
# usage: tests/vm/initrd.sh DIR [MODULE...]           (DIR as kernel.sh makes it)
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

dir=$1
shift
release=$(<"$dir/release")

# The package is only unpacked, because installing it would remove the busybox that the host's initramfs may need.
(
	lock busybox
	# Unpacks the package into busybox.new first, so that a full disk does not leave an incomplete busybox.
	[[ -x $BUILD/busybox/bin/busybox ]] || {
		rm -rf "$BUILD/busybox" "$BUILD/busybox.new"
		deb_unpack "$BUILD/busybox.new" busybox-static
		mv "$BUILD/busybox.new" "$BUILD/busybox"
	}
)

tree=$(mktemp -d "$dir/initrd.XXXXXX")
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{bin,modules,proc,sys,dev,share,lower,upper,root}
cp "$BUILD/busybox/bin/busybox" "$tree/bin/"
cp "$TOP/tests/vm/init" "$tree/init"
chmod 755 "$tree/init"

# tests/vm/init loads the modules in the order of the numbers in their names. Modules in .xz are unpacked here.
number=100
declare -A packed=()
for module; do
	depends=$(modprobe -d "$dir/root" -S "$release" --show-depends "$module")
	while read -r _ file _; do
		[[ -z ${packed[$file]:-} ]] || continue
		packed[$file]=1
		name=$tree/modules/$((number++))-$(basename -- "$file")
		case $file in
		*.xz) xz -dc -- "$file" >"${name%.xz}" ;;
		*) cp -- "$file" "$name" ;;
		esac
	done < <(grep ^insmod <<<"$depends")
done

(cd "$tree" && find . | cpio -o -H newc --quiet -R 0:0) | gzip -1 >"$dir/initrd.new"
mv "$dir/initrd.new" "$dir/initrd.gz"
