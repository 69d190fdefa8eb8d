#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Checks that the documentation builds, and that its statements are true.

Prints TAP. Environment: O, where results go (make -C Documentation check sets it).
"""
import glob
import gzip
import json
import os
import re
import shutil
import subprocess
import sys

import copies
import figures
import man3

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'tests', 'native'))
import mutants  # noqa: E402

DOCS = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(DOCS)
LINUX = os.path.join(TOP, 'build', 'linux-source')
OUT = os.environ.get('O') or os.path.join(TOP, 'build', 'docs')
# Where `make` builds the library, and where the suite build has built it.
USERLIB = os.path.join(TOP, 'build', 'userlib')

# Items of the roadmap that a row of the proof table may name.
SUBJECTS = ('Placement', 'Speed', 'Product')
# The statements of each document: the letter of the document, and a number from 1 on.
STATEMENTS = [f'{letter}{n}' for letter, count in
              (('A', 42), ('B', 12), ('C', 10), ('D', 36), ('K', 10), ('M', 14), ('U', 7))
              for n in range(1, count + 1)]
# Names of the Spyre RFC that names.rst translates.
RFC = ('FlexAllocator', 'SpyreAllocator', 'MemoryRegion', 'Block', 'VirtualAddress', 'CompositeAddress', 'region_id', 'offset',
       'total_size', 'free_size', 'allocate', 'deallocate', 'allocateNewRegion', 'findFreeBlock', 'allocateInRegion',
       'selectRegions', 'RegionStrategy', 'BlockStrategy', 'LoadBalancing', 'FillFirst', 'FirstFit', 'BestFit', 'MAX_REGIONS',
       'max_regions', 'MIN_ALLOC_BYTES', 'fallback_sizes', 'regions_locked', 'FLEX_DEVICE', 'TORCH_SPYRE_ALLOC_DEBUG',
       'instance()', 'compact()')
# Programs that print TAP themselves: the name of a test is a string in them.
PROGRAMS = ('tests/torture/', 'tests/faults/', 'tests/native/crowd.c')


def read(path):
    with open(os.path.join(TOP, path), encoding='utf-8') as file:
        return file.read()


def find(*patterns):
    """Returns the files of the project that match, with paths relative to its top."""
    return sorted({os.path.relpath(path, TOP) for pattern in patterns
                   for path in glob.glob(os.path.join(TOP, pattern), recursive=True)
                   if os.path.isfile(path)})


def run(*command, **options):
    """Returns the output of a command. If the command fails, the test fails with that output."""
    done = subprocess.run(command, cwd=options.pop('cwd', TOP), text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    assert done.returncode == 0, f'{" ".join(command)}:\n{done.stdout}'
    return done.stdout


def nothing(problems):
    """Fails if there are problems."""
    problems = set(problems)
    assert not problems, '\n'.join(sorted(problems))


PAGES = find('README.md', 'Documentation/*.rst', 'Documentation/tasks/*.rst')
TEXT = {page: read(page) for page in PAGES}
ABI = read('uapi/linux/flexmem.h')
SOURCES = '\n'.join(read(path) for path in find(
    'uapi/**/*.h', 'kmod/**/*.[ch]', 'userlib/**/*.[ch]', 'tests/**/*.[ch]', 'tests/**/*.sh',
    'userlib/Makefile', 'tests/**/Makefile', 'Makefile', 'Kbuild', 'Documentation/examples/*'))


def each(pattern):
    """Yields each match of the pattern in the pages, as (page, match)."""
    for page, text in TEXT.items():
        for match in re.finditer(pattern, text):
            yield page, match


def html_builds():
    shutil.rmtree(os.path.join(OUT, 'html'), ignore_errors=True)
    run('make', '-s', '-C', DOCS, 'html', f'O={OUT}')
    assert os.path.exists(os.path.join(OUT, 'html', 'index.html'))


def every_page_is_reached():
    index = re.split(r'[\s]+', TEXT['Documentation/index.rst'])
    nothing(page for page in PAGES if page.endswith('.rst') and page != 'Documentation/index.rst' and
            os.path.relpath(page, 'Documentation')[:-4] not in index)


def paths_exist():
    """Paths on pages exist in this tree, or in the kernel's tree if the page is about the kernel."""
    missing = []
    ours = r'(?:kmod|tests|userlib|uapi|LICENSES|Documentation|\.ci)/'
    theirs = r'(?:drivers|include|mm|lib|scripts|tools)/'
    for page, match in each(rf'(?<![\w/.-])((?:{ours}|{theirs})[\w./*+-]*\w/?)'):
        path = match[1]
        if path.startswith('include/flexmem'):
            path = 'userlib/' + path
        if not any(glob.glob(os.path.join(root, path)) for root in (TOP, LINUX)):
            missing.append(f'{page}: {path}')
    nothing(missing)


def links_exist():
    missing = []
    for match in re.finditer(r'\]\(([^)#:]+)\)', TEXT['README.md']):
        if not os.path.exists(os.path.join(TOP, match[1])):
            missing.append(match[1])
    nothing(missing)


def errnos_are_the_headers():
    known = set(re.findall(r'\bE[A-Z0-9]{3,}\b', ABI + read('kmod/include/flexmem/device_ops.h') +
                           read('userlib/include/flexmem.h') +
                           read('userlib/include/flexmem_cache.h')))
    words = {'ELF', 'EXPORT', 'ERROR', 'ERR_PTR', 'EVICT'}
    nothing(f'{page}: {match[1]}' for page, match in each(r'(?<![\w$-])-?(E[A-Z0-9]{3,})\b(?!_)')
            if match[1] not in known | words)


def errnos_are_complete():
    """The page about errors explains each error that the header lists for all commands."""
    listed = re.findall(r'^ \*  - (E[A-Z0-9]+):', ABI, re.MULTILINE)
    assert listed, 'no list of errnos in the header'
    page = TEXT['Documentation/uapi.rst']
    nothing(errno for errno in listed if errno not in page)


def names_exist():
    """Pages name only constants, functions, structs and enums of flexmem that exist."""
    public_words, words = set(re.findall(r'\w+', ABI)), set(re.findall(r'\w+', SOURCES))
    called = set(re.findall(r'(\w+)\(', SOURCES))
    types = set(re.findall(r'\b(?:struct|enum) flexmem_\w+', SOURCES))
    missing = []
    for page, match in each(r'\b(FLEXMEM_[A-Z0-9_]*[A-Z0-9])\b(?!\*)'):
        name = match[1]
        public = re.match(r'FLEXMEM_(IOCTL|CMD|REASON|MODE|FIT|ORDER|ALLOC|FREE|REPORT|CAP|'
                          r'LOOKUP|REGION|OWNER|RESOURCE|SNAPSHOT)_(?!CONF)', name)
        if name not in (public_words if public else words):
            missing.append(f'{page}: {name}')
    for page, match in each(r'\b(flexmem_\w+)\(\)'):
        if match[1] not in called:
            missing.append(f'{page}: {match[1]}()')
    for page, match in each(r'\b((?:struct|enum) flexmem_\w+)'):
        if match[1] not in types:
            missing.append(f'{page}: {match[1]}')
    nothing(missing)


def every_command_is_described():
    numbers = re.findall(r'#define (FLEXMEM_IOCTL_\w+)', ABI)
    assert numbers
    nothing(name for name in numbers if name not in TEXT['Documentation/uapi.rst'])


def documented_parameters(module):
    """Returns the rows of the module's table in parameters.rst: {name: text of the row}."""
    page = TEXT['Documentation/parameters.rst']
    table = page.split(f'.. list-table:: {module}.ko')[1].split('.. list-table::')[0]
    rows = re.split(r'^   \* - ', table, flags=re.MULTILINE)[2:]
    return {re.match(r'``(\w+)``', row)[1]: row for row in rows}


def parameters(module, *files):
    text = '\n'.join(read(path) for path in files)
    described = dict(re.findall(r'MODULE_PARM_DESC\((\w+),\s*"([^"]+)"\)', text))
    registered = set(re.findall(r'^(?:module_param\w*|[A-Z]+_PARAM)\((\w+),', text, re.MULTILINE))
    assert registered, 'no module parameter found'
    problems = [f'{name}: no MODULE_PARM_DESC' for name in registered - set(described)]
    rows = documented_parameters(module)
    problems += [f'{name}: not documented' for name in set(described) - set(rows)]
    problems += [f'{name}: no such parameter' for name in set(rows) - set(described)]
    for name, description in described.items():
        default = (re.search(r'(\w+) \(default\)', description) or
                   re.search(r'\(default ([\w,]+)', description))
        limits = re.search(r'(\d+) to (\d+)', description)
        row = rows.get(name, '')
        if not default:
            problems.append(f'{name}: its description names no default')
        elif f'``{default[1].rstrip(",")}``' not in row:
            problems.append(f'{name}: default is {default[1]}')
        if limits and f'{limits[1]} to {limits[2]}' not in row:
            problems.append(f'{name}: range is {limits[0]}')
    nothing(problems)


def flexmem_parameters():
    parameters('flexmem', 'kmod/settings.c')


def sim_parameters():
    parameters('flexmem_sim', *find('kmod/sim/*.c'))


def kunit_parameters():
    parameters('flexmem_kunit', *find('tests/kunit/*.c'))


def proof_rows():
    """Returns {statement: the cells that say what proves it}, in the order of the page."""
    page = TEXT['Documentation/proof.rst']
    rows = re.split(r'^   \* - ', page, flags=re.MULTILINE)[1:]
    found = {}
    for row in rows:
        cells = [' '.join(cell.split()) for cell in re.split(r'^     - ', row, flags=re.MULTILINE)]
        if re.fullmatch(r'[ABCDKMU]\d+', cells[0]):
            assert cells[0] not in found, f'{cells[0]} twice'
            found[cells[0]] = cells[-1]
    return found


def proof_is_complete():
    rows = proof_rows()
    problems = [f'{name}: no row' for name in STATEMENTS if name not in rows]
    problems += [f'roadmap.rst: no {name}' for name in SUBJECTS
                 if not re.search(rf'^{name}\n   \w', TEXT['Documentation/roadmap.rst'], re.MULTILINE)]
    problems += [f'{name}: not one of the statements' for name in rows if name not in STATEMENTS]
    for name, cell in rows.items():
        if '``' not in cell and not any(f'"{subject}' in cell for subject in SUBJECTS):
            problems.append(f'{name}: neither a test nor a part of the roadmap')
        for subject in re.findall(r'"([^"]+)"', cell):
            if not subject.startswith(SUBJECTS):
                problems.append(f'{name}: "{subject}" is not on the roadmap')
    nothing(problems)


def proof_names_tests():
    """In proof.rst the tests of each ``FILE: TEST, TEST`` are in that file, and each ``FILE`` without tests exists."""
    problems = []
    for literal in re.findall(r'``([^`]+)``', TEXT['Documentation/proof.rst']):
        path, _, names = literal.partition(': ')
        if '/' not in path:
            continue
        if not os.path.exists(os.path.join(TOP, path)):
            problems.append(f'no file {path}')
            continue
        names = [names] if path.endswith('.sh') else names.split(', ')
        problems += [f'no test "{name}" in {path}' for name in names
                     if name and not has_test(path, name)]
    nothing(problems)


def rows_have_planted_bugs():
    """If the tests of a row run natively, at least one of them notices a bug that mutants.list plants. That shows that
    the tests of the row can fail."""
    found = set()
    for project, folder in ((mutants.CORE, 'tests/kunit'), (mutants.LIBRARY, 'tests/userlib')):
        for mutant in mutants.read_list(project, project.tests / 'mutants.list'):
            program, *arguments = mutant.test[1]
            if project is mutants.LIBRARY:
                found.add((f'{folder}/{program.replace("tsan_", "test_")}.c', arguments[0]))
            elif program == 'kunit':
                found.add((folder, arguments[0].split('.')[-1]))
    problems = []
    for name, cell in proof_rows().items():
        tests = {(path, test) for path, tests in re.findall(r'``(tests/(?:kunit|userlib)/\w+\.c): ([^`]+)``', cell)
                 for test in tests.split(', ')}
        ours = {(os.path.dirname(path) if path.startswith('tests/kunit') else path, test) for path, test in tests}
        if tests and not ours & found:
            problems.append(f'{name}: no planted bug names one of its tests')
    nothing(problems)


def has_test(path, name):
    """Whether a file has a test. In C the name of a test is an argument of the macro that registers it: TEST_F(fixture,
    NAME), KUNIT_CASE(NAME)."""
    word = re.escape(name)
    if path.startswith(PROGRAMS):
        word = f'"{word}"'
    elif path.endswith('.c'):
        word = rf'\b(?:[A-Z_]+_)?(?:TEST|CASE)(?:_[A-Z_]+)?\(\s*(?:\w+,\s*)?{word}\b'
    elif path.endswith('.py'):
        word = rf'^(?:@test\n|(?:    )+)def {word}\('
    return re.search(word, read(path), re.MULTILINE)


def error_texts(path):
    """Returns the texts in a source of error texts, without the punctuation around them. "…" stands for a figure."""
    source = re.sub(r'/\*.*?\*/|^\s*#.*?$', '', read(path), flags=re.DOTALL | re.MULTILINE)
    source = re.sub(r'"\s*\n\s*"', '', source)
    texts = {re.sub(r'…+', '…', re.sub(r'%[#0-9l.]*[a-z]', '…', text)).strip(' ,;:')
             for text in re.findall(r'"((?:[^"\\]|\\.)*)"', source)}
    return {text for text in texts if ' ' in text and re.search('[a-z]{2}', text)}


# Tests that apply the remedy of a row, beside those of tests/userlib/test_remedies*.c.
REMEDIES = {
    'tests/kunit/leaving_kunit.c: alloc_after_the_signal_gets_the_memory',
    'tests/kunit/placement_reason_kunit.c: reason_alignment_if_the_search_gives_up',
    'tests/kunit/reservation_kunit.c: ends_on_request',
    'tests/selftests/limits.c: only_the_administrator_sets',
    'tests/selftests/perm.c: a_file_to_read_changes_nothing',
    'tests/selftests/perm.c: the_group_can_open_a_vf_only',
    'tests/selftests/resize.c: mapped_allocation_is_busy',
    'tests/userlib/test_cache_align.c: refused',
    'tests/userlib/test_cache_checkpoint.c: memory_in_use',
    'tests/userlib/test_cache_names.c: all_names',
    'tests/userlib/test_cache_pressure.c: serving_errors',
}
# Texts with nothing that a test could apply: figures, and what only another version of the library has words for.
WITHOUT_REMEDIES = ('this process can have', 'limit … of the driver', 'error …', 'which cannot be used for it')


def error_texts_have_rows():
    """The tables of out-of-memory.rst have each error text of the library once. Each row names a test that applies the
    remedy: not each of them can be recognized, so this has the list of those that do."""
    page = TEXT['Documentation/tasks/out-of-memory.rst'].split('All texts\n')[1]
    cells = re.findall(r'^   \* - (\| ``.*?)^     - (.*?)^     - ``([^:`]+): ([^`]+)``$', page, re.DOTALL | re.MULTILINE)
    rows = [text for cell in cells for text in re.findall(r'``(.+?)``\n', cell[0])]
    texts = error_texts('userlib/src/error.c') | error_texts('userlib/src/cache/failure.c')
    assert len(texts) > 60 and len(cells) > 30, 'the texts or the rows were not found'
    nothing([f'no row: "{text}"' for text in sorted(texts - set(rows))]
            + [f'no such text: "{text}"' for text in sorted(set(rows) - texts)]
            + [f'two rows: "{text}"' for text in sorted(set(rows)) if rows.count(text) > 1]
            + [f'no test "{name}" in {path}' for _, _, path, name in cells
               if not os.path.exists(os.path.join(TOP, path)) or not has_test(path, name)]
            + [f'applies no remedy: "{name}" in {path}' for texts, _, path, name in cells
               if not path.startswith('tests/userlib/test_remedies') and f'{path}: {name}' not in REMEDIES
               and not any(f'``{text}``' in texts for text in WITHOUT_REMEDIES)]
            + [f'no row names {test}' for test in sorted(REMEDIES - {f'{path}: {name}' for _, _, path, name in cells})])


# The pages of section 3, as the build of the library makes them.
MAN3 = os.path.join(OUT, 'man3')
CACHE = read('userlib/include/flexmem_cache.h')


def names_of(page):
    """Returns the names under which a man page is found: {(name, section)}."""
    head = read(page).split('.Sh SYNOPSIS')[0]
    return {(name, page[-1]) for name in re.findall(r'^\.Nm (\w+)', head, re.MULTILINE)}


def man_pages():
    man3.write(MAN3)
    pages = find('Documentation/man/*.[1-9]') + sorted(
        path for path in glob.glob(os.path.join(MAN3, '*.3')) if not os.path.islink(path))
    assert len(pages) > 20, 'pages are missing'
    done = subprocess.run(['mandoc', '-T', 'lint', '-W', 'style', *pages], cwd=TOP, text=True,
                          check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    # mandoc looks for other pages where they are installed. The code below checks references to pages instead.
    problems = [line for line in done.stdout.splitlines()
                if 'referenced manual not found' not in line]
    known = set().union(*(names_of(page) for page in pages))
    for page in pages:
        problems += [f'{page}: no {name}({section})' for name, section in
                     re.findall(r'^\.Xr (\w+) (\d)', read(page), re.MULTILINE)
                     if (name, section) not in known]
    nothing(problems)


def man_pages_of_functions():
    """The man pages of section 3 are made from the comments of the headers, so each function has one."""
    for header in man3.HEADERS:
        known = set(re.findall(r'^FLEXMEM_API [^;]*?(flexmem_\w+) ?\(', read(f'userlib/include/{header}'), re.MULTILINE))
        assert len(known) > 30, 'functions are missing'
        nothing(f'{name}() has no kernel-doc' for name in known
                if not any(item.sort == 'function' for item in man3.items(header).get(name, [])))


def keys_of_the_cache():
    """The header and the page about settings name the same settings."""
    sources = set(re.findall(r'\{ "(\w+)", "', read('userlib/src/cache/config.c')))
    assert len(sources) > 5, 'no settings found'
    places = {'userlib/include/flexmem_cache.h': re.findall(r'^ \* (\w+) ', CACHE.split('===\n')[1],
                                                            re.MULTILINE),
              'Documentation/cache.rst': re.findall(r'^   \* - ``(\w+)``\n     - ``',
                                                    TEXT['Documentation/cache.rst'], re.MULTILINE)}
    nothing(f'{place}: {", ".join(sources ^ set(found))}' for place, found in places.items()
            if sources ^ set(found))


def figures_of_the_cache():
    """The ratios of the cache in cache.rst are the results of a replay of the traces. The ratios of other allocators
    are those in the test."""
    table = re.search(r'^     - best known\n.*?\n\n', TEXT['Documentation/cache.rst'], re.DOTALL | re.MULTILINE)[0]
    rows = re.findall(r'^   \* - ([\w-]+)' + r'\n     - ([\d.]+)' * 4 + '$', table, re.MULTILINE)
    run('make', '-s', '-C', 'userlib', f'O={USERLIB}', 'all')
    test = read('tests/userlib/test_tool_cache.py')
    others = [dict(re.findall(r'"([\w-]+)": ([\d.]+)', re.search(rf'^{known} = {{(.*?)}}', test, re.DOTALL | re.MULTILINE)[1]))
              for known in ('BEST', 'PYTORCH')]
    assert len(rows) == len(others[0]), rows
    problems = []
    for name, defaults, growing, *known in rows:
        if known != [found.get(name) for found in others]:
            problems.append(f'{name}: not the figures of others that tests/userlib/test_tool_cache.py has')
        for settings, size, expected in (('', '128G', defaults),
                                         ('expandable_segments:True', '64G', growing)):
            found = json.loads(run(os.path.join(USERLIB, 'flexmem'), 'replay', '--json',
                                   '--cache', '--provider', f'flat:{size}', '--config', settings,
                                   f'tests/traces/{name}.trace.gz'))
            ratio = f'{found["reserved_to_live"]:.3f}'
            if ratio != expected:
                problems.append(f'{name} with {settings or "defaults"}: {ratio}, not {expected}')
    nothing(problems)


def examples_of_the_cache():
    """The examples compile with the command that they show, without a warning. Examples that need no device run."""
    examples = find('userlib/examples/cache_*.c')
    assert len(examples) >= 5, examples
    prefix = os.path.join(OUT, 'root')
    install(prefix)
    environment = dict(os.environ, PKG_CONFIG_PATH=os.path.join(prefix, 'lib', 'pkgconfig'),
                       LD_LIBRARY_PATH=os.path.join(prefix, 'lib'))
    for example in examples:
        text = read(example)
        command = re.search(r' \* (cc [^\n]*)', text)
        assert command, f'{example} does not say how to compile it'
        name = os.path.basename(example)
        shutil.copy(os.path.join(TOP, example), OUT)
        output = run('sh', '-ec', command[1].replace(
            name, f'-Wall -Wextra -Werror -o {name[:-2]} {name}', 1), cwd=OUT, env=environment)
        assert not output, output
        if 'flexmem_device_open' not in text:
            run(os.path.join(OUT, name[:-2]), env=environment)


def readme_fits_a_screen():
    lines = TEXT['README.md'].count('\n')
    assert lines <= 60, f'{lines} lines'


def concepts_take_ten_minutes():
    prose = re.sub(r'^(?:\.\.|=|-).*$', '', TEXT['Documentation/concepts.rst'], flags=re.MULTILINE)
    words = len(prose.split())
    assert words <= 2000, f'{words} words'


def readme_commands_exist():
    targets = set(re.findall(r'^([a-z_-]+):', read('Makefile'), re.MULTILINE))
    problems = []
    for page, match in each(r'\bmake ((?:[A-Z]\w*=\S+ )*)([a-z][a-z_-]+)(?=[\s`])'):
        if page == 'README.md' and match[2] not in targets:
            problems.append(match[0])
    nothing(problems)


def install(prefix):
    shutil.rmtree(prefix, ignore_errors=True)
    run('make', '-s', '-C', 'userlib', f'O={USERLIB}', f'prefix={prefix}', 'DESTDIR=', 'install-lib')


def first_program():
    """The program in README is userlib/examples/first.c, and compiles with the installed library as README says."""
    block = re.search(r'^```c\n(.*?)^```$', TEXT['README.md'], re.DOTALL | re.MULTILINE)
    assert block, 'no C program in README.md'
    example = read('userlib/examples/first.c')
    code = '\n'.join(line for line in example.splitlines() if not line.startswith('/'))
    assert block[1].strip() == code.strip(), 'differs from userlib/examples/first.c'
    prefix = os.path.join(OUT, 'root')
    install(prefix)
    command = re.search(r'`(cc userlib/examples/first\.c [^`\n&]*)` compiles it after\s'
                        '`make install` and `ldconfig`, both as root', TEXT['README.md'])
    assert command, 'README.md does not say how to compile it, and what that needs'
    with open(os.path.join(OUT, 'first.c'), 'w', encoding='utf-8') as file:
        file.write(block[1])
    environment = dict(os.environ, PKG_CONFIG_PATH=os.path.join(prefix, 'lib', 'pkgconfig'))
    compile_it = command[1].replace('userlib/examples/first.c', '-Wall -Wextra -Werror first.c', 1)
    output = run('sh', '-ec', compile_it.replace('build/', ''), cwd=OUT, env=environment)
    assert not output, output


def raw_example():
    output = run('gcc', '-std=gnu11', '-Wall', '-Wextra', '-Werror', '-I', 'uapi',
                 '-o', os.path.join(OUT, 'raw'), 'Documentation/examples/raw.c')
    assert not output, output
    # Compiles only. tests/vm/docs.sh runs it.
    output = run('gcc', '-std=gnu11', '-Wall', '-Wextra', '-Werror', '-I', 'uapi', '-I', 'kmod/sim', '-I', 'userlib/include',
                 '-fsyntax-only', 'Documentation/examples/programs.c')
    assert not output, output


def driver_example():
    """The example drivers build for Debian 12's kernels without a warning, with the installed headers. For kernel 7 the
    suite build makes them, in the root where its compiler runs."""
    command = re.search(r'^   make -C /lib/modules/\$\(uname -r\)/build M=\$PWD modules$',
                        TEXT['Documentation/driver-guide.rst'], re.MULTILINE)
    assert command, 'the guide does not say how to build it'
    for kind in ('6.12', '6.1'):
        run('tests/vm/kernel.sh', kind)
        headers = os.path.join(TOP, 'build', 'kernels', kind, 'headers')
        release = read(f'build/kernels/{kind}/release').strip()
        root, work = (os.path.join(OUT, f'{name}-{kind}') for name in ('root', 'npu'))
        for path in (root, work):
            shutil.rmtree(path, ignore_errors=True)
        run('make', '-s', 'modules_install', f'MODULES_DIR={kind}', f'KERNELRELEASE={release}',
            f'KDIR={headers}', f'DESTDIR={root}', f'INSTALL_MOD_PATH={root}')
        os.makedirs(work)
        for name in ('npu', 'ram'):
            shutil.copy(os.path.join(DOCS, 'examples', f'{name}.c'), work)
        with open(os.path.join(work, 'Kbuild'), 'w', encoding='utf-8') as file:
            file.write(read('Documentation/examples/Kbuild').replace(' /usr/lib', f' {root}/usr/lib')
                       .replace('/usr/src', f'{root}/usr/src').replace('npu.o', 'npu.o ram.o'))
        run('tests/vm/kbuild.sh', kind, work, 'W=1', 'KCFLAGS=-Werror')
        for name in ('npu', 'ram'):
            assert os.path.exists(os.path.join(work, f'{name}.ko'))


def operations_table():
    """The driver guide's table has a row for each operation of the device contract, and no other row. The
    table and the sources agree on which operations may return -ENOSPC, and on which ones a device must have."""
    struct = re.search(r'^struct flexmem_device_ops \{\n(.*?)^\};', read('kmod/include/flexmem/device_ops.h'),
                       re.DOTALL | re.MULTILINE)[1]
    described = {name: text for text, name in re.findall(r'/\*\*\n(.*?)\*/\n\t\w+ \(\*(\w+)\)\(', struct, re.DOTALL)}
    assert len(described) == len(re.findall(r'\(\*\w+\)\(', struct)) > 15, 'operations without kernel-doc'
    valid = re.search(r'^static bool are_valid_ops\(.*?^\}', read('kmod/gate/function.c'), re.DOTALL | re.MULTILINE)[0]
    needed = re.findall(r'(?<!!)ops->(\w+)(?= &&)', valid.split('return ops && ')[1].split('!')[0])
    needed += re.findall(r'!ops->(\w+) == !vf', valid)
    assert len(needed) == 7, needed
    table = TEXT['Documentation/driver-guide.rst'].split('.. list-table:: Operations\n')[1].split('\n\n')[1]
    rows = [[' '.join(cell.split()) for cell in re.split(r'^     - ', row, flags=re.MULTILINE)]
            for row in re.split(r'^   \* - ', table, flags=re.MULTILINE)[1:]]
    assert rows[0] == ['operation', 'called', 'answers', 'if it failed, or the outcome is unknown', 'runs as', 'at first'], rows[0]
    names = [row[0].strip('`') for row in rows[1:]]
    problems = [f'{name}: {"no row" if name in described else "no such operation, or two rows"}'
                for name in set(names) ^ set(described) | {name for name in names if names.count(name) > 1}]
    for name, row in zip(names, rows[1:]):
        if len(row) != 6 or not all(row):
            problems.append(f'{name}: an empty cell')
        elif ('-ENOSPC:' in described.get(name, '')) != ('-ENOSPC' in row[2]):
            problems.append(f'{name}: -ENOSPC')
        elif row[5].startswith('needed') != (name in needed):
            problems.append(f'{name}: needed or not')
    nothing(problems)


def defects_are_listed():
    """The guide lists each defect that the card with defects can have, and the test that finds it."""
    script = read('tests/conformance/run.sh').split("defects='")[1].split("'")[0]
    found = re.findall(r'^(\w+) +(\w+)$', script, re.MULTILINE)
    rows = re.findall(r'^``(\w+)``  .*``(\w+)``$', TEXT['Documentation/driver-guide.rst'], re.MULTILINE)
    card = re.findall(r'^\t\[[A-Z_]+\] = "(\w+)"', read('tests/conformance/defects.c'), re.MULTILINE)
    assert ['none', *(name for name, _ in found)] == card, f'{found}, and the card has {card}'
    nothing(f'{row}' for row in set(found) ^ {row for row in rows if row[0] in card})
    nothing(f'no test {test}' for _, test in found if not has_test('tests/selftests/conformance.c', test))


def names_of_other_documents():
    """The cache accepts a key of PyTorch exactly if names.rst says so. The numbers of allocations and regions in
    names.rst are those of the traces."""
    page = TEXT['Documentation/names.rst']
    source = read('userlib/src/cache/config.c')
    known = set(re.findall(r'\{ "(\w+)", "', source)) | set(re.findall(r'strcmp\(name, "(\w+)"\)', source))
    rows = re.findall(r'^   \* - ``(\w+)``\n     - (yes|no)$', page, re.MULTILINE)
    assert len(rows) > 10, rows
    problems = [f'{key}: accepted: {said}' for key, said in rows if (key in known) != (said == 'yes')]
    table = page.split('list-table:: RFC to flexmem')[1].split('====')[0]
    left = ' '.join(re.findall(r'^   \* - (.*)$', table, re.MULTILINE))
    problems += [f'{name}: not translated' for name in RFC if f'``{name}``' not in left]
    problems += [f'no variable {name}' for name in re.findall(r'^``(PYTORCH_\w+)`` +read', page, re.MULTILINE)
                 if f'"{name}"' not in source]
    script = read('tests/vm/replay.sh')
    traces = re.findall(r'^   \* - ([\w-]+)\n     - (\d+)\n     - (\d+)$', page, re.MULTILINE)
    assert traces, 'no traces'
    for name, calls, regions in traces:
        with gzip.open(os.path.join(TOP, f'tests/traces/{name}.trace.gz'), 'rt') as trace:
            count = sum(re.match(r'\d+ a ', line) is not None for line in trace)
        if int(calls) != count or f'[{name}]={regions}' not in script:
            problems.append(f'{name}: {count} allocations, and regions as tests/vm/replay.sh has them')
    nothing(problems)


def figures_of_the_sources():
    """If a page and a constant state the same figure, its two values are equal."""
    nothing(figures.differences(read, lambda path: read(
        path if os.path.exists(os.path.join(TOP, path)) else os.path.join(LINUX, path))))


def functions_of_the_kernel():
    """Functions of the kernel that why-not-drm.rst names are in 6.12's sources."""
    names = {name for name in re.findall(r'``(\w+)\(\)``', TEXT['Documentation/why-not-drm.rst']) if not name.startswith('flexmem_')}
    assert len(names) > 10, names
    known = set()
    for pattern in ('drivers/gpu/*.c', 'drivers/gpu/drm/*.c', 'drivers/gpu/drm/ttm/*.c', 'include/drm/*.h', 'include/linux/*.h',
                    'lib/idr.c', 'mm/memory.c'):
        for path in glob.glob(os.path.join(LINUX, pattern)):
            with open(path, encoding='utf-8') as file:
                known.update(re.findall(r'\b(\w+)\)?\(', file.read()))
    assert 'drm_gem_private_object_init' in known, 'no sources of the kernel'
    nothing(names - known)


def sizes_of_structs():
    """The sizes of DRM's structs in why-not-drm.rst are those of Linux 6.12, and flexmem's structs are smaller. The
    kernel memory for an open file is at most what decisions.rst states."""
    page = TEXT['Documentation/why-not-drm.rst']
    sizes = {name: re.search(rf'``struct {name}``[^.]*?(\d+) bytes|(\d+) bytes \(``struct {name}``\)', page)
             for name in ('drm_gem_object', 'drm_mm_node', 'ttm_buffer_object')}
    missing = [name for name, match in sizes.items() if not match]
    assert not missing, f'no size of {missing}'
    run('tests/vm/kernel.sh', '6.12')
    work = os.path.join(OUT, 'sizes')
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    lines = [f'static_assert(sizeof(struct {name}) == {match[1] or match[2]});' for name, match in sizes.items()]
    kept = re.search(r'at most (\d+) KiB of kernel memory', ' '.join(TEXT['Documentation/decisions.rst'].split()))
    lines += [f'static_assert(DIV_ROUND_UP(FLEXMEM_STOCK_MOST * (sizeof(struct flexmem_block) + sizeof(struct flexmem_allocation) +',
              f'              sizeof(struct flexmem_block *)), SZ_1K) == {kept[1]});',
              'static_assert(sizeof(struct flexmem_block) < sizeof(struct drm_mm_node));',
              'static_assert(sizeof(struct flexmem_block) + sizeof(struct flexmem_allocation) +',
              '              sizeof(struct flexmem_block *) < sizeof(struct drm_gem_object));']
    with open(os.path.join(work, 'sizes.c'), 'w', encoding='utf-8') as file:
        file.write('\n'.join(['#include <drm/drm_mm.h>', '#include <drm/drm_gem.h>', '#include <drm/ttm/ttm_bo.h>',
                              '#include "alloc/allocation.h"', '#include "block/block.h"', '#include "block/spare.h"', *lines, '']))
    with open(os.path.join(work, 'Kbuild'), 'w', encoding='utf-8') as file:
        file.write('obj-m := sizes.o\nccflags-y := ' + ' '.join(
            f'-I{TOP}/{path}' for path in ('kmod', 'kmod/include', 'uapi')) + '\n')
    run('make', '-s', '-C', os.path.join(TOP, 'build/kernels/6.12/headers'), f'M={work}', 'sizes.o')


def capabilities_of_the_man_page():
    """flexmem.1 lists exactly the keys that flexmem prints with --json."""
    table = re.search(r'known\[CAPABILITIES\] = \{\n(.*?)\};', read('userlib/tools/json.c'), re.DOTALL)
    page = read('Documentation/man/flexmem.1').split('.Li capability_names')[1].split('.Pc')[0]
    names, shown = re.findall(r'"([\w-]+)"', table[1]), re.findall(r'^\.Dq ([\w-]+)', page, re.MULTILINE)
    assert names == shown, f'{names}, and in flexmem.1 {shown}'


def no_requirement_numbers():
    """Numbers of requirements, such as A26 or D15, occur only on the page that lists them, not on other pages or in
    comments."""
    problems = [f'{page}: {match[0]}' for page, match in each(r'\b[ABCDMU][1-9]\d?\b(?![-.])')
                if not page.endswith('proof.rst')]
    for path in find('uapi/**/*.h', 'kmod/**/*.[ch]', 'userlib/src/**/*.[ch]', 'userlib/include/*.h', 'userlib/tools/*.[ch]',
                     'userlib/examples/*.c', 'tests/**/*.[ch]'):
        for comment in re.findall(r'/\*.*?\*/', read(path), re.DOTALL):
            problems += [f'{path}: {number}' for number in re.findall(r'\b[ABCDMU][1-9]\d?\b', comment)]
    nothing(problems)


def copies_are_current():
    """Code on pages equals the code in the files; Documentation/copies.py copies it."""
    assert any('.. copy: ' in text for text in TEXT.values())
    nothing(f'{page}: a forge does not show a literalinclude' for page, text in TEXT.items() if 'literalinclude::' in text)
    nothing(f'{page}: run Documentation/copies.py' for page, text in TEXT.items() if copies.renewed(text) != text)


def commands_run():
    """Commands that need no driver run as the pages print them, and blocks.py lists each block of commands."""
    run(sys.executable, '-B', os.path.join(DOCS, 'blocks.py'), 'host')


def suites_are_all_there():
    """check.sh's table has a row for each suite, with all cells, and testing.rst has a copy of the table."""
    rows = re.findall(r'^\* - ``([\w.-]+)``\n((?:  .*\n)+)', run('tests/check.sh', '--plan'), re.MULTILINE)
    nothing(f'{name}: not five cells' for name, cells in rows if len(re.findall(r'^  - \S', cells, re.MULTILINE)) != 4)
    suites = re.findall(r'^([a-z][\w.-]*)_suite\(\)', read('tests/check.sh'), re.MULTILINE)
    nothing(f'{name}: not a row and a function in tests/check.sh' for name in {name for name, _ in rows} ^ set(suites))
    assert '.. copy: tests/check.sh ' in TEXT['Documentation/testing.rst'], 'testing.rst has no copy of the table'


def no_machine_of_ours():
    nothing(f'{page}: {match[0]}' for page, match in
            each(r'/(?:work|root|home)/[\w/]*|https?://(?:deb|security|pypi|registry|mirror)[\w.-]*'))


CHECKS = (
    ('the pages build without a warning', html_builds),
    ('every page is in the index', every_page_is_reached),
    ('paths that are named exist', paths_exist),
    ('links of README.md exist', links_exist),
    ('errnos that are named are those of the headers', errnos_are_the_headers),
    ('every errno of the ABI is explained', errnos_are_complete),
    ('constants, functions and structs that are named exist', names_exist),
    ('every ioctl is described', every_command_is_described),
    ('parameters of flexmem.ko, their ranges and defaults', flexmem_parameters),
    ('parameters of flexmem_sim.ko, their ranges and defaults', sim_parameters),
    ('parameters of flexmem_kunit.ko, their ranges and defaults', kunit_parameters),
    ('the proof table has every statement', proof_is_complete),
    ('the proof table names tests that exist', proof_names_tests),
    ('a planted bug shows that a named test can fail', rows_have_planted_bugs),
    ('man pages are clean', man_pages),
    ('man pages of functions, and the reference, have all that the headers describe', man_pages_of_functions),
    ('settings of the cache are the same everywhere', keys_of_the_cache),
    ("the cache's figures are those of the traces", figures_of_the_cache),
    ("the cache's examples compile as they say, and run", examples_of_the_cache),
    ('README.md fits on a screen', readme_fits_a_screen),
    ('the concepts have at most 2,000 words', concepts_take_ten_minutes),
    ('commands of README.md exist', readme_commands_exist),
    ("README.md's first program compiles as it says", first_program),
    ('the raw ioctl example compiles', raw_example),
    ('the example driver builds for 6.1 and 6.12', driver_example),
    ('the table of operations has each operation', operations_table),
    ('the defects that flexmem-conformance finds', defects_are_listed),
    ('error texts have rows with remedies', error_texts_have_rows),
    ('names of other documents are translated truly', names_of_other_documents),
    ('figures are those of the sources', figures_of_the_sources),
    ("sizes of DRM's structs are those of 6.12", sizes_of_structs),
    ('capabilities of flexmem.1 are those that are printed', capabilities_of_the_man_page),
    ('functions of the kernel that are named exist', functions_of_the_kernel),
    ('pages and comments have no numbers of requirements', no_requirement_numbers),
    ('code on pages is that of the files', copies_are_current),
    ('commands run as they are printed', commands_run),
    ('suites are those of check.sh', suites_are_all_there),
    ('no path or host of ours', no_machine_of_ours),
)


def main():
    # The builds do not get the variables of the make that runs this script.
    for name in [name for name in os.environ if name.startswith('MAKE') or name == 'MFLAGS']:
        del os.environ[name]
    os.makedirs(OUT, exist_ok=True)
    failed = 0
    for number, (name, check) in enumerate(CHECKS, 1):
        problem = None
        try:
            check()
        except (AssertionError, OSError, IndexError, KeyError, TypeError) as error:
            problem = str(error) or repr(error)
        print(f'{"not ok" if problem else "ok"} {number} - {name}')
        if problem:
            failed += 1
            for line in problem.splitlines()[:40]:
                print(f'# {line}')
        sys.stdout.flush()
    print(f'1..{len(CHECKS)}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
