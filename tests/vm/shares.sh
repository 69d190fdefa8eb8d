#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs in the guest. Three containers have 25, 50 and 25 % of a VF, by limits of their cgroups. The third allocates and
# frees up to its limit. A program in the other two asks what it can have, and allocates exactly that: 100 starts, of
# which none may fail. In 50 of them the third is stopped, and each piece is as large as the program is told that one
# allocation can be. In the other 50 all three run. Then the pieces of one program have 64 KiB. Those of the other one
# are as large as it is told; but that block may be gone when it asks, and then 64 KiB must do. No run has more than
# these three, or other limits than of bytes. Prints TAP. `make -C tests/userlib vm` must have built the program.
# usage: tests/vm/run.sh KIND --no-load -- tests/vm/shares.sh
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

program=$BUILD/tests/userlib/vm/device_share
export PATH=$BUILD/tests/userlib/shipped:$PATH LD_LIBRARY_PATH=$BUILD/tests/userlib/shipped
mib=$((1 << 20))
declare -A share=([a]=8 [b]=16 [c]=8)
log=$(mktemp)

# inside NAME COMMAND...: becomes a command in a container, which sees its own cgroup as the root
inside() {
	echo "$BASHPID" >"/sys/fs/cgroup/shares/$1/cgroup.procs"
	exec unshare --cgroup -- "${@:2}"
}

# Errors are looked at one by one, because tap() turns errexit off.
get_limits() {
	local name
	mkdir /sys/fs/cgroup/shares || return 1
	for name in "${!share[@]}"; do
		mkdir "/sys/fs/cgroup/shares/$name" || return 1
		flexmem limit --cgroup "/shares/$name" --bytes "${share[$name]}M" || return 1
	done
}

show_their_shares() {
	local name found
	for name in "${!share[@]}"; do
		found=$(inside "$name" flexmem info --json) || return 1
		found=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["available_total"])' <<<"$found")
		((found == share[$name] * mib)) || { echo "$name: $found bytes" && return 1; }
	done
}

becomes_full() {
	until [[ -s $log ]]; do
		kill -0 "$churner" || return 1
		sleep 0.1
	done
	[[ $(<"$log") == full ]]
}

# Stops the third at some moment, so that the block that the others are told of stays. 50 starts.
get_what_they_are_told() {
	local i
	for ((i = 0; i < 25; i++)); do
		kill -STOP "$churner"
		until grep -q '^State:.*T' "/proc/$churner/status"; do
			sleep 0.01
		done
		(inside a "$program" exact) || return 1
		(inside b "$program" exact) || return 1
		kill -CONT "$churner"
	done
}

# Both at the same time, while the third allocates and frees. 50 starts.
get_it_beside_each_other() {
	local i first modes=(pieces told)
	for ((i = 0; i < 25; i++)); do
		inside a "$program" "${modes[i % 2]}" &
		first=$!
		(inside b "$program" "${modes[(i + 1) % 2]}") || return 1
		wait "$first" || return 1
	done
}

runs_on() {
	cat "$log"
	kill "$churner"
}

insmod "$FLEXMEM_KO/flexmem.ko" fallback_sizes=16M
insmod "$FLEXMEM_KO/flexmem_sim.ko" memory=64M num_vfs=1 vf_capacity=32M
tap 'three containers get their limits' get_limits
tap 'flexmem info in each shows its share' show_their_shares
inside c "$program" churn >"$log" 2>&1 &
churner=$!
tap 'the third allocates up to its limit' becomes_full
tap 'none of 50 starts fails to get what it is told' get_what_they_are_told
tap 'none of 50 starts fails beside others that allocate' get_it_beside_each_other
tap 'the third has not failed' runs_on
wait "$churner" || true
rmdir /sys/fs/cgroup/shares/[abc] /sys/fs/cgroup/shares
rm "$log"
rmmod flexmem_sim flexmem
tap_end
