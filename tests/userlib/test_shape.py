#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Checks the structure of the cache's sources: which file calls which, and that each header includes what it needs. Also
checks that tests/INDEX names the tests of each file of the library and the command."""

import glob
import os
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
from tool import BUILD, HERE, main, test, tests  # noqa: E402

sys.path.append(os.path.join(HERE, "../native"))
import callers  # noqa: E402
from edges import symbols  # noqa: E402

SOURCES = os.path.join(HERE, "../../userlib/src/cache")
OBJECTS = os.path.join(BUILD, "shipped/src/cache")
# The largest number of files that may depend on each other in a circle.
CIRCLE_MAX = 5


def reached(calls, begin):
    """Returns all files that a file calls, directly or through other files."""
    found, waiting = set(), [begin]
    while waiting:
        for name in calls[waiting.pop()] - found:
            found.add(name)
            waiting.append(name)
    return found


@test
def no_circle_of_more_than_five_files():
    files = {os.path.basename(path)[:-2]: each for path, each in symbols(glob.glob(f"{OBJECTS}/*.o"), "TDBR").items()}
    assert len(files) > 20, files.keys()
    home = {name: file for file, (defined, _) in files.items() for name in defined}
    calls = {file: {home[name] for name in needed if name in home} for file, (_, needed) in files.items()}
    after = {file: reached(calls, file) for file in files}
    for file in files:
        circle = sorted(other for other in after[file] if file in after[other])
        assert len(circle) <= CIRCLE_MAX, f"{file}: {' '.join(circle)}"


@test
def each_header_can_be_read_alone():
    for path in sorted(glob.glob(f"{SOURCES}/*.h")):
        subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-D_DEFAULT_SOURCE", "-fsyntax-only", "-Wall", "-Wextra",
                        "-Werror", f"-I{HERE}/../../userlib/include", f"-I{HERE}/../../userlib/src",
                        f"-I{HERE}/../../uapi", "-include", path, "-x", "c", os.devnull], check=True)


@test
def the_index_names_the_nearest_tests():
    callers.USERLIB = pathlib.Path(BUILD) / "asan"
    wrong = callers.differences("userlib")
    assert not wrong, "\n".join(wrong)


if __name__ == "__main__":
    sys.exit(main(tests))
