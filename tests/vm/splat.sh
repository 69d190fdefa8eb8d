#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Prints the complaints of a kernel in a console log, each with the lines that follow it. Lost memory is not among them:
# guest.sh asks kmemleak at the end, when objects that are just being freed are not reported any more.
# usage: tests/vm/splat.sh CONSOLE-LOG        exit status 1 when there is anything
set -euo pipefail

awk '
BEGIN {
	# The pattern is anchored at the start of the message, because otherwise it would also match harmless lines,
	# such as boot messages about bugs of processors ("RETBleed: WARNING: ...").
	bad = "^(BUG: |WARNING: |kernel BUG at |Oops: |Oops |INFO: task .* blocked for more than |INFO: rcu_.*stall" \
		"|INFO: trying to register non-static key|general protection fault|Kernel panic|UBSAN: " \
		"|invalid opcode:|stack segment:|divide error:|double fault:|page fault in|list_(add|del) corruption" \
		"|ODEBUG: |refcount_t: |usercopy: Kernel memory |rcu: INFO: rcu_.*(stall|detected)|watchdog: BUG|NMI watchdog: BUG" \
		"|Bad page state|INFO: lockdep is turned off|flexmem-vm: splat)" \
		"|possible (circular|recursive|irq lock inversion) |inconsistent lock state|suspicious RCU usage" \
		"|BUG: (KASAN|KCSAN|KFENCE|sleeping|scheduling|unable to handle)|scheduling while atomic" \
		"|sleeping function called from invalid context|bad unlock balance|held lock freed|lock held when returning to user" \
		"|flexmem.*[Dd]eprecated|[Dd]eprecated.*flexmem"
	context = 60
}
{
	line = $0
	gsub(/\r/, "", line)
	text = line
	# Strips "[   12.345678] " and what CONFIG_PRINTK_CALLER adds.
	sub(/^\[ *[0-9]+\.[0-9]+\]( *\[ *[TC][0-9]+\])? */, "", text)
	if (text ~ bad && text !~ /FAULT_INJECTION: forcing a failure/) {
		found = 1
		left = context
	}
	if (left > 0) {
		# Prints at most 400 lines of a splat.
		if (printed++ < 400)
			print line
		left--
	}
}
END { exit found }
' "$1"
