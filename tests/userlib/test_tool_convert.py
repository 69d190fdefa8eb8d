#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests "flexmem convert" from end to end, and replays what it has written. Prints TAP. test_convert.c tests its parts."""

import gzip
import json
import os
import pickle
import re
import subprocess
import sys

sys.dont_write_bytecode = True
from tool import BUILD, HERE, MAN, TOOL, error_of, good, main, report, run, test, tests, tmp

FRAMES = [{"name": "forward", "filename": "model.py", "line": 7}]
SNAPSHOT = {
    "segments": [{
        "device": 0, "address": 4096, "total_size": 4096, "allocated_size": 1024, "active_size": 1536,
        "requested_size": 1500, "stream": 0, "segment_type": "small", "segment_pool_id": (0, 0), "is_expandable": False,
        "frames": FRAMES, "blocks": [
            {"address": 4096, "size": 1024, "requested_size": 1000, "state": "active_allocated", "frames": FRAMES},
            {"address": 5120, "size": 512, "requested_size": 500, "state": "active_pending_free", "frames": []},
            {"address": 5632, "size": 2560, "requested_size": 0, "state": "inactive", "frames": []}]}],
    "device_traces": [[
        {"action": "segment_map", "addr": 4096, "size": 4096, "stream": 0, "time_us": 1700000000000000, "frames": []},
        {"action": "free_requested", "addr": 5632, "size": 300, "stream": 3, "time_us": 1700000000000001, "frames": []},
        {"action": "free_completed", "addr": 5632, "size": 300, "stream": 3, "time_us": 1700000000000005, "frames": []},
        {"action": "alloc", "addr": 5120, "size": 500, "stream": 3, "time_us": 1700000000000010, "frames": FRAMES},
        {"action": "alloc", "addr": 5632, "size": 600, "stream": 0, "time_us": 1700000000000020, "frames": FRAMES},
        {"action": "free_completed", "addr": 5632, "size": 600, "stream": 0, "time_us": 1700000000000025, "frames": []},
        {"action": "oom", "device_free": 1, "size": 1 << 40, "stream": 0, "time_us": 1700000000000026, "frames": FRAMES},
        {"action": "snapshot", "addr": 0, "size": 0, "stream": 0, "time_us": 1700000000000030, "frames": []}]],
    "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "garbage_collection_threshold": 0.0,
                           "expandable_segments": False, "roundup_power2_divisions": {"1": 0}},
    "external_annotations": [],
}
EVENTS = ["0 a 1 1000 0", "0 a 2 300 3", "5 f 2", "10 a 3 500 3", "20 a 4 600 0", "25 f 4"]
REQUESTS = [(0.0, 374, 44), (4.314579, 396, 109), (4.541877, 879, 55)]
SERVING = ("--bytes-per-token", "512K")


def write(name, data):
    path = os.path.join(tmp.name, name)
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())
    return path


def events(text):
    assert text.startswith("# flexmem-trace 1\n# "), text[:100]
    return [line for line in text.splitlines() if not line.startswith("#")]


def converted(path, *args):
    return events(good("convert", *args, path))


def refused(data, text, *args):
    path = write("refused", data)
    output = os.path.join(tmp.name, "refused.trace")
    found = error_of(("convert", "--json", "--output", output, *args, path))
    assert found["name"] == "EINVAL" and found["text"] == f"{path}: {text}", found
    assert not os.path.exists(output)


def as_csv(requests, head="arrival,input_tokens,output_tokens"):
    return "".join(f"{line}\n" for line in (head, *(f"{a},{i},{o}" for a, i, o in requests)))


def as_lines(requests):
    return "".join(json.dumps({"arrival": a, "input_tokens": i, "output_tokens": o}) + "\n" for a, i, o in requests)


class Pickler:
    """The opcodes that PyTorch's C++ writes: all in protocol 2, texts with a memo, dictionaries and lists with marks."""

    def __init__(self):
        self.memo = {}

    def put(self, key):
        self.memo[key] = len(self.memo)
        return bytes([ord("q"), self.memo[key]]) if self.memo[key] < 256 else b"r" + self.memo[key].to_bytes(4, "little")

    def push(self, value):
        if isinstance(value, bool):
            return b"\x88" if value else b"\x89"
        if isinstance(value, int):
            if 0 <= value < 256:
                return b"K" + bytes([value])
            return b"J" + value.to_bytes(4, "little", signed=True) if -1 << 31 <= value < 1 << 31 else \
                b"\x8a\x08" + value.to_bytes(8, "little", signed=True)
        if isinstance(value, float):
            return b"G" + bytes(8)
        if isinstance(value, str):
            if value in self.memo:
                index = self.memo[value]
                return bytes([ord("h"), index]) if index < 256 else b"j" + index.to_bytes(4, "little")
            return b"X" + len(value).to_bytes(4, "little") + value.encode() + self.put(value)
        if isinstance(value, tuple):
            return b"".join(map(self.push, value)) + b"\x86" + self.put(id(value))
        if isinstance(value, list):
            return b"]" + self.put(object()) + b"(" + b"".join(map(self.push, value)) + b"e"
        return b"}" + self.put(object()) + b"(" + b"".join(self.push(part) for pair in value.items() for part in pair) + b"u"


@test
def snapshots_in_each_form():
    forms = [pickle.dumps(SNAPSHOT, protocol) for protocol in (2, 3, 4, 5)]
    forms += [b"\x80\x02" + Pickler().push(SNAPSHOT) + b".", json.dumps(SNAPSHOT).encode(), gzip.compress(forms[2])]
    for data in forms:
        assert converted(write("snapshot", data)) == EVENTS, data
        done = subprocess.run([TOOL, "convert", "-"], input=data, capture_output=True, check=True)
        assert events(done.stdout.decode()) == EVENTS, done


@test
def old_snapshots():
    """Versions of PyTorch from before 2.2 have no times, those from before 2.1 no addresses of blocks."""
    old = json.loads(json.dumps(SNAPSHOT))
    for event in old["device_traces"][0]:
        del event["time_us"]
    for block in old["segments"][0]["blocks"]:
        del block["address"], block["requested_size"]
    assert converted(write("old", pickle.dumps(old))) == [
        "0 a 1 1024 0", "0 a 2 300 3", "2 f 2", "3 a 3 500 3", "4 a 4 600 0", "5 f 4"]


@test
def a_long_history():
    """Python's pickler appends a thousand items at a time."""
    history = [{"action": action, "addr": 512 * i, "size": 500 + i, "stream": 1 << 47, "time_us": 2 * i + (action != "alloc")}
               for i in range(3000) for action in ("alloc", "free_completed")]
    expected = [line for i in range(3000) for line in (f"{2 * i} a {i + 1} {500 + i} {1 << 47}", f"{2 * i + 1} f {i + 1}")]
    assert converted(write("long", pickle.dumps({"segments": [], "device_traces": [[], history]}))) == expected


@test
def a_snapshot_of_the_cache():
    """As JSON, as the library makes it; and pickled, as torch.flexmem and flexmem.cuda write it."""
    program = os.path.join(tmp.name, "cache_snapshot")
    subprocess.run([os.environ.get("CC") or "cc", "-o", program, os.path.join(HERE, "../../userlib/examples/cache_snapshot.c"),
                    "-I" + os.path.join(HERE, "../../userlib/include"), "-I" + os.path.join(HERE, "../../uapi"),
                    os.path.join(BUILD, "shipped", "libflexmem.a"), "-pthread"], check=True)
    text = subprocess.run([program], capture_output=True, check=True).stdout
    for data in (text, pickle.dumps(json.loads(text), 4)):
        found = [line.split()[1:] for line in converted(write("cache", data))]
        # The history of a cache has sizes as the cache has rounded them.
        assert [line[:2] for line in found] == [["a", "1"], ["a", "2"], ["a", "3"], ["a", "4"], ["f", "4"]], found
        assert all(int(line[2]) == -(-int(line[1]) * 1000000 // 128) * 128 for line in found[:4]), found


@test
def what_is_said():
    path, output = write("snapshot", pickle.dumps(SNAPSHOT)), os.path.join(tmp.name, "out.trace")
    assert report("convert", "--output", output, path) == {
        "file": path, "output": output, "source": "snapshot", "source_events": 8, "events": 6, "allocations": 4,
        "live_at_end": 2, "peak_live_bytes": 2100, "before_history": 2, "lost_frees": 0, "left_out": 0}
    with open(MAN, encoding="ascii") as file:
        man = file.read().split(".It Cm convert")[2]
    missing = [key for key in report("convert", "--output", output, path) if not re.search(rf"\b{key}\b", man)]
    assert not missing, missing
    assert good("convert", "--output", output, path) == (
        f"{output}: 6 events, 4 allocations, 2 live at the end, peak 2.1 KiB\n  from before the history: 2 allocations\n")
    path = write("requests", as_csv(REQUESTS))
    assert report("convert", *SERVING, "--output", output, path).items() >= {
        "source": "requests", "source_events": 3, "allocations": 17, "live_at_end": 0}.items()
    with open(output, encoding="ascii") as file:
        assert "# 524288 bytes a token" in file.read()
    gaps = json.loads(json.dumps(SNAPSHOT))
    gaps["device_traces"][0] += [dict(gaps["device_traces"][0][3]), dict(gaps["device_traces"][0][2])]
    out = good("convert", "--output", output, write("gaps", json.dumps(gaps)))
    assert out.endswith("  the history has gaps: it lacks 1 frees; 1 frees and blocks were left out\n"), out


@test
def what_is_written_is_replayed():
    for name, data, args in (("a", pickle.dumps(SNAPSHOT), ()), ("b", as_lines(REQUESTS), SERVING)):
        for suffix in (".trace", ".trace.gz"):
            output = os.path.join(tmp.name, name + suffix)
            said = report("convert", *args, "--output", output, write(name, data))
            with open(output, "rb") as file:
                assert (file.read(2) == b"\x1f\x8b") == (suffix == ".trace.gz")
            found = report("replay", "--cache", "--provider", "flat", output)
            assert found["failures"] == 0 and found["events"] == said["events"], found
            assert found["peak_live_bytes"] == said["peak_live_bytes"] and found["live_at_end"] == said["live_at_end"], found


@test
def requests():
    expected = ["0 a 1 196083712 0", "37400 a 2 8388608 0", "570733 a 3 8388608 0", "1104066 a 4 8388608 0",
                "1504066 f 1", "1504066 f 2", "1504066 f 3", "1504066 f 4", "4314579 a 5 207618048 0"]
    for data in (as_csv(REQUESTS), as_lines(REQUESTS), as_csv(REQUESTS[::-1]), as_csv([(a + 1e9, i, o) for a, i, o in REQUESTS])):
        assert converted(write("requests", data), *SERVING)[:9] == expected, data
    # Times, and sizes of blocks.
    path = write("requests", as_csv([(2000, 10, 3)], "timestamp,in,out"))
    assert converted(path, "--bytes-per-token", "7", "--columns", "timestamp,in,out", "--time-unit", "ms", "--prefill", "100",
                     "--decode", "2", "--block-tokens", "2") == [
        "0 a 1 70 0", "100000 a 2 14 0", "1100000 a 3 14 0", "1600000 f 1", "1600000 f 2", "1600000 f 3"]


@test
def the_trace_in_tests_is_made_again():
    """tests/traces/azure-conv-kv.trace.gz was derived by another program. Its requests give the same events again."""
    with gzip.open(os.path.join(HERE, "../traces/azure-conv-kv.trace.gz"), "rt", encoding="ascii") as file:
        expected = [line.strip() for line in file if line[0] != "#"]
    made, found = {}, {}
    for line in expected:
        time, kind, number, *more = line.split()
        if kind == "a":
            made[number] = int(time), int(more[0]) // 524288
            continue
        # The prompt is the oldest allocation of the request, and is freed first.
        begin, tokens = made[number]
        if tokens != 16 or not found or found[last][0] != time:
            last = number
            found[last] = time, begin, tokens, round((int(time) - begin - 100 * tokens) * 3 / 1e5)
    text = as_csv([(begin / 1e6, tokens, output) for _, begin, tokens, output in found.values()])
    assert len(found) == 5746 and converted(write("azure", text), *SERVING) == expected


@test
def refused_pickles():
    class Evil:
        def __reduce__(self):
            return os.system, ("false",)

    why = ": refused, because it would load or run code; a snapshot has only numbers, texts, lists, tuples and dictionaries"
    for protocol, at in ((2, "offset 2: GLOBAL"), (4, "offset 28: STACK_GLOBAL")):
        refused(pickle.dumps(Evil(), protocol), at + why)
    data = pickle.dumps(SNAPSHOT)
    for length in range(1, len(data), 97):
        assert "the file ends too early" in run("convert", write("short", data[:length]))[2], length
    refused(data + b"N", f"offset {len(data)}: 1 bytes follow the end of the pickle")
    refused(b"\x80\x04" + b"(" * 100 + b".", "offset 66: MARK: nested too deep")
    refused(b"\x80\x04Nr\xff\xff\xff\xff.", "offset 3: LONG_BINPUT: its number is larger than the memo can be")
    bomb = [()]
    for _ in range(40):
        bomb.append((bomb[-1],) * 10)
    assert converted(write("bomb", pickle.dumps({**SNAPSHOT, "bomb": bomb}))) == EVENTS
    for wrong in ([], {}, {"segments": []}, 5):
        refused(pickle.dumps(wrong), "not a memory snapshot: it has no lists 'device_traces' and 'segments'")


@test
def refused_files():
    refused("", "the file is empty")
    refused(gzip.compress(b"\x80\x04" + b"N" * 9999)[:-9], "compressed data ends too early")
    refused("\x7fELF", "neither a pickle of the protocols 2 to 5, nor JSON, nor CSV", *SERVING)
    refused(pickle.dumps([], 0), "line 1: no column for the arrival; --columns names the right ones", *SERVING)
    refused(as_csv(REQUESTS), "a serving trace needs --bytes-per-token")
    refused(as_csv(REQUESTS), "--index is for snapshots only", *SERVING, "--index", "0")
    refused(as_csv(REQUESTS) + "1,x,2\n", "line 5: no input tokens: 'x'", *SERVING)
    refused(as_lines(REQUESTS) + "{}\n", "line 4: no key for the arrival; --columns names the right ones", *SERVING)
    refused(as_csv(REQUESTS), "--columns takes three names: ARRIVAL,INPUT,OUTPUT", *SERVING, "--columns", "a,b")
    refused(pickle.dumps(SNAPSHOT), "the snapshot has no allocations", "--index", "1")
    path = write("refused", b'{"segments": "\xff"}')
    status, _, err = run("convert", path)
    assert status == 1 and err.startswith(f"flexmem: {path}: no JSON: line 1: "), err
    refused(json.dumps(SNAPSHOT) + "\n{}", "something follows the end of the snapshot")
    # What a file says is escaped.
    _, _, err = run("convert", *SERVING, write("escape", b"arrival,input,output\n\x1b[2J,1,2\n"))
    assert err.endswith("line 2: no arrival: '\\x1b[2J'\n"), err


@test
def wrong_arguments():
    path = write("snapshot", pickle.dumps(SNAPSHOT))
    for args in ((), (path, path), (path, "--json"), (path, "--index", "x"), (path, "--bytes-per-token", "0"),
                 (path, "--bytes-per-token", "2G"), (path, "--block-tokens", "0"), (path, "--prefill", "0"),
                 (path, "--decode", "x"), (path, "--time-unit", "min")):
        assert run("convert", *args)[0] == 2, args
    assert error_of(("convert", "--json", "--output", "/nonexistent/x", path))["name"] == "ENOENT"
    assert error_of(("convert", "--json", "--output", path, "/nonexistent"))["name"] == "ENOENT"
    status, _, err = run("convert", "--output", "/dev/full", path)
    assert status == 1 and "No space left on device" in err, err


if __name__ == "__main__":
    sys.exit(main(tests))
