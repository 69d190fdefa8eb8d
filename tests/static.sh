#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Checks the sources without running them. Prints TAP, with a test for each tool and group of files.
# usage: tests/static.sh [--changed]        needs what `tests/setup.sh build debug check` installs
# With --changed it checks only files that differ from the target branch (FLEXMEM_BASE; by default the upstream branch;
# without one the last commit), and builds no module.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/lib.sh"
cd "$TOP"

# Files of other projects stay as they are.
mapfile -t files < <(project_files | grep -v '^tests/third_party/')
((${#files[@]})) || die "this is no git checkout"
changed=
if [[ ${1:-} == --changed ]]; then
	changed=1
	git=(git -c 'safe.directory=*')
	base=${FLEXMEM_BASE:-$("${git[@]}" merge-base HEAD '@{upstream}' 2>/dev/null || echo HEAD)}
	mapfile -t files < <({ "${git[@]}" diff --name-only "$base" && "${git[@]}" ls-files -o --exclude-standard; } |
		sort -u | grep -Fxf <(printf '%s\n' "${files[@]}") || true)
	((${#files[@]})) || { tap_skip 'static checks' "nothing changed since $base" && tap_end && exit; }
fi
# pick REGEX: prints the files that match
pick() { printf '%s\n' "${files[@]}" | grep -E -- "$1" || true; }
mapfile -t kernel_files < <(pick '^(kmod|uapi|tests/kunit|tests/vm/broken|tests/conformance)/.*\.[ch]$')
mapfile -t module_files < <(pick '^(kmod|tests/kunit|tests/vm/broken|tests/conformance|Documentation/examples)/.*\.[ch]$')
mapfile -t doc_files < <(pick '^(kmod|uapi|tests/kunit)/.*\.[ch]$')
mapfile -t public_headers < <(pick '^(uapi/linux|userlib/include)/.*\.h$')
mapfile -t scripts < <(for f in "${files[@]}"; do
	case $f in
	*.sh) echo "$f" ;;
	*.*) ;;
	*) IFS= read -r first <"$f" && [[ $first =~ ^#!.*[/\ ](ba|da)?sh$ ]] && echo "$f" ;;
	esac
done || true)
mapfile -t texts < <(pick '' | grep -vE '\.(gz|xz|png|svg)$')
mapfile -t code < <(pick '^(kmod|uapi|userlib|tests|\.ci|Kbuild$|Makefile$)' | grep -vE '\.(gz|xz|txt|json|map|in|words|lines)$')
"$TOP/tests/vm/debug-kernel.sh" --source

# module_build KIND: lets sparse check each file. The modules are those of modules.sh, where a warning is an error.
module_build() {
	"$TOP/tests/vm/kernel.sh" "$1" || return 1
	local sparse=(C=2)
	[[ ! -e $BUILD/kernels/$1/root/no-sparse ]] || sparse=()
	"$TOP/tests/vm/modules.sh" "$1" "$BUILD/kernels/$1/headers" "${sparse[@]}" || return 1
	# kbuild only warns, or does nothing, if it takes sparse for too old.
	if [[ ${sparse[*]} ]] && { grep -F 'C=2 specified, but' "$BUILD/log/ko-$1" || ! grep -q '^  CHECK ' "$BUILD/log/ko-$1"; }; then
		echo 'sparse has checked nothing'
		return 1
	fi
	# The compiler may be a later release than the one that built the kernel. kbuild prints a notice about that,
	# which says nothing about this code.
	! grep -iE '(^|[: ])(warning|error)(:| )' "$BUILD/log/ko-$1" | grep -v 'the compiler differs'
}
# over_kernel KIND: tests a build for it; sets instead to another kind if sparse did not see all that this kind compiles
instead=
over_kernel() {
	local kind=$1 status=0 builds=(tap "W=1 and sparse $1") why
	why=$("$TOP/tests/vm/kernel.sh" "$kind" 2>&1) || status=$?
	if ((status == 77)); then
		tap_skip "W=1 and sparse $kind" "$(tail -n 1 <<<"$why")"
		instead=6.12
		return
	fi
	[[ $kind != 7 ]] || builds=(tap_build_7 "W=1 and sparse 7" tests/vm/modules.sh)
	"${builds[@]}" module_build "$kind"
	if [[ -e $BUILD/kernels/$kind/root/no-sparse ]]; then
		tap_skip "sparse $kind" "$(<"$BUILD/kernels/$kind/root/no-sparse")"
		instead=6.12
	fi
	((!tap_todos)) || instead=6.12
}
# One kernel is enough unless FLEXMEM_LONG is set, because the suite build compiles for all with W=1, and what differs is in
# compat.h: the newest, which has a newer sparse, or 6.12 in its place.
if [[ ! $changed ]]; then
	over_kernel 7
	[[ ! ${FLEXMEM_LONG:-} ]] || instead='6.12 6.1'
	for kind in $instead; do
		over_kernel "$kind"
	done
fi

# removed_unused FILE...: fails, and prints where, if kernel code uses an identifier that newer kernels have removed.
# Only compat.h may.
removed_unused() { ! grep -HnwFf <(sed -E '/^#/d; s/[[:blank:]].*//' tests/removed.words) -- "$@" | grep -v '^kmod/compat\.h:'; }

# over WHAT NR CMD...: expects that CMD prints nothing about the NR files at its end; skipped if there are no files
over() {
	(($2 == 0)) || tap "$1: $2 files" silent "${@:3}"
}
over 'checkpatch --strict' ${#kernel_files[@]} tests/checkpatch.sh "${kernel_files[@]}"
((!${#module_files[@]})) ||
	tap "nothing that newer kernels have removed: ${#module_files[@]} files" removed_unused "${module_files[@]}"
over 'kernel-doc -Wall' ${#doc_files[@]} perl build/linux-source/scripts/kernel-doc -none -Wall -Werror "${doc_files[@]}"

for header in "${public_headers[@]}"; do
	# The ABI header must be C90, checked as the kernel checks its own headers (not with -Wpedantic: the last
	# enumerator may end in a comma). The library's headers are C11.
	c='gcc -std=c90'
	[[ $header != userlib/* ]] || c='gcc -std=c11 -Wpedantic'
	for how in "$c -x c" "$c -m32 -x c" 'g++ -std=c++11 -Wpedantic -x c++'; do
		# shellcheck disable=SC2086
		tap "$header alone: $how" silent $how -Wall -Wextra -Wundef -Werror -fsyntax-only \
			-I uapi -I userlib/include "$header"
	done
done

over shellcheck ${#scripts[@]} shellcheck -x "${scripts[@]}"
over codespell ${#texts[@]} codespell --quiet-level=2 --ignore-words=tests/codespell.words \
	--exclude-file=tests/codespell.lines "${texts[@]}"
# Leaves out the tests, because cppcheck cannot parse their macros.
mapfile -t user_code < <(pick '^userlib/.*\.c$')
over cppcheck ${#user_code[@]} cppcheck --quiet --inline-suppr --enable=warning,performance,portability --error-exitcode=1 \
	--suppress=missingIncludeSystem --suppress=internalAstError --std=c11 \
	-I userlib/include -I userlib/src -I uapi "${user_code[@]}"

# One process reads all files, because on some machines a process for each file takes half a minute.
unlicensed() {
	local bad
	bad=$(comm -13 <(awk 'FNR > 5 { nextfile } /SPDX-License-Identifier: / { print FILENAME }' "${code[@]}" </dev/null | sort -u) \
		<(printf '%s\n' "${code[@]}" | sort -u))
	[[ ! $bad ]] || { echo "$bad" && return 1; }
}
tap "SPDX: ${#code[@]} files" unlicensed

# The name of a struct must show which side of the ABI it is on.
struct_names() { grep -rhoE '^struct \w+ \{' "$1" | sort -u; }
shared_names() { ! comm -12 <(struct_names kmod) <(struct_names userlib) | grep .; }
tap 'no struct of kmod has the name of one of userlib' silent shared_names

# run.sh runs only what is in its table. sim_hook is a helper of the program conformance.
selftest_rows() {
	diff <(basename -s .c tests/selftests/*.c | grep -vx sim_hook | sort) \
		<(sed -nE 's/^([a-z_]+) *\|.*\|.*\|.*/\1/p' tests/selftests/run.sh | sort -u)
}
tap 'each self test has a row in the table of run.sh' silent selftest_rows

# What CONTRIBUTING.md and MAINTAINERS name must exist: files, targets of make, suites.
named_things() {
	local name names bad=0
	# shellcheck disable=SC2016	# the backquotes are those of the page
	for name in $(grep -ohE '`[A-Za-z_./-]+/[A-Za-z_./-]*`|\]\([A-Za-z][A-Za-z_./-]+\)|^F:.*|tests/[a-z/]+\.(sh|py)' \
		CONTRIBUTING.md MAINTAINERS | tr -d '`()]' | sed 's/^F://'); do
		[[ $name == build/ || $name == *NAME* || -e $name ]] || { echo "no file $name" && bad=1; }
	done
	names=$(sed -nE 's/^    make ([a-z-]+) .*/\1/p' CONTRIBUTING.md)
	for name in $names; do
		grep -q "^$name:" Makefile || { echo "no target $name" && bad=1; }
	done
	names=$(sed -nE 's/^T:\s*//p; s/^    tests\/check\.sh ([a-z]+) .*/\1/p' CONTRIBUTING.md MAINTAINERS)
	for name in $names; do
		grep -qF "${name}_suite() {" tests/check.sh || { echo "no suite $name" && bad=1; }
	done
	return "$bad"
}
tap 'CONTRIBUTING.md and MAINTAINERS name things that exist' silent named_things

tap_end
