#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs in the guest. Tests the C++ programs of tests/torch with the driver, on two VFs of 2 GiB and on one of them. The
# long runs also test the Python programs, for which PyTorch takes minutes to start; first in a container with a quarter
# of the VF, beside a container that allocates and frees up to its own limit; then two processes, one of which asks for
# what the other does not use. Prints TAP.
# `make torch` and `make -C tests/userlib vm` must have built the programs.
# usage: tests/vm/run.sh KIND --no-load -- tests/vm/torch.sh
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

insmod "$FLEXMEM_KO/flexmem.ko" fallback_sizes=1G
insmod "$FLEXMEM_KO/flexmem_sim.ko" memory=5G num_vfs=2 vf_capacity=2G
FLEXMEM_VISIBLE_DEVICES=0,1 tests/torch/enter.sh build/torch/made/train 3
echo 'TAP version 14'
FLEX_DEVICE=VF tests/torch/enter.sh build/torch/made/driver /sys/kernel/debug/flexmem_sim/vf0/reset

# in_container NAME MIB COMMAND...: becomes a command in a container with a limit, which sees its own cgroup as the root
in_container() {
	mkdir "/sys/fs/cgroup/$1"
	"$BUILD/tests/userlib/shipped/flexmem" limit --cgroup "/$1" --bytes "$2M" >/dev/null
	echo "$BASHPID" >"/sys/fs/cgroup/$1/cgroup.procs"
	exec unshare --cgroup -- "${@:3}"
}
if [[ ${FLEXMEM_LONG:-} ]]; then
	export LD_LIBRARY_PATH=$BUILD/tests/userlib/shipped
	echo 'TAP version 14'
	churned=$(mktemp)
	FLEX_DEVICE=VF in_container other 32 "$BUILD/tests/userlib/vm/device_share" churn >"$churned" 2>&1 &
	other=$!
	until [[ -s $churned ]]; do
		kill -0 "$other"
		sleep 0.1
	done
	(FLEX_DEVICE=VF in_container own 512 tests/torch/enter.sh python3 tests/torch/exact.py $((512 << 20)))
	# It has not failed.
	[[ $(<"$churned") == full ]]
	kill "$other"
	wait "$other" || true
	echo 'TAP version 14'
	FLEX_DEVICE=VF tests/torch/enter.sh python3 tests/torch/neighbours.py
	echo 'TAP version 14'
	# Leaves out tests that start Python again with host memory.
	FLEX_DEVICE=VF tests/torch/enter.sh python3 tests/torch/tap.py \
		test_memory.Memory test_models test_python test_recurrent test_tensors test_importing
fi
