#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Plants bugs in the core, one at a time, and sees that a native program notices.

Usage: mutants.py [-n HOW-MANY] [-j JOBS] [-a] [-l LIST] [NAME...]

mutants.list has them, or LIST. Without names all are tried, or, with -n, as many as that,
chosen by the hash of the sources: the same ones for the same tree, other ones after a
change. With -a all tests are tried on each that its own test does not notice, to find
one. Prints TAP.

The sources are not touched: a mutant is a copy of one file among links to the others,
compiled by the commands of the Makefile and linked with the objects that are there.
Only a test that passes without the bug notices it. A mutant that its test does not
notice is a failure, and so is one that does not compile, or whose test does not end.
First of all the whole list is looked at, whatever is tried then: the lines of each mutant
must be in the source, once.
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
KMOD = TOP / "kmod"
OUT = TOP / "build/tests/native"
# Only there to end what hangs.
TIMEOUT = 600
LAST_WORDS = re.compile(r"^(# .*: (?:EXPECTATION|ASSERTION).*|not ok .*|Bail out! .*|SUMMARY: .*)$", re.M)


class Problem(Exception):
    """Why there is nothing to be said of a mutant."""


def squeeze(lines):
    return " ".join(" ".join(lines).split())


class Mutant:
    """A planted bug: what becomes of which lines, and the test that notices."""

    def __init__(self, where, name):
        self.file, _, self.function = where.rpartition(":")
        self.name = name
        self.changes = []
        self.test = None

    def __str__(self):
        return f"{self.function}: {self.name}"

    def find(self):
        """The file, and where in it the function is."""
        function = re.compile(rf"^(?![ \t#*/])(?:[^\n]*[ *])?{self.function}\(.*?^}}", re.M | re.S)
        found = [(path, path.read_text(), match)
                 for path in sorted(KMOD.glob(self.file or "*.[ch]"))
                 for match in function.finditer(path.read_text())
                 # Not what is declared or called before another function.
                 if re.match(r"[^;{]*\{", match[0])]
        if len(found) != 1:
            raise Problem(f"{len(found)} functions {self.function}() in kmod/{self.file}")
        return found[0]

    def apply(self):
        """The file with the bug, and its name."""
        path, text, match = self.find()
        body = match[0]
        for old, new in self.changes:
            pattern = re.compile(r"\s+".join(map(re.escape, old.split())))
            if len(pattern.findall(body)) != 1:
                raise Problem(f"{len(pattern.findall(body))} times in {self.function}(): {old}")
            body = pattern.sub(lambda _, new=new: new, body)
        return path.name, text[:match.start()] + body + text[match.end():]


def read_list(path):
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
            mutants.append(Mutant(*line[3:].split(": ", 1)))
        elif line and line[0] != "#":
            kind, *test = shlex.split(line)
            mutants[-1].test = kind, tuple(test)
    end_change()
    for mutant in mutants:
        if not mutant.changes or not mutant.test:
            raise SystemExit(f"{path}: {mutant}: no change, or no test")
    if len({str(mutant) for mutant in mutants}) < len(mutants):
        raise SystemExit(f"{path}: two mutants of one name")
    return mutants


def misplaced(mutants):
    """Why those cannot be planted that cannot."""
    for mutant in mutants:
        try:
            mutant.apply()
        except Problem as e:
            yield f"{mutant}: {e}"


def chosen(mutants, number):
    """So many of them, by the hash of the sources."""
    tree = hashlib.sha256()
    for folder in KMOD, TOP / "tests/kunit", HERE:
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".c", ".h", ".list"):
                tree.update(path.read_bytes())

    def place(mutant):
        return hashlib.sha256(tree.digest() + str(mutant).encode()).digest()

    return sorted(mutants, key=place)[:number]


class Children:
    """Processes, which are ended when we are."""

    def __init__(self):
        self.lock = threading.Lock()
        self.running = set()
        self.stopped = False

    def run(self, command):
        env = dict(os.environ, TSAN_OPTIONS="exitcode=66:halt_on_error=1",
                   ASAN_OPTIONS="detect_stack_use_after_return=1")
        with self.lock:
            if self.stopped:
                raise Problem("stopped")
            child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                     stdin=subprocess.DEVNULL, text=True, errors="replace", env=env)
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
    """How the Makefile compiles and links, and a copy of what it has made."""

    def __init__(self, work, programs):
        self.work = work
        self.compile, self.link = {}, {}
        make = ["make", "-s", "-j2", "-C", str(HERE), f"O={OUT}",
                *(f"{OUT}/{kind}/{program}" for kind, program in sorted(programs))]
        # As run.sh has it: what is built is not built by another at the same time.
        lock = TOP / "build/locks/native"
        lock.parent.mkdir(parents=True, exist_ok=True)
        with lock.open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            status, said = CHILDREN.run(make)
            if status:
                raise SystemExit(f"the programs do not build:\n{said}")
            self.read_commands(make)
            for kind in {kind for kind, _ in programs}:
                shutil.copytree(OUT / kind, work / kind)

    def read_commands(self, make):
        _, said = CHILDREN.run([*make, "-n", "-B"])
        for line in said.splitlines():
            words = shlex.split(line) if " -o " in line else []
            if "-o" not in words or not words[words.index("-o") + 1].startswith(str(OUT)):
                continue
            made = pathlib.Path(words[words.index("-o") + 1]).relative_to(OUT)
            (self.compile if "-c" in words else self.link)[str(made)] = words

    def uses(self, kind, program, header):
        """Objects of a program that a header of the core is in."""
        objects = [pathlib.Path(word).relative_to(OUT / kind)
                   for word in self.link[f"{kind}/{program}"] if word.endswith(".o")]
        return [made for made in objects if made.stem != "os" and
                re.search(rf"/kmod/{header}\b",
                          (self.work / kind / made).with_suffix(".d").read_text())]

    def plant(self, mutant, number):
        """Files of the core with the bug."""
        name, text = mutant.apply()
        place = self.work / str(number)
        (place / "kmod").mkdir(parents=True)
        for path in KMOD.iterdir():
            if path.name != name:
                (place / "kmod" / path.name).symlink_to(path)
        (place / "kmod" / name).write_text(text)
        return place, name

    def make(self, place, name, kind, program):
        """A program with the bug; only what it changes is compiled."""
        objects = (self.uses(kind, program, name) if name.endswith(".h")
                   else [f"core-{name[:-2]}.o"])
        replaced = {}
        (place / kind).mkdir(exist_ok=True)
        for made in objects:
            words = [word.replace(f"-I{KMOD}", f"-I{place}/kmod")
                     for word in self.compile[f"{kind}/{made}"]]
            words[words.index("-o") + 1] = str(place / kind / made)
            if pathlib.Path(words[-1]).parent == KMOD:
                words[-1] = str(place / "kmod" / pathlib.Path(words[-1]).name)
            words = [word for word in words if word not in ("-MMD", "-MP")] + ["-w"]
            replaced[str(OUT / kind / made)] = words[words.index("-o") + 1]
            if not (place / kind / made).exists():
                status, said = CHILDREN.run(words)
                if status:
                    raise Problem(f"it does not compile: {said}")
        words = [replaced.get(word, str(self.work / pathlib.Path(word).relative_to(OUT))
                              if word.endswith(".o") else word)
                 for word in self.link[f"{kind}/{program}"]]
        words[words.index("-o") + 1] = str(place / kind / program)
        status, said = CHILDREN.run(words)
        if status:
            raise Problem(f"it does not link: {said}")


@functools.lru_cache(1)
def fixed():
    """TSan's memory has fixed places, which a random layout may have taken."""
    try:
        subprocess.run(["setarch", "-R", "true"], check=True, capture_output=True)
        return ["setarch", "-R"]
    except (OSError, subprocess.CalledProcessError):
        return []


def notices(place, kind, test):
    """What a program says of what is wrong; None: nothing."""
    status, said = CHILDREN.run([*fixed(), str(place / kind / test[0]), *test[1:]])
    if not status:
        return None
    found = LAST_WORDS.search(said)
    return found[0] if found else f"it ends with {status}"


def seeds(test):
    """The test with one seed after the other, where it has FIRST..LAST."""
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
        """A test that passes without a bug; each is tried once."""
        with self.lock:
            if test not in self.passes:
                self.passes[test] = notices(self.build.work, *test)
            if self.passes[test]:
                raise Problem(f"without the bug, too: {self.passes[test]}")

    def hunt(self, mutant, number):
        place, name = self.build.plant(mutant, number)
        try:
            for test in [mutant.test] + self.others:
                self.build.make(place, name, test[0], test[1][0])
                for kind, arguments in seeds(test):
                    said = notices(place, kind, arguments)
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
    everything = mutants = read_list(arguments.l)
    if arguments.name:
        mutants = [mutant for mutant in mutants
                   if any(fnmatch.fnmatch(str(mutant), f"*{name}*") for name in arguments.name)]
    elif arguments.n:
        mutants = chosen(mutants, arguments.n)
    others = []
    if arguments.a:
        others = [("asan", ("kunit",)), ("asan", ("faults",))] + sorted(
            {mutant.test for mutant in everything
             if mutant.test[1][0] not in ("kunit", "faults")})
    subprocess.run([TOP / "tests/vm/debug-kernel.sh", "--source"], check=True)
    OUT.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        work = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mutants.", dir=OUT)))
        tests = [mutant.test for mutant in mutants] + others
        programs = {(kind, test[0]) for kind, test in tests}
        failed = run(Hunter(Build(work, programs), others), mutants, everything,
                     arguments.j)
    return 1 if failed or not mutants else 0


if __name__ == "__main__":
    # So that what is temporary goes, too.
    for number in signal.SIGTERM, signal.SIGHUP, signal.SIGINT:
        signal.signal(number, lambda *_: sys.exit(130))
    sys.exit(main())
