#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# make vm: in a machine with loaded modules, runs CMD with our standard input, or a shell if there is no CMD. If
# standard input and output are a terminal, the command uses that terminal.
# usage: tests/vm/shell.sh KIND           environment: CMD FLEXMEM_PARAMS SIM_PARAMS
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

options=(--load "${FLEXMEM_PARAMS:-}" --sim "${SIM_PARAMS:-}")
if [[ -t 0 && -t 1 ]]; then
	options+=(--tty --timeout 0)
else
	options+=(--stdin)
fi
if [[ ${CMD:-} ]]; then
	exec "$TOP/tests/vm/run.sh" "$1" "${options[@]}" -- bash -c "$CMD"
fi
[[ ! -t 0 ]] || say 'A shell in a virtual machine; "exit" ends it. flexmem is loaded and in the PATH.'
exec "$TOP/tests/vm/run.sh" "$1" "${options[@]}" -- bash --norc
