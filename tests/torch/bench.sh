#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Compares the cost of operations on the device "flexmem", over host memory, with the CPU's: time in ns, and
# instructions that callgrind counts, both in one run. Fails if an operation on tiny tensors takes more than 3 times the
# CPU's instructions, or a step of a ResNet more than 1.1 times. Documentation/pytorch.rst has its table.
# usage: tests/torch/bench.sh         (make bench-torch)
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"
cd "$TOP"

"$TOP/tests/setup.sh" bench
tests/torch/root.sh
tests/torch/build.sh
out=$TORCH/bench
rm -rf "$out"
mkdir -p "$out"
# The Debian root has no valgrind, so this copies the one of this machine.
cp /usr/bin/valgrind.bin /usr/libexec/valgrind/{callgrind-amd64-linux,vgpreload_core-amd64-linux.so,default.supp} "$out"
bench=(tests/torch/enter.sh env "VALGRIND_LIB=${out#"$TOP/"}" OMP_NUM_THREADS=1)
export FLEXMEM_TORCH=host
"${bench[@]}" "${TORCH#"$TOP/"}/made/bench" times >"$out/times"
# callgrind writes out.1 when counted() begins, out.2 when counted() ends, out.3 at the next begin, and so on. The
# counts include all threads, because the backward pass of a device runs in a thread of its own.
quietly "$out/log" "${bench[@]}" bash -c "exec '${out#"$TOP/"}/valgrind.bin' --tool=callgrind --dump-before=counted --dump-after=counted \
	--callgrind-out-file='${out#"$TOP/"}/out' '${TORCH#"$TOP/"}/made/bench' count >'${out#"$TOP/"}/counts'"
number=0
while IFS=$'\t' read -r name device count; do
	number=$((number + 2))
	printf '%s\t%s\t%d\n' "$name" "$device" $(($(sed -n 's/^totals: //p' "$out/out.$number") / count))
done <"$out/counts" >"$out/instructions"
awk -F '\t' '
	NR == FNR { ns[$1, $2] = $3; next }
	{ count[$1, $2] = $3 }
	$2 == "flexmem" {
		cpu = count[$1, "cpu"]
		ratio = $3 / cpu
		if (!said++)
			printf "%-20s %12s %12s %6s %12s %12s %6s\n", "", "CPU, ns", "flexmem", "ratio", "CPU, instr.", "flexmem", "ratio"
		printf "%-20s %12d %12d %6.2f %12d %12d %6.2f\n", $1, ns[$1, "cpu"], ns[$1, $2], ns[$1, $2] / ns[$1, "cpu"], cpu, $3, ratio
		if (ratio > ($1 == "step of a ResNet" ? 1.1 : 3)) {
			print $1 ": too much" > "/dev/stderr"
			bad = 1
		}
	}
	END { exit bad || !said }' "$out/times" "$out/instructions"
