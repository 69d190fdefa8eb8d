#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs in the guest (debug kernel, flexmem.ko loaded): loads the KUnit module, which runs its suites as it loads, and
# prints what the kernel said, KTAP among it.
# usage: tests/vm/run.sh debug -- tests/vm/kunit.sh [module parameter...]
set -euo pipefail

dmesg --clear
(
	status=0
	insmod "$FLEXMEM_KO/flexmem_kunit.ko" "$@" || status=$?
	echo "$status" >/run/kunit-status
	echo 'kunit.sh: the end' >/dev/kmsg
) &
# As it comes, so that a run that does not end shows how far it got.
sed -u '/kunit.sh: the end$/q' < <(exec dmesg --follow)
exit "$(</run/kunit-status)"
