# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
# What all scripts below tests/ share; to be sourced.

TOP=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
BUILD=$TOP/build
export TOP BUILD
# The folder for PyTorch's Debian, which tests/torch/root.sh makes: Debian 13 unless another one is chosen.
export TORCH=$BUILD/torch${FLEXMEM_TORCH_SUITE:+-$FLEXMEM_TORCH_SUITE}

# Tools such as modprobe lie outside an ordinary user's PATH on Debian.
PATH=$PATH:/usr/sbin:/sbin
export PATH

# A version manager puts a shell script in the place of python3, which takes five times as long to start. What it would
# start comes first in PATH instead.
python=$(command -v python3 || true)
if [[ $python ]] && read -rn 2 python <"$python" 2>/dev/null && [[ $python == '#!' ]]; then
	python=$(python3 -c 'import os, sys; print(os.path.dirname(sys.executable))' 2>/dev/null || true)
	PATH=${python:+$python:}$PATH
fi
unset python

# The builds in scripts must not depend on the caller's environment. So this script unsets the variables that a calling
# make exports, and those that choose an architecture, a compiler or flags. keep_tools is set for modules of the user's
# own kernel, which are built with the user's tools.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES
[[ ${keep_tools:-} ]] || unset ARCH CROSS_COMPILE LLVM LLVM_IAS CC CXX CPP LD AR AS NM OBJCOPY STRIP HOSTCC HOSTCXX \
	KCFLAGS KCPPFLAGS KAFLAGS
unset SUBARCH SRCARCH KBUILD_OUTPUT KBUILD_EXTMOD KBUILD_EXTRA_SYMBOLS KBUILD_SRC KBUILD_VERBOSE M O V W C CF \
	CFLAGS CPPFLAGS CXXFLAGS LDFLAGS GREP_OPTIONS POSIXLY_CORRECT TAR_OPTIONS GZIP XZ_OPT BASH_ENV ENV CDPATH
# The scripts read English output of tools.
unset LANGUAGE
export LC_ALL=C.UTF-8

say() { printf '%s\n' "$*" >&2; }
die() { say "${0##*/}: $*"; exit 1; }

# known_kernel KIND: ends the script unless kernel.sh can make that kind
known_kernel() { [[ ${1:-} =~ ^(6\.1|6\.12|7|debug|kcsan)$ ]] || die "no kernel '${1:-}': there are 6.1, 6.12, 7, debug and kcsan"; }

# The newest series 7 with which all suites have passed. If trixie-backports has a newer one, failures with it are TODO:
# mend them, then name the new series here.
export passed_7=7.3
# series_of RELEASE: prints the series: 7.3
series_of() { grep -oE '^[0-9]+\.[0-9]+' <<<"$1"; }
# kernel_series KIND: prints the series of a kernel that kernel.sh has made
kernel_series() { series_of "$(<"$BUILD/kernels/$1/release")"; }
# is_newer SERIES THAN: whether the first series is the newer one
is_newer() { [[ $1 != "$2" && $(printf '%s\n' "$1" "$2" | sort -V | tail -n 1) == "$1" ]]; }
todo() { echo "# TODO Linux $1 is newer than $passed_7, the last that passed"; }
# todo_if_newer SERIES COMMAND...: runs the command, which prints TAP. If it fails and SERIES is newer than $passed_7,
# prints TAP in which the failures are TODO, and succeeds. The status 98 (run.sh: the clock jumped) stays.
todo_if_newer() {
	local series=$1 said status=0 wrong
	shift
	if ! is_newer "$series" "$passed_7"; then
		"$@"
		return
	fi
	said=$("$@") || status=$?
	((status != 98)) || return 98
	mapfile -t wrong < <(awk -v status="$status" -f "$TOP/tests/tap.awk" <<<"$said" | tail -n +2)
	if ((!${#wrong[@]})); then
		printf '%s\n' "$said"
		return
	fi
	echo "1..${#wrong[@]}"
	printf '%s\n' "${wrong[@]}" | awk -v todo="$(todo "$series")" '
		{ sub(/^not ok [0-9]+ (- )?/, ""); print "not ok", NR, "-", $0, todo }'
}

# lock NAME: lets one script build at a time; held until the (sub)shell ends
lock() {
	mkdir -p "$BUILD/locks"
	exec {lock_fd}>"$BUILD/locks/$1"
	flock "$lock_fd"
}

# quietly LOG CMD...: writes the output to LOG; prints it if CMD fails
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

# need_root WHAT: sets as_root to the prefix of commands that only root may run: "sudo", or nothing for root. check.sh
# asks for the password before it starts the suites, because they run in the background, where sudo could not ask. Then
# check.sh exports SUDO_ASKS_NOT.
as_root=()
need_root() {
	((EUID)) || return 0
	command -v sudo >/dev/null || die "only root may run '$1', and there is no sudo"
	as_root=(sudo ${SUDO_ASKS_NOT:+-n})
}

# can_be_root: whether need_root finds a way that works, and may mount, as enter.sh does. A root in a container may not.
# In a chroot the mounts cannot be made private, so this does not ask for it.
can_be_root() {
	if ((!EUID)); then
		unshare --mount --propagation unchanged true 2>/dev/null
	elif [[ ${SUDO_ASKS_NOT:-} ]]; then
		sudo -n unshare --mount --propagation unchanged true 2>/dev/null
	else
		command -v sudo >/dev/null
	fi
}

# apt_get LOG ARG...: runs apt-get through as_root, with its output in LOG. Waits at most half an hour until another
# process releases the locks of the package lists and archives. apt-get itself would wait only for dpkg's lock.
apt_get() {
	local log=$1 tries status
	shift
	mkdir -p "$(dirname -- "$log")"
	for ((tries = 0; ; tries++)); do
		status=0
		"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 \
			apt-get -q -y -o DPkg::Lock::Timeout=600 "$@" >"$log" 2>&1 || status=$?
		((status && tries < 360)) || break
		grep -qE 'Could not get lock|Unable to (lock|acquire)' "$log" || break
		((tries)) || say "Waiting for another apt: $(grep -m 1 lock "$log")"
		sleep 5
	done
	return "$status"
}
# apt_failed LOG [LOG]: prints why the last attempt failed, and in short why the attempt before it failed
apt_failed() {
	tail -n 30 -- "$1" >&2
	[[ ! ${2:-} ]] || say "at first: $(grep -m 3 '^E: ' "$2" || tail -n 3 "$2")"
	say "${0##*/}: apt-get failed, see $*"
	return 1
}

# deb_unpack DIR PACKAGE[=VERSION]...: unpacks Debian packages below DIR without installing them. The archive may have changed
# since the package lists were fetched. So if a download fails, fetches the lists again and repeats the download once.
deb_unpack() {
	local dir=$1 tmp deb log=$BUILD/log/apt-download status=0
	shift
	mkdir -p "$BUILD"
	tmp=$(mktemp -d "$BUILD/deb.XXXXXX")
	# apt would warn that its unprivileged user cannot write here, so it stays root.
	if ! (cd "$tmp" && apt_get "$log.1" -o APT::Sandbox::User=root download "$@"); then
		rm -f "$tmp"/*
		"$TOP/tests/setup.sh" --refresh || say 'the package lists stay as they are'
		(cd "$tmp" && apt_get "$log" -o APT::Sandbox::User=root download "$@") || status=$?
	fi
	if ((status)); then
		rm -rf "$tmp"
		apt_failed "$log" "$log.1"
		return 1
	fi
	mkdir -p "$dir"
	for deb in "$tmp"/*.deb; do
		dpkg-deb -x "$deb" "$dir" || status=$?
	done
	rm -rf "$tmp"
	return "$status"
}

# package_mirror: prints the mirror that apt uses for this machine's own release; fails if the sources of apt name none
package_mirror() {
	local release
	release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	# shellcheck disable=SC2016	# apt expands it
	apt-get indextargets --format '$(CODENAME) $(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
		awk -v release="$release" '($1 == release || $2 == release) && $(NF - 1) == "main" && !found { print $NF; found = 1 }
			END { exit !found }'
}

# project_files: lists the files that git tracks; the checks read no other files
project_files() {
	git -C "$TOP" -c safe.directory='*' ls-files --deduplicate 2>/dev/null | while read -r file; do
		[[ ! -f $TOP/$file ]] || echo "$file"
	done
}

# project_hash: prints a hash of the files that project_files lists, or nothing if there is no git
project_hash() {
	local files
	mapfile -t files < <(project_files)
	((!${#files[@]})) || (cd "$TOP" && sha256sum "${files[@]}" | sha256sum | cut -c1-40)
}

# TAP for scripts: tap 'title' CMD... for each test, then tap_end.
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
# tap_build_7 NAME SCRIPT [CMD...]: a test of what SCRIPT builds for kernel 7; CMD is `SCRIPT 7` unless named. If that kernel is
# newer than the last series that passed, and the compiler or modpost refuses even where a warning is no error, the
# failure is TODO. A warning never is, and what fails for another reason is not.
tap_todos=0
tap_build_7() {
	local name=$1 script=$2 series said
	shift 2
	(($#)) || set -- "$script" 7
	series=$(kernel_series 7)
	if is_newer "$series" "$passed_7" && ! said=$(lenient=1 "$script" 7 2>&1) &&
		grep -qE ': (fatal )?error: |^ERROR: modpost: ' <<<"$said"; then
		tap_count=$((tap_count + 1))
		tap_todos=$((tap_todos + 1))
		echo "not ok $tap_count - $name $(todo "$series")"
		tail -n 10 <<<"$said" | sed 's/^/# /'
	else
		tap "$name" "$@"
	fi
}
# silent CMD...: fails if CMD prints anything, for tools that warn and succeed
silent() {
	local output status=0
	output=$("$@" 2>&1) || status=$?
	[[ ! $output ]] || printf '%s\n' "$output"
	[[ $status == 0 && ! $output ]]
}
