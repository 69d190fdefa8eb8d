#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Writes the man pages of section 3 from the kernel-doc of the library's headers.

Usage: man3.py DIRECTORY        writes the pages there, and a link for each function that another function's page
                                describes; removes what else is there. The build of the library does this.

A page is a section of library-reference.rst, or of the reference in cache.rst: the section's title becomes the subject
of the page, and the page describes the identifiers of its kernel-doc directives. The first function gives the page its
name.
"""
import os
import re
import shutil
import sys
import textwrap

DOCS = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(DOCS)
DATE = 'November 23, 2026'
HEADERS = {'flexmem.h': 'library-reference.rst', 'flexmem_cache.h': 'cache.rst'}
# The end of a sentence. mdoc wants each sentence on a line of its own.
SENTENCE = re.compile(r'(?<=[\w)>*"\'`][.!?])\s+(?=[A-Za-z@&`"(-])')


def read(path):
    with open(os.path.join(TOP, path), encoding='utf-8') as file:
        return file.read()


class Item:
    """A kernel-doc comment, and the code that follows it."""

    def __init__(self, comment, code):
        lines = [re.sub(r'^ ?\* ?', '', line).expandtabs(8) for line in comment.strip().split('\n')]
        head = re.match(r'(?:(struct|enum|typedef|DOC:) )?([\w ]+?)(?:\(\))?(?: - (.*))?$', lines[0])
        self.name, self.brief = head[2], head[3]
        self.sort = head[1] or ('function' if lines[0].startswith(head[2] + '()') else 'macro')
        rest = lines[1:]
        # A brief description may continue on the next line.
        while rest and rest[0] and not rest[0].startswith('@') and self.sort != 'DOC:':
            self.brief += ' ' + rest.pop(0).strip()
        self.code = code
        self.members, self.body, self.returns = [], [], []
        where = self.body
        for line in rest:
            member = re.match(r'@([\w.]+): *(.*)', line)
            if member:
                where = [member[2]]
                self.members.append((member[1], where))
            elif line.startswith('Return: '):
                where = self.returns
                where.append(line[8:])
            elif not line and where is not self.body and where is not self.returns:
                where = self.body
            else:
                where.append(line)


def items(header):
    """Returns {name: items} of all comments of a header. There may be two items, because a function may have the name
    of the struct that it fills."""
    text = read(f'userlib/include/{header}')
    found = {}
    for match in re.finditer(r'/\*\*(?:\n| )((?:[^*]|\*(?!/))*?)\*/\n', text):
        after = text[match.end():]
        code = re.match(r'(?:FLEXMEM_API |typedef )[^;]*;|(?:struct|enum) \w+ {.*?\n};|#define [^\n]*', after, re.DOTALL)
        item = Item(match[1] if match[0][3] == '\n' else ' * ' + match[1], code[0] if code else '')
        found.setdefault(item.name, []).append(item)
    return found


def sections(header):
    """Yields (title, doc, identifiers) for each section of the page that shows a header."""
    page = read(f'Documentation/{HEADERS[header]}')
    parts = re.split(r'^(\S[^\n]*)\n(?:=|-)+\n', page, flags=re.MULTILINE)[1:]
    for title, text in zip(parts[::2], parts[1::2]):
        blocks = re.findall(rf'\.\. kernel-doc:: userlib/include/{header}\n   :(doc|identifiers): (.*)', text)
        if blocks:
            yield (title, [name for sort, name in blocks if sort == 'doc'],
                   [name for sort, names in blocks if sort == 'identifiers' for name in names.split()])


def inline(text):
    text = text.replace('\\', '\\e')
    text = re.sub(r'``(.+?)``|\*\*(.+?)\*\*', lambda m: rf'\fB{m[1] or m[2]}\fR', text)
    text = re.sub(r'&(struct |enum )?([\w.]+\w)', r'\1\\fI\2\\fR', text)
    text = re.sub(r'\b(\w+)\(\)', r'\\fB\1\\fR()', text)
    return re.sub(r'(?<![\w.])@(\w+)', r'\\fI\1\\fR', text)


def guarded(line):
    """Returns a line that mdoc prints as text, even if it begins like a request of mdoc."""
    return '\\&' + line if line.startswith(('.', "'")) else line


def sentences(lines):
    """Yields the text of a paragraph; each sentence begins a line."""
    for sentence in SENTENCE.split(' '.join(line.strip() for line in lines)):
        for line in textwrap.wrap(inline(sentence), 78, break_long_words=False, break_on_hyphens=False):
            yield guarded(line)


def literal(lines):
    return ['.Bd -literal', *(guarded(line.replace('\\', '\\e').expandtabs(8)) for line in lines), '.Ed']


def paragraphs(lines):
    """Returns the mdoc of a text with paragraphs, lists and tables."""
    out, at = [], 0
    lines = [line.rstrip() for line in lines]
    while at < len(lines):
        if not lines[at]:
            at += 1
            continue
        end = at
        while end < len(lines) and lines[end]:
            end += 1
        block = lines[at:end]
        at = end
        if block[0].startswith('==='):
            out += literal(line for line in block if not line.startswith('==='))
        elif re.match(r'\s*(?:-|1\.) ', block[0]):
            out += ['.Bl -bullet' if block[0].lstrip()[0] == '-' else '.Bl -enum']
            for entry in re.split(r'\n\s*(?:-|\d\.) ', '\n' + '\n'.join(block))[1:]:
                out += ['.It', *sentences(entry.split('\n'))]
            out += ['.El']
        else:
            out += (['.Pp'] if out and out[-1] not in ('.Ed', '.El') else []) + list(sentences(block))
    return out


def declaration(item):
    """Returns the mdoc of a function for the SYNOPSIS."""
    kind, name, arguments = re.fullmatch(r'FLEXMEM_API (.*?)\s*\b(\w+) ?\((.*)\);', ' '.join(item.code.split())).groups()
    return [f'.Ft {kind}', f'.Fo {name}', *(f'.Fa "{part.strip()}"' for part in arguments.split(',')), '.Fc']


def described(item):
    """Returns the mdoc of an item for the DESCRIPTION."""
    title = {'macro': item.name, 'function': f'{item.name}()'}.get(item.sort, f'{item.sort} {item.name}')
    out = [f'.Ss {title}',
           *sentences([item.brief[0].upper() + item.brief[1:] + ('' if item.brief.endswith('.') else '.')])]
    if item.sort != 'function' and item.code:
        out += literal(item.code.split('\n'))
    if item.members:
        out += ['.Bl -tag -width Ds']
        for name, text in item.members:
            out += [f'.It Fa {name}', *paragraphs(text)]
        out += ['.El']
    body = paragraphs(item.body)
    return out + (['.Pp'] if body and out[-1] != '.El' and out[-1] != '.Ed' else []) + body


def page(header, title, docs, names, all_items, every):
    """Returns the name and the mdoc text of a section's manual page."""
    found = sorted((item for name in names for item in all_items[name]), key=lambda item: item.sort != 'function')
    functions = [item for item in found if item.sort == 'function']
    name = 'libflexmem' if docs == ['Conventions'] else functions[0].name
    own = ([name] if name == 'libflexmem' else []) + [item.name for item in functions]
    out = ['.\\" SPDX-License-Identifier: LGPL-2.1-or-later OR MIT',
           f'.\\" Made from userlib/include/{header} by Documentation/man3.py. Do not edit.',
           f'.Dd {DATE}', f'.Dt {name.upper()} 3', '.Os', '.Sh NAME',
           *(f'.Nm {one} ,' for one in own[:-1]), f'.Nm {own[-1]}', f'.Nd {title[0].lower() + title[1:]}',
           '.Sh LIBRARY', '.Li cc program.c $(pkg-config --cflags --libs libflexmem)',
           '.Sh SYNOPSIS', f'.In {header}']
    for item in functions:
        out += declaration(item)
    out += ['.Sh DESCRIPTION']
    if name == 'libflexmem':
        out += ['The pages of the library:', '.Bl -tag -width Ds']
        for other, about in every:
            out += [f'.It Xr {other} 3', inline(about) + '.']
        out += ['.El']
    for doc in docs:
        out += ['.Ss Conventions', *paragraphs(all_items[doc][0].body)]
    for item in found:
        out += described(item)
    returning = [item for item in functions if item.returns]
    if returning:
        out += ['.Sh RETURN VALUES', '.Bl -tag -width Ds']
        for item in returning:
            out += [f'.It Fn {item.name}']
            # 0; -ENOENT: why; ...
            parts = re.split(r'; (?=-E|or )', ' '.join(line.strip() for line in item.returns))
            out += [*sentences(parts)] if len(parts) == 1 else \
                ['.Bl -dash -compact', *(line for part in parts for line in ['.It', *sentences([part])]), '.El']
        out += ['.El']
    out += ['.Sh ERRORS', 'Beside the errors above a function may return those that', '.Xr libflexmem 3', 'lists.'] \
        if returning and name != 'libflexmem' else []
    text = '\n'.join(out)
    others = {one for one in re.findall(r'\b(flexmem_\w+)\(\)', text) if one not in own}
    see = ['.Xr flexmem 1', *(f'.Xr {one} 3' for one in sorted(others | ({'libflexmem'} - {name})))]
    out += ['.Sh SEE ALSO', *(f'{one} ,' for one in see[:-1]), see[-1]]
    return name, '\n'.join(out) + '\n'


def pages():
    """Returns {name: text} of all pages."""
    parts = [(header, items(header), part) for header in HEADERS for part in sections(header)]
    wrong = []
    for header in HEADERS:
        shown = [name for other, _, part in parts if other == header for name in part[2]]
        said = [name for name, found in items(header).items() if found[0].sort != 'DOC:']
        wrong += [f'{header}: {name} is in no section of {HEADERS[header]}' for name in said if name not in shown]
        wrong += [f'{HEADERS[header]}: {name}: not in {header}, or twice' for name in shown
                  if name not in said or shown.count(name) > 1]
    if wrong:
        raise AssertionError('\n'.join(wrong))
    every = [(next(name for name in names if any(item.sort == 'function' for item in found[name])), title)
             for _, found, (title, docs, names) in parts if docs != ['Conventions']]
    return dict(page(header, title, docs, names, found, every) for header, found, (title, docs, names) in parts)


def write(directory):
    """Writes the pages and the links. `man` finds a page by the name of each function on it."""
    new, aside = pages(), f'{directory}.new'
    shutil.rmtree(aside, ignore_errors=True)
    os.makedirs(aside)
    for name, text in new.items():
        with open(os.path.join(aside, f'{name}.3'), 'w', encoding='utf-8') as file:
            file.write(text)
        for other in re.findall(r'^\.Nm (\w+)', text, re.MULTILINE):
            if other != name:
                os.symlink(f'{name}.3', os.path.join(aside, f'{other}.3'))
    # What an interrupted run leaves does not look finished.
    shutil.rmtree(directory, ignore_errors=True)
    os.rename(aside, directory)


def main():
    if len(sys.argv) != 2:
        sys.exit('usage: man3.py DIRECTORY')
    try:
        write(sys.argv[1])
    except AssertionError as error:
        sys.exit(str(error))


if __name__ == '__main__':
    main()
