# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""A cache: memory that is freed serves the next request, without a call of the driver."""

import flexmem
import numpy

with flexmem.Device() as device, flexmem.Cache(device, mapped=True) as cache:
    for step in range(3):
        with cache.alloc(4096, tag=f"step {step}") as block:
            numpy.frombuffer(block.buffer, numpy.int32)[:] = step
            print(f"step {step} at {block.address.region_id}:{block.address.offset}")
    figures = cache.statistics()
    print(f"{figures['num_hits']} of 3 from the cache, {figures['reserved_bytes.all.current'] >> 20} MiB reserved")
    print(f"{cache.empty() >> 20} MiB given back")
