#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs in the guest (debug kernel, flexmem.ko loaded): loads the KUnit module, which runs its suites as it loads, and
# prints what the kernel said, KTAP among it.
# usage: tests/vm/run.sh debug -- tests/vm/kunit.sh [module parameter...]
set -euo pipefail

dmesg --clear
status=0
insmod "$FLEXMEM_KO/flexmem_kunit.ko" "$@" || status=$?
dmesg
exit "$status"
