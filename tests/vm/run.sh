#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Boots a kernel under QEMU with the host's root (read-only, under an overlay in memory) as its own, loads our modules,
# runs a command in the checkout and brings back its output and exit status.
#
# usage: tests/vm/run.sh KIND [option...] -- COMMAND [ARG...]      KIND: 6.1, 6.12, debug, kcsan
#   --cpus N  --mem MB  --timeout SECONDS  --append 'kernel arguments'
#   --load 'flexmem parameters'  --sim 'flexmem_sim parameters'  --no-load  --no-build
#   --out DIR   where to keep what the run leaves: console.log, stdout, stderr, out/ (in the guest: $FLEXMEM_VM_OUT)
# Exit status: that of COMMAND, or
#   95  the modules did not load     97  a kernel splat (printed)    124  timeout
#   96  they did not unload, or left memory behind                   125  the machine did not come up, or died
#   98  it failed, and the machine's clock had jumped: that says nothing about the modules
# Environment: FLEXMEM_ACCEL=kvm|tcg overrides what we find out; every FLEX* reaches the command, and so do COLUMNS
# and TERM. In the guest: FLEXMEM_KO is the directory of the modules, FLEXMEM_KERNEL the KIND.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"
vm=$TOP/tests/vm

kind=${1:-}
[[ $kind =~ ^(6\.1|6\.12|debug|kcsan)$ ]] || die "usage: run.sh 6.1|6.12|debug|kcsan [option...] -- command"
shift
cpus=2 mem=2048 timeout=600 append='' load='' sim='' do_load=1 do_build=1 out=''
while (($#)); do
	case $1 in
	--cpus) cpus=$2 ;;
	--mem) mem=$2 ;;
	--timeout) timeout=$2 ;;
	--append) append=$2 ;;
	--load) load=$2 ;;
	--sim) sim=$2 ;;
	--out) out=$2 ;;
	--no-load) do_load=0 && shift && continue ;;
	--no-build) do_build=0 && shift && continue ;;
	--) shift && break ;;
	*) die "unknown option '$1'" ;;
	esac
	(($# > 1)) || die "'$1' needs a value"
	shift 2
done
(($#)) || die "no command"
command -v qemu-system-x86_64 >/dev/null || die "no QEMU: run tests/setup.sh"

"$vm/kernel.sh" "$kind"
((!do_build)) || "$vm/modules.sh" "$kind"

# KVM may exist and yet not boot a kernel, so it is tried once, with the real thing, and the answer is kept until the
# machine restarts.
accel=${FLEXMEM_ACCEL:-}
if [[ ! $accel ]]; then
	verdict=$BUILD/vm/accel
	boot=$(</proc/sys/kernel/random/boot_id)
	accel=$(
		lock accel
		mkdir -p "$BUILD/vm"
		if read -r known kept 2>/dev/null <"$verdict" && [[ $kept == "$boot" ]]; then
			echo "$known" && exit
		fi
		found=tcg
		if [[ -r /dev/kvm && -w /dev/kvm ]] && FLEXMEM_ACCEL=kvm "$0" "$kind" --timeout 10 --no-load --no-build \
			-- true >/dev/null 2>&1; then
			found=kvm
		fi
		echo "$found $boot" >"$verdict"
		echo "$found"
	)
fi
case $accel in
kvm) machine=(-accel kvm -cpu host) ;;
# Five-level page tables and the like only cost time when every access is emulated.
tcg) machine=(-accel 'tcg,thread=multi' -cpu 'max,la57=off') ;;
*) die "FLEXMEM_ACCEL is '$accel', not kvm or tcg" ;;
esac

keep=$out
if [[ $out ]]; then
	mkdir -p "$out"
	rm -rf "${out:?}"/{console.log,stdout,stderr,status,up,finished,out}
else
	mkdir -p "$BUILD/vm"
	out=$(mktemp -d "$BUILD/vm/$kind.XXXXXX")
fi
out=$(cd -- "$out" && pwd -P)
mkdir "$out/out"
touch "$out/stdout" "$out/stderr"

# What guest.sh is to do. The values are quoted for a shell.
needed=''
if ((do_load)); then
	# Modules of the kernel's own that ours need; found here, where it takes no time.
	needed=$(modinfo -F depends "$BUILD/ko/$kind"/flexmem{,_sim}.ko | tr ',' '\n' | grep -v '^flexmem' | sort -u | xargs || true)
fi
{
	printf '%s=%q\n' TOP "$TOP" FLEXMEM_KERNEL "$kind" do_load "$do_load" load "$load" sim "$sim" needed "$needed"
	columns=${COLUMNS:-$(stty size 2>/dev/null </dev/tty | cut -d' ' -f2 || true)}
	printf 'export %s=%q\n' COLUMNS "${columns:-100}" TERM "${TERM:-dumb}"
	for name in "${!FLEX@}"; do
		printf 'export %s=%q\n' "$name" "${!name}"
	done
} >"$out/job"
printf '%q ' "$@" >"$out/command"

# A panic or an oops ends the machine: nothing that comes after it is worth waiting for.
kernel_args="console=ttyS0 loglevel=7 panic=-1 oops=panic log_buf_len=1M printk.time=1 random.trust_cpu=on mitigations=off tsc=reliable"
# A timer's interrupt can come late to an emulated machine on a busy host; the kernel would take it for broken.
kernel_args+=" no_timer_check"
# 0x608: where the firmware puts the power management timer of this machine; our own kernels have no ACPI to find it.
[[ $kind == 6.* ]] || kernel_args+=" kunit.enable=1 pmtmr=0x608"
kernel_args+=" $append"

uptime_s() { cut -d. -f1 /proc/uptime; }
boot() {
	begin=$(uptime_s)
	setsid timeout -k 5 "$timeout" qemu-system-x86_64 "${machine[@]}" -machine pc -smp "$cpus,sockets=$cpus" -m "$mem" \
		-nodefaults -no-user-config -display none -no-reboot \
		-kernel "$BUILD/kernels/$kind/vmlinuz" -initrd "$BUILD/kernels/$kind/initrd.gz" -append "$kernel_args" \
		-serial "file:$out/console.log" \
		-virtfs "local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap" \
		-virtfs "local,path=$out,mount_tag=share,security_model=none" \
		</dev/null >"$out/qemu.log" 2>&1 &
	qemu=$!
	trap 'kill "$qemu" 2>/dev/null || true' EXIT
	# The output comes through files rather than a terminal line: nothing is lost or changed however much there is.
	tail -q -f -n +1 -s 0.1 --pid="$qemu" -- "$out/stdout" &
	tail -q -f -n +1 -s 0.1 --pid="$qemu" -- "$out/stderr" >&2 &
	qemu_status=0
	wait "$qemu" || qemu_status=$?
	trap - EXIT
	wait
}
# Emulation with a thread for each processor can lose a change that a kernel makes to its own code as it boots (it dies of
# "Oops: int3"). That is QEMU's: nothing of ours has been loaded before guest.sh says that it is up.
for ((try = 1; try <= 3; try++)); do
	boot
	[[ ! -e $out/up && $qemu_status == 0 && $try != 3 ]] || break
	say "vm: the machine died while it booted; once more"
	mv "$out/console.log" "$out/console.$try.log"
done

fate=0
if ((qemu_status == 124 || qemu_status == 137)); then
	say "vm: timeout after $timeout s"
	fate=124
elif [[ ! -e $out/finished ]]; then
	say "vm: the machine died or did not come up"
	cat "$out/qemu.log" >&2
	tail -n 15 -- "$out/console.log" >&2 || true
	fate=125
else
	fate=$(<"$out/finished")
fi
if ! "$vm/splat.sh" "$out/console.log" >"$out/splat"; then
	say "vm: kernel splat:"
	cat "$out/splat" >&2
	fate=97
fi
status=0
((fate)) || status=$(<"$out/status")
# The counters of the host's processors can differ by minutes, and an emulated machine then sees its time leap: every
# timeout in it has passed at once, and whoever waits for two minutes is taken for stuck.
leap=$(grep -aoE '^\[ *[0-9]+' "$out/console.log" | tail -n 1 | tr -dc 0-9 || true)
leap=$((${leap:-0} - $(uptime_s) + begin))
if ((leap > 20 && (fate || status))); then
	say "vm: the machine's clock is $leap s ahead of ours"
	fate=98
fi
if ((fate)); then
	say "vm: see $out/console.log"
	exit "$fate"
fi
# Nobody asked for it and nothing went wrong: leave nothing behind.
[[ $keep || $status != 0 ]] || rm -rf "$out"
exit "$status"
