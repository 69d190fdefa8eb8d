# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""The replies of the driver and of the cache. flexmem.h describes the members, which have the same names."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

from ._native import ffi, lib

T = TypeVar("T")


class Address(NamedTuple):
    """struct flexmem_virtual_address"""

    region_id: int
    offset: int


class Identity(NamedTuple):
    """struct flexmem_identity: where a function is, and its name that stays"""

    path: str
    id: str
    bus: str
    address: str
    parent: str
    driver: str
    function: str


class Info(NamedTuple):
    """struct flexmem_properties: what a device is, and how it was set up"""

    function: str
    strategy: str
    order: str
    acquisition: str
    slots: int
    max_regions: int
    program_slots: int
    max_handles: int
    max_batch: int
    condition: str
    alignment: int
    max_alignment: int
    granule: int
    capacity: int
    max_region: int
    capabilities: int
    fallback_sizes: tuple[int, ...]
    name: str
    space_page: int
    space_start: int
    space_length: int

    @property
    def can_map(self) -> bool:
        """Whether the CPU can map the device's memory."""
        return bool(self.capabilities & lib.FLEXMEM_CAN_MAP)

    @property
    def can_copy(self) -> bool:
        """Whether read() and write() work."""
        return bool(self.capabilities & lib.FLEXMEM_CAN_COPY)


class Statistics(NamedTuple):
    """struct flexmem_statistics: figures of a device at one moment"""

    flags: int
    regions: int
    total: int
    free: int
    used: int
    used_program: int
    allocated: int
    allocs: int
    frees: int
    failures: int
    generation: int
    own_used: int
    own_peak: int
    own_handles: int


class Region(NamedTuple):
    """struct flexmem_region_state: one region"""

    region_id: int
    slot: int
    flags: int
    total: int
    free: int
    largest_free: int
    allocated_blocks: int
    free_blocks: int
    sequence: int
    domain: int


class Available(NamedTuple):
    """struct flexmem_available: what a process can have of a device's memory"""

    free: int
    total: int
    largest: int


class Failure(NamedTuple):
    """struct flexmem_failure: why there was no device memory"""

    limit: str
    regions: int
    slots: int
    program_slots: int
    max_regions: int
    max_handles: int
    flags: int
    charge: str
    asked: int
    total_free: int
    largest_free: int
    max_region: int
    own_used: int
    quota: int
    quota_used: int
    region_limit: str
    quota_flags: int
    leaving: int
    quota_own: int
    event: int
    quota_cgroup: int
    quota_left: int


class Usage(NamedTuple):
    """struct flexmem_cache_usage: the sums of a pool"""

    uses: int
    segments: int
    reserved_bytes: int
    active_bytes: int
    allocations: int
    allocated_bytes: int
    requested_bytes: int


# Members that are shown as names: the enum, and the prefix of its names. A number without a name stays a
# number.
_ENUMS = {
    "function": ("enum flexmem_function", "FLEXMEM_"),
    "strategy": ("enum flexmem_strategy", "FLEXMEM_"),
    "order": ("enum flexmem_region_order", "FLEXMEM_"),
    "acquisition": ("enum flexmem_acquisition", "FLEXMEM_"),
    "condition": ("enum flexmem_condition", "FLEXMEM_"),
    "charge": ("enum flexmem_charge", "FLEXMEM_CHARGE_"),
    "limit": ("enum flexmem_limit", "FLEXMEM_LIMIT_"),
    "region_limit": ("enum flexmem_limit", "FLEXMEM_LIMIT_"),
}


def _value(name: str, value: Any) -> Any:
    """Converts a member of a struct to a Python value."""
    if name in _ENUMS:
        kind, prefix = _ENUMS[name]
        return ffi.typeof(kind).elements.get(value, str(value)).removeprefix(prefix).lower()
    if not isinstance(value, ffi.CData):
        return value
    return ffi.string(value).decode() if ffi.typeof(value).item.cname == "char" else tuple(value)


def from_c(kind: type[T], struct: Any) -> T:
    """Converts a struct of the library to the type `kind`."""
    return kind(**{name: _value(name, getattr(struct, name)) for name in kind._fields})  # type: ignore[attr-defined]
