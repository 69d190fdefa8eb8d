#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Makes DIR/root: the newest kernel of trixie-backports, its modules and headers, and the programs of Debian 13 that
# kbuild needs. The packages are only unpacked, because that costs a third of installing them. Also sparse of Debian
# forky and scripts/checker-valid.sh of the kernel's sources, which the headers lack; if the archive does not offer
# them, the file DIR/root/no-sparse has the reason. Writes DIR/release.
# usage: tests/vm/backports-kernel.sh DIR        makes it
#        tests/vm/backports-kernel.sh --offered  prints the release that the archive offers
#        tests/vm/backports-kernel.sh --offers-sparse  succeeds if the archive has Debian forky
# Exit status: 77: the archive cannot be reached or has no such kernel; the reason is the last line on standard error.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

log=$BUILD/log/backports-kernel
unavailable() {
	say "$*"
	exit 77
}

# A step of mmdebstrap: its settings of apt are those of the new root. Adds sparse. No failure of it ends the making.
if [[ ${1:-} == --sparse ]]; then
	root=$2 release=$3 headers=$2/usr/src/linux-headers-${3%-*}-common
	export APT_CONFIG=$MMDEBSTRAP_APT_CONFIG
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	cd "$work"
	printf 'deb %s forky main\n' "$4" >"$root/etc/apt/sources.list.d/forky.list"
	series=$(grep -oE '^[0-9]+\.[0-9]+' <<<"$release")
	# A mirror of a suite that is not released may be older than its Release file allows.
	if ! apt-get -q -o Acquire::Check-Valid-Until=false update; then
		echo "the package mirror offers no lists of Debian forky: see $log" >"$root/no-sparse"
	elif ! apt-get -q download "sparse/forky" "linux-source-$series/trixie-backports"; then
		echo "the package mirror offers no sparse of forky, or no linux-source-$series" >"$root/no-sparse"
	else
		dpkg-deb --fsys-tarfile sparse_*.deb | tar -xC "$root" ./usr/bin/sparse ||
			echo 'the package sparse of forky has no usr/bin/sparse' >"$root/no-sparse"
		dpkg-deb --fsys-tarfile linux-source-*.deb | tar -xO --wildcards '*.tar.xz' | xz -dcq |
			tar -xO --occurrence=1 "linux-source-$series/scripts/checker-valid.sh" >"$headers/scripts/checker-valid.sh" || true
		chmod 755 "$headers/scripts/checker-valid.sh"
		[[ -s $headers/scripts/checker-valid.sh ]] ||
			echo "linux-source-$series has no scripts/checker-valid.sh" >"$root/no-sparse"
	fi
	rm "$root/etc/apt/sources.list.d/forky.list"
	exit
fi

mirror=$(package_mirror) || unavailable 'the sources of apt name no package mirror'
mkdir -p "$BUILD/log"
packages=$(mktemp)
trap 'rm -f "$packages" "$packages.text"' EXIT
# listed FILE: fetches a file of the package mirror's dists/ into $packages
listed() { /usr/lib/apt/apt-helper -o APT::Sandbox::User=root download-file "${mirror%/}/dists/$1" "$packages" >"$log" 2>&1; }
if [[ ${1:-} == --offers-sparse ]]; then
	listed forky/Release && grep -qx 'Codename: forky' "$packages"
	exit
fi
listed trixie-backports/main/binary-amd64/Packages.xz ||
	unavailable "the package mirror cannot be reached, or does not offer trixie-backports: see $log"
xz -dq <"$packages" >"$packages.text" ||
	unavailable "what the package mirror sends as the list of trixie-backports is none"
release=$(sed -nE 's/^Package: linux-headers-([0-9.]+\+deb13-amd64)$/\1/p' "$packages.text" | sort -V | tail -n 1)
is_newer "$release" 7 || unavailable 'trixie-backports has no kernel of a series 7 or newer'
if [[ ${1:?usage: backports-kernel.sh DIR} == --offered ]]; then
	echo "$release"
	exit
fi

dir=$1
need_root "$0"
"$TOP/tests/setup.sh" torch || unavailable 'what makes a Debian 13 could not be installed: tests/setup.sh torch'
mkdir -p "$dir"
"${as_root[@]}" rm -rf --one-file-system "$dir/root"
say "Fetching Linux $release of trixie-backports, with what builds modules for it, once: 400 MB, some minutes without output"
# What kbuild calls, and the headers do not depend on. base-files has the links of / to /usr.
programs=base-files,bash,binutils,coreutils,dash,diffutils,findutils,grep,libc-bin,make,mawk,sed
quietly "$log" "${as_root[@]}" mmdebstrap --mode=root --variant=extract --format=directory \
	'--aptopt=Acquire::Retries "3"' '--aptopt=Acquire::Check-Valid-Until "false"' \
	"--include=$programs,linux-headers-$release,linux-modules-$release,linux-binary-$release" \
	--extract-hook="'$TOP/tests/vm/backports-kernel.sh' --sparse \"\$1\" $release $mirror" trixie "$dir/root" \
	"deb $mirror trixie main" "deb $mirror trixie-backports main" ||
	unavailable "Linux $release could not be fetched: see $log"
"${as_root[@]}" ln -s mawk "$dir/root/usr/bin/awk"
"${as_root[@]}" depmod -b "$dir/root" "$release"
echo "$release" >"$dir/release"
