#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs in the guest. Tests the C++ programs of tests/torch with the driver, on a VF of 2 GiB. The long runs also test
# the Python programs, for which PyTorch takes minutes to start. Prints TAP.
# `make torch` must have built the programs.
# usage: tests/vm/run.sh KIND --no-load -- tests/vm/torch.sh
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

insmod "$FLEXMEM_KO/flexmem.ko" fallback_sizes=1G
insmod "$FLEXMEM_KO/flexmem_sim.ko" memory=4G num_vfs=1 vf_capacity=2G
FLEX_DEVICE=VF tests/torch/enter.sh build/torch/made/train 3
echo 'TAP version 14'
FLEX_DEVICE=VF tests/torch/enter.sh build/torch/made/driver /sys/kernel/debug/flexmem_sim/vf0/reset
if [[ ${FLEXMEM_LONG:-} ]]; then
	echo 'TAP version 14'
	# Leaves out tests that start Python again with host memory.
	FLEX_DEVICE=VF tests/torch/enter.sh python3 tests/torch/tap.py \
		test_memory.Memory test_models test_python test_recurrent test_tensors test_importing
fi
