#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs in the guest (debug kernel). Loads the KUnit module, which runs its suites while it is loaded, and prints the
# messages of the kernel, which contain the KTAP. Afterwards flexmem.ko is loaded only if it was loaded before.
# usage: tests/vm/run.sh debug -- tests/vm/kunit.sh [module parameter...]
set -euo pipefail

own=
if ! grep -q '^flexmem ' /proc/modules; then
	insmod "$FLEXMEM_KO/flexmem.ko"
	own=1
fi
dmesg --clear
(
	status=0
	insmod "$FLEXMEM_KO/flexmem_kunit.ko" "$@" || status=$?
	echo "$status" >/run/kunit-status
	echo 'kunit.sh: the end' >/dev/kmsg
) &
# Prints line by line, so that a run that hangs shows how far it got.
sed -u '/kunit.sh: the end$/q' < <(exec dmesg --follow)
status=$(</run/kunit-status)
if [[ $own ]]; then
	((status)) || rmmod flexmem_kunit || status=$?
	rmmod flexmem || status=$?
fi
exit "$status"
