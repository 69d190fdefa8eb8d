#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Makes the Debian root in which the PyTorch binding is compiled and tested: build/torch/root, 1.5 GB, of which 300 MB
# are fetched from the package mirror that this machine uses. Does nothing if the root exists.
# usage: tests/torch/root.sh [--remove]      FLEXMEM_TORCH_SUITE=sid: not Debian 13, but the newest, in build/torch-sid
# Exit status: 77: there is no package mirror with that Debian; the reason is the last line on standard error.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

suite=${FLEXMEM_TORCH_SUITE:-trixie}
packages=python3-torch,python3-expecttest,libtorch-dev,g++,make,ccache
excluded=(/usr/share/doc /usr/share/man /usr/share/locale /usr/share/info /usr/share/lintian)
root=$TORCH/root
# The stamp names what the root was made from. It contains no path, so build/torch can be copied.
stamp=$TORCH/root.made
recipe=$suite:$packages

need_root "$0"
if [[ ${1:-} == --remove ]]; then
	# The files of a root belong to root.
	for directory in "$BUILD"/torch{,-*} "$BUILD"/kernels/7*; do
		[[ ! -e $directory ]] || "${as_root[@]}" rm -rf --one-file-system "$directory"
	done
	exit
fi
[[ ! -e $stamp || $(<"$stamp") != "$recipe" ]] || exit 0
lock "${TORCH##*/}-root"
[[ ! -e $stamp || $(<"$stamp") != "$recipe" ]] || exit 0

unavailable() {
	say "$*"
	exit 77
}
mirror=$(package_mirror) || unavailable 'the sources of apt name no package mirror'
mkdir -p "$BUILD/log" "$TORCH"
log=$BUILD/log/${TORCH##*/}-root
/usr/lib/apt/apt-helper -o APT::Sandbox::User=root download-file "${mirror%/}/dists/$suite/InRelease" \
	"$TORCH/InRelease" >"$log" 2>&1 || {
	! grep -q ' 404 ' "$log" || unavailable "this machine's package mirror does not offer Debian's suite $suite: see $log"
	unavailable "this machine's package mirror cannot be reached, and Debian's suite $suite not be fetched: see $log"
}
rm -f "$TORCH/InRelease"

"$TOP/tests/setup.sh" torch
options=(--mode=root --variant=apt --format=directory "--include=$packages" --aptopt='Acquire::Retries "3"')
for path in "${excluded[@]}"; do
	options+=("--dpkgopt=path-exclude=$path/*")
done
# A mirror of sid may be older than its Release file allows.
[[ $suite != sid ]] || options+=(--aptopt='Acquire::Check-Valid-Until "false"')
say "Making a Debian $suite with PyTorch below ${TORCH#"$TOP/"}: 300 MB to fetch, 8 minutes"
"${as_root[@]}" rm -rf --one-file-system "$root"
quietly "$log" "${as_root[@]}" mmdebstrap "${options[@]}" "$suite" "$root" "$mirror" || {
	# On some days the packages of sid cannot be installed together.
	[[ $suite != sid ]] || unavailable "Debian's suite $suite cannot be installed today: see $log"
	exit 1
}
echo "$recipe" >"$stamp"
