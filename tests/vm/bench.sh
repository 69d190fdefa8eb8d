#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs in the guest: what ALLOC and FREE cost on a VF of 8 slots with each pair of strategies.
# usage: tests/vm/run.sh 6.12 --cpus 1 --no-load -- tests/vm/bench.sh        (built before: make -C tests/bench pairs)
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

for order in fill_first load_balance; do
	for fit in first_fit best_fit; do
		insmod "$FLEXMEM_KO/flexmem.ko" order=$order strategy=$fit
		insmod "$FLEXMEM_KO/flexmem_sim.ko" num_vfs=1 slots=8
		vf=$(dirname "$(grep -lx vf /sys/class/flexmem/*/mode)")
		printf '%-12s %-9s  ' $order $fit
		"${FLEXMEM_PAIRS:-$BUILD/tests/bench/pairs}" "/dev/${vf##*/}"
		rmmod flexmem_sim flexmem
	done
done
