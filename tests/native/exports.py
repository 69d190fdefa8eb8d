#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Compares what flexmem.ko exports with what the other modules use of it.

usage: exports.py TOP OBJECTS

Natively all objects are linked together, so a missing export shows only when a kernel links the modules. OBJECTS holds
core-FILE.o for flexmem.ko, card-FILE.o for flexmem_sim.ko and suite-FILE.o for flexmem_kunit.ko. The simulator may use the
symbols that are exported to every module, the unit tests those for tests as well. Prints each symbol that is used and not
exported, and each one that is exported for tests only and that they do not use; either makes the program fail.
"""
import pathlib
import re
import sys

from edges import symbols

EXPORT = re.compile(r"^EXPORT_SYMBOL(_GPL|_IF_KUNIT)?\((\w+)\);", re.MULTILINE)


def read_exports(top):
    """The symbols that all modules may use, and those for tests only."""
    public, tests = set(), set()
    for path in top.glob("kmod/*.c"):
        for kind, symbol in EXPORT.findall(path.read_text(encoding="utf-8")):
            (tests if kind == "_IF_KUNIT" else public).add(symbol)
    return public, tests


def read_objects(folder, prefix):
    """What the objects of a module define, and what they refer to."""
    defined, wanted = set(), set()
    for path in folder.glob(f"{prefix}-*.o"):
        some, others = symbols(path)
        defined |= some
        wanted |= others
    return defined, wanted


def main():
    top, objects = map(pathlib.Path, sys.argv[1:])
    public, tests = read_exports(top)
    core, _ = read_objects(objects, "core")
    card = read_objects(objects, "card")[1] & core
    units = read_objects(objects, "suite")[1] & core
    wrong = [f"{symbol}() is used by flexmem_sim.ko and not exported" for symbol in sorted(card - public)]
    wrong += [f"{symbol}() is used by flexmem_kunit.ko and not exported" for symbol in sorted(units - public - tests)]
    wrong += [f"{symbol}() is exported for unit tests, which do not use it" for symbol in sorted(tests - units)]
    print("\n".join(wrong or [f"{len(card)} symbols used by the simulator, {len(units)} by unit tests"]))
    return bool(wrong or not card or not units)


if __name__ == "__main__":
    sys.exit(main())
