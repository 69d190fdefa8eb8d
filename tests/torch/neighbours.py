#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Two processes share a device. One gets what the other's cache keeps and does not use. Prints TAP.

The device needs the driver, and regions of at least 1 GiB. Without an argument the program is the process that asks; it
starts the other one.

Usage: neighbours.py [hog BYTES]      hog: fills BYTES, keeps one tensor of them, and says what it has each time that it
                                      reads a line
"""

import subprocess
import sys

import torch

import torch_flexmem  # noqa: F401, it registers the device

# Each is a segment of the cache.
PIECE = 64 << 20
FILLED = 3 << 29


def new(size):
    return torch.empty(size, dtype=torch.uint8, device="flexmem")


def hog(size):
    held = [new(PIECE) for _ in range(size // PIECE)]
    held[0].fill_(7)
    del held[1:]
    for _ in sys.stdin:
        print(torch.flexmem.memory_reserved(), bool((held[0] == 7).all()), flush=True)


class Hog:
    """The other process. If it ends too early, reading what it has fails with a ValueError."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, __file__, "hog", str(FILLED)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def has(self):
        """Returns the bytes that its cache has reserved, and whether its tensor is as it was."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        reserved, is_whole = self.process.stdout.readline().split()
        return int(reserved), is_whole == "True"

    def end(self):
        self.process.stdin.close()
        return self.process.wait()


def main():
    other = Hog()
    reserved, _ = other.has()
    print("ok" if reserved == FILLED else "not ok", "1 - a cache keeps what the program does not use", flush=True)
    largest = torch.flexmem.largest_segment()
    lacks = 2 * PIECE
    # The program has one piece of this, so there is enough if its cache gives the rest back.
    assert largest + lacks <= FILLED - PIECE, largest
    # A failure ends the program with a traceback.
    tensor = new(largest + lacks)
    print(f"ok 2 - another process gets {lacks >> 20} MiB more than one segment could have", flush=True)
    left, is_whole = other.has()
    print(f"# the other cache had {reserved >> 20} MiB, and has {left >> 20} MiB")
    good = left <= reserved - lacks and is_whole and tensor.numel() == largest + lacks
    print("ok" if good else "not ok", "3 - the cache gave that back, and not what is in use", flush=True)
    print("ok" if not other.end() else "not ok", "4 - the program goes on", flush=True)
    print("1..4")


if sys.argv[1:2] == ["hog"]:
    hog(int(sys.argv[2]))
else:
    main()
