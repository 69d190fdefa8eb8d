#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs in the guest: replays the traces through the driver, each fit with fill-first on a VF with 8 slots. Prints TAP.
# usage: tests/vm/run.sh KIND --no-load -- tests/vm/replay.sh
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

# The regions that each trace needs, no more and no fewer: its peak over the region size.
declare -A regions=([resnet50-train]=1 [gpt2-train]=1 [azure-conv-kv]=5)

reload() {
	local module
	for module in flexmem_sim flexmem; do
		! grep -q "^$module " /proc/modules || rmmod "$module" || return 1
	done
	insmod "$FLEXMEM_KO/flexmem.ko" order=fill_first "strategy=$1" &&
		insmod "$FLEXMEM_KO/flexmem_sim.ko" slots=8 num_vfs=1
}
replay() {
	local json
	json=$(flexmem replay --json --strategy "$1" --order fill_first "tests/traces/$2.trace.gz") || return 1
	echo "$json"
	jq -se --argjson regions "${regions[$2]}" 'flatten | length == 1 and (.[0] | .events > 0 and .failures == 0
		and .regions_used == $regions and .slots_used >= $regions and .slots_used <= 8)' <<<"$json"
}

for fit in first_fit best_fit; do
	tap "$fit: the driver loads" reload "$fit"
	for trace in resnet50-train gpt2-train azure-conv-kv; do
		tap "$fit: $trace, no failure, regions used: ${regions[$trace]}" replay "$fit" "$trace"
	done
done
tap_end
