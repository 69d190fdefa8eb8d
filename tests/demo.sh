#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The main job in one go: a stock kernel, in a virtual machine, loads the driver and serves the recorded memory traffic
# of real frameworks on a virtual function with 8 slots. Does its own set-up.
# usage: make demo
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/lib.sh"
cd "$TOP"

tests/setup.sh build vm
say 'Building the library and the command'
quietly "$BUILD/log/userlib" make -C userlib "O=$BUILD/userlib" all
say 'Building the modules for a stock 6.12 kernel'
tests/vm/modules.sh 6.12
say 'Booting it, with one physical and one virtual function of the simulated device'
demo() {
	tests/vm/run.sh 6.12 --no-build --timeout 170 --load 'order=fill_first' --sim 'slots=8 num_vfs=1' -- tests/vm/demo.sh
}
status=0
demo || status=$?
if ((status == 98)); then
	say 'Once more'
	status=0
	demo || status=$?
fi
if ((status)); then
	say "The demo failed (exit status $status)."
	exit "$status"
fi
accel=${FLEXMEM_ACCEL:-}
[[ ! -e $BUILD/vm/accel-6.12 ]] || read -r accel _ <"$BUILD/vm/accel-6.12"
[[ $accel != tcg ]] || say "This machine was emulated instruction by instruction: its times are many times those of a processor."
say "The demo succeeded: every event went through the driver, through a table with a slot for one live tensor in a hundred."
say "Next: make vm CMD='flexmem info', or what you like, in such a machine; a trace of your own: Documentation/tasks/replay.rst"
