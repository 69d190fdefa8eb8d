#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Checks PyTorch on flexmem's cache, on a GPU. Prints TAP."""

import os
import pickle
import subprocess
import sys
import tempfile
import traceback

import flexmem.cuda
import torch

TESTS = []
MIB = 1 << 20


def test(function):
    TESTS.append(function)
    return function


def used():
    return torch.cuda.memory_stats()["reserved_bytes.all.current"]


@test
def tensors_come_from_flexmem():
    before = flexmem.cuda.memory_stats()["allocated_bytes.all.current"]
    tensor = torch.full((1000, 1000), 3.0, device="cuda")
    assert flexmem.cuda.memory_stats()["allocated_bytes.all.current"] >= before + tensor.numel() * 4
    assert torch.cuda.memory_allocated() == flexmem.cuda.memory_stats()["allocated_bytes.all.current"]
    assert tensor.sum().item() == 3e6
    assert "Allocated memory" in torch.cuda.memory_summary()


@test
def empty_cache_returns_memory():
    tensor = torch.empty(500 * MIB, dtype=torch.uint8, device="cuda")
    most = used()
    del tensor
    torch.cuda.empty_cache()
    assert used() <= most - 480 * MIB, (used(), most)
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_reserved() < most


@test
def out_of_memory_is_pytorchs_error():
    try:
        torch.empty(1 << 42, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError as error:
        assert "flexmem" in str(error) and "4.0 TiB" in str(error), error
        print(f"# {error}")
    else:
        raise AssertionError("4 TiB on a GPU")
    torch.ones(10, device="cuda").sum().item()


@test
def a_fraction_limits():
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction((used() + 200 * MIB) / total)
    try:
        torch.empty(400 * MIB, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError as error:
        print(f"# {error}")
    else:
        raise AssertionError("more than the limit")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    torch.empty(400 * MIB, dtype=torch.uint8, device="cuda")


@test
def another_stream_delays_reuse():
    side = torch.cuda.Stream()
    # A long kernel on the other stream must read the old bytes.
    tensor = torch.ones(64 * MIB, dtype=torch.uint8, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)
        total = tensor.sum(dtype=torch.int64)
    tensor.record_stream(side)
    address = tensor.data_ptr()
    del tensor
    other = torch.zeros(64 * MIB, dtype=torch.uint8, device="cuda")
    assert other.data_ptr() != address
    torch.cuda.synchronize()
    assert total.item() == 64 * MIB


@test
def graphs_are_captured_and_replayed():
    data = torch.ones(1000, 1000, device="cuda")
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        made = (data @ data).relu() + torch.full_like(data, 2.0)
    for value in (1.0, 2.0):
        data.fill_(value)
        graph.replay()
        assert made[0, 0].item() == 1000 * value * value + 2
    before = used()
    del made, graph
    torch.cuda.empty_cache()
    assert used() <= before


@test
def a_pool_takes_allocations():
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        tensor = torch.ones(50 * MIB, dtype=torch.uint8, device="cuda")
    assert tensor.sum(dtype=torch.int64).item() == 50 * MIB


@test
def a_snapshot_opens():
    flexmem.cuda.set_setting("history_entries", "1000")
    tensor = torch.ones(1000, device="cuda")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "snapshot.pickle")
        flexmem.cuda.snapshot(path)
        with open(path, "rb") as file:
            content = pickle.load(file)
    del tensor
    assert content["segments"] and any(content["device_traces"])


@test
def threads_train_at_the_same_time():
    import threading
    results = [None] * 4

    def train(number):
        model = torch.nn.Linear(1000, 1000, device="cuda")
        for _ in range(20):
            model(torch.ones(64, 1000, device="cuda")).sum().backward()
        results[number] = model.weight.grad.sum().item()

    threads = [threading.Thread(target=train, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(result == results[0] for result in results), results


@test
def a_script_runs_unchanged():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "script.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write("import sys, torch\nx = torch.ones(3, device='cuda')\n"
                       "print(torch.cuda.get_allocator_backend(), sys.argv[1], x.sum().item())\n")
        done = subprocess.run([sys.executable, "-m", "flexmem.cuda", path, "word"], capture_output=True, text=True,
                              check=False)
    assert (done.returncode, done.stdout) == (0, "pluggable word 3.0\n"), done


def main():
    flexmem.cuda.use()
    print(f"1..{len(TESTS)}")
    failed = 0
    for number, function in enumerate(TESTS, 1):
        try:
            function()
            print(f"ok {number} - {function.__name__}", flush=True)
        except Exception:  # pylint: disable=broad-exception-caught
            failed += 1
            print(f"not ok {number} - {function.__name__}", flush=True)
            print("# " + traceback.format_exc().replace("\n", "\n# "), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
