#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A process in a container with a limit asks how much memory it can have, and allocates exactly that. Prints TAP.

It asks torch.flexmem, and torch.accelerator if this PyTorch has get_memory_info(). Over host memory (FLEXMEM_TORCH)
the limit is the size of the device.

Usage: exact.py BYTES      BYTES: the limit
"""

import sys

import torch

import torch_flexmem  # noqa: F401, it registers the device

# Each is a segment of the cache, and smaller than the largest free block of the device.
PIECE = 32 << 20


def fails(size):
    try:
        torch.empty(size, dtype=torch.uint8, device="flexmem")
    except torch.OutOfMemoryError as error:
        print(f"# {error}")
        return True
    return False


def all_say(expected):
    info = getattr(getattr(torch, "accelerator", None), "get_memory_info", None)
    told = {"torch.flexmem": torch.flexmem.mem_get_info()}
    if info:
        told["torch.accelerator"] = tuple(info())
    print(f"# told: {told}")
    return set(told.values()) == {expected}


def main():
    limit = int(sys.argv[1])
    is_told = all_say((limit, limit))
    told = torch.flexmem.mem_get_info()
    print("ok" if is_told else "not ok", "1 - a process in a container is told its limit", flush=True)
    held = []
    # A failure ends the program with a traceback.
    while told[0] > sum(tensor.numel() for tensor in held):
        left = told[0] - sum(tensor.numel() for tensor in held)
        piece = min(left, PIECE, torch.flexmem.largest_segment())
        assert piece, "one segment can have nothing"
        held.append(torch.empty(piece, dtype=torch.uint8, device="flexmem"))
    print(f"ok 2 - it gets all of that, in {len(held)} tensors", flush=True)
    full = all_say((0, limit)) and fails(1)
    print("ok" if full else "not ok", "3 - there is no more", flush=True)
    print("1..3")


main()
