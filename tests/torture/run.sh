#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The torture, in the guest and as root: many tenants, hostile to each other and to the driver, on hardware that fails.
# Prints TAP. `make -C tests/torture` must have built it.
# usage: tests/vm/run.sh debug|kcsan --cpus 4 --no-load -- tests/torture/run.sh
# Environment:
#   FLEXMEM_OPS      number of calls of the driver (default 200000)
#   FLEXMEM_KILLS    how often a process is killed (default: once for 1000 calls, at least twice)
#   FLEXMEM_UNBINDS  how often a VF is removed and bound again (default: once for 2500 calls, at least twice)
#   FLEXMEM_DEATHS   how often the firmware dies (default: as FLEXMEM_UNBINDS)
#   FLEXMEM_SEED     seed of the random numbers; the torture prints it
#   FLEXMEM_KO       directory of the modules, which are loaded here
set -uo pipefail
export PATH=$PATH:/usr/sbin:/sbin
top=$(cd -- "$(dirname -- "$0")/../.." && pwd -P)

bail() { echo "Bail out! $*"; exit 1; }
((EUID == 0)) || bail "not root"
[[ -e ${FLEXMEM_KO:-}/flexmem.ko ]] || bail "FLEXMEM_KO='${FLEXMEM_KO:-}' has no flexmem.ko"
[[ ! -e /sys/module/flexmem ]] || bail "flexmem is loaded"
mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug || bail "no debugfs"

# Some 27 threads share a few emulated processors, so a task that is late is no failure. A task that is stuck for ten
# minutes is one.
echo 1 >/proc/sys/kernel/sysrq
if [[ ${FLEXMEM_KERNEL:-} == kcsan ]]; then
	echo 1000 >/sys/module/kcsan/parameters/udelay_task
	echo on >/sys/kernel/debug/kcsan || bail 'KCSAN cannot be switched on'
fi
"$top/build/torture/torture"
status=$?

# The race detector must have checked accesses, or the run proves nothing.
if [[ ${FLEXMEM_KERNEL:-} == kcsan ]]; then
	figures=$(</sys/kernel/debug/kcsan) || bail 'no figures of KCSAN'
	echo "# KCSAN: ${figures//$'\n'/, }"
	[[ $figures =~ setup_watchpoints:\ [1-9] ]] || bail 'KCSAN watched nothing'
fi
exit $status
