# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
# The part of selfcheck.sh that boots nothing: what the scripts do if the host lacks something or behaves oddly. The
# scripts run in a copy of the checkout, with mocked tools that simulate the host. To be sourced.

# shellcheck disable=SC2154	# selfcheck.sh sets it
copy=$work/copy
MOCK=$work/mock
export MOCK

# mock NAME: reads a script from standard input that replaces the tool of that name; $MOCK/calls lists its calls
mock() {
	{
		echo '#!/bin/bash'
		echo "echo \"\${LC_ALL:-} $1 \$*\" >>\"\$MOCK/calls\""
		cat
	} >"$MOCK/bin/$1"
	chmod +x "$MOCK/bin/$1"
}
# fresh: a copy of the tree without builds, and no mocked tools. sudo runs commands as they are, and unshare too; their
# own calls are not listed, so that a test counts the same calls whether root or another user runs it.
fresh() {
	rm -rf "$copy" "$MOCK"
	mkdir -p "$copy/build" "$MOCK/bin"
	rsync -a --exclude=/selfcheck --include='/*.sh' --include='/*.awk' --include='/vm' --include='/vm/*' --exclude='*' \
		"$TOP/tests/" "$copy/tests/"
	: >"$MOCK/calls"
	cat >"$MOCK/bin/sudo" <<'EOF'
#!/bin/bash
while [[ ${1:-} == -[nv] ]]; do shift; done
exec "$@"
EOF
	cat >"$MOCK/bin/unshare" <<'EOF'
#!/bin/bash
while [[ $1 == --* || $1 == unchanged ]]; do shift; done
exec "$@"
EOF
	chmod +x "$MOCK/bin/"{sudo,unshare}
	mock sleep <<<'exit 0'
}
# on COMMAND...: runs COMMAND in the copy with the mocked tools, and without what check.sh has told its suites about sudo
on() { (cd "$copy" && unset SUDO_ASKS_NOT && PATH=$MOCK/bin:$PATH "$@"); }
# says WORDS STATUS COMMAND...: expects that COMMAND ends with STATUS and prints WORDS
says() {
	local words=$1 want=$2 said status=0
	shift 2
	said=$(on "$@" 2>&1) || status=$?
	printf '%s\nexit status %s, wanted %s\n' "$said" "$status" "$want"
	cat "$MOCK/calls"
	((status == want)) && grep -qe "$words" <<<"$said"
}

# A failed set-up counts as one failure, and the last line of its output is shown as the reason.
fresh
mock dpkg-query <<<'exit 0'
mock apt-get <<<'echo "E: Unable to locate package gcc" >&2; exit 100'
last_line() { [[ $(on "$@" 2>/dev/null | tail -n 1) == '0 passed, 1 failed, 0 skipped' ]]; }
tap 'check: the last line reports a failed set-up' last_line tests/check.sh
tap 'check: a failed set-up fails the run' says 'Unable to locate package gcc' 1 tests/check.sh

# Variables in the environment must not change builds, or the output of tools that scripts read.
foreign=(ARCH=arm64 CROSS_COMPILE=none- LLVM=1 KBUILD_OUTPUT=/none KCFLAGS=-none CC=false CFLAGS=-none O=/none M=/none
	MAKEFLAGS=n LC_ALL=de_DE.UTF-8 LANGUAGE=de CDPATH=/)
unmoved() {
	local left
	left=$(on env "${foreign[@]}" bash -c '. tests/lib.sh && env' | grep -xF "$(printf '%s\n' "${foreign[@]}")")
	echo "$left"
	[[ ! $left ]]
}
fresh
tap 'environment: foreign compilers, flags and languages are dropped' unmoved
tap 'environment: with keep_tools compilers are kept' says LLVM=1 0 env LLVM=1 keep_tools=1 bash -c '. tests/lib.sh && env'

# A mock of apt: the files answer.1, answer.2, ... have the exit status and output of the first, second, ... call. Calls
# without a file succeed.
apt_mock() {
	fresh
	mock apt-get <<'EOF'
n=$(($(cat "$MOCK/n" 2>/dev/null) + 1))
echo $n >"$MOCK/n"
[[ -e $MOCK/answer.$n ]] || exit 0
sed 1d "$MOCK/answer.$n" >&2
exit "$(head -n 1 "$MOCK/answer.$n")"
EOF
	mock dpkg-query <<<'exit 0'
	local n=0 answer
	for answer; do
		n=$((n + 1))
		printf '%b\n' "$answer" >"$MOCK/answer.$n"
	done
}
# asked WORDS N: expects that N calls of the mocked tools contained WORDS
asked() { (($(grep -c -e "$1" "$MOCK/calls") == $2)); }
lists='100\nE: Could not get lock /var/lib/apt/lists/lock. It is held by process 1 (apt-get)'
archives='100\nE: Could not get lock /var/cache/apt/archives/lock. It is held by process 1 (apt)\nE: Unable to lock the download directory'
apt_mock "$archives" "$archives" "$archives"
tap 'apt: setup waits for a lock on the archives' says 'Waiting for another apt.*archives/lock' 0 tests/setup.sh vm
tap 'apt: a lock on the archives needs no new lists' asked 'apt-get .*update' 0
apt_mock "$lists" "$lists"
tap 'apt: setup waits for a lock on the lists' says 'Waiting for another apt.*lists/lock' 0 tests/setup.sh --refresh
apt_mock '100\nE: Unable to locate package qemu-system-x86'
tap 'apt: for unknown packages setup fetches new lists and tries again' says Installing 0 tests/setup.sh vm
tap 'apt: setup fetches new lists once' asked 'apt-get .*update' 1
apt_mock '100\nE: the first trouble' 0 '100\nE: the second'
tap 'apt: of two failures the first is reported too' says 'the first trouble' 1 tests/setup.sh vm
tap 'apt: no package is removed for another one' asked '--no-remove install' 2
apt_mock
tap 'apt: one call installs all missing packages' says 'Installing.* gcc .* qemu-system-x86 ' 0 tests/setup.sh
tap 'apt: setup installs no kernel and no headers' asked 'apt-get .*linux-\(image\|headers\)' 0

# A stock kernel. The archive has build 9 of the package until the package lists are fetched again, and build 10
# afterwards. The mock downloads the requested package, which contains a kernel and its headers. The locale is German.
kernel_mock() {
	apt_mock
	mkdir -p "$copy/build/busybox/bin"
	touch "$copy/build/busybox/bin/busybox"
	chmod +x "$copy/build/busybox/bin/busybox"
	echo 9 >"$MOCK/build"
	mock apt-cache <<'EOF'
build=$(cat "$MOCK/build") depends=Depends candidate=Candidate
[[ $LC_ALL == C* ]] || depends='Hängt ab von' candidate=Installationskandidat
case "$*" in
"pkgnames linux-image-$SERIES.")
	[[ ! -e $MOCK/vanishes || $build == 9 ]] || exit 0
	# The packages with higher versions must not be chosen: they are another flavour, another package, no longer in
	# the archive, only installed, or of a suite with a low priority. Build 9 stays in the archive beside build 10.
	printf "linux-image-$SERIES.%s\n" 0-amd64 9-amd64 "$build-amd64" 11-amd64 11-cloud-amd64 11-amd64-dbg 11-amd64-unsigned \
		12-amd64 13-amd64 ;;
"policy linux-image-$SERIES.11-amd64") echo "  $candidate: (none)" ;;
"policy linux-image-$SERIES.12-amd64")
	printf '  %s\n' "$candidate: 12-1" 'Version table:' ' *** 12-1 100' '      100 /var/lib/dpkg/status' ;;
"policy linux-image-$SERIES.13-amd64")
	printf '  %s\n' "$candidate: 13-1" 'Version table:' '   13-1 100' '      100 http://mirror.invalid testing/main amd64 Packages' ;;
"depends linux-headers-"*)
	printf '  %s\n' "$depends: linux-base" "$depends: linux-headers-$SERIES.$build-common" \
		"|$depends: linux-image-$SERIES.$build-amd64" "$depends: linux-kbuild-$SERIES.$build" ;;
"policy linux-image-$SERIES."*)
	version=${2#linux-image-} version=${version%-amd64}-1
	printf '  %s\n' "$candidate: $version" 'Version table:' "   $version 500" \
		'      500 http://mirror.invalid stable/main amd64 Packages' ;;
esac
EOF
	mock apt-get <<'EOF'
[[ "$*" != *update ]] || echo 10 >"$MOCK/build"
[[ "$*" == *download* ]] || exit 0
[[ "$*" == *"linux-image-$SERIES.$(cat "$MOCK/archive")-amd64=$SERIES.$(cat "$MOCK/archive")-1"* ]] || {
	echo 'E: Failed to fetch: 404  Not Found' >&2
	exit 100
}
touch kernel.deb
EOF
	mock dpkg-deb <<'EOF'
release=$SERIES.$(cat "$MOCK/archive")-amd64
mkdir -p "$3/boot" "$3/usr/src/linux-headers-$release" "$3/usr/src/linux-headers-common"
echo "include /usr/src/linux-headers-common/Makefile" >"$3/usr/src/linux-headers-$release/Makefile"
echo 'all:; @echo these headers' >"$3/usr/src/linux-headers-common/Makefile"
touch "$3/boot/vmlinuz-$release"
EOF
	mock depmod <<<'exit 0'
	mock modprobe <<<'exit 0'
}
export SERIES=6.12
kernel_mock
echo 10 >"$MOCK/archive"
tap 'kernel: the archive moved on between look-up and download' says 'Fetching linux-image-6.12.10-amd64 .* instead' 0 \
	env LC_ALL=de_DE.UTF-8 tests/vm/kernel.sh 6.12
tap 'kernel: headers are unpacked with the kernel' says 'these headers' 0 make -s -C build/kernels/6.12/headers
mv "$copy/build/kernels/6.12" "$copy/build/kernels/lent"
tap 'kernel: an unpacked kernel can be moved' says 'these headers' 0 make -s -C build/kernels/lent/headers
kernel_mock
echo 12 >"$MOCK/archive"
tap 'kernel: a package that the archive lacks fails' says '404  Not Found' 1 tests/vm/kernel.sh 6.12
kernel_mock
echo 9 >"$MOCK/archive"
mock modprobe <<<'exit 1'
tap 'kernel: an initrd without modules fails' says Fetching 1 tests/vm/kernel.sh 6.12
tap 'kernel: a failed initrd is removed' test ! -e "$copy/build/kernels/6.12/initrd.gz"
kernel_mock
touch "$MOCK/vanishes"
tap 'kernel: a series that the archive drops meanwhile fails' says 'cannot fetch linux-image-6.12.9-amd64' 1 tests/vm/kernel.sh 6.12
SERIES=6.18 kernel_mock
tap 'kernel: an archive without the series fails' says 'has no kernel of the series 6.12' 1 env SERIES=6.18 tests/vm/kernel.sh 6.12
tap 'kernel: before that new lists are fetched' asked 'apt-get .*update' 1

# Kernel 7. The archive offers the series in the file $MOCK/archive; without that file it cannot be reached.
backports_mock() {
	kernel_mock
	cat >"$copy/tests/vm/backports-kernel.sh" <<'EOF'
#!/bin/bash
[[ $1 != --offers-sparse ]] || exec test -e "$MOCK/forky"
[[ -e $MOCK/archive ]] || { echo 'the package mirror cannot be reached' >&2; exit 77; }
release=$(<"$MOCK/archive").4-amd64
[[ $1 != --offered ]] || { echo "$release" && exit; }
mkdir -p "$1/root/usr/lib/modules/$release" "$1/root/usr/src/linux-headers-$release"
touch "$1/root/usr/lib/modules/$release/vmlinuz" "$1/root/usr/src/linux-headers-$release/Makefile"
echo "$release" >"$1/release"
touch "$MOCK/fetched"
EOF
}
# is NAME SERIES: expects that build/kernels/NAME is of this series
is() { grep -qF "$2." "$copy/build/kernels/$1/ready"; }
moves() { echo "$1" >"$MOCK/archive" && on tests/vm/kernel.sh --renew 7; }
backports_mock
tap 'kernel 7: an archive that cannot be reached has a status of its own' says 'cannot be reached' 77 tests/vm/kernel.sh 7
tap 'kernel 7: the newest is fetched' moves "$passed_7"
rm "$MOCK/archive"
tap 'kernel 7: without the archive it stays' says '' 0 tests/vm/kernel.sh --renew 7
tap 'kernel 7: it is of the series that the archive had' is 7 "$passed_7"
tap 'kernel 7: the archive moves on' moves "$newer"
tap 'kernel 7: the newer series is used' is 7 "$newer"
tap 'kernel 7: the series that passed last stays' is 7-passed "$passed_7"
tap 'kernel 7: the archive moves on again' moves "$newer.9"
tap 'kernel 7: a series that has not passed does not replace it' is 7-passed "$passed_7"
tap 'kernel 7: a mirror that lags behind' moves "$passed_7"
tap 'kernel 7: an older series does not replace it' is 7 "$newer"
tap 'kernel 7: the archive has another major version' moves 8.0
tap 'kernel 7: that is used' is 7 8.0
mv "$copy/build/kernels/7" "$copy/build/kernels/lent"
ln -s lent "$copy/build/kernels/7"
tap 'kernel 7: a link to one that somebody else keeps' moves 8.1
tap 'kernel 7: it stays' is lent 8.0
# renewed N SPARSE: expects that a kernel that lacks sparse since the time SPARSE is fetched again (N = 1) or not (N = 0)
renewed() {
	rm -f "$MOCK/fetched"
	touch -d "$2" "$copy/build/kernels/7/root/no-sparse" && on tests/vm/kernel.sh --renew 7 || return 1
	(($(find "$MOCK" -name fetched | wc -l) == $1))
}
mv "$copy/build/kernels/lent" "$copy/build/kernels/gone"
tap 'kernel 7: a link to a kernel that is not there' says 'nothing usable' 77 tests/vm/kernel.sh 7
tap 'kernel 7: nothing is written where it leads' test ! -e "$copy/build/kernels/lent"
mv "$copy/build/kernels/gone" "$copy/build/kernels/lent"
rm "$copy/build/kernels/7"
mv "$copy/build/kernels/lent" "$copy/build/kernels/7"
echo 8.0 >"$MOCK/archive"
tap 'kernel 7: a mirror without sparse costs no second download' renewed 0 '-2 days'
touch "$MOCK/forky"
tap 'kernel 7: sparse is not asked for again at once' renewed 0 now
tap 'kernel 7: sparse is asked for again after a day' renewed 1 '-2 days'
echo 7.9 >"$MOCK/archive"
tap 'kernel 7: an older series does not replace it for the sake of sparse' renewed 0 '-2 days'
mock unshare <<<'exit 1'
tap 'kernel 7: where root may not mount, it is skipped' says 'only root' 77 env SUDO_ASKS_NOT=1 tests/vm/kernel.sh 7
mock unshare <<<'[[ "$*" == *"--propagation unchanged"* ]]'
tap 'root: may mount in a chroot, where mounts cannot be private' \
	on env SUDO_ASKS_NOT=1 bash -c '. tests/lib.sh && can_be_root'

# Modules that do not build for a newer series. The mock of modules.sh prints $MOCK/strict, or with lenient=1, where a
# warning is no error, $MOCK/lenient, and fails if that says anything.
cat >"$copy/tests/vm/modules.sh" <<'EOF'
#!/bin/bash
said=$MOCK/strict
[[ ! ${lenient:-} ]] || said=$MOCK/lenient
cat "$said"
[[ ! -s $said ]]
EOF
# builds 'P F S' STRICT LENIENT: expects these counts of a build that prints STRICT, and in the lenient way LENIENT
builds() {
	local got
	printf '%s' "$2" >"$MOCK/strict"
	printf '%s' "$3" >"$MOCK/lenient"
	got=$(on bash -c '. tests/lib.sh; tap_build_7 modules tests/vm/modules.sh; tap_end' |
		awk -v status=0 -f "$TOP/tests/tap.awk" | head -n 1)
	echo "$got"
	[[ $got == "$1" ]]
}
wrong="map.c:7:9: error: unknown type name 'pfn_t'"
unused='map.c:7:9: error: unused variable [-Werror=unused-variable]'
tap 'newer kernel: modules that do not compile are TODO' builds '0 0 1' "$wrong" "$wrong"
tap 'newer kernel: a warning is a failure' builds '0 1 0' "$unused" ''
tap 'newer kernel: what fails for another reason is a failure' builds '0 1 0' 'No space left on device' 'No space left on device'
echo "$passed_7.4-amd64" >"$copy/build/kernels/7/release"
tap 'newer kernel: of the series that passed last, modules that do not compile are a failure' builds '0 1 0' "$wrong" "$wrong"

# Builds modules with as few tools as possible. They get BTF only if pahole is there.
fresh
for tool in bash dirname mkdir nproc tail; do
	ln -s "$(command -v "$tool")" "$MOCK/bin/$tool"
done
mock make <<<'exit 0'
mkdir -p "$copy/headers" "$copy/build/driver"
touch "$copy/headers/Makefile"
kbuild() { (cd "$copy" && PATH=$MOCK/bin bash tests/vm/kbuild.sh headers build/driver "$@"); }
tap 'modules: kbuild runs without pahole' kbuild W=1
tap 'modules: without pahole kbuild must make no BTF' asked 'make -C .*CONFIG_DEBUG_INFO_BTF_MODULES= W=1 modules' 1
mock pahole <<<''
tap 'modules: kbuild runs with pahole' kbuild W=1
tap 'modules: with pahole kbuild decides about BTF' asked BTF 1

# A mock of QEMU. The files boot.1, boot.2, ... say what each boot does: hang, die or run; later boots run. KVM boots
# only 6.12. If a boot hangs, time passes quickly.
vm_mock() {
	fresh
	# shellcheck disable=SC2016	# the mock expands it
	mock sleep <<<'[[ -e $MOCK/hangs ]] || exec /bin/sleep "$@"'
	mock modprobe <<<'exit 0'
	mock qemu-system-x86_64 <<'EOF'
[[ "$*" =~ path=([^,]*),mount_tag=share ]]
out=${BASH_REMATCH[1]}
[[ "$*" != *"-accel kvm"*/6.1/* ]] || exit 1
n=$(($(cat "$MOCK/n" 2>/dev/null) + 1))
echo $n >"$MOCK/n"
case $(cat "$MOCK/boot.$n" 2>/dev/null) in
hang)
	trap 'rm -f "$MOCK/hangs"; exit 1' TERM
	touch "$MOCK/hangs"
	while :; do
		/bin/sleep 0.1
	done ;;
die) echo '[    0.5] Oops: int3: 0000 [#1]' >"$out/console.log" ;;
*)
	touch "$out/up"
	echo 0 >"$out/status"
	echo 0 >"$out/finished" ;;
esac
EOF
	local n=0 how
	for how in 6.1 6.12; do
		mkdir -p "$copy/build/kernels/$how/root"
		touch "$copy/build/kernels/$how/root/Makefile" "$copy/build/kernels/$how/vmlinuz"
		ln -s root "$copy/build/kernels/$how/headers"
		echo "$how.1" | tee "$copy/build/kernels/$how/ready" >"$copy/build/kernels/$how/release"
		touch "$copy/build/kernels/$how/initrd.gz"
	done
	for how; do
		n=$((n + 1))
		echo "$how" >"$MOCK/boot.$n"
	done
}
machine=(env -u FLEXMEM_ACCEL VM_PATIENCE=4 "VM_KVM=$MOCK/kvm" "VM_TRIES=$MOCK/tries" tests/vm/run.sh)
bare=(--no-load --no-build --out build/vm/x)
vm_mock hang die
tap 'boot: a machine that hangs is ended and booted again' says 'hung while it booted; once more' 0 "${machine[@]}" 6.12 "${bare[@]}" -- true
vm_mock die hang
tap 'boot: the last message of a machine that dies is shown' says 'died while it booted (.*Oops: int3.*); once more' 0 "${machine[@]}" 6.12 "${bare[@]}" -- true
tried() { cat "$MOCK/tries" && [[ $(cut -d' ' -f1-3 "$MOCK/tries" | xargs) == '6.12 died while 6.12 hung while' ]]; }
tap 'boot: tries are counted' tried
tap 'boot: an emulated kernel is told to be patient' asked rcu_cpu_stall_timeout=300 3
vm_mock hang hang hang
tap 'boot: the third machine that hangs fails the run' says 'does not come up' 125 "${machine[@]}" 6.12 "${bare[@]}" -- true
vm_mock
touch "$MOCK/kvm"
with_kvm() {
	local kind
	for kind in 6.1 6.12; do
		on "${machine[@]}" "$kind" "${bare[@]}" -- true || return 1
	done
	cat "$copy"/build/vm/accel-*
	grep -q ^tcg "$copy/build/vm/accel-6.1" && grep -q ^kvm "$copy/build/vm/accel-6.12"
}
tap 'boot: KVM is tried for each kernel' with_kvm
for n in 1 2 3 4 5; do
	echo hang >"$MOCK/boot.$n"
done
rm -f "$MOCK/n"
tap 'boot: a kernel that KVM stops booting fails the run' says 'does not come up' 125 "${machine[@]}" 6.12 "${bare[@]}" -- true
forgotten() { [[ ! -e $copy/build/vm/accel-6.12 ]]; }
tap 'boot: KVM is tried again the next time' forgotten

# The options for machines with a device of ours: QEMU gets them, and only QEMU gets the plugin. The mock of QEMU answers as
# QMP does, and asks the host as a guest would.
vm_mock
mock qemu-system-x86_64 <<'EOF'
echo "preloaded: ${LD_PRELOAD:-none}" >>"$MOCK/calls"
[[ "$*" =~ path=([^,]*),mount_tag=share ]]
out=${BASH_REMATCH[1]}
exec {answers}<>"$out/qmp.out" {commands}<>"$out/qmp.in"
echo '{"QMP": {}}' >&$answers
read -r -u "$commands"
echo '{"return": {}}' >&$answers
echo 'qmp {"execute": "device_del"}' >"$out/ask/1.new"
mv "$out/ask/1.new" "$out/ask/1.request"
read -r -u "$commands" command
echo "command: $command" >>"$MOCK/calls"
printf '%s\n' '{"event": "DEVICE_DELETED"}' '{"error": {"desc": "no such device"}}' >&$answers
until [[ -e $out/ask/1.answer ]]; do
	/bin/sleep 0.1
done
cat "$out/ask/1.answer" >>"$MOCK/calls"
touch "$out/up"
echo 0 | tee "$out/status" >"$out/finished"
EOF
# shellcheck disable=SC2016	# the mock expands it
mock timeout <<<'echo "preloaded: ${LD_PRELOAD:-none}" >>"$MOCK/calls"; exec /usr/bin/timeout "$@"'
tap 'device: a machine of another type, with devices and a plugin' says '' 0 env FLEXMEM_ACCEL=tcg tests/vm/run.sh 6.12 \
	"${bare[@]}" --machine q35 --device first --device second,x=1 --plugin libm.so.6 --ask '' -- true
tap 'device: QEMU gets the options' asked 'UTF-8 qemu-system.* -machine q35 .*-device first -device second,x=1' 1
tap 'device: QEMU gets the plugin' asked 'preloaded: libm.so.6' 1
tap 'device: timeout does not get the plugin' asked 'preloaded: none' 1
tap 'device: the host passes a command on to QEMU' asked 'command: {"execute": "device_del"}' 1
tap 'device: the answer is that of QEMU, with its status' asked '^1$' 1
tap 'device: the answer skips events' asked '{"desc": "no such device"}' 1

# The headers of QEMU. Where they cannot be had, the reason comes last, with a status of its own.
headers_mock() {
	fresh
	rsync -a "$TOP/tests/card" "$copy/tests/"
	mock dpkg-query <<EOF
[[ "\$*" != *source:Version* ]] || echo '$1'
EOF
	mock dpkg-source <<<'exit 1'
	mock apt-get <<'EOF'
case "$*" in
indextargets*) echo 'Debian|http://mirror.invalid/debian|bookworm|main' ;;
*Lists=*update) [[ ! -e $MOCK/reached ]] || touch "$copy_of_lists"/mirror_Sources ;;
*source*) exit 100 ;;
*install*) [[ ! -e $MOCK/empty ]] || exit 100 ;;
esac
EOF
}
headers=(env "copy_of_lists=$copy/build/card/qemu-7.2+x-1/lists" tests/card/qemu-headers.sh)
headers_mock 1:9.0-1
tap 'headers: another version of QEMU' says 'written for 7.2' 77 "${headers[@]}"
headers_mock 1:7.2+x-1
touch "$MOCK/empty"
tap 'headers: packages that cannot be installed' says 'cannot be installed' 77 "${headers[@]}"
rm "$MOCK/empty"
tap 'headers: no network' says 'cannot be reached' 77 "${headers[@]}"
touch "$MOCK/reached"
tap 'headers: the archive has dropped the version' says 'does not have the source of QEMU 1:7.2+x-1' 77 "${headers[@]}"

# The static checks must read only files that git tracks.
tracked() {
	on git init -q . && on git add tests && echo 'fi' >"$copy/tests/scratch.sh" || return 1
	on bash -c '. tests/lib.sh && project_files' >"$work/files"
	grep -qx tests/check.sh "$work/files" && ! grep scratch "$work/files"
}
fresh
tap 'static: files that git does not track are not checked' tracked

# If a suite is run by itself, the modules are built from the present sources first.
alone() {
	on tests/check.sh "$1" >"$work/said" 2>&1
	cat "$work/said"
	[[ $(grep -c "^$2 " "$work/said") == "$3" ]]
}
fresh
mock dpkg-query <<<'exit 0'
mock apt-get <<<'exit 0'
mock make <<<'echo 1..1; echo ok 1'
for script in kernel modules run; do
	printf '#!/bin/sh\necho 1..1; echo ok 1\n' >"$copy/tests/vm/$script.sh"
done
tap 'check: a suite that boots a machine builds first' alone cache build 1
tap 'check: a suite without a machine does not build' alone library build 0

# A long run that was stopped continues at the suite that it had reached, unless the tree has changed.
longer() {
	FLEXMEM_LONG=1 on tests/check.sh library >"$work/said" 2>&1
	cat "$work/said"
	grep -q "^library .* s$1\$" "$work/said" && grep -qx '1 passed, 0 failed, 0 skipped' "$work/said"
}
on git init -q .
on git add tests
tap 'check: a long run runs everything' longer ''
tap 'check: a long run goes on where it ended' longer ', before'
echo >>"$copy/tests/lib.sh"
tap 'check: a long run of other sources runs everything' longer ''
mock make <<<'echo 1..1; echo not ok 1'
echo >>"$copy/tests/lib.sh"
failed_before() { ! longer '' && mock make <<<'echo 1..1; echo ok 1' && longer ''; }
tap 'check: a long run repeats a suite that failed' failed_before
