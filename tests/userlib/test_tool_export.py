#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests `flexmem export`, the figures for Prometheus. Prints TAP."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys

sys.dont_write_bytecode = True
from tool import GIB, HERE, Tree, good, main, run, test, tests, tmp

SAMPLE = re.compile(r'(flexmem_\w+)\{((?:\w+="(?:[^"\\]|\\.)*",?)*)\} (\d+)')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def parse(text):
    """Returns {name: [(labels, number)]}. The text must be as Prometheus wants it: each metric once, with help and type."""
    found, name = {}, None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split()[2]
            assert name not in found, f"{name} twice"
            found[name] = []
        elif line.startswith("# TYPE "):
            assert line.split()[2] == name and line.split()[3] == ("counter" if name.endswith("_total") else "gauge"), line
        else:
            match = SAMPLE.fullmatch(line)
            assert match and match[1] == name, line
            labels = {key: re.sub(r"\\(.)", r"\1", value) for key, value in LABEL.findall(match[2])}
            assert labels not in [one for one, _ in found[name]], line
            found[name].append((labels, int(match[3])))
    return found


def one(found, name, **labels):
    """Returns the number of the only sample of a metric that has these labels."""
    numbers = [number for has, number in found[name] if labels.items() <= has.items()]
    assert len(numbers) == 1, (name, labels, found[name])
    return numbers[0]


def add_up(found):
    total, = (number for _, number in found["flexmem_acquired_bytes"])
    assert sum(number for _, number in found["flexmem_memory_bytes"]) == total, found
    assert sum(number for _, number in found["flexmem_cgroup_own_bytes"]) == one(found, "flexmem_memory_bytes", use="used"), found


def exported(*args, before="", **env):
    """The figures after commands in the same shell, whose open file has the allocations."""
    out = good("shell", stdin=before + " ".join(("export", *args)) + "\n", **env)
    return parse(out[out.index("# HELP"):])


@test
def figures_add_up():
    found = exported(before="alloc 5G\nalloc 1000\n", FAKE_ORPHANED=GIB, FAKE_QUARANTINED=4096, FAKE_SCRUBBED=7)
    add_up(found)
    used = 5 * GIB + 1024
    assert one(found, "flexmem_memory_bytes", use="used") == used, found
    assert one(found, "flexmem_memory_bytes", use="leaving") == GIB
    assert one(found, "flexmem_memory_bytes", use="quarantined") == 4096
    assert one(found, "flexmem_scrubbed_bytes_total") == 7
    assert (one(found, "flexmem_resets_total"), one(found, "flexmem_timeouts_total")) == (3, 7), found
    assert one(found, "flexmem_cgroup_own_bytes", cgroup="other") == used
    version = good("--version").split()[1]
    assert one(found, "flexmem_function_info", mode="VF", driver="", version=version) == 1, found["flexmem_function_info"]
    assert one(found, "flexmem_function_state", state="usable") == 1, found["flexmem_function_state"]
    assert one(found, "flexmem_pressure_level") == 0 and one(parse(good("export", FAKE_LEVEL=2)), "flexmem_pressure_level") == 2
    assert one(found, "flexmem_domain_acquired_bytes", domain="0") == one(found, "flexmem_acquired_bytes")
    assert one(found, "flexmem_allocations_total") == 2, found
    assert found["flexmem_cgroup_bytes"] == [], found


@test
def failures_have_a_reason():
    with Tree("/t/a") as tree:
        out = good("shell", stdin="alloc 1G\nexport --show /\n", FAKE_MOUNTS=tree.mounts, FAKE_UID=tree.id("/t/a"), FAKE_PARENT=tree.id("/t"))
        found = parse(out[out.index("# HELP"):])
        assert all(number == 0 for _, number in found["flexmem_cgroup_failures_total"]), found
        failed = f"limit --cgroup {tree.id('/t/a')} --bytes 1G\nalloc 2G\nalloc 3G\nalloc 4096T\nexport --show /\nowners --json\n"
        _, out, _ = run("shell", stdin=failed, FAKE_MOUNTS=tree.mounts, FAKE_UID=tree.id("/t/a"), FAKE_PARENT=tree.id("/t"))
        text, owners = out[out.index("# HELP"):].split("\n{", 1)
        found = parse(text + "\n")
        for cgroup in ("/t", "/t/a"):
            sums = {labels["reason"]: number for labels, number in found["flexmem_cgroup_failures_total"] if labels["cgroup"] == cgroup}
            assert sums.pop("cgroup_limit") == 3 and len(sums) == 10 and not any(sums.values()), (cgroup, sums)
        told = {owner["path"]: owner["failures"] for owner in json.loads("{" + owners)["owners"] if owner["kind"] == "cgroup"}
        assert told == {"/t": {"cgroup_limit": 3}, "/t/a": {"cgroup_limit": 3}}, told


@test
def only_cgroups_below_a_parent_are_named():
    with Tree("/tenants/a", "/tenantsx") as tree:
        ids = {"FAKE_MOUNTS": tree.mounts, "FAKE_UID": tree.id("/tenants/a"), "FAKE_PARENT": tree.id("/tenants")}
        before = f"alloc 5G\nlimit --cgroup {tree.id('/tenants')} --bytes 8G\nlimit --cgroup {tree.id('/tenantsx')} --bytes 1G\n"
        for show, names in (("/tenants", ["/tenants/a", "other"]), ("/tenants/", ["/tenants/a", "other"]),
                            ("/", ["/tenants", "/tenants/a", "/tenantsx", "other"]), ("/tenants/a", ["other"])):
            found = exported("--show", show, before=before, **ids)
            add_up(found)
            assert sorted(labels["cgroup"] for labels, _ in found["flexmem_cgroup_own_bytes"]) == names, (show, found)
        found = exported("--show", "/", before=before, **ids)
        assert one(found, "flexmem_cgroup_own_bytes", cgroup="/tenants") == 0
        assert one(found, "flexmem_cgroup_bytes", cgroup="/tenants") == 5 * GIB
        assert one(found, "flexmem_cgroup_limit_bytes", cgroup="/tenants") == 8 * GIB
        assert all(labels["cgroup"] != "/tenants/a" for labels, _ in found["flexmem_cgroup_limit_bytes"]), found


@test
def removed_cgroups_are_one_series():
    with Tree("/tenants/a") as tree:
        gone = tree.id("/tenants/a")
        ids = {"FAKE_MOUNTS": tree.mounts, "FAKE_UID": gone, "FAKE_REMOVED": gone, "FAKE_PARENT": tree.id("/tenants")}
        before = f"alloc 5G\nlimit --cgroup {tree.id('/tenants')} --bytes 8G\n"
        os.rmdir(tree.root + "/tenants/a")
        for show, series in (("/tenants", "removed"), ("/", "removed"), ("/other", "other")):
            found = exported("--show", show, before=before, **ids)
            add_up(found)
            assert one(found, "flexmem_cgroup_own_bytes", cgroup=series) == 5 * GIB, (show, found)


@test
def names_spoil_nothing():
    """A tenant chooses a name that would end a label, a line or the file, and others keep their figures."""
    for name in ('/t/"', "/t/\\", "/t/\x1b[2J", "/t/" + "x" * 255, '/t/"} 7', os.fsdecode(b"/t/\xff")):
        with Tree(name) as tree:
            found = exported("--show", "/t", before="alloc 5G\n", FAKE_MOUNTS=tree.mounts, FAKE_UID=tree.id(name))
            add_up(found)
            escaped = name.replace("\\", "\\\\").replace("\x1b", "\\x1b").replace(os.fsdecode(b"\xff"), "\\xff")
            assert one(found, "flexmem_cgroup_own_bytes", cgroup=escaped) == 5 * GIB, found


@test
def all_functions():
    found = parse(good("export", FAKE_SECOND=1, FAKE_PCI=1))
    ids = [labels["function"] for labels, _ in found["flexmem_function_info"]]
    assert len(set(ids)) == 2, ids
    for name in ("flexmem_capacity_bytes", "flexmem_acquired_bytes", "flexmem_resets_total"):
        assert [labels["function"] for labels, _ in found[name]] == ids, found[name]


@test
def a_function_that_cannot_be_read():
    status, out, err = run("export", FAKE_OPEN_ERROR=13)
    found = parse(out)
    assert status == 1 and "/dev/flexmem0" in err, err
    assert one(found, "flexmem_function_readable") == 0 and found["flexmem_acquired_bytes"] == [], found
    # The owners that are seen have less than what is used: a caller who does not see all, or a snapshot of two moments.
    with Tree("/a") as tree:
        held = {"FAKE_HELD": tree.id("/a"), "FAKE_HELD_FOR": 1000, "FAKE_MOUNTS": tree.mounts}
        status, out, err = run("export", FAKE_ADMIN=0, FAKE_UID=tree.id("/a"), **held)
        assert status == 1 and "only the administrator sees all" in err, err
        status, out, err = run("export", **held)
        assert status == 1 and "the owners changed during each reading" in err and "administrator" not in err, err
        # The next snapshot is whole.
        good("export", FAKE_HELD=tree.id("/a"), FAKE_HELD_FOR=3, FAKE_MOUNTS=tree.mounts)


@test
def a_function_that_goes_away():
    """It is left out, and the one that has its place in the list then is not."""
    found = parse(good("export", FAKE_SECOND=1, FAKE_LEAVES=1))
    assert [labels["node"] for labels, _ in found["flexmem_function_info"]] == ["/dev/flexmem1"], found
    assert one(found, "flexmem_function_readable") == 1
    # One that stays and cannot be opened is not left out.
    status, out, _ = run("export", FAKE_OPEN_ERROR=19)
    assert status == 1 and one(parse(out), "flexmem_function_readable") == 0, out


@test
def owners_of_two_moments():
    """A cgroup after the first 64 owners has freed memory before the driver reads it. The sums hold, and it is read again."""
    with Tree("/t/a") as tree:
        ids = {"FAKE_MOUNTS": tree.mounts, "FAKE_UID": tree.id("/t/a"), "FAKE_PARENT": tree.id("/t")}
        for torn, above in ((0, 0), (1, 0), (49, 0), (1000, GIB)):
            found = exported("--show", "/", before=f"alloc 5G\nlimit --cgroup {tree.id('/t')} --bytes 8G\n", FAKE_TORN=torn, **ids)
            add_up(found)
            # If it changes each time, figures that add up are better than none.
            assert one(found, "flexmem_cgroup_own_bytes", cgroup="/t") == above, (torn, found["flexmem_cgroup_own_bytes"])


@test
def a_file_is_written_aside():
    path = os.path.join(tmp.name, "metrics", "flexmem.prom")
    status, _, err = run("export", "--output", path)
    assert status == 1 and path in err and not os.path.exists(os.path.dirname(path)), err
    os.mkdir(os.path.dirname(path))
    assert good("export", "--output", path) == ""
    with open(path, encoding="ascii") as file:
        assert parse(file.read()) == parse(good("export"))
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o640
    assert os.listdir(os.path.dirname(path)) == ["flexmem.prom"]


def promtool(*args, stdin=""):
    done = subprocess.run([os.path.join(HERE, "promtool.sh"), *args], input=stdin, text=True, check=False, cwd=tmp.name,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout


@test
def promtool_takes_the_figures():
    with Tree("/t/a", '/t/"\\') as tree:
        ids = {"FAKE_MOUNTS": tree.mounts, "FAKE_UID": tree.id('/t/"\\'), "FAKE_PARENT": tree.id("/t"), "FAKE_SECOND": 1, "FAKE_PCI": 1}
        out = good("shell", stdin=f"alloc 5G\nlimit --cgroup {tree.id('/t')} --bytes 8G\nexport --show /\n", **ids)
    promtool("check", "metrics", stdin=out[out.index("# HELP"):])


@test
def alerts_fire_when_they_should():
    system = os.path.join(HERE, "../../userlib/system")
    for path in (os.path.join(system, "flexmem.rules.yml"), os.path.join(HERE, "flexmem.rules_test.yml")):
        shutil.copy(path, tmp.name)
    promtool("check", "rules", "flexmem.rules.yml")
    promtool("test", "rules", "flexmem.rules_test.yml")
    # Each alert has a test, and each metric that an alert names exists.
    with open(os.path.join(tmp.name, "flexmem.rules.yml"), encoding="ascii") as file:
        rules = file.read()
    with open(os.path.join(tmp.name, "flexmem.rules_test.yml"), encoding="ascii") as file:
        cases = file.read()
    alerts = re.findall(r"alert: (\w+)", rules)
    assert len(alerts) > 4 and all(cases.count(f"alertname: {alert}\n") == (1 if alert in
                                   ("FlexmemFunctionFull", "FlexmemCgroupAtItsLimit", "FlexmemMemoryIsQuarantined") else 2)
                                   for alert in alerts), alerts
    known = parse(good("export"))
    assert set(re.findall(r"flexmem_\w+(?=[ {[])", "\n".join(re.findall(r"expr: .*(?:\n {10,}.*)*", rules)))) <= set(known), rules


@test
def wrong_arguments():
    for args in (("--show", "tenants"), ("more",), ("--json",), ("--device", "/dev/flexmem0")):
        assert run("export", *args)[0] == 2, args


if __name__ == "__main__":
    sys.exit(main(tests))
