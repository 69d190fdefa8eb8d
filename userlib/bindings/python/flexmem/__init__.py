# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Device memory of AI accelerators, through the flexmem driver.

    import flexmem

    with flexmem.Device() as device, device.alloc(1 << 20, flexmem.MAPPABLE) as memory:
        memory.write(b"hello")
        array = numpy.frombuffer(memory.map(), numpy.uint8)

A function that fails raises Error, which has an errno and a text that says why; OutOfMemory also has the figures. Sizes
and offsets are bytes. Any thread may use any object.

Each object keeps the objects alive that it needs. An object that was closed or freed is released when its last user is
gone: a device stays open as long as there is an allocation or a cache of it, and memory stays mapped as long as an
array uses it. So no array ever points to memory that does not exist. A forked child releases nothing that belongs to
its parent.

flexmem.cuda is for PyTorch on NVIDIA GPUs. It needs neither the driver nor the rest of this package.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .cache import Block, Cache, Events, Pool
    from .device import MAPPABLE, PROGRAM, ZEROED, Allocation, Device, devices, version
    from .errors import Error, OutOfMemory
    from .structs import Address, Available, Failure, Identity, Info, Region, Statistics, Usage

__all__ = [
    "MAPPABLE", "PROGRAM", "ZEROED", "Address", "Allocation", "Available", "Block", "Cache", "Device", "Error", "Events",
    "Failure", "Identity", "Info", "OutOfMemory", "Pool", "Region", "Statistics", "Usage", "devices", "version",
]


def __getattr__(name: str) -> Any:
    """Imports the rest of the package at its first use, because flexmem.cuda also works where cffi is missing."""
    if name in __all__:
        for home in ("cache", "device", "errors", "structs"):
            module = importlib.import_module(f".{home}", __name__)
            if hasattr(module, name):
                return globals().setdefault(name, getattr(module, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
