#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Shows the snapshots that the programs before this one have made with PyTorch's own viewer (see viewer.mjs)."""

import base64
import copy
import glob
import hashlib
import json
import os
import pickle
import re
import subprocess
import sys

from tool import BUILD, HERE, main, test, tests

THIRD_PARTY = os.path.join(HERE, "../third_party")
VIEWER = os.path.join(THIRD_PARTY, "MemoryViz.js")
SNAPSHOTS = os.path.join(BUILD, "snapshots")
# By how much an event changes the bytes that are reserved, in multiples of its size.
RESERVES = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}


def shown(snapshots):
    """Shows snapshots, each with a name. Returns the viewer's answers in the same order."""
    lines = [f"{name} {base64.b64encode(pickle.dumps(snapshot, 4)).decode()}\n" for name, snapshot in snapshots]
    done = subprocess.run(["node", "--experimental-vm-modules", "--no-warnings", os.path.join(HERE, "viewer.mjs"), VIEWER],
                          input="".join(lines), capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["name"] for answer in answers] == [name for name, _ in snapshots], done.stdout
    return answers


def complaint(snapshot, answer):
    """Returns why the viewer does not show a snapshot as it is, or None."""
    if answer["error"]:
        return answer["error"]
    reserved = sum(segment["total_size"] for segment in snapshot["segments"])
    for action, size, _, drawn in answer["drawn"]:
        if drawn != reserved:
            return f"{reserved} bytes are reserved after {action}, and the viewer says {drawn}"
        reserved -= RESERVES.get(action, 0) * size
    used = sum(block["requested_size"] for segment in snapshot["segments"] for block in segment["blocks"]
               if block["state"].startswith("active"))
    if answer["drawn"] and answer["drawn"][0][2] != used:
        return f"{used} bytes are allocated at the end, and the viewer says {answer['drawn'][0][2]}"
    return None


def off_stream_0(snapshot):
    """Moves a snapshot to stream 1 if all its events are on stream 0.

    The viewer leaves the stream out of such events, and then cannot join two pieces of a segment.
    """
    events = [event for trace in snapshot["device_traces"] for event in trace]
    if not any(event.get("stream") for event in events):
        for each in events + snapshot["segments"]:
            each["stream"] = 1
    return snapshot


def kinds_apart(snapshot):
    """Gives fixed segments other streams than expandable ones.

    The viewer joins an expandable segment that was unmapped with neighbours of its stream, also with fixed ones. It
    does not find these again. In PyTorch they are never neighbours.
    """
    fixed = [segment for segment in snapshot["segments"] if not segment["is_expandable"]]
    for trace in snapshot["device_traces"]:
        fixed += [event for event in trace if event["action"] in ("segment_alloc", "segment_free")]
    for each in fixed:
        each["stream"] += 1000
    return snapshot


def kept():
    """Returns the snapshots of all programs, each with the program's name."""
    found = []
    for path in sorted(glob.glob(os.path.join(SNAPSHOTS, "*"))):
        with open(path, encoding="utf-8") as lines:
            found += [(os.path.basename(path), kinds_apart(off_stream_0(json.loads(line)))) for line in lines]
    return found


KEPT = kept()


@test
def is_unchanged():
    with open(os.path.join(THIRD_PARTY, "README"), encoding="ascii") as text:
        expected = re.search(r"SHA-256: (\w+)", text.read())[1]
    with open(VIEWER, "rb") as code:
        assert hashlib.sha256(code.read()).hexdigest() == expected


@test
def shows_each_snapshot():
    programs = {name for name, _ in KEPT}
    assert programs >= {"test_cache_contexts", "test_cache_figures", "test_cache_lanes", "test_cache_model",
                        "test_cache_threads"}, programs
    answers = shown(KEPT)
    events = [event for answer in answers for event in answer["drawn"]]
    print(f"# {len(KEPT)} snapshots with {len(events)} events")
    # The viewer shows free_requested and the free_completed after it as one event, "free".
    assert {event[0] for event in events} >= {"alloc", "free", "free_requested", "free_completed", "segment_alloc",
                                              "segment_free", "segment_map", "segment_unmap", "oom"}
    bad = [(name, why) for (name, snapshot), answer in zip(KEPT, answers) if (why := complaint(snapshot, answer))]
    assert not bad, bad[:3]


def segments_side_by_side():
    """Returns a snapshot with a fixed segment beside an expandable one that was unmapped, and one that has a block."""
    addresses = [base << 20 for base in (1, 3, 5)]
    segments = [{"device": 0, "address": address, "total_size": 1 << 20, "stream": 1, "is_expandable": address != 3 << 20,
                 "segment_pool_id": [0, 0], "frames": [], "blocks": []} for address in addresses]
    segments[2]["blocks"] = [{"address": 5 << 20, "size": 1 << 20, "requested_size": 1 << 20, "state": "active_allocated",
                              "frames": []}]
    events = [{"action": action, "addr": address, "size": 1 << 20, "requested_size": 1 << 20, "stream": 1, "time_us": 1,
               "frames": []} for action, address in (("segment_alloc", 3 << 20), ("segment_unmap", 2 << 20))]
    # The viewer undoes all events but the first.
    events.insert(0, {**events[1], "action": "segment_map"})
    return {"segments": segments, "device_traces": [events], "external_annotations": []}


@test
def shows_segments_side_by_side():
    snapshot = kinds_apart(segments_side_by_side())
    answer, = shown([("side_by_side", snapshot)])
    assert not complaint(snapshot, answer), complaint(snapshot, answer)


def without_segments(snapshot):
    snapshot["segments"] = []


def with_a_segment_that_was_never_there(snapshot):
    made = [event for event in snapshot["device_traces"][-1] if RESERVES.get(event["action"]) == 1][-1]
    made.update(addr=made["addr"] + (1 << 40), size=made["size"] + 128)


def without_names_of_frames(snapshot):
    # The viewer reads the frames of the event that made a block, or of the block if there is no such event.
    for entry in snapshot["device_traces"][-1] + [block for segment in snapshot["segments"] for block in segment["blocks"]]:
        entry["frames"] = [{"filename": "a.py", "line": 1}]


def with_an_opcode_that_it_cannot_read(snapshot):
    snapshot["tag"] = b"not text"


@test
def refuses_what_is_wrong():
    wrongs = [without_segments, with_a_segment_that_was_never_there, without_names_of_frames, with_an_opcode_that_it_cannot_read]
    good = next(snapshot for _, snapshot in KEPT if any(
        RESERVES.get(event["action"]) == 1 for event in snapshot["device_traces"][-1][1:]) and any(
        block["state"] == "active_allocated" for segment in snapshot["segments"] for block in segment["blocks"]))
    damaged = []
    for wrong in wrongs:
        snapshot = copy.deepcopy(good)
        wrong(snapshot)
        damaged.append((wrong.__name__, snapshot))
    for (name, snapshot), answer in zip(damaged, shown(damaged)):
        assert complaint(snapshot, answer), name


if __name__ == "__main__":
    sys.exit(main(tests))
