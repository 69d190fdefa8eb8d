#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests that reports of the flexmem command name cgroups by path. Prints TAP."""

import json
import os
import re
import resource
import sys

sys.dont_write_bytecode = True
from tool import GIB, Tree, good, main, report, run, test, tests


def rows(out):
    return [re.split(r" {2,}", line.strip())[0] for line in out.splitlines() if line.startswith(("cgroup ", "each "))]


@test
def owners():
    with Tree("/a/b", "/a.slice", "/c") as tree:
        shell = "".join(f"limit --cgroup {tree.id(path)} --files 9\n" for path in ("/a/b", "/a.slice", "/")) + \
            "limit --cgroup 7 --files 9\n"
        out = good("shell", stdin=shell + "owners\n", FAKE_MOUNTS=tree.mounts, COLUMNS=150)
        assert sorted(rows(out[out.index("open files"):])) == \
            ["cgroup /", "cgroup /a.slice", "cgroup /a/b", "cgroup 1000", "cgroup 7"], out
        out = good("shell", stdin=shell + "owners --json\n", FAKE_MOUNTS=tree.mounts)
        found = {one["id"]: one["path"] for one in json.loads(out[out.index("{"):])["owners"] if one["kind"] == "cgroup"}
        assert found == {7: None, 1000: None, tree.id("/"): "/", tree.id("/a/b"): "/a/b", tree.id("/a.slice"): "/a.slice"}, found


@test
def a_removed_cgroup_has_no_path():
    """The file system may give the number to another directory."""
    with Tree("/a") as tree:
        wanted = tree.id("/a")
        removed = {"FAKE_MOUNTS": tree.mounts, "FAKE_REMOVED": wanted, "COLUMNS": 150}
        out = good("shell", stdin=f"limit --cgroup {wanted} --files 9\nowners\n", **removed)
        assert f"cgroup {wanted} removed" in rows(out), out


@test
def limits():
    with Tree("/a/b") as tree:
        wanted = tree.id("/a/b")
        for name in ("a/b", "/a/b", tree.root + "/a/b", str(wanted)):
            out = good("limit", "--cgroup", name, "--bytes", "1G", FAKE_MOUNTS=tree.mounts)
            assert rows(out) == ["cgroup /a/b"], out
            found, = report("limit", "--cgroup", name, "--bytes", "1G", FAKE_MOUNTS=tree.mounts)
            assert (found["id"], found["path"], found["bytes"]["limit"]) == (wanted, "/a/b", GIB), found
        out = good("reserve", "--cgroup", "a/b", "--size", "8G", "--regions", "1", FAKE_MOUNTS=tree.mounts)
        assert out == "cgroup /a/b has 1 reserved region of 8.0 GiB\n", out
        found = report("reserve", "--cgroup", "a/b", "--size", "8G", "--regions", "1", FAKE_MOUNTS=tree.mounts)
        assert (found["cgroup"], found["path"]) == (wanted, "/a/b"), found
        for name in (tree.root + "x", "a/b/c", "nowhere"):
            status, _, err = run("limit", "--cgroup", name, "--bytes", "1G", FAKE_MOUNTS=tree.mounts)
            assert status == 2 and f"'{name}' is no cgroup" in err, err
        assert report("limit", FAKE_MOUNTS=tree.mounts)[0]["path"] is None


@test
def only_version_2():
    with Tree("/a", kind="cgroup") as tree:
        status, _, err = run("limit", "--cgroup", "a", "--bytes", "1G", FAKE_MOUNTS=tree.mounts)
        assert status == 2 and "'a' is no cgroup" in err, err


@test
def names_are_escaped():
    """Two tenants choose a< and script> so that the path would end an HTML element."""
    for name in ("/\x1b[2J", "/a</script>", '/"', "/\\"):
        with Tree(name) as tree:
            wanted = tree.id(name)
            out = good("limit", "--cgroup", str(wanted), "--bytes", "1G", FAKE_MOUNTS=tree.mounts)
            escaped = name.replace("\\", "\\\\").replace("\x1b", "\\x1b")
            assert rows(out) == ["cgroup " + escaped], out
            out = good("reserve", "--cgroup", str(wanted), "--size", "8G", "--regions", "1", FAKE_MOUNTS=tree.mounts)
            assert out == f"cgroup {escaped} has 1 reserved region of 8.0 GiB\n", out
            found, = report("limit", "--cgroup", str(wanted), "--bytes", "1G", FAKE_MOUNTS=tree.mounts)
            assert found["path"] == escaped, found


@test
def a_link_is_not_followed():
    with Tree("/a") as tree, Tree("/b") as other:
        os.symlink(other.root, tree.root + "/link")
        found, = report("limit", "--cgroup", str(other.id("/b")), "--bytes", "1G", FAKE_MOUNTS=tree.mounts)
        assert found["path"] is None, found


@test
def many_cgroups():
    """One walk of 10,000 cgroups, also if no number is found."""
    with Tree(*(f"/{i}/{j}" for i in range(100) for j in range(100))) as tree:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        found, = report("limit", "--cgroup", str((1 << 64) - 1), "--bytes", "1G", FAKE_MOUNTS=tree.mounts)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert found["path"] is None, found
        print(f"# {after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime:.3f} s of processor time")
        wanted = tree.id("/99/99")
        assert report("limit", "--cgroup", str(wanted), "--bytes", "1G", FAKE_MOUNTS=tree.mounts)[0]["path"] == "/99/99"


if __name__ == "__main__":
    sys.exit(main(tests))
