#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Installs the missing Debian packages that groups of our commands need.
# usage: tests/setup.sh [build] [vm] [debug] [docs] [check] [card] [python] [torch] [bench] [fuzz] [deb] [lintian] [pictures] [btf] [host]   (default: the first five)
#        tests/setup.sh --refresh               the package lists
# It prints the names of the packages before it installs them, and prints nothing if there is nothing to do.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/lib.sh"

packages_of() {
	case $1 in
	# building library, command, and modules for the kernels that are downloaded
	build) echo gcc g++ gcc-multilib libc6-dev make perl python3 pkg-config zlib1g-dev libjansson-dev libncurses-dev rsync kmod libelf1 ;;
	# modules for the running kernel
	host) echo "linux-headers-$(uname -r)" pahole ;;
	# the Debian packages, and the check of them, which brings 100 packages
	deb) echo build-essential debhelper dh-dkms dh-python dpkg-dev python3-cffi python3-dev libpython3-dev ;;
	lintian) echo lintian ;;
	# a browser that shows the pages of `flexmem map`
	pictures) echo chromium chromium-driver python3-selenium ;;
	# BTF for modules that are built as on a host
	btf) echo pahole ;;
	# fetching and booting Debian's kernels
	vm) echo qemu-system-x86 cpio gzip xz-utils kmod util-linux ;;
	# building the debug kernel
	debug) echo linux-source-6.12 gcc libc6-dev make bc bison flex perl python3 libelf-dev libssl-dev \
		xz-utils rsync kmod ;;
	# other tools of `make check`; linux-source has checkpatch and kernel-doc
	check) echo linux-source-6.12 xz-utils perl python3 libcmocka-dev git sparse shellcheck codespell cppcheck jq \
		mandoc python3-sphinx python3-docutils python3-cffi python3-numpy libpython3-dev openssl systemd udev nodejs \
		python3-jsonschema tmux zsh ;;
	# the pages; kernel-doc is in linux-source
	docs) echo linux-source-6.12 xz-utils perl python3 python3-sphinx python3-docutils ;;
	# the headers of QEMU, for a PCIe device of our own
	card) echo qemu-system-x86 gcc dpkg-dev xz-utils ninja-build meson pkg-config libglib2.0-dev libpixman-1-dev libfdt-dev python3-minimal ;;
	# the Python package, and its examples
	python) echo python3-cffi python3-numpy libpython3-dev ;;
	# a Debian 13 with PyTorch
	torch) echo mmdebstrap mount ;;
	# counting instructions if the processor cannot; an allocator to compare with
	bench) echo valgrind libmimalloc-dev ;;
	# libFuzzer, for long runs of the fuzzers
	fuzz) echo clang libclang-rt-14-dev ;;
	*) die "unknown group '$1' (build, vm, debug, docs, check, card, python, torch, bench, fuzz, deb, lintian, pictures, btf, host)" ;;
	esac
}

refresh() {
	local log=$BUILD/log/apt-update
	need_root 'apt-get update'
	apt_get "$log" update || apt_failed "$log"
}
# The package lists may be absent or older than the archive. They are refreshed only if the first installation fails. An
# installation that would remove packages is refused.
install() {
	local log=$BUILD/log/apt-install
	local how=(--no-install-recommends --no-remove install)
	need_root "apt-get install $*"
	say "Installing Debian packages: $*"
	! apt_get "$log.1" "${how[@]}" "$@" || return 0
	refresh || say 'the package lists stay as they are'
	apt_get "$log" "${how[@]}" "$@" || {
		apt_failed "$log" "$log.1" || true
		! grep -q "Unable to locate package linux-headers-" "$log" ||
			say "For a kernel that is not Debian's its own headers are needed. 'make demo' and 'make vm' bring their kernels along."
		return 1
	}
}

if [[ ${1:-} == --refresh ]]; then
	refresh
	exit
fi
[[ ${1:-} != -* ]] || die "usage: setup.sh [GROUP...] or setup.sh --refresh"
(($#)) || set -- build vm debug docs check
wanted=$(for group; do packages_of "$group"; done | tr ' ' '\n' | sort -u)

declare -A installed=()
# A package counts if another one provides it, as libelf1t64 provides libelf1 on Debian 13.
while read -r name; do
	[[ ! $name ]] || installed[$name]=1
done < <(dpkg-query -W -f '${Status};${Package} ${Provides}\n' |
	awk -F ';' '/^[^;]*ok installed;/ { gsub(/\([^)]*\)|,/, "", $2); gsub(/ +/, "\n", $2); print $2 }')

# The headers of the running kernel are installed last and separately, because the archive may lack them, and the other
# packages are needed anyway.
missing=() headers=()
for package in $wanted; do
	[[ ! ${installed[$package]:-} ]] || continue
	if [[ $package == linux-headers-* ]]; then headers+=("$package"); else missing+=("$package"); fi
done
((!${#missing[@]})) || install "${missing[@]}"
((!${#headers[@]})) || install "${headers[@]}"
