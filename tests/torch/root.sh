#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Makes the Debian 13 root in which the PyTorch binding is compiled and tested: build/torch/root, 1.5 GB, of which 300 MB are
# fetched from the package mirror that this machine uses. Does nothing when the root is there.
# usage: tests/torch/root.sh [--remove]
# Exit status: 77: there is no package mirror with Debian 13; the reason is the last line on standard error.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

suite=trixie
packages=python3-torch,python3-expecttest,libtorch-dev,g++,make,ccache
excluded=(/usr/share/doc /usr/share/man /usr/share/locale /usr/share/info /usr/share/lintian)
root=$BUILD/torch/root
# The stamp names what the root was made from, and no path: a copy of build/torch in another checkout is as good.
stamp=$BUILD/torch/root.made
recipe=$suite:$packages

need_root "$0"
if [[ ${1:-} == --remove ]]; then
	# Its files are root's.
	[[ ! -e $BUILD/torch ]] || "${as_root[@]}" rm -rf --one-file-system "$BUILD/torch"
	exit
fi
[[ ! -e $stamp || $(<"$stamp") != "$recipe" ]] || exit 0
lock torch-root
[[ ! -e $stamp || $(<"$stamp") != "$recipe" ]] || exit 0

unavailable() {
	say "$*"
	exit 77
}
# The mirror is the one that apt's sources name for this machine's own release; they are read by apt, in either format.
release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
# shellcheck disable=SC2016	# apt expands it
mirror=$(apt-get indextargets --format '$(CODENAME) $(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
	awk -v release="$release" '($1 == release || $2 == release) && $(NF - 1) == "main" { print $NF; exit }')
[[ $mirror ]] || unavailable "apt's sources name no package mirror for '$release'"
mkdir -p "$BUILD/log" "$BUILD/torch"
log=$BUILD/log/torch-root
/usr/lib/apt/apt-helper -o APT::Sandbox::User=root download-file "${mirror%/}/dists/$suite/InRelease" \
	"$BUILD/torch/InRelease" >"$log" 2>&1 || {
	! grep -q ' 404 ' "$log" || unavailable "this machine's package mirror does not offer Debian 13 ($suite): see $log"
	unavailable "this machine's package mirror cannot be reached, and Debian 13 ($suite) not be fetched: see $log"
}
rm -f "$BUILD/torch/InRelease"

"$TOP/tests/setup.sh" torch
options=(--mode=root --variant=apt --format=directory "--include=$packages" --aptopt='Acquire::Retries "3"')
for path in "${excluded[@]}"; do
	options+=("--dpkgopt=path-exclude=$path/*")
done
say 'Making a Debian 13 with PyTorch below build/torch: 300 MB to fetch, 8 minutes'
"${as_root[@]}" rm -rf --one-file-system "$root"
quietly "$log" "${as_root[@]}" mmdebstrap "${options[@]}" "$suite" "$root" "$mirror"
echo "$recipe" >"$stamp"
