#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs TAP programs and prints one TAP stream of all their tests.

Usage: run.py BUILD-DIRECTORY [DEVICE=]PROGRAM...

A program runs with an environment without settings of flexmem, except FLEX_DEVICE if a DEVICE is given. It runs without
ASLR where the kernel permits that, because TSan does not work with every address layout.

A program counts as one more failed test if it prints no plan or fewer tests than planned, or if it ends with an error
although all its tests passed.
"""

import os
import re
import shutil
import subprocess
import sys

TIMEOUT = 900


def without_aslr():
    """Returns the words before a command that turn ASLR off, if the kernel permits that."""
    fixed = ["setarch", "-R"]
    try:
        done = subprocess.run([*fixed, "true"], capture_output=True, check=False)
    except OSError:
        return []
    return fixed if done.returncode == 0 else []


FIXED = without_aslr()


class Stream:
    """Merges the streams of the programs into one, with new test numbers."""

    def __init__(self):
        self.count = 0
        self.failed = 0

    def test(self, good, name):
        self.count += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.count} - {name}", flush=True)

    def comment(self, text):
        for line in text.splitlines():
            print(f"# {line}")

    def end(self):
        print(f"1..{self.count}", flush=True)
        return 1 if self.failed or not self.count else 0


def run(program, build, device):
    env = dict(os.environ, CMOCKA_MESSAGE_OUTPUT="TAP", BUILD=build, LC_ALL="C")
    # Settings of this machine must not change the tests.
    for name in ("FLEX_DEVICE", "FLEXMEM_DEBUG", "TORCH_SPYRE_ALLOC_DEBUG", "TORCH_SPYRE_DEBUG", "COLUMNS",
                 "FLEXMEM_ALLOC_CONF", "MINDTORCH_NPU_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF",
                 "ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "GLIBC_TUNABLES", "MALLOC_PERTURB_"):
        env.pop(name, None)
    if device:
        env["FLEX_DEVICE"] = device
    env["FLEXMEM_SNAPSHOTS"] = os.path.join(build, "snapshots", os.path.basename(program))
    try:
        done = subprocess.run([*FIXED, program], env=env, capture_output=True, text=True,
                              errors="replace", timeout=TIMEOUT, check=False)
        return done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired as late:
        output = (late.stdout or b"").decode(errors="replace")
        return -1, output, f"no end after {TIMEOUT} s"


def merge(stream, argument, build):
    device, _, program = argument.rpartition("=")
    name = os.path.splitext(os.path.basename(program))[0] + (f" on {device}" if device else "")
    status, output, errors = run(program, build, device)
    planned = None
    seen = 0
    failed = 0
    for line in output.splitlines():
        plan = re.fullmatch(r"1\.\.(\d+)(?: .*)?", line)
        test = re.match(r"(not )?ok\b *\d* *-? *(.*)", line)
        if plan:
            planned = int(plan[1])
        elif test:
            seen += 1
            failed += bool(test[1])
            stream.test(not test[1], f"{name}: {test[2]}")
        else:
            stream.comment(line.lstrip("# "))
    if failed or status:
        stream.comment(errors)
    if planned is None or planned != seen:
        stream.test(False, f"{name}: {seen} tests of {planned} planned, status {status}")
    elif status and not failed:
        stream.test(False, f"{name}: ended with status {status}")


def main():
    stream = Stream()
    # Programs append the snapshots that they make to files here. test_viewer.py reads them.
    snapshots = os.path.join(sys.argv[1], "snapshots")
    shutil.rmtree(snapshots, ignore_errors=True)
    os.mkdir(snapshots)
    for program in sys.argv[2:]:
        merge(stream, program, sys.argv[1])
    return stream.end()


if __name__ == "__main__":
    sys.exit(main())
