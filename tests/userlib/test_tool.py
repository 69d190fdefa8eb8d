#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The flexmem command from end to end, over the fake kernel; prints TAP."""

import errno
import fcntl
import grp
import gzip
import json
import os
import pty
import re
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import traceback

BUILD = os.environ.get("BUILD", os.path.join(os.path.dirname(__file__), "../../build/tests/userlib"))
TOOL = os.path.join(BUILD, "flexmem-fake")
HERE = os.path.dirname(os.path.abspath(__file__))
MAN = os.path.join(HERE, "../../Documentation/man/flexmem.1")
GIB = 1 << 30
HEADER = "# flexmem-trace 1\n# made up\n"
SMALL = HEADER + "0 a 1 1000 0\n1 a 2 2000 0\n2 f 1\n3 a 3 500 0\n4 f 2\n5 f 3\n"

tests = []
tmp = tempfile.TemporaryDirectory(prefix="flexmem-test-")


def test(function):
    tests.append(function)
    return function


def run(*args, stdin="", **env):
    env = {**os.environ, **{key: str(value) for key, value in env.items()}}
    done = subprocess.run([TOOL, *args], input=stdin, env=env, capture_output=True, text=True,
                          timeout=300, check=False)
    assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


def good(*args, **kwargs):
    status, out, err = run(*args, **kwargs)
    assert (status, err) == (0, ""), (status, out, err)
    return out


def report(*args, **kwargs):
    return json.loads(good("--json", *args, **kwargs))


def six_digits(number):
    """What of a number that was divided is told."""
    return float(f"{number:.6g}")


def trace(text, name="t.trace", compress=False):
    path = os.path.join(tmp.name, name)
    data = text.encode()
    with open(path, "wb") as file:
        file.write(gzip.compress(data) if compress else data)
    return path


def on_terminal(*args, columns, stdin_lines=b"", **env):
    """Runs on a pty of so many columns; returns status and what was printed."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    attributes = termios.tcgetattr(slave)
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(slave, termios.TCSANOW, attributes)
    env = {**os.environ, **{key: str(value) for key, value in env.items()}}
    with subprocess.Popen([TOOL, *args], stdin=slave, stdout=slave, stderr=slave, env=env) as process:
        os.close(slave)
        os.write(master, stdin_lines)
        output = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:
                break
            if not part:
                break
            output += part
    os.close(master)
    return process.returncode, output.decode().replace("\r\n", "\n")


@test
def help_of_everything():
    out = good("--help")
    commands = re.findall(r"^  (\w+) +", out, re.M)
    assert commands == ["info", "regions", "segments", "stats", "owners", "limit", "alloc", "fill",
                        "check", "free", "trim", "shell", "replay"], commands
    for command in commands:
        text = good(command, "--help")
        assert text.startswith(f"Usage: flexmem {command}"), text
        for option in ("--device", "--json", "--help"):
            assert option in text, (command, option)


@test
def help_names_every_option():
    source = os.path.join(HERE, "../../userlib/tools")
    for command, file in (("alloc", "cmd_alloc.c"), ("replay", "cmd_replay.c"),
                          ("limit", "cmd_owners.c"), ("fill", "cmd_pattern.c"),
                          ("check", "cmd_pattern.c")):
        with open(os.path.join(source, file), encoding="ascii") as text:
            options = re.findall(r'{ "([a-z-]+)", (?:no|required)_argument', text.read())
        assert len(options) >= 2, options
        with open(MAN, encoding="ascii") as text:
            man = text.read().replace("\\-", "-")
        for option in options:
            assert "--" + option in good(command, "--help"), option
            # mdoc writes "Fl -option".
            assert "Fl -" + option in man, option


@test
def version():
    assert re.fullmatch(r"flexmem \d+\.\d+\.\d+\n", good("--version"))


@test
def usage_errors_are_2():
    for args in ((), ("nonsense",), ("--nonsense", "info"), ("info", "--nonsense"), ("info", "x"),
                 ("alloc",), ("alloc", "1", "2"), ("alloc", "x"), ("alloc", "1", "--align", "x"),
                 ("alloc", "1", "--count", "0"), ("alloc", "1", "--hold", "x"), ("free",),
                 ("free", "x"), ("free", "0"), ("free", "1:"), ("free", ":1"), ("replay",),
                 ("replay", "x", "--strategy", "worst"), ("replay", "x", "--order", "random"),
                 ("alloc", "1", "--pattern", "x"), ("fill",), ("fill", "0"), ("fill", "x"),
                 ("fill", "1", "2"), ("fill", "1", "--seed", "x"), ("fill", "1", "--by", "hand"),
                 ("check", "1", "--seed"), ("owners", "x"), ("limit", "x"),
                 ("limit", "--bytes", "1"), ("limit", "--user", "x", "--bytes", "1"),
                 ("limit", "--user", "4294967296"), ("limit", "--user", "1", "--client", "1"),
                 ("limit", "--user", "1", "--bytes", "much"),
                 ("limit", "--user", "1", "--slots", "1K"),
                 ("--device",), ("stats", "--device")):
        status, out, err = run(*args)
        assert (status, out) == (2, "") and err, (args, status, out, err)


@test
def device_before_and_after():
    for args in (("--device", "/dev/flexmem0", "info"), ("info", "--device", "/dev/flexmem0"),
                 ("info", "--device=vf"), ("--device=VF", "info")):
        assert "/dev/flexmem0" in good(*args)
    status, _, err = run("info", "--device", "PF")
    assert (status, err) == (1, "flexmem: PF: flexmem.ko is loaded, but no device has such a function\n"), err
    status, _, err = run("info", "--device", "/dev/flexmem7")
    assert status == 1 and "/dev/flexmem7: no such device" in err, err
    status, _, err = run("info", "--device", "vf0")
    assert (status, err) == (1, "flexmem: vf0: neither PF nor VF, nor a file of that name here\n"), err


@test
def flex_device():
    assert "PF" in good("info", FAKE_MODE=0, FLEX_DEVICE="pf")
    status, _, err = run("info", FLEX_DEVICE="pf")
    assert (status, err) == (1, "flexmem: FLEX_DEVICE=pf: flexmem.ko is loaded, but no device has such a "
                             "function\n"), err
    status, _, err = run("info", FLEX_DEVICE="7")
    assert status == 1 and "FLEX_DEVICE=7: neither PF nor VF, nor a path that begins with a slash" in err, err
    status, _, err = run("info", FLEX_DEVICE="/dev/flexmem7")
    assert status == 1 and "FLEX_DEVICE=/dev/flexmem7: no such device" in err, err
    status, _, err = run("info", FLEX_DEVICE="", FAKE_NODE=0)
    assert status == 1 and "no device to open: " in err, err


@test
def info():
    out = good("info")
    for line in ("device           /dev/flexmem0", "function         VF",
                 "order            fill_first", "fallback sizes   12.0 GiB, 8.0 GiB, 4.0 GiB",
                 "slots            8"):
        assert line + "\n" in out, (line, out)
    found = report("info")
    assert found["fallback_sizes"] == [12 * GIB, 8 * GIB, 4 * GIB]
    assert (found["function"], found["order"], found["strategy"], found["acquire"]) == \
        ("VF", "fill_first", "first_fit", "lazy")
    assert found["device"] == "/dev/flexmem0" and found["max_batch"] == 64


@test
def capabilities():
    assert "capabilities     scrub, map, copy, limit, resize, pressure\n" in good("info")
    found = report("info")
    assert found["capabilities"] == 63
    assert found["capability_names"] == ["scrub", "map", "copy", "limit", "resize",
                                         "pressure"]
    assert "capabilities     none\n" in good("info", FAKE_CAPABILITIES=0)
    assert report("info", FAKE_CAPABILITIES=66)["capability_names"] == ["map"]


@test
def stats():
    assert "own allocations  0\n" in good("stats")
    assert report("stats")["own_handles"] == 0


@test
def stats_of_usage():
    figures = {"FAKE_ORPHANED": 1 << 20, "FAKE_QUARANTINED": 3 << 20, "FAKE_SCRUBBED": 5 << 30}
    out = good("stats", **figures)
    for line in ("orphaned         1.0 MiB", "quarantined      3.0 MiB", "scrubbed so far  5.0 GiB",
                 "reserved         0 B", "open files       1", "resets so far    3"):
        assert line + "\n" in out, (line, out)
    found = report("stats", **figures)
    assert (found["orphaned"], found["quarantined"], found["scrubbed"], found["clients"],
            found["resets"], found["owned"]) == (1 << 20, 3 << 20, 5 << 30, 1, 3, 0), found
    # An older driver does not know them, which is no failure.
    assert "quarantined" not in good("stats", FAKE_CAPABILITIES=7)
    assert "quarantined" not in report("stats", FAKE_CAPABILITIES=7)


@test
def no_regions():
    assert good("regions") == "no regions\n"
    assert report("regions") == {"regions": []}
    assert good("segments") == "generation 1\n"
    assert report("segments") == {"generation": 1, "segments": []}


@test
def alloc_until_enter():
    status, out, err = run("alloc", "4MiB", stdin="\n")
    assert status == 0 and out == "handle 1  address 0:0x0  size 4194304 (4.0 MiB)\n", out
    assert "Enter" in err


@test
def alloc_holds():
    out = good("alloc", "1000", "--count", "3", "--hold", "0", "--align", "4K")
    assert out.splitlines()[2] == "handle 3  address 0:0x2000  size 1024 (1.0 KiB)", out
    found = report("alloc", "1000", "--count", "2", "--hold", "0", "--program")
    assert found[1] == {"handle": 2, "region_id": 0, "offset": 1024, "size": 1024,
                        "program": True, "mappable": False, "zeroed": False}, found
    found = report("alloc", "1000", "--hold", "0", "--mappable", "--zeroed")
    assert found == [{"handle": 1, "region_id": 0, "offset": 0, "size": 4096, "program": False,
                      "mappable": True, "zeroed": True}], found


@test
def alloc_fails():
    status, out, err = run("alloc", "13G", "--hold", "0")
    assert (status, out) == (1, "")
    assert err == ("flexmem: alloc: out of device memory: no region can be that large (at most "
                   "12.0 GiB: see fallback_sizes); asked 13.0 GiB, free 0 B in 0 regions, largest piece 0 B\n"), err
    status, out, _ = run("alloc", "12G", "--count", "9", "--hold", "0", "--json")
    found = json.loads(out)
    assert status == 1 and len(found) == 9 and found[4]["handle"] == 5
    assert found[8]["error"]["limit"] == "capacity", found[8]


@test
def alloc_pattern():
    for flags in ((), ("--mappable",), ("--zeroed", "--count", "3")):
        out = good("alloc", "3M", "--pattern", "7", "--hold", "0", *flags)
        assert out.splitlines()[-1].endswith(" size 3145728 (3.0 MiB)"), out
    # It is filled, and then checked: the second needs to read.
    status, out, err = run("alloc", "1K", "--pattern", "7", "--hold", "0", FAKE_READ_AT=1,
                           FAKE_READ_ERROR=110)
    assert status == 1 and "check handle 1: the device's firmware did not answer" in err, err
    status, _, err = run("alloc", "1K", "--pattern", "7", "--hold", "0", FAKE_CAPABILITIES=8)
    assert status == 1 and "fill handle 1: unknown flag, or the driver is too old" in err, err


@test
def fill_and_check():
    for flags, way, other in (("", "copy", "copy"), ("--mappable", "map", "copy")):
        out = good("shell", stdin=f"alloc 70M {flags}\nfill 1 --seed 5\ncheck 1 --seed 5\n"
                   f"check 1 --seed 5 --by {other}\nfill 1 --by {other}\ncheck 1\n")
        lines = out.splitlines()[1:]
        assert lines == [f"handle 1  73400320 bytes filled by {way}",
                         f"handle 1  73400320 bytes good by {way}",
                         f"handle 1  73400320 bytes good by {other}",
                         f"handle 1  73400320 bytes filled by {other}",
                         f"handle 1  73400320 bytes good by {way}"], lines


@test
def check_finds_foreign_bytes():
    for way in ("map", "copy"):
        status, out, err = run("shell", stdin="alloc 4K --mappable\nfill 1\n"
                               f"check 1 --seed 1 --by {way}\ncheck 1 --seed 1 --json\n")
        differ = re.search(r"flexmem: check handle 1: (\d+) of 4096 bytes differ, the first at 0x", err)
        assert status == 1 and "good" not in out and int(differ[1]) > 4000, (status, out, err)
        found = json.loads(out[out.index("{"):])
        assert found["bad"] == int(differ[1]) and found["first_bad"] < 8 and found["by"] == "map"
    out = good("shell", stdin="alloc 1 --pattern 3\ncheck 1 --seed 3 --json\n")
    assert json.loads(out[out.index("{"):]) == {"handle": 1, "size": 128, "seed": 3, "by": "copy",
                                                "bad": 0, "first_bad": None}, out


@test
def device_is_reset_under_a_map():
    status, out, err = run("shell", stdin="alloc 4K --mappable\nfill 1\nstats\n", FAKE_MAP_IS_GONE=1)
    assert (status, err) == (1, "flexmem: the device was reset, or is gone\n"), (status, err)
    # What was said before that is not lost.
    assert out.startswith("handle 1  address") and out.count("\n") == 1, out


@test
def kinds_of_regions():
    for flags, kind in ((0, "shared"), (1, "program"), (2, "reserved"), (3, "reserved")):
        out = good("shell", stdin="alloc 1\nregions\nsegments\nregions --json\n",
                   FAKE_REGION_FLAGS=flags)
        assert len(re.findall(rf"  {kind}$", out, re.M)) == 2, out
        region, = json.loads(out[out.index("{"):])["regions"]
        assert (region["program"], region["reserved"]) == (bool(flags & 1), bool(flags & 2)), region


@test
def fill_fails():
    for line, message in (("fill 9", "fill handle 9: no such allocation of this open file"),
                          ("fill 1 --by map", "fill handle 1: Invalid argument")):
        status, _, err = run("shell", stdin=f"alloc 1\n{line}\n")
        assert status == 1 and message in err, err


@test
def owners():
    out = good("shell", stdin="alloc 5G\nalloc 1G\nfree 1\nlimit --user 7 --bytes 8G --slots 4\n"
               "limit --client 1 --guarantee-handles 10\nowners\nowners --json\n",
               COLUMNS=120, FAKE_ORPHANED=4096)
    sums, table = out[out.index("   total  "):].split("\n\n")[:2]
    sums = re.split(r" {2,}", sums.splitlines()[1].strip())
    assert sums == ["12.0 GiB", "11.0 GiB", "1.0 GiB", "4.0 KiB", "0 B", "0 B", "1"], sums
    rows = [re.split(r" {2,}", line.strip()) for line in table.splitlines()]
    assert rows[1:] == [
        ["user 7", "7", "-", "0 B", "4.0 KiB", "0 B", "0", "0", "8.0 GiB/4/none", "none"],
        ["user 1000", "1000", "-", "1.0 GiB", "0 B", "6.0 GiB", "1", "1", "none", "none"],
        ["client 1", "1000", "4242", "1.0 GiB", "0 B", "6.0 GiB", "1", "1", "none",
         "none/none/10"]], rows
    found = json.loads(out[out.index("{"):])
    assert found["total"] == sum(found[key] for key in ("free", "owned", "orphaned", "reserved",
                                                        "quarantined")), found
    assert found["owners"][0]["limit"] == {"bytes": 8 * GIB, "slots": 4, "handles": None}, found
    assert found["owners"][2] == {
        "kind": "client", "id": 1, "uid": 1000, "pid": 4242, "bytes": GIB, "orphaned": 0,
        "peak": 6 * GIB, "slots": 1, "handles": 1,
        "limit": {"bytes": None, "slots": None, "handles": None},
        "guarantee": {"bytes": 0, "slots": 0, "handles": 10}}, found
    status, _, err = run("owners", FAKE_CAPABILITIES=0)
    assert status == 1 and "owners: not a flexmem device, or its driver is too old" in err, err


@test
def own_limits():
    lines = good("limit", FAKE_CLIENT_LIMIT=GIB).splitlines()
    assert [re.split(r" {2,}", line.strip()) for line in lines] == [
        ["owner", "what", "used", "limit", "guarantee"],
        ["own client", "bytes", "0 B", "1.0 GiB", "none"],
        ["own client", "slots", "0", "none", "none"],
        ["own client", "handles", "0", "none", "none"],
        ["own user", "bytes", "0 B", "none", "none"],
        ["own user", "slots", "0", "none", "none"],
        ["own user", "handles", "0", "none", "none"]], lines
    found = report("limit", FAKE_CLIENT_LIMIT=GIB)
    assert found[0]["id"] is None and found[0]["bytes"] == \
        {"used": 0, "limit": GIB, "guarantee": 0}, found
    assert found[1]["kind"] == "user" and found[1]["bytes"]["limit"] is None, found


@test
def sets_limits():
    out = good("limit", "--user", "1000", "--bytes", "8G", "--guarantee-bytes", "2G", "--slots", "3")
    assert [re.split(r" {2,}", line.strip()) for line in out.splitlines()[1:]] == [
        ["user 1000", "bytes", "0 B", "8.0 GiB", "2.0 GiB"],
        ["user 1000", "slots", "0", "3", "none"]], out
    # Of a user and a client with the same id each has its own; what is orphaned is charged.
    out = good("shell", stdin="alloc 1K\nlimit --user 1 --bytes 5G\nlimit --client 1\n"
               "limit --user 1\n", FAKE_ORPHANED=8192)
    rows = [re.split(r" {2,}", line) for line in out.splitlines() if " bytes " in line]
    assert rows[-2:] == [["client 1", "bytes", "1.0 KiB", "none", "none"],
                         ["user 1", "bytes", "8.0 KiB", "5.0 GiB", "none"]], rows
    # Sees what was set, and takes it back.
    out = good("shell", stdin="alloc 1K\nlimit --client 1 --handles 5 --guarantee-handles 2\n"
               "limit --client 1 --handles none --guarantee-handles none\nlimit --client 1 --json\n")
    assert "client 1  handles     1      5          2\n" in out, out
    found, = json.loads(out[out.index("[\n"):])
    assert (found["kind"], found["id"], found["handles"], found["bytes"]["used"]) == \
        ("client", 1, {"used": 1, "limit": None, "guarantee": 0}, 1024), found


@test
def limit_fails():
    for args, message in ((("--client", "9", "--bytes", "1"), "limit: no client 9"),
                          (("--client", "9"), "limit: no client 9 that you may see"),
                          (("--user", "9"), "limit: no user 9 that you may see"),
                          (("--user", "9", "--guarantee-bytes", "1T"),
                           "limit of bytes: not so much is left that can be guaranteed"),
                          (("--user", "9", "--handles", "1", "--guarantee-handles", "2"),
                           "limit of handles: Invalid argument")):
        status, out, err = run("limit", *args)
        assert (status, out, err) == (1, "", f"flexmem: {message}\n"), (status, out, err)
    status, _, err = run("limit", "--user", "9", "--bytes", "1", FAKE_ADMIN=0)
    assert status == 1 and "limit of bytes: only the administrator may do this" in err, err


@test
def limits_are_named():
    status, out, err = run("alloc", "2G", "--hold", "0", "--json", FAKE_CLIENT_LIMIT=GIB)
    assert status == 1 and "limit of this open file (0 B of 1.0 GiB used)" in err, err
    assert json.loads(out)[0]["error"]["limit"] == "client_limit", out
    status, out, err = run("shell", stdin="limit --user 1000 --handles 1\nalloc 1G\nalloc 1\n")
    assert status == 1 and "(1 of 1 allocations used)" in err, err
    assert err.endswith("; own 1.0 GiB could be freed\n"), err


@test
def addresses_of_a_pf():
    assert "address 0x2000000000:0x0" in good("alloc", "1", "--hold", "0", FAKE_MODE=0)


@test
def free_outside_a_shell():
    status, _, err = run("free", "1")
    assert status == 1 and "no such allocation" in err and "flexmem shell" in err


@test
def shell():
    out = good("shell", stdin="# a comment\n\nalloc 1000\nalloc 12G --count 2\nregions\n"
               "free 1 1:0\nfree 2:0x0\nstats\nquit\nalloc 1\n")
    assert "handle 3  address 2:0x0" in out, out
    assert "allocations      0\n" in out and "allocs so far    3\n" in out, out
    assert "slot  1 [####" in out and out.count("handle") == 3, out


@test
def shell_json_and_status():
    status, out, err = run("shell", stdin="alloc 5 --json\nfree 99\nstats --json\nstats\n")
    assert status == 1 and "free 99: no such allocation" in err
    first, rest = out.split("]\n", 1)
    assert json.loads(first + "]")[0]["handle"] == 1
    assert json.loads(rest[:rest.index("}\n") + 1])["own_handles"] == 1
    assert "own allocations  1\n" in rest
    status, _, err = run("shell", stdin="nonsense\nreplay x\nalloc\n" + "x " * 100 + "\n")
    assert status == 2 and "no command 'replay'" in err and "too many words" in err, err
    status, _, err = run("shell", stdin="stats --device PF\n")
    assert status == 2 and "one device" in err
    assert "  alloc " in good("shell", stdin="help\n")


@test
def shell_on_a_terminal():
    status, out = on_terminal("shell", columns=60, stdin_lines=b"alloc 6G\nregions\nfree 9\nquit\n")
    assert status == 0 and out.startswith("flexmem> "), out
    bar = re.search(r"^slot +0 \[.*$", out, re.M)[0]
    assert len(bar) == 60 and bar.endswith(" 50%"), bar


@test
def width_of_the_terminal():
    for columns in (20, 80, 200):
        status, out = on_terminal("shell", columns=columns, stdin_lines=b"alloc 3G\nregions\nquit\n")
        bar = re.search(r"^.*\[#.*$", out, re.M)[0]
        assert status == 0 and len(bar) == columns, (columns, bar)


@test
def trim():
    assert good("trim") == "0 regions given back, 0 B\n"
    out = good("shell", stdin="alloc 1\nfree 1\ntrim\ntrim --json\n")
    assert "1 region given back, 12.0 GiB\n" in out and '"regions": 0' in out, out
    # Somebody takes his lease again and again.
    status, out, err = run("trim", FAKE_LEASES=1)
    assert (status, out) == (1, "") and "a lease" in err, err
    assert good("trim", "--break-leases", FAKE_LEASES=1) == "0 regions given back, 0 B\n"
    status, _, err = run("trim", "--break-leases=1")
    assert status == 2 and "takes no value" in err, err
    status, _, err = run("trim", "now")
    assert status == 2 and "unexpected argument 'now'" in err, err
    # The fake fails only when there is something to give back, or at the end.
    status, out, err = run("trim", "--json", FAKE_TRIM_AT=1, FAKE_TRIM_ERROR=1)
    assert status == 1 and "only the administrator" in err
    assert json.loads(out)["error"]["errno"] == -1


@test
def replay_small():
    for compress in (False, True):
        path = trace(SMALL, compress=compress)
        found = report("replay", path)
        for key, value in {
                "file": path, "events": 6, "allocs": 3, "frees": 3, "failures": 0,
                "skipped_zero": 0, "skipped_failed": 0, "live_at_end": 0, "first_failure": None,
                "peak_live_bytes": 3000, "peak_device_bytes": 3072, "regions_used": 1,
                "slots_used": 1, "region_peaks": [{"region_id": 0, "peak_used": 3072}],
                "peak_reached": True, "region_fragmentation_at_peak": 0.0,
                "strategy": "first_fit", "order": "fill_first"}.items():
            assert found[key] == value, (key, found[key])
        assert 0 < found["ns_per_op_median"] <= found["ns_per_op_max"]
        assert 0 < found["ns_per_op_mean"] <= found["ns_per_op_max"]
        assert found["seconds"] > 0
        assert "peak_regions" not in found


@test
def man_page_has_every_key():
    with open(MAN, encoding="ascii") as text:
        man = text.read()
    path = trace(SMALL)
    status, out, _ = run("replay", "--json", "--show-peak", "--keep-going", path,
                         FAKE_ALLOC_AT=1, FAKE_ALLOC_ERROR=5)
    assert status == 1
    bad = json.loads(out)
    keys = set(report("info")) | set(report("stats")) | set(bad) | set(bad["first_failure"])
    keys |= set(report("alloc", "1", "--hold", "0")[0]) | set(bad["peak_regions"][0])
    keys |= set(bad["region_peaks"][0])
    owners_found = report("owners")
    keys |= set(owners_found) | set(owners_found["owners"][0]) | set(report("limit")[0]) | \
        set(report("limit")[0]["bytes"])
    out = good("shell", stdin="alloc 1 --pattern 0\ncheck 1 --json\n")
    keys |= set(json.loads(out[out.index("{"):]))
    keys |= set(error_of(("info", "--json"), FAKE_NODE=0)) | {"help", "version", "freed", "pattern"}
    keys |= set(json.loads(run("alloc", "2G", "--hold", "0", "--json",
                               FAKE_CLIENT_LIMIT=GIB)[1])[0]["error"])
    missing = [key for key in sorted(keys) if not re.search(rf"\b{key}\b", man)]
    assert not missing, missing


@test
def replay_text():
    out = good("replay", trace(SMALL, "small.trace"))
    for line in ("small.trace", "  events           6", "  slots used       1 of 8",
                 "  fragmentation    0.000 of the regions' free bytes, at the peak"):
        assert line + "\n" in out, (line, out)


@test
def replay_fragmentation():
    # At the peak: 10 x 1 GiB, of which 0, 2 and 4 were freed again and 10 bytes added.
    lines = [f"0 a {i} {GIB} 0" for i in range(10)]
    text = HEADER + "\n".join(lines + ["1 f 0", "1 f 2", f"2 a 20 {GIB} 0", "2 f 4",
                                       f"3 a 21 {2 * GIB} 0", "4 a 22 128 0"]) + "\n"
    found = report("replay", "--show-peak", trace(text))
    region, = found["peak_regions"]
    expected = 1 - region["largest_free"] / region["free"]
    assert found["region_fragmentation_at_peak"] == six_digits(expected) and expected > 0.49
    assert region["allocated_blocks"] == 10 and found["live_at_end"] == 10
    assert found["peak_live_bytes"] == 10 * GIB + 128


@test
def fragmentation_is_inside_regions():
    # Full pieces of several regions are no fragmentation: what is free is one piece in each.
    text = HEADER + "".join(f"0 a {i} {8 * GIB} 0\n" for i in range(5))
    found = report("replay", "--show-peak", trace(text))
    assert [region["free_blocks"] for region in found["peak_regions"]] == [1] * 5
    assert found["region_fragmentation_at_peak"] == 0.0, found
    # Nothing free is none either.
    found = report("replay", trace(HEADER + f"0 a 1 {12 * GIB} 0\n"))
    assert found["region_fragmentation_at_peak"] == 0.0, found
    # One region of three with a hole of 2 GiB: it counts once, in the free bytes of all of them.
    lines = [f"0 a 1 {2 * GIB} 0", f"0 a 2 {6 * GIB} 0", f"0 a 3 {8 * GIB} 0", f"0 a 4 {8 * GIB} 0",
             "1 f 1", f"2 a 5 {7 * GIB} 0"]
    found = report("replay", "--show-peak", trace(HEADER + "\n".join(lines) + "\n"))
    free = sum(region["free"] for region in found["peak_regions"])
    largest = sum(region["largest_free"] for region in found["peak_regions"])
    assert len(found["peak_regions"]) > 2 and free - largest == 2 * GIB, found
    assert found["region_fragmentation_at_peak"] == six_digits(2 * GIB / free), found


@test
def peak_is_in_the_middle():
    text = HEADER + f"0 a 1 {6 * GIB} 0\n1 a 2 {3 * GIB} 0\n2 f 1\n3 a 3 1 0\n"
    found = report("replay", "--show-peak", trace(text))
    assert found["peak_regions"][0]["used"] == 9 * GIB
    out = good("replay", "--show-peak", trace(text))
    assert "regions at the peak of live bytes:\n" in out and "[####" in out and " 75%" in out, out


@test
def replay_several():
    paths = [trace(SMALL, "one.trace"), trace(SMALL, "two.trace.gz", compress=True)]
    found = report("replay", *paths)
    assert [each["file"] for each in found] == paths
    # A fresh open file for each: nothing is left of the one before.
    assert [each["region_peaks"] for each in found] == [[{"region_id": 0, "peak_used": 3072}]] * 2
    out = good("replay", *paths, COLUMNS=100)
    summary = out[out.index("trace  "):].splitlines()
    assert len(summary) == 3 and summary[2].split()[:6] == ["two.trace.gz", "6", "0", "2.9",
                                                            "KiB", "1"], summary


@test
def replay_leaves_nothing_between_files():
    text = HEADER + f"0 a 1 {12 * GIB} 0\n"
    found = report("replay", trace(text, "a"), trace(text, "b"))
    assert [each["slots_used"] for each in found] == [1, 1], found
    assert [each["live_at_end"] for each in found] == [1, 1]


@test
def several_regions():
    text = HEADER + "".join(f"0 a {i} {8 * GIB} 0\n" for i in range(5))
    found = report("replay", trace(text))
    assert found["regions_used"] == found["slots_used"] == 5
    assert [each["peak_used"] for each in found["region_peaks"]] == [8 * GIB] * 5


@test
def stops_at_the_first_failure():
    text = HEADER + "".join(f"0 a {i} {12 * GIB} 0\n" for i in range(3)) + "1 f 2\n"
    status, out, err = run("replay", "--json", trace(text, "big.trace"), FAKE_SLOTS=2)
    found = json.loads(out)
    assert status == 1 and found["events"] == 3 and found["failures"] == 1
    first = found["first_failure"]
    assert (first["event"], first["line"], first["operation"]) == (3, 5, "alloc")
    assert first["limit"] == "slots" and (first["errno"], first["name"]) == (-12, "ENOMEM")
    assert not found["peak_reached"]
    assert err == ("flexmem: big.trace: event 3 (line 5), allocation of 12884901888 bytes failed: "
                   "out of device memory: no slot left (2 of 2 used); asked 12.0 GiB, free 0 B in "
                   "2 regions, largest piece 0 B; own 24.0 GiB could be freed\n"), err
    status, out, _ = run("replay", "--show-peak", trace(text), FAKE_SLOTS=2)
    assert status == 1 and "regions where it stopped:\n" in out, out


@test
def keeps_going():
    text = HEADER + "".join(f"0 a {i} {12 * GIB} 0\n" for i in range(4)) + \
        "1 f 2\n2 f 0\n3 a 9 128 0\n4 f 3\n"
    status, out, _ = run("replay", "--json", "--keep-going", trace(text), FAKE_SLOTS=2)
    found = json.loads(out)
    assert status == 1 and found["events"] == 8
    assert (found["allocs"], found["frees"], found["failures"], found["skipped_failed"]) == \
        (3, 1, 2, 2), found
    assert found["first_failure"]["event"] == 3
    assert found["events"] == sum(found[key] for key in ("allocs", "frees", "failures",
                                                         "skipped_zero", "skipped_failed"))


@test
def a_free_fails():
    status, out, err = run("replay", "--json", trace(SMALL), FAKE_FREE_AT=1, FAKE_FREE_ERROR=5)
    found = json.loads(out)
    assert status == 1 and found["first_failure"]["operation"] == "free"
    assert "event 3 (line 5), free of 1000 bytes failed" in err


@test
def device_goes_away():
    status, out, _ = run("replay", "--json", "--keep-going", trace(SMALL), FAKE_ALLOC_AT=2,
                         FAKE_ALLOC_ERROR=19, FAKE_REGIONS_AT=1, FAKE_REGIONS_ERROR=19)
    found = json.loads(out)
    assert status == 1 and found["events"] == 2 and found["first_failure"]["errno"] == -19, found


@test
def regions_cannot_be_read():
    status, out, err = run("replay", "--json", trace(SMALL), FAKE_REGIONS_AT=1, FAKE_REGIONS_ERROR=5)
    assert status == 1 and "error" in json.loads(out) and "regions: the device's firmware" in err
    status, _, err = run("regions", FAKE_REGIONS_AT=1, FAKE_REGIONS_ERROR=5)
    assert status == 1 and err.startswith("flexmem: regions: ")


@test
def zero_bytes_are_skipped():
    found = report("replay", trace(HEADER + "0 a 1 0 0\n1 a 2 1 0\n2 f 1\n3 f 2\n"))
    assert (found["skipped_zero"], found["allocs"], found["frees"]) == (2, 1, 1)
    found = report("replay", trace(HEADER))
    assert found["events"] == 0 and found["ns_per_op_mean"] == 0


@test
def bad_traces():
    for text, message in (("junk\n", "line 1: not a trace"), (HEADER + "1 x 2\n", "line 3: neither"),
                          (HEADER + "1 f 2\n", "line 3: 2 is not allocated")):
        path = trace(text, "bad.trace")
        status, out, err = run("replay", path)
        assert status == 1 and f"bad.trace: {message}" in err, err
        # The others are replayed nevertheless.
        status, out, _ = run("replay", "--json", path, trace(SMALL))
        first, second = json.loads(out)
        assert status == 1 and message in first["error"]["text"] and second["events"] == 6
    status, _, err = run("replay", "/nonexistent")
    assert (status, err) == (1, "flexmem: /nonexistent: No such file or directory\n")


@test
def settings_are_checked():
    path = trace(SMALL)
    good("replay", path, "--strategy", "first_fit", "--order", "fill_first")
    for args, message in ((("--strategy", "best_fit"), "the device runs first_fit, not best_fit"),
                          (("--order", "load_balance"), "the device runs fill_first, not load")):
        status, _, err = run("replay", path, *args)
        assert status == 1 and message in err, err


@test
def trims_before_a_file():
    text = HEADER + f"0 a 1 {12 * GIB} 0\n1 a 2 {12 * GIB} 0\n"
    first, second = report("replay", "--trim", trace(text, "a"), trace(SMALL, "b"))
    assert (first["slots_used"], second["slots_used"]) == (2, 1)
    status, _, err = run("replay", "--trim", trace(SMALL), FAKE_TRIM_AT=1, FAKE_TRIM_ERROR=1)
    assert status == 1 and "trim: only the administrator" in err


@test
def progress_on_a_terminal_only():
    text = HEADER + "".join(f"0 a {i} 128 0\n1 f {i}\n" for i in range(2000))
    path = trace(text, "long.trace")
    status, out = on_terminal("replay", path, columns=60)
    bars = re.findall(r"\rlong\.trace \[[#.-]+\] +\d+%", out)
    assert status == 0 and len(bars) > 50 and {len(bar) for bar in bars} == {60}, bars[:3]
    _, out, err = run("replay", path)
    assert err == "" and "\r" not in out


@test
def full_disk_is_an_error():
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([TOOL, "info"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1 and "standard output" in done.stderr


@test
def debug_log():
    _, _, err = run("alloc", "1", "--hold", "0", TORCH_SPYRE_ALLOC_DEBUG=1)
    assert "flexmem: acquired region 0 in slot 0" in err and "alloc handle 1" in err


@test
def man_page_is_clean():
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "style", MAN], capture_output=True,
                          text=True, check=False)
    found = [line for line in done.stdout.splitlines() if "referenced manual not found" not in line]
    assert not found, found


def error_of(args, **kwargs):
    """The error of a command that fails, which is all it prints on stdout."""
    status, out, err = run(*args, **kwargs)
    found = json.loads(out)
    assert status in (1, 2) and list(found) == ["error"], (args, status, out, err)
    found = found["error"]
    assert found["errno"] < 0 and found["name"] == errno.errorcode[-found["errno"]], found
    # The same words, and in the same order.
    assert err.startswith(("flexmem: ", "flexmem " + args[0])) and found["text"] in err, (found, err)
    assert status == 1 or found["name"] == "EINVAL", found
    return found


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
                       (("fill", "9", "--json"), "ENOENT"), (("check", "9", "--json"), "ENOENT"),
                       (("limit", "--client", "9", "--bytes", "1", "--json"), "ENOENT"),
                       (("limit", "--user", "9", "--json"), "ENOENT"),
                       (("limit", "--user", "9", "--guarantee-bytes", "1T", "--json"), "ENOSPC")):
        assert error_of(args)["name"] == name, args
    for command in ("info", "stats", "regions", "segments", "owners", "limit", "trim", "shell"):
        assert error_of((command, "--json"), FAKE_OPEN_ERROR=5)["name"] == "EIO"
    assert error_of(("regions", "--json"), FAKE_REGIONS_AT=1, FAKE_REGIONS_ERROR=5)["name"] == "EIO"
    assert error_of(("owners", "--json"), FAKE_CAPABILITIES=0)["name"] == "ENOTTY"
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
        "largest_free": 0, "max_region": 12 * GIB, "own_used": 60 * GIB}.items(), found[6]
    status, out, _ = run("alloc", "2G", "--hold", "0", "--json", FAKE_CLIENT_LIMIT=GIB)
    assert json.loads(out)[0]["error"].items() >= {
        "limit": "client_limit", "charge": "bytes", "quota": GIB, "quota_used": 0}.items(), out
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
    """A value for each line that does something, whatever comes of it."""
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
    """A path need not be UTF-8; its bytes that are not are shown as '?'."""
    path = os.fsencode(os.path.join(tmp.name, "name-")) + b"\xff\x01.trace"
    with open(path, "w", encoding="ascii") as file:
        file.write(SMALL)
    done = subprocess.run([TOOL, "replay", "--json", path], capture_output=True, check=False)
    assert json.loads(done.stdout)["file"].endswith("name-?\x01.trace"), done


@test
def json_numbers_have_no_noise():
    lines = [f"0 a {i} {GIB // 7} 0" for i in range(9)] + ["1 f 3", "1 f 5", f"2 a 9 {GIB // 3} 0"]
    for args in ((), ("--cache", "--config", ""), ("--cache", "--provider", "flat:8G")):
        out = good("replay", "--json", *args, trace(HEADER + "\n".join(lines) + "\n"))
        reals = re.findall(r": (\d+\.\d+(?:e-?\d+)?)", out)
        assert len(reals) >= 2, out
        for real in reals:
            assert len(real.split("e")[0].replace(".", "").strip("0")) <= 6, real


@test
def lines_of_stderr_are_whole():
    """Each is one write, so that those of others do not come in between."""
    for args in (("info", "x"), ("--nonsense",), ("info", "--nonsense"), ("nonsense",), ("alloc", "13G"),
                 ("info", "--device", "PF"), ("free", "9"), ("limit", "--user", "9"),
                 ("replay", "/nonexistent"), ("alloc", "1", "--hold", "0")):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs:
            subprocess.run([TOOL, *args], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=theirs, env={**os.environ, "FLEXMEM_DEBUG": "1"}, check=False)
            theirs.close()
            writes = []
            while True:
                data = ours.recv(65536)
                if not data:
                    break
                writes.append(data.decode())
        assert writes, args
        for text in writes:
            assert text.startswith("flexmem") and text.endswith("\n"), (args, writes)


@test
def no_module_and_no_device():
    for args in (("info",), ("info", "--device", "VF"), ("replay", trace(SMALL))):
        status, out, err = run(*args, FAKE_NODE=0, FAKE_NO_MODULE=1)
        assert (status, out) == (1, "") and "flexmem.ko is not loaded; 'sudo modprobe flexmem_sim' " \
            "loads it with a simulated device" in err and "insmod" in err and err.count("\n") == 1, err
    status, _, err = run("info", FAKE_NODE=0)
    assert status == 1 and "flexmem.ko is loaded, but no device is there" in err, err
    status, _, err = run("info", "--device", "VF", FAKE_NODE=0)
    assert (status, err) == (1, "flexmem: VF: flexmem.ko is loaded, but no device has such a function\n"), err


@test
def no_permission():
    group = grp.getgrall()[-1]
    for args, what in (((), "no device to open"), (("--device", "/dev/flexmem0"), "/dev/flexmem0")):
        status, _, err = run("info", *args, FAKE_OPEN_ERROR=13, FAKE_ACCESS=0o660,
                             FAKE_GROUP=group.gr_gid)
        assert (status, err) == (1, f"flexmem: {what}: /dev/flexmem0 is for the group "
                                 f"'{group.gr_name}': 'sudo usermod -aG {group.gr_name} USER', then "
                                 "log in anew\n"), err
    for access, number in ((0o600, group.gr_gid), (0o660, 0)):
        status, _, err = run("info", FAKE_OPEN_ERROR=13, FAKE_ACCESS=access, FAKE_GROUP=number)
        assert status == 1 and "only root may open it" in err and "flexmem(1)" in err, err
    _, _, err = run("info", FAKE_OPEN_ERROR=13, FAKE_ACCESS=0o660, FAKE_GROUP=987654)
    assert "/dev/flexmem0 is for the group 987654" in err, err


@test
def a_pf_is_the_administrators():
    """Whatever its node's mode; and who may have a VF's is not sent to a PF's."""
    group = grp.getgrall()[-1]
    mine = {"FAKE_ACCESS": 0o660, "FAKE_GROUP": group.gr_gid}
    for error in (errno.EPERM, errno.EACCES):
        for args, env in ((("--device", "PF"), {}), (("--device", "/dev/flexmem0"), {}), ((), {}),
                          ((), {"FLEX_DEVICE": "PF"}), ((), {"FLEX_DEVICE": "/dev/flexmem0"})):
            for access in (mine, {}):
                status, _, err = run("info", *args, FAKE_MODE=0, FAKE_OPEN_ERROR=error, **access, **env)
                assert status == 1 and "a PF is the administrator's" in err and "CAP_SYS_ADMIN" in err \
                    and "pf_open=mode" in err and "usermod" not in err, (error, args, env, err)
    # Beside it there is a VF: the first node is not the one to ask for.
    for args in ((), ("--device", "VF")):
        _, _, err = run("info", *args, FAKE_MODE=0, FAKE_SECOND=1, FAKE_OPEN_ERROR=13, **mine)
        assert "/dev/flexmem1 is for the group" in err, err
    _, _, err = run("info", "--device", "PF", FAKE_MODE=0, FAKE_SECOND=1, FAKE_OPEN_ERROR=13, **mine)
    assert "a PF is the administrator's" in err and "usermod" not in err, err


@test
def wrong_numbers_are_named():
    for args, message in ((("0",), "LENGTH is at least 1"),
                          (("1", "--align", "3"), "alignment '3' is not a power of two")):
        status, out, err = run("alloc", *args, "--hold", "0")
        assert (status, out, err) == (2, "", f"flexmem alloc: {message}\nTry 'flexmem alloc --help'.\n"), err
    status, out, err = run("alloc", "1", "--align", "1P", "--hold", "0")
    assert (status, out) == (1, "") and re.fullmatch(
        "flexmem: alloc: the alignment is above the largest there is, [0-9.]+ [KMGT]iB\n", err), err
    assert json.loads(run("alloc", "1", "--align", "1P", "--hold", "0", "--json")[1])[0]["error"]["name"] \
        == "EINVAL"


@test
def traces_with_crlf():
    status, _, err = run("replay", trace(SMALL.replace("\n", "\r\n"), "crlf.trace"))
    assert status == 1 and "line 1: the line ends in CRLF" in err, err


@test
def replay_of_standard_input():
    found = report("replay", "-", stdin=SMALL)
    assert (found["file"], found["events"], found["failures"]) == ("-", 6, 0), found
    with open(trace(SMALL, compress=True), "rb") as file:
        done = subprocess.run([TOOL, "replay", "--json", "-"], stdin=file, capture_output=True, check=False)
    assert done.returncode == 0 and json.loads(done.stdout)["events"] == 6, done
    status, _, err = run("replay", "-", stdin="")
    assert (status, err) == (1, "flexmem: -: the file is empty\n"), err


def main(functions):
    failed = 0
    print(f"1..{len(functions)}")
    for number, function in enumerate(functions, 1):
        try:
            function()
            print(f"ok {number} - {function.__name__}")
        except Exception:  # pylint: disable=broad-except
            failed += 1
            print(f"not ok {number} - {function.__name__}")
            print("".join("# " + line + "\n" for line in traceback.format_exc().splitlines()))
        sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(tests))
