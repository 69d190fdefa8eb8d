# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""The caching allocator: blocks that are freed serve the next request."""

from __future__ import annotations

import functools
import json
from typing import Any

from ._native import ffi, lib
from .device import Device
from .errors import Owner, check, owned
from .structs import Address, from_c

_POOLS = ("all", "small_pool", "large_pool")
_FIGURES = ("current", "peak", "allocated", "freed")


def _destroy(_below: Any, cache: Any) -> None:
    """Destroys a cache. `_below` keeps the object alive that provides the cache's memory."""
    lib.flexmem_cache_destroy(cache)


class Cache(Owner):
    """A cache for the memory of a device; or, for experiments, for `simulated` bytes of an address space without
    memory.

    `mapped`: each block has a buffer. `configuration`: settings like "max_split_size_mb:64"; None: the settings in the
    environment variable FLEXMEM_ALLOC_CONF or PYTORCH_ALLOC_CONF. A mistake in the settings is an error.
    """

    def __init__(self, device: Device | None = None, *, mapped: bool = False, configuration: str | None = None,
                 simulated: int = 0) -> None:
        if (device is None) == (not simulated):
            raise ValueError("a cache needs a device, or a number of simulated bytes")
        problem = ffi.new("char[512]")
        options = ffi.new("struct flexmem_cache_options *")
        options.problem, options.problem_length = problem, len(problem)
        options.flags = lib.FLEXMEM_CACHE_STRICT | (lib.FLEXMEM_CACHE_MAPPED if mapped else 0)
        provider = ffi.new("struct flexmem_cache_provider *")
        if device:
            below = options.device = device._use()
        else:
            flat = ffi.new("struct flexmem_cache_flat **")
            check(lib.flexmem_cache_flat_create(flat, simulated, provider, ffi.sizeof(provider[0])))
            below = ffi.gc(flat[0], lib.flexmem_cache_flat_destroy)
            options.provider, options.provider_size = provider, ffi.sizeof(provider[0])
        settings = None if configuration is None else ffi.new("char[]", configuration.encode())
        options.configuration = settings or ffi.NULL
        made = ffi.new("struct flexmem_cache **")
        error = lib.flexmem_cache_create(made, options, ffi.sizeof(options[0]))
        if problem[0] != b"\0":
            raise ValueError(ffi.string(problem).decode())
        check(error)
        self._pointer = owned(made[0], functools.partial(_destroy, below))

    def alloc(self, size: int, stream: int = 0, tag: str | None = None) -> Block:
        """Allocates. `stream`: the stream on which the memory is used; `tag`: a name that snapshots show."""
        return Block(self._use(), size, stream, tag)

    def empty(self) -> int:
        """Frees device memory that no block uses. Returns the number of bytes."""
        released = ffi.new("uint64_t *")
        check(lib.flexmem_cache_empty(self._use(), released))
        return released[0]

    def memory_info(self) -> tuple[int, int]:
        """The device's free and total bytes, from the same moment."""
        free, total = ffi.new("uint64_t *"), ffi.new("uint64_t *")
        check(lib.flexmem_cache_memory_info(self._use(), free, total))
        return free[0], total[0]

    def statistics(self) -> dict[str, int]:
        """The figures, under the keys of torch.cuda.memory_stats()."""
        found = ffi.new("struct flexmem_cache_statistics *")
        check(lib.flexmem_cache_statistics(self._use(), found, ffi.sizeof(found[0])))
        figures = {}
        for name, field in ffi.typeof(found[0]).fields:
            value = getattr(found, name)
            if field.type.kind == "array":
                figures.update({f"{name}.{pool}.{figure}": getattr(value[i], figure)
                                for i, pool in enumerate(_POOLS) for figure in _FIGURES})
            elif field.type.kind == "struct":
                figures.update({f"{name}.{figure}": getattr(value, figure) for figure in _FIGURES})
            else:
                figures[name] = value
        return figures

    def snapshot(self) -> dict[str, Any]:
        """Segments and blocks, in the form of torch.cuda.memory._snapshot()."""
        text = ffi.new("char **")
        check(lib.flexmem_cache_snapshot(self._use(), lib.FLEXMEM_CACHE_EVERY_POOL, text, ffi.NULL))
        return json.loads(ffi.string(ffi.gc(text[0], lib.flexmem_cache_text_free)))


class Block(Owner):
    """Memory of a cache, from Cache.alloc(). `token` names its first byte, and `token` plus n names byte n."""

    token: int
    size: int
    requested: int
    address: Address
    stream: int

    def __init__(self, cache: Any, size: int, stream: int, tag: str | None) -> None:
        name = ffi.NULL if tag is None else ffi.new("char[]", tag.encode())
        request = ffi.new("struct flexmem_cache_request *", {"bytes": size, "stream": stream, "tag": name})
        made = ffi.new("struct flexmem_cache_allocation *")
        check(lib.flexmem_cache_alloc_request(cache, request, ffi.sizeof(request[0]), made, ffi.sizeof(made[0])), made)
        self.token = int(ffi.cast("uintptr_t", made.token))
        self.size, self.requested, self.stream = made.size, made.requested, made.stream
        self.address = from_c(Address, made.address)
        token = made.token
        self._pointer = owned(ffi.cast("char *", made.pointer), lambda last: lib.flexmem_cache_free(cache, token))

    @property
    def buffer(self) -> memoryview:
        """The bytes of the block, if the cache is mapped. The block stays allocated while this object or an array over
        the buffer exists."""
        start = self._use()
        if start == ffi.NULL:
            raise ValueError("the cache is not mapped, or the block has no bytes")
        return memoryview(ffi.buffer(start, self.requested))
