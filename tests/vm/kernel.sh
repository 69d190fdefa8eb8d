#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Makes build/kernels/KIND ready to boot and to build modules against:
#   vmlinuz  release  initrd.gz
#   headers  link to the KDIR of external modules
#   root/    what the packages brought (lib/modules, usr/src), stock kernels only. For 7, the newest kernel that Debian's
#            trixie-backports has, also the programs of Debian 13 that kbuild.sh runs there.
# usage: tests/vm/kernel.sh 6.1|6.12|7|debug|kcsan
#        tests/vm/kernel.sh --known KIND        only whether it is one of these
#        tests/vm/kernel.sh --renew 7           also if there is one, but the archive has a newer series. The image of the
#                                               series that passed last (lib.sh: passed_7) stays as build/kernels/7-passed.
# Stock kernels and their headers come as Debian packages that are unpacked and never installed. Everything is made
# once. Exit status: 77: kernel 7 is not there and cannot be fetched; the reason is the last line on standard error.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

renew=
case ${1:-} in
--known)
	known_kernel "${2:-}"
	exit ;;
--renew)
	renew=1
	shift ;;
esac
kind=${1:-}
known_kernel "$kind"
dir=$BUILD/kernels/$kind

# offered: reads names of packages, and prints the candidate of each as "PRIORITY PACKAGE VERSION". apt also knows names
# that are no longer in the archive. A version that is only installed has a low priority.
offered() {
	local name
	while read -r name; do
		apt-cache policy "$name" 2>/dev/null | awk -v name="$name" '
			$1 == "Candidate:" { version = $2 }
			$1 == "***" { $1 = "" ; $0 = $0 }
			NF == 2 && $1 == version { print $2, name, version; exit }'
	done
}
# Finds the newest image of the series that apt prefers, and its headers. The image and the headers must be of the
# same build, because a module that was built with the headers of another build does not load. The programs that build
# modules serve a whole series: while the archive changes to a new build it has only the new ones. Other flavours (cloud,
# rt) do not match.
newest() {
	local package
	read -r _ image version < <(apt-cache pkgnames "linux-image-$kind." |
		grep -E "^linux-image-${kind/./\\.}\.[0-9]+([-+](deb|bpo)?[0-9]*)?-amd64\$" | offered | sort -k1,1nr -k2,2Vr) || true
	[[ $image ]] || return 0
	release=${image#linux-image-}
	packages=("$image=$version")
	for package in "linux-headers-$release" $(apt-cache depends "linux-headers-$release" 2>/dev/null |
		awk '$1 == "Depends:" && $2 ~ /^linux-(headers|kbuild)-/ { print $2 }'); do
		if [[ $package == linux-kbuild-* ]] && ! apt-cache madison "$package" | grep -qF " $version "; then
			packages+=("$package")
		else
			packages+=("$package=$version")
		fi
	done
}
# The packages of headers refer to each other by absolute paths, as if they were installed. This makes the paths
# relative, so that the directory can be moved and copied.
unpack_headers() {
	local headers=root/usr/src/linux-headers-$release
	# shellcheck disable=SC2016	# make expands it
	sed -i -E 's|^include /usr/src/(linux-headers-[^/]+)/Makefile$|include $(dir $(lastword $(MAKEFILE_LIST)))../\1/Makefile|' \
		"$dir/$headers/Makefile"
	ln -sfn "$headers" "$dir/headers"
}
# An unpacked kernel stays usable as long as its headers exist, whatever the archive has now.
usable() {
	[[ -s $dir/ready && -e $dir/headers/Makefile ]] || return 1
	[[ $(readlink "$dir/headers") != /* ]] ||
		[[ $(dpkg-query -W -f '${Version}' "linux-headers-$(<"$dir/release")" 2>/dev/null) == "$(<"$dir/ready")" ]]
}
stock() {
	local image release version before packages
	! usable || return 0
	newest
	if [[ ! $image ]]; then
		"$TOP/tests/setup.sh" --refresh
		newest
		[[ $image ]] || die "the archive has no kernel of the series $kind (linux-image-$kind.*-amd64): is this Debian 12?"
	fi
	rm -rf "$dir"
	mkdir -p "$dir"
	say "Fetching $image $version, once: a minute"
	if ! deb_unpack "$dir/root" "${packages[@]}"; then
		# The archive has a newer kernel than the old package lists named. deb_unpack has fetched the lists
		# again, so this starts over with the new ones.
		before=${packages[*]}
		newest
		[[ $image && ${packages[*]} != "$before" ]] || die "cannot fetch ${before//=/ }"
		say "Fetching $image $version instead"
		deb_unpack "$dir/root" "${packages[@]}" || die "cannot fetch $image $version"
	fi
	depmod -b "$dir/root" "$release"
	cp "$dir/root/boot/vmlinuz-$release" "$dir/vmlinuz"
	unpack_headers
	echo "$release" >"$dir/release"
	echo "$version" >"$dir/ready"
}

# make_backports DIR
make_backports() {
	local release
	rm -f "$1/ready"
	# The caller may ask for the status, so errexit has no effect here.
	"$TOP/tests/vm/backports-kernel.sh" "$1" || return
	release=$(<"$1/release") &&
		cp "$1/root/usr/lib/modules/$release/vmlinuz" "$1/vmlinuz" &&
		ln -sfn "root/usr/src/linux-headers-$release" "$1/headers" &&
		echo "$release" >"$1/ready"
}
# Whether somebody else keeps the folder: it is a link or a mount.
kept_elsewhere() { [[ -L $dir ]] || mountpoint -q "$dir"; }
# lacks_sparse RELEASE: whether the kernel came without sparse, a day has passed, and the archive has sparse and the same series
lacks_sparse() {
	[[ $(series_of "$1") == "$(kernel_series "$kind")" && $(find "$dir/root/no-sparse" -mtime +0 2>/dev/null) ]] &&
		"$TOP/tests/vm/backports-kernel.sh" --offers-sparse 2>/dev/null
}
# Makes kernel 7 if there is none. With --renew an older series is replaced if the newer one can be fetched, and one
# without sparse, which the archive may have by now, is fetched again after a day. A folder that somebody else keeps stays.
backports() {
	local offered series
	can_be_root || { say 'only root, who may mount, can enter the Debian 13 that builds modules for kernel 7' && exit 77; }
	if ! usable; then
		! kept_elsewhere || { say "nothing usable is where $dir leads" && exit 77; }
		make_backports "$dir"
		return
	fi
	[[ $renew ]] && ! kept_elsewhere || return 0
	offered=$("$TOP/tests/vm/backports-kernel.sh" --offered 2>/dev/null) || return 0
	series=$(kernel_series "$kind")
	is_newer "$(series_of "$offered")" "$series" || lacks_sparse "$offered" || return 0
	make_backports "$dir-newer" || { say "Linux $series stays, because $offered could not be fetched" && return; }
	need_root 'rm'
	if [[ $series == "$passed_7" && $(series_of "$offered") != "$series" ]]; then
		"${as_root[@]}" rm -rf --one-file-system "$dir-passed"
		mv "$dir" "$dir-passed"
	else
		"${as_root[@]}" rm -rf --one-file-system "$dir"
	fi
	mv "$dir-newer" "$dir"
}

lock "kernel-$kind"
# The modules that the root file system needs.
modules=(virtio_pci 9pnet_virtio 9p overlay)
case $kind in
6.*) stock ;;
7) backports ;;
*)
	"$TOP/tests/vm/debug-kernel.sh" "$dir" "$kind"
	modules=()
	;;
esac
for source in "$dir/release" "$TOP/tests/vm/init" "$TOP/tests/vm/initrd.sh"; do
	[[ $dir/initrd.gz -nt $source ]] || {
		"$TOP/tests/vm/initrd.sh" "$dir" "${modules[@]}"
		break
	}
done
