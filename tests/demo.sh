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
traces=(tests/traces/{resnet50-train,gpt2-train,azure-conv-kv}.trace.gz)
replay() {
	tests/vm/run.sh 6.12 --no-build --timeout 170 --load 'order=fill_first' --sim 'slots=8 num_vfs=1' -- \
		flexmem replay --show-peak "${traces[@]}"
}
status=0
replay || status=$?
if ((status == 98)); then
	say 'Once more'
	status=0
	replay || status=$?
fi
if ((status)); then
	say "The demo failed (exit status $status)."
	exit "$status"
fi
say "The demo succeeded: every event of ${#traces[@]} traces went through the driver. Read on in README.md."
