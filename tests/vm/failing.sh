#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs in the guest. Measures what a tenant that fails on purpose in a loop costs a neighbour that allocates and frees,
# through a cache and without one: at most 1 percent of the neighbour's instructions. Prints TAP, with the figures.
# `make -C tests/bench failing` must have built the program.
# usage: FLEXMEM_ACCEL=icount tests/vm/run.sh KIND --cpus 1 --no-load -- tests/vm/failing.sh
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

insmod "$FLEXMEM_KO/flexmem.ko" fallback_sizes=2G
insmod "$FLEXMEM_KO/flexmem_sim.ko" memory=4G num_vfs=1 vf_capacity=2G
export FLEX_DEVICE=VF
said=$(mktemp)
costs_little() {
	local status=0
	"$BUILD/tests/bench/failing" "$1" >"$said" || status=$?
	cat "$said"
	return "$status"
}
for through in cache driver; do
	tap "a tenant that fails costs a neighbour at most 1 %: $through" costs_little "$through"
	sed 's/^/# /' "$said"
done
rm "$said"
tap_end
rmmod flexmem_sim flexmem
