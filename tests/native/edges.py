#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Compares the calls between parts of the driver with the list in Documentation/internals.rst.

usage: edges.py TOP OBJECTS

OBJECTS holds core-FILE.o for each kmod/FILE.c of flexmem.ko. A part calls another part if one of its files refers to a
symbol that a file of the other part defines. This does not see inline functions of headers. The list is the literal
block behind the comment ".. edges: parts". It has a line for each part, from top to bottom: "part: files | parts that
it may call". A part may call only parts further below.

Prints each difference, and then fails: a call that the list does not allow, an allowed call that does not occur, a file in
no part, a listed file that is not in flexmem.ko, an allowed call upwards.
"""
import collections
import re
import subprocess
import sys


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


def symbols(path):
    """Returns the symbols that an object file defines, and those that it refers to."""
    defined, wanted = set(), set()
    for line in subprocess.run(["nm", path], check=True, capture_output=True, text=True).stdout.splitlines():
        kind, symbol = line.split()[-2:]
        if kind == "U":
            wanted.add(symbol)
        elif kind in "TDBRCVW":
            defined.add(symbol)
    return defined, wanted


def find_calls(objects, part_of):
    """Returns for each pair of parts the symbols that the first refers to and the second defines."""
    home, wanted = {}, {}
    for name in part_of:
        defined, wanted[name] = symbols(f"{objects}/core-{name}.o")
        home |= {symbol: name for symbol in defined}
    calls = collections.defaultdict(set)
    for name, names in wanted.items():
        for symbol in names & home.keys():
            pair = part_of[name], part_of[home[symbol]]
            if pair[0] != pair[1]:
                calls[pair].add(f"{name}.c: {symbol}()")
    return calls


def main():
    top, objects = sys.argv[1:]
    with open(f"{top}/Documentation/internals.rst", encoding="utf-8") as file:
        page = file.read()
    with open(f"{top}/Kbuild", encoding="utf-8") as file:
        core = re.search(r"^flexmem-y := \\\n((?:\t.*\n)+(?:flexmem-.*\n)*)", file.read(), re.MULTILINE)[1]
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

    calls = find_calls(objects, {name: part for name, part in part_of.items() if name in built})
    for pair in sorted(calls.keys() - allowed):
        wrong.append(f"{' -> '.join(pair)} is not among the calls that there may be: {', '.join(sorted(calls[pair]))}")
    for pair in sorted(allowed - calls.keys()):
        wrong.append(f"{' -> '.join(pair)} is allowed, but there is no such call")
    print("\n".join(wrong or [f"{len(calls)} kinds of calls, all of them downwards"]))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
