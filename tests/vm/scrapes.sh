#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs in the guest. Processes in eight cgroups allocate and free up to their limits, and their cgroups come and go, while
# `flexmem export` writes figures: 40 times, 1,000 times in the long runs. `flexmem map` draws what files of eight cgroups
# do. Prints TAP. `make -C tests/userlib vm` must have built the Python package.
# usage: tests/vm/run.sh KIND --no-load -- tests/vm/scrapes.sh [SCRAPES]
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

count=40
[[ ! ${FLEXMEM_LONG:-} ]] || count=1000
export PATH=$BUILD/tests/userlib/shipped:$PATH LD_LIBRARY_PATH=$BUILD/tests/userlib/shipped
export PYTHONPATH=$BUILD/tests/userlib/vm/python:$TOP/tests/userlib FLEX_DEVICE=VF
insmod "$FLEXMEM_KO/flexmem.ko" fallback_sizes=64M
insmod "$FLEXMEM_KO/flexmem_sim.ko" memory=1G num_vfs=1 vf_capacity=512M
tap 'a map of the device shows what each cgroup has, and where' /usr/bin/python3 -B "$TOP/tests/vm/live_map.py"
tap 'the figures add up in each scrape' /usr/bin/python3 -B "$TOP/tests/vm/scrapes.py" "${1:-$count}"
rmmod flexmem_sim flexmem
tap_end
