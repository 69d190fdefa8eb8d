#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests "flexmem replay" from end to end, with the fake kernel. Prints TAP."""

import json
import re
import subprocess
import sys

sys.dont_write_bytecode = True
from tool import GIB, HEADER, SMALL, TOOL, good, main, on_terminal, report, run, six_digits, test, tests, trace


@test
def replay_small():
    for compress in (False, True):
        path = trace(SMALL, compress=compress)
        found = report("replay", path)
        for key, value in {
                "file": path, "events": 6, "allocs": 3, "frees": 3, "failures": 0,
                "skipped_zero": 0, "skipped_failed": 0, "live_at_end": 0, "first_failure": None,
                "peak_live_bytes": 3000, "peak_device_bytes": 3072, "regions_used": 1,
                "slots_used": 1, "in_chunks": 0, "most_chunks": 1, "region_peaks": [{"region_id": 0, "peak_used": 3072}],
                "peak_reached": True, "region_fragmentation_at_peak": 0.0,
                "strategy": "first_fit", "order": "fill_first"}.items():
            assert found[key] == value, (key, found[key])
        assert 0 < found["ns_per_op_median"] <= found["ns_per_op_max"]
        assert 0 < found["ns_per_op_mean"] <= found["ns_per_op_max"]
        assert found["seconds"] > 0
        assert "peak_regions" not in found


@test
def replay_text():
    out = good("replay", trace(SMALL, "small.trace"))
    for line in ("small.trace", "  events           6", "  slots used       1 of 8",
                 "  fragmentation    0.000 of the regions' free bytes, at the peak"):
        assert line + "\n" in out, (line, out)


@test
def replay_chunks():
    path = trace(SMALL, "small.trace")
    assert "chunks" not in good("replay", path)
    out = good("replay", "--policy", "interleave", path, FAKE_DOMAINS=5, FAKE_CHUNKS=5, FAKE_MUST_ASK=3 << 32)
    assert "  chunks           3 allocations have several, at most 5\n" in out, out
    found = report("replay", "--policy", "interleave", path, FAKE_DOMAINS=5, FAKE_CHUNKS=5)
    assert found["in_chunks"] == 3 and found["most_chunks"] == 5, found


@test
def replay_fragmentation():
    # At the peak 10 GiB and 128 bytes are live. Before that, allocations 0, 2 and 4 were freed, and 3 GiB allocated.
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
def hidden_fragmentation():
    """Only an administrator sees how full a region is."""
    path = trace(SMALL)
    out = good("replay", path, FAKE_ADMIN=0)
    assert "regions used" in out and "fragmentation" not in out, out
    found = report("replay", path, FAKE_ADMIN=0)
    assert found["region_fragmentation_at_peak"] is None, found
    out = good("shell", stdin="alloc 1000\nregions\n", FAKE_ADMIN=0)
    assert re.search(r"12\.0 GiB +- +- +- +- +shared\n", out) and "[" not in out, out


@test
def fragmentation_is_inside_regions():
    # One free block in each of several regions does not count as fragmentation.
    text = HEADER + "".join(f"0 a {i} {8 * GIB} 0\n" for i in range(5))
    found = report("replay", "--show-peak", trace(text))
    assert [region["free_blocks"] for region in found["peak_regions"]] == [1] * 5
    assert found["region_fragmentation_at_peak"] == 0.0, found
    # Without free bytes there is no fragmentation.
    found = report("replay", trace(HEADER + f"0 a 1 {12 * GIB} 0\n"))
    assert found["region_fragmentation_at_peak"] == 0.0, found
    # One of three regions has a hole of 2 GiB. The reported share is the hole's share of all free bytes.
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
    # Each replay opens the device again, so no allocation of the previous replay is left.
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
                   "2 regions, largest piece 0 B; own 24.0 GiB can be freed\n"), err
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
                         FAKE_ALLOC_ERROR=19, FAKE_SNAPSHOT_AT=1, FAKE_SNAPSHOT_ERROR=19)
    found = json.loads(out)
    assert status == 1 and found["events"] == 2 and found["first_failure"]["errno"] == -19, found


@test
def regions_cannot_be_read():
    status, out, err = run("replay", "--json", trace(SMALL), FAKE_SNAPSHOT_AT=1, FAKE_SNAPSHOT_ERROR=5)
    assert status == 1 and "error" in json.loads(out) and "regions: the device's firmware" in err
    status, _, err = run("regions", FAKE_SNAPSHOT_AT=1, FAKE_SNAPSHOT_ERROR=5)
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
        # After a file that fails the other files are replayed.
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
    status, out = on_terminal("replay", path, columns=60, FAKE_TICK=1000000)
    bars = re.findall(r"\rlong\.trace \[[#.-]+\] +\d+%", out)
    assert status == 0 and len(bars) > 50 and {len(bar) for bar in bars} == {60}, bars[:3]
    # Less than two seconds are not worth a bar.
    status, out = on_terminal("replay", path, columns=60, FAKE_TICK=0)
    assert status == 0 and not re.search(r"\d%", out), out
    _, out, err = run("replay", path, FAKE_TICK=1000000)
    assert err == "" and "\r" not in out


@test
def progress_of_other_commands():
    requests = trace("arrival,input_tokens,output_tokens\n" + "0,100,100\n" * 2000, "requests.csv")
    convert = ("convert", "--bytes-per-token", "1K", "--output", f"{requests}.trace", requests)
    shell = ("shell",)
    lines = b"alloc 8M --mappable\nfill 1 --by copy\ncheck 1 --by copy\nfill 1 --by map\nquit\n"
    for args, stdin, labels in ((convert, b"", {"writing"}), (shell, lines, {"filling", "checking"})):
        for tick in (0, 3000000):
            status, out = on_terminal(*args, columns=60, stdin_lines=stdin, FAKE_TICK=tick)
            found = set(re.findall(r"\r(\w+) +\[[#.-]+\] +\d+%", out))
            assert status == 0, (args, tick, out)
            assert found >= labels if tick else not found, (args, tick, found, out)


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


if __name__ == "__main__":
    sys.exit(main(tests))
