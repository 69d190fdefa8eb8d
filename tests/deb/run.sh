#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Builds the Debian packages and looks into them. Prints TAP. The long runs also run lintian.
# usage: tests/deb/run.sh
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"
cd "$TOP"
out=$BUILD/deb

# contents PACKAGE: the files and links of a package, without changelog, copyright and debug files
contents() {
	dpkg-deb -c "$out/$1"_*.deb | awk '!/^d/ { print substr($6, 2) }' |
		grep -vE '^/usr/share/doc/[^/]*/(changelog|NEWS)[^/]*$|^/usr/share/doc/[^/]*/copyright$' | sort
}
version_is_one() {
	local version=$1 name
	grep -qxF "#define FLEXMEM_VERSION \"$version\"" kmod/version.h || {
		echo "debian/changelog has $version, kmod/version.h has another version"
		return 1
	}
	name=$(contents flexmem-dkms | grep '/dkms.conf$')
	[[ $name == "/usr/src/flexmem-$version/dkms.conf" ]] || { echo "DKMS's source is in $name" && return 1; }
	dpkg-deb --fsys-tarfile "$out"/flexmem-dkms_*.deb | tar -xO ".$name" | grep -qx "PACKAGE_VERSION=\"$version\"" || {
		echo "dkms.conf has another version than $version"
		return 1
	}
}
# The packages together have what `make install` installs, each file once.
complete() {
	local tree=$out/install status=0 multiarch
	multiarch=$(dpkg-architecture -q DEB_HOST_MULTIARCH)
	rm -rf "$tree"
	make -s -C userlib "O=$BUILD/userlib" prefix=/usr "libdir=/usr/lib/$multiarch" docdir=/usr/share/doc/flexmem-tools \
		zshdir=/usr/share/zsh/vendor-completions \
		"DESTDIR=$tree" install || return 1
	for package in libflexmem0 libflexmem-cuda0 libflexmem-dev flexmem-tools; do
		contents "$package"
	done | sed -E '/\/man[0-9]\//s/\.gz$//' | sort >"$out/packaged"
	(cd "$tree" && find . ! -type d | cut -c2- | sort) >"$out/installed"
	diff "$out/installed" "$out/packaged" || status=1
	uniq -d "$out/packaged" | grep . && status=1
	return "$status"
}
# DKMS builds from a copy of these files, and from no others.
dkms_has_the_source() {
	local version=$1
	diff <(project_files | grep -E '^(Kbuild|dkms.conf|(kmod|uapi)/)' | sort) \
		<(contents flexmem-dkms | sed -n "s|^/usr/src/flexmem-$version/||p" | sort)
}
driver_headers() {
	diff <(cd kmod/include && find flexmem -name '*.h' | sort && echo linux/flexmem.h) \
		<(contents flexmem-dkms | sed -n 's|^/usr/src/flexmem/include/||p' | sort)
}

# As install.rst prints it.
tests/setup.sh deb
version=$(dpkg-parsechangelog -l debian/changelog -S Version)
tap 'the packages are built' make deb
tap 'one version everywhere' version_is_one "$version"
tap 'the packages have what make install installs' complete
tap "DKMS's source is complete" dkms_has_the_source "$version"
tap 'headers for the drivers of devices' driver_headers
if [[ ${FLEXMEM_LONG:-} ]]; then
	tests/setup.sh lintian
	tap 'lintian' lintian --fail-on error,warning "$out"/flexmem_*.changes
fi
tap_end
