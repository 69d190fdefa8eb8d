#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Second stage of the guest, and its process 1, with the host's programs: loads our modules, runs the command that
# run.sh has passed, unloads the modules and checks that nothing is left behind. It reports to run.sh through files in a
# shared directory.
set -uo pipefail

share=/run/flexmem-vm
do_load=0 do_stdin=0 do_tty=0 tty_size='' load='' sim='' needed=''
# shellcheck disable=SC1091	# run.sh writes it for each run
. "$share/job"

# finish STATUS: tells run.sh what to return; with 0 run.sh returns the command's own status
finish() {
	echo "$1" >"$share/finished.new"
	mv "$share/finished.new" "$share/finished"
	sync
	# Reboots, because a power-off needs ACPI. A reboot ends QEMU too.
	/run/busybox reboot -f
	sleep 60
}
tell() { echo "vm: $*" >>"$share/stderr"; }

touch "$share/up"
echo flexmem-vm >/proc/sys/kernel/hostname
export PATH=$TOP/build/userlib:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root USER=root LOGNAME=root SHELL=/bin/bash LANG=C.UTF-8
export FLEXMEM_VM_OUT=$share/out FLEXMEM_KERNEL FLEXMEM_KO=$TOP/build/ko/$FLEXMEM_KERNEL
export LD_LIBRARY_PATH=$TOP/build/userlib
# Lets programs be compiled with the library that was built but not installed.
export PKG_CONFIG_PATH=$TOP/build/userlib
ulimit -c 0

# $load and $sim are split into words, one for each parameter of a module.
# shellcheck disable=SC2086
load_modules() {
	[[ ! $needed ]] || modprobe -a $needed || return 1
	insmod "$FLEXMEM_KO/flexmem.ko" $load && insmod "$FLEXMEM_KO/flexmem_sim.ko" $sim
}

# Copies the input file, which grows on the host, until its final length is reached or the reader ends.
feed() {
	local at=0 size
	until [[ -e $share/stdin.end && $(<"$share/stdin.end") == "$at" ]]; do
		size=$(stat -c %s "$share/stdin")
		if ((size == at)); then
			sleep 0.1
			continue
		fi
		head -c $((size - at)) < <(tail -c +$((at + 1)) "$share/stdin") || return
		at=$size
	done
}

cd "$TOP" || finish 125
if ((do_load)); then
	if ! load_modules 2>>"$share/stderr"; then
		tell "the modules did not load; the kernel said:"
		dmesg | tail -n 8 >>"$share/stderr"
		finish 95
	fi
fi

cat_out='' cat_err=''
if ((do_tty)); then
	# Runs the command in the foreground, because a background job does not get Ctrl-C. The guest's terminal gets
	# the size of the host's.
	setsid --wait --ctty bash -c "stty sane ${tty_size:+rows ${tty_size% *} cols ${tty_size#* }}; . $share/command" \
		<>/dev/ttyS1 >&0 2>&1
	echo $? >"$share/status"
else
	# Uses named pipes, because a command that reopens /dev/stderr must append to the output, not truncate it.
	mkfifo /run/stdout /run/stderr
	cat </run/stdout >>"$share/stdout" &
	cat_out=$!
	cat </run/stderr >>"$share/stderr" &
	cat_err=$!
	# Uses an unnamed pipe, because a command that reopens /dev/stdin at its end must not wait for a writer.
	if ((do_stdin)); then
		exec {input}< <(feed)
	else
		exec {input}</dev/null
	fi
	setsid bash "$share/command" <&"$input" {input}<&- >/run/stdout 2>/run/stderr &
	exec {input}<&-
	wait $!
	echo $? >"$share/status"
fi
# A process that the command has left behind would keep the pipes open and the modules in use. It gets three seconds to
# end, and longer while output still arrives at the host, which may be busy.
sizes=''
for ((i = tries = 0; i < 30 && tries < 3000; i++, tries++)); do
	kill -0 "$cat_out" 2>/dev/null || kill -0 "$cat_err" 2>/dev/null || break
	last=$sizes
	sizes=$(stat -c %s "$share/stdout" "$share/stderr")
	[[ $sizes == "$last" ]] || i=0
	sleep 0.1
done
kill -9 -1 2>/dev/null
wait

fate=0
modules=$(grep '^flexmem' /proc/modules)
for module in flexmem_kunit flexmem_sim flexmem; do
	grep -q "^$module " <<<"$modules" || continue
	if ! error=$(rmmod "$module" 2>&1); then
		tell "$error"
		fate=96
	fi
done

kmemleak=/sys/kernel/debug/kmemleak
if [[ -e $kmemleak ]]; then
	# kmemleak reports an object if it is five seconds old and two scans in a row have found no pointer to it.
	begin=$SECONDS
	echo scan >$kmemleak
	((SECONDS - begin >= 6)) || sleep $((6 - (SECONDS - begin)))
	echo scan >$kmemleak
	leaks=$(cat $kmemleak)
	if [[ $leaks ]]; then
		tell 'kmemleak reports the following; our modules had been:'
		echo "$modules" | tail -n 3 >>"$share/stderr"
		echo "$leaks" | head -n 200 >>"$share/stderr"
		fate=96
	fi
fi

# Finds errors that splat.sh does not know, because a bad page, an oops, a warning or a lockup taints the kernel.
taint=$(cat /proc/sys/kernel/tainted)
if ((taint & (1 << 5 | 1 << 7 | 1 << 9 | 1 << 14))); then
	echo "flexmem-vm: splat: the kernel is tainted: $taint" >/dev/kmsg
fi
finish "$fate"
