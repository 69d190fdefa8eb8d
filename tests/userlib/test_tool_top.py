#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests `flexmem top` on terminals of tmux. Prints TAP.

The command reads only when a key says so, because its interval is a day. A test waits for the last line of the screen, which
the command sends last.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from tool import GIB, TOOL, Tree, main, on_terminal, run, test, tests, tmp

PATIENCE_S = 300


class Screen:
    """A terminal of tmux with a shell of flexmem, or another command, on it."""

    count = 0

    def __init__(self, *args, term="xterm", columns=80, rows=24, **env):
        # A server that ends may still have its socket.
        Screen.count += 1
        self.socket = os.path.join(tmp.name, f"tmux{Screen.count}")
        config = os.path.join(tmp.name, "tmux.conf")
        with open(config, "w", encoding="ascii") as file:
            file.write("set -g status off\n")
        env = {"TERM": term, **{key: str(value) for key, value in env.items()}}
        command = shlex.join(["env", *(f"{key}={value}" for key, value in env.items()), TOOL, *(args or ["shell"])])
        # The screen stays, and tells how the command has ended.
        command += "; echo exit status $?; exec cat"
        self.tmux("-f", config, "new-session", "-d", "-x", str(columns), "-y", str(rows), command)

    def tmux(self, *args):
        done = subprocess.run(["tmux", "-u", "-S", self.socket, *args], check=True, capture_output=True, timeout=PATIENCE_S)
        return done.stdout.decode()

    def lines(self, *options):
        return self.tmux("capture-pane", "-p", *options).split("\n")[:-1]

    def wait(self, condition):
        """Returns the lines of the screen as soon as they meet a condition."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            lines = self.lines()
            if condition(lines):
                return lines
            time.sleep(0.02)
        raise AssertionError("\n".join(["waited in vain:", *lines]))

    def status(self, text):
        """Waits until the last line matches. Returns all lines."""
        return self.wait(lambda lines: re.search(text, lines[-1]))

    def keys(self, *keys, until):
        self.tmux("send-keys", *keys)
        return self.status(until)

    def command(self, text):
        """Gives the shell a command, and waits for the next prompt."""
        self.wait(lambda lines: any("flexmem>" in line for line in lines))
        self.tmux("send-keys", "-R")
        self.tmux("send-keys", "-l", text)
        self.tmux("send-keys", "Enter")
        self.wait(lambda lines: any("flexmem>" in line for line in lines))

    def quit(self):
        """Ends the command, and waits for the next prompt of the shell."""
        self.tmux("send-keys", "q")
        self.wait(lambda lines: not lines[-1].startswith("reading ") and any(line == "flexmem>" for line in lines))

    def top(self):
        self.wait(lambda lines: any("flexmem>" in line for line in lines))
        self.tmux("send-keys", "-l", "top --interval 86400")
        return self.keys("Enter", until="^reading 1: ")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.tmux("kill-server")


def rows_of(lines):
    """The rows as lists of words, and their headings."""
    assert all(len(line) <= 80 for line in lines), lines
    headings = lines[2].split()
    rows = [line.split(None, len(headings) - 1) for line in lines[3:-1] if line]
    assert all(len(row) == len(headings) for row in rows), lines
    return [dict(zip(headings, row)) for row in rows]


def in_order(lines, heading):
    return [row[heading] for row in rows_of(lines)]


@test
def three_views():
    with Tree("/tenants/a") as tree:
        ids = {"FAKE_MOUNTS": tree.mounts, "FAKE_UID": tree.id("/tenants/a"), "FAKE_PARENT": tree.id("/tenants")}
        for term in ("xterm", "vt100"):
            with Screen(term=term, FAKE_ORPHANED=GIB, FAKE_OPENER=os.getpid(), **ids) as screen:
                screen.command("alloc 5G")
                screen.command(f"limit --cgroup {tree.id('/tenants')} --bytes 8G")
                lines = screen.top()
                assert lines[0].startswith("1 function: 5.0 GiB of 12.0 GiB in use, 1.0 GiB leaving"), lines
                row, = rows_of(lines)
                assert row.pop("function").startswith("flexmem0 "), row
                assert row == {"acquired": "12.0G", "used": "5.0G", "leaving": "1.0G", "reserved": "0", "quarantined": "0",
                               "free": "6.0G", "new": "0", "failed": "0"}, row
                lines = screen.keys("a", until="accounts by used, most first")
                found = {row["cgroup"]: row for row in rows_of(lines)}
                assert set(found) == {"/tenants", "/tenants/a"}, lines
                assert (found["/tenants"]["used"], found["/tenants"]["own"], found["/tenants"]["limit"]) == ("5.0G", "0", "8.0G"), lines
                assert (found["/tenants/a"]["used"], found["/tenants/a"]["own"], found["/tenants/a"]["limit"]) == \
                    ("5.0G", "5.0G", "none"), lines
                lines = screen.keys("c", until="clients by used, most first")
                rows = rows_of(lines)
                assert [row["used"] for row in rows] == ["5.0G", "0"] and rows[0]["handles"] == "1", lines
                assert all((row["pid"], row["process"], row["cgroup"]) == (str(os.getpid()), rows[0]["process"], "/tenants/a")
                           for row in rows) and rows[0]["process"] != "-", lines
                lines = screen.keys("f", until="functions by acquired, most first")
                screen.quit()
                # The shell goes on.
                screen.command("stats")


@test
def keys_change_the_order():
    with Tree("/a", "/b", "/c") as tree:
        with Screen(FAKE_MOUNTS=tree.mounts, FAKE_UID=tree.id("/b")) as screen:
            screen.command("alloc 1G")
            for path, size in (("/a", "8G"), ("/c", "2G")):
                screen.command(f"limit --cgroup {tree.id(path)} --bytes {size}")
            screen.top()
            lines = screen.keys("a", until="1-3 of 3 accounts by used, most first")
            assert in_order(lines, "cgroup")[0] == "/b", lines
            lines = screen.keys("r", until="by used, least first")
            assert in_order(lines, "cgroup")[-1] == "/b", lines
            lines = screen.keys("<", until="by cgroup, Z to A")
            assert in_order(lines, "cgroup") == ["/c", "/b", "/a"], lines
            lines = screen.keys("r", until="by cgroup, A to Z")
            assert in_order(lines, "cgroup") == ["/a", "/b", "/c"], lines
            for heading in ("used", "own", "leaving", "peak", "limit"):
                lines = screen.keys(">", until=f"by {heading}, most first")
            assert in_order(lines, "cgroup") == ["/b", "/a", "/c"], lines
            assert in_order(lines, "limit") == ["none", "8.0G", "2.0G"], lines


@test
def readings_follow():
    with Screen(FAKE_GROWS=GIB) as screen:
        screen.command("alloc 1G")
        lines = screen.top()
        assert in_order(lines, "used") == ["1.0G"] and in_order(lines, "new") == ["0"], lines
        for number in (2, 3):
            lines = screen.keys("Space", until=f"^reading {number}: ")
            assert in_order(lines, "used") == [f"{number}.0G"], lines
            sums = rows_of(lines)[0]
            # Of one moment: they add up.
            assert float(sums["used"][:-1]) + float(sums["free"][:-1]) == float(sums["acquired"][:-1]), lines
            assert lines[0].startswith(f"1 function: {number}.0 GiB of "), lines
        # A key that is not for reading does not read.
        lines = screen.keys("c", until="^reading 3: .* clients")
        lines = screen.keys("f", until="^reading 3: .* functions")
        assert in_order(lines, "used") == ["3.0G"], lines
        screen.quit()
        screen.command("alloc 1G")
        lines = screen.top()
        assert in_order(lines, "new") == ["0"], lines


@test
def names_spoil_nothing():
    name = "/t/\x1b[2J\n\xe4\\" + os.fsdecode(b"\xff") + "\u4e2d" * 60
    escaped = "/t/\\x1b[2J\\x0a\xe4\\\\\\xff"
    with Tree("/t", name) as tree:
        for locale, same in (("C.UTF-8", "\xe4"), ("C", "??")):
            with Screen(FAKE_MOUNTS=tree.mounts, FAKE_UID=tree.id(name), LC_ALL=locale) as screen:
                screen.command("alloc 1G")
                screen.top()
                lines = screen.keys("a", until="1-1 of 1 accounts")
                assert escaped.replace("\xe4", same)[:20] in lines[3] and rows_of(lines)[0]["used"] == "1.0G", lines
                # What does not fit can be seen with the key for right.
                screen.tmux("send-keys", "Right")
                screen.wait(lambda lines: " " + escaped.replace("\xe4", same)[8:] in lines[3])


@test
def small_and_large():
    paths = [f"/c{i}" for i in range(5)]
    with Tree(*paths) as tree:
        with Screen(rows=7, FAKE_MOUNTS=tree.mounts, FAKE_UID=tree.id("/c0")) as screen:
            for path in paths:
                screen.command(f"limit --cgroup {tree.id(path)} --files 9")
            screen.top()
            screen.keys("a", until="1-3 of 5 accounts by used")
            lines = screen.keys("<", until="1-3 of 5 accounts by cgroup")
            assert in_order(lines, "cgroup") == ["/c0", "/c1", "/c2"], lines
            lines = screen.keys("Down", until="2-4 of 5")
            assert in_order(lines, "cgroup") == ["/c1", "/c2", "/c3"], lines
            lines = screen.keys("NPage", until="3-5 of 5")
            screen.keys("PPage", "Up", until="1-3 of 5")
            screen.tmux("resize-window", "-x", "30", "-y", "4")
            screen.wait(lambda lines: len(lines) == 4 and lines[-1].startswith("reading 1: 1-1 of 5"))
            screen.tmux("resize-window", "-x", "120", "-y", "30")
            lines = screen.status("1-5 of 5")
            assert [line.split()[-1] for line in lines[3:8]] == paths, lines


@test
def what_is_nearly_full():
    """It is bold, and red where there are colours."""
    with Tree("/t/a") as tree:
        ids = {"FAKE_MOUNTS": tree.mounts, "FAKE_UID": tree.id("/t/a"), "FAKE_PARENT": tree.id("/t")}
        for term, red in (("xterm", True), ("vt100", False)):
            with Screen(term=term, **ids) as screen:
                screen.command("alloc 5G")
                screen.command(f"limit --cgroup {tree.id('/t')} --bytes 5500M")
                screen.top()
                screen.keys("a", until="1-2 of 2 accounts")
                for path, marked in (("/t", True), ("/t/a", False)):
                    line, = [line for line in screen.lines("-e") if re.search(rf" {path}( |\x1b|$)", line)]
                    codes = {code for one in re.findall(r"\x1b\[([\d;]*)m", line) for code in one.split(";")}
                    assert ("1" in codes, "31" in codes) == (marked, marked and red), (term, line)


@test
def functions_and_errors():
    with Screen("top", "--interval", "86400", FAKE_SECOND=1, FAKE_PCI=1, FAKE_OPEN_ERROR=13) as screen:
        lines = screen.status("^reading 1: 1-2 of 2 functions")
        assert lines[0].startswith("2 functions: "), lines
        assert [line.split() for line in lines[3:5]] == [["-"] * 8 + [f"flexmem{i}:"] for i in range(2)], lines
        # The reason has more room.
        screen.tmux("send-keys", "Right")
        screen.wait(lambda lines: " : no perm" in lines[3])
        screen.tmux("send-keys", "q")
        screen.wait(lambda lines: "exit status 0" in lines)
    # Without a shell the command's own open file is not listed.
    with Screen("top", "--interval", "86400", FAKE_OPENER=0xffffffff) as screen:
        screen.status("^reading 1: ")
        screen.keys("c", until="^reading 1: 0-0 of 0 clients")


@test
def others_are_hidden():
    with Tree("/a") as tree:
        with Screen("top", "--interval", "86400", FAKE_ADMIN=0, FAKE_HELD=tree.id("/a"), FAKE_HELD_FOR=1000000,
                    FAKE_UID=tree.id("/a"), FAKE_MOUNTS=tree.mounts) as screen:
            lines = screen.status("^reading 1: ")
            assert lines[0].endswith("owners: only yours"), lines


@test
def without_a_terminal():
    status, out, err = run("top")
    assert (status, out) == (1, "") and "needs a terminal" in err, err
    status, out = on_terminal("top", columns=80, TERM="no-such-terminal")
    assert status == 1 and "'no-such-terminal'" in out, out


@test
def wrong_arguments():
    for args in (("more",), ("--json",), ("--device", "/dev/flexmem0"), ("--interval", "0"), ("--interval", "x"),
                 ("--interval", "86401")):
        assert run("top", *args)[0] == 2, args


if __name__ == "__main__":
    if not shutil.which("tmux"):
        print("1..0 # SKIP no tmux")
        sys.exit()
    sys.exit(main(tests))
