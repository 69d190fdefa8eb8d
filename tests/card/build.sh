#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Builds the card's process and the PCIe device below build/tests/card, and the driver npu.ko below build/conformance/KIND.
# usage: tests/card/build.sh 6.1|6.12|7          before: tests/vm/modules.sh KIND
# Exit status: 0, or 77 with the reason if QEMU's headers cannot be had here
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

kind=${1:?usage: build.sh 6.1|6.12|7}
known_kernel "$kind"
headers=$("$TOP/tests/card/qemu-headers.sh")
lock card
quietly "$BUILD/log/card" make -C "$TOP/tests/card" "O=$BUILD/tests/card" "QEMU=$headers" all
"$TOP/tests/conformance/build.sh" "$kind"
