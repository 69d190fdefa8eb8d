# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Memory under the names, and with the keys, of torch.cuda."""

import collections
import contextlib
import json
import pickle
import types
import weakref

import torch
from torch.cuda import memory as _cuda

from .device import _index, device_count

_ops = torch.ops.flexmem


def memory_stats(device=None):
    """Figures of the caching allocator: see torch.cuda.memory_stats()."""
    return collections.OrderedDict(sorted(_ops.memory_stats(_index(device)).items()))


def memory_stats_as_nested_dict(device=None):
    nested = {}
    for key, value in memory_stats(device).items():
        *path, last = key.split(".")
        place = nested
        for part in path:
            place = place.setdefault(part, {})
        place[last] = value
    return nested


def memory_allocated(device=None):
    return memory_stats(device)["allocated_bytes.all.current"]


def max_memory_allocated(device=None):
    return memory_stats(device)["allocated_bytes.all.peak"]


def memory_reserved(device=None):
    return memory_stats(device)["reserved_bytes.all.current"]


def max_memory_reserved(device=None):
    return memory_stats(device)["reserved_bytes.all.peak"]


def reset_peak_memory_stats(device=None):
    _ops.reset_peaks(_index(device))


def reset_accumulated_memory_stats(device=None):
    _ops.reset_accumulated(_index(device))


def empty_cache(pool=None):
    """Frees device memory that no tensor uses: of a MemPool, or on all devices outside of all pools."""
    if pool is None:
        _ops.empty_cache()
    else:
        _ops.pool_empty(*pool._place)


class MemPool:
    """Memory of the current device that serves only the requests under use_mem_pool(): see torch.cuda.MemPool.

    `use_on_oom`: its free memory also serves requests without a pool that would fail otherwise. `no_split`: each tensor
    gets a segment of its own. When the object is gone, segments go with their last tensor.
    """

    def __init__(self, allocator=None, use_on_oom=False, no_split=False):
        if allocator is not None:
            raise NotImplementedError("flexmem: a pool of this device has no other allocator")
        self._place = _ops.pool_make(use_on_oom, no_split)
        # PyTorch's first number is that of a graph, which a pool has not. The second is of the device.
        self.id = (0, self._place[1])
        weakref.finalize(self, _ops.pool_release, *self._place)

    def use_count(self):
        return _ops.pool_uses(*self._place)

    def snapshot(self):
        """Segments and blocks of the pool, in the form of memory_snapshot()."""
        return _part(*self._place)["segments"]


@contextlib.contextmanager
def use_mem_pool(pool, device=None):
    """Sends what this thread allocates on a pool's device to that MemPool."""
    index, number = pool._place
    if device is not None and _index(device) != index:
        raise ValueError(f"flexmem: the pool is on flexmem:{index}")
    before = _ops.pool_select(index, number)
    try:
        yield
    finally:
        _ops.pool_select(index, before)


def mem_get_info(device=None):
    """The bytes that this process can still get, and that it can have in all."""
    return _ops.mem_get_info(_index(device))


def largest_segment(device=None):
    """The bytes that one new segment can have: what mem_get_info() says is free need not be in one piece."""
    return _ops.largest_segment(_index(device))


def set_per_process_memory_fraction(fraction, device=None):
    """Limits what the cache reserves to a share of what the process can have, above 0 and up to 1."""
    _ops.set_memory_fraction(fraction, _index(device))


def get_per_process_memory_fraction(device=None):
    return float(_ops.setting("per_process_memory_fraction", _index(device)))


# torch.cuda.memory_summary() with this module's figures.
_summary = types.FunctionType(
    _cuda.memory_summary.__code__,
    {**vars(_cuda), "memory_stats": memory_stats, "_get_device_index": lambda device, optional: _index(device)},
    argdefs=_cuda.memory_summary.__defaults__,
)


def memory_summary(device=None, abbreviated=False):
    """The figures as a table."""
    text = _summary(device, abbreviated)
    for theirs, ours in (("PyTorch CUDA", "flexmem     "), ("CUDA OOMs", "OOMs     "), ("cudaMalloc", "allocation"),
                         ("GPU ", "    ")):
        text = text.replace(theirs, ours)
    return text


def _record_memory_history(enabled="all", context="all", stacks="all", max_entries=None, device=None):
    """Records events, and the stacks of requests: see torch.cuda.memory._record_memory_history()."""
    _index(device)
    if enabled not in (None, "state", "all"):
        raise ValueError(f"enabled is {enabled!r}, but can only be None, 'state' or 'all'")
    entries = min(max_entries or 1 << 20, 1 << 20) if enabled == "all" else 0
    _ops.record_history(entries, bool(enabled and context), stacks == "all")


def _part(index, pool=-1):
    """One device's part of a snapshot; it has no segments before the device's first allocation."""
    return json.loads(_ops.snapshot(index, pool) or '{"segments": [], "device_traces": []}')


def _snapshot(device=None):
    """Segments, blocks and events of all devices, in the form of torch.cuda.memory._snapshot()."""
    _index(device)
    whole = {"segments": [], "device_traces": []}
    for index in range(device_count()):
        part = _part(index)
        whole["segments"] += part.pop("segments")
        # The last trace is that of the device. The ones before it are empty.
        whole["device_traces"].append((part.pop("device_traces") or [[]])[-1])
        whole.update(part)
    return whole


def memory_snapshot():
    return _snapshot()["segments"]


def _dump_snapshot(filename="dump_snapshot.pickle"):
    """Writes a snapshot for https://pytorch.org/memory_viz."""
    with open(filename, "wb") as file:
        pickle.dump(_snapshot(), file, protocol=4)
