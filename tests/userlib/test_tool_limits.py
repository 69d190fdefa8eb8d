#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests limits that are kept in a file, and what `flexmem limit` says is in effect. Prints TAP."""

import json
import os
import re
import select
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
from tool import GIB, TOOL, Tree, good, main, report, run, test, tests, tmp

NONE = (1 << 64) - 1
CGROUP, DEFAULT = 0, 2
BYTES, REGIONS, HANDLES, FILES = 0, 1, 2, 3


def file_with(text, name="limits.conf"):
    path = os.path.join(tmp.name, name)
    with open(path, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    return path


class Log:
    """The commands that the fake driver got, as tuples: function or "all", command, numbers."""

    def __init__(self):
        self.path = os.path.join(tmp.name, "log")
        if os.path.exists(self.path):
            os.unlink(self.path)

    def read(self):
        if not os.path.exists(self.path):
            return []
        with open(self.path, encoding="ascii") as file:
            rows = [line.split() for line in file]
        return [(row[0], row[1], *map(int, row[2:])) for row in rows]


def apply(text, tree, *args, **env):
    log = Log()
    status, out, err = run("limit", "--apply", file_with(text), *args, FAKE_MOUNTS=tree.mounts, FAKE_LOG=log.path,
                           FAKE_LIMIT_FOR_ALL=2, **env)
    return status, out, err, log.read()


def states(out):
    return [re.split(r" {2,}", line.strip())[-1] for line in out.splitlines()[1:]]


@test
def a_good_file():
    path = file_with("# limits of this host\n\n"
                     "/user.slice/user-1000.slice all bytes=8G regions=4 # a comment\n"
                     "/machine.slice/*\tpci-0000:03:00.0-vf1   bytes=4GiB files=100 handles=none\n"
                     "/* 0 bytes=1G\n"
                     "default all files=10\r\n"
                     "/a\\x20b/\\\\c 0000:03:00.1 reserve=2x8G\n"
                     "/a#b all reserve=0\n"
                     "/ all bytes=64G")
    assert good("limit", "--check", path) == f"{path}: 7 lines\n"
    assert report("limit", "--check", path) == {"file": path, "lines": 7, "mistakes": []}
    assert good("limit", "--check", file_with("")).endswith(": 0 lines\n")


@test
def mistakes_have_line_and_reason():
    deep = "/a" * 33
    cases = (("a all bytes=1", "'a' is no full path: it must begin with '/'"),
             ("/a", "no function: 'all', or one as 'flexmem list' shows it"),
             ("/a bytes=1", "'bytes=1' stands where the function must: 'all', or one as 'flexmem list' shows it"),
             ("/a all", "nothing is set: bytes=, regions=, handles=, files= or reserve= is needed"),
             ("/a all # bytes=1", "nothing is set: bytes=, regions=, handles=, files= or reserve= is needed"),
             ("/a all byte=1", "'byte' is none of bytes=, regions=, handles=, files= and reserve="),
             ("/a all bytes", "'bytes' is none of bytes=, regions=, handles=, files= and reserve="),
             ("/a all bytes=", "bytes= is neither a number nor none"),
             ("/a all bytes=-1", "bytes=-1 is neither a number nor none"),
             ("/a all regions=1K", "regions=1K is neither a number nor none"),
             ("/a all bytes=1 bytes=2", "bytes= is there twice"),
             ("/ all files=9", "the root cgroup cannot have a limit of open files"),
             ("/* all reserve=1", "a reservation is for one cgroup, which is not the root"),
             ("/ all reserve=1", "a reservation is for one cgroup, which is not the root"),
             ("default all reserve=1", "a reservation is for one cgroup, which is not the root"),
             ("/a all reserve=1x", "reserve is a number of regions, or NUMBERxSIZE"),
             ("/a all reserve=x8G", "reserve is a number of regions, or NUMBERxSIZE"),
             ("/a all reserve=0x8G", "a size goes with one region or more"),
             ("/a/ all bytes=1", "the path ends with '/'"),
             ("/a//b all bytes=1", "the path has an empty part, or one of '.' and '..'"),
             ("/a/../b all bytes=1", "the path has an empty part, or one of '.' and '..'"),
             ("/a/. all bytes=1", "the path has an empty part, or one of '.' and '..'"),
             ("/a/*/b all bytes=1", "a '*' may only be the last part of a path"),
             ("/a* all bytes=1", "a '*' may only be the last part of a path"),
             (deep + " all bytes=1", "a cgroup deeper than 32 levels below the root has no limit"),
             (deep[2:] + "/* all bytes=1", "a cgroup deeper than 32 levels below the root has no limit"),
             ("/" + "a" * 256 + " all bytes=1", "a name in the path is longer than 255 bytes"),
             ("/a" * 2100 + " all bytes=1", "the path is too long"),
             ("/\\ all bytes=1", "after a backslash comes a second one, or xNN with two digits of 0-9 and a-f"),
             ("/\\x0 all bytes=1", "after a backslash comes a second one, or xNN with two digits of 0-9 and a-f"),
             ("/\\x00 all bytes=1", "after a backslash comes a second one, or xNN with two digits of 0-9 and a-f"),
             ("/a\0 all bytes=1", "a byte is zero"))
    path = file_with("".join("/ok all bytes=1\n" if not i else f"{text}\n" for i, (text, _) in
                             enumerate((("", ""), *cases))))
    status, out, err = run("limit", "--check", path)
    wanted = "".join(f"flexmem: {path}:{i}: {reason}\n" for i, (_, reason) in enumerate(cases, 2))
    assert (status, out) == (1, "") and err == wanted, err
    status, out, _ = run("limit", "--check", path, "--json")
    found = json.loads(out)
    assert status == 1 and found["lines"] == 1, found
    assert [one["line"] for one in found["mistakes"]] == list(range(2, len(cases) + 2)), found
    # Nothing is set if there is a mistake.
    with Tree("/ok") as tree:
        log = Log()
        status, out, err = run("limit", "--apply", path, FAKE_MOUNTS=tree.mounts, FAKE_LOG=log.path)
        assert status == 1 and not log.read() and err == wanted, err
    # A name that a tenant chose spoils no message.
    _, _, err = run("limit", "--check", file_with(b"/a all \x1b[2J=1\n\xff all bytes=1\n"))
    assert "'\\x1b[2J' is none" in err and "'\\xff' is no full path" in err, err
    status, _, err = run("limit", "--check", "/nonexistent")
    assert status == 1 and err.startswith("flexmem: limit: /nonexistent: "), err
    status, _, err = run("limit", "--check", tmp.name)
    assert status == 1 and err.startswith(f"flexmem: limit: {tmp.name}: "), err


@test
def one_amount_has_one_line():
    path = file_with("/a all bytes=1\n/a 0 bytes=2\n/a/* all bytes=3\n/a all regions=1 bytes=4\ndefault 0 files=1\ndefault 0 files=1\n")
    _, _, err = run("limit", "--check", path)
    assert err == f"flexmem: {path}:4: line 1 sets bytes already\nflexmem: {path}:6: line 5 sets files already\n", err


@test
def the_file_goes_with_no_other_option():
    path = file_with("/a all bytes=1\n")
    for args in (("--cgroup", "1"), ("--all",), ("--bytes", "1"), ("--default",), ("--device", "VF"),
                 ("--apply", path)):
        status, out, err = run("limit", "--check", path, *args)
        assert (status, out) == (2, ""), (args, err)
    status, out, err = run("limit", "--watch", path, "--json")
    assert status == 2 and "--watch prints lines, not JSON" in err, err
    status, out, err = run("shell", stdin=f"limit --apply {path}\n")
    assert status == 2 and "a shell keeps to one device" in err, err


@test
def applies_every_line():
    with Tree("/a/b", "/c", "/s p/\\") as tree:
        b, c, odd = (tree.id(path) for path in ("/a/b", "/c", "/s p/\\"))
        status, out, err, log = apply("/a/b all bytes=8G files=9\n/a/* all bytes=1G handles=none\ndefault all files=5\n"
                                      "/c 0 reserve=2x8G regions=3\n/nowhere all bytes=1\n/c nobody bytes=1\n"
                                      "/s\\x20p/\\\\ all bytes=1\n", tree)
        assert (status, err) == (0, ""), err
        assert states(out) == ["set", "set", "set", "set", "no cgroup", "no function", "set"], out
        assert log == [("all", "limit", CGROUP, b, BYTES, 8 * GIB), ("all", "limit", CGROUP, b, FILES, 9),
                       ("all", "limit", CGROUP, b, HANDLES, NONE),
                       ("all", "limit", DEFAULT, 0, FILES, 5), ("0", "limit", CGROUP, c, REGIONS, 3),
                       ("0", "reserve", c, 2, 8 * GIB, 0), ("all", "limit", CGROUP, odd, BYTES, 1)], log
        path = file_with("/a/b all bytes=8G\n/x/* all bytes=1\n")
        found = report("limit", "--apply", path, FAKE_MOUNTS=tree.mounts, FAKE_LIMIT_FOR_ALL=2)
        assert found == {"file": path, "lines": [
            {"line": 1, "owner": "cgroup /a/b", "path": "/a/b", "id": b, "function": "all", "functions": 1,
             "state": "set", "error": None},
            {"line": 2, "owner": "each child of cgroup /x", "path": "/x", "id": None, "function": "all", "functions": 0,
             "state": "no cgroup", "error": None}]}, found
        status, out, _, log = apply("/a all bytes=1\n", tree, FAKE_NODE=0)
        assert status == 0 and states(out) == ["no function"] and not log, out


@test
def each_child_has_the_limit():
    with Tree("/p/a/below", "/p/b", "/p/c", "/empty", "/other") as tree:
        open(tree.root + "/p/file", "w", encoding="ascii").close()
        a, b, c = (tree.id(f"/p/{name}") for name in "abc")
        # A line of a child's own comes first, whatever the order of the lines is.
        text = "/p/* all bytes=4 files=5\n/p/b all bytes=9\n/p/c 1 bytes=7\n/p/a all bytes=1 files=2\n/empty/* all bytes=3\n"
        status, out, err, log = apply(text, tree, FAKE_SECOND=1)
        assert (status, err) == (0, ""), err
        assert sorted(log) == sorted([
            ("all", "limit", CGROUP, b, FILES, 5), ("0", "limit", CGROUP, c, BYTES, 4), ("all", "limit", CGROUP, c, FILES, 5),
            ("all", "limit", CGROUP, b, BYTES, 9), ("1", "limit", CGROUP, c, BYTES, 7), ("all", "limit", CGROUP, a, BYTES, 1),
            ("all", "limit", CGROUP, a, FILES, 2)]), log
        rows = [re.split(r" {2,}", line.strip()) for line in out.splitlines()[1:]]
        assert rows == [["1", "cgroup /p/b", "all", "set"], ["1", "cgroup /p/c", "all", "set"], ["2", "cgroup /p/b", "all", "set"],
                        ["3", "cgroup /p/c", "1", "set"], ["4", "cgroup /p/a", "all", "set"],
                        ["5", "each child of cgroup /empty", "all", "no cgroup"]], rows
        # A line of each child for one function comes before one for all, and after each line of the child.
        _, _, err, log = apply("/p/* all bytes=4\n/p/* 1 bytes=6\n/p/b all bytes=9\n/p/c 0 bytes=7\n", tree, FAKE_SECOND=1)
        assert not err and sorted(log) == sorted([
            ("0", "limit", CGROUP, a, BYTES, 4), ("1", "limit", CGROUP, a, BYTES, 6), ("all", "limit", CGROUP, b, BYTES, 9),
            ("0", "limit", CGROUP, c, BYTES, 7), ("1", "limit", CGROUP, c, BYTES, 6)]), log
        # What was set for a child is read back.
        status, _, err, _ = apply("/p/* all bytes=8G\n", tree, FAKE_KEEPS_LIMITS=1)
        assert status == 1 and err.count(":1: bytes on ") == 3, err


@test
def each_child_of_the_root():
    with Tree("/x/y") as tree:
        _, _, err, log = apply("/* all bytes=1 files=2\n", tree)
        assert not err and log == [("all", "limit", CGROUP, tree.id("/x"), BYTES, 1), ("all", "limit", CGROUP, tree.id("/x"), FILES, 2)], log


@test
def a_function_has_several_names():
    with Tree("/a") as tree:
        a = tree.id("/a")
        for name, node in (("0", "0"), ("1", "1"), ("pci-0000:03:00.1", "1"), ("0000:03:00.0", "0")):
            status, out, err, log = apply(f"/a {name} bytes=1\n", tree, FAKE_SECOND=1, FAKE_PCI=1)
            assert (status, err) == (0, "") and log == [(node, "limit", CGROUP, a, BYTES, 1)], (name, out, err, log)
        for name in ("2", "0x0x", "pci-0000:03:00", "0000:03:00.10"):
            status, out, _, log = apply(f"/a {name} bytes=1\n", tree, FAKE_SECOND=1, FAKE_PCI=1)
            assert status == 0 and states(out) == ["no function"] and not log, (name, out, log)
        # The environment of the caller does not choose the functions.
        _, _, _, log = apply("/a 1 bytes=1\n", tree, FAKE_SECOND=1, FLEXMEM_VISIBLE_DEVICES="1")
        assert log == [("1", "limit", CGROUP, a, BYTES, 1)], log


@test
def one_function_is_an_exception():
    """The limit of the one function is never replaced, not even for a moment."""
    with Tree("/a", "/b") as tree:
        a, b = tree.id("/a"), tree.id("/b")
        for lines in (("/a all bytes=8 files=3", "/a 1 bytes=2", "/b all bytes=5"),
                      ("/a 1 bytes=2", "/b all bytes=5", "/a all bytes=8 files=3")):
            status, out, err, log = apply("\n".join(lines), tree, FAKE_SECOND=1)
            assert (status, err, states(out)) == (0, "", ["set"] * 3), err
            assert sorted(log) == [("0", "limit", CGROUP, a, BYTES, 8), ("1", "limit", CGROUP, a, BYTES, 2),
                                   ("all", "limit", CGROUP, a, FILES, 3), ("all", "limit", CGROUP, b, BYTES, 5)], log
        _, _, _, log = apply("/a all reserve=1x8G\n/a 1 reserve=2x8G\n", tree, FAKE_SECOND=1)
        assert log == [("0", "reserve", a, 1, 8 * GIB, 0), ("1", "reserve", a, 2, 8 * GIB, 0)], log


@test
def what_was_set_is_read_back():
    with Tree("/a") as tree:
        a = tree.id("/a")
        status, out, err, _ = apply("/a all bytes=8G\n", tree, FAKE_KEEPS_LIMITS=1)
        assert status == 1 and states(out) == ["failed"], out
        assert re.search(rf":1: bytes on flexmem0: {8 * GIB} was set, but the driver has {NONE}\n", err), err
        status, out, err = run("limit", "--cgroup", str(a), "--bytes", "8G", FAKE_KEEPS_LIMITS=1)
        assert (status, out, err) == (1, "", "flexmem: limit of bytes: 8.0 GiB was set, but the driver has none\n"), err
        # A cgroup without a limit of its own may have another one.
        status, _, err, _ = apply("/a all bytes=none\n", tree, FAKE_KEEPS_LIMITS=1)
        assert (status, err) == (0, ""), err


@test
def one_failure_stops_no_other_line():
    with Tree("/a", "/b") as tree:
        status, out, err, log = apply("/a all reserve=9x8G\n/b all bytes=5\n", tree)
        assert status == 1 and states(out) == ["failed", "set"] and len(log) == 1, (out, log)
        assert re.fullmatch(r"flexmem: .*:1: reserve on flexmem0: .*\n", err), err
        status, out, err, _ = apply("/a all bytes=5\n", tree, FAKE_ADMIN=0)
        assert status == 1 and ":1: bytes on flexmem0: only the administrator may do this" in err, err
        status, out, err = run("limit", "--apply", file_with("/a all bytes=5\n"), "--json", FAKE_MOUNTS=tree.mounts,
                               FAKE_ADMIN=0, FAKE_LIMIT_FOR_ALL=2)
        found, = json.loads(out)["lines"]
        assert status == 1 and found["state"] == "failed" and found["error"]["name"] == "EPERM", found


@test
def the_effective_limit_and_what_sets_it():
    with Tree("/a/b/c", "/a/bb") as tree:
        a, b, c = (tree.id(path) for path in ("/a", "/a/b", "/a/b/c"))
        shell = f"limit --cgroup {a} --bytes 4G --files 7\nlimit --cgroup {b} --bytes 8G --files 7\n" \
            f"limit --cgroup {c} --bytes 6G\nlimit --cgroup {tree.id('/a/bb')} --bytes 1G\n" \
            f"limit --cgroup {tree.id('/')} --bytes 64G --handles 5\n"
        out = good("shell", stdin=shell + "limit --cgroup a/b/c --json\n", FAKE_MOUNTS=tree.mounts)
        found, = json.loads(out[out.index("[\n"):])
        assert found["bytes"] == {"used": 0, "limit": 6 * GIB, "effective": 4 * GIB, "set_by": "/a", "set_by_id": a}, found
        assert found["files"] == {"used": 0, "limit": None, "effective": 7, "set_by": "/a/b", "set_by_id": b}, found
        assert found["handles"] == {"used": 0, "limit": None, "effective": 5, "set_by": "/", "set_by_id": tree.id("/")}, found
        assert found["regions"] == {"used": 0, "limit": None, "effective": None, "set_by": None, "set_by_id": None}, found
        out = good("shell", stdin=shell + "limit --cgroup a/b/c\n", FAKE_MOUNTS=tree.mounts, COLUMNS=120)
        rows = [re.split(r" {2,}", line.strip()) for line in out.splitlines()[-5:]]
        assert rows == [["owner", "what", "used", "limit", "effective", "set by"],
                        ["cgroup /a/b/c", "bytes", "0 B", "6.0 GiB", "4.0 GiB", "/a"],
                        ["cgroup /a/b/c", "regions", "0", "none", "none", "-"],
                        ["cgroup /a/b/c", "handles", "0", "none", "5", "/"],
                        ["cgroup /a/b/c", "files", "0", "none", "7", "/a/b"]], rows


@test
def containers():
    one, two = "0123456789abcdef" * 4, "f" * 64
    for path, cgroup in ((f"/libpod_parent/libpod-{one}", ""), (f"/libpod_parent/{two}/libpod-{one}", ""),
                         (f"/machine.slice/libpod-{one}.scope/container", ""),
                         (f"/machine.slice/libpod-{one}.scope", ""), (f"/docker/{one}", ""),
                         (f"/system.slice/docker-{one}.scope", ""),
                         (f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/cri-containerd-{one}.scope", ""),
                         (f"/kubepods/besteffort/pod1/{one}", ""), (f"/kubepods.slice/a/b/crio-{one}.scope", "")):
        # The monitor, another container and a service are none. The search does not look into containers.
        with Tree(path + cgroup, f"/machine.slice/libpod-conmon-{one}.scope", f"/machine.slice/libpod-{two}.scope/docker-{one}.scope",
                  f"/system.slice/x-{one}.scope", f"/user.slice/libpod-{one}.scope", f"/docker/{one}0", f"/docker/{one[1:]}") as tree:
            found, = report("limit", "--cgroup", one, "--bytes", "1G", FAKE_MOUNTS=tree.mounts)
            assert (found["id"], found["path"]) == (tree.id(path), path), (path, found)
    # A pod is no container.
    with Tree(f"/libpod_parent/{one}/libpod-{two}") as tree:
        status, _, err = run("limit", "--cgroup", one, "--bytes", "1G", FAKE_MOUNTS=tree.mounts)
        assert status == 2 and f"no container has the id '{one}' here" in err, err
    with Tree(f"/docker/{one}", f"/system.slice/docker-{one}.scope") as tree:
        status, _, err = run("limit", "--cgroup", one, "--bytes", "1G", FAKE_MOUNTS=tree.mounts)
        assert status == 2 and f"several cgroups have the container's id '{one}'" in err, err
        for name in (two, one.upper(), one[:12]):
            status, _, err = run("limit", "--cgroup", name, "--bytes", "1G", FAKE_MOUNTS=tree.mounts)
            assert status == 2 and name in err, err


class Watch:
    """A running `flexmem limit --watch`."""

    def __init__(self, text, tree, **env):
        self.log = Log()
        self.path = file_with(text, "watched.conf")
        env = {**os.environ, "FAKE_MOUNTS": tree.mounts, "FAKE_LOG": self.log.path, "FAKE_LIMIT_FOR_ALL": "2", **env}
        self.process = subprocess.Popen([TOOL, "limit", "--watch", self.path], env=env, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT)
        self.rest = b""

    def line(self):
        """Returns the next line that the command prints, without the name of the file."""
        while b"\n" not in self.rest:
            assert select.select([self.process.stdout], [], [], 120)[0], "nothing was printed"
            part = os.read(self.process.stdout.fileno(), 65536)
            assert part, self.rest
            self.rest += part
        line, self.rest = self.rest.split(b"\n", 1)
        return line.decode().removeprefix(self.path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@test
def watches_for_cgroups():
    with Tree("/a", "/c") as tree, Watch("/a/b/c all bytes=1\n/c/* all files=2\ndefault all files=3\n/a/x all bytes=4\n", tree) as watch:
        assert watch.line() == ":3: set"
        os.makedirs(tree.root + "/a/b/c")
        assert watch.line() == ":1: set"
        first = tree.id("/a/b/c")
        os.rmdir(tree.root + "/a/b/c")
        assert watch.line() == ":1: no cgroup"
        os.rmdir(tree.root + "/a/b")
        os.rmdir(tree.root + "/a")
        os.makedirs(tree.root + "/a/x")
        assert watch.line() == ":4: set"
        os.makedirs(tree.root + "/a/b/c")
        assert watch.line() == ":1: set"
        limited = [row[2:] for row in watch.log.read()]
        assert limited == [(DEFAULT, 0, FILES, 3), (CGROUP, first, BYTES, 1), (CGROUP, tree.id("/a/x"), BYTES, 4),
                           (CGROUP, tree.id("/a/b/c"), BYTES, 1)], limited


@test
def watches_for_each_child():
    with Tree("/c/m", "/d") as tree, \
            Watch("/c/* all files=2\n/c/own all files=9\n/x/y/* all files=4\n/d all files=8\n", tree) as watch:
        assert [watch.line() for _ in range(2)] == [":1: /c/m: set", ":4: set"]
        limited = [(CGROUP, tree.id("/c/m"), FILES, 2), (CGROUP, tree.id("/d"), FILES, 8)]
        for path, line, files in (("/c/a", ":1: /c/a: set", 2), ("/c/z", ":1: /c/z: set", 2), ("/c/own", ":2: set", 9),
                                  ("/x/y/b", ":3: /x/y/b: set", 4)):
            os.makedirs(tree.root + path)
            assert watch.line() == line
            limited.append((CGROUP, tree.id(path), FILES, files))
        os.rmdir(tree.root + "/c/a")
        assert watch.line() == ":1: /c/a: no cgroup"
        os.rmdir(tree.root + "/c/own")
        assert watch.line() == ":2: no cgroup"
        for name in ("/c/z", "/c/m"):
            os.rmdir(tree.root + name)
            assert watch.line() == f":1: {name}: no cgroup"
        os.rmdir(tree.root + "/c")
        os.mkdir(tree.root + "/c")
        os.mkdir(tree.root + "/c/a\tb")
        assert watch.line() == ":1: /c/a\\x09b: set"
        limited.append((CGROUP, tree.id("/c/a\tb"), FILES, 2))
        assert [row[2:] for row in watch.log.read()] == limited, watch.log.read()


@test
def watches_after_an_overflow():
    """The kernel drops events when 16,384 wait. What appeared then is found all the same."""
    with open("/proc/sys/fs/inotify/max_queued_events", encoding="ascii") as file:
        most = int(file.read())
    if most > 100000:
        print(f"# not tried: the queue holds {most} events")
        return
    with Tree("/a") as tree, Watch("/a/b all bytes=1\ndefault all files=3\n", tree) as watch:
        assert watch.line() == ":2: set"
        watch.process.send_signal(signal.SIGSTOP)
        for i in range(most + 100):
            os.mkdir(f"{tree.root}/a/{i}")
        os.mkdir(tree.root + "/a/b")
        watch.process.send_signal(signal.SIGCONT)
        assert watch.line() == ":1: set"


@test
def watch_goes_on_after_a_failure():
    with Tree("/a") as tree, Watch("/a all bytes=1\n/b all bytes=1\n", tree, FAKE_ADMIN="0") as watch:
        assert ":1: bytes on flexmem0: only the administrator" in watch.line()
        os.mkdir(tree.root + "/b")
        lines = sorted(watch.line() for _ in range(2))
        assert "watched.conf:1: bytes on" in lines[0] and "watched.conf:2: bytes on" in lines[1], lines


@test
def watch_needs_a_good_file_and_cgroups():
    status, out, err = run("limit", "--watch", file_with("/a all\n"))
    assert (status, out) == (1, "") and ":1: nothing is set" in err, err
    status, out, err = run("limit", "--watch", file_with("/a all bytes=1\n"))
    assert (status, out) == (1, "") and "no cgroups of version 2 are mounted" in err, err


if __name__ == "__main__":
    sys.exit(main(tests))
