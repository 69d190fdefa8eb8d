# SPDX-License-Identifier: GPL-2.0
#
# Counts the tests of one or several TAP or KTAP streams, which may be nested. Each line may begin with a time stamp of
# the kernel.
# usage: awk -v status=EXIT-STATUS -f tests/tap.awk FILE
# Prints a line "PASSED FAILED SKIPPED", and then a line for each failure.
#
# A result that sums up nested results does not count, unless it failed and none of the nested results did. These count
# as failures: a stream without a plan, a stream with fewer results than planned, and an exit status other than 0
# without a failed test.

function failure(depth, text,   d)
{
	failed++
	failures = failures text "\n"
	for (d = 0; d < depth; d++)
		failed_below[d] = 1
}

function end_stream(d)
{
	if (!open[d])
		return
	if (planned[d] == "" && d == 0)
		failure(d, "truncated: no plan (" seen[d] + 0 " results)")
	else if (planned[d] != "" && planned[d] != seen[d] + 0)
		failure(d, "truncated: " planned[d] " planned, " seen[d] + 0 " results")
	open[d] = seen[d] = 0
	planned[d] = ""
}

function end_streams(from,   d)
{
	for (d = deepest; d >= from; d--)
		end_stream(d)
}

function result(d, line,   e)
{
	end_streams(d + 1)
	open[d] = 1
	seen[d]++
	if (line ~ /^not/) {
		# A failure that is marked as TODO is expected, so it counts as skipped.
		if (toupper(line) ~ /# TODO/)
			skipped++
		else if (!below[d] || !failed_below[d])
			failure(d, line)
	} else if (!below[d]) {
		if (toupper(line) ~ /# SKIP/)
			skipped++
		else
			passed++
	}
	for (e = 0; e <= deepest; e++)
		if (e < d)
			below[e] = 1
		else
			below[e] = failed_below[e] = 0
}

BEGIN { deepest = 0; tap = "^[# ]*((not )?ok [0-9]+|1\\.\\.[0-9]+|K?TAP version [0-9]+|Bail out!)" }

{
	gsub(/\r/, "")
	sub(/^(<[0-9]+>)?\[ *[0-9]+\.[0-9]+\](\[ *[TC][0-9]+\])? ?/, "")
	if ($0 !~ tap)
		next
	match($0, /^[# ]*/)
	depth = RLENGTH
	line = substr($0, RLENGTH + 1)
	if (depth > deepest)
		deepest = depth

	if (line ~ /TAP version/) {
		end_streams(depth)
		open[depth] = 1
	} else if (line ~ /^1\.\./) {
		if (planned[depth] != "")
			end_streams(depth)
		open[depth] = 1
		planned[depth] = substr(line, 4) + 0
		if (depth == 0 && planned[depth] == 0)
			skipped++
	} else if (line ~ /^Bail out!/) {
		failure(depth, line)
	} else {
		result(depth, line)
	}
}

END {
	if (!failed && !passed && !skipped && !open[0])
		failure(0, "no results")
	end_streams(0)
	if (status + 0 && !failed)
		failure(0, "exit status " status)
	print passed + 0, failed + 0, skipped + 0
	printf "%s", failures
}
