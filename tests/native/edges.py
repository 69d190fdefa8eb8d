#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Compares the calls between the rooms of the driver with the list in Documentation/internals.rst, and looks for circles
and for includes upwards.

usage: edges.py TOP OBJECTS

A room is a folder of kmod/; "face" is kmod/ itself. OBJECTS holds core-FILE.o for each FILE.c of flexmem.ko. A file calls
another file if it refers to a symbol that the other file defines. This does not see inline functions of headers. A room
calls another room if a file of it calls a file of the other room. The list is the literal block behind the comment
".. edges: rooms". It has a line for each room, from top to bottom: "room: rooms that it may call". A room may call only
rooms further below. Files, also those of one room, may not call each other in a circle.

Two kinds of calls go up. The table of parts (part.c) leads to the parts, and the core names a few functions of parts.
settings.c holds what all rooms read. Few files may include a header of a room further above. A header belongs to the
room of the .c file of its name; a header without such a file belongs to no room.

Prints each difference, and then fails: a call that the list does not allow, an allowed call that does not occur, a room
that is not in the list, an allowed call upwards, a call that is part of a circle, too many includes upwards, too many
functions of parts that the core names.
"""
import collections
import pathlib
import re
import subprocess
import sys

# More files may not include a header of a room above their own.
INCLUDES_UPWARDS = 5
# So many functions of parts the core may name. Their rows in the table of parts do not count.
NAMES_OF_PARTS = 15
# The files of kmod/ itself that all rooms use.
GROUND = {"part", "settings"}


def read_list(page):
    """Returns the rooms in the order of the page, and the calls that each room may make."""
    found = re.search(r"^\.\. edges: rooms\n\n::\n\n((?:   .*\n|\n)+)", page, re.MULTILINE)
    if not found:
        sys.exit("no list of rooms")
    lines = [line.strip().partition(":") for line in found[1].splitlines() if line.strip()]
    return [room for room, _, _ in lines], {(room, other) for room, _, below in lines for other in below.split()}


def read_rooms(top):
    """Returns {file of flexmem.ko: its room}."""
    text = pathlib.Path(top, "Kbuild").read_text(encoding="utf-8")
    listed = re.search(r"^flexmem-y := \\\n((?:\t.*\n|flexmem-.*\n)+)", text, re.MULTILINE)[1]
    return {name: room or "face" for room, name in re.findall(r"\tkmod/(?:(\w+)/)?(\w+)\.o", listed)}


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


def find_names(calls, room_of):
    """Returns the functions of parts that the core names."""
    found = {symbol.split(": ")[1] for (caller, called), some in calls.items()
             for symbol in some if room_of[called] == "parts" != room_of[caller]}
    return sorted(name for name in found if not name.startswith("flexmem_part_"))


def between_rooms(calls, room_of):
    """Returns the calls of files, for each pair of rooms."""
    found = collections.defaultdict(set)
    for (caller, called), some in calls.items():
        rooms = room_of[caller], room_of[called]
        if rooms[0] != rooms[1] and rooms[1] != "parts" and called not in GROUND:
            found[rooms] |= some
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


def find_includes_upwards(top, room_of, order):
    """Returns the includes of headers of a room above that of the file."""
    place = {name: order.index(room) for name, room in room_of.items()}
    return [f"{path.name} includes {header}.h" for path in sorted(pathlib.Path(top, "kmod").rglob("*.[ch]"))
            if path.parent.name in order or path.parent.name == "kmod"
            for header in re.findall(r'^#include "(?:\w+/)?(\w+)\.h"$', path.read_text(encoding="utf-8"), re.MULTILINE)
            if header in place and header not in GROUND and place[header] < place.get(path.stem, 0)]


def main():
    top, objects = sys.argv[1:]
    order, allowed = read_list(pathlib.Path(top, "Documentation/internals.rst").read_text(encoding="utf-8"))
    room_of = read_rooms(top)
    wrong = [f"{room} is not in the list" for room in sorted(set(room_of.values()) - set(order))]
    if wrong:
        sys.exit("\n".join(wrong))
    for caller, called in sorted(allowed):
        if called not in order or order.index(called) <= order.index(caller):
            wrong.append(f"{caller} -> {called} is allowed, but does not go down")

    calls_of_files = find_calls(objects, room_of)
    for caller, called in find_circles(calls_of_files):
        wrong.append(f"{caller}.c -> {called}.c is part of a circle: {', '.join(sorted(calls_of_files[caller, called]))}")
    calls = between_rooms(calls_of_files, room_of)
    for pair in sorted(calls.keys() - allowed):
        wrong.append(f"{' -> '.join(pair)} is not among the calls that there may be: {', '.join(sorted(calls[pair]))}")
    for pair in sorted(allowed - calls.keys()):
        wrong.append(f"{' -> '.join(pair)} is allowed, but there is no such call")
    names = find_names(calls_of_files, room_of)
    if len(names) > NAMES_OF_PARTS:
        wrong.append(f"the core names {len(names)} functions of parts, at most {NAMES_OF_PARTS} may be: {', '.join(names)}")
    upwards = find_includes_upwards(top, room_of, order)
    if len(upwards) > INCLUDES_UPWARDS:
        wrong.append(f"{len(upwards)} includes upwards, at most {INCLUDES_UPWARDS} may be: {', '.join(upwards)}")
    print("\n".join(wrong or [f"{len(order)} rooms, {len(calls)} arrows between them, all of them downwards; no circle of "
                              f"files; {len(upwards)} includes upwards; the core names {len(names)} functions of parts"]))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
