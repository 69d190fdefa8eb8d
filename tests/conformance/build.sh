#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Builds the example drivers, npu.ko and ram.ko, and the card with defects, defects.ko, below build/conformance/KIND.
# usage: tests/conformance/build.sh 6.1|6.12|7|debug          before: tests/vm/modules.sh KIND
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

kind=${1:?usage: build.sh 6.1|6.12|7|debug}
known_kernel "$kind"
dir=$BUILD/conformance/$kind
lock "conformance-$kind"
mkdir -p "$dir"
rsync -a "$TOP/Documentation/examples/"{npu,ram}.c "$TOP/tests/conformance/"{Kbuild,defects.c} "$dir/"
# Where the compiler sees this checkout (enter.sh).
seen=$TOP
[[ $kind != 7 ]] || seen=/srv/flexmem
"$TOP/tests/vm/kbuild.sh" "$kind" "$dir" W=1 'KCFLAGS=-Werror -g0' CONFIG_DEBUG_INFO_BTF_MODULES= \
	"FLEXMEM=$seen" "KBUILD_EXTRA_SYMBOLS=$seen/build/ko/$kind/Module.symvers"
