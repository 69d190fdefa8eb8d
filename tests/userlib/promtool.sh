#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs promtool of Debian's package prometheus, which is unpacked once and never installed.
# usage: tests/userlib/promtool.sh ARGUMENT...
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/../lib.sh"

dir=$BUILD/promtool
if [[ ! -x $dir/promtool ]]; then
	lock promtool
	# Another process may have made it meanwhile.
	if [[ ! -x $dir/promtool ]]; then
		rm -rf "$dir" "$dir.new"
		deb_unpack "$dir.new" prometheus >&2
		mkdir "$dir"
		mv "$dir.new/usr/bin/promtool" "$dir"
		rm -rf "$dir.new"
	fi
fi
exec "$dir/promtool" "$@"
