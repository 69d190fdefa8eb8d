#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs in the guest. Replays the traces with the driver, on a VF with fill_first: with each block strategy on 8 slots, with
# a cache, in one region that is nearly full, and on a device with several memories. Then records caches that take turns,
# and processes that do not, and replays them exactly. Prints TAP. `make -C tests/userlib vm` must have built the program.
# usage: tests/vm/run.sh KIND --no-load -- tests/vm/replay.sh
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

# Each trace must need exactly this many regions, which is its peak divided by the region size.
declare -A regions=([resnet50-train]=1 [gpt2-train]=1 [azure-conv-kv]=5)

# reload 'PARAMETERS OF FLEXMEM' 'PARAMETERS OF THE CARD'
reload() {
	local module
	for module in flexmem_sim flexmem; do
		! grep -q "^$module " /proc/modules || rmmod "$module" || return 1
	done
	# shellcheck disable=SC2086 # several parameters
	insmod "$FLEXMEM_KO/flexmem.ko" order=fill_first $1 && insmod "$FLEXMEM_KO/flexmem_sim.ko" num_vfs=1 $2
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

# policy POLICY TRACE FILTER [OPTION]: replays a trace, and applies a filter of jq to the report
policy() {
	local json
	json=$(flexmem replay --json --show-peak ${4:+"$4"} --policy "$1" "tests/traces/$2.trace.gz") || (($? == 1)) || return 1
	echo "$json"
	jq -e "$3" <<<"$json"
}

recorded_on=('fallback_sizes=16G max_regions=8' 'slots=8 memory=128G')

# exact PROVIDER EVENTS PROCESSES TRACE: replays a trace on an empty device, and finds all events, but not an altered one
exact() {
	local json altered=$4.altered
	reload "${recorded_on[@]}" || return 1
	json=$(flexmem replay --json --exact --provider "$1" "$4") || { echo "$json" && return 1; }
	jq -e --argjson events "$2" --argjson processes "$3" \
		'.difference == null and .events == $events and .processes == $processes' <<<"$json" || return 1
	# The offset of allocation 300 is 128 bytes higher.
	awk '$2 == "a" && $3 == 300 { $9 = sprintf("%.0f", $9 + 128) } { print }' "$4" >"$altered"
	reload "${recorded_on[@]}" || return 1
	json=$(flexmem replay --json --exact --provider "$1" "$altered") && { echo "$json" && return 1; }
	jq -e --argjson line "$(awk '$2 == "a" && $3 == 300 { print NR }' "$4")" '.difference.line == $line' <<<"$json"
}

# same PROCESSES: records caches that take turns on an empty device, and finds the same addresses on another one
same() {
	local dir provider
	dir=$(mktemp -d)
	reload "${recorded_on[@]}" && "$BUILD/tests/userlib/vm/recorded" "$1" 2000 '' "$dir" &&
		flexmem record --output "$dir/whole.trace" "$dir"/*.json || return 1
	for provider in device recorded; do
		exact "$provider" 2000 "$1" "$dir/whole.trace" || return 1
	done
	rm -r "$dir"
}

# at_once: records three processes that the driver serves at the same time
at_once() {
	local dir pids=() seed
	dir=$(mktemp -d)
	reload "${recorded_on[@]}" || return 1
	for seed in 1 2 3; do
		mkdir "$dir/$seed"
		"$BUILD/tests/userlib/vm/recorded" 1 700 '' "$dir/$seed" "$seed" &
		pids+=($!)
	done
	for seed in "${pids[@]}"; do
		wait "$seed" || return 1
	done
	flexmem record --output "$dir/whole.trace" "$dir"/*/1.json && exact recorded 2100 3 "$dir/whole.trace" && rm -r "$dir"
}

exec 3>&1
for fit in first_fit best_fit; do
	tap "$fit: the driver loads" reload "strategy=$fit" slots=8
	for trace in resnet50-train gpt2-train azure-conv-kv; do
		tap "$fit: $trace, no failure, regions used: ${regions[$trace]}" replay "$fit" "$trace"
	done
done
tap "gpt2-train through a cache: as without a device" cache gpt2-train ""
tap "resnet50-train through a cache that splits less" cache resnet50-train max_split_size_mb:64
for trace in resnet50-train gpt2-train llama-decode azure-conv-kv-layers; do
	tap "$trace through a cache whose segments grow" growing "$trace"
done

# addresses.c in tests/native has the same figures.
tap 'the driver loads: one region of 1.02 times the peak' reload 'max_regions=1 fallback_sizes=48320M' domains=hbm:48320M
tap 'azure-conv-kv in one block each: some requests fail' policy default azure-conv-kv \
	'.failures == 7 and .in_chunks == 0 and .first_failure.limit == "fragmentation"' --keep-going

tap 'the driver loads: eight stacks and four on-chip memories' reload 'max_regions=16 fallback_sizes=12G' \
	'slots=16 domains=hbm*8:12G,tcm*4:16M'
# The sizes of this trace are multiples of 8 x 128 bytes.
# shellcheck disable=SC2016 # $share is of jq
tap 'azure-conv-kv-layers, interleaved: each stack has the same bytes at the peak' \
	policy interleave:hbm azure-conv-kv-layers '.failures == 0 and .peak_reached and .slots_used == 8
	and (.peak_device_bytes / 8) as $share | [.peak_regions[] | {domain, used}] == [range(8) | {domain: ., used: $share}]'
tap 'the driver loads: more memories than slots' reload 'max_regions=8 fallback_sizes=12G' 'slots=8 domains=hbm*9:12G'
tap 'azure-conv-kv-layers, interleaved: a slot is missing' policy interleave:hbm azure-conv-kv-layers \
	'.events == 1 and .first_failure.limit == "slots"'
for processes in 1 3; do
	tap "$processes recorded, and the same addresses in a replay" same "$processes"
done
tap 'three processes at the same time recorded, and the same events in a replay' at_once
tap_end
