#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs all tests. Prints a line for each suite, with its failures below, and at the end "N passed, N failed, N skipped".
# usage: tests/check.sh [suite...]        default: all; FLEXMEM_LONG=1 for the long runs
#        tests/check.sh --plan            prints the table of the suites
# The whole output of each suite is kept in build/check/SUITE.tap and SUITE.err. Interrupted long runs continue where
# they ended: a suite that has passed is not run again as long as no file of the project changes.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/lib.sh"
cd "$TOP"

# Removes all settings from the environment, except those of the tests, because the tested programs would read them.
for name in "${!FLEX@}"; do
	case ${name#FLEXMEM_} in
	ACCEL | BITS | DEATHS | FUZZ_SECONDS | KILLS | LONG | OPS | SEED | SEQUENCE | TEST_TIMEOUT | UNBINDS) ;;
	*) unset "$name" ;;
	esac
done

long=${FLEXMEM_LONG:+4}
logs=$BUILD/check${long:+-long}
kinds=(6.12 6.1 7 debug)
# A virtual machine that runs for this many seconds hangs: no suite takes so long, even on a slow machine.
vm_timeout=$((5400 * ${long:-1}))
vm=(tests/vm/run.sh)
# A fixed seed, so that only a change can make a random test fail. The long runs draw seeds.
[[ $long ]] || export FLEXMEM_SEED=${FLEXMEM_SEED:-1} CACHE_SEED=${CACHE_SEED:-1}

# The suites, in the order in which they begin: first those that others need, then the longest ones. A row has the
# suite, what it tests, where it runs, what `make check` runs of it, and what `make check-long` runs more. A suite with
# "no" does not belong to that run. testing.rst has a copy of this table (Documentation/copies.py).
plan() {
	cat <<'PLAN'
* - suite
  - what
  - where
  - check
  - long
* - ``build``
  - modules for four kernels, the library, the self tests
  - here
  - all
  - one kernel more
* - ``torch``
  - models train in flexmem's memory as on the CPU, bit for bit; without the driver
  - here, in a Debian 13 that is made once below ``build/torch``; see below
  - all
  - nothing
* - ``selftests-6.12``
  - every ioctl through the real driver and the simulator
  - 6.12, as 64 and as 32 bits
  - leaves out all settings but the first; the 32-bit runs of programs whose structs and addresses other programs test,
    too (``exhaust``, ``placement``, ``races``, ``params``, ``unbind``, ``scrub``, ``firmware``, ``dispatch``,
    ``conformance``, ``pressure``, ``domains``, ``hotplug``, ``trace``); and most 32-bit runs of ``abi_size``, ``rw`` and
    ``copy``
  - all programs as 32 bits, with all settings
* - ``debug``
  - ``kunit``, ``torture`` and ``faults`` in one machine
  - debug kernel, 4 processors
  - all that ``make check`` runs of the three
  - no: the three suites instead
* - ``selftests-debug``
  - every ioctl, with the kernel's checks
  - debug kernel
  - on a VF, which has slots as well, the tests in which the kernel's checks could find what they do not find in
    ``debug``: threads or processes in each other's way, kills, files and maps that outlive what they refer to, a driver or
    a device that goes
  - all programs as 64 and 32 bits, with all settings
* - ``native``
  - the driver's core itself, built for user space: all of ``kunit``, and more; see below
  - here, under ASan and UBSan and under TSan
  - leaves out most random operations, under TSan most of a single task, and most points at which another task may act
  - ``faults -p`` at each point; the random operations
* - ``kunit``
  - blocks, regions, slots, placement, clients: one by one, and at random against a model
  - debug kernel
  - no: in ``debug``, without most random operations
  - 200,000 random operations with each pair of ``order`` and ``strategy``
* - ``selfcheck``
  - the tests' own tools: they notice a splat, a leak, a lost result
  - here and in all kernels
  - leaves out two runs of the debug kernel (one without a fault, and one whose only fault is a leak), and guests that
    die, hang, or refuse the modules
  - a boot of the debug kernel more; these guests
* - ``docs``
  - these pages: they build, and name things that exist; README's commands as printed; rights to open a node
  - here, and 6.12
  - leaves out the commands of all pages but README and the installation, and the removal of installed files
  - all pages' commands
* - ``torture``
  - tenants of three users, hostile to each other, on hardware that fails
  - debug kernel, 4 processors
  - no: in ``debug``, some thousand calls
  - 50,000 operations of the torture
* - ``torture-kcsan``
  - the same, looking for data races
  - a kernel of its own, 4 processors
  - no
  - the whole suite: 500,000 operations
* - ``volume-tsan``
  - the native torture under TSan
  - here
  - no
  - the whole suite: as ``volume-asan``
* - ``volume-asan``
  - the native torture under ASan and UBSan
  - here
  - no
  - the whole suite: fifty million operations, in fifty pieces
* - ``native-fuzz``
  - the core against a model of it, with inputs of libFuzzer
  - here, under ASan and UBSan
  - no
  - the whole suite: half an hour, or ``FLEXMEM_FUZZ_SECONDS``
* - ``torch-ops``
  - every operator, with PyTorch's own samples
  - as ``torch``
  - no
  - the whole suite
* - ``torch-sid``
  - ``torch`` with the newest PyTorch
  - in a Debian sid below ``build/torch-sid``
  - no
  - the whole suite; skipped, with the reason, if sid cannot be had
* - ``faults``
  - each allocation, user copy and firmware call of each sequence fails in turn
  - debug kernel, 4 processors
  - no: in ``debug``, without half the bytes of large copies
  - four settings of the driver; larger copies
* - ``coverage``
  - the lines of the core that the native programs run
  - here
  - no
  - the whole suite
* - ``pictures``
  - pages of ``flexmem map`` in Chromium, at two widths, light and dark
  - here
  - no
  - the whole suite
* - ``operate``
  - the installed command, the commands of the units, the hook of containers
  - 6.12
  - no
  - the whole suite: 1,000 commands, with kills at random
* - ``library``
  - libflexmem and the command, over a simulated driver
  - here, under ASan and UBSan, and threads under TSan
  - leaves out 5/6 of the random operations that compare the cache with its model, and all but five planted bugs
  - all of them
* - ``deb``
  - the Debian packages: they build, and have all that ``make install`` has
  - here
  - leaves out lintian
  - lintian
* - ``selftests-7``
  - every ioctl through the real driver and the simulator
  - 7, as 64 bits
  - leaves out all 32-bit tests, all settings but the first, variants for a PF that differ from those for a VF only in
    slots, and tests with a result that does not depend on the kernel's series (``params``, ``exhaust``, ``placement``,
    ``abi_size``, ``scrub``, ``domains``, ``pressure``, ``conformance``, ``batch``, ``segments``, most of ``dispatch``,
    ``firmware``, ``rw``, ``copy`` and ``resize``)
  - all programs as 64 and 32 bits, with all settings
* - ``selftests-6.1``
  - every ioctl through the real driver and the simulator
  - 6.1, as 64 bits
  - ``map``, ``memcg`` and ``unbind``, which run through code that ``compat.h`` has for older kernels
  - all programs as 64 and 32 bits, with all settings
* - ``static``
  - W=1, sparse, checkpatch, kernel-doc, shellcheck, codespell
  - here
  - leaves out W=1 and sparse for 6.12 and 6.1
  - W=1 and sparse for 6.12 and 6.1
* - ``torch-driver``
  - a model in a VF's memory, over the driver; two processes that share it; a forked worker; a reset
  - 6.12, 1 processor
  - the model in C++
  - the models and tests in Python
* - ``replay``
  - the traces, through library, driver and simulator
  - 6.12
  - all
  - nothing
* - ``conformance``
  - ``flexmem-conformance`` accepts the cards that conform, and finds each card's defect
  - 6.12; in the long runs 6.1, too
  - leaves out 6.1, and the cards with a defect
  - the cards with defects; 6.1
* - ``suspend``
  - the system sleeps while a map is open (``/sys/power/pm_test``)
  - 6.12, 6.1 and 7, with ``tests/vm/suspend.c`` as the only process
  - all
  - nothing
* - ``qcard``
  - the example driver on a PCIe card with SR-IOV, which is a process of its own: errors, resets, D3hot, hotplug
    (:doc:`card`)
  - 6.12; in the long runs 6.1 and 7, too
  - leaves out most rounds, and the card behind an IOMMU
  - 6.1 and 7; more rounds; the card behind an IOMMU
* - ``mutants``
  - bugs planted in the core, each of which a native program must notice
  - here
  - five of them; a hash of the sources chooses them
  - all planted bugs of the core
* - ``cache``
  - the caching allocator over the real driver; two processes, of which one makes room for the other
  - 6.12
  - all
  - what a tenant that fails costs, in instructions
* - ``changed``
  - what ``static`` tests, of changed files only; no module is built
  - here
  - no: in ``make quick``
  - no
PLAN
}
# suites check|long: prints the suites of a run, by the name of its column
suites() {
	plan | awk -v column="$1" '
		/^\* - / { name = $3; cell = 1 }
		/^  - / && ++cell && $2 == column && name == "suite" { wanted = cell }
		/^  - / && cell == wanted && $2 !~ /^no:?$/ && gsub(/`/, "", name) { print name }'
}
if [[ ${1:-} == --plan ]]; then
	plan
	exit
fi

# The suites. Each has a command that prints TAP.
build_suite() {
	local make=(make "-j$(nproc)")
	tap 'library and command' "${make[@]}" -C userlib "O=$BUILD/userlib" all
	for tests in selftests torture faults; do
		tap "$tests" "${make[@]}" -C "tests/$tests" "O=$BUILD/$tests" all
	done
	tap 'programs over the driver' "${make[@]}" -C tests/userlib "O=$BUILD/tests/userlib" vm
	[[ ! $long ]] || tap 'what a tenant that fails costs' "${make[@]}" -C tests/bench "O=$BUILD/tests/bench" failing
	for kind in "${kinds[@]}"; do
		if [[ $kind != 7 ]]; then
			tap "modules for $kind" tests/vm/modules.sh "$kind"
		elif [[ $lacks_7 ]]; then
			tap_skip 'modules and example drivers for 7' "$lacks_7"
		else
			tap_build_7 'modules for 7' tests/vm/modules.sh
			tap_build_7 'example drivers for 7' tests/conformance/build.sh
		fi
	done
	tap_end
}

# on_7 COMMAND...: runs a suite's command that needs kernel 7. If that kernel cannot be fetched, prints that the command
# is skipped. If the archive has moved on to a newer series than the last that passed, failures are TODO.
on_7() {
	if [[ $lacks_7 ]]; then
		echo "1..0 # SKIP $lacks_7"
	else
		todo_if_newer "$(kernel_series 7)" "$@"
	fi
}
native_suite() { tests/native/run.sh; }
# Only in the long runs, because it needs a second compiler.
native-fuzz_suite() { tests/native/fuzz.sh "${FLEXMEM_FUZZ_SECONDS:-1800}"; }
# Five planted bugs, chosen by the hash of the tree.
mutants_suite() {
	local some=(-n 5)
	[[ ! $long ]] || some=()
	tests/native/mutants.py "${some[@]}"
}
coverage_suite() { tests/native/coverage.sh; }
# Fifty million operations of the native torture, in pieces. A piece that this program has passed is not run again.
volume-asan_suite() { tests/native/volume.sh asan; }
volume-tsan_suite() { tests/native/volume.sh tsan; }
library_suite() {
	# How many operations the model test makes, and how many planted bugs are tried.
	[[ $long ]] || export CACHE_OPERATIONS=${CACHE_OPERATIONS:-500} MUTANTS=${MUTANTS:-5}
	make -s -C tests/userlib "O=$BUILD/tests/userlib" check
}
# The pages of `flexmem map` in a browser. Only in the long runs, because it needs Chromium.
pictures_suite() {
	local out=$BUILD/tests/userlib
	tests/setup.sh pictures >&2 || return 1
	make -s -C tests/userlib "O=$out" "$out/flexmem-fake" "$out/recorded" >&2 || return 1
	BUILD=$out tests/userlib/test_pictures.py
}
static_suite() { tests/static.sh; }
# Like the suite static, but only for changed files. `make quick` runs the suites changed, native and library.
changed_suite() { tests/static.sh --changed; }
# Runs the commands that the documentation shows. Commands that need the driver run in a virtual machine: those of two
# pages, or in a long run those of all pages.
docs_suite() {
	local status=0 pages=(README.md 'install.rst:sudo systemd-sysusers')
	[[ ! $long ]] || pages=()
	# A command in the driver guide builds a module, which needs pahole for BTF.
	[[ ! $long ]] || tests/setup.sh btf || return 1
	make -s -C Documentation "O=$BUILD/docs" check || status=$?
	in_vm 6.12 --no-load --timeout "$vm_timeout" -- tests/vm/docs.sh "${pages[@]}" || status=$?
	return "$status"
}
# with_root COMMAND...: runs a suite's command that enters a Debian of its own, which only root can
with_root() {
	if [[ $lacks_root ]]; then
		echo "1..0 # SKIP $lacks_root"
	else
		"$@"
	fi
}
# The first run installs a Debian 13 system. The download from the package mirror takes long.
torch_suite() { with_root tests/torch/run.sh; }
# Runs in a virtual machine, with the files that the suite torch has built.
torch-driver_suite() {
	local vm=(tests/torch/run.sh "${vm[@]}")
	with_root in_vm 6.12 --cpus 1 --no-load --timeout "$vm_timeout" -- tests/vm/torch.sh
}
# Every operator, with PyTorch's own samples.
torch-ops_suite() { with_root tests/torch/run.sh env FLEXMEM_TORCH=host:16384 tests/torch/enter.sh python3 tests/torch/opinfo.py; }
# The newest PyTorch, from Debian sid.
torch-sid_suite() { FLEXMEM_TORCH_SUITE=sid with_root tests/torch/run.sh; }
deb_suite() { tests/deb/run.sh; }
selfcheck_suite() { tests/selfcheck.sh; }
# The native programs make the long random runs. The KUnit runs are short, with the real slab, lockdep and scheduler.
kunit=(tests/vm/kunit.sh ${FLEXMEM_SEED:+"seed=$FLEXMEM_SEED"})
[[ $long ]] || kunit+=(ops=500 sampled_ops=1000 scrub_ops=1000 thread_ops=500 share_ops=300 histories=10)
kunit_suite() { in_vm debug --timeout "$vm_timeout" -- "${kunit[@]}"; }
# selftests KIND [ARGUMENT...]: runs tests/selftests/run.sh; the arguments choose tests, unless this is a long run
selftests() {
	local arguments=("${@:2}")
	[[ ! $long ]] || arguments=()
	in_vm "$1" --timeout "$vm_timeout" -- tests/selftests/run.sh "${arguments[@]}"
}
# Runs each program with its first settings only. Of the 32-bit tests only those of structs, addresses and files run.
# The others would repeat the 64-bit tests.
selftests-6.12_suite() {
	selftests 6.12 -1 -exhaust/32 -placement/32 -races/32 -params/32 -unbind/32 -scrub/32 -firmware/32 \
		-dispatch/32 -conformance/32 -pressure/32 -domains/32 -hotplug/32 -trace/32 \
		abi_size/32:exact_size_passes,struct_across_end_of_mapping_is_efault,high_half_of_pointer_counts \
		rw/32:lengths_and_offsets copy/32:lengths_and_offsets
}
# Runs what depends on the kernel, on a VF if a test's variants for a PF and for a VF differ only in slots. Leaves out
# tests whose result does not: 32-bit programs, copies of structs, settings, addresses, commands of the firmware, and
# what the card does to bytes.
selftests-7_suite() {
	[[ $long ]] || export FLEXMEM_BITS=64
	on_7 selftests 7 -1 -V pf -exhaust -placement -params -abi_size -scrub -domains -pressure -conformance \
		-batch -segments \
		dispatch:a_program_outlives_its_process,a_program_does_not_run_for_ever,a_driver_goes_under_its_programs \
		firmware:a_dead_firmware_is_etimedout,a_waiting_caller_can_be_killed \
		rw:a_hole_in_what_is_written,a_hole_in_where_it_is_read_to,freed_while_it_is_copied \
		copy:a_waiting_caller_can_be_killed,freed_while_it_is_copied \
		resize:mapped_allocation_is_busy,threads_with_one_handle
}
# Runs only what goes through code that compat.h has for older kernels: nodes, maps, the removal of a device, work in the
# background. The long runs run all.
selftests-6.1_suite() {
	[[ $long ]] || export FLEXMEM_BITS=64
	selftests 6.1 -1 -V pf map memcg unbind
}
# The debug kernel is emulated and slow. So only tests run here in which the kernel's checks could find something that
# they do not find in the suite debug, which sweeps the failures of each command: threads or processes in each other's
# way, kills, files and maps that outlive what they refer to, a driver or a device that goes. The variant for a VF runs,
# which has slots as well. The long runs run all.
selftests-debug_suite() {
	export FLEXMEM_TEST_TIMEOUT=${FLEXMEM_TEST_TIMEOUT:-3600} FLEXMEM_BITS="64${long:+ 32}"
	local chosen=(containers
		'races:snapshots_are_of_one_moment,threads_on_one_file,exactly_one_free_of_a_handle_wins'
		'races:close_while_others_call,trim_while_others_allocate,regions_are_acquired_once'
		'unbind:bind_gives_a_fresh_device,while_others_call,open_during_unbind,a_dead_firmware_keeps_nothing'
		'unbind:module_of_the_device_can_be_removed_under_open_files,flexmem_itself_stays_while_a_file_is_open'
		'hotplug:functions_come_and_go,a_function_goes_under_its_users,functions_go_while_others_call'
		hotplug:the_card_goes_under_its_users
		'map:fork_shares_the_map,memory_freed_while_mapped_keeps_its_bytes,last_unmapped_part_frees_the_allocation'
		'map:a_killed_process_leaves_no_orphans,close_before_munmap,cannot_be_pinned'
		map:revocation_reaches_other_inodes_of_the_node
		'map:sigbus_after_reset,sigbus_after_unbind,faults_race_with_reset_and_munmap'
		'space:memory_stays_while_it_is_bound,a_killed_process_leaves_nothing,memory_waits_for_the_firmware,a_reset_unmaps'
		'reset:lost_handles_can_be_looked_up_and_freed,with_a_dead_firmware,after_bytes_that_may_still_move,under_load'
		'dispatch:a_program_outlives_its_process,a_reset_ends_programs,a_driver_goes_under_its_programs'
		'firmware:many_faults_leave_all_memory_usable,a_waiting_caller_can_be_killed,a_slow_firmware_stops_only_its_callers'
		'pressure:every_file_gets_each_event_once,exclusive_pollers_all_wake_up,hangup_when_the_device_goes'
		'scrub:after_a_kill,after_a_reset,a_batch_goes_on_after_a_failed_scrub,a_waiting_caller_can_be_killed'
		'alloc:fork_shares_the_file,last_close_of_a_shared_file_counts,a_killed_process_returns_everything'
		alloc:a_process_killed_in_the_middle_returns_everything
		batch:killed_in_a_batch_returns_everything
		'copy:a_waiting_caller_can_be_killed,freed_while_it_is_copied'
		'limits:charges_end_with_close_and_kill,holds_at_every_moment'
		'reserve:trim_and_reset_leave_it,ends_with_the_cgroup'
		resize:threads_with_one_handle
		'snapshot:uids_and_pids_are_as_the_caller_sees_them,adds_up_under_churn'
		'trace:a_reset_with_an_allocation,one_allocation_and_one_job')
	selftests debug -1 -V pf "${chosen[@]}"
}
# Runs the conformance tests on cards that no other test uses. The long runs include kernel 6.1 and cards with defects.
conformance_suite() {
	local kind status=0
	for kind in 6.12 ${long:+6.1}; do
		tests/conformance/build.sh "$kind" || return 1
		in_vm "$kind" --no-load --timeout "$vm_timeout" -- tests/conformance/run.sh || status=$?
	done
	return "$status"
}
# The system sleeps while a map is open.
suspend_suite() {
	local kind status=0
	for kind in 6.12 6.1; do
		tests/vm/suspend.sh "$kind" || status=$?
	done
	on_7 tests/vm/suspend.sh 7 || status=$?
	return "$status"
}
# The example driver on a PCIe card, which is a process on the host. The long runs put the card behind an IOMMU, too.
qcard_suite() {
	local kind status=0 vm=(tests/card/run.sh)
	if [[ $lacks_headers ]]; then
		echo "1..0 # SKIP $lacks_headers"
		return
	fi
	for kind in 6.12 ${long:+6.1}; do
		tests/card/build.sh "$kind" && qcards "$kind" || status=$?
	done
	if [[ $long && ! $lacks_7 ]]; then
		tests/card/build.sh 7 || status=$?
	fi
	[[ ! $long ]] || on_7 qcards 7 || status=$?
	return "$status"
}
qcards() {
	local status=0
	in_vm "$1" --timeout "$vm_timeout" -- tests/card/qcard.sh || status=$?
	[[ ! $long ]] || in_vm "$1" --iommu --timeout "$vm_timeout" -- tests/card/qcard.sh || status=$?
	return "$status"
}
# hostile COMMAND...: runs commands (the torture, the fault sweep, kunit) in one machine with the debug kernel. The
# native suites run millions of such operations without a machine. Booting the debug kernel and searching for leaks takes
# half a minute, so `make check` boots it only once for all three commands.
hostile() {
	local ops=2000
	[[ ! $long ]] || ops=50000
	export FLEXMEM_OPS=${FLEXMEM_OPS:-$ops}
	# shellcheck disable=SC2016	# the machine's shell expands it
	in_vm debug --cpus 4 --no-load --timeout "$((vm_timeout * ${long:-1}))" -- \
		bash -c 'for command; do $command || status=$?; done; exit ${status:-0}' - "$@"
}
debug_suite() { hostile "${kunit[*]}" tests/torture/run.sh tests/faults/run.sh; }
torture_suite() { hostile tests/torture/run.sh; }
faults_suite() { hostile tests/faults/run.sh; }
# Runs the torture with the kernel that detects data races. Only in the long runs.
torture-kcsan_suite() {
	export FLEXMEM_OPS=${FLEXMEM_OPS:-500000}
	in_vm kcsan --cpus 4 --no-load --timeout "$vm_timeout" -- tests/torture/run.sh
}
# The long runs also count instructions, in a machine whose clock counts them.
cache_suite() {
	local status=0
	in_vm 6.12 --no-load --timeout "$vm_timeout" -- tests/vm/cache.sh || status=$?
	[[ ! $long ]] || FLEXMEM_ACCEL=icount in_vm 6.12 --cpus 1 --no-load --timeout "$vm_timeout" -- tests/vm/failing.sh ||
		status=$?
	return "$status"
}
# What an operator uses, as `make install` installs it; at last 1,000 commands, with kills at random. Only in the long
# runs, because the machine needs three minutes of processor time without these. `make check` has the suite library.
operate_suite() {
	local tree=$BUILD/operate
	rm -rf "$tree"
	quietly "$BUILD/log/operate" make -s -C userlib "O=$BUILD/userlib" "DESTDIR=$tree" prefix=/usr install || return 1
	in_vm 6.12 --no-load --timeout "$vm_timeout" -- tests/vm/operate.sh 125
}
replay_suite() { in_vm 6.12 --no-load --timeout "$vm_timeout" -- tests/vm/replay.sh; }
in_vm() {
	local kind=$1
	shift
	"${vm[@]}" "$kind" --no-build --leaps --out "$logs/vm-$suite" "$@"
}

# processors: sets the caller's variable spent to the processor seconds of this shell and of its finished children
processors() {
	times >"$logs/$suite.times"
	spent=$(awk '{ for (i = 1; i <= 2; i++) { split($i, t, "m"); s += 60 * t[1] + t[2] } } END { printf "%d", s }' "$logs/$suite.times")
}
# run SUITE: runs it; writes SUITE.result ("PASSED FAILED SKIPPED", failures) and SUITE.cpu; prints a summary
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
			# Diagnostics may come before the result or after it.
			awk '/^#/ { said = (said ? said "\n" : "") $0; if (left-- > 0) print; next }
				/^[ ]*not ok/ { n = split(said, line, "\n"); for (i = n > 12 ? n - 11 : 1; i <= n; i++) print line[i]; left = 20 }
				/^[ ]*ok/ { left = 0 } { said = "" }' "$logs/$suite.tap" | head -n 40 | sed 's/^/    /'
			tail -n 5 "$logs/$suite.err" | sed 's/^/    | /'
			echo "    see ${logs#"$TOP/"}/$suite.tap and $suite.err"
		fi
	} >"$logs/$suite.said"
	# Prints everything with one write, because another suite may end at the same moment.
	cat "$logs/$suite.said"
	mv "$logs/$suite.new" "$logs/$suite.result"
	[[ ! $long ]] || echo "$tree" >"$logs/$suite.tree"
}
# passed_before SUITE: whether the suite has passed in a long run of the same tree
passed_before() {
	[[ $long && $tree && -e $logs/$1.tree && $(<"$logs/$1.tree") == "$tree" ]] && grep -q '^[0-9]* 0 ' "$logs/$1.result"
}

column=check
[[ ! $long ]] || column=long
mapfile -t all < <(suites "$column")
(($#)) || set -- "${all[@]}"
# If this script ends early, its last line reports a failure.
trap '(($? == 0)) || echo "0 passed, 1 failed, 0 skipped"' EXIT
for suite; do
	declare -F -- "${suite}_suite" >/dev/null ||
		die "no suite '$suite': $(declare -F | sed -n 's/^declare -f \(.*\)_suite$/\1/p' | xargs)"
done
# Only the suite torture-kcsan needs the kernel kcsan.
[[ " $* " != *' torture-kcsan '* ]] || kinds+=(kcsan)
# A suite that runs in a machine uses the modules that were built last.
for suite; do
	case $suite in
	build | library | deb | static | native | native-fuzz | mutants | coverage | volume-* | changed | torch | torch-ops | torch-sid | pictures) ;;
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

# Finds out what the suites need, because suites without kernel and machine do not wait for these. A machine is booted
# once before suites start in parallel.
machines='' sources=''
for suite; do
	[[ $suite == @(library|deb|torch|torch-ops|torch-sid) ]] || sources=1
	[[ $suite == @(native|native-fuzz|mutants|coverage|volume-*|library|deb|changed|torch|torch-ops|torch-sid) ]] || machines=1
done
# Why nobody can be root here, or nothing.
lacks_root=
# Suites download and enter a Debian 13 as root in the background, where sudo cannot ask for a password. So sudo asks here.
# Without root those for torch are skipped; the others find from kernel.sh that they lack kernel 7.
ask_for_root() {
	[[ " $* " == *' torch'* || $machines ]] || return 0
	lacks_root='only root, who may mount, can enter the Debian 13 that has PyTorch and Linux 7'
	if ((EUID)); then
		command -v sudo >/dev/null || return 0
		export SUDO_ASKS_NOT=1
		sudo -n true 2>/dev/null || {
			say 'PyTorch and Linux 7 come as a Debian 13 of their own, which only root can make: sudo asks for your password.'
			sudo -v || return 0
		}
		# Renews sudo's permission. Runs outside of the shell's jobs, because check.sh waits for all jobs at its end.
		while sleep 60 && kill -0 $$; do sudo -n -v; done </dev/null >/dev/null 2>&1 &
		disown
	fi
	! can_be_root || lacks_root=
}
# Why there is no kernel 7, or nothing.
lacks_7=
# Why there are no headers of QEMU, or nothing.
lacks_headers=
set_up() {
	local kind status=0
	ask_for_root "$@"
	[[ " $* " != *' deb '* ]] || tests/setup.sh deb || return 1
	if [[ " $* " == *' torch '* && ! $lacks_root && ! -e $BUILD/torch/root.made ]]; then
		tests/setup.sh torch || return 1
		say "The suite torch makes a Debian 13 with PyTorch, once: 300 MB to fetch, 3 to 8 minutes"
	fi
	if [[ ! $machines ]]; then
		tests/setup.sh build check || return 1
		# Unpacks the source before the suites start, so that the script's output appears here.
		[[ ! $sources ]] || tests/vm/debug-kernel.sh --source
		return
	fi
	tests/setup.sh build vm debug check || return 1
	if [[ " $* " == *' qcard '* ]]; then
		tests/card/qemu-headers.sh 2>&1 >/dev/null | tee "$logs/qemu-headers" >&2 || status=$?
		((status != 77)) || lacks_headers=$(tail -n 1 "$logs/qemu-headers")
		status=0
	fi
	for kind in "${kinds[@]}"; do
		[[ $kind != 7 ]] || continue
		tests/vm/kernel.sh "$kind" || return 1
	done
	tests/vm/kernel.sh --renew 7 2>&1 | tee "$logs/kernel-7" >&2 || status=$?
	((!status || status == 77)) || return 1
	((!status)) || lacks_7=$(tail -n 1 "$logs/kernel-7")
	"${vm[@]}" 6.12 --no-load --no-build --timeout 600 -- true || {
		say 'no virtual machine comes up'
		return 1
	}
}
set_up "$@" || exit 1

# The build comes first and runs alone. After that, N processors run N + 1 suites at a time, because each suite waits now
# and then, for example for a machine to boot. Each suite is a process group of its own, so that an
# interrupt ends its machines too.
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
	# A suite without a result has ended too early, and counts as a failure.
	read -r p f s <"$logs/$suite.result" 2>/dev/null || { p=0 f=1 s=0 && echo "$suite: no result"; }
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	spent=$((spent + $(cat "$logs/$suite.cpu" 2>/dev/null || echo 0)))
done
echo "all of them: $SECONDS s, of processors $spent s"
trap - EXIT
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0 && passed))
