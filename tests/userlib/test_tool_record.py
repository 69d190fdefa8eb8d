#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests "flexmem record" and "flexmem replay --exact" from end to end, with the fake kernel. Prints TAP."""

import gzip
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
from tool import BUILD, SMALL, error_of, good, main, report, run, test, tests, tmp, trace

OPERATIONS = 2000


def histories(processes, configuration=""):
    """Runs caches in turns on one device. Returns the paths of their snapshots."""
    directory = os.path.join(tmp.name, f"{processes}{configuration}")
    os.makedirs(directory, exist_ok=True)
    subprocess.run([os.path.join(BUILD, "recorded"), str(processes), str(OPERATIONS), configuration, directory],
                   check=True, timeout=300)
    return [os.path.join(directory, f"{i + 1}.json") for i in range(processes)]


def recorded(processes, configuration=""):
    """Returns the lines of a trace."""
    return good("record", *histories(processes, configuration)).splitlines()


def replayed(lines, *args, **env):
    """Replays lines that may differ. Returns the report."""
    status, out, err = run("replay", "--json", "--exact", *args, trace("\n".join(lines) + "\n", "exact.trace"), **env)
    found = json.loads(out)
    assert status == (1 if found["difference"] else 0), (status, err)
    return found, err


def event_lines(lines):
    return [i for i, line in enumerate(lines) if line.split()[1] in "afx"]


def memory_lines(lines):
    """Those of memory that the driver gave or got back."""
    return [i for i, line in enumerate(lines) if line.split()[1] in "gr"]


@test
def one_process_and_three():
    for processes in (1, 3):
        for configuration in ("", "expandable_segments:True", "max_split_size_mb:20,roundup_power2_divisions:4",
                              "expandable_segments:True,reuse:wait"):
            lines = recorded(processes, configuration)
            words = [lines[i].split() for i in event_lines(lines)]
            assert {word[1] for word in words} == {"a", "f", "x"}, words[:20]
            for provider in ("recorded", "device"):
                found, err = replayed(lines, "--provider", provider)
                assert found == {"file": found["file"], "processes": processes, "events": len(words), "difference": None}, found
                assert err == "" and len(words) == OPERATIONS, err
            assert replayed(lines) == replayed(lines, "--provider", "recorded", FAKE_NODE=0)
            # Each process takes part.
            assert {word[5] for word in words if word[1] == "a"} == {str(i + 1) for i in range(processes)}, words[:20]


@test
def one_altered_event_is_found():
    for processes in (1, 3):
        lines = recorded(processes)
        at = event_lines(lines)
        for kind, column, text in (("a", 7, "recorded region 0x"), ("a", 8, "recorded region 0x"), ("a", 9, "recorded region 0x"),
                                   ("x", 1, "recorded that it succeeds; here it fails: "),
                                   ("a", 1, "recorded that it fails; here it succeeds")):
            # In the middle.
            number, index = [(n, i) for n, i in enumerate(at) if n > len(at) // 2 and lines[i].split()[1] == kind][0]
            words = lines[index].split()
            altered = list(lines)
            process, event = words[5:7] if kind == "a" else words[4:6]
            if column != 1:
                words[column] = str(int(words[column]) + 128)
                altered[index] = " ".join(words)
            elif kind == "a":
                # The allocation is not freed, as it was not made.
                altered[index] = " ".join([words[0], "x", *words[3:7], "0"])
                altered = [line for line in altered if line.split()[1:3] != ["f", words[2]]]
            else:
                altered[index] = " ".join([words[0], "a", "999999", *words[2:6], "0", "0", words[2], "0"])
            for provider in ("recorded", "device"):
                found, err = replayed(altered, "--provider", provider)
                first = found["difference"]
                assert (first["event"], first["line"], first["process"], first["number"], first["operation"]) == \
                    (number + 1, index + 1, int(process), int(event), "alloc"), (first, lines[index])
                assert first["text"].startswith(text) and found["events"] == number, first
                assert err == f"flexmem: exact.trace: event {number + 1} (line {index + 1}, process {process}, number {event}), " \
                    f"allocation of {first['bytes']} bytes, differs: {first['text']}\n", err


def next_event(lines, index):
    """The line of the event whose process has got or returned the memory of a line."""
    _, _, process, number = lines[index].split()[:4]
    for i in event_lines(lines):
        words = lines[i].split()
        mine = words[5:7] if words[1] == "a" else words[3:5] if words[1] == "f" else words[4:6]
        if mine[0] == process and int(mine[1]) > int(number):
            return i
    raise AssertionError(lines[index])


@test
def altered_memory_is_found():
    """What the driver gave or got back is altered, is missing, or comes twice."""
    for configuration in ("", "expandable_segments:True"):
        lines = recorded(3, configuration)
        at = memory_lines(lines)
        for kind, column, texts in (("g", 5, ("recorded region 0x", "recorded in line {line} that the cache gets region 0x")),
                                    ("g", 6, ("recorded in line {line} that the cache gets region 0x",)),
                                    ("g", None, ("recorded that it succeeds; here it fails: ", "recorded that the cache keeps its memory; here ",
                                                 "recorded in line ")),
                                    ("g", "twice", ("recorded in line {next} that the cache gets region 0x",)),
                                    ("r", 5, ("recorded in line {line} that the cache returns region 0x",)),
                                    ("r", 6, ("recorded in line {line} that the cache returns region 0x",)),
                                    ("r", None, ("recorded that the cache keeps its memory; here it returns region 0x", "recorded in line ")),
                                    ("r", "twice", ("recorded in line {next} that the cache returns region 0x",))):
            index = [i for n, i in enumerate(at) if n > len(at) // 2 and lines[i].split()[1] == kind][0]
            altered = list(lines)
            words = lines[index].split()
            if column is None:
                altered.pop(index)
            elif column == "twice":
                altered.insert(index, lines[index])
            else:
                words[column] = str(int(words[column]) + 128)
                altered[index] = " ".join(words)
            found, _ = replayed(altered)
            first = found["difference"]
            assert first["line"] == next_event(lines, index) + 1 + len(altered) - len(lines), (first, lines[index])
            assert first["process"] == int(words[2]), (first, lines[index])
            assert first["text"].startswith(tuple(text.format(line=index + 1, next=index + 2) for text in texts)), (first, lines[index])


@test
def memory_at_another_event_is_found():
    """What was got or returned in a later event, or is returned earlier than here, as its number tells."""
    for configuration, kind, texts in (
            ("", "g", ("recorded that it succeeds; here it fails: ", "recorded that the cache keeps its memory; here ")),
            ("backend:direct", "r", ("recorded that the cache keeps its memory; here it returns region 0x",))):
        lines = recorded(3, configuration)
        at = memory_lines(lines)
        index = [i for n, i in enumerate(at) if n > len(at) // 2 and lines[i].split()[1] == kind][0]
        words = lines[index].split()
        events = event_lines(lines)
        here = next_event(lines, index)
        if kind == "r":
            # The free before has returned it.
            here = [i for i in events if i < index and lines[i].split()[1] == "f" and lines[i].split()[3] == words[2]][-1]
        words[3] = str(int(words[3]) + 1000000)
        first = replayed([*lines[:index], " ".join(words), *lines[index + 1:]])[0]["difference"]
        assert first["line"] == here + 1 and first["text"].startswith(texts), (first, lines[index])


@test
def processes_at_the_same_time():
    """Their times tell neither the order in which the driver served them, nor that of its calls within an event."""
    paths = histories(3)
    for process, path in enumerate(paths):
        with open(path, encoding="utf-8") as file:
            snapshot = json.load(file)
        for event in snapshot["device_traces"][0]:
            event["time_us"] += process * 10**9
        with open(path + ".later", "w", encoding="utf-8") as file:
            json.dump(snapshot, file)
    lines = good("record", *(path + ".later" for path in paths)).splitlines()
    assert replayed(lines, "--provider", "device")[0]["difference"]
    found, err = replayed(lines)
    assert (found["difference"], found["events"], err) == (None, OPERATIONS, ""), (found, err)


@test
def memory_after_the_last_event():
    """It belongs to the last event of the process."""
    lines = recorded(1)
    last = event_lines(lines)[-1]
    end = ["9 r 1 1000000 0 0 128"]
    first = replayed(lines + end)[0]["difference"]
    assert first["line"] == last + 1, first
    assert first["text"] == f"recorded in line {len(lines) + 1} that the cache returns region 0x0, offset 0x0, 128 bytes to the driver; here not"


@test
def other_settings_differ():
    lines = recorded(1)
    assert "# setting 1 expandable_segments:False" in lines, lines[:12]
    assert replayed(lines, "--config", "roundup_power2_divisions:4")[0]["difference"]
    # The settings of the environment do not count, also if the trace has none.
    plain = [line for line in lines if not line.startswith("# setting")]
    for known in (lines, plain):
        assert not replayed(known, FLEXMEM_ALLOC_CONF="roundup_power2_divisions:4")[0]["difference"]
    lines.insert(5, "# setting 1 roundup_power2_divisions:4")
    assert replayed(lines)[0]["difference"]


@test
def hostile_settings():
    """A trace and a snapshot may come from somebody else, and errors about settings go to the terminal."""
    lines = recorded(1)
    for times, setting, expected in ((1, "\x1b]52;c;aGk=\x07:1", "line 6: no line of a recorded trace"),
                                     (1100, "a" * 60, "the settings of process 1 have more than 65536 bytes")):
        altered = [*lines[:5], *times * [f"# setting 1 {setting}"], *lines[5:]]
        status, _, err = run("replay", "--exact", trace("\n".join(altered) + "\n", "hostile.trace"))
        assert status == 1 and expected in err and "\x1b" not in err, err
    status, _, err = run("replay", "--exact", trace("\n".join([*lines[:5], "# setting 1 \u00e4:1", *lines[5:]]) + "\n", "odd.trace"))
    assert status == 0 and "unknown key '\u00e4'" in err, err
    path, = histories(1)
    with open(path, encoding="utf-8") as file:
        snapshot = json.load(file)
    known = snapshot["allocator_settings"]
    known["\x1b[2J"], known["large_segment_size_mb"] = "1", "\x07"
    other = os.path.join(tmp.name, "hostile.json")
    with open(other, "w", encoding="utf-8") as file:
        json.dump(snapshot, file)
    assert good("record", other).splitlines() == [line for line in lines if "large_segment_size_mb" not in line]


@test
def ends_beyond_the_addresses():
    lines = recorded(1)
    at = next(i for i in event_lines(lines) if lines[i].split()[1] == "a")
    words = lines[at].split()
    words[8] = str(2**64 - 128)
    lines[at] = " ".join(words)
    status, _, err = run("replay", "--exact", trace("\n".join(lines) + "\n", "beyond.trace"))
    assert status == 1 and f"line {at + 1}: the allocation ends beyond 2^64" in err, err


@test
def tags_have_numbers():
    """The tags of recorded.c, and a name of a function, which is longer than a tag may be in a trace."""
    path, = histories(1)
    with open(path, encoding="utf-8") as file:
        snapshot = json.load(file)
    event = next(event for event in snapshot["device_traces"][0] if event["action"] == "alloc")
    event["frames"] = [{"name": "x" * 199 + "\u00e4", "filename": "a.py", "line": 1}]
    other = os.path.join(tmp.name, "tags.json")
    with open(other, "w", encoding="utf-8") as file:
        json.dump(snapshot, file)
    lines = good("record", other).splitlines()
    tags = dict(line.split(" ", 3)[2:] for line in lines if line.startswith("# tag "))
    assert list(tags) == ["1", "2", "3"] and tags["1"] == "x" * 199 and set(tags.values()) >= {"keys", '\u00e4 "\\x0a'}, tags
    asked = [event for event in snapshot["device_traces"][0] if event["action"] in ("alloc", "oom")]
    told = [line.split()[-1] for line in lines if line.split()[1] in "ax"]
    names = {None: "0", **{value: key for key, value in tags.items()}, "x" * 199 + "\u00e4": "1"}
    assert told == [names[event["frames"][0]["name"] if event["frames"] else None] for event in asked]


@test
def files_and_reports():
    paths = histories(3)
    output = os.path.join(tmp.name, "three.trace.gz")
    out = good("record", "--output", output, *paths)
    assert out.startswith(f"{output}: {OPERATIONS} events of 3 processes, ") and out.count("\n") == 1, out
    with gzip.open(output, "rt", encoding="utf-8") as file:
        lines = file.read().splitlines()
    assert lines == good("record", *paths).splitlines()
    kinds = [lines[i].split()[1] for i in event_lines(lines)]
    assert report("record", "--output", output, *paths) == {
        "output": output, "processes": 3, "events": len(kinds), "allocations": kinds.count("a"),
        "live_at_end": kinds.count("a") - kinds.count("f"), "failures": kinds.count("x")}
    out = good("replay", "--exact", output)
    assert out == f"three.trace.gz\n  processes        3\n  same events      {OPERATIONS}\n", out
    # Without --exact the replay leaves out what failed, and compares nothing.
    found = report("replay", "--cache", "--provider", "flat", output)
    assert (found["allocs"], found["frees"], found["skipped_failed"]) == tuple(map(kinds.count, "afx")), found
    # Another device has other addresses.
    assert run("replay", "--exact", "--provider", "flat:1G", output)[0] == 1


@test
def histories_that_are_refused():
    path, = histories(1)
    with open(path, encoding="utf-8") as file:
        text = file.read()

    def refused(change, expected):
        snapshot = json.loads(text)
        change(snapshot)
        other = os.path.join(tmp.name, "refused.json")
        with open(other, "w", encoding="utf-8") as file:
            json.dump(snapshot, file)
        output = os.path.join(tmp.name, "refused.trace")
        found = error_of(("record", "--json", "--output", output, other))
        assert found["text"] == f"{other}: {expected}" and not os.path.exists(output), found

    def trace_of(snapshot):
        return snapshot["device_traces"][0]

    refused(lambda snapshot: trace_of(snapshot).pop(0), "its history lacks the first 1 events: history_entries was too small")
    refused(lambda snapshot: trace_of(snapshot).pop(7), "its history has gaps; a snapshot of all pools has none")
    refused(lambda snapshot: trace_of(snapshot).clear(), "it has no history: set history_entries before the first allocation")
    refused(lambda snapshot: snapshot["device_traces"].append(trace_of(snapshot)),
            "it has the histories of several devices, and a trace is of one")
    refused(lambda snapshot: snapshot.pop("segments"),
            "not a memory snapshot: it has no lists 'device_traces' and 'segments'")
    first = next(i for i, event in enumerate(json.loads(text)["device_traces"][0]) if event["action"] == "alloc")
    refused(lambda snapshot: trace_of(snapshot)[first].update(pool=2),
            f"entry {first + 1} of its history is in private pool 2; a replay has none")
    refused(lambda snapshot: trace_of(snapshot)[first].pop("region_id"),
            f"entry {first + 1} of its history has no 'region_id' that is a number from 0 on")
    live = sum(block["state"] == "active_allocated" for segment in json.loads(text)["segments"] for block in segment["blocks"])

    def blocks(snapshot):
        return [block for segment in snapshot["segments"] for block in segment["blocks"] if block["state"] == "active_allocated"]

    refused(lambda snapshot: blocks(snapshot)[0].update(state="inactive"), f"{live - 1} blocks are allocated, but {live} by its history")
    # A history that begins after the first segment, which is then in no event.
    come = {"segment_alloc": 1, "segment_free": -1}
    size = sum(come.get(event["action"], 0) * event["size"] for event in json.loads(text)["device_traces"][0])
    segment = next(event for event in json.loads(text)["device_traces"][0] if event["action"] == "segment_alloc")

    def begin_late(snapshot):
        trace_of(snapshot).remove(segment)
        for number, event in enumerate(trace_of(snapshot), 1):
            event["number"] = number

    refused(begin_late, f"its segments have {size} bytes, but {size - segment['size']} by its history: "
            "set history_entries before the first allocation")
    free = next(i for i, event in enumerate(json.loads(text)["device_traces"][0]) if event["action"] == "free_completed")
    refused(lambda snapshot: trace_of(snapshot)[free].update(addr=1),
            f"event {free + 1} of its history frees memory that was allocated before")
    status, _, err = run("record", trace("x", "no.json"))
    assert status == 1 and "no.json: no JSON: line 1: " in err, err
    for path, expected in ((os.path.join(tmp.name, "none.json"), "No such file or directory"), (tmp.name, "Is a directory")):
        assert error_of(("record", "--json", "--output", os.path.join(tmp.name, "x"), path))["text"] == f"{path}: {expected}"


@test
def compressed_histories():
    path, = histories(1)
    with open(path, "rb") as file:
        data = gzip.compress(file.read())
    packed = os.path.join(tmp.name, "run.json.gz")
    with open(packed, "wb") as file:
        file.write(data)
    assert good("record", packed) == good("record", path)
    with open(packed, "wb") as file:
        file.write(data[:-100])
    assert run("record", packed)[2] == f"flexmem: {packed}: compressed data ends too early\n"


@test
def wrong_arguments():
    status, _, err = run("replay", "--exact", trace(SMALL))
    assert status == 1 and err.endswith("the trace has no addresses; 'flexmem record' makes one that has\n"), err
    for args in (("record",), ("record", "--json", "x"), ("replay", "--exact", "--trim", "x"),
                 ("replay", "--exact", "--keep-going", "x"), ("replay", "--exact", "--show-peak", "x"),
                 ("replay", "--cache", "--provider", "recorded", "x"), ("replay", "--provider", "recorded", "x")):
        assert run(*args)[0] == 2, args
    assert run("replay", "--exact", "--provider", "device", trace("\n".join(recorded(1)) + "\n"), FAKE_NODE=0)[0] == 1


if __name__ == "__main__":
    sys.exit(main(tests))
