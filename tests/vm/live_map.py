#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Draws a map of a VF while files of several cgroups allocate, free and fail; see scrapes.sh."""

import json
import os
import re
import signal
import subprocess
import time

import flexmem
from scrapes import NAMES, PARENT, ROOT, move

PAGE = "/tmp/live_map.html"
# The map enables this event last.
ENABLED = "/sys/kernel/tracing/instances/flexmem-map/events/flexmem/flexmem_region_remove/enable"
OLD, KNOWN, NEW = 1 << 20, 1 << 16, 1 << 18
LIMIT = 8 << 20


def label(name):
    return PARENT + "/" + name.replace(b"\\", b"\\\\").replace(b"\xff", b"\\xff").replace(b"\x1b", b"\\x1b").decode()


def open_in(name):
    """Opens a file that belongs to a new cgroup."""
    path = ROOT + PARENT.encode() + b"/" + name
    os.mkdir(path)
    subprocess.run(["flexmem", "limit", "--cgroup", path[len(ROOT):], "--bytes", str(LIMIT)], check=True, stdout=subprocess.DEVNULL)
    move(path, os.getpid())
    device = flexmem.Device()
    move(ROOT, os.getpid())
    return device


def record(action):
    """Returns the data of a map that is recorded while something happens."""
    with subprocess.Popen(["flexmem", "map", "--seconds", "86400", PAGE]) as process:
        # Only a hang takes so long.
        for _ in range(60000):
            if os.path.exists(ENABLED) and open(ENABLED, encoding="ascii").read() == "1\n":
                break
            assert process.poll() is None, "the map has ended"
            time.sleep(0.01)
        else:
            process.kill()
            raise AssertionError("the map does not begin")
        action()
        # A shell that began the test in the background has made it ignore SIGINT.
        process.send_signal(signal.SIGTERM)
        assert not process.wait(600)
    assert not os.path.exists(ENABLED)
    with open(PAGE, encoding="utf-8") as file:
        return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', file.read(), re.S)[1])


def main():
    os.mkdir(ROOT + PARENT.encode())
    files = [open_in(name) for name in NAMES]
    # The last member of these has no address in the map, because nothing happens to it.
    old = [file.alloc(OLD) for file in files]
    known = [file.alloc(KNOWN) for file in files]
    places = [(one.address.region_id, one.address.offset) for one in known]
    new = []

    def act():
        for file in files:
            new.append(file.alloc(NEW))
        for one in known:
            one.close()
        try:
            files[0].alloc(LIMIT)
            raise AssertionError("the limit has not refused this")
        except flexmem.OutOfMemory:
            pass

    data = record(act)
    bounds = {place: int(region.rsplit("0x", 1)[1], 16) for address, place, region in data["ranges"] if address is not None}
    nowhere, = (place for address, place, _ in data["ranges"] if address is None)

    def place_of(box):
        begin = max(place for place in [*bounds, nowhere] if place <= box[2])
        return None if begin == nowhere else (bounds[begin], box[2] - begin)

    found = {(data["groups"][box[4]], box[3], place_of(box), box[1] == data["events"]) for box in data["boxes"]}
    wanted = set()
    for name, one, place in zip(NAMES, new, places):
        wanted |= {(label(name), OLD, None, True), (label(name), KNOWN, place, False),
                   (label(name), NEW, (one.address.region_id, one.address.offset), True)}
    assert found == wanted and len(data["boxes"]) == len(wanted), (found ^ wanted)
    refused = [(failure[1], data["groups"][failure[2]]) for failure in data["failures"]]
    assert set(refused) == {(LIMIT, label(NAMES[0]))} and "limit" in data["failures"][0][4], refused
    print(f"{len(data['boxes'])} boxes of {len(data['groups'])} cgroups, {data['events']} events, {len(refused)} refused")
    for one in old + new:
        one.close()
    for file, name in zip(files, NAMES):
        file.close()
        os.rmdir(ROOT + PARENT.encode() + b"/" + name)
    os.rmdir(ROOT + PARENT.encode())


if __name__ == "__main__":
    main()
