#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Boots a kernel under QEMU. Its root file system is the host's (read-only, under an overlay in memory). Loads our
# modules, runs a command in the checkout, and returns its output and exit status.
#
# usage: tests/vm/run.sh KIND [option...] -- COMMAND [ARG...]      KIND: 6.1, 6.12, 7, debug, kcsan
#   --cpus N  --mem MB  --timeout SECONDS  --append 'kernel arguments'  --tries N (of booting, default 3)
#   --load 'flexmem parameters'  --sim 'flexmem_sim parameters'  --no-load  --no-build
#   --leaps     ends with status 98 if COMMAND failed and the machine's clock had jumped
#   --stdin     COMMAND reads the standard input of this script (otherwise it has none)
#   --tty       COMMAND has the terminal of this script; with --timeout 0 it has no time limit
#   --machine TYPE      of QEMU (default pc; q35 has PCIe)
#   --device SPEC       adds a device: the value of QEMU's -device. May be repeated
#   --plugin FILE.so    is loaded into QEMU, and into no other program
#   --ask DIR   lets the guest ask the host for commands of QEMU, and of the card's process in DIR ('' if there is none):
#               see tests/vm/ask
#   --out DIR   where to keep what the run leaves: console.log, stdout, stderr, out/ (in the guest: $FLEXMEM_VM_OUT)
# Exit status: that of COMMAND, or
#   95   the modules did not load
#   96   the modules did not unload, or left memory behind
#   97   the kernel printed a splat, which this script prints too
#   98   with --leaps: COMMAND failed, and the machine's clock had jumped. That says nothing about the modules.
#   124  COMMAND took too long
#   125  the machine did not come up, or died
# Environment:
#   FLEXMEM_ACCEL   kvm, tcg (emulation) or icount (tcg with a clock that counts instructions, one for each nanosecond).
#                   Default: kvm if it boots the kernel, otherwise tcg. The answer is kept in build/vm/accel-KIND, which
#                   `make clean` removes.
#   VM_TRIES        a file to which each boot that had to be repeated is added
# All FLEX* variables reach the command, and so do COLUMNS and TERM. In the guest FLEXMEM_KO is the directory of the
# modules, and FLEXMEM_KERNEL is the KIND.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"
vm=$TOP/tests/vm

kind=${1:-}
known_kernel "$kind"
shift
cpus=2 mem=2048 timeout=600 tries=3 append='' load='' sim='' do_load=1 do_build=1 do_stdin=0 do_tty=0 leaps=0 out=''
machine_type=pc devices=() plugin='' do_ask=0 card=''
while (($#)); do
	case $1 in
	--cpus) cpus=$2 ;;
	--mem) mem=$2 ;;
	--timeout) timeout=$2 ;;
	--tries) tries=$2 ;;
	--append) append=$2 ;;
	--load) load=$2 ;;
	--sim) sim=$2 ;;
	--out) out=$2 ;;
	--machine) machine_type=$2 ;;
	--device) devices+=(-device "$2") ;;
	--plugin) plugin=$2 ;;
	--ask) do_ask=1 card=$2 ;;
	--leaps) leaps=1 && shift && continue ;;
	--no-load) do_load=0 && shift && continue ;;
	--no-build) do_build=0 && shift && continue ;;
	--stdin) do_stdin=1 && shift && continue ;;
	--tty) do_tty=1 && shift && continue ;;
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

# KVM may exist but not boot this kernel. So the script tries KVM once with this kernel, and keeps the result until the
# host restarts. VM_KVM here and VM_PATIENCE below are for the self-checks.
kvm=${VM_KVM:-/dev/kvm}
accel=${FLEXMEM_ACCEL:-}
verdict=$BUILD/vm/accel-$kind
if [[ ! $accel ]]; then
	boot=$(</proc/sys/kernel/random/boot_id)
	accel=$(
		lock "accel-$kind"
		mkdir -p "$BUILD/vm"
		if read -r known kept 2>/dev/null <"$verdict" && [[ $kept == "$boot" ]]; then
			echo "$known" && exit
		fi
		found=tcg
		if [[ -r $kvm && -w $kvm ]]; then
			if FLEXMEM_ACCEL=kvm "$0" "$kind" --tries 1 --no-load --no-build -- true >/dev/null 2>&1; then
				found=kvm
			else
				say "vm: KVM does not boot the $kind kernel: it is emulated"
			fi
		fi
		echo "$found $boot" >"$verdict"
		echo "$found"
	)
fi
case $accel in
kvm) machine=(-accel kvm -cpu host) ;;
# Five-level page tables are turned off, because they only cost time if every access is emulated. AVX2 has a bug in QEMU
# 7.2: a gather with ymm4 as its index ignores the index and reads random addresses. oneDNN uses such a gather in tanh.
# With ERMS kernel and C library would clear and copy pages byte by byte, and each byte is emulated.
tcg) machine=(-accel 'tcg,thread=multi' -cpu 'max,la57=off,avx2=off,erms=off') ;;
icount) machine=(-accel 'tcg,thread=single' -icount 'shift=0,sleep=off' -cpu 'max,la57=off,avx2=off') ;;
*) die "FLEXMEM_ACCEL is '$accel', not kvm, tcg or icount" ;;
esac

keep=$out
if [[ $out ]]; then
	mkdir -p "$out"
	rm -rf "${out:?}"/{console.log,console.?.log,stdout,stderr,stdin,stdin.end,status,up,hung,finished,out,ask,qmp.in,qmp.out}
else
	mkdir -p "$BUILD/vm"
	out=$(mktemp -d "$BUILD/vm/$kind.XXXXXX")
fi
out=$(cd -- "$out" && pwd -P)
mkdir "$out/out"
if ((do_ask)); then
	mkdir "$out/ask"
	mkfifo "$out/qmp.in" "$out/qmp.out"
	devices+=(-chardev "pipe,id=qmp,path=$out/qmp" -mon 'chardev=qmp,mode=control')
fi
touch "$out/stdout" "$out/stderr"

# The instructions for guest.sh, quoted for a shell.
needed=''
if ((do_load)); then
	# The modules of the kernel that flexmem's modules need. They are determined on the host, because that is fast.
	needed=$(modinfo -F depends "$BUILD/ko/$kind"/flexmem{,_sim}.ko | tr ',' '\n' | grep -v '^flexmem' | sort -u | xargs || true)
fi
{
	printf '%s=%q\n' TOP "$TOP" FLEXMEM_KERNEL "$kind" do_load "$do_load" load "$load" sim "$sim" needed "$needed"
	printf '%s=%q\n' do_stdin "$do_stdin" do_tty "$do_tty" tty_size "$(stty size 2>/dev/null </dev/tty || true)"
	columns=${COLUMNS:-$(stty size 2>/dev/null </dev/tty | cut -d' ' -f2 || true)}
	printf 'export %s=%q\n' COLUMNS "${columns:-100}" TERM "${TERM:-dumb}"
	for name in "${!FLEX@}"; do
		printf 'export %s=%q\n' "$name" "${!name}"
	done
} >"$out/job"
printf '%q ' "$@" >"$out/command"

# A panic or an oops ends the machine, because what follows proves nothing.
kernel_args="console=ttyS0 loglevel=7 panic=-1 oops=panic log_buf_len=1M printk.time=1 random.trust_cpu=on mitigations=off tsc=reliable"
# On a busy host the interrupt of an emulated timer can be late. The kernel must not conclude that the timer is broken.
kernel_args+=" no_timer_check"
# 0x608: the machine's power management timer, which the project's kernels cannot find without ACPI.
[[ $kind == [67]* ]] || kernel_args+=" kunit.enable=1 pmtmr=0x608"
# An emulated machine is slow: the kernel's watchdogs must wait as long as they can.
[[ $accel == kvm ]] || kernel_args+=" rcupdate.rcu_cpu_stall_timeout=300 sysctl.kernel.watchdog_thresh=60 \
sysctl.kernel.hung_task_timeout_secs=600"
kernel_args+=" $append"

# Copies the input to a file that the guest follows. When the input has ended, writes its length to a second file.
feed() {
	cat <&"$input" >"$out/stdin" &
	# shellcheck disable=SC2064	# expands $! now
	trap "kill $!; exit" TERM
	wait $! || true
	stat -c %s "$out/stdin" >"$out/stdin.end.new"
	mv "$out/stdin.end.new" "$out/stdin.end"
}
exec {input}<&0
feeder=
if ((do_stdin)); then
	touch "$out/stdin"
	feed >/dev/null 2>&1 &
	feeder=$!
fi
# The second serial line is connected to the terminal. Special keys go to the guest.
terminal=()
((!do_tty)) || terminal=(-chardev 'stdio,id=terminal,signal=off' -serial chardev:terminal)

uptime_s() { cut -d. -f1 /proc/uptime; }
# boot SECONDS: runs the machine until it ends. If the machine is not up after SECONDS, kills it and makes the file
# $out/hung. Counts sleeps of 0.2 s instead of reading the clock, because a clock also advances while the host stalls.
boot() {
	local i
	begin=$(uptime_s)
	rm -f "$out/hung"
	: >"$out/console.log"
	local settings='' shown=()
	local command=(-k 5 "$timeout" env ${plugin:+"LD_PRELOAD=$plugin"} qemu-system-x86_64 "${machine[@]}"
		-machine "$machine_type" -smp "$cpus,sockets=$cpus" -m "$mem"
		-nodefaults -no-user-config -display none -no-reboot
		-kernel "$BUILD/kernels/$kind/vmlinuz" -initrd "$BUILD/kernels/$kind/initrd.gz" -append "$kernel_args"
		-serial "file:$out/console.log" "${terminal[@]}"
		-virtfs "local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap"
		-virtfs "local,path=$out,mount_tag=share,security_model=none"
		"${devices[@]}")
	if ((do_tty)); then
		settings=$(stty -g)
		timeout --foreground "${command[@]}" <&"$input" 2>"$out/qemu.log" &
	else
		setsid timeout "${command[@]}" </dev/null >"$out/qemu.log" 2>&1 &
	fi
	qemu=$!
	asked=
	if ((do_ask)); then
		"$vm/host.py" "$out" ${card:+"$card"} >"$out/host.log" 2>&1 &
		asked=$!
	fi
	trap 'kill "$qemu" $feeder $asked 2>/dev/null || true' EXIT
	# The output is passed through files, because a serial line could change it or lose some of it.
	tail -q -f -n +1 -s 0.1 --pid="$qemu" -- "$out/stdout" &
	shown+=($!)
	tail -q -f -n +1 -s 0.1 --pid="$qemu" -- "$out/stderr" >&2 &
	shown+=($!)
	boots() { [[ ! -e $out/up ]] && kill -0 "$qemu" 2>/dev/null; }
	for ((i = 0; i < 5 * $1; i++)); do
		boots || break
		# Under KVM a kernel prints something within two seconds.
		[[ $accel != kvm || -s $out/console.log || $i -lt $((5 * $1 / 4)) ]] || break
		sleep 0.2
	done
	if boots; then
		touch "$out/hung"
		kill "$qemu" 2>/dev/null || true
	fi
	qemu_status=0
	wait "$qemu" || qemu_status=$?
	trap - EXIT
	[[ ! $asked ]] || kill "$asked" 2>/dev/null || true
	[[ ! $settings ]] || stty "$settings"
	wait "${shown[@]}"
}
# If each processor is emulated by a thread of its own, QEMU can lose a change that a kernel makes to its own code while
# it boots: the kernel dies of "Oops: int3", or waits for ever. That is a bug of QEMU, not of ours: nothing of flexmem
# is loaded before guest.sh reports that the machine is up. So the boot is tried again. For a machine that is merely
# slow, each try has more time.
for ((try = 1; ; try++)); do
	boot $((${VM_PATIENCE:-30} << try))
	if [[ -e $out/up || ($qemu_status != 0 && ! -e $out/hung) ]]; then
		break
	fi
	why='died'
	[[ ! -e $out/hung ]] || why='hung'
	said=$("$vm/splat.sh" "$out/console.log" | head -n 1 || true)
	((try < tries)) || break
	say "vm: the machine $why while it booted${said:+ ($said)}; once more"
	mv "$out/console.log" "$out/console.$try.log"
	[[ ! ${VM_TRIES:-} ]] || echo "$kind $why while it booted: $out/console.$try.log${said:+: $said}" >>"$VM_TRIES"
done
# KVM has booted this kernel before but does not now, so the next run tries KVM again.
[[ $accel != kvm || -e $out/up ]] || rm -f "$verdict"

[[ ! $feeder ]] || kill "$feeder" 2>/dev/null || true

fate=0
if [[ -e $out/hung ]]; then
	say "vm: the machine does not come up"
	tail -n 15 -- "$out/console.log" >&2 || true
	fate=125
elif ((qemu_status == 124 || qemu_status == 137)); then
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
# The time counters of the host's processors can differ by minutes. The clock of an emulated machine then jumps: all
# timeouts in it expire at once, and a process that waits for two minutes looks stuck.
leap=$(grep -aoE '^\[ *[0-9]+' "$out/console.log" | tail -n 1 | tr -dc 0-9 || true)
leap=$((${leap:-0} - $(uptime_s) + begin))
if ((leaps && leap > 20 && (fate || status))); then
	say "vm: the machine's clock is $leap s ahead of ours"
	fate=98
fi
if ((fate)); then
	say "vm: see $out/console.log"
	exit "$fate"
fi
# Removes the output directory, unless --out has named it or the run has failed.
[[ $keep || $status != 0 ]] || rm -rf "$out"
exit "$status"
