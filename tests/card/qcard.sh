#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs in the guest of tests/card/run.sh: the example driver on a PCIe card with SR-IOV, while the card and QEMU do to it
# what real hardware does. Prints TAP.
# usage: tests/card/run.sh 6.12 -- tests/card/qcard.sh
set -uo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

pf=0000:01:00.0
devices=/sys/bus/pci/devices
rounds=2
[[ ! ${FLEXMEM_LONG:-} ]] || rounds=100
box=$(mktemp -d)
declare -A to from process
opened=0

ask() { "$TOP/tests/vm/ask" "$@"; }
# within SECONDS COMMAND...: whether the command succeeds before the seconds are over
within() {
	local i seconds=$1
	shift
	for ((i = 0; i < 2 * seconds; i++)); do
		! "$@" || return 0
		sleep 0.5
	done
	echo "not within $seconds s: $*"
	return 1
}
# logged TEXT: whether the kernel has said that since forget_log
logged() { dmesg | grep -qF -- "$1"; }
forget_log() { dmesg -C; }

node_of() {
	local dir=("$devices/$1"/flexmem/flexmem*)
	echo "/dev/${dir[0]##*/}"
}
has_node() { [[ -c $(node_of "$1") ]]; }
vf() { basename "$(readlink "$devices/$pf/virtfn$1")"; }
absent() { [[ ! -e $devices/$1 ]]; }

# open NAME FUNCTION: starts a process that has opened the function's node
open() {
	local in out
	mkfifo "$box/$1.in" "$box/$1.out"
	opened=$((opened % 15 + 1))
	"$BUILD/tests/card/user" "$(node_of "$2")" "$opened" <"$box/$1.in" >"$box/$1.out" &
	process[$1]=$!
	exec {in}>"$box/$1.in" {out}<"$box/$1.out"
	to[$1]=$in from[$1]=$out
	rm "$box/$1.in" "$box/$1.out"
}
# tell NAME COMMAND; hear NAME: the answer in $answer; is NAME COMMAND ANSWER...: whether the answer is one of these
tell() { echo "$2" >&"${to[$1]}"; }
hear() { read -r -t 300 -u "${from[$1]}" answer; }
is() {
	local name=$1 command=$2 wanted
	shift 2
	tell "$name" "$command"
	hear "$name" || { echo "$name: no answer to $command"; return 1; }
	for wanted; do
		[[ $answer != "$wanted" ]] || return 0
	done
	echo "$name: $command: $answer, not $*"
	return 1
}
# close NAME: ends that process. An end of its input would not, because processes that were started later have the pipe, too.
close() {
	local in=${to[$1]} out=${from[$1]}
	tell "$1" exit
	exec {in}>&- {out}<&-
	wait "${process[$1]}"
}
# churned NAME: the answer to a churn that was told before: all its rounds are good
churned() {
	hear "$1" || { echo "$1: no answer"; return 1; }
	[[ $answer == "good=$rounds foreign=0 failed=0 " || $answer == "good=$rounds foreign=0 failed=0" ]] ||
		{ echo "$1: $answer"; return 1; }
}
works() { is "$1" free ok ENOENT EIO && is "$1" alloc ok && is "$1" touch ok && is "$1" copy ok; }

# check TITLE COMMAND...: like tap, in this shell, because the command may open and close files
said() { cat "$box/said"; return "$1"; }
check() {
	local title=$1 status=0
	shift
	"$@" >"$box/said" 2>&1 || status=$?
	tap "$title" said "$status"
}

sriov() { echo "$1" >"$devices/$pf/sriov_numvfs"; }
probes() {
	insmod "$FLEXMEM_KO/flexmem.ko" && insmod "$BUILD/conformance/$FLEXMEM_KERNEL/npu.ko" reply_ms=60000 && has_node "$pf" && sriov 2 &&
		has_node "$(vf 0)" && has_node "$(vf 1)"
}
all_churn() {
	local name status=0
	for name in pf vf0 vf1; do tell "$name" "churn $rounds"; done
	for name in pf vf0 vf1; do churned "$name" || status=1; done
	return "$status"
}
moved_by_dma() {
	local shown
	shown=$(ask card show) || return 1
	echo "$shown"
	[[ $shown =~ dma_bytes=[1-9] && $shown == *' refused=0 '* ]]
}
# Defects of the card. The process notices foreign bytes, and the driver that memory has an owner already.
clears_nothing() {
	ask card 'set dirty=1' && is pf alloc ok && is pf free ok && is pf trim ok && is vf0 alloc FOREIGN && is vf0 free ok &&
		is vf0 trim ok && ask card set && is vf0 alloc ok && is vf0 free ok && is vf0 trim ok
}
same_memory() {
	forget_log
	is pf alloc ok && ask card 'set overlap=1' && is vf0 alloc EIO && logged 'acquire answered memory of another function' &&
		is pf touch ok && ask card set && echo 1 >"$devices/$(vf 0)/reset" && works vf0 && is vf0 free ok && is pf free ok
}
survives_death() {
	is vf0 alloc ok && ask card kill && is vf0 touch ok && within 10 is vf0 copy ok && is vf0 free ok
}
forgotten() {
	forget_log
	is vf0 alloc ok && is pf alloc ok && ask card 'set forget=1' && ask card kill || return 1
	within 60 logged "$(basename "$(node_of "$(vf 0)")"): was reset" && is vf0 touch SIGBUS && is vf0 copy EIO && is pf touch SIGBUS &&
		ask card set && works vf0 && works pf && is vf0 free ok && is pf free ok
}
# reply_ms MS: how long the driver waits for a reply. It waits long in all other tests, because a busy host delays replies.
reply_ms() { echo "$1" >/sys/module/npu/parameters/reply_ms; }
# Of a lost reply only its caller notices: its request times out.
loses_replies() {
	reply_ms 1000
	ask card 'set lose=5' || return 1
	tell vf1 'churn 2'
	hear vf1 && ask card set && reply_ms 60000 || return 1
	echo "$answer"
	[[ $answer == *' foreign=0 '* ]] && within 20 is vf1 'churn 1' 'good=1 foreign=0 failed=0'
}
function_reset() {
	is vf0 alloc ok || return 1
	tell vf1 "churn $rounds"
	echo 1 >"$devices/$(vf 0)/reset" && is vf0 touch SIGBUS && works vf0 && churned vf1 && is vf0 free ok
}
error_fatal() {
	forget_log
	is pf alloc ok && is vf0 alloc ok && ask hmp 'pcie_aer_inject_error card0 DLP' || return 1
	within 60 logged 'device recovery successful' && is pf touch SIGBUS && is vf0 touch SIGBUS && works pf && works vf0 &&
		works vf1 && is pf free ok && is vf0 free ok && is vf1 free ok
}
error_nonfatal() {
	forget_log
	is pf alloc ok && ask hmp 'pcie_aer_inject_error card0 POISON_TLP' || return 1
	within 60 logged 'device recovery successful' && works pf && is pf free ok
}
# The kernel frees the driver's buffer, and the card writes there nevertheless. The IOMMU must refuse that.
refused() {
	local shown
	shown=$(ask card show)
	[[ $shown != *' refused=0 '* ]]
}
refuses_old_buffers() {
	local function status=0
	function=$(vf 0)
	works vf0 && is vf0 free ok && close vf0 && echo "$function" >/sys/bus/pci/drivers/npu/unbind || return 1
	# Lets the device be a bus master, as if only the IOMMU were in its way: bits 1, 2 and 10 of the command register.
	printf '\6\4' | dd of="$devices/$function/config" bs=1 seek=4 conv=notrunc status=none
	ask card again && within 60 refused || status=1
	echo "$function" >/sys/bus/pci/drivers/npu/bind && has_node "$function" && open vf0 "$function" && works vf0 &&
		is vf0 free ok && return "$status"
}
state_is() { [[ $(<"$devices/$pf/power/runtime_status") == "$1" ]]; }
sleeps() {
	is pf alloc ok && echo auto >"$devices/$pf/power/control" || return 1
	# The autosuspend delay is one second. Memory that a program may map keeps the function awake.
	sleep 3
	state_is active || { echo 'it sleeps with memory'; return 1; }
	is pf touch ok && is pf free ok && is pf trim ok && within 30 state_is suspended && works pf && is pf free ok
}
sriov_off() {
	is vf0 alloc ok && is vf1 alloc ok && sriov 0 && is vf0 touch SIGBUS && is vf0 copy ENODEV && is vf1 touch SIGBUS &&
		works pf && close vf0 && close vf1 && sriov 2 && has_node "$(vf 0)" && open vf0 "$(vf 0)" && works vf0
}
unplug() {
	is pf alloc ok && ask qmp '{"execute": "device_del", "arguments": {"id": "card0"}}' && within 60 absent "$pf" &&
		is pf touch SIGBUS && is pf copy ENODEV && is vf0 touch SIGBUS && close pf && close vf0
}
plug() {
	local command
	command=$(printf '{"execute": "device_add", "arguments": {"driver": "qcard", "id": "card0", "bus": "rp0", "dir": "%s"}}' \
		"$FLEXMEM_CARD")
	within 60 ask qmp "$command" && within 60 has_node "$pf" && open pf "$pf" && works pf && is pf free ok
}
gone() {
	reply_ms 1000
	is pf alloc ok && ask qmp '{"execute": "qom-set", "arguments": {"path": "/machine/peripheral/card0", "property": "gone", "value": true}}' &&
		is pf copy EIO ETIMEDOUT && echo 1 >"$devices/$pf/remove" && absent "$pf" && is pf copy ENODEV && close pf
}

echo 'TAP version 13'
modprobe -a "$(modinfo -F depends "$FLEXMEM_KO/flexmem.ko" | tr , ' ')" 2>/dev/null
check 'the driver takes the PF and two VFs' probes
open pf "$pf"
open vf0 "$(vf 0)"
open vf1 "$(vf 1)"
check 'the PF and both VFs work at once' all_churn
check 'the card moves bytes by DMA' moved_by_dma
check 'a card that clears nothing is noticed' clears_nothing
check 'a card that gives the memory of one function to another is noticed' same_memory
check 'the firmware dies and keeps the memory' survives_death
check 'the firmware dies and forgets all' forgotten
check 'replies are lost' loses_replies
check 'a VF is reset while another one works' function_reset
check 'a fatal error of the device (AER)' error_fatal
check 'an error of the device that is not fatal (AER)' error_nonfatal
if [[ -d /sys/class/iommu/dmar0 ]]; then
	check 'the IOMMU refuses a transfer to a buffer that was freed' refuses_old_buffers
fi
check 'the PF sleeps (D3hot) unless it has memory' sleeps
check 'SR-IOV is turned off with open maps, and on again' sriov_off
check 'the card is unplugged with open maps' unplug
check 'a card is plugged in' plug
check 'the card is gone without notice' gone
check 'the driver unloads' rmmod npu
rmmod flexmem
tap_end
