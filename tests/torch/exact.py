#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A process in a container with a limit asks how much memory it can have, and allocates exactly that. Prints TAP.

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


def main():
    limit = int(sys.argv[1])
    told = torch.flexmem.mem_get_info()
    print(f"# told: {told}")
    print("ok" if told == (limit, limit) else "not ok", "1 - a process in a container is told its limit", flush=True)
    held = []
    # A failure ends the program with a traceback.
    while told[0] > sum(tensor.numel() for tensor in held):
        left = told[0] - sum(tensor.numel() for tensor in held)
        held.append(torch.empty(min(left, PIECE), dtype=torch.uint8, device="flexmem"))
    print(f"ok 2 - it gets all of that, in {len(held)} tensors", flush=True)
    full = torch.flexmem.mem_get_info() == (0, limit) and fails(1)
    print("ok" if full else "not ok", "3 - there is no more", flush=True)
    print("1..3")


main()
