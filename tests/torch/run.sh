#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests PyTorch in flexmem's memory, over host memory, which needs no driver. Makes the Debian root first if it does not
# exist. Prints TAP. If the package mirror has no Debian 13, all tests count as skipped, with that reason.
# usage: tests/torch/run.sh [COMMAND [ARGUMENT...]]     COMMAND: in place of these tests, once all is built
#        FLEXMEM_TORCH_SUITE=sid: with the newest PyTorch
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"
cd "$TOP"

status=0
said=$(tests/torch/root.sh 2>&1) || status=$?
if ((status)); then
	say "$said"
	((status == 77)) || exit "$status"
	tap_skip 'PyTorch in flexmem memory' "$(tail -n 1 <<<"$said")"
	tap_end
	exit
fi
tap 'library, binding and programs' tests/torch/build.sh
(($#)) || tap 'a snapshot that torch.flexmem has written is converted and replayed' tests/torch/snapshot.sh
tap_end
if (($#)); then
	echo 'TAP version 14'
	exec "$@"
fi
export FLEXMEM_TORCH=host,host:256
made=${TORCH#"$TOP/"}/made
for command in "$made/train" "$made/tokens" 'python3 tests/torch/tap.py'; do
	echo 'TAP version 14'
	# shellcheck disable=SC2086	# a command and its arguments
	tests/torch/enter.sh $command || status=1
done
# In a container: tests/vm/torch.sh.
echo 'TAP version 14'
FLEXMEM_TORCH=host:512 tests/torch/enter.sh python3 tests/torch/exact.py $((512 << 20)) || status=1
exit "$status"
