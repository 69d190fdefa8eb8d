#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs the unittest modules of this folder in one process, because importing torch takes long. Prints TAP.

Usage: tap.py [NAME...]      NAME: part of MODULE.CLASS.TEST; default: all
"""

import os
import sys
import unittest

import torch

import torch_flexmem  # noqa: F401, it registers the device


class Tap(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.count = 0

    def line(self, good, test, remark="", detail=""):
        self.count += 1
        print(f"{'' if good else 'not '}ok {self.count} - {test.id()}{remark}", flush=True)
        for text in detail.splitlines():
            print(f"# {text}", flush=True)

    def addSuccess(self, test):
        self.line(True, test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.line(True, test, f" # SKIP {reason}")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.line(False, test, detail=self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self.line(False, test, detail=self.errors[-1][1])


def tests_of(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from tests_of(test)
        else:
            yield test


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    # With more threads than processors the threads would only wait for each other.
    torch.set_num_threads(min(2, os.cpu_count()))
    wanted = sys.argv[1:]
    result = Tap()
    for test in tests_of(unittest.defaultTestLoader.discover(here, "test_*.py")):
        if not wanted or any(name in test.id() for name in wanted):
            test.run(result)
    print(f"1..{result.count}")
    return 0 if result.wasSuccessful() and result.count else 1


if __name__ == "__main__":
    sys.exit(main())
