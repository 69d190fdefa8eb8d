#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs in the guest. Tests what an operator uses, over the simulator with two VFs and with plain cgroups: what `make
# install` installs, the limits of a file as the units set them, shares and the hook with real processes, release, list,
# watch and doctor; at last rounds of these commands, some of which are killed. Prints TAP.
# `make -C userlib install DESTDIR=build/operate prefix=/usr` must have run before, see tests/check.sh.
# usage: tests/vm/run.sh KIND --no-load -- tests/vm/operate.sh [ROUNDS]      8 commands a round
#
# tap calls the test functions, which shellcheck does not see.
# shellcheck disable=SC2317
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

rounds=${1:-2}
RANDOM=${FLEXMEM_SEED:-$(date +%N | sed 's/^0*//')}
cgroups=/sys/fs/cgroup
conf=/etc/flexmem/limits.conf
VF0=platform-flexmem_sim_vf.0 VF1=platform-flexmem_sim_vf.1
driver=/sys/bus/platform/drivers/flexmem_sim
said=/tmp/said
export PATH=/usr/bin:/bin:/usr/sbin:/sbin
unset LD_LIBRARY_PATH

load() {
	insmod "$FLEXMEM_KO/flexmem.ko" fallback_sizes=64M && insmod "$FLEXMEM_KO/flexmem_sim.ko" memory=2G num_vfs=2 vf_capacity=1G
}
# unit NAME: runs the command of an installed unit
unit() {
	local command
	command=$(sed -n 's/^ExecStart=//p' "/usr/lib/systemd/system/$1")
	[[ $command ]] && bash -c "$command"
}
# The machine is emulated, and each process takes long: these functions start as few as they can, and no jq.
node_of() {
	local node
	for node in /sys/class/flexmem/*; do
		[[ ! $node/device -ef /sys/devices/platform/${1#platform-} ]] || echo "/dev/${node##*/}"
	done
}
# "${inside[@]}" CGROUP COMMAND...: runs a command in a cgroup. An array, not a function, so that $! of a job is the command.
# shellcheck disable=SC2016	# the shell inside expands it
inside=(bash -c 'echo $$ >"/sys/fs/cgroup$0/cgroup.procs" && exec "$@"')
# allocates CGROUP FUNCTION SIZE: whether a program in the cgroup gets so much
allocates() { "${inside[@]}" "$1" flexmem --device "$(node_of "$2")" alloc "$3" --hold 0; }
# limit_of CGROUP FUNCTION: the limit of bytes that the driver has; nothing if it has no account of the cgroup
limit_of() {
	flexmem --device "$(node_of "$2")" owners --json | awk -v path="\"$1\"," '$1 == "\"path\":" { at = $2 } $1 == "\"limit\":" { inside = 1 }
		inside && $1 == "\"bytes\":" { inside = 0; if (at == path) print $2 + 0 }'
}
# soon COMMAND...: waits until the command succeeds, at most ten minutes: a busy host runs the machine slowly
soon() {
	local end=$((SECONDS + 600))
	while ((SECONDS < end)); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	echo "not within ten minutes: $*"
	return 1
}
# alone TEST: runs a test, and ends the jobs that it leaves
alone() {
	# shellcheck disable=SC2046,SC2064	# several words, and expanded at the end
	trap 'kill -KILL $(jobs -p) 2>/dev/null || true' EXIT
	"$@"
}
is() { [[ $1 == "$2" ]] || { echo "'$1' instead of '$2'" && return 1; }; }
fails() { ! "$@"; }
# refused TEXT COMMAND...: whether the command fails, and says the text on standard error
refused() {
	local text=$1
	shift
	if "$@" 2>$said; then
		echo "it did not fail: $*"
		return 1
	fi
	grep -qF -- "$text" $said || { echo "not '$text' but:" && cat $said && return 1; }
}

installed() {
	cp -a "$BUILD/operate/usr" / && load && is "$(command -v flexmem)" /usr/bin/flexmem && flexmem version &&
		is "$(flexmem list --json | sed -n 's/^ *"id": "\(.*\)",$/\1/p' | xargs)" "$VF0 $VF1 platform-flexmem_sim_pf.0"
}

limits_are_set() {
	is "$(limit_of /a "$VF0")" $((64 << 20)) && is "$(limit_of /a "$VF1")" $((64 << 20)) &&
		is "$(limit_of /b "$VF1")" $((32 << 20)) && is "$(limit_of /b "$VF0")" ''
}
limits_check() {
	mkdir -p /etc/flexmem "$cgroups"/{a,b} || return 1
	printf '%s\n' '/a all bytes=64M files=10' 'a all bytes=64M' >$conf
	refused ':2: ' flexmem limit --check $conf || return 1
	printf '%s\n' '/a all bytes=64M files=10' "/b $VF1 bytes=32M" '/later/c all bytes=16M' >$conf
	flexmem limit --check $conf && is "$(limit_of /a "$VF0")" ''
}
limits_apply() {
	unit flexmem-limits@.service && limits_are_set && allocates /a "$VF0" 64M && fails allocates /a "$VF0" 65M
}
limits_watch() {
	local command watcher
	read -ra command < <(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/flexmem-limits.service)
	"${command[@]}" >$said 2>&1 &
	watcher=$!
	soon grep -q ':1: ' $said && mkdir -p "$cgroups/later/c" && soon grep -q ':3: set' $said &&
		is "$(limit_of /later/c "$VF0")" $((16 << 20)) && kill $watcher
}
# The VF's node appears, and udev starts the unit.
limits_after_rebind() {
	echo flexmem_sim_vf.1 >$driver/unbind && echo flexmem_sim_vf.1 >$driver/bind &&
		is "$(limit_of /a "$VF1")" $((64 << 20)) && unit flexmem-limits@.service && limits_are_set
}
limits_after_reload() {
	rmmod flexmem_sim flexmem && load && fails limits_are_set >/dev/null && unit flexmem-limits@.service && limits_are_set
}

# container CGROUP [COMMAND...]: starts a process in a cgroup, as an engine does, through a command if one is named; its
# number is in $process
container() {
	mkdir -p "$cgroups$1"
	"${inside[@]}" "$@" sleep 1000 </dev/null >/dev/null 2>&1 &
	process=$!
	soon grep -qx "0::$1" "/proc/$process/cgroup"
}
# gone CGROUP: ends its processes and removes it, with those below it
gone() {
	echo 1 >"$cgroups$1/cgroup.kill" && soon removed "$cgroups$1"
}
removed() {
	! compgen -G "$1/*/" >/dev/null || rmdir "$1"/*/
	rmdir "$1"
}
# hook NAME [COMMAND...]: runs the hook of a share's CDI file for $process, through a command if one is named
hook() {
	local file args
	file=/etc/cdi/flexmem.org-share-$1.json
	[[ -e $file ]] || file=/var/run/cdi/flexmem.org-share-$1.json
	mapfile -t args < <(sed -n '/"args": \[/,/\]/s/^ *"\(.*[^[]\)",*$/\1/p' "$file")
	"${@:2}" "$(sed -n 's/^ *"path": "\(.*hook\)",*$/\1/p' "$file")" "${args[@]:1}" \
		<<<"${state-"{\"ociVersion\": \"1.0\", \"id\": \"x\", \"pid\": $process}"}"
}
hook_limits() {
	flexmem cdi --share "job:$VF0:32M:2:100" && container /engine/one && hook job &&
		is "$(limit_of /engine/one "$VF0")" $((32 << 20)) && allocates /engine/one "$VF0" 32M &&
		fails allocates /engine/one "$VF0" 33M
}
hook_one_container() {
	container /engine/two && refused 'the share job is in use by /engine/one' hook job &&
		gone /engine/one && hook job && is "$(limit_of /engine/two "$VF0")" $((32 << 20)) && gone /engine/two
}
# The containers above are in the host's cgroup namespace. This one sees its own cgroup as the root.
hook_namespace() {
	container /engine/own unshare --cgroup && soon has_own_namespace && hook job &&
		is "$(limit_of /engine/own "$VF0")" $((32 << 20)) && gone /engine/own
}
has_own_namespace() { [[ ! /proc/$process/ns/cgroup -ef /proc/self/ns/cgroup ]]; }
# A container may have shares of two functions, but not two of one.
hook_two_functions() {
	flexmem cdi --share "other:$VF1:16M" && flexmem cdi --share "again:$VF0:64M" && container /engine/both && hook job && hook other &&
		is "$(limit_of /engine/both "$VF0") $(limit_of /engine/both "$VF1")" "$((32 << 20)) $((16 << 20))" &&
		refused "the container has another share of the function $VF0: job" hook again &&
		is "$(limit_of /engine/both "$VF0")" $((32 << 20)) && gone /engine/both &&
		flexmem cdi --remove other && flexmem cdi --remove again
}
# Two containers of a pod have one limit together, and no other pod gets the share.
hook_pod() {
	flexmem cdi --share "claim:$VF0:48M" --pod --transient && container /engine/pod1/x && hook claim &&
		container /engine/pod1/y && hook claim && is "$(limit_of /engine/pod1 "$VF0")" $((48 << 20)) &&
		fails allocates /engine/pod1/x "$VF0" 49M && allocates /engine/pod1/y "$VF0" 48M &&
		container /engine/pod2/z && refused 'the share claim is in use by /engine/pod1' hook claim &&
		container /engine/plain && refused 'is in no pod' hook claim &&
		gone /engine/pod1 && gone /engine/pod2 && gone /engine/plain && flexmem cdi --remove claim
}
# What the hook reads, and the container's process. It changes nothing before all of this is checked.
hook_refuses() {
	local state huge
	container /engine/bad || return 1
	for state in '' '{' '[]' '{"pid": 0}' '{"pid": 1, "pid": 2}' '{"pid": "1"}' '{"pid": 99999999999}'; do
		refused 'the state of the container has no process' hook job || return 1
	done
	printf -v huge '%070000d' 0
	state="{\"pid\": $process, \"annotations\": \"$huge\"}"
	refused 'is longer than 65536 bytes' hook job || return 1
	# The state may claim another limit.
	state="{\"pid\": $process, \"bytes\": 1, \"args\": [\"--bytes\", \"1\"], \"annotations\": {\"bytes\": \"1\"}}"
	hook job && is "$(limit_of /engine/bad "$VF0")" $((32 << 20)) || return 1
	unset state
	# A container without a cgroup of its own, one in the root cgroup, and a process that has ended.
	refused 'has no cgroup of its own (--cgroups=disabled)' hook job "${inside[@]}" /engine/bad || return 1
	kill -KILL "$process"
	wait "$process" 2>/dev/null
	refused "the container's process $process" hook job || return 1
	process=$$
	refused 'the container is in the root cgroup' hook job && gone /engine/bad
}
# Rootless podman starts its hooks in a user namespace.
hook_of_a_user() {
	container /engine/user && refused 'run podman as root, or limit the slice of the user' hook job unshare --user --map-root-user &&
		is "$(limit_of /engine/user "$VF0")" '' && gone /engine/user
}
# Documented: a container that may write above its cgroup leaves it, and its limit.
hook_hole() {
	container /engine/hole && hook job && mkdir "$cgroups/outside" && fails allocates /engine/hole "$VF0" 33M &&
		"${inside[@]}" /engine/hole "${inside[@]}" /outside flexmem --device "$(node_of $VF0)" alloc 33M --hold 0 &&
		gone /engine/hole && rmdir "$cgroups/outside"
}
# A device without a limit: the reservation of another cgroup holds all the same. The VF can have 12 regions.
unlimited_device() {
	mkdir -p "$cgroups/first" && flexmem --device "$(node_of $VF0)" reserve --cgroup /first --regions 6 --size 64M || return 1
	flexmem cdi --unlimited "all:$VF0" 2>$said && grep -q 'has a share and an unlimited device' $said &&
		container /engine/all && allocates /engine/all "$VF0" 64M && fails fill /engine/all 7 && fill /engine/all 6 && fill /first 6 &&
		gone /engine/all && rmdir "$cgroups/first" && flexmem cdi --remove all
}
# fill CGROUP REGIONS: whether a program gets so many whole regions
fill() { "${inside[@]}" "$1" flexmem --device "$(node_of $VF0)" alloc 64M --count "$2" --hold 0; }
# Both VFs are bound again in the other order, so their nodes have each other's numbers.
hook_stale() {
	local before vf
	before=$(node_of $VF0)
	for vf in 0 1; do echo flexmem_sim_vf.$vf >$driver/unbind; done
	for vf in 1 0; do echo flexmem_sim_vf.$vf >$driver/bind; done
	fails is "$(node_of $VF0)" "$before" >/dev/null && container /engine/three &&
		refused "is not the function $VF0" hook job && fails flexmem doctor >$said && grep -q -- '--refresh' $said &&
		is "$(limit_of /engine/three "$VF1")" '' && unit flexmem-cdi@.service && hook job &&
		is "$(limit_of /engine/three "$VF0")" $((32 << 20)) && gone /engine/three && flexmem cdi --remove job
}

release_waits() {
	local holder
	mkdir -p "$cgroups/held/below"
	"${inside[@]}" /held/below flexmem alloc 16M --hold 1000 >$said 2>&1 &
	holder=$!
	soon grep -q handle $said && fails flexmem release --cgroup /held --timeout 0 --json >$said 2>/dev/null &&
		grep -q '"released": false' $said && grep -q "\"bytes\": $((16 << 20))," $said &&
		kill $holder && flexmem release --cgroup /held --timeout 600 && rmdir "$cgroups"/held{/below,}
}

# watched EVENT...: whether `flexmem watch` has told these events in this order. It may tell others in between.
watched() {
	is "$(sed -n 's/.*"event":"\(reset\|removed\|state\)".*/\1/p' /tmp/watched | xargs)" "$*"
}
numbered() { is "$(sed 's/^{"number":\([0-9]*\),.*/\1/' /tmp/watched | xargs)" "$(seq "$(wc -l </tmp/watched)" | xargs)"; }
# The watcher looks at the VFs one after the other. When it has opened the second, it has looked at the first.
watch_tells() {
	local watcher
	flexmem watch --json >/tmp/watched 2>&1 &
	watcher=$!
	soon has_file_of $watcher && echo 1 >/sys/kernel/debug/flexmem_sim/vf0/reset && soon watched reset &&
		echo flexmem_sim_vf.1 >$driver/unbind && soon watched reset removed &&
		echo flexmem_sim_vf.1 >$driver/bind && soon watched reset removed state && grep -q '"usable"' /tmp/watched || return 1
	allocates /a "$VF1" 64M >/dev/null
	# The firmware cannot say whether bytes still move: only a reset helps.
	echo 1 >/sys/kernel/debug/flexmem_sim/hang_commands
	fails flexmem --device "$(node_of $VF1)" trim >/dev/null 2>&1
	soon grep -q '"wedged"' /tmp/watched && fails flexmem doctor >$said && grep -q "error: $VF1: it is wedged" $said &&
		echo 1 >/sys/kernel/debug/flexmem_sim/vf1/reset && soon watched reset removed state state state reset &&
		kill $watcher && numbered
}
has_file_of() { flexmem --device "$(node_of $VF1)" owners --json | grep -q "\"pid\": $1,"; }

# Nothing is wrong with this host but that nobody has made the group, and that its modules come from a folder.
doctor_finds() {
	flexmem doctor --json >$said || true
	is "$(sed -n 's/^ *"name": "\(.*\)",$/\1/p' $said | grep -vxE 'no-group|node-for-root|kernel-without-module')" ''
}

# maybe COMMAND...: runs a command; every second one is killed after up to half a second
maybe() {
	local job delay
	"$@" >/dev/null 2>&1 &
	job=$!
	if ((RANDOM % 2)); then
		printf -v delay '0.%03d' $((RANDOM % 500))
		sleep "$delay"
		pkill -KILL -P $job
		kill -KILL $job
		killed=$((killed + 1))
	fi 2>/dev/null
	wait $job 2>/dev/null || true
}
round() {
	local name=round$1
	container "/engine/$name"
	maybe flexmem cdi --share "$name:$VF0:32M" --transient
	flexmem cdi --share "$name:$VF0:32M" --transient || return 1
	maybe hook "$name"
	hook "$name" && is "$(limit_of "/engine/$name" "$VF0")" $((32 << 20)) || return 1
	"${inside[@]}" "/engine/$name" flexmem --device "$(node_of $VF0)" alloc 1M --count 30 --hold 1000 >/dev/null 2>&1 &
	maybe flexmem release --cgroup "/engine/$name" --timeout 0
	echo 1 >"$cgroups/engine/$name/cgroup.kill"
	flexmem release --cgroup "/engine/$name" --timeout 600 && gone "/engine/$name" || return 1
	maybe flexmem cdi --remove "$name"
	flexmem cdi --remove "$name"
}
rounds_leave_nothing() {
	local i node killed=0
	for ((i = 0; i < rounds; i++)); do
		round $i >/tmp/round 2>&1 || { cat /tmp/round && return 1; }
	done
	wait
	is "$(ls -A /var/run/cdi)" '' || return 1
	for node in /dev/flexmem[0-9]*; do
		flexmem --device "$node" owners --json >$said
		# The cgroups of the file of limits stay, without charges. The only open file is that of this report.
		is "$(grep -E '^ {6}"(bytes|orphaned|handles)": [1-9]|"removed": true' $said)" '' &&
			grep -q '"clients": 1,' $said || return 1
	done
	# No share is in use: another container gets each.
	flexmem cdi --share "round0:$VF0:32M" --transient && container /engine/last && hook round0 && gone /engine/last &&
		flexmem cdi --remove round0 && echo "$((8 * rounds)) commands, of which $killed were killed" >/tmp/rounds
}

mkdir -p /var/run/cdi
tap 'make install' alone installed
tap 'a file of limits is checked' alone limits_check
tap 'the unit sets the limits of a file' alone limits_apply
tap 'limits of a cgroup that appears' alone limits_watch
tap 'limits after a rebind' alone limits_after_rebind
tap 'limits after the modules were loaded again' alone limits_after_reload
tap 'the hook sets the limits of a share' alone hook_limits
tap 'a share is for one container' alone hook_one_container
tap 'a container with a cgroup namespace' alone hook_namespace
tap 'two functions in one container' alone hook_two_functions
tap 'a share of a pod' alone hook_pod
tap 'what the hook refuses' alone hook_refuses
tap 'the hook of a user who is not root' alone hook_of_a_user
tap 'a container that leaves its cgroup leaves its limit' alone hook_hole
tap 'a device without a limit, beside a reservation' alone unlimited_device
tap 'a share whose node went to another VF' alone hook_stale
tap 'release waits for what a cgroup holds' alone release_waits
tap 'watch tells resets, removals and states' alone watch_tells
tap 'doctor finds no more than there is' alone doctor_finds
tap "$rounds rounds, with kills at random, leave nothing" alone rounds_leave_nothing
[[ ! -e /tmp/rounds ]] || sed 's/^/# /' /tmp/rounds
tap_end
