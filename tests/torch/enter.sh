#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs a command in the root that root.sh has made, by tests/enter.sh.
# usage: tests/torch/enter.sh COMMAND [ARGUMENT...]      in /srv/flexmem; FLEX* and PYTORCH_ALLOC_CONF are passed on
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

made=/srv/flexmem/${TORCH#"$TOP/"}
variables=("HOME=$made" "CCACHE_DIR=$made/ccache" PYTHONDONTWRITEBYTECODE=1 "PYTHONPATH=$made/made/binding")
for name in "${!FLEX@}" PYTORCH_ALLOC_CONF; do
	[[ ! -v $name ]] || variables+=("$name=${!name}")
done
# On some processors (AMD EPYC, PyTorch 2.6) oneDNN's convolutions with AVX-512 give another result in each run,
# sometimes NaN, even without flexmem. Then comparing losses proves nothing.
variables+=(ONEDNN_MAX_CPU_ISA=AVX2)
exec "$TOP/tests/enter.sh" "$TORCH/root" env "${variables[@]}" "$@"
