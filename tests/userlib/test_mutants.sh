#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Checks that the test of each bug in mutants.list fails when the bug is planted.
# Prints TAP, a test for each bug. MUTANTS=N tries only N bugs, which the hash of the sources chooses.
here=$(dirname -- "$0")
exec "$here/../native/mutants.py" ${MUTANTS:+-n "$MUTANTS"} -l "$here/mutants.list"
