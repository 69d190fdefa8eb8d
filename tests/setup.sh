#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Installs the Debian packages that a group of our commands needs and that are missing.
# usage: tests/setup.sh [build] [vm] [debug] [check]        (default: all)
#        tests/setup.sh --latest PACKAGE...     those, or newer versions of them
#        tests/setup.sh --refresh               the package lists
# It names them before it installs them, and says nothing when there is nothing to do.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/lib.sh"

packages_of() {
	case $1 in
	# library, command, modules for both kernel series
	build) echo gcc g++ gcc-multilib libc6-dev make pkg-config zlib1g-dev libjansson-dev rsync kmod \
		linux-headers-amd64 linux-headers-6.12-amd64 ;;
	# fetch and boot a stock kernel
	vm) echo qemu-system-x86 cpio gzip xz-utils kmod util-linux ;;
	# build the debug kernel
	debug) echo linux-source-6.12 gcc libc6-dev make bc bison flex perl python3 libelf-dev libssl-dev \
		xz-utils rsync kmod ;;
	# what `make check` runs besides; linux-source has checkpatch and kernel-doc
	check) echo linux-source-6.12 xz-utils perl python3 libcmocka-dev git sparse shellcheck codespell cppcheck jq \
		mandoc python3-sphinx python3-docutils ;;
	*) die "unknown group '$1' (build, vm, debug, check)" ;;
	esac
}

as_root=()
apt() {
	if ((EUID)); then
		command -v sudo >/dev/null || die "as root, first: apt-get $*"
		as_root=(sudo)
	fi
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=600 "$@"
}
# The package lists may be absent or older than the archive: they are refreshed only when it fails without.
install() {
	say "Installing Debian packages: $*"
	apt --no-install-recommends install "$@" >/dev/null 2>&1 || {
		quietly "$BUILD/log/apt-update" apt update
		quietly "$BUILD/log/apt-install" apt --no-install-recommends install "$@"
	}
}

case ${1:-} in
--refresh)
	quietly "$BUILD/log/apt-update" apt update
	exit
	;;
--latest)
	shift
	install "$@"
	exit
	;;
'') set -- build vm debug check ;;
esac
wanted=$(for group; do packages_of "$group"; done | tr ' ' '\n' | sort -u)

declare -A installed=()
while read -r name status; do
	[[ $status != *"ok installed" ]] || installed[$name]=1
done < <(dpkg-query -W -f '${Package} ${Status}\n')

missing=()
for package in $wanted; do
	[[ ${installed[$package]:-} ]] || missing+=("$package")
done
((!${#missing[@]})) || install "${missing[@]}"
