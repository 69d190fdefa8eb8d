#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Updates the code and tables on pages. Pages contain copies from files, because a forge does not show included files.

Usage: copies.py brings every copy up to date; check.py reports those that are not

A page names the file and two texts. The copy begins after the line with the first text (or with that line: "from"),
and ends before the line with the second text:

    .. copy: userlib/examples/first.c after /* [alloc] */ before /* [free] */

    .. code-block:: c

A table is copied in the same way, as the rows of a list-table.
"""
import glob
import os
import re

DOCS = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(DOCS)
COPY = re.compile(r'(\.\. copy: (\S+)(?: (after|from) (.+?))?(?: before (.+?))?\n\n\.\. (?:code-block:: \w+|list-table::(?:\n   :.*)*)\n\n)((?:(?:   .*)?\n)+?)(?=\S|\Z)')


def part(path, where, text, before):
    """Returns the lines of a file between two given lines, without empty lines at the ends."""
    with open(os.path.join(TOP, path), encoding='utf-8') as file:
        lines = file.read().splitlines()
    begin = next(i for i, line in enumerate(lines) if text in line) + (where == 'after') if text else 0
    end = next(i for i, line in enumerate(lines) if i >= begin and before in line) if before else len(lines)
    return '\n'.join(lines[begin:end]).strip('\n').splitlines()


def renewed(text):
    """Returns the text of a page with up-to-date copies."""
    def copy(match):
        lines = part(*match.groups()[1:5])
        return match[1] + ''.join(f'   {line.expandtabs(8)}'.rstrip() + '\n' for line in lines) + '\n'

    return COPY.sub(copy, text)


def main():
    for page in sorted(glob.glob(os.path.join(DOCS, '**', '*.rst'), recursive=True)):
        with open(page, encoding='utf-8') as file:
            text = file.read()
        if renewed(text) != text:
            with open(page, 'w', encoding='utf-8') as file:
                file.write(renewed(text))
            print(os.path.relpath(page, TOP))


if __name__ == '__main__':
    main()
