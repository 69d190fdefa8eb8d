#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Boots a kernel with suspend.c as its only process, which lets the system sleep while a map is open. Prints TAP. This
# machine has no file system of the host, because a suspend breaks the connection to it.
# usage: tests/vm/suspend.sh 6.1|6.12|7          before: tests/vm/modules.sh KIND
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

kind=${1:?usage: suspend.sh 6.1|6.12|7}
known_kernel "$kind"
"$TOP/tests/vm/kernel.sh" "$kind"
dir=$BUILD/vm/suspend-$kind
rm -rf "$dir"
mkdir -p "$dir/root"
"${CC:-gcc}" -static -O1 -Wall -Wextra -Wno-unused-result -isystem "$TOP/uapi" -o "$dir/root/init" "$TOP/tests/vm/suspend.c"
cp "$BUILD/ko/$kind"/flexmem{,_sim}.ko "$dir/root/"
mkdir -p "$dir/root/dev"
mknod "$dir/root/dev/console" c 5 1 2>/dev/null || true
(cd "$dir/root" && find . | cpio -o -H newc --quiet -R 0:0) | gzip -1 >"$dir/initrd.gz"

# The file has the result of run.sh's earlier attempt to boot this kernel with KVM. Without that file this script does
# not use KVM.
accel=tcg
read -r accel _ 2>/dev/null <"$BUILD/vm/accel-$kind" || true
case ${FLEXMEM_ACCEL:-$accel} in
kvm) machine=(-accel kvm -cpu host) ;;
*) machine=(-accel tcg -cpu 'max,la57=off,avx2=off') ;;
esac
# One processor, so that QEMU's bug with self-modifying code (run.sh) does not strike.
status=0
timeout -k 5 600 qemu-system-x86_64 "${machine[@]}" -machine pc -smp 1 -m 512 \
	-nodefaults -no-user-config -display none -no-reboot \
	-kernel "$BUILD/kernels/$kind/vmlinuz" -initrd "$dir/initrd.gz" \
	-append 'console=ttyS0 loglevel=7 panic=-1 oops=panic no_console_suspend suspend.pm_test_delay=1 no_timer_check tsc=reliable mitigations=off' \
	-serial "file:$dir/console.log" -serial "file:$dir/tap" </dev/null >"$dir/qemu.log" 2>&1 || status=$?
tr -d '\r' <"$dir/tap"
if ((status)) || ! "$TOP/tests/vm/splat.sh" "$dir/console.log" >&2; then
	tail -n 15 -- "$dir/console.log" >&2
	exit 1
fi
# The plan is printed last. Without it the process has not come to its end.
grep -q '^1\.\.' "$dir/tap" && ! grep -q '^not ok' "$dir/tap"
