# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Device memory as an array of NumPy's."""

import flexmem
import numpy

with flexmem.Device() as device:
    print(f"{device.path}: {device.info().name}, {device.info().capacity >> 20} MiB")
    with device.alloc(1 << 20, flexmem.MAPPABLE) as a, device.alloc(1 << 20) as b:
        array = numpy.frombuffer(a.map(), numpy.float32)
        array[:] = numpy.arange(len(array))
        b.copy(a)
        print("copied:", numpy.frombuffer(b.read(16), numpy.float32))
    try:
        device.alloc(1 << 40)
    except flexmem.OutOfMemory as error:
        print(f"{error.strerror} (limit: {error.failure.limit})")
