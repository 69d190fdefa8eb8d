#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs in the guest. Tests the library with the driver, on a VF and on the PF: device-virtual addresses on a card with a
# memory for each slice of HBM and for each TCM; then the cache on functions of 2 GiB in regions of 1 GiB, and the
# examples of the Python package; without arguments also containers with shares of a VF (shares.sh), and the neighbours of
# a hog (neighbours.sh), and scrapes of figures (scrapes.sh). Prints TAP.
# `make -C tests/userlib vm` must have built the programs.
# usage: tests/vm/run.sh KIND --no-load -- tests/vm/cache.sh [device_space] [PROGRAM...]
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

status=0
# run DEVICE=PROGRAM...: prints a stream of TAP, and begins the next one
run() {
	python3 -B "$TOP/tests/userlib/run.py" "$BUILD/tests/userlib" "${@/=/=$BUILD/tests/userlib/vm/}" || status=$?
	echo 'TAP version 14'
}

all=0
(($#)) || all=1
((!all)) || set -- device_space device_adopt device_cache device_pressure
if [[ $1 == device_space ]]; then
	shift
	# The VF may acquire all of each memory, and keeps it.
	for device in VF PF; do
		insmod "$FLEXMEM_KO/flexmem.ko" fallback_sizes=1G max_regions=16
		insmod "$FLEXMEM_KO/flexmem_sim.ko" domains=hbm*8:128M,tcm*8:16M:reserved=1M \
			space=64K:4G:64G num_vfs=1 slots=16
		run "$device=device_space"
		rmmod flexmem_sim flexmem
	done
fi
insmod "$FLEXMEM_KO/flexmem.ko" fallback_sizes=1G
insmod "$FLEXMEM_KO/flexmem_sim.ko" memory=4G num_vfs=1 vf_capacity=2G
((!$#)) || run "${@/#/VF=}" "${@/#/PF=}"

export PYTHONPATH=$BUILD/tests/userlib/vm/python
for example in bytes cached; do
	tap "Python's example $example" /usr/bin/python3 -B "$TOP/userlib/bindings/python/examples/$example.py"
done
tap_end || status=1
if ((all)); then
	rmmod flexmem_sim flexmem
	for script in shares neighbours scrapes; do
		echo 'TAP version 14'
		"$TOP/tests/vm/$script.sh" || status=$?
	done
fi
exit "$status"
