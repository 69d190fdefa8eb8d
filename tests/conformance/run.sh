#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs in the guest. Shows that flexmem-conformance passes on the card in vmalloc memory and on the card with programs, and
# that it fails on a card with each defect, in the test that is about it. Prints TAP.
# usage: tests/vm/run.sh 6.12 --no-load -- tests/conformance/run.sh [DEFECT...]
#        default: the cards that conform; with FLEXMEM_LONG also all defects, and all tests meet each of them
#        before: make -C tests/selftests, tests/conformance/build.sh 6.12
set -uo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

here=$TOP/tests/conformance
cards=$BUILD/conformance/$FLEXMEM_KERNEL
# Each line: DEFECT, and the TEST that finds it
defects='
early_drain    a_release_drains
late_write     nothing_is_written_after_the_fence
misaligned     memory_is_acquired
overlap        no_two_blocks_share_bytes
wrong_size     memory_is_acquired
reused_id      no_two_blocks_share_bytes
not_cleared    the_next_owner_finds_zeroes
lost_reply     reads_return_what_was_written
sleeping_fault page_faults_do_not_wait
awake          nothing_is_accessed_while_it_is_suspended
no_watchdog    every_program_ends
reset_early    a_reset_ends_programs_and_frees_all_memory
reset_keeps    a_reset_ends_programs_and_frees_all_memory
'
out=$(mktemp)

# with MODULE [PARAMETER...] -- COMMAND...: runs a command while a card is loaded
with() {
	local module=("$1") status=0 node
	shift
	for ((; $#; )); do
		[[ $1 != -- ]] || { shift && break; }
		module+=("$1") && shift
	done
	dmesg -C
	insmod "$cards/${module[0]}.ko" "${module[@]:1}" || return 1
	node=$(echo /dev/flexmem[0-9]*)
	"$@" "$node" >"$out" 2>&1 || status=$?
	cat "$out"
	rmmod "${module[0]}" || status=3
	return "$status"
}

# as_the_guide_says: whether the card without a hook conforms partly, with the output that driver-guide.rst shows
as_the_guide_says() {
	local status=0
	with ram -- "$here/flexmem-conformance" || status=$?
	((status == 3)) &&
		diff -u <(sed -n '/^   TAP version 13/,/ conforms partly: /s/^   //p' "$TOP/Documentation/driver-guide.rst") "$out"
}
conforms() {
	with defects -- "$here/flexmem-conformance" --hook "$here/hook" &&
		grep -q '^# .* conforms: 15 checks passed, 0 skipped$' "$out"
}
# finds DEFECT TEST: whether TEST fails on a card with DEFECT
finds() {
	local status=0 only=(--test "$2")
	[[ ! ${FLEXMEM_LONG:-} ]] || only=()
	with defects "defect=$1" -- "$here/flexmem-conformance" --hook "$here/hook" "${only[@]}" || status=$?
	((status == 1)) && grep -q "^not ok .*\\.$2\$" "$out"
}

echo 'TAP version 13'
insmod "$FLEXMEM_KO/flexmem.ko" || exit 1
if ((!$#)); then
	tap 'the card in vmalloc memory conforms partly, and the guide shows it' as_the_guide_says
	tap 'the card with programs conforms' conforms
fi
while read -r defect test; do
	[[ $defect && ((! $* && ${FLEXMEM_LONG:-}) || " $* " == *" $defect "*) ]] || continue
	tap "$defect is found" finds "$defect" "$test"
done <<<"$defects"
rmmod flexmem
rm -f "$out"
tap_end
