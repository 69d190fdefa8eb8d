#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Converts and replays the snapshot that snapshot.py writes, with the command of this machine.
# usage: tests/torch/snapshot.sh
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"
cd "$TOP"

made=${TORCH#"$TOP/"}/made
command=$BUILD/userlib/flexmem
make -s -C userlib "O=$BUILD/userlib" all
FLEXMEM_TORCH=host tests/torch/enter.sh python3 tests/torch/snapshot.py "$made/snapshot.pickle"
"$command" convert --output "$made/snapshot.trace" "$made/snapshot.pickle"
"$command" --json replay --cache --provider flat "$made/snapshot.trace" >"$made/snapshot.json"
jq -e '.allocs == 2 and .frees == 1 and .failures == 0 and .live_at_end == 1 and .peak_live_bytes == 3145728 + 5120' "$made/snapshot.json"
