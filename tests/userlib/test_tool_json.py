#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests what the flexmem command prints with --json, including errors, with the fake kernel. Prints TAP."""

import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
from tool import GIB, HEADER, SMALL, TOOL, error_of, good, main, on_terminal, report, run, test, tests, tmp, trace


@test
def json_of_every_error():
    for args, name in ((("--json",), "EINVAL"), (("nonsense", "--json"), "EINVAL"),
                       (("info", "--nonsense", "--json"), "EINVAL"), (("info", "x", "--json"), "EINVAL"),
                       (("info", "--json", "--device"), "EINVAL"), (("info", "--json=1"), "EINVAL"),
                       (("info", "--json", "-x"), "EINVAL"), (("--nonsense", "--json"), "EINVAL"),
                       (("alloc", "--json", "--align", "3", "1"), "EINVAL"), (("replay", "--json"), "EINVAL"),
                       (("info", "--json", "--device", "PF"), "ENODEV"),
                       (("regions", "--js", "--device", "/dev/flexmem7"), "ENODEV"),
                       (("alloc", "1", "--device", "/dev/null", "--json"), "ENOTTY"),
                       (("fill", "9", "--json"), "EINVAL"), (("free", "9", "--json"), "EINVAL"),
                       (("limit", "--cgroup", "99", "--bytes", "1", "--json"), "ENOENT"),
                       (("limit", "--cgroup", "9", "--json"), "ENOENT")):
        assert error_of(args)["name"] == name, args
    for command in ("info", "stats", "regions", "segments", "owners", "limit", "trim", "shell"):
        assert error_of((command, "--json"), FAKE_OPEN_ERROR=5)["name"] == "EIO"
    assert error_of(("regions", "--json"), FAKE_SNAPSHOT_AT=1, FAKE_SNAPSHOT_ERROR=5)["name"] == "EIO"
    for command in ("fill", "check"):
        status, out, _ = run("shell", stdin=f"{command} 9 --json\n")
        assert status == 1 and json.loads(out)["error"]["name"] == "ENOENT", out
    found = error_of(("alloc", "1", "--mappable", "--pattern", "1", "--hold", "0", "--json"),
                     FAKE_MAP_IS_GONE=1)
    assert found == {"errno": -5, "name": "EIO", "text": "the device was reset, or is gone"}, found


@test
def json_of_errors_beside_results():
    status, out, _ = run("alloc", "12G", "--count", "7", "--hold", "0", "--json")
    found = json.loads(out)
    assert status == 1 and found[0]["handle"] == 1 and set(found[6]) == {"error"}
    assert found[6]["error"].items() >= {
        "errno": -12, "name": "ENOMEM", "limit": "capacity", "asked": 12 * GIB, "total_free": 0,
        "largest_free": 0, "max_region": 12 * GIB, "own_used": 60 * GIB,
        "leaving": 0}.items(), found[6]
    status, out, _ = run("alloc", "2G", "--hold", "0", "--json", FAKE_LIMIT=GIB)
    assert json.loads(out)[0]["error"].items() >= {
        "limit": "cgroup_limit", "charge": "bytes", "quota": GIB, "quota_used": 0, "quota_own": 0,
        "quota_left": GIB, "quota_shared": False, "quota_cgroup": 1000}.items(), out
    status, out, _ = run("shell", stdin="alloc 1\nfree 1 9 x --json\n")
    found = json.loads(out[out.index("[\n"):])
    assert status == 2 and [each["freed"] for each in found] == ["1", "9", "x"], found
    assert [each.get("error", {}).get("name") for each in found] == [None, "ENOENT", "EINVAL"], found
    status, out, _ = run("replay", "--json", "/nonexistent", trace(SMALL), trace("x\n", "bad.trace"))
    found = [each.get("error", {}).get("name") for each in json.loads(out)]
    assert status == 1 and found == ["ENOENT", None, "EINVAL"], found
    status, out, _ = run("replay", "--json", trace(SMALL), FAKE_NODE=0)
    assert status == 1 and json.loads(out)["error"]["name"] == "ENODEV", out


@test
def json_of_patterns():
    found, = report("alloc", "1K", "--pattern", "7", "--hold", "0")
    assert found["pattern"] == {"seed": 7, "by": "copy", "bad": 0, "first_bad": None}, found
    status, out, _ = run("alloc", "1K", "--pattern", "7", "--hold", "0", "--json", FAKE_READ_AT=1,
                         FAKE_READ_ERROR=110)
    found, = json.loads(out)
    assert status == 1 and (found["handle"], found["error"]["name"]) == (1, "ETIMEDOUT"), found
    out = good("shell", stdin="alloc 1K --pattern 7 --json\n")
    assert json.loads(out)[0]["pattern"] == {"seed": 7, "by": "copy"}, out


@test
def json_in_a_shell():
    """The shell prints one JSON value for each line with a command, whether it succeeds or fails."""
    lines = ("# nothing", "alloc 1", "nonsense", "alloc 0", "free 1", "free 1", "help", "info --help",
             "stats", "x " * 100, "")
    status, out, err = run("shell", "--json", stdin="\n".join(lines) + "\n")
    decoder, at, found = json.JSONDecoder(), 0, []
    while at < len(out):
        value, at = decoder.raw_decode(out, at)
        found.append(value)
        at += 1
    assert status == 2 and len(found) == 9, (out, err)
    assert [each["error"]["name"] for each in found if "error" in each] == ["EINVAL"] * 3, found
    assert found[4][0]["error"]["name"] == "ENOENT" and "alloc" in found[5]["help"], found
    status, out = on_terminal("shell", "--json", columns=80, stdin_lines=b"quit\n")
    assert status == 0 and out == "flexmem> ", out


@test
def json_of_texts():
    assert report("--version") == {"version": good("--version").split()[1]}
    assert report("--help") == {"help": good("--help")}
    assert report("alloc", "--help") == {"help": good("alloc", "--help")}


@test
def json_of_any_name():
    """A path need not be valid UTF-8. Its invalid bytes are escaped, and so are control characters."""
    path = os.fsencode(os.path.join(tmp.name, "name-")) + b"\xff\x01.trace"
    with open(path, "w", encoding="ascii") as file:
        file.write(SMALL)
    done = subprocess.run([TOOL, "replay", "--json", path], capture_output=True, check=False)
    assert json.loads(done.stdout)["file"].endswith(r"name-\xff\x01.trace"), done


@test
def json_numbers_have_no_noise():
    lines = [f"0 a {i} {GIB // 7} 0" for i in range(9)] + ["1 f 3", "1 f 5", f"2 a 9 {GIB // 3} 0"]
    for args in ((), ("--cache", "--config", ""), ("--cache", "--provider", "flat:8G")):
        out = good("replay", "--json", *args, trace(HEADER + "\n".join(lines) + "\n"))
        reals = re.findall(r": (\d+\.\d+(?:e-?\d+)?)", out)
        assert len(reals) >= 2, out
        for real in reals:
            assert len(real.split("e")[0].replace(".", "").strip("0")) <= 6, real


if __name__ == "__main__":
    sys.exit(main(tests))
