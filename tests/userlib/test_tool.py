#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests the flexmem command from end to end, with the fake kernel. Prints TAP."""

import errno
import grp
import json
import os
import re
import socket
import subprocess
import sys

sys.dont_write_bytecode = True
from tool import GIB, HERE, MAN, SMALL, TOOL, error_of, good, main, on_terminal, report, run, test, tests, trace


@test
def help_of_everything():
    out = good("--help")
    commands = re.findall(r"^  (\w+) +", out, re.M)
    assert commands == ["list", "doctor", "info", "regions", "segments", "stats", "owners", "limit", "reserve", "cdi",
                        "release", "watch", "top", "export", "alloc", "fill", "check", "free", "trim", "shell",
                        "replay", "record", "convert", "map", "help", "version"], commands
    for command in commands:
        text = good(command, "--help")
        assert text.startswith(f"Usage: flexmem {command}"), text
        for option in ("--device", "--json", "--help"):
            assert option in text, (command, option)


@test
def a_leak_is_found():
    done = subprocess.run([TOOL, "info"], env={**os.environ, "FAKE_LEAK": "1"}, capture_output=True, text=True, check=False)
    assert done.returncode and "33 byte(s) leaked in 1 allocation(s)" in done.stderr, done


@test
def help_as_a_command():
    """The command "help" prints the same texts as --help, and opens no device."""
    assert run("help", FAKE_NODE=0) == (0, good("--help"), "")
    for command in re.findall(r"^  (\w+) +", good("--help"), re.M):
        assert run("help", command, FAKE_NODE=0) == (0, good(command, "--help"), ""), command
    assert report("help", "alloc") == {"help": good("alloc", "--help")}
    for args, text in ((("nonsense",), "no command 'nonsense'"),
                       (("alloc", "free"), "unexpected argument 'free'")):
        assert run("help", *args) == (2, "", f"flexmem help: {text}\nTry 'flexmem help --help'.\n"), args
    out = good("shell", stdin="help\nhelp free\n")
    commands = re.findall(r"^  (\w+) +", out, re.M)
    assert commands == ["info", "regions", "segments", "stats", "owners", "limit", "reserve", "top", "export", "alloc", "fill",
                        "check", "free", "trim", "map", "help", "quit"], commands
    assert out.endswith(good("shell", stdin="free --help\n")), out
    assert good("shell", stdin="help quit\n").startswith("Usage: quit\n\nEnd"), commands
    for command in commands:
        assert good("shell", stdin=f"help {command}\n").startswith(f"Usage: {command}"), command
    # The shell's help lists only the shell's commands, and "quit" exists only there.
    status, out, err = run("help", "quit")
    assert (status, out) == (2, "") and "no command 'quit'" in err, err
    status, out, err = run("shell", stdin="help replay\n")
    assert (status, out) == (2, "") and "no command 'replay'" in err, err


@test
def help_names_every_option():
    source = os.path.join(HERE, "../../userlib/tools")
    for command, file in (("alloc", "cmd_alloc.c"), ("replay", "cmd_replay.c"), ("convert", "cmd_convert.c"),
                          ("limit", "cmd_limit.c"), ("cdi", "cmd_cdi.c"), ("release", "cmd_release.c"), ("watch", "cmd_watch.c"), ("map", "cmd_map.c"), ("reserve", "cmd_reserve.c"), ("fill", "cmd_pattern.c"),
                          ("check", "cmd_pattern.c")):
        with open(os.path.join(source, file), encoding="ascii") as text:
            options = re.findall(r'{ "([a-z-]+)", (?:no|required)_argument', text.read())
        assert len(options) >= 2, options
        with open(MAN, encoding="ascii") as text:
            man = text.read().replace("\\-", "-")
        for option in options:
            assert "--" + option in good(command, "--help"), option
            # In mdoc a long option is "Fl -option".
            assert "Fl -" + option in man, option


@test
def version():
    assert re.fullmatch(r"flexmem \d+\.\d+\.\d+\n", good("--version"))
    assert run("version", FAKE_NODE=0) == (0, good("--version"), "")
    assert report("version") == report("--version")


@test
def short_help():
    assert good("-h") == good("--help") and good("alloc", "-h") == good("alloc", "--help")


@test
def did_you_mean():
    for typed, meant in (("aloc", "alloc"), ("inof", "info"), ("regoins", "regions"), ("ownres", "owners"),
                         ("seg", None), ("xyz", None), ("", None), ("f", None), ("stast", "stats")):
        status, out, err = run(typed)
        said = re.match(r"flexmem: no command '\w*'(?:, did you mean '(\w+)'\?)?\n", err)
        assert (status, out) == (2, "") and said and said[1] == meant, (typed, err)
    assert "did you mean 'alloc'?" in run("help", "allocc")[2]
    assert "did you mean 'trim'?; try 'help'" in run("shell", stdin="trin\n")[2]


@test
def did_you_mean_the_option():
    for args, meant in ((("replay", "--cahce"), "--cache"), (("replay", "--cahce=1"), "--cache"),
                        (("alloc", "1", "--alingment", "4K"), None), (("alloc", "1", "--algin", "4K"), "--align"),
                        (("info", "--jsn"), "--json"), (("--devise", "PF", "info"), "--device"),
                        (("info", "--xyz"), None), (("info", "--" + "x" * 40), None)):
        status, out, err = run(*args)
        said = re.match(r"flexmem[a-z ]*: no option '--\w+(?:=1)?', did you mean '(--\w+)'\?\n", err)
        assert (status, out) == (2, "") and bool(said) == bool(meant), (args, err)
        assert not said or said[1] == meant, (args, err)
    assert "'--s' is unknown or ambiguous" in run("replay", "--s")[2]
    assert "did you mean '--align'?" in run("shell", stdin="alloc 1 --algin 4K\n")[2]


@test
def failures_alike_are_told_once():
    status, out, err = run("alloc", "13G", "--count", "6", "--hold", "0")
    assert (status, out) == (1, "") and err.count("\n") == 1, err
    assert err.startswith("flexmem: alloc: 6 times: out of device memory: no region can be that large"), err
    status, out, err = run("alloc", "9G", "--count", "9", "--hold", "0")
    assert status == 1 and 0 < out.count("handle") < 9 and err.count("\n") == 1, (out, err)
    assert f"{9 - out.count('handle')} times" in err, err


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
                 ("limit", "--bytes", "1"), ("limit", "--cgroup", "x", "--bytes", "1"),
                 ("limit", "--cgroup", "no/such/cgroup"), ("limit", "--cgroup", "1", "--cgroup", "1"), ("limit", "--cgroup", "1", "--default"),
                 ("limit", "--default", "--cgroup", "1"), ("limit", "--default"), ("limit", "--client", "1"),
                 ("limit", "--default", "--each-child", "--bytes", "1"), ("limit", "--each-child", "--bytes", "1"),
                 ("limit", "--cgroup", "1", "--each-child"), ("limit", "--each-child"),
                 ("limit", "--all"), ("limit", "--cgroup", "1", "--all"), ("limit", "--all", "--bytes", "1"),
                 ("limit", "--cgroup", "1", "--bytes", "much"),
                 ("limit", "--cgroup", "1", "--regions", "1K"),
                 ("reserve",), ("reserve", "--regions", "1"), ("reserve", "--cgroup", "7"),
                 ("reserve", "--cgroup", "7", "--regions", "x"), ("reserve", "--cgroup", "no/such/cgroup", "--regions", "1"),
                 ("reserve", "--cgroup", "7", "--regions", "1", "--size", "x"), ("reserve", "--cgroup", "7", "--regions", "1", "x"),
                 ("reserve", "--cgroup", "7", "--regions", "0", "--size", "1G"),
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
    version = good("--version").split()[1]
    for line in ("device           /dev/flexmem0", "function         VF", f"driver version   {version}", "state            usable",
                 "order            fill_first", "fallback sizes   12.0 GiB, 8.0 GiB, 4.0 GiB",
                 "slots            8", "address space    64.0 GiB from 0x100000000 on, pages of 2.0 MiB"):
        assert line + "\n" in out, (line, out)
    assert "available        64.0 GiB, of which 64.0 GiB are free\n" \
        "in one piece     12.0 GiB\n" in out, out
    found = report("info", FAKE_LIMIT=8 * GIB)
    assert (found["available_total"], found["available_free"], found["capacity"]) == (8 * GIB, 8 * GIB, 64 * GIB), found
    found = report("info")
    assert found["fallback_sizes"] == [12 * GIB, 8 * GIB, 4 * GIB]
    assert (found["function"], found["order"], found["strategy"], found["acquire"]) == \
        ("VF", "fill_first", "first_fit", "lazy")
    assert found["device"] == "/dev/flexmem0" and found["max_batch"] == 64 and found["state"] == "usable"
    assert re.search("^state +wedged$", good("info", FAKE_STATE=3), re.M)
    # The firmware does not answer.
    assert re.search("^state +unresponsive$", good("info", FAKE_STATE=1), re.M) and report("info", FAKE_STATE=1)["state"] == "unresponsive"
    assert found["driver_version"] == version and report("info", FAKE_VERSION="0.9.1")["driver_version"] == "0.9.1"
    assert report("info", FAKE_VERSION="")["driver_version"] is None and "driver version   unknown\n" in good("info", FAKE_VERSION="")
    assert (found["space_page"], found["space_start"], found["space_length"]) == (2 << 20, 4 * GIB, 64 * GIB)
    assert "address space" not in good("info", FAKE_CAPABILITIES=0)
    assert report("info", FAKE_CAPABILITIES=0)["space_page"] == 0


@test
def domains():
    found = report("info")["domains"]
    assert len(found) == 1 and found[0]["memory"] == "device" and found[0]["sizes"] == [12 * GIB]
    assert "domain" not in good("info")
    out = good("info", FAKE_DOMAINS=2)
    assert "domain 0         device, 64.0 GiB, regions of 12.0 GiB\n" in out, out
    assert "domain 1         on-chip, 15.0 MiB and 1.0 MiB set aside, regions of 15.0 MiB\n" in out, out
    found = report("info", FAKE_DOMAINS=2)["domains"]
    assert [domain["id"] for domain in found] == [0, 1]
    assert found[1] == {"id": 1, "memory": "on-chip", "granule": 65536, "capacity": 15 << 20, "set_aside": 1 << 20,
                        "max_region": 15 << 20, "sizes": [15 << 20], "regions": 0,
                        "total": 0, "free": 0, "largest_free": 0, "program_total": 0, "program_free": 0,
                        "program_largest": 0, "tensor_largest": 0, "reserved": 0, "reserved_total": 0,
                        "exhausted": False, "program_exhausted": False}


@test
def policies():
    for policy, asked in (("default", 0), ("bind:1", 1 << 32 | 2), ("bind:0,1", 1 << 32 | 3), ("preferred:0", 2 << 32 | 1),
                          ("preferred:on-chip", 2 << 32 | 6), ("bind:on-chip,device", 1 << 32 | 7),
                          ("bind:0,on-chip", 1 << 32 | 7), ("interleave", 3 << 32), ("interleave:on-chip", 3 << 32 | 6),
                          ("bind:on-chip,1", 1 << 32 | 6), ("interleave:hbm,tcm", 3 << 32 | 7), ("bind:dimm", 1 << 32 | 1),
                          ("bind:1,host", 1 << 32 | 2)):
        assert "handle 1 " in good("alloc", "128", "--policy", policy, "--hold", "0", FAKE_DOMAINS=3, FAKE_MUST_ASK=asked)
        assert report("replay", "--policy", policy, trace(SMALL), FAKE_DOMAINS=3, FAKE_MUST_ASK=asked)["allocs"] == 3
    for policy, domains in (("bind:1", "0x2"), ("bind:on-chip", "0")):
        status, _, err = run("alloc", "128", "--policy", policy, "--hold", "0")
        assert status == 1 and f"the device does not have domains {domains}" in err, err
    for wrong in ("", ",", "1,", ",1", "1,1", "32", "-1", "x", "1x", "0x1", "1 ", "device,device", "hbm,device", "hb", "hbm2", "unknown", "1" * 16):
        status, _, err = run("alloc", "128", "--policy", f"bind:{wrong}", FAKE_DOMAINS=2)
        assert status == 2 and f"'{wrong}' is not a list of domains" in err, (wrong, err)
    for wrong, text in (("bind", "'' is not a list of domains"), ("", "no policy ''"), ("bin:1", "no policy 'bin'"),
                        ("default:1", "'default' takes no domains"), ("default:", "'default' takes no domains")):
        for command in (("alloc", "128"), ("replay", trace(SMALL))):
            status, _, err = run(*command, "--policy", wrong, FAKE_DOMAINS=2)
            assert status == 2 and text in err, (wrong, err)
    status, _, err = run("replay", "--cache", "--policy", "bind:0", trace(SMALL))
    assert status == 2 and "a cache has no --policy" in err, err


@test
def capabilities():
    assert "capabilities     scrub, map, rw, copy, page-tables\n" in good("info")
    found = report("info")
    assert found["capabilities"] == 31
    assert found["capability_names"] == ["scrub", "map", "rw", "copy", "page-tables"]
    assert "capabilities     none\n" in good("info", FAKE_CAPABILITIES=0)
    assert report("info", FAKE_CAPABILITIES=258)["capability_names"] == ["map"]


@test
def stats():
    assert "own allocations  0\n" in good("stats")
    assert report("stats")["own_handles"] == 0
    assert "failures so far  0\n" in good("stats")
    assert report("stats")["failures"] == 0


@test
def stats_of_a_user():
    out = good("stats", FAKE_ADMIN=0)
    for label in ("allocations", "allocs so far", "frees so far", "failures so far"):
        assert f"{label:16} -\n" in out, out
    found = report("stats", FAKE_ADMIN=0)
    assert all(found[key] is None for key in ("allocated", "allocs", "frees", "failures")), found
    assert found["own_handles"] == 0 and not found["exhausted"]


@test
def stats_of_usage():
    figures = {"FAKE_ORPHANED": 1 << 20, "FAKE_QUARANTINED": 3 << 20, "FAKE_SCRUBBED": 5 << 30}
    out = good("stats", **figures)
    for line in ("orphaned         1.0 MiB", "quarantined      3.0 MiB", "scrubbed so far  5.0 GiB",
                 "reserved         0 B", "open files       1", "resets so far    3", "timeouts so far  7"):
        assert line + "\n" in out, (line, out)
    found = report("stats", **figures)
    assert (found["orphaned"], found["quarantined"], found["scrubbed"], found["clients"],
            found["resets"], found["timeouts"], found["owned"]) == (1 << 20, 3 << 20, 5 << 30, 1, 3, 7, 0), found


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
    good("alloc", "3M", "--pattern", "7", "--hold", "0", "--mappable", "--policy", "interleave", FAKE_DOMAINS=5,
         FAKE_CHUNKS=5)
    # The memory is filled, then read back, and the READ fails.
    status, out, err = run("alloc", "1K", "--pattern", "7", "--hold", "0", FAKE_READ_AT=1,
                           FAKE_READ_ERROR=110)
    assert status == 1 and "check handle 1: the device's firmware did not answer" in err, err
    status, _, err = run("alloc", "1K", "--pattern", "7", "--hold", "0", FAKE_CAPABILITIES=8)
    assert status == 1 and "fill handle 1: the device cannot do this" in err, err


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
    # The output of the allocations before the failure is printed.
    assert out.startswith("handle 1  address") and out.count("\n") == 1, out


@test
def kinds_of_regions():
    for flags, kind in ((0, "shared"), (1, "program")):
        out = good("shell", stdin="alloc 1\nregions\nsegments\nregions --json\n",
                   FAKE_REGION_FLAGS=flags)
        assert len(re.findall(rf"  {kind}$", out, re.M)) == 2, out
        region, = json.loads(out[out.index("{"):])["regions"]
        assert region["program"] == bool(flags), region


@test
def regions_by_domain():
    # Every user may see the sums of a domain. In the fake, domain 0 has all regions.
    out = good("shell", stdin="alloc 5G\nregions --by-domain\n", FAKE_DOMAINS=2, FAKE_ADMIN=0)
    rows = [re.split(r" {2,}", line.strip()) for line in out.splitlines()[1:]]
    assert rows[0] == ["domain", "memory", "capacity", "regions", "size", "used", "free", "largest free"], out
    assert [rows[1][0]] + rows[1][3:] == ["0", "1", "12.0 GiB", "5.0 GiB", "7.0 GiB", "7.0 GiB"], out
    assert rows[2] == ["1", "on-chip", "15.0 MiB", "0", "0 B", "0 B", "0 B", "0 B"], out
    out = good("shell", stdin="alloc 5G --program\nregions --by-domain\nregions --by-domain --json\n", FAKE_REGION_FLAGS=1)
    assert re.search(r"^ +programs +12\.0 GiB +5\.0 GiB +7\.0 GiB +7\.0 GiB$", out, re.M), out
    domain, = json.loads(out[out.index("{"):])["domains"]
    assert (domain["program_total"], domain["program_free"], domain["program_largest"]) == (12 << 30, 7 << 30, 7 << 30), domain
    assert domain["tensor_largest"] == 0, domain
    # Empty memory that others have reserved is neither used nor free.
    out = good("shell", stdin="alloc 5G\nfree 1\nregions --by-domain\nregions --by-domain --json\n",
               FAKE_REGION_RESERVED=1, COLUMNS=100)
    assert re.search(r" used +free +largest free +reserved$", out, re.M), out
    assert re.search(r"^ +0  device +64\.0 GiB +1 +12\.0 GiB +0 B +0 B +0 B +12\.0 GiB$", out, re.M), out
    domain, = json.loads(out[out.index("{"):])["domains"]
    assert (domain["total"], domain["free"], domain["reserved"]) == (12 << 30, 0, 12 << 30), domain
    assert report("regions", "--by-domain", FAKE_DOMAINS=2)["domains"] == report("info", FAKE_DOMAINS=2)["domains"]
    status, _, err = run("regions", "--by-domain", "x")
    assert status == 2 and "unexpected argument 'x'" in err, err


@test
def fill_fails():
    for line, message in (("fill 9", "fill handle 9: no such allocation, range or binding of this open file"),
                          ("fill 1 --by map", "fill handle 1: it cannot be mapped: allocate it with "
                           "--mappable, or use --by copy")):
        status, _, err = run("shell", stdin=f"alloc 1\n{line}\n")
        assert status == 1 and message in err, err


@test
def owners():
    out = good("shell", stdin="alloc 5G\nalloc 1G\nfree 1\nlimit --cgroup 7 --bytes 8G --regions 4\n"
               "limit --cgroup 1000 --files 10\nowners\nowners --json\n",
               COLUMNS=120, FAKE_ORPHANED=4096)
    sums, table = out[out.index("   total  "):].split("\n\n")[:2]
    sums = re.split(r" {2,}", sums.splitlines()[1].strip())
    assert sums == ["12.0 GiB", "11.0 GiB", "1.0 GiB", "4.0 KiB", "0 B", "0 B", "1"], sums
    rows = [re.split(r" {2,}", line.strip()) for line in table.splitlines()]
    assert rows[1:] == [
        ["cgroup 7", "0", "-", "-", "0 B", "4.0 KiB", "0 B", "0", "0", "8.0 GiB/4/none/none"],
        ["cgroup 1000", "0", "-", "-", "1.0 GiB", "0 B", "6.0 GiB", "1", "1",
         "none/none/none/10"],
        ["client 1", "1000", "5000000", "-", "1.0 GiB", "0 B", "6.0 GiB", "1", "1",
         "none"]], rows
    found = json.loads(out[out.index("{"):])
    assert found["total"] == sum(found[key] for key in ("free", "owned", "orphaned", "reserved",
                                                        "quarantined")), found
    assert found["owners"][0]["limit"] == {"bytes": 8 * GIB, "regions": 4, "handles": None,
                                             "files": None}, found
    assert found["owners"][2] == {
        "kind": "client", "id": 1, "path": None, "parent": 1000, "uid": 1000, "pid": 5000000, "process": None, "bytes": GIB, "orphaned": 0,
        "leaving": 0, "waits_ms": 0, "peak": 6 * GIB, "slots": 1, "handles": 1, "files": 1, "removed": False, "reservation": 0, "reserved": 0,
        "limit": {"bytes": None, "regions": None, "handles": None, "files": None}, "failures": {}}, found


@test
def owners_that_wait():
    """The command shows how long freed memory of a file has waited for device programs."""
    waits = {"FAKE_LEAVING": 4096, "FAKE_WAITS_MS": 61999}
    assert " 4.0 KiB for 61 s " in good("shell", stdin="owners\n", COLUMNS=120, **waits)
    found = [one for one in json.loads(good("shell", stdin="owners --json\n", **waits))["owners"] if one["leaving"]]
    assert [(one["kind"], one["leaving"], one["waits_ms"]) for one in found] == [("client", 4096, 61999)], found


@test
def reserves():
    reserve = "reserve --cgroup 7 --size 8G --regions "
    out = good("shell", stdin=f"{reserve}2\nowners --json\n{reserve}1\nreserve --cgroup 7 --regions 0\n")
    lines = out.splitlines()
    assert lines[0] == "cgroup 7 has 2 reserved regions of 8.0 GiB", lines
    assert lines[-2:] == ["cgroup 7 has 1 reserved region of 8.0 GiB", "cgroup 7 has no reservation"], lines
    found = json.loads(out[out.index("{"):out.rindex("}") + 1])["owners"]
    assert [(one["reservation"], one["reserved"]) for one in found if one["id"] == 7] == [(2, 2)], found
    assert "limit  reserved" not in good("owners", COLUMNS=120)
    out = good("shell", stdin=f"{reserve}2\nowners\n", COLUMNS=120)
    assert [line.split()[-1] for line in out.splitlines() if "cgroup" in line] == ["GiB", "2", "0"], out
    assert report("reserve", "--cgroup", "7", "--size", "8G", "--regions", "1") == {
        "cgroup": 7, "path": None, "regions": 1, "size": 8 * GIB}
    # Without --size the first of the region sizes is used, which the fake kernel cannot reserve.
    status, out, err = run("reserve", "--cgroup", "7", "--regions", "1")
    assert (status, out) == (1, "") and err.startswith("flexmem: reserve: "), err
    status, out, err = run("reserve", "--cgroup", "7", "--regions", "9", "--size", "8G")
    assert (status, out, err) == (1, "", "flexmem: reserve: no further region: capacity\n"), err


@test
def owners_have_names():
    with open("/proc/self/comm", encoding="utf-8") as name:
        own = name.read().strip()
    assert f"  {os.getpid()}  {own}  " in good("owners", FAKE_OPENER=os.getpid())
    assert report("owners", FAKE_OPENER=os.getpid())["owners"][-1]["process"] == own


@test
def owners_leaves_out_its_own_file():
    this = (1 << 32) - 1
    assert "client 1" not in good("owners", FAKE_OPENER=this)
    assert [one["kind"] for one in report("owners", FAKE_OPENER=this)["owners"]] == ["cgroup"]
    # The allocations belong to the file of the shell.
    assert "client 1" in good("shell", stdin="owners\n", FAKE_OPENER=this)


@test
def own_limits():
    lines = good("limit", FAKE_LIMIT=GIB).splitlines()
    assert [re.split(r" {2,}", line.strip()) for line in lines] == [
        ["owner", "what", "used", "limit"],
        ["own cgroup", "bytes", "0 B", "1.0 GiB"],
        ["own cgroup", "regions", "0", "none"],
        ["own cgroup", "handles", "0", "none"],
        ["own cgroup", "files", "1", "none"]], lines
    found, = report("limit", FAKE_LIMIT=GIB)
    assert (found["kind"], found["id"], found["bytes"], found["files"]) == \
        ("cgroup", None, {"used": 0, "limit": GIB}, {"used": 1, "limit": None}), found


@test
def sets_limits():
    out = good("limit", "--cgroup", "1000", "--bytes", "8G", "--regions", "3", "--files", "9")
    assert [re.split(r" {2,}", line.strip()) for line in out.splitlines()[1:]] == [
        ["cgroup 1000", "bytes", "0 B", "8.0 GiB", "8.0 GiB", "1000"],
        ["cgroup 1000", "regions", "0", "3", "3", "1000"],
        ["cgroup 1000", "files", "1", "9", "9", "1000"]], out
    rows = good("limit", "--default", "--handles", "3").splitlines()[1:]
    assert rows[0].split("  ")[0] == "default" and rows[0].endswith("  3") and len(rows) == 1, rows
    found, = report("limit", "--default", "--handles", "3")
    assert (found["kind"], found["handles"]["limit"]) == ("default", 3), found
    assert "cgroup 7  bytes  0 B  1.0 GiB  1.0 GiB  7\n" in re.sub(r" {2,}", "  ", good(
        "limit", "--all", "--cgroup", "7", "--bytes", "1G", FAKE_LIMIT_FOR_ALL=1))
    # Orphaned bytes still count against the limit.
    out = good("shell", stdin="alloc 1K\nlimit --cgroup 1000\n", FAKE_ORPHANED=8192)
    assert "cgroup 1000  bytes    9.0 KiB   none       none  -\n" in out, out
    # The first command "limit" sets and shows a limit. The second removes it.
    out = good("shell", stdin="alloc 1K\nlimit --cgroup 1000 --handles 5\n"
               "limit --cgroup 1000 --handles none\nlimit --cgroup 1000 --json\n")
    assert "cgroup 1000  handles     1      5          5  1000\n" in out, out
    found, = json.loads(out[out.index("[\n"):])
    assert (found["kind"], found["id"], found["handles"], found["bytes"]["used"]) == \
        ("cgroup", 1000, {"used": 1, "limit": None, "effective": None, "set_by": None, "set_by_id": None}, 1024), found


@test
def limit_fails():
    for args, message in ((("--cgroup", "99", "--bytes", "1"), "limit: no cgroup 99"),
                          (("--cgroup", "9"), "limit: no cgroup 9 with an open file, "
                           "memory or a limit that you may see")):
        status, out, err = run("limit", *args)
        assert (status, out, err) == (1, "", f"flexmem: {message}\n"), (status, out, err)
    status, _, err = run("limit", "--cgroup", "9", "--bytes", "1", FAKE_ADMIN=0)
    assert status == 1 and "limit of bytes: only the administrator may do this" in err, err


@test
def limits_are_named():
    status, out, err = run("alloc", "2G", "--hold", "0", "--json", FAKE_LIMIT=GIB)
    assert status == 1 and "cgroup limit (0 B of 1.0 GiB used: see sudo flexmem owners)" in err, err
    assert json.loads(out)[0]["error"]["limit"] == "cgroup_limit", out
    status, out, err = run("shell", stdin="limit --cgroup 1000 --handles 1\nalloc 1G\nalloc 1\n")
    assert status == 1 and "(1 of 1 allocations used: see sudo flexmem owners)" in err, err
    assert err.endswith("; own 1.0 GiB can be freed\n"), err


@test
def addresses_of_a_pf():
    assert "address 0x2000000000:0x0" in good("alloc", "1", "--hold", "0", FAKE_MODE=0)


@test
def free_outside_a_shell():
    """Outside of a shell these commands have no allocation to work on, so they fail without opening a device."""
    for command in ("fill", "check", "free"):
        status, out, err = run(command, "1", FAKE_NODE=0)
        assert (status, out) == (2, "") and "only inside 'flexmem shell'" in err and command in err, err


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
    status, _, err = run("trim", "--json=1")
    assert status == 2 and "takes no value" in err, err
    status, _, err = run("trim", "now")
    assert status == 2 and "unexpected argument 'now'" in err, err
    # The fake driver refuses TRIM.
    status, out, err = run("trim", "--json", FAKE_TRIM_AT=1, FAKE_TRIM_ERROR=1)
    assert status == 1 and "only the administrator" in err
    assert json.loads(out)["error"]["errno"] == -1


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
        set(report("limit")[0]["bytes"]) | set(report("limit", "--cgroup", "7", "--bytes", "1")[0]["bytes"])
    keys |= {"devices", "device", "file", "function", "node", "removed"} | set(report("release", "--cgroup", "7"))
    doctor = json.loads(run("doctor", "--json", FAKE_NODE=0)[1])
    keys |= set(doctor) | set(doctor["findings"][0])
    limits = trace("/a all bytes=1\n")
    keys |= set(report("limit", "--check", limits)) | set(report("limit", "--apply", limits)["lines"][0])
    out = good("shell", stdin="alloc 1 --pattern 0\ncheck 1 --json\n")
    keys |= set(json.loads(out[out.index("{"):]))
    keys |= set(error_of(("info", "--json"), FAKE_NODE=0)) | {"help", "version", "freed", "pattern"}
    keys |= set(json.loads(run("alloc", "2G", "--hold", "0", "--json",
                               FAKE_LIMIT=GIB)[1])[0]["error"])
    missing = [key for key in sorted(keys) if not re.search(rf"\b{key}\b", man)]
    assert not missing, missing


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


@test
def lines_of_stderr_are_whole():
    """Each message is written with one call, so that messages of other processes do not come in between."""
    for args in (("info", "x"), ("--nonsense",), ("info", "--nonsense"), ("nonsense",), ("alloc", "13G"),
                 ("info", "--device", "PF"), ("free", "9"), ("limit", "--cgroup", "9"),
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
            "loads it with a simulated device" in err and err.count("\n") == 1, err
        # The man page that the message names is installed, and has that section.
        assert "see DRIVER in flexmem(1)" in err and "README" not in err, err
    with open(MAN, encoding="ascii") as text:
        driver = re.search(r"^\.Sh DRIVER\n((?:(?!\.Sh).*\n)+)", text.read(), re.M)
    assert driver and all(f"sudo {what}" in driver[1] for what in (
        "insmod", "make modules_install", "modprobe flexmem_sim")), driver
    status, _, err = run("info", FAKE_NODE=0)
    assert status == 1 and "flexmem.ko is loaded, but no device is there" in err and \
        "see DRIVER in flexmem(1)" in err, err
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
    """If a PF cannot be opened, the advice never names a group, whatever the mode of the node. If there is a VF, the
    advice is about the VF."""
    group = grp.getgrall()[-1]
    mine = {"FAKE_ACCESS": 0o660, "FAKE_GROUP": group.gr_gid}
    for error in (errno.EPERM, errno.EACCES):
        for args, env in ((("--device", "PF"), {}), (("--device", "/dev/flexmem0"), {}), ((), {}),
                          ((), {"FLEX_DEVICE": "PF"}), ((), {"FLEX_DEVICE": "/dev/flexmem0"})):
            for access in (mine, {}):
                status, _, err = run("info", *args, FAKE_MODE=0, FAKE_OPEN_ERROR=error, **access, **env)
                assert status == 1 and "may open a PF" in err and "CAP_SYS_ADMIN" in err \
                    and "pf_open=mode" in err and "usermod" not in err, (error, args, env, err)
    # There is also a VF, whose group the user should join.
    for args in ((), ("--device", "VF")):
        _, _, err = run("info", *args, FAKE_MODE=0, FAKE_SECOND=1, FAKE_OPEN_ERROR=13, **mine)
        assert "/dev/flexmem1 is for the group" in err, err
    _, _, err = run("info", "--device", "PF", FAKE_MODE=0, FAKE_SECOND=1, FAKE_OPEN_ERROR=13, **mine)
    assert "may open a PF" in err and "usermod" not in err, err


@test
def list_shows_all_functions():
    found = report("list", FAKE_MODE=0, FAKE_SECOND=1)["functions"]
    assert [f["index"] for f in found] == [0, 1]
    # The VF comes first. The fake sysfs has no links, so the names of the nodes are the ids.
    assert [f["function"] for f in found] == ["VF", "PF"], found
    assert [f["node"] for f in found] == ["/dev/flexmem1", "/dev/flexmem0"], found
    assert [f["id"] for f in found] == ["flexmem1", "flexmem0"], found
    info = report("info", "--device", "/dev/flexmem0", FAKE_MODE=0)
    assert found[1]["capacity"] == info["capacity"] and found[1]["slots"] == info["slots"], found
    assert found[1]["domains"] == info["domains"] and found[1]["error"] is None, found
    text = good("list", FAKE_MODE=0, FAKE_SECOND=1, COLUMNS=120)
    assert re.fullmatch(r"index +node .*access\n +0 +/dev/flexmem1 .* VF .*\n +1 +/dev/flexmem0 .* PF .*usable\n", text), text


@test
def list_names_what_cannot_be_opened():
    status, out, err = run("list", "--json", FAKE_OPEN_ERROR=13)
    found = json.loads(out)["functions"]
    assert (status, err) == (0, "") and found[0]["error"]["name"] == "EACCES", out
    assert found[0]["slots"] is found[0]["capacity"] is found[0]["domains"] is None, out
    assert "usable" not in good("list", FAKE_OPEN_ERROR=13)
    assert good("list", FAKE_STATE=1).rstrip().endswith("unresponsive")


@test
def list_says_the_id_of_a_node():
    assert good("list", "--id", "/dev/flexmem1", FAKE_SECOND=1) == "flexmem1\n"
    assert report("list", "--id", "/dev/flexmem0", FAKE_SECOND=1) == {"id": "flexmem0"}
    # The node is not opened.
    assert good("list", "--id", "/dev/flexmem0", FAKE_OPEN_ERROR=13) == "flexmem0\n"
    for node in ("/dev/null", "/dev/flexmem1", "flexmem0"):
        assert error_of(("list", "--json", "--id", node))["name"] == "ENODEV"


@test
def reports_on_all_functions():
    both = dict(FAKE_MODE=0, FAKE_SECOND=1)
    nodes = ["/dev/flexmem1", "/dev/flexmem0"]
    # Each open of the fake gets a number, which owners shows.
    assert [len(f["owners"]) for f in report("owners", "--all", **both)["functions"]] == [2, 2]
    assert re.findall(r"^/dev/.*", good("owners", "--all", **both), re.M) == [f"{node} ({node[5:]})" for node in nodes]
    for command in ("info", "segments", "stats", "regions", "regions --by-domain"):
        command = command.split()
        found = report(*command, "--all", **both)["functions"]
        assert [f.pop("device") for f in found] == nodes, found
        assert [f.pop("id") for f in found] == ["flexmem1", "flexmem0"], found
        for node, one in zip(nodes, found):
            alone = report(*command, "--device", node, **both)
            alone.pop("device", None)
            assert one == alone, (command, one, alone)
        text = good(*command, "--all", **both)
        parts = [f"{node} ({node[5:]})\n" + good(*command, "--device", node, **both) for node in nodes]
        assert text == "\n".join(parts), text
    # A function that cannot be opened does not hide the others.
    status, out, err = run("info", "--all", "--json", FAKE_OPEN_ERROR=13, **both)
    found = json.loads(out)["functions"]
    assert status == 1 and [f["error"]["name"] for f in found] == ["EACCES"] * 2 and err.count("flexmem: ") == 2, (out, err)
    assert [f["device"] for f in found] == nodes, found
    assert good("info", "--all", FAKE_NODE=0) == "no function\n"
    assert report("info", "--all", FAKE_NODE=0) == {"functions": []}
    assert "exclude each other" in run("info", "--all", "--device", "VF")[2]
    assert "keeps to one device" in run("shell", stdin="info --all\n")[2]


@test
def list_of_no_function():
    assert good("list", FAKE_NODE=0) == "no function\n" and report("list", FAKE_NODE=0) == {"functions": []}
    assert good("list", FLEXMEM_VISIBLE_DEVICES="") == "no function\n"
    assert len(report("list", FLEXMEM_VISIBLE_DEVICES="0,0")["functions"]) == 1
    status, out, err = run("list", "--device", "VF")
    assert (status, out) == (2, "") and "all functions, not one" in err, err


@test
def wrong_numbers_are_named():
    for args, message in ((("0",), "LENGTH is at least 1"),
                          (("1", "--align", "3"), "alignment '3' is not a power of two")):
        status, out, err = run("alloc", *args, "--hold", "0")
        assert (status, out, err) == (2, "", f"flexmem alloc: {message}\nTry 'flexmem alloc --help'.\n"), err
    status, out, err = run("alloc", "1", "--align", "1P", "--hold", "0")
    assert (status, out) == (1, "") and re.fullmatch(
        "flexmem: alloc: invalid request: the alignment of 1.0 PiB is above the largest of this device\n", err), err
    error = json.loads(run("alloc", "1", "--align", "1P", "--hold", "0", "--json")[1])[0]["error"]
    assert (error["name"], error["limit"], error["asked"]) == ("EINVAL", "alignment_max", 1 << 50), error


if __name__ == "__main__":
    sys.exit(main(tests))
