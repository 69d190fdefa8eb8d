#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Which tests call which source file.

Usage: callers.py [FILE...]        like kmod/slot.c or fit.c; default: all of the core and the library

Prints a line for each source file: the test files that call its functions by name, each
with the number of functions, the most first; then the tests that notice a bug planted in
it (mutants.list). It reads the symbols of what was built: tests/native/run.sh and make -C
tests/userlib all build it. Programs that enter through file operations or the public
functions, as all self tests do, reach the other files as well, but call none by name.
"""
import pathlib
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import mutants  # noqa: E402

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
NATIVE = TOP / "build/tests/native/asan"
USERLIB = TOP / "build/tests/userlib/asan"


def symbols(path):
    """Functions that an object defines, and names that it needs."""
    said = subprocess.run(["nm", "--format=posix", path], check=True, capture_output=True, text=True).stdout
    kinds = [line.split()[:2] for line in said.splitlines()]
    return {name for name, kind in kinds if kind == "T"}, {name for name, kind in kinds if kind == "U"}


def objects(folder, pattern):
    return {path.stem: symbols(path) for path in sorted(folder.glob(pattern))}


def table(sources, tests):
    """{source file: [(how many functions, test file)]}"""
    return {source: sorted(((len(defined & needs), test) for test, (_, needs) in tests.items() if defined & needs),
                           key=lambda pair: (-pair[0], pair[1]))
            for source, (defined, _) in sources.items()}


def all_tables():
    core = {f"kmod/{name[5:]}.c": each for name, each in objects(NATIVE, "core-*.o").items()}
    suites = {name.split("-", 1)[1]: each for kind in ("suite", "shim")
              for name, each in objects(NATIVE, f"{kind}-*.o").items()
              if (TOP / f"tests/{'kunit' if kind == 'suite' else 'native'}" / f"{name.split('-', 1)[1]}.c").exists()}
    files = {path.stem: path.relative_to(TOP) for folder in ("src", "src/cache")
             for path in (TOP / "userlib" / folder).glob("*.c")}
    built = objects(USERLIB, "*.o")
    library = {str(files[name]): each for name, each in built.items() if name in files}
    tests = {name: each for name, each in built.items() if re.match(r"(test|device)_", name)}
    return {**table(core, suites), **table(library, tests)}


def planted():
    """{source file: tests that notice a bug in it}"""
    found = {}
    for project in mutants.CORE, mutants.LIBRARY:
        for mutant in mutants.read_list(project, project.tests / "mutants.list"):
            _, (program, *arguments) = mutant.test
            name = arguments[0] if program == "kunit" or project is mutants.LIBRARY else program
            source = str(mutant.find()[0].relative_to(TOP))
            found.setdefault(source, set()).add(name if project is mutants.CORE else f"{program} {name}")
    return found


def main():
    found = all_tables()
    if not found:
        sys.exit("nothing is built: run tests/native/run.sh asan, and make -C tests/userlib all")
    wanted = sys.argv[1:]
    shown = {source: tests for source, tests in found.items()
             if not wanted or any(f"/{source}".endswith(f"/{name}") for name in wanted)}
    bugs = planted()
    for source, tests in sorted(shown.items()):
        print(f"{source}: " + (", ".join(f"{test} ({count})" for count, test in tests) or "no test by name") +
              (f"; planted bugs: {', '.join(sorted(bugs[source]))}" if source in bugs else ""))
    return 0 if shown else 1


if __name__ == "__main__":
    sys.exit(main())
