#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Writes C that exports what the unit tests refer to, for flexmem.ko. Symbols that kmod exports itself are left out.
# usage: exports.sh NM KMOD OBJECT...
set -eu

nm=$1
kmod=$2
shift 2

exported=$(sed -n 's/^EXPORT_SYMBOL_GPL(\(.*\));$/\1/p' "$kmod"/*.c "$kmod"/*/*.c)
echo '#include <linux/export.h>'
"$nm" -u "$@" | sed -n 's/^ *U \(flexmem_[a-z0-9_]*\)$/\1/p' | sort -u | grep -vxF "$exported" |
	sed 's/.*/\nextern char &[];\nEXPORT_SYMBOL_GPL(\0);/'
