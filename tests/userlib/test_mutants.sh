#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Each bug of mutants.list fails its test: TAP, a test for each. MUTANTS=N: as many as that; which, the sources say.
here=$(dirname -- "$0")
exec "$here/../native/mutants.py" ${MUTANTS:+-n "$MUTANTS"} -l "$here/mutants.list"
