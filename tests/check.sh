#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# All tests. A line per suite, the failures of it below, and at the very end "N passed, N failed, N skipped".
# usage: tests/check.sh [suite...]        default: all; FLEXMEM_LONG=1 for the long runs
# The whole output of each suite is kept as build/check/SUITE.tap and SUITE.err. The long runs are taken up where they ended:
# a suite that has passed is not run again as long as no file of the project changes.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/lib.sh"
cd "$TOP"

# Of ours only what says how to test: the rest is for real use, and would reach the programs in the machines.
for name in "${!FLEX@}"; do
	case ${name#FLEXMEM_} in
	ACCEL | BATCH | BATCHES | BITS | DEATHS | FUZZ_SECONDS | KILLS | LONG | OPS | SEED | SEQUENCE | TEST_TIMEOUT | UNBINDS) ;;
	*) unset "$name" ;;
	esac
done

long=${FLEXMEM_LONG:+4}
logs=$BUILD/check${long:+-long}
kinds=(6.12 6.1 debug)
# Only there to end what hangs: a machine that is merely slow is never too slow.
vm_timeout=$((5400 * ${long:-1}))
vm=(tests/vm/run.sh)
# One seed for the random tests, so that what fails here fails because of a change; the long runs draw one each.
[[ $long ]] || export FLEXMEM_SEED=${FLEXMEM_SEED:-1} CACHE_SEED=${CACHE_SEED:-1}

# Suites: name, and the command that prints TAP.
build_suite() {
	local make=(make "-j$(nproc)")
	tap 'library and command' "${make[@]}" -C userlib "O=$BUILD/userlib" all
	for tests in selftests torture faults fuzz; do
		tap "$tests" "${make[@]}" -C "tests/$tests" "O=$BUILD/$tests" all
	done
	tap 'programs over the driver' "${make[@]}" -C tests/userlib "O=$BUILD/tests/userlib" vm
	for kind in "${kinds[@]}"; do
		tap "modules for $kind" tests/vm/modules.sh "$kind"
	done
	tap_end
}
native_suite() { tests/native/run.sh; }
# Made for the long runs only: it needs a second compiler.
native-fuzz_suite() { tests/native/fuzz.sh "${FLEXMEM_FUZZ_SECONDS:-1800}"; }
# Ten of them; which, the hash of the tree says.
mutants_suite() {
	local some=(-n 10)
	[[ ! $long ]] || some=()
	tests/native/mutants.py "${some[@]}"
}
coverage_suite() { tests/native/coverage.sh; }
# Fifty million operations of the native torture under each; what has been done of them is not done again.
volume-asan_suite() { tests/native/volume.sh asan; }
volume-tsan_suite() { tests/native/volume.sh tsan; }
library_suite() {
	# Operations of each cache beside its model; and bugs of the list, which is read as a whole.
	[[ $long ]] || export CACHE_OPERATIONS=${CACHE_OPERATIONS:-1500} MUTANTS=${MUTANTS:-10}
	make -s -C tests/userlib "O=$BUILD/tests/userlib" check
}
static_suite() { tests/static.sh; }
# As static, but only what has changed: with native and library, that is `make quick`.
changed_suite() { tests/static.sh --changed; }
# Their commands as they are printed: what needs the driver runs in a machine, and of that all only in the long runs.
docs_suite() {
	local status=0 pages=(README.md 'install.rst:sudo systemd-sysusers')
	[[ ! $long ]] || pages=()
	# The guide's command builds a module as on a host.
	[[ ! $long ]] || tests/setup.sh btf || return 1
	make -s -C Documentation "O=$BUILD/docs" check || status=$?
	in_vm 6.12 --no-load --timeout "$vm_timeout" -- tests/vm/docs.sh "${pages[@]}" || status=$?
	return "$status"
}
# The first time it makes a Debian 13, which waits for the package mirror more than it computes.
torch_suite() { tests/torch/run.sh; }
# In a machine that has what the suite torch has built.
torch-driver_suite() {
	local vm=(tests/torch/run.sh "${vm[@]}")
	in_vm 6.12 --cpus 1 --no-load --timeout "$vm_timeout" -- tests/vm/torch.sh
}
# Every operator, with PyTorch's own samples.
torch-ops_suite() { tests/torch/run.sh env FLEXMEM_TORCH=host:16384 tests/torch/enter.sh python3 tests/torch/opinfo.py; }
# The newest PyTorch, from the same source.
torch-sid_suite() { FLEXMEM_TORCH_SUITE=sid tests/torch/run.sh; }
selfcheck_suite() { tests/selfcheck.sh; }
# The long random runs are native; here it is the real slab, lockdep and the real scheduler that count.
kunit=(tests/vm/kunit.sh ${FLEXMEM_SEED:+"seed=$FLEXMEM_SEED"})
[[ $long ]] || kunit+=(ops=2000 sampled_ops=5000)
kunit_suite() { in_vm debug --timeout "$vm_timeout" -- "${kunit[@]}"; }
# selftests KIND [ARGUMENT of tests/selftests/run.sh...]: those only if this is not the long run, which runs all of them
selftests() {
	local arguments=("${@:2}")
	[[ ! $long ]] || arguments=()
	in_vm "$1" --timeout "$vm_timeout" -- tests/selftests/run.sh "${arguments[@]}"
}
# As 32 bits: what the structs, addresses and files of a program have to do with. The others ask for nothing that these do not.
selftests-6.12_suite() {
	selftests 6.12 -exhaust/32 -placement/32 -races/32 -params/32 -unbind/32 -scrub/32 -firmware/32 \
		-dispatch/32 rw/32:lengths_and_offsets copy/32:lengths_and_offsets
}
# The kernels do not differ in calls of 32-bit programs, in copies of structs, in settings, in addresses, nor in what the card
# does to bytes.
selftests-6.1_suite() {
	[[ $long ]] || export FLEXMEM_BITS=64
	selftests 6.1 -1 -exhaust -placement -params -abi_size -scrub \
		rw:a_hole_in_what_is_written,a_hole_in_where_it_is_read_to,freed_while_it_is_copied \
		copy:a_waiting_caller_can_be_killed,freed_while_it_is_copied
}
# The debug kernel is emulated and slow. Only the long runs do the 32-bit half, each program with other settings, and tests that
# are the same on every kernel without races or failing allocations, or that move many bytes. Of some programs that leaves a few
# tests. If a test has a variant for a PF and one for a VF, which differ in slots only, the VF's is run. (Tests with other
# variants, such as races, run on a PF, too.)
selftests-debug_suite() {
	export FLEXMEM_TEST_TIMEOUT=${FLEXMEM_TEST_TIMEOUT:-3600} FLEXMEM_BITS="64${long:+ 32}"
	local alloc=fork_shares_the_file,last_close_of_a_shared_file_counts,a_killed_process_returns_everything
	alloc+=,a_process_killed_in_the_middle_returns_everything
	selftests debug -1 -V pf -params -abi_size -exhaust -placement -perm -rw "alloc:$alloc" \
		copy:a_waiting_caller_can_be_killed,freed_while_it_is_copied \
		limits:charges_end_with_close_and_kill,holds_at_every_moment resize:threads_with_one_handle \
		segments:ends_when_its_holder_is_killed,an_expired_lease_is_none,a_renewed_lease_has_its_full_time \
		snapshot:uids_and_pids_are_as_the_caller_sees_them,adds_up_under_churn
}
# hostile COMMAND...: many tenants at once, each failing allocation in turn, and nonsense: DESIGN's levels "faults" and "races".
# By the million that is native. To boot the debug kernel and to have it look for leaks takes half a minute: `make check` does
# that once for all three of them, and kunit.
hostile() {
	local ops=2000
	[[ ! $long ]] || ops=50000
	export FLEXMEM_OPS=${FLEXMEM_OPS:-$ops} FLEXMEM_BATCHES=${FLEXMEM_BATCHES:-${long:+4}20}
	# shellcheck disable=SC2016	# the machine's shell expands it
	in_vm debug --cpus 4 --no-load --timeout "$((vm_timeout * ${long:-1}))" -- \
		bash -c 'for command; do $command || status=$?; done; exit ${status:-0}' - "$@"
}
debug_suite() { hostile "${kunit[*]}" tests/torture/run.sh tests/fuzz/run.sh tests/faults/run.sh; }
torture_suite() { hostile tests/torture/run.sh; }
fuzz_suite() { hostile tests/fuzz/run.sh; }
faults_suite() { hostile tests/faults/run.sh; }
# The same under the kernel that looks for data races, which is made for the long runs only.
torture-kcsan_suite() {
	export FLEXMEM_OPS=${FLEXMEM_OPS:-500000}
	in_vm kcsan --cpus 4 --no-load --timeout "$vm_timeout" -- tests/torture/run.sh
}
cache_suite() { in_vm 6.12 --no-load --timeout "$vm_timeout" -- tests/vm/cache.sh; }
replay_suite() { in_vm 6.12 --no-load --timeout "$vm_timeout" -- tests/vm/replay.sh; }
in_vm() {
	local kind=$1
	shift
	"${vm[@]}" "$kind" --no-build --leaps --out "$logs/vm-$suite" "$@"
}

# processors: the seconds of them that this shell has taken, and what it has waited for, into its caller's spent.
processors() {
	times >"$logs/$suite.times"
	spent=$(awk '{ for (i = 1; i <= 2; i++) { split($i, t, "m"); s += 60 * t[1] + t[2] } } END { printf "%d", s }' "$logs/$suite.times")
}
# run SUITE: runs it and writes SUITE.result, "PASSED FAILED SKIPPED" and its failures, and SUITE.cpu; says how it went.
run() {
	local suite=$1 status=0 begin=$SECONDS passed failed skipped spent before
	processors
	before=$spent
	echo "begins: $suite"
	"${suite}_suite" >"$logs/$suite.tap" 2>"$logs/$suite.err" || status=$?
	if ((status == 98)); then
		echo "$suite: the clock of its machine jumped, once more" | tee -a "$VM_TRIES"
		status=0
		"${suite}_suite" >"$logs/$suite.tap" 2>"$logs/$suite.err" || status=$?
	fi
	awk -v status="$status" -f tests/tap.awk "$logs/$suite.tap" >"$logs/$suite.new"
	read -r passed failed skipped <"$logs/$suite.new"
	processors
	echo $((spent - before)) >"$logs/$suite.cpu"
	{
		printf '%-16s %6d passed %4d failed %4d skipped %5d s, of processors %5d s\n' \
			"$suite" "$passed" "$failed" "$skipped" $((SECONDS - begin)) $((spent - before))
		if ((failed)); then
			sed '1d; s/^/    /' "$logs/$suite.new" | head -n 40
			# Its diagnostics are before its result, or behind it.
			awk '/^#/ { said = (said ? said "\n" : "") $0; if (left-- > 0) print; next }
				/^[ ]*not ok/ { n = split(said, line, "\n"); for (i = n > 12 ? n - 11 : 1; i <= n; i++) print line[i]; left = 20 }
				/^[ ]*ok/ { left = 0 } { said = "" }' "$logs/$suite.tap" | head -n 40 | sed 's/^/    /'
			tail -n 5 "$logs/$suite.err" | sed 's/^/    | /'
			echo "    see ${logs#"$TOP/"}/$suite.tap and $suite.err"
		fi
	} >"$logs/$suite.said"
	# In one piece: another suite may end at the same moment.
	cat "$logs/$suite.said"
	mv "$logs/$suite.new" "$logs/$suite.result"
	[[ ! $long ]] || echo "$tree" >"$logs/$suite.tree"
}
# passed_before SUITE: in a long run of the same tree.
passed_before() {
	[[ $long && $tree && -e $logs/$1.tree && $(<"$logs/$1.tree") == "$tree" ]] && grep -q '^[0-9]* 0 ' "$logs/$1.result"
}

# Longest first, apart from what others need.
if [[ $long ]]; then
	all=(build torch selftests-6.12 selftests-debug native kunit selfcheck docs)
	all+=(torture torture-kcsan volume-tsan volume-asan native-fuzz torch-ops torch-sid faults fuzz coverage)
else
	all=(build torch selftests-6.12 debug selftests-debug native selfcheck docs)
fi
all+=(library selftests-6.1 static torch-driver replay mutants cache)
(($#)) || set -- "${all[@]}"
# If this script ends early for any reason, its last line says that it has failed.
trap '(($? == 0)) || echo "0 passed, 1 failed, 0 skipped"' EXIT
for suite; do
	declare -F -- "${suite}_suite" >/dev/null ||
		die "no suite '$suite': $(declare -F | sed -n 's/^declare -f \(.*\)_suite$/\1/p' | xargs)"
done
# A kernel of its own, for one suite.
[[ " $* " != *' torture-kcsan '* ]] || kinds+=(kcsan)
# Suites in a machine run what was built last, here too.
for suite; do
	case $suite in
	build | library | static | native | native-fuzz | mutants | coverage | volume-* | changed | torch | torch-ops | torch-sid) ;;
	*)
		[[ " $* " == *' build '* ]] || set -- build "$@"
		break ;;
	esac
done
tree=$(project_hash)
[[ $long ]] || rm -rf "$logs"
mkdir -p "$logs"
export VM_TRIES=$logs/tries
rm -f "$VM_TRIES"

# Prerequisites of the suites: some suites need neither kernels nor machines, and are not kept waiting for them. A machine is booted before
# they start side by side.
machines='' sources=''
for suite; do
	[[ $suite == @(library|torch|torch-ops|torch-sid) ]] || sources=1
	[[ $suite == @(native|native-fuzz|mutants|coverage|volume-*|library|changed|torch|torch-ops|torch-sid) ]] || machines=1
done
# The suite torch needs root for what it fetches. It runs in the background, where sudo could not ask for a password.
ask_for_root() {
	((EUID)) && [[ " $* " == *' torch'* ]] || return 0
	need_root 'tests/torch/root.sh'
	export SUDO_ASKS_NOT=1
	sudo -n true 2>/dev/null || {
		say 'PyTorch comes as a Debian 13 of its own, which only root can make: sudo asks for your password.'
		sudo -v || return 1
	}
	# sudo forgets it after some minutes. Not a job, as the end waits for all of those.
	while sleep 60 && kill -0 $$; do sudo -n -v; done </dev/null >/dev/null 2>&1 &
	disown
}
set_up() {
	local kind
	ask_for_root "$@" || return 1
	if [[ " $* " == *' torch '* && ! -e $BUILD/torch/root.made ]]; then
		tests/setup.sh torch || return 1
		say "The suite torch makes a Debian 13 with PyTorch, once: 300 MB to fetch, 3 to 8 minutes"
	fi
	if [[ ! $machines ]]; then
		tests/setup.sh build check || return 1
		# Its output appears here, and not in a suite.
		[[ ! $sources ]] || tests/vm/debug-kernel.sh --source
		return
	fi
	tests/setup.sh build vm debug check || return 1
	for kind in "${kinds[@]}"; do
		tests/vm/kernel.sh "$kind" || return 1
	done
	"${vm[@]}" 6.12 --no-load --no-build --timeout 600 -- true || {
		say 'no virtual machine comes up'
		return 1
	}
}
set_up "$@" || exit 1

# The build comes first and runs alone; then one suite more at a time than there are processors, as each waits now
# and then: for a machine that boots, for time to pass in it.
# Each suite is a process group of its own, so that an interrupt takes its machines along.
set -m
stop() {
	local group
	for group in $(jobs -p); do
		kill -- "-$group" 2>/dev/null || true
	done
	exit 130
}
trap stop INT TERM
running=0
at_once=$(($(nproc) + 1))
for suite; do
	if [[ $suite == build ]]; then
		run "$suite"
		continue
	fi
	if passed_before "$suite"; then
		sed '1s/$/, before/' "$logs/$suite.said"
		continue
	fi
	rm -f "$logs/$suite".{result,tree}
	if ((running >= at_once)); then
		wait -n || true
		running=$((running - 1))
	fi
	run "$suite" &
	running=$((running + 1))
done
wait

if [[ -s $VM_TRIES ]]; then
	echo "booted again: $(wc -l <"$VM_TRIES")"
	sed "s|$TOP/||; s/^/    /" "$VM_TRIES"
fi
passed=0 failed=0 skipped=0 spent=0
for suite; do
	# A suite without a result did not even get to its end.
	read -r p f s <"$logs/$suite.result" 2>/dev/null || { p=0 f=1 s=0 && echo "$suite: no result"; }
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	spent=$((spent + $(cat "$logs/$suite.cpu" 2>/dev/null || echo 0)))
done
echo "all of them: $SECONDS s, of processors $spent s"
trap - EXIT
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0 && passed))
