#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Which tests call which source file.

Usage: callers.py [FILE...]        like kmod/region/slot.c or fit.c; default: all of the core and the library
       callers.py --index          writes tests/INDEX
       callers.py --compare PART   whether the lines of tests/INDEX about a part are right; PART is kmod or userlib

Prints a line for each source file. It begins with the test files that call its functions by name, each with the number
of functions, largest number first. Then follow the tests that notice a bug planted in the file (mutants.list). It reads
the symbols of what was built: tests/native/run.sh and make -C tests/userlib all build it.

The end of the line is about tests in virtual machines. Self tests enter the driver through a command, open(), a
mapping, an event, unbinding and the like. The line names each of these ways from which calls lead to the file, with the
programs of tests/selftests that use the way. The suites of KUnit run in virtual machines too, and so do the tests
device_* of the library.

tests/INDEX has a line for each source file of kmod/, userlib/src and userlib/tools: the suites of check.sh that
MAINTAINERS names for it, and the five nearest tests, nearest first. A test that calls functions of the file by name, or
that notices a bug planted in it, is nearer than one that calls a file that calls the file, and so on. Of two tests that
are equally near, the one with more functions and bugs comes first. A test of the command uses the functions of the
subcommands that it runs.
"""
import collections
import difflib
import fnmatch
import functools
import pathlib
import re
import sys

sys.dont_write_bytecode = True
import mutants  # noqa: E402
from edges import symbols  # noqa: E402

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
NATIVE = TOP / "build/tests/native"
USERLIB = TOP / "build/tests/userlib/asan"
INDEX = TOP / "tests/INDEX"
HEAD = """\
# SPDX-License-Identifier: GPL-2.0
# The tests of each source file: "FILE: suites of tests/check.sh: the five nearest tests, the nearest first".
# The tests lie below tests/. "tests/native/callers.py FILE" says more about a file, and --index renews this list.
"""
NEAREST = 5
# Files of tests/native that help the tests there and test nothing by themselves.
HELPERS = {"watch", "world"}
# What was built of the driver or the library: {path: (names that it defines, {name that it uses: how often})} of its
# source files, of its tests, and of the files that help the tests. Paths of tests and helpers are below tests/.
Built = collections.namedtuple("Built", "sources tests helpers")


def objects(folder, pattern):
    """Returns {name of an object file: (the names that it defines, the names that it uses)}."""
    read = symbols(sorted(folder.glob(pattern)), "TDBR")
    return {pathlib.Path(path).stem: (defined, collections.Counter(needed)) for path, (defined, needed) in read.items()}


def core_sources():
    """Returns the paths of the sources of flexmem.ko."""
    return [TOP / f"{path}.c" for path in re.findall(r"^\t(kmod/(?!sim/)[\w/]+)\.o", (TOP / "Kbuild").read_text(), re.M)]


def sources():
    """Returns the paths of all source files below TOP, the driver's first."""
    return sorted(str(path.relative_to(TOP)) for folder in ("kmod", "userlib/src", "userlib/tools")
                  for path in (TOP / folder).rglob("*.c"))


def tests_and_helpers(files):
    """Sorts {path below tests/: (defined, used)}. A test that includes a source file defines what it tests."""
    tests, helpers = {}, {}
    for path, (defined, used) in files.items():
        folder, name = path[:-2].split("/")
        if name.endswith("_kunit") if folder == "kunit" else name not in HELPERS if folder == "native" else \
                name.startswith(("test_", "device_")):
            tests[path] = (), used + collections.Counter(defined - {"main"})
        else:
            helpers[path] = defined, used
    return tests, helpers


def built(wanted, found, how):
    """Returns {path: what was found of it}, for all paths that there are. Objects of files that are gone do not count."""
    missing = sorted(path for path, name in wanted.items() if name not in found)
    if missing:
        sys.exit(f"not built: {' '.join(missing[:5])}: {how}")
    return {path: found[name] for path, name in wanted.items()}


def driver():
    found = {}
    for kind in "bare", "steps", "plain":
        found.update(objects(NATIVE / kind, "main-*.o"))
    found.update(objects(NATIVE / "asan", "*-*.o"))
    sources = {str(path.relative_to(TOP)): f"core-{path.stem}" for path in core_sources()}
    # The rest of kmod/sim binds the card to the platform bus, and runs in machines only.
    sources |= {str(path.relative_to(TOP)): f"card-{path.stem}" for path in (TOP / "kmod/sim").glob("*.c")
                if f"card-{path.stem}" in found}
    tests = {f"{folder}/{path.name}": f"{kind}-{path.stem}" for folder, kind in (("kunit", "suite"), ("native", "main"))
             for path in (TOP / "tests" / folder).glob("*.c")}
    how = "make -C tests/native all"
    return Built(built(sources, found, how), *tests_and_helpers(built(tests, found, how)))


def subcommands():
    """Returns {subcommand of the command: the function that runs it}."""
    table = re.search(r"^static const struct command commands\[\] = \{$(.*?)^\};", (TOP / "userlib/tools/main.c").read_text(),
                      re.M | re.S)[1]
    return dict(re.findall(r'^\t\{ "(\w+)",.*?\b(cmd_\w+) \}', table, re.M | re.S))


def library():
    found = objects(USERLIB, "*.o")
    here = TOP / "tests/userlib"
    sources = {str(path.relative_to(TOP)): path.stem for folder in ("src", "src/cache", "tools")
               for path in (TOP / "userlib" / folder).glob("*.c")}
    tests = {f"userlib/{path.name}": path.stem for path in here.glob("*.c") if path.stem in found or path.name.startswith("test_")}
    how = "make -C tests/userlib all"
    tests, helpers = tests_and_helpers(built(tests, found, how))
    names = set().union(*(defined for defined, _ in built(sources, found, how).values()))
    # Programs that run in machines only leave no object here.
    for path in here.glob("device_*.c"):
        if path.stem not in found:
            words = set(re.findall(r"\b(?:flexmem|fmlib)_\w+", path.read_text()))
            tests[f"userlib/{path.name}"] = (), collections.Counter(names & words)
    commands = subcommands()
    for path in here.glob("test_*.py"):
        runs = collections.Counter(commands[name] for name in re.findall(r'\("(?:--\w+", ")?(\w+)"', path.read_text())
                                   if name in commands)
        # A test that is about a subcommand says more of it than one that runs it among others.
        if runs:
            tests[f"userlib/{path.name}"] = (), {"main": runs.total()} | {name: number ** 2 / runs.total()
                                                                          for name, number in runs.items()}
    return Built(built(sources, found, how), tests, helpers)


def table(part):
    """Returns {source file: [(number of its names that the test uses, test)]}."""
    return {source: sorted(((len(defined & used.keys()), test) for test, (_, used) in part.tests.items()
                            if defined & used.keys()), key=lambda pair: (-pair[0], pair[1]))
            for source, (defined, _) in part.sources.items()}


@functools.cache
def names_of_tests():
    """Returns {path below tests/: (the suites, the sequences and the other texts that a test may be named by, its text)}."""
    found = {}
    for folder in "kunit", "native":
        for path in sorted((TOP / "tests" / folder).glob("*.c")):
            text = path.read_text()
            found[f"{folder}/{path.name}"] = (re.findall(r'^\t\.name = "(\w+)",', text, re.M),
                                              re.findall(r'(?:^\t|\{ )"([^"\n]*)"', text, re.M), text)
    return found


@functools.cache
def files_of_test(program, name):
    """Returns the paths below tests/ of the files that have a test of a list of mutants."""
    if program == "kunit":
        suite, _, case = name.partition(".")
        return [path for path, (suites, _, text) in names_of_tests().items()
                if fnmatch.filter(suites, suite) and all(piece in text for piece in case.split("*"))]
    if program == "faults" and name:
        # A row of a table of sequences, or else what faults.c prints about another test.
        return [path for path, (_, sequences, _) in names_of_tests().items() if any(name in row for row in sequences)] or \
            [path for path, (_, _, text) in names_of_tests().items() if f'"{name}' in text]
    path = program.replace("tsan_", "test_") + ".c"
    return [f"{folder}/{path}" for folder in ("native", "userlib") if (TOP / "tests" / folder / path).exists()]


def planted(project):
    """Returns {source file: (the tests that notice a bug in it, {test file: how many bugs in it a test there notices})}.
    A bug that one of several files notices counts for each of them in part."""
    found = {}
    for mutant in mutants.read_list(project, project.tests / "mutants.list"):
        _, (program, *arguments) = mutant.test
        names, files = found.setdefault(str(mutant.find()[0].relative_to(TOP)), (set(), collections.Counter()))
        names.add(" ".join([program, *arguments]).removeprefix("kunit "))
        homes = files_of_test(program, arguments[-1] if arguments else "")
        if not homes:
            sys.exit(f"{mutant}: no file has its test")
        for path in homes:
            files[path] += 1 / len(homes)
    return found


def nearest(source, part, noticed):
    """Returns the tests that lead to a source file, nearest first; noticed has the bugs of the file by test file."""
    homes = part.sources | part.helpers
    near, seen, found = {source}, {source}, []
    while near and len(found) < NEAREST:
        names = set().union(*(homes[path][0] for path in near))
        numbers = collections.Counter(noticed)
        for test, (_, used) in part.tests.items():
            numbers[test] += sum(used[name] for name in names & used.keys())
        found += sorted((test for test, number in numbers.items() if number and test not in found),
                        key=lambda test: (-numbers[test], test))
        noticed = {}
        near = {path for path, (_, used) in homes.items() if names & used.keys()} - seen
        seen |= near
    return found


def functions(text):
    """Returns {function: the words of its body} of a C file; a table of functions counts as a function."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    begin = r"^(?![ \t#}])[^;{}=]*?(\w+)(?:\([^;{}]*\)\s*(?:__\w+\([^)]*\)\s*)*|\[\w*\] = )\{.*?^\}"
    found = {match[1]: set(re.findall(r"\w+", match[0])) for match in re.finditer(begin, text, re.S | re.M)}
    macros = re.finditer(r"^#define (\w+)\(((?:[^\n]*\\\n)*[^\n]*)", text, re.M)
    return {**{match[1]: set(re.findall(r"\w+", match[2])) for match in macros}, **found}


def ways_in():
    """Returns {way into the driver: (the functions it enters, words by which a self test that uses it is recognised)}.
    """
    text = "".join(path.read_text() for path in core_sources())
    ways = {command: ({handler}, {f"FLEXMEM_IOCTL_{command}"}) for command, handler in
            re.findall(r"\tCOMMAND\(FLEXMEM_CMD_(\w+),(?:[^()]|\([^()]*\))*?(\w+)\)", text)}
    return {**ways,
            "open": ({"flexmem_open", "flexmem_release"}, {"fm_open", "fm_open_as", "O_RDWR"}),
            "mmap": ({"flexmem_mmap", "mapping_fault"}, {"mmap", "fm_mmap"}),
            "events": ({"flexmem_pressure_read", "flexmem_pressure_poll"}, {"flexmem_event", "POLLIN"}),
            "load": ({"flexmem_init", "flexmem_exit", "flexmem_device_register"}, {"fm_load", "insmod"}),
            "unbind": ({"flexmem_device_register", "flexmem_device_unregister"}, {"unbind"}),
            "reset": ({"flexmem_device_reset"}, {"fm_reset", "reset"}),
            "suspend": ({"flexmem_device_suspend", "flexmem_device_resume"}, {"suspended"})}


def files_of_ways(ways):
    """Returns {source file: the ways into the driver from which calls lead to it}."""
    sources = {path: functions(path.read_text()) for path in core_sources()}
    public = {name: path for path, known in sources.items() for name in known if name.startswith("flexmem_")}
    found = {}
    for way, (roots, _) in ways.items():
        waiting = [(path, name) for path, known in sources.items() for name in roots & set(known)]
        if len(waiting) < len(roots):
            sys.exit(f"kmod has not all of {', '.join(sorted(roots))}")
        seen = set()
        while waiting:
            path, name = waiting.pop()
            if (path, name) in seen:
                continue
            seen.add((path, name))
            for word in sources[path][name]:
                if word in sources[path]:
                    waiting.append((path, word))
                elif word in public:
                    waiting.append((public[word], word))
        for path, _ in seen:
            found.setdefault(str(path.relative_to(TOP)), set()).add(way)
    return found


def programs_of_ways(ways):
    """Returns {way into the driver: the self tests that use it, directly or through headers that they include}."""
    texts = {path.name: path.read_text() for path in (TOP / "tests/selftests").glob("*.[ch]")}
    headers = [text for name, text in texts.items() if name.endswith(".h")]
    helpers = {name: words for text in headers for name, words in functions(text).items()}
    for text in headers:
        # FM_RAW(alloc, ...) defines raw_alloc(), which must(alloc, ...) calls.
        for name, command in re.findall(r"^FM_RAW\((\w+), (\w+),", text, re.M):
            helpers[f"raw_{name}"] = {f"FLEXMEM_IOCTL_{command}"}
    found = {}
    for program, text in texts.items():
        if not program.endswith(".c"):
            continue
        waiting = set(re.findall(r"\w+", text)) | {f"raw_{name}" for name in re.findall(r"\bmust(?:_fail)?\((?:\w+, )?(\w+),", text)}
        words = set()
        while waiting:
            word = waiting.pop()
            if word not in words:
                words.add(word)
                waiting |= helpers.get(word, set())
        for way, (_, signs) in ways.items():
            if words & signs:
                found.setdefault(way, set()).add(program[:-2])
    return found


def in_machines(source, tests, ways, programs):
    """Returns the end of a file's line."""
    parts = []
    suites = [test for _, test in tests if test.startswith("kunit/") or "/device_" in test]
    if suites:
        parts.append("the suites " + ", ".join(suites))
    reached = sorted(((programs.get(way, set()), way) for way in ways.get(source, ())), key=lambda pair: (len(pair[0]), pair[1]))
    most = len(set().union(*programs.values())) / 2
    parts += [f"{way} by {' '.join(sorted(some))}" for some, way in reached if 0 < len(some) < most]
    common = [way for some, way in reached if len(some) >= most]
    if common:
        parts.append(f"{' '.join(common)} by most self tests")
    if not parts and source.startswith("userlib/"):
        parts.append("only by what the suites cache, replay and torch-driver call")
    return "; in a machine: " + ("; ".join(parts) or "nothing")


PARTS = {"kmod": (driver, mutants.CORE), "userlib": (library, mutants.LIBRARY)}


@functools.cache
def suites():
    """Returns [(folder, the suites that MAINTAINERS names for it)], with a folder before those above it."""
    found = []
    for section in (TOP / "MAINTAINERS").read_text().split("\n\n"):
        names = re.search(r"^T:\t(.*)", section, re.M)
        found += [(folder, names[1]) for folder in re.findall(r"^F:\t(.*/)$", section, re.M) if names]
    return sorted(found, reverse=True)


def index_lines(name):
    """Returns the lines of tests/INDEX about kmod or userlib."""
    read, project = PARTS[name]
    part, bugs = read(), planted(project)
    lines = []
    for source in [source for source in sources() if source.startswith(f"{name}/")]:
        near = nearest(source, part, bugs.get(source, ((), {}))[1]) if source in part.sources else []
        names = next(names for folder, names in suites() if source.startswith(folder))
        lines.append(f"{source}: {names}: {' '.join(near[:NEAREST]) or 'it runs in machines only'}")
    return lines


def differences(name):
    """Returns how the lines of tests/INDEX about kmod or userlib differ from what they should be."""
    kept = [line for line in INDEX.read_text().splitlines() if line.startswith(f"{name}/")]
    wrong = [line for line in difflib.ndiff(kept, index_lines(name)) if line[0] in "-+"]
    return ["tests/INDEX is out of date; this renews it: tests/native/callers.py --index", *wrong] if wrong else []


def main():
    wanted = sys.argv[1:]
    if wanted[:1] == ["--compare"]:
        wrong = differences(wanted[1])
        if wrong:
            print("\n".join(wrong))
        return bool(wrong)
    if wanted == ["--index"]:
        INDEX.write_text(HEAD + "".join(f"{line}\n" for name in PARTS for line in index_lines(name)))
        return 0
    names = [name for name in sources() if not wanted or any(f"/{name}".endswith(f"/{end}") for end in wanted)]
    ways = ways_in()
    files, programs = files_of_ways(ways), programs_of_ways(ways)
    for name, (read, project) in PARTS.items():
        shown = [source for source in names if source.startswith(f"{name}/")]
        found, bugs = (table(read()), planted(project)) if shown else ({}, {})
        for source in shown:
            tests = found.get(source, ())
            print(f"{source}: " + (", ".join(f"{test} ({count})" for count, test in tests) or "no test by name") +
                  (f"; planted bugs: {', '.join(sorted(bugs[source][0]))}" if source in bugs else "") +
                  in_machines(source, tests, files, programs))
    return 0 if names else 1


if __name__ == "__main__":
    sys.exit(main())
