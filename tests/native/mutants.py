#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Plants bugs in the core or the library, one at a time, and checks that a test notices each of them.

Usage: mutants.py [-n HOW-MANY] [-j JOBS] [-a] [-l LIST] [NAME...]

mutants.list has the bugs of the core; LIST, tests/userlib/mutants.list, has those of the library. Without names all
bugs are tried, or with -n that many of them. A hash of the sources chooses them, so only a change of the sources
changes the choice. With -a, if the test of a bug does not notice it, all other tests are tried, to find one that does.
Prints TAP.

The sources are not touched. A mutant is a changed copy of one file next to links to the others. It is compiled with the
commands of the Makefile and linked with the existing objects. A test counts only if it passes without the bug. It is a
failure if the test of a mutant does not notice it, if the mutant does not compile, or if the test does not end. Before
anything is tried, the whole list is checked: the lines of each mutant must be in the source exactly once.
"""

import argparse
import concurrent.futures
import contextlib
import fcntl
import fnmatch
import functools
import hashlib
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
# Ends a test that hangs. No result depends on this time.
TIMEOUT = 600
LAST_WORDS = re.compile(r"^(# .*: (?:EXPECTATION|ASSERTION).*|not ok .*|Bail out! .*|SUMMARY: .*)$", re.M)


class Project:
    """A project in which bugs are planted, and how its tests are built."""

    def __init__(self, tests, sources, files, hashed, one_program_a_kind):
        self.tests = TOP / tests
        self.sources = TOP / sources
        self.files = files
        self.hashed = [TOP / folder for folder in hashed]
        self.out = TOP / "build/tests" / self.tests.name
        self.by_kind = one_program_a_kind

    def program(self, kind, name):
        """Returns the path of a program below the folder in which it is built."""
        return f"{kind}/{name}" if self.by_kind else name

    def prepare(self):
        """Makes what must exist before anything is built."""
        self.out.mkdir(parents=True, exist_ok=True)
        if self.by_kind:
            subprocess.run([TOP / "tests/vm/debug-kernel.sh", "--source"], check=True)


ROOMS = "alloc block gate parts region tenant".split()
CORE = Project("tests/native", "kmod", ("*.[ch]", *(f"{room}/*.[ch]" for room in ROOMS)), ("kmod", "tests/kunit", "tests/native"), True)
LIBRARY = Project("tests/userlib", "userlib",
                  ("src/*.[ch]", "src/cache/*.[ch]", "tools/*.[ch]", "bindings/cuda/*.[ch]"),
                  ("userlib/src", "userlib/tools", "userlib/bindings/cuda", "tests/userlib"), False)


class Problem(Exception):
    """The reason why a mutant cannot be tried."""


def squeeze(lines):
    return " ".join(" ".join(lines).split())


@functools.cache
def texts(sources, pattern):
    """Returns the path and the text of each file below the sources that matches."""
    return [(path, path.read_text()) for path in sorted(sources.glob(pattern))]


class Mutant:
    """A planted bug: the lines that it replaces, the lines that it puts there, and the test that must notice."""

    def __init__(self, project, where, name):
        self.project = project
        self.file, _, self.function = where.rpartition(":")
        self.name = name
        self.changes = []
        self.test = None

    def __str__(self):
        return f"{self.function}: {self.name}"

    def find(self):
        """Returns the path and the text of the file, and the match of the function in the text."""
        function = re.compile(rf"^(?![ \t#*/])(?:[^\n]*[ *])?{self.function}\(.*?^}}", re.M | re.S)
        sources = self.project.sources
        found = [(path, text, match)
                 for pattern in ([self.file] if self.file else self.project.files)
                 for path, text in texts(sources, pattern)
                 if f"{self.function}(" in text
                 for match in function.finditer(text)
                 # Skips declarations, and matches that begin with a call in front of another function.
                 if re.match(r"[^;{]*\{", match[0])]
        if len(found) != 1:
            raise Problem(f"{len(found)} functions {self.function}() in {sources.name}/{self.file}")
        return found[0]

    def apply(self):
        """Returns the path of the file below the sources, and its text with the bug."""
        path, text, match = self.find()
        body = match[0]
        for old, new in self.changes:
            pattern = re.compile(r"\s+".join(map(re.escape, old.split())))
            if len(pattern.findall(body)) != 1:
                raise Problem(f"{len(pattern.findall(body))} times in {self.function}(): {old}")
            body = pattern.sub(lambda _, new=new: new, body)
        return str(path.relative_to(self.project.sources)), text[:match.start()] + body + text[match.end():]


def read_list(project, path):
    mutants, old, new = [], [], []

    def end_change():
        if old:
            mutants[-1].changes.append((squeeze(old), "\n".join(new)))
        elif new:
            raise SystemExit(f"{path}: {mutants[-1]}: nothing is replaced")
        old.clear()
        new.clear()

    for line in path.read_text().splitlines():
        if line[:1] == "-":
            if new:
                end_change()
            old.append(line[1:])
        elif line[:1] == "+":
            new.append(line[1:])
        elif line[:3] == "== ":
            end_change()
            mutants.append(Mutant(project, *line[3:].split(": ", 1)))
        elif line and line[0] != "#":
            kind, *test = shlex.split(line)
            mutants[-1].test = kind, tuple(test)
    end_change()
    for mutant in mutants:
        if not mutant.changes or not mutant.test or not mutant.test[1]:
            raise SystemExit(f"{path}: {mutant}: no change, or no test")
    if len({str(mutant) for mutant in mutants}) < len(mutants):
        raise SystemExit(f"{path}: two mutants of one name")
    return mutants


def misplaced(mutants):
    """Yields a message for each mutant that cannot be planted."""
    for mutant in mutants:
        try:
            mutant.apply()
        except Problem as e:
            yield f"{mutant}: {e}"


def chosen(project, mutants, number):
    """Returns a number of mutants, chosen by a hash of the sources."""
    tree = hashlib.sha256()
    for folder in project.hashed:
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".c", ".h", ".list"):
                tree.update(path.read_bytes())

    def place(mutant):
        return hashlib.sha256(tree.digest() + str(mutant).encode()).digest()

    return sorted(mutants, key=place)[:number]


class Children:
    """The child processes of this program. stop() kills them."""

    def __init__(self):
        self.lock = threading.Lock()
        self.running = set()
        self.stopped = False

    def run(self, command, cwd=None):
        # With another seed a random test may miss a bug.
        env = dict(os.environ, CACHE_SEED="1", TSAN_OPTIONS="exitcode=66:halt_on_error=1",
                   ASAN_OPTIONS="detect_stack_use_after_return=1",
                   CMOCKA_MESSAGE_OUTPUT="TAP")
        with self.lock:
            if self.stopped:
                raise Problem("stopped")
            child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                     stdin=subprocess.DEVNULL, text=True, errors="replace", env=env, cwd=cwd)
            self.running.add(child)
        try:
            said, _ = child.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired as e:
            raise Problem(f"{shlex.join(map(str, command))} does not end") from e
        finally:
            child.kill()
            child.wait()
            self.running.discard(child)
        if self.stopped:
            raise Problem("stopped")
        return child.returncode, said

    def stop(self):
        with self.lock:
            self.stopped = True
            for child in self.running:
                child.kill()


CHILDREN = Children()


class Build:
    """The Makefile's commands that compile and link, and a copy of the files that the Makefile has built."""

    def __init__(self, project, work, programs):
        self.project = project
        self.work = work
        self.compile, self.link = {}, {}
        names = sorted({project.program(*program) for program in programs})
        make = ["make", "-s", "-j2", "-C", str(project.tests), f"O={project.out}",
                *(f"{project.out}/{name}" for name in names)]
        # This lock is the one of run.sh: only one of the two programs builds at a time.
        lock = TOP / "build/locks" / project.tests.name
        lock.parent.mkdir(parents=True, exist_ok=True)
        with lock.open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            status, said = CHILDREN.run(make)
            if status:
                raise SystemExit(f"the programs do not build:\n{said}")
            self.read_commands(make)
            for made in names + [made for made in self.compile if made.endswith(".o")]:
                for path in (project.out / made), (project.out / made).with_suffix(".d"):
                    if path.exists():
                        (work / made).parent.mkdir(parents=True, exist_ok=True)
                        shutil.copy(path, work / path.relative_to(project.out))

    def read_commands(self, make):
        _, said = CHILDREN.run([*make, "-n", "-B"])
        for line in said.splitlines():
            words = shlex.split(line) if " -o " in line else []
            if "-o" not in words or not words[words.index("-o") + 1].startswith(str(self.project.out)):
                continue
            made = pathlib.Path(words[words.index("-o") + 1]).relative_to(self.project.out)
            if "-c" in words:
                # make names its source in the folder of the tests without the folder.
                words[-1] = str(self.project.tests / words[-1])
            (self.compile if "-c" in words else self.link)[str(made)] = words

    def uses(self, program, name):
        """Returns the objects of a program whose source file is the file or includes it."""
        path = self.project.sources / name
        objects = [str(pathlib.Path(word).relative_to(self.project.out))
                   for word in self.link[program] if word.endswith(".o")]
        return [made for made in objects if pathlib.Path(made).stem != "os" and
                str(path) in (self.work / made).with_suffix(".d").read_text().split()]

    def plant(self, mutant, number):
        """Makes a copy of the sources with the bug: links to all files but one."""
        name, text = mutant.apply()
        place = self.work / str(number)
        ours, theirs = place / self.project.sources.name, self.project.sources
        for part in pathlib.Path(name).parts:
            ours.mkdir(parents=True)
            for path in theirs.iterdir():
                if path.name != part:
                    (ours / path.name).symlink_to(path)
            ours, theirs = ours / part, theirs / part
        ours.write_text(text)
        return place, name

    def make(self, place, name, kind, test):
        """Builds a program with the bug. Compiles only what the bug changes."""
        sources = str(self.project.sources)
        program = self.project.program(kind, test)
        replaced = {}
        for made in self.uses(program, name):
            (place / made).parent.mkdir(parents=True, exist_ok=True)
            words = [re.sub(rf"^(-I)?{re.escape(sources)}(?=/|$)",
                            lambda match: f"{match[1] or ''}{place / self.project.sources.name}", word)
                     for word in self.compile[made]]
            words[words.index("-o") + 1] = str(place / made)
            words = [word for word in words if word not in ("-MMD", "-MP")] + ["-w"]
            replaced[str(self.project.out / made)] = str(place / made)
            if not (place / made).exists():
                # make runs there, and finds the sources of the tests by their names.
                status, said = CHILDREN.run(words, self.project.tests)
                if status:
                    raise Problem(f"it does not compile: {said}")
        if not replaced:
            raise Problem(f"{program} is not made of {name}")
        words = [replaced.get(word, str(self.work / pathlib.Path(word).relative_to(self.project.out))
                              if word.endswith(".o") else word)
                 for word in self.link[program]]
        (place / program).parent.mkdir(exist_ok=True)
        words[words.index("-o") + 1] = str(place / program)
        status, said = CHILDREN.run(words)
        if status:
            raise Problem(f"it does not link: {said}")


@functools.lru_cache(1)
def fixed():
    """Returns the command that turns off the random layout of memory, because TSan needs fixed addresses."""
    try:
        subprocess.run(["setarch", "-R", "true"], check=True, capture_output=True)
        return ["setarch", "-R"]
    except (OSError, subprocess.CalledProcessError):
        return []


def notices(place, project, kind, test):
    """Runs a program. Returns its report of a failure, or None if it passes."""
    program = place / project.program(kind, test[0])
    status, said = CHILDREN.run([*fixed(), str(program), *test[1:]])
    if not status:
        return None
    found = LAST_WORDS.search(said)
    return found[0] if found else f"it ends with {status}"


def seeds(test):
    """Expands a test with the seeds FIRST..LAST into one test for each seed."""
    kind, arguments = test
    for at, argument in enumerate(arguments):
        some = re.fullmatch(r"(\d+)\.\.(\d+)", argument)
        if some:
            for seed in range(int(some[1]), int(some[2]) + 1):
                yield kind, (*arguments[:at], str(seed), *arguments[at + 1:])
            return
    yield test


class Hunter:
    """Finds what notices a mutant."""

    def __init__(self, build, others):
        self.build, self.others = build, others
        self.passes = {}
        self.lock = threading.Lock()

    def check(self, test):
        """Whether a test passes without a bug. Each test is tried once."""
        with self.lock:
            if test not in self.passes:
                self.passes[test] = notices(self.build.work, self.build.project, *test)
            if self.passes[test]:
                raise Problem(f"without the bug, too: {self.passes[test]}")

    def hunt(self, mutant, number):
        place, name = self.build.plant(mutant, number)
        try:
            # Of the other programs, only those that are made of the file can notice anything.
            others = [test for test in self.others
                      if self.build.uses(self.build.project.program(test[0], test[1][0]), name)]
            for test in [mutant.test] + others:
                self.build.make(place, name, test[0], test[1][0])
                for kind, arguments in seeds(test):
                    said = notices(place, self.build.project, kind, arguments)
                    if said:
                        self.check((kind, arguments))
                        return f"{kind}/{shlex.join(arguments)}: {said}"
            raise Problem("nothing notices it")
        finally:
            shutil.rmtree(place, ignore_errors=True)


def tap(number, good, name, said):
    print(f"{'ok' if good else 'not ok'} {number} - {name}", flush=True)
    for line in said[:2000].splitlines():
        print(f"# {line}", flush=True)
    return not good


def run(hunter, mutants, everything, jobs):
    wrong = list(misplaced(everything))
    failed = tap(1, not wrong, f"the lines of {len(everything)} mutants are in the source",
                 "\n".join(wrong))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        try:
            hunts = [pool.submit(hunter.hunt, mutant, number)
                     for number, mutant in enumerate(mutants)]
            for number, (mutant, hunt) in enumerate(zip(mutants, hunts), 2):
                try:
                    said, good = hunt.result(), True
                except Problem as e:
                    said, good = str(e), False
                failed += tap(number, good, mutant, said)
        except BaseException:
            CHILDREN.stop()
            raise
    print(f"1..{1 + len(mutants)}")
    return failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", type=int)
    parser.add_argument("-j", type=int, default=2)
    parser.add_argument("-a", action="store_true")
    parser.add_argument("-l", type=pathlib.Path, default=HERE / "mutants.list")
    parser.add_argument("name", nargs="*")
    arguments = parser.parse_args()
    project = LIBRARY if arguments.l.resolve().parent == LIBRARY.tests else CORE
    everything = mutants = read_list(project, arguments.l)
    if arguments.name:
        mutants = [mutant for mutant in mutants
                   if any(fnmatch.fnmatch(str(mutant), f"*{name}*") for name in arguments.name)]
    elif arguments.n:
        mutants = chosen(project, mutants, arguments.n)
    if not mutants:
        run(None, mutants, everything, arguments.j)
        return "no mutant has such a name"
    others = []
    if arguments.a:
        others = sorted({(mutant.test[0], mutant.test[1][:1])
                         if mutant.test[1][0] in ("kunit", "faults") or project is LIBRARY
                         else mutant.test for mutant in everything})
    project.prepare()
    with contextlib.ExitStack() as stack:
        work = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mutants.", dir=project.out)))
        tests = [mutant.test for mutant in mutants] + others
        programs = {(kind, test[0]) for kind, test in tests}
        failed = run(Hunter(Build(project, work, programs), others), mutants, everything,
                     arguments.j)
    return 1 if failed else 0


if __name__ == "__main__":
    # A signal raises an exception, so that temporary files are removed.
    for number in signal.SIGTERM, signal.SIGHUP, signal.SIGINT:
        signal.signal(number, lambda *_: sys.exit(130))
    sys.exit(main())
