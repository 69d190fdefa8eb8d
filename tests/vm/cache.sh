#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs in the guest. Tests the cache with the driver, on a VF and on the PF, each of 2 GiB in regions of 1 GiB, and the
# examples of the Python package. Prints TAP.
# `make -C tests/userlib vm` must have built the programs.
# usage: tests/vm/run.sh KIND --no-load -- tests/vm/cache.sh [PROGRAM...]
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

(($#)) || set -- device_cache device_pressure
insmod "$FLEXMEM_KO/flexmem.ko" fallback_sizes=1G
insmod "$FLEXMEM_KO/flexmem_sim.ko" memory=4G num_vfs=1 vf_capacity=2G
programs=()
for device in VF PF; do
	for program; do
		programs+=("$device=$BUILD/tests/userlib/vm/$program")
	done
done
status=0
python3 -B "$TOP/tests/userlib/run.py" "$BUILD/tests/userlib" "${programs[@]}" || status=$?

echo 'TAP version 14'
export PYTHONPATH=$BUILD/tests/userlib/vm/python
for example in bytes cached; do
	tap "Python's example $example" /usr/bin/python3 -B "$TOP/userlib/bindings/python/examples/$example.py"
done
tap_end || status=1
exit "$status"
