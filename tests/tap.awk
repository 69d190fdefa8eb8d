# SPDX-License-Identifier: GPL-2.0
#
# Counts a TAP or KTAP stream, nested or not, or several one after another; kernel time stamps may stand before it.
# usage: awk -v status=EXIT-STATUS -f tests/tap.awk FILE
# First line of the answer: "PASSED FAILED SKIPPED". Then a line for each failure.
#
# Only leaves count: a result that sums up results below it does not, unless it is the only one that failed. A stream
# that ends before its plan is fulfilled, one without a plan, and an exit status with nothing to explain it are failures.

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
		# Test failures marked as to-do are known and agreed on; what was skipped has not failed.
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
