#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs in the guest: what `make demo` shows. Each trace is run twice, with a slot for each tensor and with flexmem.
# Fails if one of the runs does not end as the text says.
# usage: tests/vm/run.sh KIND --load order=fill_first --sim slots=8 -- tests/vm/demo.sh
set -euo pipefail

fail() { echo "demo: $*" >&2; exit 1; }
# of LABEL: prints the value in the report's line with this label
of() { sed -n "s/^  $1  *//p" <<<"$report"; }

info=$(flexmem info)
setting() { sed -n "s/^$1  *//p" <<<"$info"; }
slots=$(setting slots)
echo "A virtual function with $slots slots that may have $(setting capacity) of memory: order $(setting order), fit $(setting strategy)."
[[ $(setting function) == VF && $slots == 8 && $(setting order) == fill_first ]] || fail "this is another device: $info"

# one_each TRACE: counts what would happen if each tensor had a slot of its own. It only counts, because no driver works
# like that. Prints four numbers: the event at which no slot is left, the most tensors that are live at once, all
# events, and all tensors.
one_each() {
	gzip -dc "$1" | awk -v slots="$slots" '
		/^#/ { next }
		{ events++ }
		$2 == "a" { tensors++; if (++live > most) most = live; if (live > slots && !failed) failed = events }
		$2 == "f" { live-- }
		END { print failed + 0, most, events, tensors }'
}

# show TRACE 'what it is' REGIONS: replays the trace, and fails unless it used exactly REGIONS regions
show() {
	local trace=tests/traces/$1.trace.gz failed most events tensors
	read -r failed most events tensors < <(one_each "$trace")
	echo
	echo "$2"
	echo "$tensors tensors in $events events, up to $most of them live at the same time."
	echo "  a slot for each tensor  ends at event $failed: $slots slots are taken, and tensor $((slots + 1)) finds none"
	((failed > 0 && failed < events / 100)) || fail "$1: a slot for each tensor did not fail early"
	report=$(flexmem replay --order fill_first "$trace") || fail "$1: an event failed"
	echo "  flexmem                 all $(of events) events, $(of 'slots used') slots with a region each; $(of 'peak live' | sed 's/ asked.*//') live at the peak"
	echo "                          fragmentation $(of fragmentation)"
	echo "                          one operation: $(of 'per operation')"
	[[ $(of failures) == 0 && $(of events) == "$events" && $(of 'slots used') == *" of $slots" ]] || fail "$1: $report"
	[[ $(of 'regions used') == "$3" ]] || fail "$1: $(of 'regions used') regions, not $3"
}

show resnet50-train "ResNet-50 is trained with PyTorch: 8 iterations over 16 pictures each." 1
show gpt2-train "A small GPT-2 is trained with PyTorch: 10 steps, each of another length." 1
show azure-conv-kv "An LLM server keeps the KV caches of real conversations (Azure, 2023)." 5

echo
echo "The regions of the last one when most was live:"
flexmem replay --show-peak tests/traces/azure-conv-kv.trace.gz | sed -n '/^slot /,$p'
