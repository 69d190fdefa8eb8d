#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Compares the symbols that flexmem.ko exports with those that flexmem_sim.ko uses.

usage: exports.py TOP OBJECTS

Natively all objects are linked together, so a missing export shows only when a kernel links the modules. OBJECTS holds
core-FILE.o for flexmem.ko and card-FILE.o for flexmem_sim.ko. Prints each symbol that is used but not exported, and
fails if there is one. Symbols that only the unit tests use need no export in the sources: the build of the tests
exports them.
"""
import pathlib
import re
import sys

from edges import symbols

EXPORT = re.compile(r"^EXPORT_SYMBOL_GPL\((\w+)\);", re.MULTILINE)


def read_exports(top):
    """Returns the symbols that flexmem.ko exports."""
    return {symbol for path in top.glob("kmod/**/*.c") for symbol in EXPORT.findall(path.read_text(encoding="utf-8"))}


def read_objects(folder, prefix):
    """Returns the symbols that the objects of a module define, and those that they refer to."""
    defined, wanted = set(), set()
    for some, others in symbols(folder.glob(f"{prefix}-*.o")).values():
        defined |= some
        wanted |= others
    return defined, wanted


def main():
    top, objects = map(pathlib.Path, sys.argv[1:])
    public = read_exports(top)
    core, _ = read_objects(objects, "core")
    card = read_objects(objects, "card")[1] & core
    wrong = [f"{symbol}() is used by flexmem_sim.ko and not exported" for symbol in sorted(card - public)]
    print("\n".join(wrong or [f"{len(card)} symbols used by the simulator"]))
    return bool(wrong or not card)


if __name__ == "__main__":
    sys.exit(main())
