#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs checkpatch --strict on whole files. Prints nothing if there are no complaints.
# usage: tests/checkpatch.sh FILE...
# A complaint can be waived by a comment on the line that it names, or on one of the two lines before. The comment must
# give a reason:
# 	/* checkpatch: LINUX_VERSION_CODE - this file is where the series differ */
# A line of the file waives a complaint everywhere in it:
#	 * checkpatch in this file: OPEN_ENDED_LINE - trace events have a style of their own
set -euo pipefail
# shellcheck source=tests/lib.sh
. "$(dirname -- "$0")/lib.sh"

"$TOP/tests/vm/debug-kernel.sh" --source
complaints=$(perl "$BUILD/linux-source/scripts/checkpatch.pl" --strict --no-tree --no-summary --terse --show-types \
	--quiet --color=never -f "$@" || true)
awk -F: '
!($3 ~ /^ *(ERROR|WARNING|CHECK)$/) {
	if (NF) { print; bad = 1 }
	next
}
{
	file = $1
	if (!(file in length_of)) {
		n = 0
		while ((getline line < file) > 0)
			text[file, ++n] = line
		close(file)
		length_of[file] = n
	}
	waived = 0
	for (n = $2 - 2; n <= $2; n++)
		# The comment must give a reason after the dash.
		if (text[file, n] ~ ("checkpatch: " $4 " - [[:alnum:]]"))
			waived = 1
	for (n = 1; n <= length_of[file]; n++)
		if (text[file, n] ~ ("checkpatch in this file: " $4 " - [[:alnum:]]"))
			waived = 1
	if (!waived) { print; bad = 1 }
}
END { exit bad }
' <<<"$complaints"
