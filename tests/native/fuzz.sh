#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Lets libFuzzer look for inputs about which the driver and the model disagree. It starts from the inputs of the corpus.
# Prints TAP. A finding is printed as a line for the corpus.
# usage: tests/native/fuzz.sh [SECONDS]           default: 60
#        tests/native/fuzz.sh --minimise [DIR...]
# --minimise rebuilds the last part of the corpus: it keeps as few inputs as possible that reach the same code as the
# whole corpus, the findings of the last run, and the inputs in DIR together.
set -euo pipefail
shopt -s nullglob
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

here=$TOP/tests/native
# The fuzzer has its own build folder, because the test suite "native" may be
# building at the same time.
out=$BUILD/tests/native-fuzz
corpus=$here/corpus/fuzz.txt
found=$out/found

"$TOP/tests/setup.sh" fuzz
"$TOP/tests/vm/debug-kernel.sh" --source
mkdir -p "$out" "$found"
quietly "$out/build.log" make -s -j2 -C "$here" "O=$out" fuzzer
fuzzer=$out/fuzzer/fuzz

# unpack DIR: writes each input of the corpus to a file
unpack() {
	local line n=0
	mkdir -p "$1"
	while read -r line; do
		[[ $line != '#'* ]] || continue
		n=$((n + 1))
		# shellcheck disable=SC2001,SC2059
		printf "$(sed 's/../\\x&/g' <<<"$line")" >"$1/$n"
	done <"$corpus"
}
# pack FILE...: prints each file as a line of the corpus
pack() {
	local file
	for file; do
		od -An -v -tx1 <"$file" | tr -d ' \n'
		echo
	done
}

if [[ ${1:-} == --minimise ]]; then
	shift
	tmp=$(mktemp -d "$out/minimise.XXXXXX")
	trap 'rm -rf "$tmp"' EXIT
	mkdir "$tmp/new"
	unpack "$tmp/old"
	"$fuzzer" -merge=1 -use_counters=0 "$tmp/new" "$tmp/old" "$found" "$@" >&2
	{
		sed '/--minimise/q' "$corpus"
		pack "$tmp/new"/* | sort
	} >"$tmp/corpus"
	mv "$tmp/corpus" "$corpus"
	exit
fi

unpack "$out/seeds"
rm -f "$out"/crash-* "$out"/timeout-*
echo 'TAP version 13'
if ! "$fuzzer" -max_total_time="${1:-60}" -max_len=900 -timeout=60 -print_final_stats=1 -artifact_prefix="$out/" \
		"$found" "$out/seeds" >"$out/fuzz.log" 2>&1; then
	echo 'not ok 1 - libFuzzer'
	grep -v '^#' "$out/fuzz.log" | tail -n 30 | sed 's/^/# /'
	pack "$out"/crash-* "$out"/timeout-* | sed 's/^/# /'
	printf '1..1\n'
	exit 1
fi
sed -n 's/^stat::/# /p' "$out/fuzz.log"
printf 'ok 1 - libFuzzer, %s seconds\n1..1\n' "${1:-60}"
