#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Starts the card's process, boots a machine with the card behind a PCIe root port, and runs a command there.
# usage: tests/card/run.sh KIND [--card DIR] [--first N] [--vfs N] [--iommu] [option of tests/vm/run.sh...] -- COMMAND [ARG...]
#   --card DIR   the directory of a card that runs already. Two machines can have one card: --first N lets the second machine
#                begin with function N
#   --iommu      puts the card behind an Intel IOMMU, in strict mode
# The card is "card0" in QEMU, its root port is "rp0", and the guest can ask the host (tests/vm/ask).
# before: tests/card/build.sh KIND
# Exit status: that of tests/vm/run.sh
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

kind=${1:?usage: run.sh KIND [option...] -- COMMAND}
shift
dir='' first=0 vfs=4 functions=5 options=() append='' machine=q35
while (($#)); do
	case $1 in
	--card) dir=$2 && shift ;;
	--first) first=$2 && shift ;;
	--vfs) vfs=$2 && shift ;;
	--iommu) machine+=,kernel-irqchip=split append='intel_iommu=on iommu.strict=1' ;;
	--) break ;;
	*) options+=("$1") ;;
	esac
	shift
done
if [[ ! $dir ]]; then
	# The paths of sockets are short, so the directory is not below build/.
	dir=$(mktemp -d /tmp/flexmem-card.XXXXXX)
	"$BUILD/tests/card/card" "$dir" "$functions" $((4 << 30)) 2>"$dir/log" &
	process=$!
	trap 'kill "$process" 2>/dev/null || true; rm -rf "$dir"' EXIT
	until [[ -S $dir/control ]]; do
		kill -0 "$process" 2>/dev/null || { cat "$dir/log" >&2; die 'the card does not start'; }
		sleep 0.05
	done
fi
export FLEXMEM_CARD=$dir
devices=()
[[ ! $append ]] || devices+=(--device 'intel-iommu,intremap=on')
# The port's link is slow: with the default of 16 GT/s Linux waits after a reset for a bit that QEMU does not set again.
# The port's window has room for a card that is plugged in later, and for the VFs.
devices+=(--device 'pcie-root-port,id=rp0,bus=pcie.0,chassis=1,slot=1,x-speed=5,pref64-reserve=32G')
devices+=(--device "qcard,id=card0,bus=rp0,dir=$dir,first=$first,vfs=$vfs")
status=0
"$TOP/tests/vm/run.sh" "$kind" --no-build --no-load --machine "$machine" --append "$append" \
	--plugin "$BUILD/tests/card/qcard.so" --ask "$dir" "${devices[@]}" "${options[@]}" "$@" || status=$?
((status == 0)) || tail -n 20 "$dir/log" >&2
exit "$status"
