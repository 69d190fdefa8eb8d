#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Builds our modules for a kernel below build/ko/NAME, from a copy of their sources: kbuild writes its output next to
# the sources, and the output of several kernels must not mix. A warning is an error (W=1), as everywhere in this
# project.
# usage: tests/vm/modules.sh 6.1|6.12|7|debug
#        tests/vm/modules.sh NAME KDIR [make variable...]
set -euo pipefail
# shellcheck disable=SC2034	# for lib.sh
keep_tools=${2:-}
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

name=${1:?usage: modules.sh NAME [KDIR]}
shift
kdir=${1:-$name}
if [[ ${1-} ]]; then
	# KDIR is a directory even if its name is also a kernel kind. Messages show the path with its symlinks.
	kdir=$(realpath -ms -- "$1")
else
	known_kernel "$name"
fi
shift $(($# > 0))
dir=$BUILD/ko/$name

sources=(Kbuild kmod uapi)
[[ ! -d $TOP/tests/kunit ]] || sources+=(tests/kunit)

lock "ko-$name"
mkdir -p "$dir"
for source in "${sources[@]}"; do
	[[ -e $TOP/$source ]] || die "no $source in $TOP"
done
# Removes sources that no longer exist, and keeps what kbuild has made.
(cd "$TOP" && rsync -a --relative --delete --exclude='*.o' --exclude='*.ko' --exclude='*.mod' --exclude='*.mod.c' \
	--exclude='.*.cmd' --exclude='*.order' --exclude='*.symvers' "${sources[@]}" "$dir/")

# Builds without debug data. The tests load the modules a thousand times, and debug data would be nine tenths of each
# file. With W=1 kbuild runs kernel-doc on each file, for each kernel; cmd_checkdoc= prevents that, because static.sh
# runs it once.
flags=(W=1 KCFLAGS=-Werror)
[[ $name == host-* ]] || flags=(W=1 'KCFLAGS=-Werror -g0' CONFIG_DEBUG_INFO_BTF_MODULES= cmd_checkdoc=)
"$TOP/tests/vm/kbuild.sh" "$kdir" "$dir" "${flags[@]}" "$@"
