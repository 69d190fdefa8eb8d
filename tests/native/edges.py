#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Compares the calls between parts of the driver with the list in Documentation/internals.rst, and looks for circles
and for includes upwards.

usage: edges.py TOP OBJECTS

OBJECTS holds core-FILE.o for each kmod/FILE.c of flexmem.ko. A file calls another file if it refers to a symbol that
the other file defines. This does not see inline functions of headers. A part calls another part if a file of it calls a
file of the other part. The list is the literal block behind the comment ".. edges: parts". It has a line for each part,
from top to bottom: "part: files | parts that it may call". A part may call only parts further below. Files, also those
of one part, may not call each other in a circle. Few files may include a header of a part further above. A header
belongs to the part of the .c file of its name; a header without such a file belongs to no part.

Prints each difference, and then fails: a call that the list does not allow, an allowed call that does not occur, a file in
no part, a listed file that is not in flexmem.ko, an allowed call upwards, a call that is part of a circle, too many
includes upwards, too many functions of capabilities that the core names.
"""
import collections
import pathlib
import re
import subprocess
import sys

# More files may not include a header of a part above their own.
INCLUDES_UPWARDS = 5
# The files of the capabilities that the core could do without (kmod/part.h), and how many of their functions it may name.
# Their rows in the table of parts do not count.
CAPABILITIES = set("ioctl_report snapshot data mapping ioctl_space space resize leaving reservation pressure".split())
NAMES_OF_CAPABILITIES = 15


def block(page):
    """Returns the lines of the literal block behind the comment ".. edges: parts"."""
    found = re.search(r"^\.\. edges: parts\n\n::\n\n((?:   .*\n|\n)+)", page, re.MULTILINE)
    if not found:
        sys.exit("no block of parts")
    return [line.strip() for line in found[1].splitlines() if line.strip()]


def read_parts(page):
    """Returns the files of each part, in the order of the page, and the calls that each part may make."""
    files, calls = {}, set()
    for line in block(page):
        part, names, below = re.fullmatch(r"(\w+): ([\w ]+?)\s*\|\s*([\w ]*)", line).groups()
        files[part] = names.split()
        calls |= {(part, other) for other in below.split()}
    return files, calls


def symbols(paths, kinds="TDBRCVW"):
    """Returns {path of an object file: (the symbols of these kinds that it defines, the symbols that it refers to)}. One
    process reads all files, because the start of nm takes a tenth of a second."""
    found = {str(path): (set(), set()) for path in paths}
    said = subprocess.run(["nm", "-A", *found], check=True, capture_output=True, text=True).stdout if found else ""
    for line in said.splitlines():
        path, _, rest = line.rpartition(":")
        kind, symbol = rest.split()[-2:]
        if kind == "U":
            found[path][1].add(symbol)
        elif kind in kinds:
            found[path][0].add(symbol)
    return found


def find_calls(objects, names):
    """Returns for each pair of files the symbols that the first refers to and the second defines."""
    home, wanted = {}, {}
    read = symbols(f"{objects}/core-{name}.o" for name in names)
    for name in names:
        defined, wanted[name] = read[f"{objects}/core-{name}.o"]
        home |= {symbol: name for symbol in defined}
    calls = collections.defaultdict(set)
    for name in names:
        for symbol in wanted[name] & home.keys():
            if home[symbol] != name:
                calls[name, home[symbol]].add(f"{name}.c: {symbol}()")
    return calls


def find_names(calls):
    """Returns the functions of capabilities that the core names."""
    found = {symbol.split(": ")[1] for (caller, called), symbols_of_called in calls.items()
             for symbol in symbols_of_called if called in CAPABILITIES and caller not in CAPABILITIES}
    return sorted(name for name in found if not name.startswith("flexmem_part_"))


def between_parts(calls, part_of):
    """Returns the calls of files, for each pair of parts."""
    found = collections.defaultdict(set)
    for (caller, called), symbols_of_called in calls.items():
        if part_of[caller] != part_of[called]:
            found[part_of[caller], part_of[called]] |= symbols_of_called
    return found


def find_circles(calls):
    """Returns the pairs of files of which each reaches the other by calls."""
    def reached_from(file):
        seen, waiting = set(), [file]
        while waiting:
            below = {called for caller, called in calls if caller == waiting[-1]} - seen
            waiting[-1:] = below
            seen |= below
        return seen
    return [(caller, called) for caller, called in sorted(calls) if caller in reached_from(called)]


def find_includes_upwards(top, part_of, order):
    """Returns the includes of headers of a part above that of the file."""
    place = {name: order.index(part) for name, part in part_of.items()}
    return [f"{path.name} includes {header}.h" for path in sorted(pathlib.Path(top, "kmod").glob("*.[ch]"))
            for header in re.findall(r'^#include "(\w+)\.h"$', path.read_text(encoding="utf-8"), re.MULTILINE)
            if header in place and place[header] < place.get(path.stem, 0)]


def main():
    top, objects = sys.argv[1:]
    with open(f"{top}/Documentation/internals.rst", encoding="utf-8") as file:
        page = file.read()
    with open(f"{top}/Kbuild", encoding="utf-8") as file:
        core = re.search(r"^flexmem-y := \\\n((?:\t.*\n|flexmem-.*\n)+)", file.read(), re.MULTILINE)[1]
    wrong = []

    files, allowed = read_parts(page)
    part_of = {name: part for part, names in files.items() for name in names}
    built = set(re.findall(r"kmod/(\w+)\.o", core))
    wrong += [f"{name}.c is in no part" for name in sorted(built - part_of.keys())]
    wrong += [f"{name}.c is no file of flexmem.ko" for name in sorted(part_of.keys() - built)]
    order = list(files)
    for caller, called in sorted(allowed):
        if called not in order or order.index(called) <= order.index(caller):
            wrong.append(f"{caller} -> {called} is allowed, but does not go down")

    calls_of_files = find_calls(objects, built & part_of.keys())
    for caller, called in find_circles(calls_of_files):
        wrong.append(f"{caller}.c -> {called}.c is part of a circle: {', '.join(sorted(calls_of_files[caller, called]))}")
    calls = between_parts(calls_of_files, part_of)
    for pair in sorted(calls.keys() - allowed):
        wrong.append(f"{' -> '.join(pair)} is not among the calls that there may be: {', '.join(sorted(calls[pair]))}")
    for pair in sorted(allowed - calls.keys()):
        wrong.append(f"{' -> '.join(pair)} is allowed, but there is no such call")
    names = find_names(calls_of_files)
    if len(names) > NAMES_OF_CAPABILITIES:
        wrong.append(f"the core names {len(names)} functions of capabilities, at most {NAMES_OF_CAPABILITIES} may be: "
                     f"{', '.join(names)}")
    upwards = find_includes_upwards(top, part_of, order)
    if len(upwards) > INCLUDES_UPWARDS:
        wrong.append(f"{len(upwards)} includes upwards, at most {INCLUDES_UPWARDS} may be: {', '.join(upwards)}")
    print("\n".join(wrong or [f"{len(calls)} kinds of calls between parts, all of them downwards; no circle of files; "
                              f"{len(upwards)} includes upwards; the core names {len(names)} functions of capabilities"]))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
