#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Builds our modules for a kernel below build/ko/NAME, from a copy of their sources: kbuild writes beside what it
# compiles, and several kernels must not meet there. A warning is an error (W=1), as everywhere in this project.
# usage: tests/vm/modules.sh 6.1|6.12|debug
#        tests/vm/modules.sh NAME KDIR [make variable...]
set -euo pipefail
# shellcheck disable=SC2034	# for lib.sh
keep_tools=${2:-}
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

name=${1:?usage: modules.sh NAME [KDIR]}
shift
if (($#)); then
	kdir=$1
	shift
else
	"$TOP/tests/vm/kernel.sh" "$name"
	kdir=$BUILD/kernels/$name/headers
fi
if [[ ! -e $kdir/Makefile ]]; then
	release=${kdir#/lib/modules/}
	# Debian's package has the release in its name; of a directory that somebody chose that is not known.
	[[ $kdir != /lib/modules/*/build ]] || die "no headers of kernel ${release%/build}: install linux-headers-${release%/build}"
	die "no kernel headers in KDIR=$kdir"
fi
kdir=$(cd -- "$kdir" && pwd -P)
dir=$BUILD/ko/$name

sources=(Kbuild kmod uapi)
[[ ! -d $TOP/tests/kunit ]] || sources+=(tests/kunit)

lock "ko-$name"
mkdir -p "$dir"
for source in "${sources[@]}"; do
	[[ -e $TOP/$source ]] || die "no $source in $TOP"
done
# Sources that vanished go, what kbuild made stays.
(cd "$TOP" && rsync -a --relative --delete --exclude='*.o' --exclude='*.ko' --exclude='*.mod' --exclude='*.mod.c' \
	--exclude='.*.cmd' --exclude='*.order' --exclude='*.symvers' "${sources[@]}" "$dir/")

# Nobody takes a debugger to the modules that the tests load, a thousand times in a run: nine tenths of their files would be for
# that.
flags=(KCFLAGS=-Werror)
[[ $name == host-* ]] || flags=('KCFLAGS=-Werror -g0' CONFIG_DEBUG_INFO_BTF_MODULES=)
log=$BUILD/log/ko-$name
quietly "$log" make -C "$kdir" "M=$dir" "-j$(nproc)" W=1 "${flags[@]}" "$@" modules
