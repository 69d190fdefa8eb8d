# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Writes the C source of flexmem._native: everything that the public headers declare, for the API mode of cffi.

Usage: generate.py OUTPUT HEADER...      CC: the compiler

The compiler that compiles the output fills in sizes, offsets and constants, so they need not be repeated here.
"""

import os
import re
import subprocess
import sys

import cffi


def declarations(header):
    """Returns the preprocessed declarations of a header, without included headers, comments and attributes."""
    command = [*os.environ.get("CC", "cc").split(), "-E", "-I", os.path.dirname(header), header]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    ours = False
    lines = []
    for line in text.splitlines():
        if line.startswith("# "):
            ours = line.split('"')[1] == header
        elif ours:
            lines.append(line)
    return re.sub(r"__attribute__\(\(.*?\)\)\)", "", "\n".join([*lines, ""]))


def constants(header):
    """Returns the numbers that a header defines as macros."""
    with open(header, encoding="utf-8") as file:
        names = re.findall(r"^#define (\w+) (?:[(\d]|UINT)", file.read(), re.MULTILINE)
    return "".join(f"#define {name} ...\n" for name in names)


def main():
    output, *headers = sys.argv[1:]
    builder = cffi.FFI()
    for header in headers:
        builder.cdef(declarations(header) + constants(header))
    builder.set_source("flexmem._native", "".join(f"#include <{os.path.basename(header)}>\n" for header in headers))
    builder.emit_c_code(output)


if __name__ == "__main__":
    main()
