#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Builds the modules in DIR, which has their sources and a Kbuild file, for a kernel that kernel.sh makes or for the
# headers in KDIR. Modules get BTF if the kernel has it and pahole is installed. If kbuild must make BTF and finds no
# pahole it fails, so without pahole the modules are built without BTF, which only tools that inspect types need.
# usage: tests/vm/kbuild.sh 6.1|6.12|7|debug|kcsan|KDIR DIR [make variable...]
# With lenient=1 in the environment no warning is an error, so that a failure is what the compiler itself refuses.
set -euo pipefail
# Modules for KDIR are built with the compiler and tools that the environment selects.
# shellcheck disable=SC2034	# for lib.sh
[[ ${1:-} =~ ^(6\.1|6\.12|7|debug|kcsan)$ ]] || keep_tools=1
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

(($# >= 2)) || die 'usage: kbuild.sh 6.1|6.12|7|debug|kcsan|KDIR DIR [make variable...]'
kdir=$1
dir=$(cd -- "$2" && pwd -P)
shift 2
[[ ! ${lenient:-} ]] || set -- "${@/-Werror/-Wno-error}"
if (known_kernel "$kdir") 2>/dev/null; then
	"$TOP/tests/vm/kernel.sh" "$kdir"
	kdir=$BUILD/kernels/$kdir/headers
fi
if [[ ! -e $kdir/Makefile ]]; then
	release=${kdir#/lib/modules/}
	# For /lib/modules/RELEASE/build the message names the Debian package of RELEASE.
	[[ $kdir != /lib/modules/*/build ]] || die "no headers of kernel ${release%/build}: install linux-headers-${release%/build}"
	die "no kernel headers in KDIR=$kdir"
fi
kdir=$(cd -- "$kdir" && pwd -P)
btf=()
command -v pahole >/dev/null || btf=(CONFIG_DEBUG_INFO_BTF_MODULES=)
# The tools of kernel 7, and the programs in its headers, run only in its own Debian root.
if root=$(cd -- "$BUILD/kernels/7/root" 2>/dev/null && pwd -P) && [[ $kdir == "$root"/* ]]; then
	quietly "$BUILD/log/ko-${dir##*/}" "$TOP/tests/enter.sh" "$root" make -C "${kdir#"$root"}" \
		"M=/srv/flexmem/${dir#"$TOP/"}" "-j$(nproc)" CONFIG_DEBUG_INFO_BTF_MODULES= "$@" modules
	exit
fi
quietly "$BUILD/log/ko-${dir##*/}" make -C "$kdir" "M=$dir" "-j$(nproc)" "${btf[@]}" "$@" modules
