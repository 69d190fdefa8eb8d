#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Shows what flexmem is for: in a virtual machine a stock kernel loads the driver, which serves the recorded memory
# traffic of real frameworks on a virtual function with 8 slots. Needs no set-up before.
# usage: make demo
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/lib.sh"
cd "$TOP"

tests/setup.sh build vm
say 'Building the library and the command'
(lock userlib && quietly "$BUILD/log/userlib" make -C userlib "O=$BUILD/userlib" all)
say 'Building the modules for a stock 6.12 kernel'
tests/vm/modules.sh 6.12
say 'Booting it, with one physical and one virtual function of the simulated device'
# demo SECONDS COMMAND: runs a command in a machine, with the options in the variable more
more=()
demo() {
	local status=0 tries
	for tries in 1 2; do
		status=0
		tests/vm/run.sh 6.12 --no-build --timeout "$1" --load 'order=fill_first' --sim 'slots=8 num_vfs=1' "${more[@]}" -- "$2" ||
			status=$?
		((status == 98 && tries == 1)) || break
		say 'Once more'
	done
	((!status)) || {
		say "The demo failed (exit status $status)."
		exit "$status"
	}
}
# An idle host takes a minute, a busy one many.
demo 540 tests/vm/demo.sh
# Uses the Debian system with PyTorch if an earlier run has installed it. The demo does not download it.
if [[ -e $BUILD/torch/root.made ]]; then
	say 'Building the binding of PyTorch, and booting a second machine'
	quietly "$BUILD/log/torch" tests/torch/build.sh
	more=(--cpus 1)
	demo 600 tests/vm/demo-torch.sh
else
	say "A model that trains with PyTorch comes next if it is there: 'make torch' fetches 300 MB, in 3 to 8 minutes, once."
fi
accel=${FLEXMEM_ACCEL:-}
[[ ! -e $BUILD/vm/accel-6.12 ]] || read -r accel _ <"$BUILD/vm/accel-6.12"
[[ $accel != tcg ]] || say "This machine was emulated instruction by instruction: its times are many times those of a processor."
say "The demo succeeded: every event went through the driver, through a table with a slot for one live tensor in a hundred."
say "Next: make vm CMD='flexmem info', or what you like, in such a machine; a trace of your own: Documentation/tasks/replay.rst"
