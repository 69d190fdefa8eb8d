# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
# The part of selfcheck.sh that boots nothing: what the scripts do when the host is not as they would like it to be. They
# run in a copy of the checkout's scripts, with tools that play the host. To be sourced.

# shellcheck disable=SC2154	# selfcheck.sh sets it
copy=$work/copy
MOCK=$work/mock
export MOCK

# mock NAME: a tool of that name, from standard input, before the real one; in its own words, $MOCK/calls has what it was told.
mock() {
	{
		echo '#!/bin/bash'
		echo "echo \"\${LC_ALL:-} $1 \$*\" >>\"\$MOCK/calls\""
		cat
	} >"$MOCK/bin/$1"
	chmod +x "$MOCK/bin/$1"
}
# fresh: a copy that has built nothing, and no tools yet. Root needs no sudo; others have one that does nothing.
fresh() {
	rm -rf "$copy" "$MOCK"
	mkdir -p "$copy/build" "$MOCK/bin"
	rsync -a --exclude=/selfcheck --include='/*.sh' --include='/*.awk' --include='/vm' --include='/vm/*' --exclude='*' \
		"$TOP/tests/" "$copy/tests/"
	: >"$MOCK/calls"
	mock sudo <<<'exec "$@"'
	mock sleep <<<'exit 0'
}
# on COMMAND...: COMMAND in the copy, with these tools.
on() { (cd "$copy" && PATH=$MOCK/bin:$PATH "$@"); }
# says WORDS STATUS COMMAND...: it ends with STATUS and says WORDS.
says() {
	local words=$1 want=$2 said status=0
	shift 2
	said=$(on "$@" 2>&1) || status=$?
	printf '%s\nexit status %s, wanted %s\n' "$said" "$status" "$want"
	cat "$MOCK/calls"
	((status == want)) && grep -qe "$words" <<<"$said"
}

# A set-up that fails is one failure, in the words of the last line.
fresh
mock dpkg-query <<<'exit 0'
mock apt-get <<<'echo "E: Unable to locate package gcc" >&2; exit 100'
last_line() { [[ $(on "$@" 2>/dev/null | tail -n 1) == '0 passed, 1 failed, 0 skipped' ]]; }
tap 'check: a failed set-up is said in the last line' last_line tests/check.sh
tap 'check: and is no success' says 'Unable to locate package gcc' 1 tests/check.sh

# Whatever somebody has in the environment for other work: neither builds nor what is read from tools follow it.
foreign=(ARCH=arm64 CROSS_COMPILE=none- LLVM=1 KBUILD_OUTPUT=/none KCFLAGS=-none CC=false CFLAGS=-none O=/none M=/none
	MAKEFLAGS=n LC_ALL=de_DE.UTF-8 LANGUAGE=de CDPATH=/)
unmoved() {
	local left
	left=$(on env "${foreign[@]}" bash -c '. tests/lib.sh && env' | grep -xF "$(printf '%s\n' "${foreign[@]}")")
	echo "$left"
	[[ ! $left ]]
}
fresh
tap 'environment: compilers, flags and languages of others are dropped' unmoved
tap 'environment: but not for a kernel of their own' says LLVM=1 0 env LLVM=1 keep_tools=1 bash -c '. tests/lib.sh && env'
