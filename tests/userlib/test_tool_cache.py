#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""flexmem replay --cache: what it reports, and how tight the cache packs the traces; prints TAP."""

import json
import os
import pickletools
import re
import subprocess
import sys

sys.dont_write_bytecode = True
from tool import (BUILD, GIB, HEADER, HERE, MAN, SMALL, good, main, report, run, six_digits, test, tests,
                  tmp, trace)

TRACES = os.path.join(HERE, "../traces")
SHIPPED = os.path.join(BUILD, "shipped", "flexmem")
FLAT = ("--cache", "--provider", "flat")
MIB = 1 << 20

# Ratios of reserved to live bytes: the lowest one of all known allocators, and the one of PyTorch 2.6.
BEST = {"resnet50-train": 1.021, "gpt2-train": 1.016, "llama-decode": 1.008,
        "azure-conv-kv": 1.116, "azure-conv-kv-layers": 1.045}
PYTORCH = {"resnet50-train": 1.145, "gpt2-train": 1.044, "llama-decode": 1.034,
           "azure-conv-kv": 1.470, "azure-conv-kv-layers": 1.269}


def shipped(name, configuration, size="64G"):
    """Replays a trace with the command as it is shipped, because the published figures were measured with it."""
    path = os.path.join(TRACES, f"{name}.trace.gz")
    done = subprocess.run([SHIPPED, "replay", "--json", "--cache", "--provider", f"flat:{size}",
                           "--config", configuration, path], capture_output=True, text=True,
                          timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done
    found = json.loads(done.stdout)
    print(f"# {name} {configuration or 'defaults'}: {found['reserved_to_live']:.4f}, "
          f"hit rate {found['hit_rate']:.4f}, {found['driver_calls']}")
    assert found["failures"] == 0 and found["events"] == found["allocs"] + found["frees"] > 10000
    assert found["peak_reached"] and found["num_first_failures"] == 0
    # Live bytes are allocated, and allocated bytes are reserved.
    assert found["peak_live_bytes"] <= found["peak_allocated_bytes"] <= found["peak_reserved_bytes"]
    assert found["peak_allocated_bytes"] == found["peak_device_bytes"]
    assert found["hits"] + found["misses"] == found["allocs"]
    calls = found["driver_calls"]
    assert calls["alloc"] + calls["grow"] == found["misses"], calls
    return found


@test
def traces_with_growing_segments():
    for name, best in BEST.items():
        ratio = shipped(name, "expandable_segments:True")["reserved_to_live"]
        assert ratio <= 1.01 * best, (name, ratio)


@test
def traces_with_defaults():
    # With PyTorch's rules and sizes the ratio must be at most 0.1 % above PyTorch's. The two differ, because blocks are
    # multiples of 128 bytes, not of 512, so sometimes another block fits best. azure-conv-kv needs more than 64 GiB
    # with these rules.
    for name, known in PYTORCH.items():
        ratio = shipped(name, "", "128G")["reserved_to_live"]
        assert ratio <= 1.001 * known, (name, ratio)


@test
def hits_are_nearly_all():
    # A framework repeats its steps. After the first step the cache has all the
    # memory it needs.
    for name in BEST:
        for configuration in ("", "expandable_segments:True"):
            assert shipped(name, configuration, "128G")["hit_rate"] > 0.97, name


@test
def a_trace_that_needs_all_memory():
    done = good("replay", "--json", *FLAT, "--config", "",
                os.path.join(TRACES, "azure-conv-kv.trace.gz"))
    found = json.loads(done)
    assert found["failures"] == 0 and found["num_first_failures"] == found["num_alloc_retries"] > 0, found
    assert found["peak_reserved_bytes"] <= 64 * GIB


@test
def no_cache_reserves_what_lives():
    found = shipped("resnet50-train", "backend:direct")
    assert found["peak_reserved_bytes"] == found["peak_allocated_bytes"]
    assert found["hits"] == 0 and found["driver_calls"]["free"] == found["frees"]


@test
def small_trace():
    found = report("replay", *FLAT, "--config", "", trace(SMALL))
    for key, value in {
            "provider": "flat", "provider_bytes": 64 * GIB, "events": 6, "allocs": 3, "frees": 3,
            "failures": 0, "live_at_end": 0, "first_failure": None, "peak_live_bytes": 3000,
            "peak_device_bytes": 3072, "peak_allocated_bytes": 3072, "peak_reserved_bytes": 2 * MIB,
            "peak_reached": True, "hits": 2, "misses": 1, "num_ooms": 0, "num_first_failures": 0,
            "driver_calls": {"alloc": 1, "free": 0, "grow": 0, "shrink": 0}}.items():
        assert found[key] == value, (key, found[key])
    assert found["reserved_to_live"] == six_digits(2 * MIB / 3000)
    assert found["unused_share_at_peak"] == six_digits(1 - 3072 / 2 / MIB)
    assert found["hit_rate"] == six_digits(2 / 3)
    assert 0 < found["ns_per_op_median"] <= found["ns_per_op_max"] and found["seconds"] > 0
    assert "strategy" not in found and "regions_used" not in found


@test
def small_text():
    out = good("replay", *FLAT, "--config", "max_split_size_mb:64", trace(SMALL, "small.trace"))
    for line in ("  peak reserved    2.0 MiB in segments (2097152 bytes)",
                 "  ratio            699.0507 peak reserved / peak live",
                 "  unused share     0.9985 of the reserved bytes, at the peak", "  hit rate         0.6667: 2 hits, 1 misses",
                 "  provider         flat address space of 64.0 GiB",
                 "  driver calls     alloc 1, free 0, grow 0, shrink 0",
                 "  out of memory    0 refusals, 0 helped, 0 failed",
                 "  settings         max_split_size_mb:64"):
        assert line + "\n" in out, (line, out)


@test
def several_files():
    paths = [trace(SMALL, "one.trace"), trace(SMALL, "two.trace")]
    out = good("replay", *FLAT, *paths, COLUMNS=100)
    summary = out[out.index("trace  "):].splitlines()
    assert summary[0].split()[-8:] == ["reserved", "ratio", "hit", "rate", "mean", "ns", "median",
                                       "ns"], summary
    assert summary[2].split()[:7] == ["two.trace", "6", "0", "2.9", "KiB", "2.0", "MiB"], summary


@test
def settings_and_their_sources():
    path = trace(SMALL)
    found = report("replay", *FLAT, path, FLEXMEM_ALLOC_CONF="expandable_segments:True")["settings"]
    assert found["expandable_segments"] == {"value": "True", "source": "FLEXMEM_ALLOC_CONF"}
    assert found["backend"] == {"value": "native", "source": "default"}
    found = report("replay", *FLAT, "--config", "backend:direct", path,
                   FLEXMEM_ALLOC_CONF="expandable_segments:True")["settings"]
    assert found["backend"] == {"value": "direct", "source": "caller"}
    assert found["expandable_segments"]["source"] == "default"
    out = good("replay", *FLAT, path, FLEXMEM_ALLOC_CONF="max_split_size_mb:64")
    assert "  settings         max_split_size_mb:64 (FLEXMEM_ALLOC_CONF)\n" in out, out
    status, out, err = run("replay", *FLAT, "--config", "colour:red", path)
    assert status == 0 and "flexmem: --config: unknown key 'colour'" in err, err
    _, _, err = run("replay", *FLAT, path, FLEXMEM_ALLOC_CONF="colour:red")
    assert "flexmem: FLEXMEM_ALLOC_CONF: unknown key 'colour'" in err, err


@test
def streams_of_the_trace_count():
    # A block freed on one stream serves only that stream.
    text = HEADER + f"0 a 1 {2 * MIB} 0\n1 f 1\n2 a 2 {2 * MIB} STREAM\n"
    found = [report("replay", *FLAT, "--config", "", trace(text.replace("STREAM", stream)))
             for stream in ("0", "7")]
    assert [each["driver_calls"]["alloc"] for each in found] == [1, 2], found


@test
def out_of_memory():
    text = HEADER + "".join(f"{i} a {i} {30 * MIB} 0\n" for i in range(3)) + "3 f 0\n4 f 2\n"
    path = trace(text, "big.trace")
    status, out, err = run("replay", "--json", "--cache", "--provider", "flat:64M", "--config", "", path)
    found = json.loads(out)
    assert status == 1 and found["events"] == 3 and found["failures"] == 1 and not found["peak_reached"]
    assert (found["num_ooms"], found["num_first_failures"], found["num_alloc_retries"]) == (1, 1, 0)
    first = found["first_failure"]
    assert (first["event"], first["errno"], first["limit"]) == (3, -12, "capacity"), first
    assert first["bytes"] == first["asked"] == 30 * MIB
    assert err.startswith("flexmem: big.trace: event 3 (line 5), allocation of 31457280 bytes failed: "), err
    assert "60.0 MiB" in err, err
    status, out, _ = run("replay", "--json", "--keep-going", "--cache", "--provider", "flat:64M",
                         "--config", "", path)
    found = json.loads(out)
    assert status == 1 and (found["events"], found["frees"], found["skipped_failed"]) == (5, 1, 1)


@test
def memory_goes_back_when_others_need_it():
    # The first segment is free when the second request finds no room.
    text = HEADER + f"0 a 1 {40 * MIB} 0\n1 f 1\n2 a 2 {60 * MIB} 0\n"
    found = report("replay", "--cache", "--provider", "flat:64MiB", "--config", "", trace(text))
    assert (found["num_first_failures"], found["num_alloc_retries"], found["num_ooms"]) == (1, 1, 0)
    assert found["driver_calls"] == {"alloc": 2, "free": 1, "grow": 0, "shrink": 0}
    assert found["peak_reserved_bytes"] == 60 * MIB


@test
def over_the_device():
    path = trace(SMALL)
    for args in ((), ("--provider", "device")):
        found = report("replay", "--cache", "--config", "", *args, path)
        assert (found["provider"], found["strategy"], found["order"]) == ("device", "first_fit",
                                                                          "fill_first")
        assert "provider_bytes" not in found and found["peak_reserved_bytes"] == 2 * MIB
        assert found["driver_calls"]["alloc"] == 1 and found["failures"] == 0
    assert "  provider         device\n" in good("replay", "--cache", path)
    status, _, err = run("replay", "--cache", "--strategy", "best_fit", path)
    assert status == 1 and "the device runs first_fit, not best_fit" in err, err


@test
def device_fails():
    status, out, err = run("replay", "--json", "--cache", "--config", "", trace(SMALL, "s.trace"),
                           FAKE_ALLOC_AT=1, FAKE_ALLOC_ERROR=5)
    found = json.loads(out)
    assert status == 1 and found["first_failure"]["errno"] == -5 and found["events"] == 1
    assert "s.trace: event 1 (line 3), allocation of 1000 bytes failed: " in err, err
    # The cache has no free memory to return, so the failure has the driver's reason.
    status, out, err = run("replay", "--json", "--cache", "--config", "",
                           trace(HEADER + "".join(f"0 a {i} {12 * GIB} 0\n" for i in range(3))),
                           FAKE_SLOTS=2)
    assert status == 1 and json.loads(out)["first_failure"]["limit"] == "slots"
    assert "no slot left (2 of 2 used)" in err, err


@test
def wrong_usage():
    for args in (("--config", ""), ("--provider", "flat"), (*FLAT, "--show-peak"), (*FLAT, "--trim"),
                 (*FLAT, "--strategy", "best_fit"), (*FLAT, "--order", "fill_first"),
                 ("--cache", "--provider", "flat:"), ("--cache", "--provider", "flat:0"),
                 ("--cache", "--provider", "flat:100"), ("--cache", "--provider", "round"),
                 ("--cache", "--provider", "flatter"), ("--cache", "--show-peak")):
        status, out, err = run("replay", *args, trace(SMALL))
        assert status == 2 and not out and "Try 'flexmem replay --help'" in err, (args, status, err)
    for size in ("", "0", "100", "64X"):
        _, _, err = run("replay", "--cache", "--provider", f"flat:{size}", trace(SMALL))
        assert f"'{size}' is not a size above 0 and a multiple of 128" in err, err


@test
def man_page_has_every_key_of_a_cache():
    with open(MAN, encoding="ascii") as text:
        man = text.read()
    found = report("replay", *FLAT, trace(SMALL))
    keys = set(found) | set(found["driver_calls"]) | set(found["settings"]["backend"])
    missing = [key for key in sorted(keys) if not re.search(rf"\b{key}\b", man)]
    assert not missing, missing


# The opcodes of pickle up to protocol 4 that PyTorch's viewer reads.
VIEWER_READS = set("""APPEND APPENDS BINFLOAT BINGET BININT BININT1 BININT2 BINPUT BINUNICODE DICT EMPTY_DICT
    EMPTY_LIST EMPTY_TUPLE FRAME LIST LONG1 LONG_BINGET LONG_BINPUT MARK MEMOIZE NEWFALSE NEWTRUE NONE PROTO SETITEM
    SETITEMS SHORT_BINUNICODE STOP TUPLE TUPLE1 TUPLE2 TUPLE3""".split())


@test
def the_example_pickles_for_the_viewer():
    source = os.path.join(HERE, "../../userlib/examples/cache_snapshot.c")
    with open(source, encoding="ascii") as text:
        command = re.search(r"\./cache_snapshot \| .*?'.*?'", text.read(), re.S)[0]
    command = re.sub(r"\n \*   ", "\n", command)
    subprocess.run([os.environ.get("CC") or "cc", "-o", os.path.join(tmp.name, "cache_snapshot"), source,
                    "-I" + os.path.join(HERE, "../../userlib/include"), "-I" + os.path.join(HERE, "../../uapi"),
                    os.path.join(BUILD, "shipped", "libflexmem.a"), "-pthread"], check=True)
    subprocess.run(["sh", "-ec", command], cwd=tmp.name, stderr=subprocess.DEVNULL, check=True)
    with open(os.path.join(tmp.name, "snapshot.pickle"), "rb") as pickled:
        used = list(pickletools.genops(pickled))
    assert used[0][0].name == "PROTO" and 2 <= used[0][1] <= 4, used[0]
    assert {op.name for op, _, _ in used} <= VIEWER_READS, {op.name for op, _, _ in used} - VIEWER_READS


if __name__ == "__main__":
    sys.exit(main(tests))
