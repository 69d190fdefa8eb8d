#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The fault sweep, in the guest and as root. Prints TAP. `make -C tests/faults` must have built it.
# usage: tests/vm/run.sh debug --no-load -- tests/faults/run.sh
# Environment:
#   FLEXMEM_LONG      if set, the sweep also runs with other settings of the driver
#   FLEXMEM_SEQUENCE  runs only the sequence of this name
#   FLEXMEM_KO        directory of the modules, which are loaded here
set -uo pipefail
export PATH=$PATH:/usr/sbin:/sbin
top=$(cd -- "$(dirname -- "$0")/../.." && pwd -P)

bail() { echo "Bail out! $*"; exit 1; }
((EUID == 0)) || bail "not root"
[[ -e ${FLEXMEM_KO:-}/flexmem.ko ]] || bail "FLEXMEM_KO='${FLEXMEM_KO:-}' has no flexmem.ko"
[[ ! -e /sys/module/flexmem ]] || bail "flexmem is loaded"
mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug || bail "no debugfs"
[[ -e /proc/self/fail-nth ]] || bail "this kernel injects no faults"

# A warning ends the machine, because no injected fault explains it.
echo 1 >/proc/sys/kernel/panic_on_warn
# Switches rseq off. With rseq the kernel writes the processor's number into memory of a thread that was preempted, and
# kills the process if the write fails. After a fork the write needs a copy of the page, which an injected fault may
# deny.
export GLIBC_TUNABLES=glibc.pthread.rseq=0
"$top/build/faults/sweep"
