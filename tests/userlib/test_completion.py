#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests how bash and zsh complete the flexmem command. Prints TAP."""

import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
from tool import HERE, TOOL, good, main, test, tests, tmp

FOLDER = os.path.join(HERE, "../../userlib/completion")
# The shells call the command by its name.
os.symlink(os.path.abspath(TOOL), os.path.join(tmp.name, "flexmem"))
PATH = tmp.name + ":" + os.environ["PATH"]
COMMANDS = re.findall(r"^  (\w+) +", good("--help"), re.M)


def bash(*words):
    script = 'source "$1" && shift && COMP_WORDS=("$@") && COMP_CWORD=$(($# - 1)) && _flexmem && printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-euc", script, "bash", FOLDER + "/flexmem", "flexmem", *words], env={**os.environ, "PATH": PATH},
                          capture_output=True, text=True, check=True)
    assert not done.stderr, done.stderr
    return done.stdout.split()


def zsh(*words):
    # Outside of a completion zsh has no compadd.
    script = 'compadd() { print -l -- ${(P)2} }; _files() { print FILES }; words=(flexmem "${@:2}"); CURRENT=$#words; source $1'
    done = subprocess.run(["zsh", "-fc", script, "zsh", FOLDER + "/_flexmem", *words], env={**os.environ, "PATH": PATH},
                          capture_output=True, text=True, check=True)
    assert not done.stderr, done.stderr
    return done.stdout.split()


def options_of(command):
    """The options that the command's source has, and those of every command."""
    text = good("help", command)
    return set(re.findall(r"(?<![\w-])--[a-z-]+", text))


@test
def in_bash():
    assert set(bash("")) == {*COMMANDS, "--device", "--json", "--help", "--version"}
    assert bash("li") == bash("--json", "li") == bash("--device", "PF", "li") == ["list", "limit"]
    assert bash("help", "rel") == ["release"] and bash("nonsense", "--x") == [] == bash("info", "x")
    for command in set(COMMANDS) - {"help"}:
        assert set(bash(command, "--")) == options_of(command), command
    assert bash("cdi", "--re") == ["--refresh", "--remove"]
    assert bash("--device", "P") == ["PF"] and bash("replay", "--order", "f") == ["fill_first"]
    assert bash("convert", "--time-unit", "") == ["s", "ms", "us"]


@test
def in_zsh():
    if not shutil.which("zsh"):
        print("# not tried: no zsh")
        return
    assert set(zsh("")) == {*COMMANDS, "--device", "--json", "--help", "--version"}
    for command in set(COMMANDS) - {"help"}:
        assert set(zsh(command, "--")) == options_of(command), command
    assert zsh("help", "rel") == zsh("") and zsh("replay", "x") == ["FILES"] and set(zsh("info", "--device", "")) >= {"PF", "VF"}


if __name__ == "__main__":
    sys.exit(main(tests))
