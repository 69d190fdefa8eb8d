#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Which tests call which source file.

Usage: callers.py [FILE...]        like kmod/region/slot.c or fit.c; default: all of the core and the library

Prints a line for each source file. It begins with the test files that call its functions by name, each with the number
of functions, largest number first. Then follow the tests that notice a bug planted in the file (mutants.list). It reads
the symbols of what was built: tests/native/run.sh and make -C tests/userlib all build it.

The end of the line is about tests in virtual machines. Self tests enter the driver through a command, open(), a
mapping, an event, unbinding and the like. The line names each of these ways from which calls lead to the file, with the
programs of tests/selftests that use the way. The suites of KUnit run in virtual machines too, and so do the tests
device_* of the library.
"""
import pathlib
import re
import sys

sys.dont_write_bytecode = True
import mutants  # noqa: E402
from edges import symbols  # noqa: E402

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
NATIVE = TOP / "build/tests/native/asan"
USERLIB = TOP / "build/tests/userlib/asan"


def objects(folder, pattern):
    """Returns {object file: (the functions that it defines, the names that it needs)}."""
    read = symbols(sorted(folder.glob(pattern)), "T")
    return {pathlib.Path(path).stem: each for path, each in read.items()}


def core_sources():
    """Returns the paths of the sources of flexmem.ko."""
    return [TOP / f"{path}.c" for path in re.findall(r"^\t(kmod/(?!sim/)[\w/]+)\.o", (TOP / "Kbuild").read_text(), re.M)]


def table(sources, tests):
    """Returns {source file: [(number of its functions that the test calls, test file)]}."""
    return {source: sorted(((len(defined & needs), test) for test, (_, needs) in tests.items() if defined & needs),
                           key=lambda pair: (-pair[0], pair[1]))
            for source, (defined, _) in sources.items()}


def all_tables():
    paths = {path.stem: str(path.relative_to(TOP)) for path in core_sources()}
    # An object may be left from a source that there is no more.
    core = {paths[name[5:]]: each for name, each in objects(NATIVE, "core-*.o").items() if name[5:] in paths}
    suites = {name.split("-", 1)[1]: each for kind in ("suite", "main")
              for name, each in objects(NATIVE, f"{kind}-*.o").items()
              if (TOP / f"tests/{'kunit' if kind == 'suite' else 'native'}" / f"{name.split('-', 1)[1]}.c").exists()}
    files = {path.stem: path.relative_to(TOP) for folder in ("src", "src/cache")
             for path in (TOP / "userlib" / folder).glob("*.c")}
    built = objects(USERLIB, "*.o")
    library = {str(files[name]): each for name, each in built.items() if name in files}
    tests = {name: each for name, each in built.items() if re.match(r"(test|device)_", name)}
    return {**table(core, suites), **table(library, tests)}


def planted():
    """Returns {source file: tests that notice a bug in it}."""
    found = {}
    for project in mutants.CORE, mutants.LIBRARY:
        for mutant in mutants.read_list(project, project.tests / "mutants.list"):
            _, (program, *arguments) = mutant.test
            name = arguments[0] if program == "kunit" or project is mutants.LIBRARY else program
            source = str(mutant.find()[0].relative_to(TOP))
            found.setdefault(source, set()).add(name if project is mutants.CORE else f"{program} {name}")
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
    suites = [test for _, test in tests if test.endswith("_kunit") or test.startswith("device_")]
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


def main():
    found = all_tables()
    if not found:
        sys.exit("nothing is built: run tests/native/run.sh asan, and make -C tests/userlib all")
    wanted = sys.argv[1:]
    shown = {source: tests for source, tests in found.items()
             if not wanted or any(f"/{source}".endswith(f"/{name}") for name in wanted)}
    bugs = planted()
    ways = ways_in()
    files, programs = files_of_ways(ways), programs_of_ways(ways)
    for source, tests in sorted(shown.items()):
        print(f"{source}: " + (", ".join(f"{test} ({count})" for count, test in tests) or "no test by name") +
              (f"; planted bugs: {', '.join(sorted(bugs[source]))}" if source in bugs else "") +
              in_machines(source, tests, files, programs))
    return 0 if shown else 1


if __name__ == "__main__":
    sys.exit(main())
