#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Writes a snapshot of PyTorch in flexmem's memory, with the history of two allocations and a free.

Usage: snapshot.py FILE
"""

import sys

import torch

import torch_flexmem  # noqa: F401, it registers the device

torch.flexmem._record_memory_history(max_entries=100)
kept = torch.empty(3 << 20, dtype=torch.uint8, device="flexmem")
freed = torch.empty(5000, dtype=torch.uint8, device="flexmem")
del freed
torch.flexmem._dump_snapshot(sys.argv[1])
