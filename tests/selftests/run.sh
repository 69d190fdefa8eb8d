#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs the selftests, in the guest and as root, and prints one TAP stream: a line for each test of each program, named
# PROGRAM/BITS/CONFIGURATION: TEST. Exit status 1 if a test failed, or could not be run at all.
#
# `make -C tests/selftests` must have built the programs.
# usage: tests/selftests/run.sh [PROGRAM[:TEST[,TEST...]]...]
#            runs these programs or tests; without an argument, all
#        tests/selftests/run.sh [-1] [-V VARIANT] [-PROGRAM[/32]...] [PROGRAM[/32]:TEST[,TEST...]...]
#            -1          runs each program only with the first configuration
#            -V          leaves out this variant of each test that has variants
#            -PROGRAM    leaves out the program; with /32, only its 32-bit half
#            PROGRAM:... runs only these tests of the program; with /32, of its 32-bit half
# A 32-bit program runs only with its first configuration in the table below, because the layout of structs does not
# depend on configurations.
# Environment:
#   FLEXMEM_KO           directory of flexmem.ko and flexmem_sim.ko, which the programs load with the parameters that
#                        a test needs
#   FLEXMEM_SELFTESTS    where the programs are (default: build/selftests in the checkout)
#   FLEXMEM_BITS         "64 32" (default), or one of them
#   FLEXMEM_TEST_TIMEOUT seconds that one program may take (default 1200)
#   FLEXMEM_SEED         seed of the random tests
set -uo pipefail
export PATH=$PATH:/usr/sbin:/sbin

top=$(cd -- "$(dirname -- "$0")/../.." && pwd -P)
bin=${FLEXMEM_SELFTESTS:-$top/build/selftests}
limit=${FLEXMEM_TEST_TIMEOUT:-1200}
export FLEXMEM_PAGES=$top/Documentation
read -ra bits_list <<<"${FLEXMEM_BITS:-64 32}"

# PROGRAM | CONFIGURATION | flexmem parameters | flexmem_sim parameters
# A test runs with these parameters unless its fixture sets others: a test that needs a certain value sets it.
table='
params    | own         |                                                                |
abi_size  | default     |                                                                |
alloc     | default     |                                                                |
alloc     | fill_best   | order=fill_first strategy=best_fit                             | slots=8
alloc     | prealloc    | acquire=prealloc                                               |
alloc     | programs    | program_slots=2 order=fill_first                               |
batch     | first_fit   | strategy=first_fit                                             |
batch     | best_fit    | strategy=best_fit                                              | slots=8
exhaust   | default     |                                                                |
placement | default     |                                                                |
domains   | default     |                                                                |
space     | default     |                                                                |
segments  | default     |                                                                |
perm      | default     |                                                                |
memcg     | default     |                                                                |
races     | default     |                                                                |
unbind    | default     |                                                                |
firmware  | default     |                                                                |
map       | default     |                                                                |
rw        | default     |                                                                |
copy      | default     |                                                                |
scrub     | default     |                                                                |
limits    | default     |                                                                |
containers | default   |                                                                |
snapshot  | default     |                                                                |
reset     | default     |                                                                |
hotplug   | default     |                                                                |
pressure  | default     |                                                                |
dispatch  | default     |                                                                |
reserve   | default     |                                                                |
trace     | default     |                                                                |
resize    | default     |                                                                |
resize    | best_fit    | strategy=best_fit                                              |
conformance | vf        |                                                                |
conformance | pf        |                                                                | num_vfs=0
'

bail() { echo "Bail out! $*"; exit 1; }

((EUID == 0)) || bail "not root"
[[ -e ${FLEXMEM_KO:-}/flexmem.ko && -e ${FLEXMEM_KO:-}/flexmem_sim.ko ]] ||
	bail "FLEXMEM_KO='${FLEXMEM_KO:-}' has no flexmem.ko and flexmem_sim.ko"
mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug || bail "no debugfs"

out=$(mktemp) || bail "no temporary file"
trap 'rm -f "$out"' EXIT
tests=0 failed=0

# limit_to PROGRAM[/32] [ARGUMENT...]: sets the variable "only" to the tests of the program that the arguments name;
# empty means all
limit_to() {
	local argument named named_by=()
	for argument in "${@:2}"; do
		[[ $argument == "$1":* ]] || continue
		IFS=, read -ra named <<<"${argument#*:}"
		named_by+=("${named[@]}")
	done
	((!${#named_by[@]})) || only=("${named_by[@]}")
}

# wanted PROGRAM [ARGUMENT...]: succeeds if the script must run the program
wanted() {
	local program=$1
	shift
	case " $* " in
	*" -$program "*) return 1 ;;
	*" $program "* | *" $program:"* | '  ' | ' -'*) return 0 ;;
	esac
	return 1
}

# result ok|"not ok" TEXT: prints a line of TAP and counts it
result() {
	echo "$1 $((++tests)) $2"
	[[ $1 == ok ]] || ((++failed))
}

# Whether this kernel runs 32-bit programs at all. Kernels that the project builds or fetches (FLEXMEM_KERNEL) do, so
# with them an ENOEXEC is a failure of the test.
runs_32() {
	[[ ! ${FLEXMEM_KERNEL:-} && -e $bin/32/abi_size ]] || return 0
	"$bin/32/abi_size" -l >/dev/null 2>&1
	local status=$?
	((status != 126 && status != 127))
}

# Prints a program's TAP from $out with new numbers. Prints most other lines as comments.
report() {
	local name=$1 status=$2 line text plan='' seen=0 bad=0 test

	while IFS= read -r line; do
		case $line in
		'TAP version'*) ;;
		1..*) plan=${line#1..} ;;
		'ok '* | 'not ok '*)
			((++seen))
			text=${line#*ok }
			text=${text#* }
			text=${text#- }
			[[ $line == ok* ]] || bad=1
			result "${line%%ok *}ok" "$name: $text"
			;;
		'#  RUN '* | '#   '*' OK '* | '# PASSED:'* | '# Starting '* | '# Totals:'*) ;;
		'#'*) echo "$line" ;;
		?*) echo "# $line" ;;
		esac
	done <"$out"

	for test in "${only[@]}"; do
		grep -qE "^(not )?ok .*\\.$test\$" "$out" || result "not ok" "$name: there is a test $test"
	done
	if ((status == 124 || status == 137)); then
		result "not ok" "$name: ends within $limit seconds"
	elif [[ ! $plan || $seen != "$plan" ]]; then
		result "not ok" "$name: all tests run (${plan:-0} planned, $seen run, exit status $status)"
	elif ((status && !bad)); then
		result "not ok" "$name: exit status $status without a failed test"
	fi
}

unload() {
	local module
	rm -f /run/flexmem-selftests
	for module in flexmem_sim flexmem; do
		[[ ! -e /sys/module/$module ]] || rmmod "$module" || return 1
	done
}

echo "TAP version 13"
unload || bail "the modules are in use"
last=
first=
without=()
[[ ${1:-} != -1 ]] || { first=1 && shift; }
[[ ${1:-} != -V ]] || { without=("-V$2") && shift 2; }
while IFS='|' read -r program config params sim_params; do
	read -r program <<<"$program"
	read -r config <<<"$config"
	[[ $program ]] || continue
	wanted "$program" "$@" || continue
	[[ ! $first || $program != "$last" ]] || continue
	export FLEXMEM_PARAMS=$params FLEXMEM_SIM_PARAMS=$sim_params
	for bits in "${bits_list[@]}"; do
		[[ $bits == 64 || ($program != "$last" && " $* " != *" -$program/32 "*) ]] || continue
		name=$program/$bits/$config
		if [[ $bits == 32 ]] && ! runs_32; then
			result ok "$name # SKIP the kernel has no IA32 emulation"
			continue
		fi
		only=()
		limit_to "$program" "$@"
		[[ $bits == 64 ]] || limit_to "$program/32" "$@"
		began=$SECONDS
		timeout -k 5 "$limit" "$bin/$bits/$program" "${without[@]}" "${only[@]/#/-t}" >"$out" 2>&1 </dev/null
		report "$name" $?
		echo "# $name took $((SECONDS - began)) s"
	done
	last=$program
done <<<"$table"
unload || result "not ok" "the modules unload in the end"
echo "1..$tests"
((!failed && tests))
