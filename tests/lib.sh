# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
# What all scripts below tests/ share; to be sourced.

TOP=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
BUILD=$TOP/build
export TOP BUILD

# Tools such as modprobe lie outside an ordinary user's PATH on Debian.
PATH=$PATH:/usr/sbin:/sbin
export PATH

# Called from a Makefile or not, the builds below are their own: no options, variables or job server of the caller. Nor
# what somebody has set for other work: another processor, other compilers, flags. (Modules for a kernel of the user's own
# are built with the user's tools: vm/modules.sh.)
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES
[[ ${keep_tools:-} ]] || unset ARCH CROSS_COMPILE LLVM LLVM_IAS CC CXX CPP LD AR AS NM OBJCOPY STRIP HOSTCC HOSTCXX \
	KCFLAGS KCPPFLAGS KAFLAGS
unset SUBARCH SRCARCH KBUILD_OUTPUT KBUILD_EXTMOD KBUILD_EXTRA_SYMBOLS KBUILD_SRC KBUILD_VERBOSE M O V W C CF \
	CFLAGS CPPFLAGS CXXFLAGS LDFLAGS GREP_OPTIONS POSIXLY_CORRECT TAR_OPTIONS GZIP XZ_OPT BASH_ENV ENV CDPATH
# What tools say is looked at in English.
unset LANGUAGE
export LC_ALL=C.UTF-8

say() { printf '%s\n' "$*" >&2; }
die() { say "${0##*/}: $*"; exit 1; }

# lock NAME: one builder at a time; several scripts may want the same thing built. Held until the (sub)shell ends.
lock() {
	mkdir -p "$BUILD/locks"
	exec {lock_fd}>"$BUILD/locks/$1"
	flock "$lock_fd"
}

# quietly LOG CMD...: the output goes to LOG and is shown only when CMD fails.
quietly() {
	local log=$1 status=0
	shift
	mkdir -p "$(dirname -- "$log")"
	"$@" >"$log" 2>&1 || status=$?
	if ((status)); then
		tail -n 30 -- "$log" >&2
		say "${0##*/}: '$*' failed, see $log"
	fi
	return "$status"
}

# deb_unpack DIR PACKAGE[=VERSION]...: unpacks Debian packages below DIR without installing them.
deb_unpack() {
	local dir=$1 tmp deb
	shift
	tmp=$(mktemp -d "$BUILD/deb.XXXXXX")
	# apt drops root to a user who may not write here; it would only warn about it.
	# The archive may have moved on since the package lists were fetched.
	local fetch=(env -C "$tmp" apt-get -q -o APT::Sandbox::User=root download "$@")
	"${fetch[@]}" >/dev/null 2>&1 || {
		"$TOP/tests/setup.sh" --refresh
		quietly "$BUILD/log/apt-download" "${fetch[@]}"
	} || {
		rm -rf "$tmp"
		return 1
	}
	mkdir -p "$dir"
	for deb in "$tmp"/*.deb; do
		dpkg-deb -x "$deb" "$dir"
	done
	rm -rf "$tmp"
}

# TAP for scripts: tap 'what holds' CMD... for each test, then tap_end.
tap_count=0
tap_failures=0
tap() {
	local name=$1 output status=0
	shift
	output=$("$@" 2>&1) || status=$?
	tap_count=$((tap_count + 1))
	if ((status == 0)); then
		echo "ok $tap_count - $name"
	else
		echo "not ok $tap_count - $name"
		tap_failures=$((tap_failures + 1))
		head -n 60 <<<"$output" | sed 's/^/# /'
	fi
}
tap_skip() {
	tap_count=$((tap_count + 1))
	echo "ok $tap_count - $1 # SKIP $2"
}
tap_end() {
	echo "1..$tap_count"
	((tap_failures == 0))
}
# Fails when CMD says anything, and shows it: for tools that warn and succeed.
silent() {
	local output status=0
	output=$("$@" 2>&1) || status=$?
	[[ ! $output ]] || printf '%s\n' "$output"
	[[ $status == 0 && ! $output ]]
}
