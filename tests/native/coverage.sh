#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Measures which lines of the core the native programs run. Builds them once more for this, with gcc's counters. Prints
# TAP: a comment for each file and for each line that was not run, and a result that says whether enough lines were run.
# The torture runs in scheduled mode, so that it is the same each time.
# usage: tests/native/coverage.sh [PERCENT]        default: 97; the least share of all lines of the core
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

least=${1:-97}
here=$TOP/tests/native
out=$BUILD/tests/native-coverage

"$TOP/tests/vm/debug-kernel.sh" --source
mkdir -p "$out"
# Two coverage runs at the same time would write the same counter files.
lock native-coverage
quietly "$out/coverage.log" make -s -j2 -C "$here" "O=$out" coverage
rm -f "$out"/gcov/*.gcda

program() { quietly "$out/coverage.log" "$out/gcov/$1" "${@:2}"; }
program kunit -s 1
program faults
program fuzz -n 3000 -c "$here/corpus/fuzz.txt"
program torture -P 3 -s 1 -n 20000
program torture -P 3 -s 2 -n 20000 'order=fill_first strategy=best_fit fallback_sizes=16M,8M max_regions=4 program_slots=1'
program torture -S -s 3 -n 10000 'acquire=prealloc order=fill_first fallback_sizes=8M max_regions=8'
program torture -c -P 4 -s 4 -n 20000 'order=fill_first fallback_sizes=4M max_regions=6'

# A line of a header counts as run if it was run in at least one file that includes the header.
(cd "$out/gcov" && gcov -t -r -s "$TOP" core-*.gcda) >"$out/gcov/lines" 2>"$out/coverage.log"
awk -v least="$least" '
	/:Source:/ { file = $0; sub(/.*:Source:/, "", file); next }
	file !~ /^kmod\/([a-z]+\/)?[a-z_]+\.[ch]$/ || file ~ /^kmod\/sim\// || / -:/ { next }
	{
		line = $0
		sub(/^[^:]*: */, "", line)
		number = line + 0
		sub(/^[0-9]*:/, "", line)
		if (!(file in last) || last[file] < number)
			last[file] = number
		text[file, number] = line
		if ($1 !~ /^[#=]/)
			run[file, number] = 1
	}
	END {
		for (file in last)
			names[++files] = file
		for (i = 2; i <= files; i++)
			for (j = i; j > 1 && names[j] < names[j - 1]; j--) {
				file = names[j]
				names[j] = names[j - 1]
				names[j - 1] = file
			}
		for (i = 1; i <= files; i++) {
			file = names[i]
			lines = missed = 0
			for (n = 1; n <= last[file]; n++) {
				if (!((file, n) in text))
					continue
				lines++
				if ((file, n) in run)
					continue
				missed++
				printf "# %s:%d:%s\n", file, n, text[file, n]
			}
			summary = summary sprintf("# %5.1f %% of %4d lines, %s\n", 100 * (lines - missed) / lines, lines, file)
			all += lines
			all_missed += missed
		}
		share = all ? 100 * (all - all_missed) / all : 0
		printf "%s", summary
		enough = share >= least
		printf "%s 1 - %.1f %% of %d lines of the core are run, at least %s %%\n",
		       (enough ? "ok" : "not ok"), share, all, least
		print "1..1"
		exit !enough
	}' "$out/gcov/lines"
