#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs in the guest. Replays the traces with the driver, on a VF with 8 slots, with fill_first and each block strategy,
# and one trace with a cache. Prints TAP.
# usage: tests/vm/run.sh KIND --no-load -- tests/vm/replay.sh
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

# Each trace must need exactly this many regions, which is its peak divided by the region size.
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

# The decisions of a cache do not depend on the addresses of its segments, so the figures must be the same as without a
# device. All memory must be freed in the end.
cache() {
	local trace=tests/traces/$1.trace.gz on_device flat
	on_device=$(flexmem replay --json --cache --provider device --config "$2" "$trace") &&
		flat=$(flexmem replay --json --cache --provider flat --config "$2" "$trace") || return 1
	echo "$on_device"
	jq -se '.[0].provider == "device" and .[1].provider == "flat" and .[0].failures == 0 and .[0].num_first_failures == 0
		and .[0].driver_calls.alloc > 0 and .[0].driver_calls.alloc * 50 < .[0].allocs
		and (map({peak_reserved_bytes, peak_allocated_bytes, hits, misses, driver_calls}) | .[0] == .[1])' \
		<<<"$on_device $flat" && flexmem stats --json | jq -e '.allocated == 0'
}

# Growing segments cannot grow beyond the end of a region. They must still be nearly as tight as in a flat address
# space.
growing() {
	local trace=tests/traces/$1.trace.gz config=expandable_segments:True on_device flat
	on_device=$(flexmem replay --json --cache --provider device --config "$config" "$trace") &&
		flat=$(flexmem replay --json --cache --provider flat:64G --config "$config" "$trace") || return 1
	echo "$on_device"
	jq -se '.[0].failures == 0 and .[0].num_first_failures == 0 and .[0].driver_calls.grow > 50
		and .[0].driver_calls.alloc <= 6 and .[0].reserved_to_live <= .[1].reserved_to_live * 1.01' \
		<<<"$on_device $flat" && flexmem stats --json | jq -e '.allocated == 0' &&
		jq -sr '"# \(.[0].reserved_to_live) over the device, \(.[1].reserved_to_live) over a flat space"' \
			<<<"$on_device $flat" >&3
}

exec 3>&1
for fit in first_fit best_fit; do
	tap "$fit: the driver loads" reload "$fit"
	for trace in resnet50-train gpt2-train azure-conv-kv; do
		tap "$fit: $trace, no failure, regions used: ${regions[$trace]}" replay "$fit" "$trace"
	done
done
tap "gpt2-train through a cache: as without a device" cache gpt2-train ""
tap "resnet50-train through a cache that splits less" cache resnet50-train max_split_size_mb:64
for trace in resnet50-train gpt2-train llama-decode azure-conv-kv-layers; do
	tap "$trace through a cache whose segments grow" growing "$trace"
done
tap_end
