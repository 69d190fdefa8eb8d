#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Builds and runs the native programs, under ASan and UBSan and under TSan. Prints TAP: the output of each program, and
# at the end a stream that says how they ended. No machine is booted.
# usage: tests/native/run.sh [asan|tsan]        default: both
# Environment: FLEXMEM_SEED: seed of the random programs; FLEXMEM_NATIVE_OPS: number of operations of each torture.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

here=$TOP/tests/native
out=$BUILD/tests/native
seed=${FLEXMEM_SEED:-$RANDOM}
ops=15000
[[ ! ${FLEXMEM_LONG:-} ]] || ops=100000
ops=${FLEXMEM_NATIVE_OPS:-$ops}
(($#)) || set -- asan tsan

"$TOP/tests/vm/debug-kernel.sh" --source
mkdir -p "$out"
# The lock keeps mutants.py from building in the same folder.
if ! (lock native && make -s -j2 -C "$here" "O=$out" all) >"$out/build.log" 2>&1; then
	echo '1..1'
	echo 'not ok 1 - build of the native programs'
	tail -n 40 "$out/build.log" | sed 's/^/# /'
	exit 1
fi

# TSan needs fixed addresses, which a random layout may have taken.
fixed=(setarch -R)
"${fixed[@]}" true 2>/dev/null || fixed=()
export ASAN_OPTIONS=detect_stack_use_after_return=1 TSAN_OPTIONS=exitcode=66

failed=0
# With stride N, "faults -p" lets another task act at every Nth scheduling point of a sequence.
stride=${FLEXMEM_LONG:+1}
stride=${stride:-210}
# program KIND NAME ARGUMENT...: prints the TAP of a program, and then a result that says how it ended
program() {
	local kind=$1 name=$2 status=0
	shift 2
	echo 'TAP version 13'
	echo "# $kind/$name $*"
	timeout --foreground 600 "${fixed[@]}" "$out/$kind/$name" "$@" 2>"$out/$kind/$name.err" || status=$?
	printf '%s\n' 'TAP version 13' '1..1'
	if ((status)); then
		failed=1
		echo "not ok 1 - $kind/$name $* ended with $status"
		head -n 60 "$out/$kind/$name.err" | sed 's/^/# /'
	else
		echo "ok 1 - $kind/$name $*"
	fi
}
program steps steps
program steps crowd
program steps bounds ${FLEXMEM_LONG:+-f}
program asan npu -s "$seed"
program asan ram
program bare bare
program bare kunit -s "$seed"
for kind; do
	program "$kind" misuse
	# TSan finds nothing in programs with a single task, so under TSan they run few operations.
	volume=(-o histories=10000)
	[[ $kind == asan ]] || volume=(-o ops=2000 -o sampled_ops=5000 -o histories=200)
	program "$kind" kunit -s "$seed" "${volume[@]}"
	[[ $kind != asan ]] || program asan faults
	[[ $kind != asan ]] || program asan faults -p "$stride"
	[[ $kind != asan ]] || program asan fuzz -n 3000 -c "$here/corpus/fuzz.txt"
	turn=$seed
	for params in 'fallback_sizes=16M,8M,4M max_regions=6' \
		'order=fill_first strategy=best_fit fallback_sizes=16M,8M max_regions=4 program_slots=1 pf_open=mode' \
		'acquire=prealloc order=fill_first fallback_sizes=8M max_regions=8'; do
		# With one of these parameters the card has several memories. The seed decides which one.
		memories=()
		((turn++ % 3)) || memories=(-d)
		program "$kind" torture "${memories[@]}" -s "$seed" -n "$ops" "$params"
		program "$kind" torture "${memories[@]}" -S -s "$seed" -n $((ops / 25)) "$params"
		program "$kind" torture "${memories[@]}" -P 3 -s "$seed" -n $((ops / 10)) "$params"
	done
	memories=()
	((seed % 2)) || memories=(-d)
	close='order=fill_first fallback_sizes=4M max_regions=6'
	program "$kind" torture -c "${memories[@]}" -s "$seed" -n "$ops" "$close"
	program "$kind" torture -c "${memories[@]}" -P 4 -s "$seed" -n $((ops / 10)) "$close"
done
echo 'TAP version 13'
# addresses NAME: compares the addresses of all allocations with the expected ones
addresses() {
	local trace=/dev/null
	[[ $1 == random ]] || trace=$TOP/tests/traces/$1.trace.gz
	gzip -cdf "$trace" | "$out/plain/addresses" "$1"
}
for trace in "$TOP"/tests/traces/*.trace.gz random; do
	name=${trace##*/}
	name=${name%.trace.gz}
	tap "addresses: $name" diff <(grep "^$name " "$here/addresses.txt") <(addresses "$name")
done
tap 'the module without any part gives the same addresses' diff <(grep '^gpt2-train ' "$here/addresses.txt") \
	<(gzip -cd "$TOP/tests/traces/gpt2-train.trace.gz" | "$out/bare/addresses" gpt2-train)
tap 'calls go down, between rooms as in internals.rst, and in no circle of files' python3 "$here/edges.py" "$TOP" "$out/plain"
tap 'the way of an ALLOC has no more returns than before' python3 "$here/returns.py" "$TOP"
tap 'the driver compiles for a kernel without cgroups' make -s -C "$here" "O=$out" no-cgroups
tap 'other modules use what flexmem.ko exports' python3 "$here/exports.py" "$TOP" "$out/asan"
# shellcheck disable=SC2016 # the backquotes are those of the page
tap 'the page has a row for each trace event' diff \
	<(sed -nE 's/^(TRACE_EVENT\(|DEFINE_EVENT\([a-z_]+, )(flexmem_[a-z_]+),$/\2/p' "$TOP/kmod/trace.h" | sort) \
	<(sed -nE 's/^``(flexmem_[a-z_]+)`` .*/\1/p' "$TOP/Documentation/tracing.rst" | sort)
tap 'the tests of a source file are found' grep -E \
	'^kmod/region/slot.c: .*slot_kunit.c \([0-9]+\).*; planted bugs: .*flexmem_slot.*; in a machine: .*slot_kunit.*; RESERVE by .*reserve' \
	<("$here/callers.py" kmod/region/slot.c)
tap 'tests/INDEX has the nearest tests of each file of the driver' "$here/callers.py" --compare kmod
# The same seed must give the same run.
replay() { "${fixed[@]}" "$out/$1/torture" "${@:2}" 2>&1; }
tap 'a schedule repeats, at random' cmp <(replay asan -S -s 5 -n 2000) <(replay asan -S -s 5 -n 2000)
tap 'a schedule repeats, by priorities' cmp <(replay asan -P 3 -s 5 -n 2000) <(replay tsan -P 3 -s 5 -n 2000)
tap_end || failed=1
exit "$failed"
