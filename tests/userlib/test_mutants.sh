#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Each bug of mutants.list fails its test: TAP, a test for each.
here=$(dirname -- "$0")
exec "$here/../native/mutants.py" -l "$here/mutants.list"
