#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The fuzzer, in the guest and as root. Prints TAP. `make -C tests/fuzz` must have built it.
# usage: tests/vm/run.sh debug --cpus 4 --no-load -- tests/fuzz/run.sh
# Environment:
#   FLEXMEM_BATCHES  number of batches (default 20)
#   FLEXMEM_SEED     seed of the random numbers; the fuzzer prints it
#   FLEXMEM_BATCH    runs only this batch of the seed, to repeat a finding. If the machine has died, the kernel's log
#                    has the number of the last batch.
#   FLEXMEM_KO       directory of the modules, which are loaded here
set -uo pipefail
export PATH=$PATH:/usr/sbin:/sbin
top=$(cd -- "$(dirname -- "$0")/../.." && pwd -P)

bail() { echo "Bail out! $*"; exit 1; }
((EUID == 0)) || bail "not root"
[[ -e ${FLEXMEM_KO:-}/flexmem.ko ]] || bail "FLEXMEM_KO='${FLEXMEM_KO:-}' has no flexmem.ko"
[[ ! -e /sys/module/flexmem ]] || bail "flexmem is loaded"
mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug || bail "no debugfs"
"$top/build/fuzz/fuzz"
