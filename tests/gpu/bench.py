#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs kinds of work with several allocators on a GPU, and prints one table.

Usage: bench.py [--kinds K,...] [--allocators A,...] [--turns N] [--limits 1.05,...] [--seconds S] [--results FILE]

Each run is a process of its own. With several turns the allocators run in turn, and the table has the medians. A limit
is a multiple of the bytes that the work has live at most. --results adds the lines of all runs to a file.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = "gpt,generate,resnet,experts,serve,serve4"
ALLOCATORS = "pytorch,expandable,async,fixed,growing"


def missing():
    """Why nothing can run here, or None."""
    try:
        import torch  # pylint: disable=import-outside-toplevel
    except ImportError:
        return f"{sys.executable} has no PyTorch"
    if not torch.version.cuda:
        return "this PyTorch is built without CUDA"
    return None if torch.cuda.is_available() else "there is no GPU"


def card():
    """The card and the versions, in words."""
    import torch  # pylint: disable=import-outside-toplevel
    driver = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True,
                            text=True, check=False).stdout.strip()
    return (f"{torch.cuda.get_device_properties(0).name}, driver {driver}, PyTorch {torch.__version__}, "
            f"Python {sys.version.split()[0]}")


class Bench:
    """The runs, and what they have shown."""

    def __init__(self, options):
        self.options = options
        self.end = time.monotonic() + options.seconds
        self.runs = {}

    def run(self, kind, allocator, limit):
        if time.monotonic() > self.end:
            return None
        words = [sys.executable, os.path.join(HERE, "one.py"), kind, allocator, *([str(limit)] if limit else [])]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        line = done.stdout.strip().split("\n")[-1]
        if not line.startswith("{"):
            print(f"{kind} {allocator}: ended with {done.returncode}\n{done.stderr[-2000:]}", flush=True)
            return None
        if self.options.results:
            with open(self.options.results, "a", encoding="utf-8") as file:
                file.write(line + "\n")
        return json.loads(line)

    def all_runs(self):
        for kind in self.options.kinds.split(","):
            for turn in range(self.options.turns):
                for allocator in self.options.allocators.split(","):
                    result = self.run(kind, allocator, 0)
                    if result:
                        self.runs.setdefault((kind, allocator), []).append(result)
                        self.show(kind, allocator, result, turn)

    def live(self, kind):
        """The most live bytes of a kind of work; cudaMallocAsync does not tell."""
        return max((result["live"] for (other, _), results in self.runs.items() if other == kind
                    for result in results), default=0)

    def show(self, kind, allocator, result, turn):
        print(f"# {turn} {kind} {allocator}: {json.dumps(result)}", flush=True)

    def table(self):
        print(f"{'work':9} {'allocator':11} {'live':>9} {'reserved':>9} {'ratio':>7} {'time':>8} {'driver':>8} "
              f"{'longest':>8} {'pages':>6} loss")
        for (kind, allocator), results in self.runs.items():
            live = self.live(kind)
            reserved = max(result["reserved"] for result in results)
            late = statistics.median(result.get("late_s", float("nan")) for result in results)
            driver, longest, pages = (statistics.median(result.get(key, 0) for result in results)
                                      for key in ("nanoseconds", "longest", "pages"))
            losses = sorted({result.get("loss", float("nan")) for result in results})
            print(f"{kind:9} {allocator:11} {live / 1e9:6.2f} GB {reserved / 1e9:6.2f} GB "
                  f"{reserved / live if live else 0:7.3f} {late:6.2f} s {driver / 1e6:5.0f} ms {longest / 1e6:5.1f} ms "
                  f"{pages:6.0f} {losses[0]}{'' if len(losses) == 1 else f' to {losses[-1]}'}")

    def limited(self):
        """Runs the work with little more memory than it has live."""
        for share in filter(None, self.options.limits.split(",")):
            for kind in self.options.kinds.split(","):
                for allocator in self.options.allocators.split(","):
                    limit = int(self.live(kind) * float(share))
                    result = self.run(kind, allocator, limit) if limit else None
                    if result:
                        end = f"out of memory after step {result['steps']}: {result['failed']}" if "failed" in result \
                            else f"{result['late_s']:.2f} s, {result['num_alloc_retries']} retries"
                        print(f"limit {share} ({limit / 1e9:.2f} GB) {kind:9} {allocator:11} {end}", flush=True)


def main():
    parser = argparse.ArgumentParser(description="Memory and time of kinds of work on a GPU.")
    parser.add_argument("--kinds", default=KINDS)
    parser.add_argument("--allocators", default=ALLOCATORS)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--limits", default="1.05")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no run after this many seconds")
    parser.add_argument("--results")
    options = parser.parse_args()
    reason = missing()
    if reason:
        print(f"skipped: {reason}")
        return
    print(card(), flush=True)
    bench = Bench(options)
    bench.all_runs()
    bench.table()
    bench.limited()


if __name__ == "__main__":
    main()
