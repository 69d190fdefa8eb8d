# SPDX-License-Identifier: GPL-2.0
"""Runs one kind of work with one allocator, and prints a line of JSON.

Usage: one.py KIND ALLOCATOR [LIMIT]        LIMIT: bytes of the GPU that may be reserved

ALLOCATOR: pytorch, expandable, async: PyTorch's own; fixed, growing: flexmem's.
"""

import json
import os
import sys
import time

TORCH = {"pytorch": "", "expandable": "expandable_segments:True", "async": "backend:cudaMallocAsync"}
FLEXMEM = {"fixed": "expandable_segments:False", "growing": "expandable_segments:True"}


def prepare(allocator, limit):
    """Selects the allocator, and returns PyTorch."""
    if allocator in TORCH:
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = TORCH[allocator]
    else:
        os.environ["FLEXMEM_ALLOC_CONF"] = FLEXMEM[allocator]
    import torch  # pylint: disable=import-outside-toplevel
    if allocator in FLEXMEM:
        import flexmem.cuda  # pylint: disable=import-outside-toplevel
        flexmem.cuda.use()
        if limit:
            flexmem.cuda.set_limit(limit, 0)
    elif limit:
        torch.cuda.set_per_process_memory_fraction(limit / torch.cuda.get_device_properties(0).total_memory)
    # The choice of an attention kernel must not depend on the allocator.
    torch.backends.cuda.enable_cudnn_sdp(False)
    return torch


def run(torch, kind):
    """Does the work. Returns the times of its steps, or what stopped it."""
    import work  # pylint: disable=import-outside-toplevel
    times = []
    each = 10 if kind.startswith("serve") else 1
    try:
        start = time.perf_counter()
        for step, loss in enumerate(work.KINDS[kind](work.draws()), 1):
            if step % each == 0:
                torch.cuda.synchronize()
                times.append((time.perf_counter() - start) / each)
                start = time.perf_counter()
        late = times[len(times) // 3:]
        return {"loss": float(loss.detach()), "late_s": sum(late) * each, "steps": len(times) * each}
    except torch.OutOfMemoryError as error:
        return {"failed": str(error).split("\n", maxsplit=1)[0], "steps": len(times) * each}


def main():
    kind, allocator = sys.argv[1:3]
    limit = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    torch = prepare(allocator, limit)
    result = {"kind": kind, "allocator": allocator, "limit": limit, **run(torch, kind)}
    stats = torch.cuda.memory_stats()
    result["reserved"] = stats.get("reserved_bytes.all.peak", 0)
    result["live"] = stats.get("requested_bytes.all.peak", 0)
    for key in ("num_alloc_retries", "num_device_alloc", "num_device_grow", "num_sync_all_streams"):
        result[key] = stats.get(key, 0)
    if allocator in FLEXMEM:
        import flexmem.cuda  # pylint: disable=import-outside-toplevel
        result.update(flexmem.cuda.driver_calls(0))
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
