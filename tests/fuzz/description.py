#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Compares the description for syzkaller with the header: commands, flags, members, their order and widths.

usage: description.py HEADER DESCRIPTION
Prints each difference, and ends with status 1 if there is one.
"""
import re
import sys

WIDTHS = {"__u8": 1, "__u16": 2, "__u32": 4, "__s32": 4, "__aligned_u64": 8, "char": 1}
KINDS = {"int8": 1, "int16": 2, "int32": 4, "int64": 8, "ptr64": 8}


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


class Header:
    """What the header declares: commands, the enumerators of each enum, and the names and sizes of the members of each
    struct."""

    def __init__(self, text):
        text = without_comments(text)
        # A union counts as its first member. The others have the same size.
        text = re.sub(r"union \{\s*([^;]*;)[^}]*\};", r"\1", text)
        self.number = {m[1]: int(m[2]) for m in re.finditer(r"#define (\w+) (\d+)\b", text)}
        self.commands = set(re.findall(r"#define (FLEXMEM_IOCTL_\w+) _IO\(", text))
        self.enums = {m[1]: re.findall(r"\b(FLEXMEM_\w+) =", m[2])
                      for m in re.finditer(r"enum (\w+) \{(.*?)\};", text, re.S)}
        self.structs = {}
        for m in re.finditer(r"struct (\w+) \{(.*?)\};", text, re.S):
            self.structs[m[1]] = [self.member(line) for line in m[2].split(";") if line.strip()]

    def member(self, line):
        m = re.fullmatch(r"\s*(?:struct )?(\w+) (\w+)(?:\[(\w+)\])?\s*", line)
        width = WIDTHS.get(m[1]) or self.size(m[1])
        return m[2], width * int(self.number.get(m[3], m[3] or 1))

    def size(self, struct):
        return sum(width for _, width in self.structs[struct])


class Description:
    """What the description declares, with the members of Header."""

    def __init__(self, text, header):
        text = re.sub(r"^#.*$", "", text, flags=re.M)
        self.text = text
        self.header = header
        self.used = set(re.findall(r"const\[(FLEXMEM_IOCTL_\w+)\]", text))
        self.flags = {m[1]: m[2].split(", ") for m in re.finditer(r"^(\w+) = (.*)$", text, re.M)}
        self.kinds = KINDS | {m[1]: KINDS[m[2]] for m in re.finditer(r"^resource (\w+)\[(int\d+)\]", text, re.M)}
        self.structs = {}
        for m in re.finditer(r"^(?:type )?(\w+)(?:\[\w+\])? \{\n(.*?)^\}", text, re.M | re.S):
            self.structs[m[1]] = [self.member(line) for line in m[2].splitlines()]

    def member(self, line):
        name, kind = re.sub(r"\(out\)", "", line).split(None, 1)
        return name, self.width(kind.strip())

    def width(self, kind):
        m = re.fullmatch(r"array\[(\w+), (\d+)\]", kind)
        if m:
            return self.kinds[m[1]] * int(m[2])
        # The width of a number is the last word, as in len[parent, int32].
        m = re.fullmatch(r"(?:const|flags|len|bytesize)\[.*, (int\d+)\]", kind) or re.match(r"(\w+)", kind)
        return self.kinds.get(m[1]) or self.header.size(kind)


def differences(header, description):
    for command in sorted(header.commands ^ description.used):
        yield f"{command}: only in one of them"
    for name, values in description.flags.items():
        known = [value for value in header.enums.get(name, values) if value != "FLEXMEM_NR_RESOURCES"]
        if values != known:
            yield f"{name}: {values}, and the header has {known}"
    for name in sorted(set(header.structs) ^ set(description.structs)):
        yield f"struct {name}: only in one of them"
    for name in sorted(set(header.structs) & set(description.structs)):
        is_, has = description.structs[name], header.structs[name]
        if is_ != has:
            yield f"struct {name}: {is_}, and the header has {has}"
    yield from wrong_size(header, description, "flexmem_segments", "entry_size", "flexmem_segment_entry")
    for entry in ("region", "owner"):
        yield from wrong_size(header, description, "flexmem_snapshot", f"{entry}_entry_size", f"flexmem_{entry}_entry")


def wrong_size(header, description, struct, member, entry):
    said = re.search(rf"^{struct} \{{.*?^\t{member}\s+const\[(\d+),", description.text, re.M | re.S)
    if not said or int(said[1]) != header.size(entry):
        yield f"struct {struct}: {member} is not the {header.size(entry)} bytes of {entry}"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        header = Header(file.read())
    with open(sys.argv[2], encoding="utf-8") as file:
        description = Description(file.read(), header)
    found = list(differences(header, description))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
