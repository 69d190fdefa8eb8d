#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Builds the library, the binding of PyTorch and the programs in the root that root.sh has made.
# usage: tests/torch/build.sh
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

lock "${TORCH##*/}-made"
"$TOP/tests/torch/enter.sh" make -s -j2 -C tests/torch "O=/srv/flexmem/${TORCH#"$TOP/"}/made" "$@"
