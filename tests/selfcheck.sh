#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the test scripts: they must notice whatever goes wrong in a guest or in a TAP stream. Prints TAP.
# usage: tests/selfcheck.sh [host]        host: only what needs no virtual machine
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/lib.sh"
work=$BUILD/selfcheck
rm -rf "$work"
mkdir -p "$work"

# counts 'P F S' STATUS STREAM: expects that tap.awk counts P passed, F failed and S skipped tests for a program with
# this output and exit status
counts() {
	local got
	got=$(printf '%b' "$3" | awk -v status="$2" -f "$TOP/tests/tap.awk")
	echo "$got"
	[[ ${got%%$'\n'*} == "$1" ]]
}
tap 'tap: ok and SKIP count' counts '1 0 1' 0 'TAP version 13\n1..2\nok 1 a\nok 2 b # SKIP none\n'
tap 'tap: not ok with SKIP fails' counts '1 1 0' 0 '1..2\nok 1 a\nnot ok 2 b # SKIP no device\n'
tap 'tap: not ok fails' counts '1 1 0' 0 '1..2\nok 1 a\nnot ok 2 b\n'
tap 'tap: a stream cut off fails' counts '2 1 0' 0 '1..3\nok 1 a\nok 2 b\n'
tap 'tap: a stream without a plan fails' counts '1 1 0' 0 'ok 1 a\n'
tap 'tap: no results at all fail' counts '0 1 0' 0 'hello\n'
tap 'tap: the exit status fails' counts '1 1 0' 3 '1..1\nok 1 a\n'
tap 'tap: Bail out! fails' counts '1 1 0' 0 '1..1\nok 1 a\nBail out! no device\n'
tap 'tap: only leaves count' counts '2 0 0' 0 'KTAP version 1\n1..1\n    1..2\n    ok 1 a\n    ok 2 b\nok 1 suite\n'
tap 'tap: a failed leaf counts once' counts '1 1 0' 0 '1..1\n    1..2\n    ok 1 a\n    not ok 2 b\nnot ok 1 suite\n'
tap 'tap: a sum that alone fails counts' counts '1 1 0' 0 '1..1\n    1..1\n    ok 1 a\nnot ok 1 suite\n'
tap 'tap: a nested stream cut off fails' counts '1 1 0' 0 '1..1\n# 1..2\n# ok 1 a\nok 1 suite\n'
tap 'tap: a second stream cut off fails' counts '2 1 0' 0 '1..1\nok 1 a\nTAP version 13\n1..2\nok 1 a\n'
tap 'tap: time stamps are ignored' counts '1 0 0' 0 '[    1.5] 1..1\n[    1.5] ok 1 a\n'

# counts_newer 'P F S' SERIES STATUS STREAM: expects that todo_if_newer prints a stream with these counts
counts_newer() {
	local got status=0
	# shellcheck disable=SC2016	# the inner shell expands it
	got=$(todo_if_newer "$2" bash -c 'printf %b "$1"; exit "$2"' - "$4" "$3") || status=$?
	echo "$got"
	got=$(awk -v status="$status" -f "$TOP/tests/tap.awk" <<<"$got" | head -n 1)
	echo "$got"
	[[ $got == "$1" ]]
}
newer=${passed_7%.*}.$((${passed_7#*.} + 1))
tap 'newer kernel: failures are TODO' counts_newer '0 0 2' "$newer" 1 '1..3\nok 1 a\nnot ok 2 b\nnot ok 3 c\n'
tap 'newer kernel: a machine that dies is TODO' counts_newer '0 0 1' "$newer" 97 'ok 1 a\n'
tap 'newer kernel: passed tests count' counts_newer '2 0 0' "$newer" 0 '1..2\nok 1 a\nok 2 b\n'
tap 'newer kernel: of the series that passed last, failures are failures' counts_newer '1 1 0' "$passed_7" 1 '1..2\nok 1 a\nnot ok 2 b\n'
tap 'newer kernel: a TODO names its series' grep -q "# TODO Linux $newer is newer" <(todo_if_newer "$newer" false)

# warns LINE: expects that splat.sh finds this line of a console
warns() { ! "$TOP/tests/vm/splat.sh" <(echo "$1"); }
tap 'splat: a warning' warns '[    1.5] WARNING: CPU: 0 PID: 1 at x.c:1 y'
tap 'splat: something deprecated that flexmem uses' warns '[    1.5] workqueue: flexmem_scrub uses system_unbound_wq, which is deprecated'
tap 'splat: something deprecated that others use' "$TOP/tests/vm/splat.sh" <(echo '[    1.5] usb: the parameter x is deprecated')

# shellcheck source=tests/selfcheck/host.sh
. "$TOP/tests/selfcheck/host.sh"
if [[ ${1:-} == host ]]; then
	tap_end
	exit
fi

# vm STATUS OPTION...: expects that run.sh ends with STATUS; its output stays in $work/vm
vm() {
	local want=$1 status=0
	shift
	"$TOP/tests/vm/run.sh" "$@" >"$work/stdout" 2>"$work/stderr" || status=$?
	echo "exit status $status, wanted $want"
	cat "$work/stderr"
	((status == want))
}
bare=(--no-load --no-build --out "$work/vm" --timeout 600)
# 4 MB of output are more than any pipe, terminal or buffer on the way can hold.
everything() {
	# shellcheck disable=SC2016	# the machine's shell expands it
	vm 7 6.12 "${bare[@]}" --stdin -- bash -c 'seq 600000; echo last words >&2; cat - /dev/stdin >$FLEXMEM_VM_OUT/input
		echo "$1" >$FLEXMEM_VM_OUT/f; exit 7' - "it's \$HOME" < <(seq 300000; sleep 15; seq 300000)
}
tap 'vm: brings back the exit status' everything
whole() { [[ $(md5sum <"$work/stdout") == "$(seq 600000 | md5sum)" ]]; }
tap 'vm: brings back all output' whole
tap 'vm: keeps stderr apart' grep -qx 'last words' "$work/stderr"
# shellcheck disable=SC2016	# must not be expanded
quoted() { [[ $(<"$work/vm/out/f") == "it's \$HOME" ]]; }
tap 'vm: quotes arguments and brings back files' quoted
tap 'vm: passes standard input on' cmp "$work/vm/out/input" <(seq 300000; seq 300000)
tap 'vm: gives a shell with a terminal' "$TOP/tests/vm/terminal.py"
tap 'vm: notices a panic' vm 97 6.12 "${bare[@]}" -- bash -c 'sync; echo 1 >/proc/sys/kernel/sysrq; echo c >/proc/sysrq-trigger; sleep 60'
if [[ ${FLEXMEM_LONG:-} ]]; then
	# The command must end although its input does not end.
	mkfifo "$work/never"
	exec {never}<>"$work/never"
	tap 'vm: waits for no end of its input' vm 0 6.1 "${bare[@]}" --stdin -- true <&"$never"
	tap 'vm: notices a splat of a stock kernel' vm 97 6.1 "${bare[@]}" -- bash -c 'echo "WARNING: CPU: 0 PID: 1 at x.c:1 y" >/dev/kmsg'
	tap 'vm: stops at its timeout' vm 124 6.12 "${bare[@]}" --timeout 10 -- sleep 1000
	tap 'vm: says so when the machine dies' vm 125 6.12 "${bare[@]}" -- /run/busybox reboot -f
	tap 'vm: says so when it does not come up' vm 97 6.12 "${bare[@]}" --tries 1 --append 'rdinit=/nothing' -- true
	tap 'vm: refuses modules that do not load' vm 95 6.12 "${bare[@]/--no-load/--no-build}" --load 'no_such_policy=1 order=nonsense' -- true
fi

bare+=(--timeout 1800)
broken() {
	rsync -a "$TOP/tests/vm/broken" "$work/" || return 1
	"$TOP/tests/vm/kbuild.sh" "$1" "$work/broken"
}
tap 'debug: builds the module that does wrong' broken debug
wrong() { vm "$1" debug "${bare[@]}" --append 'oops=panic' -- sh -c "insmod $work/broken/broken.ko faults=$2 && rmmod broken"; }
if [[ ${FLEXMEM_LONG:-} ]]; then
	# `make check` need not test that a run without faults passes, because each suite that passes on the debug
	# kernel shows that.
	tap 'debug: a run without faults passes' wrong 0 ''
	tap 'debug: a leak alone fails the run' wrong 96 l
fi
tap 'debug: faults fail the run' wrong 97 dswul
for words in 'possible circular locking dependency' 'scheduling while atomic\|sleeping function called' \
	'WARNING: CPU: .*broken' 'KASAN: slab-use-after-free' 'unreferenced object'; do
	tap "debug: shows '$words'" grep -q "$words" "$work/stderr"
done
tap_end
