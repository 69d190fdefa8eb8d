#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests `flexmem watch`, and the schema files of what the command prints with --json. Prints TAP."""

import copy
import json
import os
import signal
import subprocess
import sys

import jsonschema

sys.dont_write_bytecode = True
from tool import BUILD, GIB, HERE, TOOL, Tree, good, main, run, test, tests

ONE, OTHER = "pci-0000:03:00.0", "pci-0000:03:00.1"


def schema(name):
    with open(os.path.join(HERE, "../../userlib/schema", name + ".json"), encoding="ascii") as file:
        return json.load(file)


def closed(part):
    """Returns the schema without room for keys that it does not name, so that a new key needs a row in the file."""
    part = copy.deepcopy(part)
    todo = [part]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            if "properties" in one:
                one["additionalProperties"] = False
            todo += one.values()
        elif isinstance(one, list):
            todo += one
    return part


def check(name, value):
    jsonschema.Draft7Validator(schema(name)).validate(value)
    jsonschema.Draft7Validator(closed(schema(name))).validate(value)


def events(script, count, *args, **env):
    """Runs `watch` until it has printed @count events, once as text and once as JSON."""
    env = {"FAKE_PCI": 1, **env, "FAKE_EVENTS": script}
    text = good("watch", "--count", str(count), *args, **env).splitlines()
    found = [json.loads(line) for line in good("watch", "--json", "--count", str(count), *args, **env).splitlines()]
    assert len(text) == len(found) == count, (text, found)
    for number, (line, one) in enumerate(zip(text, found), 1):
        check("watch", one)
        assert one["number"] == number, found
        assert line.startswith(f"{number}  {one['function']}  {one['event']}: "), line
        del one["number"], one["node"]
    return found


@test
def each_event():
    one = {"function": ONE}
    usable = {**one, "event": "state", "state": "usable", "error": None}
    for script, expected in (
            ("nothing reset reset nothing", [{**one, "event": "reset", "resets": 4}, {**one, "event": "reset", "resets": 5}]),
            ("reset+reset", [{**one, "event": "reset", "resets": 5}]),
            ("capacity:1024", [{**one, "event": "capacity", "capacity": 1024}]),
            ("exhausted:1 exhausted:0", [{**one, "event": "exhausted", "tensors": True, "programs": False},
                                         {**one, "event": "exhausted", "tensors": False, "programs": False}]),
            ("pressure:2 pressure:1 pressure:0", [{**one, "event": "pressure", "level": level, "in_use": 0, "memory": 64 * GIB}
                                                  for level in ("critical", "moderate", "none")]),
            ("remove:0 nothing add:0", [{**one, "event": "removed"}, usable]),
            # The function was bound again while nobody looked.
            ("remove:0+add:0", [{**one, "event": "removed"}, usable]),
            ("add:1 remove:1", [{**usable, "function": OTHER}, {"function": OTHER, "event": "removed"}]),
            ("reset+capacity:1+pressure:1", [{**one, "event": "reset", "resets": 4}, {**one, "event": "capacity", "capacity": 1},
                                             {**one, "event": "pressure", "level": "moderate", "in_use": 0, "memory": 1}])):
        # The second function has a number, and is not there yet.
        env = {"FAKE_LATE": 1} if "add:1" in script else {}
        found = events(script, len(expected), **env)
        assert found == expected, (script, found)


@test
def events_of_two_functions():
    found = events("reset remove:1", 3, FAKE_SECOND=1)
    assert [(one["function"], one["event"]) for one in found] == [(ONE, "reset"), (OTHER, "reset"), (OTHER, "removed")], found
    found = events("reset", 1, FAKE_SECOND=1, FLEXMEM_VISIBLE_DEVICES=OTHER)
    assert [one["function"] for one in found] == [OTHER], found


@test
def a_function_that_cannot_be_opened():
    found = events("remove:0 refuse:13+add:0 refuse:0 reset", 4)
    assert [one.get("state", one["event"]) for one in found] == ["removed", "unusable", "usable", "reset"], found
    assert found[1]["error"]["name"] == "EACCES" and found[2]["error"] is None, found


@test
def a_node_without_a_function():
    """A container may keep the node of a function that is gone."""
    found = events("nothing nothing nothing refuse:0 reset", 2, FAKE_OPEN_ERROR=19)
    assert [one.get("state", one["event"]) for one in found] == ["usable", "reset"], found
    found = events("refuse:19+remove:0+add:0 nothing nothing refuse:0", 3)
    assert [one.get("state", one["event"]) for one in found] == ["removed", "unusable", "usable"], found


@test
def each_state():
    found = events("state:3 state:0 state:1 state:2 state:4 state:5", 6)
    assert [one["event"] for one in found] == ["state"] * 6, found
    assert [one["state"] for one in found] == ["wedged", "usable", "unresponsive", "suspended", "removed", "unknown"], found


@test
def ends():
    assert good("watch", "--timeout", "0") == "" and good("watch", "--timeout", "1", "--json", FAKE_EVENTS="nothing") == ""
    for args in (("x",), ("--count", "0"), ("--count", "x"), ("--timeout", "x"), ("--device", "VF")):
        assert run("watch", *args)[0] == 2, args
    status, out, _ = run("watch", "--json", "--count", "0")
    check("watch", json.loads(out))
    # The reader has gone.
    with subprocess.Popen([TOOL, "watch"], stdout=subprocess.PIPE, env={**os.environ, "FAKE_EVENTS": "reset " * 9}) as process:
        process.stdout.close()
        assert process.wait() in (1, -signal.SIGPIPE)


@test
def schemas_of_list_and_release():
    for env in ({}, {"FAKE_PCI": 1, "FAKE_SECOND": 0}, {"FAKE_NODE": 0}, {"FAKE_OPEN_ERROR": 13}, {"FAKE_DOMAINS": 4}):
        check("list", json.loads(good("list", "--json", **env)))
    check("list", json.loads(run("list", "x", "--json")[1]))
    with Tree("/a") as tree:
        held = {"FAKE_HELD": tree.id("/a"), "FAKE_MOUNTS": tree.mounts, "FAKE_PCI": 1}
        check("release", json.loads(good("release", "--json", "--cgroup", "/a", **held)))
        check("release", json.loads(run("release", "--json", "--cgroup", "/a", "--timeout", "0", FAKE_HELD_FOR=9, **held)[1]))
    check("release", json.loads(good("release", "--json", "--cgroup", "7")))
    check("release", json.loads(run("release", "--json")[1]))


@test
def schemas_only_grow():
    """The keys that a schema file has had. A row may be added here, and none may be taken away."""
    had = {"list": "functions index node id function bus address parent driver state slots capacity domains error errno name text memory granule "
                   "set_aside max_region sizes regions total free largest_free program_total program_free program_largest "
                   "tensor_largest reserved reserved_total exhausted program_exhausted",
           "release": "cgroup path released functions function node bytes handles files error errno name text",
           "watch": "number event function node resets state capacity tensors programs level in_use memory error errno name text"}

    def keys(part):
        if isinstance(part, list):
            return set().union(*map(keys, part))
        if not isinstance(part, dict):
            return set()
        return set(part.get("properties", ())) | set().union(*map(keys, part.values()))

    for name, text in had.items():
        jsonschema.Draft7Validator.check_schema(schema(name))
        assert keys(schema(name)) == set(text.split()), name


if __name__ == "__main__":
    sys.exit(main(tests))
