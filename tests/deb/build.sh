#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Builds the Debian packages into build/deb, from the files that git tracks. PyTorch's package is built where Debian has
# PyTorch (Debian 13 and later), if libtorch-dev is installed.
# usage: tests/deb/build.sh
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

"$TOP/tests/setup.sh" build deb
out=$BUILD/deb
# The tests and their traces are no part of the source package.
parts=(Kbuild Makefile README.md dkms.conf debian kmod uapi userlib LICENSES
	Documentation/man Documentation/man3.py Documentation/library-reference.rst Documentation/cache.rst)
version=$(dpkg-parsechangelog -l "$TOP/debian/changelog" -S Version)
profiles=()
! dpkg-query -W -f '${Status}' libtorch-dev 2>/dev/null | grep -q 'ok installed' || profiles=(-Ppkg.flexmem.torch)

lock deb
rm -rf "$out"
mkdir -p "$out"
(cd "$TOP" && project_files | grep -E "^($(IFS='|' && echo "${parts[*]}"))(/|$)" |
	rsync -a --files-from=- . "$out/flexmem-$version/")
cd "$out/flexmem-$version"
quietly "$BUILD/log/deb" dpkg-buildpackage -us -uc -b "-j$(nproc)" "${profiles[@]}"
printf '%s\n' "$out"/*.deb
