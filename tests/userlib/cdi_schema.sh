#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Prints the path of the schema of CDI files. Its Debian package depends on 60 others, and is only unpacked.
# usage: tests/userlib/cdi_schema.sh
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

package=golang-github-container-orchestrated-devices-container-device-interface-dev
dir=$BUILD/cdi-schema
if [[ ! -d $dir ]]; then
	lock cdi-schema
	# Another process may have made it meanwhile.
	if [[ ! -d $dir ]]; then
		rm -rf "$dir.new"
		deb_unpack "$dir.new" "$package" >&2
		mv "$dir.new" "$dir"
	fi
fi
echo "$dir/usr/share/gocode/src/github.com/container-orchestrated-devices/container-device-interface/schema/schema.json"
