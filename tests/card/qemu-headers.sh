#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Makes the headers of the installed QEMU, once for each version: fetches Debian's source package of it, applies Debian's
# patches, configures it, and lets it generate the headers. Compiles nothing of QEMU. The device qcard.so is built against
# these headers and loaded into the installed QEMU, so both must have the same version: the layout of structs differs
# between versions.
# usage: tests/card/qemu-headers.sh        prints the directory, which has src/ and build/
# Exit status: 77 if the headers cannot be had here, because there is no network, or the archive has dropped this version;
# the reason is the last line on standard error. 1 if the source is there, but the headers could not be made.
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

unavailable() { say "qcard: $*"; exit 77; }

version=$(dpkg-query -W -f '${source:Version}' qemu-system-x86 2>/dev/null) || unavailable 'no Debian package of QEMU is installed'
# The device API of other versions differs, and their packages may not export it.
[[ $version == 1:7.2+* ]] || unavailable "QEMU's version is $version, and the device is written for 7.2"
"$TOP/tests/setup.sh" card || unavailable 'what builds the device cannot be installed'
dir=$BUILD/card/qemu-${version#*:}
lock qemu-headers
if [[ -e $dir/ready ]]; then
	echo "$dir"
	exit
fi
say "Making the headers of QEMU $version, once: 24 MB to fetch, about a minute"
rm -rf "$dir"
mkdir -p "$dir"/{lists/partial,cache,src}

# apt's own lists have no source packages. Lists of our own are fetched from the same archives.
keys=/usr/share/keyrings/debian-archive-keyring.gpg
# shellcheck disable=SC2016	# apt-get expands it
apt-get indextargets --format '$(ORIGIN)|$(REPO_URI)|$(RELEASE)|$(COMPONENT)' 'Created-By: Packages' |
	awk -F'|' -v keys="$keys" '$1 == "Debian" { print "deb-src [signed-by=" keys "]", $2, $3, $4 }' | sort -u >"$dir/archives"
apt=(apt-get -q -o "Dir::State::Lists=$dir/lists" -o "Dir::Etc::SourceList=$dir/archives" -o Dir::Etc::SourceParts=/dev/null
	-o "Dir::Cache=$dir/cache" -o APT::Sandbox::User=root)
log=$BUILD/log/qemu-source
mkdir -p "$BUILD/log"
[[ -s $dir/archives ]] || unavailable 'apt knows no archive of Debian'
# A list that cannot be fetched is only a warning of apt.
"${apt[@]}" update >"$log" 2>&1 || true
compgen -G "$dir/lists/*Sources*" >/dev/null ||
	unavailable "the package mirror cannot be reached, or has no source packages: see $log"
(cd "$dir" && "${apt[@]}" source --download-only "qemu=$version") >>"$log" 2>&1 ||
	unavailable "the package mirror does not have the source of QEMU $version: see $log"

(cd "$dir" && dpkg-source --no-check -x ./qemu_*.dsc unpacked) >>"$log" 2>&1 ||
	{ tail -n 20 "$log" >&2; die "cannot unpack the source of QEMU, see $log"; }
rm -rf "$dir"/{src,lists,cache,archives} "$dir"/qemu_*
mv "$dir/unpacked" "$dir/src"
mkdir "$dir/build"
cd "$dir/build"
# Debian's Python and meson, whatever else the PATH has first. The options that change structs are those of Debian's
# package: modules, and TCG with KVM.
export PATH=/usr/bin:/bin
quietly "$BUILD/log/qemu-configure" ../src/configure --target-list=x86_64-softmmu --without-default-features \
	--enable-tcg --enable-kvm --enable-modules --disable-werror --meson=/usr/bin/meson
mapfile -t generated < <(ninja -t targets all | sed -n 's/^\(\(qapi\|trace\)\/[^:]*\.h\): CUSTOM_COMMAND.*/\1/p')
quietly "$BUILD/log/qemu-generate" ninja "${generated[@]}" config-poison.h
touch "$dir/ready"
echo "$dir"
