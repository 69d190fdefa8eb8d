# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""A device and its allocations."""

from __future__ import annotations

import errno
from typing import Any

from ._native import ffi, lib
from .errors import Owner, check, owned
from .structs import Address, Available, Failure, Identity, Info, Region, Statistics, from_c

PROGRAM: int = lib.FLEXMEM_PROGRAM
MAPPABLE: int = lib.FLEXMEM_MAPPABLE
ZEROED: int = lib.FLEXMEM_ZEROED


def version() -> str:
    """The library's version."""
    return ffi.string(lib.flexmem_library_version()).decode()


def devices() -> list[Identity]:
    """All functions that this process sees. Device(N) opens the one with index N. FLEXMEM_VISIBLE_DEVICES chooses."""
    count = ffi.new("unsigned int *")
    check(lib.flexmem_device_count(count))
    return [_identity(index) for index in range(count[0])]


def _identity(index: int) -> Identity:
    found = ffi.new("struct flexmem_identity *")
    check(lib.flexmem_device_identity(index, found, ffi.sizeof(found[0])))
    return from_c(Identity, found)


class Device(Owner):
    """An open device. `path`: an index of devices(), "PF", "VF" or a node; None: what FLEX_DEVICE says, or the first VF,
    or else the first PF."""

    def __init__(self, path: str | int | None = None) -> None:
        found = ffi.new("struct flexmem_device **")
        if isinstance(path, int):
            check(lib.flexmem_device_open_index(found, path))
        else:
            check(lib.flexmem_device_open(found, ffi.NULL if path is None else path.encode()))
        self._pointer = owned(found[0], lib.flexmem_device_close)

    @classmethod
    def adopt(cls, descriptor: int) -> Device:
        """Takes over a descriptor of a node that another program has passed. Both programs then have all allocations
        in common, and the limits of the program that opened the node hold. A cache cannot be made over it."""
        found = ffi.new("struct flexmem_device **")
        check(lib.flexmem_device_adopt(found, descriptor))
        device = cls.__new__(cls)
        device._pointer = owned(found[0], lib.flexmem_device_close)
        return device

    @property
    def path(self) -> str:
        """The node that was opened."""
        return ffi.string(lib.flexmem_device_path(self._use())).decode()

    def fileno(self) -> int:
        """The descriptor, for select.poll()."""
        return lib.flexmem_device_fd(self._use())

    def info(self) -> Info:
        found = ffi.new("struct flexmem_properties *")
        check(lib.flexmem_device_properties(self._use(), found, ffi.sizeof(found[0])))
        info = from_c(Info, found)
        return info._replace(fallback_sizes=info.fallback_sizes[: found.fallback_count])

    def statistics(self) -> Statistics:
        found = ffi.new("struct flexmem_statistics *")
        check(lib.flexmem_device_statistics(self._use(), found, ffi.sizeof(found[0])))
        return from_c(Statistics, found)

    def memory_info(self) -> Available:
        """What this process can still get, what it can have in all, and what one allocation can have."""
        found = ffi.new("struct flexmem_available *")
        check(lib.flexmem_device_available(self._use(), found, ffi.sizeof(found[0])))
        return from_c(Available, found)

    def regions(self) -> list[Region]:
        """All regions, as they are at one moment."""
        found, count = ffi.new("struct flexmem_region_state **"), ffi.new("size_t *")
        check(lib.flexmem_device_regions(self._use(), found, ffi.sizeof("struct flexmem_region_state"), count))
        regions = ffi.gc(found[0], lib.flexmem_regions_free)
        return [from_c(Region, regions[i]) for i in range(count[0])]

    def alloc(self, size: int, flags: int = 0, alignment: int = 0) -> Allocation:
        """Allocates. `flags`: any of PROGRAM, MAPPABLE, ZEROED. `alignment`: of the address; 0: the device's own."""
        return Allocation(self._use(), size, flags, alignment)

    def wait(self, failure: Failure, size: int = 0, milliseconds: int = 1000) -> bool:
        """Waits until memory was freed since a failed allocation and `size` bytes are free: whether that happened.

        `failure`: of the OutOfMemory. False at once if memory that becomes free cannot help.
        """
        if not failure.event:
            return False
        error = lib.flexmem_device_wait(self._use(), failure.event, size, milliseconds)
        if error != -errno.ETIMEDOUT:
            check(error)
        return not error


class Allocation(Owner):
    """Device memory, from Device.alloc(). `size` is the requested size, rounded up."""

    handle: int
    address: Address
    size: int
    flags: int

    def __init__(self, device: Any, size: int, flags: int, alignment: int) -> None:
        made = ffi.new("struct flexmem_allocated *")
        check(lib.flexmem_device_alloc(device, size, alignment, flags, made, ffi.sizeof(made[0])), made)
        self.handle, self.size, self.flags = made.handle, made.size, made.flags
        self.address = from_c(Address, made.address)
        self._below = device
        self._pointer = owned(made, lambda last: lib.flexmem_device_free(device, last.handle))

    def _call(self, function: Any, *arguments: Any) -> int:
        """Calls a function of the library with this allocation. The allocation stays until the function returns, even
        if another thread closes the allocation meanwhile.

        Returns the error, and the caller raises it: a traceback of this call would keep the allocation longer.
        """
        below, owner = self._below, self._use()
        return function(below, owner.handle, *arguments)

    def read(self, size: int | None = None, offset: int = 0) -> bytes:
        """Copies bytes out of the allocation; without a size, all bytes from the offset on."""
        data = bytearray(max(self.size - offset, 0) if size is None else size)
        self.readinto(data, offset)
        return bytes(data)

    def readinto(self, data: bytearray | memoryview, offset: int = 0) -> None:
        """Copies bytes out of the allocation, into any object with a writable buffer."""
        into = ffi.from_buffer(data, require_writable=True)
        check(self._call(lib.flexmem_device_read, offset, into, len(into), ffi.NULL))

    def write(self, data: bytes | bytearray | memoryview, offset: int = 0) -> None:
        """Copies bytes into the allocation, from any object with a buffer: bytes, an array, a CPU tensor's numpy()."""
        source = ffi.from_buffer(data)
        check(self._call(lib.flexmem_device_write, offset, source, len(source), ffi.NULL))

    def copy(self, source: Allocation, size: int | None = None, offset: int = 0, source_offset: int = 0) -> None:
        """Copies from an allocation of the same device, within the device; without a size, all of it."""
        length = source.size - source_offset if size is None else size
        # On another device the handle would name another allocation.
        if source._below is not self._below:
            raise ValueError("the source is an allocation of another device")
        check(self._call(lambda below, handle, owner: lib.flexmem_device_copy(
            below, handle, offset, owner.handle, source_offset, length, ffi.NULL), source._use()))

    def map(self, offset: int = 0, size: int = 0, read_only: bool = False) -> memoryview:
        """Maps the allocation, or `size` bytes of it, for the CPU. The allocation must be MAPPABLE. `offset` is a
        multiple of a page.

        numpy.frombuffer() and torch.frombuffer() take the result. The mapping ends when neither the result nor an array
        over it is left; until then the memory stays charged.
        """
        address, mapped = ffi.new("void **"), ffi.new("size_t *")
        flags = lib.FLEXMEM_READ_ONLY if read_only else 0
        check(self._call(lib.flexmem_device_map, offset, size, flags, address, mapped))
        length = mapped[0]
        start = owned(ffi.cast("char *", address[0]), lambda last: lib.flexmem_device_unmap(ffi.NULL, last, length))
        view = memoryview(ffi.buffer(start, length))
        return view.toreadonly() if read_only else view
