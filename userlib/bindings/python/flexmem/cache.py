# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""The caching allocator: blocks that are freed serve the next request."""

from __future__ import annotations

import errno
import functools
import json
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from ._native import ffi, lib
from .device import Device
from .errors import Owner, check, owned
from .structs import Address, Available, Usage, from_c

_POOLS = ("all", "small_pool", "large_pool")
_FIGURES = ("current", "peak", "allocated", "freed")


def _destroy(_below: Any, cache: Any) -> None:
    """Destroys a cache. `_below` keeps the object alive that provides the cache's memory."""
    lib.flexmem_cache_destroy(cache)


class Events(Protocol):
    """How a cache waits for streams. `record` returns a number for an event that happens when all work is done that was
    put on the stream before; `query` tells whether the event has happened. The cache is locked while it calls them, so
    they must not use it. An exception counts as an error of the device."""

    def record(self, stream: int) -> int:
        ...

    def query(self, event: int) -> bool:
        ...

    def synchronize(self, event: int) -> None:
        """Waits until the event has happened."""

    def destroy(self, event: int) -> None:
        ...

    def synchronize_device(self) -> None:
        """Waits until all work on all streams is done."""

    def wait(self, stream: int, event: int) -> None:
        """Lets all later work of the stream wait on the device until the event has happened."""


def _events(events: Events) -> tuple[Any, list[Any]]:
    """The struct of the library for the callbacks, and the objects that must live as long."""
    made = ffi.new("struct flexmem_cache_events *")
    kept = [made]

    def record(_user: Any, stream: int, event: Any) -> int:
        event[0] = events.record(stream)
        return 0

    def query(_user: Any, event: int) -> int:
        return 0 if events.query(event) else -errno.EAGAIN

    def destroy(_user: Any, event: int) -> None:
        events.destroy(event)

    def plain(method: Callable[..., None]) -> Callable[..., int]:
        def call(_user: Any, *arguments: int) -> int:
            method(*arguments)
            return 0

        return call

    for name, function in (("record", record), ("query", query), ("synchronize", plain(events.synchronize)),
                           ("destroy", destroy), ("synchronize_device", plain(events.synchronize_device)),
                           ("wait", plain(events.wait))):
        kind = ffi.typeof(getattr(made, name))
        error = () if name == "destroy" else (-errno.EIO,)
        callback = ffi.callback(kind, function, *error)
        setattr(made, name, callback)
        kept.append(callback)
    return made, kept


class Cache(Owner):
    """A cache for the memory of a device; or, for experiments, for `simulated` bytes of an address space without
    memory.

    `mapped`: each block has a buffer. `configuration`: settings like "max_split_size_mb:64"; None: the settings in the
    environment variable FLEXMEM_ALLOC_CONF or PYTORCH_ALLOC_CONF. A mistake in the settings is an error. `events`: how
    to wait for streams; None: all work is done at once.
    """

    def __init__(self, device: Device | None = None, *, mapped: bool = False, configuration: str | None = None,
                 simulated: int = 0, events: Events | None = None) -> None:
        if (device is None) == (not simulated):
            raise ValueError("a cache needs a device, or a number of simulated bytes")
        problem = ffi.new("char[512]")
        options = ffi.new("struct flexmem_cache_options *")
        options.problem, options.problem_length = problem, len(problem)
        options.flags = lib.FLEXMEM_CACHE_STRICT | (lib.FLEXMEM_CACHE_MAPPED if mapped else 0)
        provider = ffi.new("struct flexmem_cache_provider *")
        if device:
            below: Any = device._use()
            options.device = below
        else:
            flat = ffi.new("struct flexmem_cache_flat **")
            check(lib.flexmem_cache_flat_create(flat, simulated, provider, ffi.sizeof(provider[0])))
            below = ffi.gc(flat[0], lib.flexmem_cache_flat_destroy)
            options.provider, options.provider_size = provider, ffi.sizeof(provider[0])
        settings = None if configuration is None else ffi.new("char[]", configuration.encode())
        options.configuration = settings or ffi.NULL
        if events:
            options.events, kept = _events(events)
            options.events_size = ffi.sizeof(options.events[0])
            below = (below, kept)
        made = ffi.new("struct flexmem_cache **")
        error = lib.flexmem_cache_create(made, options, ffi.sizeof(options[0]))
        if problem[0] != b"\0":
            raise ValueError(ffi.string(problem).decode())
        check(error)
        self._pointer = owned(made[0], functools.partial(_destroy, below))

    def alloc(self, size: int, stream: int = 0, tag: str | None = None, pool: Pool | None = None, *,
              alignment: int = 0) -> Block:
        """Allocates. `stream`: the stream on which the memory is used; `tag`: a name that snapshots show; `pool`: a
        private pool of this cache; `alignment`: a power of two of which the offset of the address is a multiple; 0: the
        cache's own."""
        return Block(self._use(), size, stream, tag, pool.number if pool else 0, alignment)

    def pool(self, *, use_on_oom: bool = False, no_split: bool = False) -> Pool:
        """Makes a private pool. `use_on_oom`: its free memory serves requests without a pool that would fail;
        `no_split`: each block gets a segment of its own."""
        return Pool(self._use(), use_on_oom, no_split)

    def empty(self) -> int:
        """Frees device memory that no block uses. Returns the number of bytes."""
        released = ffi.new("uint64_t *")
        check(lib.flexmem_cache_empty(self._use(), released))
        return released[0]

    def trim(self, size: int) -> int:
        """Frees at least `size` bytes of device memory, if so many are free, and waits for no stream. Returns the number
        of bytes."""
        released = ffi.new("uint64_t *")
        check(lib.flexmem_cache_trim(self._use(), size, released))
        return released[0]

    def serve_pressure(self) -> int | None:
        """Reads the next event of the device, and frees the memory that it asks for. Returns the number of bytes; None:
        there is no event. Device.fileno() is readable when there is one."""
        released = ffi.new("uint64_t *")
        error = lib.flexmem_cache_serve_pressure(self._use(), released)
        if error == -errno.EAGAIN:
            return None
        check(error)
        return released[0]

    def start_helper(self) -> None:
        """Starts a thread that serves pressure, until stop_helper() or the end of the cache."""
        check(lib.flexmem_cache_start_helper(self._use()))

    def stop_helper(self) -> None:
        """Ends the thread of start_helper()."""
        check(lib.flexmem_cache_stop_helper(self._use()))

    def memory_info(self) -> tuple[int, int]:
        """The bytes that the cache can still get, and that it can have in all, from the same moment."""
        free, total = ffi.new("uint64_t *"), ffi.new("uint64_t *")
        check(lib.flexmem_cache_memory_info(self._use(), free, total))
        return free[0], total[0]

    def available(self) -> Available:
        """What the cache can still get, what it can have in all, and what one segment can have."""
        found = ffi.new("struct flexmem_available *")
        check(lib.flexmem_cache_available(self._use(), found, ffi.sizeof(found[0])))
        return from_c(Available, found)

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


class Pool(Owner):
    """A private pool, from Cache.pool(): its segments serve only requests for the pool, until close(). Its blocks stay
    allocated. `number` is the pool's number in snapshots and error texts."""

    number: int

    def __init__(self, cache: Any, use_on_oom: bool, no_split: bool) -> None:
        number = ffi.new("uint64_t *")
        check(lib.flexmem_cache_pool_create(cache, number))
        # The callback of begin(). The cache calls it until end().
        filters: list[Any] = []

        def release(last: Any) -> None:
            if filters:
                lib.flexmem_cache_pool_end(cache, last[0])
            lib.flexmem_cache_pool_release(cache, last[0])

        self.number, self._below, self._filters = number[0], cache, filters
        self._pointer = owned(number, release)
        flags = ((lib.FLEXMEM_CACHE_POOL_USE_ON_OOM if use_on_oom else 0) |
                 (lib.FLEXMEM_CACHE_POOL_NO_SPLIT if no_split else 0))
        check(lib.flexmem_cache_pool_set_flags(cache, self.number, flags))

    def begin(self, streams: Iterable[int] | None = None, *, capture: bool = False) -> None:
        """From now on the pool gets the requests of these streams that name no pool; None: of all streams. `capture`: a
        graph is captured, so the cache calls none of its events."""
        accepted = None if streams is None else frozenset(streams)
        call = ffi.callback("flexmem_cache_filter_fn", lambda user, stream: accepted is None or stream in accepted)
        check(lib.flexmem_cache_pool_begin(*self._both(), call, ffi.NULL))
        self._filters.append(call)
        if capture:
            check(lib.flexmem_cache_pool_capture(*self._both()))

    def end(self) -> None:
        """Ends begin()."""
        check(lib.flexmem_cache_pool_end(*self._both()))
        self._filters.clear()

    def empty(self) -> int:
        """Frees device memory of the pool that no block uses. Returns the number of bytes."""
        released = ffi.new("uint64_t *")
        check(lib.flexmem_cache_pool_empty(*self._both(), released))
        return released[0]

    def usage(self) -> Usage:
        """The sums of the pool."""
        found = ffi.new("struct flexmem_cache_usage *")
        check(lib.flexmem_cache_pool_usage(*self._both(), ffi.NULL, found, ffi.sizeof(found[0])))
        return from_c(Usage, found)

    def _both(self) -> tuple[Any, int]:
        """The cache and the number of the pool."""
        number = self._use()[0]
        return self._below, number


class Block(Owner):
    """Memory of a cache, from Cache.alloc(). `token` names its first byte, and `token` plus n names byte n."""

    token: int
    size: int
    requested: int
    address: Address
    stream: int
    pool: int

    def __init__(self, cache: Any, size: int, stream: int, tag: str | None, pool: int, alignment: int) -> None:
        name = ffi.NULL if tag is None else ffi.new("char[]", tag.encode())
        request = ffi.new("struct flexmem_cache_request *", {"bytes": size, "stream": stream, "pool": pool, "tag": name,
                                                             "alignment": alignment})
        made = ffi.new("struct flexmem_cache_allocation *")
        check(lib.flexmem_cache_alloc_request(cache, request, ffi.sizeof(request[0]), made, ffi.sizeof(made[0])), made)
        self.token = int(ffi.cast("uintptr_t", made.token))
        self.size, self.requested, self.stream, self.pool = made.size, made.requested, made.stream, made.pool
        self.address = from_c(Address, made.address)
        token = made.token
        self._below = cache
        self._pointer = owned(ffi.cast("char *", made.pointer), lambda last: lib.flexmem_cache_free(cache, token))

    def record_stream(self, stream: int) -> None:
        """Says that work on another stream uses the block. After close() its memory serves nobody until that work is
        done, which the events of the cache tell."""
        self._use()
        check(lib.flexmem_cache_record_stream(self._below, ffi.cast("void *", self.token), stream))

    @property
    def buffer(self) -> memoryview:
        """The bytes of the block, if the cache is mapped. The block stays allocated while this object or an array over
        the buffer exists."""
        start = self._use()
        if start == ffi.NULL:
            raise ValueError("the cache is not mapped, or the block has no bytes")
        return memoryview(ffi.buffer(start, self.requested))
