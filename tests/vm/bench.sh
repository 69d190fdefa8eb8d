#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs in the guest. Measures what ALLOC and FREE cost on a VF of 8 slots with each combination of block strategy and
# region order, on a PF of 64 slots, and in a memory cgroup below the root, where the slab charges each object.
# `make -C tests/bench pairs` must have built the program.
# usage: tests/vm/run.sh 6.12 --cpus 1 --no-load -- tests/vm/bench.sh
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"
cgroups=/sys/fs/cgroup

# measure NAME MODE PARAMETER...: measures on a PF or a VF (MODE: pf or vf), and prints a line
measure() {
	local name=$1 mode=$2 node
	shift 2
	insmod "$FLEXMEM_KO/flexmem.ko" "$@"
	insmod "$FLEXMEM_KO/flexmem_sim.ko" num_vfs=1 slots=8
	node=$(dirname "$(grep -lx "$mode" /sys/class/flexmem/*/mode)")
	printf '%-24s ' "$name"
	"${FLEXMEM_PAIRS:-$BUILD/tests/bench/pairs}" "/dev/${node##*/}"
	rmmod flexmem_sim flexmem
}

for order in fill_first load_balance; do
	for fit in first_fit best_fit; do
		measure "$order $fit" vf order=$order strategy=$fit
	done
done
measure '64 slots' pf order=fill_first max_regions=64
echo +memory >$cgroups/cgroup.subtree_control
mkdir $cgroups/bench
echo $$ >$cgroups/bench/cgroup.procs
measure 'child cgroup' vf order=fill_first
