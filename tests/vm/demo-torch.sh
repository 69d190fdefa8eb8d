#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs in the guest: the second part of `make demo`, in which a model of PyTorch trains with the driver. Fails if
# something does not happen as the text says.
# usage: tests/vm/run.sh KIND --cpus 1 --load order=fill_first --sim 'slots=8 num_vfs=1' -- tests/vm/demo-torch.sh
set -euo pipefail

fail() { echo "demo: $*" >&2; exit 1; }

echo
echo "A small model trains with PyTorch, all of its tensors in memory of the virtual function:"
echo
coproc demo { FLEX_DEVICE=VF tests/torch/enter.sh build/torch/made/demo; }
# shellcheck disable=SC2154	# coproc sets it
pid=$demo_PID
exec {answers}>&"${demo[1]}" {says}<&"${demo[0]}"
said='' regions=''
while IFS= read -r line <&"$says"; do
	if [[ $line == @regions ]]; then
		regions=$(flexmem regions)
		line=$regions
		echo >&"$answers"
	fi
	printf '%s\n' "$line"
	said+=$line$'\n'
done
wait "$pid" || fail 'the program failed'
[[ $(grep -c ' equal$' <<<"$said") == 6 && $said != *'not equal'* ]] || fail 'the losses are not equal'
[[ $(awk '$NF == "shared" && $5 != 0' <<<"$regions") ]] || fail "no region was in use during the step: $regions"
[[ $said == *'OutOfMemoryError: flexmem: '*GiB* ]] || fail 'nothing was out of memory'
[[ $said == *'At the end 0 bytes are in use, and 0 of the device'* ]] || fail 'bytes are left'
# The driver keeps empty regions, so this prints regions with used bytes (column 5).
left=$(flexmem regions | awk '$NF == "shared" && $5 != 0')
[[ ! $left ]] || fail "bytes are left: $left"
