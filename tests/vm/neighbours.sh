#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs in the guest. A hog fills a VF of 2 GiB through its cache, and keeps most of that idle. Neighbours ask at the
# same moment for what is free and half of what the hog keeps idle: the first request of each succeeds. The long runs
# try 1, 3 and 8 neighbours at six fills, `make check` one of these cases. Prints TAP. `make -C tests/userlib vm` must
# have built the program.
# usage: tests/vm/run.sh KIND --no-load -- tests/vm/neighbours.sh [FILL NEIGHBOURS]
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

program=$BUILD/tests/userlib/vm/device_hog
fills=(96) neighbours=(3)
if (($# == 2)); then
	fills=("$1") neighbours=("$2")
elif [[ ${FLEXMEM_LONG:-} ]]; then
	fills=(50 80 90 94 96 99) neighbours=(1 3 8)
fi

# Exit status 1 means that the request has failed, and nothing else is wrong.
fails_without_helper() {
	local status=0
	"$program" 90 1 '' deaf || status=$?
	((status == 1))
}

insmod "$FLEXMEM_KO/flexmem.ko" fallback_sizes=2G
insmod "$FLEXMEM_KO/flexmem_sim.ko" memory=4G num_vfs=1 vf_capacity=2G
export FLEX_DEVICE=VF
for settings in '' expandable_segments:True; do
	for fill in "${fills[@]}"; do
		for many in "${neighbours[@]}"; do
			tap "fill $fill %, $many neighbours${settings:+, $settings}" "$program" "$fill" "$many" "$settings"
		done
	done
done
tap 'without a helper of the hog the request fails' fails_without_helper
tap_end
rmmod flexmem_sim flexmem
