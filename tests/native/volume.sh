#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs many millions of operations of the native torture, in pieces of a million. Each piece has its own seed and its
# own mode: as threads or scheduled, with many files or few, on a card with one memory or several, with different
# parameters. Prints TAP, a test for each piece, and the speed. The run can be interrupted: a piece that has passed is
# not run again as long as the program is the same.
# usage: tests/native/volume.sh asan|tsan [MILLIONS]        default: 50
# Environment: FLEXMEM_SEED: the first seed; default: one that the program's hash decides
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

kind=$1 pieces=${2:-50}
out=$BUILD/tests/native
passed=$out/volume-$kind.passed

"$TOP/tests/vm/debug-kernel.sh" --source
mkdir -p "$out"
(lock native && quietly "$out/volume.log" make -s -j2 -C "$TOP/tests/native" "O=$out" "$out/$kind/torture")
# A copy, because another process may rebuild the program during the run.
work=$(mktemp -d "$out/volume.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cp "$out/$kind/torture" "$work/torture"
hash=$(sha256sum <"$work/torture" | cut -c1-40)
first=${FLEXMEM_SEED:-$((16#${hash:0:6} * 1000))}

fixed=(setarch -R)
"${fixed[@]}" true 2>/dev/null || fixed=()
export ASAN_OPTIONS=detect_stack_use_after_return=1 TSAN_OPTIONS=exitcode=66
params=(
	'fallback_sizes=16M,8M,4M max_regions=6'
	'order=fill_first strategy=best_fit fallback_sizes=16M,8M max_regions=4 program_slots=1 pf_open=mode'
	'acquire=prealloc order=fill_first fallback_sizes=8M max_regions=8'
)
close=(
	'order=fill_first fallback_sizes=4M max_regions=6'
	'strategy=best_fit fallback_sizes=4M max_regions=6'
)
# The options of each piece. Most pieces do not schedule their threads (-S, -P), because TSan then finds more.
case $kind in
asan) ways=('-c -P 4' -d '' -c '' '-P 3' '' -S '-c -d' '') ;;
tsan) ways=('' -d -c '' '' '-P 3' '' '' '-c -d' '') ;;
*) die 'which: asan or tsan?' ;;
esac

# The pieces that passed in an earlier run of the same torture binary (same hash): processor seconds of each.
declare -A took
while read -r seconds sum arguments; do
	[[ $sum != "$hash" ]] || took[$arguments]=$seconds
done < <(cat "$passed" 2>/dev/null)

# piece NUMBER: runs a million operations
piece() {
	local way arguments user system failures=$tap_failures
	read -ra way <<<"${ways[$1 % 10]}"
	arguments=("${way[@]}" -s $((first + $1)) -n 1000000 "${params[$1 % 3]}")
	[[ ${way[0]:-} != -c ]] || arguments[-1]=${close[$1 / 5 % 2]}
	if [[ ${took[${arguments[*]}]:-} ]]; then
		tap "$kind/torture ${arguments[*]}, before" true
	else
		{ time tap "$kind/torture ${arguments[*]}" timeout --foreground 36000 "${fixed[@]}" "$work/torture" "${arguments[@]}"; } 2>"$work/time"
		((failures == tap_failures)) || return 0
		read -r user system <"$work/time"
		took[${arguments[*]}]=$((user + system))
		echo "${took[${arguments[*]}]} $hash ${arguments[*]}" >>"$passed"
	fi
	done=$((done + 1)) seconds=$((seconds + took[${arguments[*]}]))
	echo "# ${took[${arguments[*]}]} s of processor time"
}

done=0 seconds=0 TIMEFORMAT='%0U %0S'
echo 'TAP version 13'
for ((number = 1; number <= pieces; number++)); do
	piece "$number"
done
((!done)) || echo "# $done million operations in $seconds s of processor time: $((done * 1000000 / (seconds ? seconds : 1))) a second"
tap_end
