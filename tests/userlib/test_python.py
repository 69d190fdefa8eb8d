#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The Python package, with the fake kernel below the library."""

import ctypes
import errno
import os
import subprocess
import sys

from tool import BUILD, HERE, main, test, tests

BINDING = os.path.join(HERE, "../../userlib/bindings/python")
PACKAGE = os.path.join(BUILD, "python")
sys.path.insert(0, PACKAGE)

# pylint: disable=wrong-import-position
import flexmem.device
import numpy
from flexmem import (MAPPABLE, Address, Available, Cache, Device, Error, Failure, Identity, Info, OutOfMemory, Region,
                     Statistics, Usage, devices, version)
from flexmem._native import __file__ as native
from flexmem._native import ffi, lib

kernel = ctypes.CDLL(native)
MIB = 1 << 20
GIB = 1 << 30


def all_closed():
    """Whether the fake kernel has no open file and no mapping."""
    return bool(kernel.fake_all_closed() & 1)


def protection(array):
    """Returns the permissions of the mapping that contains an array, such as "rw-s"."""
    address = array.ctypes.data
    with open("/proc/self/maps", encoding="utf-8") as file:
        lines = [line.split() for line in file]
    return next(line[1] for line in lines if int(line[0].split("-")[0], 16) <= address < int(line[0].split("-")[1], 16))


def raised(kind, function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except kind as error:
        return error
    raise AssertionError(f"{function} has not raised {kind}")


@test
def every_member_of_the_structs_is_there():
    for kind, struct in ((Info, "properties"), (Statistics, "statistics"), (Region, "region_state"),
                         (Failure, "failure"), (Address, "virtual_address"), (Identity, "identity"),
                         (Usage, "cache_usage"), (Available, "available")):
        members = {name for name, _ in ffi.typeof(f"struct flexmem_{struct}").fields} - {"reserved", "fallback_count"}
        assert set(kind._fields) == members, (kind, set(kind._fields) ^ members)


@test
def every_function_is_there():
    with open(os.path.join(HERE, "../../userlib/libflexmem.map"), encoding="utf-8") as file:
        names = [line.strip(" \t\n;") for line in file if line.startswith("\t\tflexmem_")]
    assert len(names) > 60 and set(names) <= set(dir(lib)), set(names) - set(dir(lib))


@test
def all_functions_are_listed_and_opened_by_index():
    (identity,) = devices()
    assert identity.path == "/dev/flexmem0" and identity.function == "vf" and identity.id == "flexmem0", identity
    with Device(0) as device:
        assert device.path == identity.path
    assert raised(Error, Device, 1).errno == errno.ENODEV
    os.environ["FLEXMEM_VISIBLE_DEVICES"] = ""
    try:
        assert devices() == []
        assert raised(Error, Device).errno == errno.ENODEV
    finally:
        del os.environ["FLEXMEM_VISIBLE_DEVICES"]


@test
def a_device_says_what_it_is():
    with Device() as device:
        info = device.info()
        assert (device.path, info.name, info.function, info.slots) == ("/dev/flexmem0", "fake", "vf", 8), info
        assert info.fallback_sizes == (12 * GIB, 8 * GIB, 4 * GIB) and info.order == "fill_first", info
        assert info.can_map and info.can_copy
        assert device.fileno() >= 0
        assert device.regions() == [] and device.memory_info() == (64 * GIB, 64 * GIB, 12 * GIB)
        with device.alloc(1000) as memory:
            (region,) = device.regions()
            assert region.total - region.free == 1024 == memory.size == device.statistics().own_used
            assert memory.address == (region.region_id, 0)
        assert device.statistics().own_used == 0
    assert all_closed() and version().count(".") == 2


@test
def a_descriptor_is_adopted():
    with open(os.devnull, "rb") as null:
        assert raised(Error, Device.adopt, null.fileno()).errno == errno.EINVAL
        assert not os.get_inheritable(null.fileno())
    descriptor = getattr(kernel, "__wrap_open")(b"/dev/flexmem0", os.O_RDWR)
    with Device.adopt(descriptor) as device:
        assert device.fileno() == descriptor
        with device.alloc(1000) as memory:
            assert memory.size == 1024
        assert "was adopted" in str(raised(ValueError, Cache, device))
    assert all_closed()


@test
def bytes_go_in_and_out():
    with Device("VF") as device, device.alloc(1024) as a, device.alloc(1024) as b:
        a.write(bytes(range(256)) * 4)
        a.write(numpy.array([7, 8], numpy.uint16), offset=2)
        assert a.read(8) == bytes([0, 1, 7, 0, 8, 0, 6, 7])
        assert a.read(offset=1020) == bytes([252, 253, 254, 255])
        b.copy(a)
        assert b.read() == a.read()
        b.copy(a, 128, offset=256, source_offset=128)
        assert b.read(128, 256) == a.read(128, 128)
        into = numpy.zeros(4, numpy.uint8)
        b.readinto(into, 384)
        assert list(into) == [128, 129, 130, 131]
        error = raised(Error, a.read, 8, 1020)
        assert error.errno == 22 and not isinstance(error, MemoryError), error
        raised(Error, b.copy, a, 100)
        raised((BufferError, TypeError, ValueError), a.readinto, bytes(8))


@test
def a_copy_stays_on_its_device():
    with Device("VF") as device, Device("VF") as other, device.alloc(1024) as here, other.alloc(1024) as there:
        assert here.handle == there.handle
        assert raised(ValueError, here.copy, there).args == ("the source is an allocation of another device",)


@test
def a_map_is_a_buffer():
    with Device() as device, device.alloc(8192, MAPPABLE) as memory:
        view = memory.map()
        numpy.frombuffer(view, numpy.int32)[:] = 5
        assert memory.read(8) == b"\5\0\0\0\5\0\0\0"
        assert len(memory.map(4096)) == 4096 and len(memory.map(0, 4096)) == 4096
        part = memory.map(read_only=True)
        assert part.readonly and part[4] == 5
        assert protection(numpy.frombuffer(view, numpy.uint8))[:2] == "rw"
        assert protection(numpy.frombuffer(part, numpy.uint8))[:2] == "r-"
        raised(TypeError, part.__setitem__, 0, 1)
        assert raised(Error, memory.map, 1).errno == 22
        view = part = None
    with Device() as device, device.alloc(8192) as memory:
        assert raised(Error, memory.map).errno == 22
    assert all_closed()


@test
def an_array_keeps_its_memory():
    with Device() as device, device.alloc(4096, MAPPABLE) as memory:
        array = numpy.frombuffer(memory.map(), numpy.uint8)
        memory.write(b"here")
    # The mapping keeps the device open after close().
    assert not all_closed()
    assert bytes(array[:4]) == b"here"
    del array
    assert all_closed()


@test
def an_allocation_stays_while_the_library_works_on_it():
    class Closing:
        """Stands for the library. As soon as one of its functions is called, another thread closes the memory."""

        def __getattr__(self, name):
            def function(*arguments):
                memory.close()
                return getattr(lib, name)(*arguments)

            return function

    with Device() as device:
        memory = device.alloc(4096)
        memory.write(b"here")
        flexmem.device.lib = Closing()
        try:
            assert memory.read(4) == b"here"
        finally:
            flexmem.device.lib = lib
    assert all_closed()


@test
def a_device_stays_open_for_its_allocations():
    device = Device()
    memory = device.alloc(1024)
    device.close()
    device.close()
    assert raised(ValueError, device.info).args == ("this device is closed",)
    raised(ValueError, device.alloc, 1)
    memory.write(b"x")
    assert not all_closed()
    memory.close()
    assert all_closed()
    assert raised(ValueError, memory.read).args == ("this allocation is closed",)
    raised(ValueError, memory.__enter__)


@test
def errors_say_why():
    assert raised(Error, Device, "/nonexistent").errno == 19
    error = raised(Error, Device, "/dev/null")
    assert isinstance(error, OSError) and error.errno == 25, error
    with Device() as device:
        assert raised(Error, device.alloc, 0).errno == 22
        error = raised(OutOfMemory, device.alloc, 1 << 40)
        # No free can help, so there is nothing to wait for.
        assert error.failure.event == 0 and device.wait(error.failure) is False
        assert isinstance(error, Error) and isinstance(error, MemoryError) and error.errno == 12
        assert error.failure.limit == "region_size" and error.failure.asked == 1 << 40, error.failure
        assert error.strerror.startswith("out of device memory: no region can be that large"), error
        # The error is in no reference cycle, so it is freed at once, with the
        # objects that it refers to.
        del error
    assert all_closed()


@test
def a_program_waits_for_memory():
    with Device() as device:
        held = []
        error = None
        while not error:
            try:
                held.append(device.alloc(GIB))
            except OutOfMemory as failed:
                error = failed
        failure = error.failure
        del error
        assert failure.event and device.wait(failure, GIB, 0) is False
        held.pop().close()
        # Memory is free, but since when, only an event tells.
        assert device.wait(failure, GIB, 0) is False
        kernel.fake_tells_of_a_free()
        assert device.wait(failure, GIB, 0) is True
        # The bytes count, too.
        assert device.wait(failure, 2 * GIB, 0) is False
        for allocation in held:
            allocation.close()
    assert all_closed()


@test
def a_cache_serves_what_was_freed():
    with Device() as device, Cache(device, configuration="") as cache:
        with cache.alloc(1000, tag="first") as block:
            token, address = block.token, block.address
            assert (block.size, block.requested, block.stream) == (1024, 1000, 0)
            raised(ValueError, lambda: block.buffer)
        with cache.alloc(1000, stream=0) as block:
            assert block.address == address and block.token != token
            figures = cache.statistics()
            assert figures["allocated_bytes.all.current"] == 1024 and figures["num_hits"] == 1, figures
            assert {"oversize_segments.peak", "num_ooms", "requested_bytes.small_pool.freed"} <= figures.keys()
            blocks = [b for segment in cache.snapshot()["segments"] for b in segment["blocks"]]
            assert [b["requested_size"] for b in blocks if b["state"] == "active_allocated"] == [1000], blocks
        free, total = cache.memory_info()
        assert total - free == 2 * MIB
        assert cache.available() == (free, total, 12 * GIB)
        assert cache.empty() == 2 * MIB and cache.memory_info() == (total, total)
        assert cache.alloc(0).token == 0
        error = raised(OutOfMemory, cache.alloc, 1 << 40)
        assert "1.0 TiB" in error.strerror and error.failure.limit == "region_size", error
        assert raised(Error, cache.alloc, 1, tag="t" * 100).errno == 22
        del error
    raised(ValueError, cache.empty)
    assert all_closed()


@test
def a_mapped_block_is_a_buffer():
    with Device() as device, Cache(device, mapped=True) as cache:
        block = cache.alloc(4096)
        array = numpy.frombuffer(block.buffer, numpy.int32)
        array[:] = 3
        address = block.address
        assert len(array) == 1024
        # As long as the array exists, its bytes stay allocated.
        block.close()
        other = cache.alloc(4096)
        assert other.address != address
        array_of_other = numpy.frombuffer(other.buffer, numpy.int32)
        array_of_other[:] = 4
        assert set(array) == {3} and cache.statistics()["allocation.all.current"] == 2
        del array
        assert cache.alloc(4096).address == address
        raised(ValueError, lambda: block.buffer)
        raised(ValueError, lambda: cache.alloc(0).buffer)
    # The array keeps the cache and the device open.
    assert not all_closed() and set(array_of_other) == {4}
    del other, array_of_other
    assert all_closed()


@test
def a_device_stays_open_for_its_caches():
    device = Device()
    cache = Cache(device)
    device.close()
    with cache, cache.alloc(1024):
        assert cache.statistics()["allocation.all.current"] == 1
    del device
    assert all_closed()


@test
def a_cache_without_a_device():
    with Cache(simulated=64 * MIB) as cache:
        assert cache.memory_info() == (64 * MIB, 64 * MIB) and cache.available().largest == 64 * MIB
        with cache.alloc(MIB):
            assert cache.memory_info()[0] < 64 * MIB
        error = raised(OutOfMemory, cache.alloc, GIB)
        assert "1.0 GiB" in error.strerror, error
    raised(ValueError, Cache)
    assert raised(Error, Cache, simulated=100).errno == 22
    error = raised(ValueError, Cache, simulated=MIB, configuration="no_such_key:1")
    assert "no_such_key" in str(error), error
    assert raised(Error, Cache, simulated=MIB, mapped=True).errno == 95


class Streams:
    """Streams whose work is done when a test says so. Notes the calls of the cache."""

    def __init__(self):
        self.recorded, self.happened, self.destroyed, self.waits = [], set(), [], []

    def record(self, stream):
        self.recorded.append(stream)
        return len(self.recorded) - 1

    def query(self, event):
        return event in self.happened

    def synchronize(self, event):
        self.happened.add(event)

    def destroy(self, event):
        self.destroyed.append(event)

    def synchronize_device(self):
        self.happened.update(range(len(self.recorded)))

    def wait(self, stream, event):
        self.waits.append((stream, event))


@test
def a_block_waits_for_another_stream():
    streams = Streams()
    with Cache(simulated=64 * MIB, configuration="", events=streams) as cache:
        with cache.alloc(1000) as block:
            block.record_stream(3)
            address = block.address
        assert streams.recorded == [3]
        with cache.alloc(1000) as other:
            assert other.address != address
        assert cache.trim(MIB) == 0 and not streams.destroyed
        streams.happened.add(0)
        assert cache.trim(MIB) == 2 * MIB and streams.destroyed == [0]
        raised(ValueError, block.record_stream, 3)


@test
def a_stream_waits_on_the_device():
    streams = Streams()
    with Cache(simulated=64 * MIB, configuration="expandable_segments:True,reuse:wait", events=streams) as cache:
        blocks = [cache.alloc(30 * MIB, stream=stream) for stream in (1, 2)]
        address = blocks[0].address
        blocks[0].close()
        with cache.alloc(30 * MIB, stream=2) as block:
            assert block.address == address
        assert streams.waits and streams.waits[0][0] == 2, streams.waits


@test
def an_exception_of_an_event_is_an_error():
    class Broken(Streams):
        gone = True

        def synchronize(self, event):
            if self.gone:
                raise RuntimeError("the device is gone")
            super().synchronize(event)

    streams = Broken()
    with Cache(simulated=64 * MIB, configuration="", events=streams) as cache:
        with cache.alloc(1000) as block:
            block.record_stream(3)
        stderr, sys.stderr = sys.stderr, open(os.devnull, "w", encoding="utf-8")
        try:
            assert raised(Error, cache.empty).errno == errno.EIO
        finally:
            sys.stderr.close()
            sys.stderr = stderr
        streams.gone = False
        assert cache.empty() == 2 * MIB


@test
def a_pool_serves_only_its_own_requests():
    with Cache(simulated=64 * MIB, configuration="") as cache:
        with cache.pool() as pool:
            with cache.alloc(1000, pool=pool) as block:
                assert block.pool == pool.number and pool.usage()[:5] == (1, 1, 2 * MIB, 1024, 1), pool.usage()
                address = block.address
            with cache.alloc(1000) as block:
                assert block.pool == 0 and block.address != address
            assert pool.usage().segments == 1 and pool.empty() == 2 * MIB and pool.usage().segments == 0
            kept = cache.alloc(1000, pool=pool)
        assert "was released" in str(raised(Error, lambda: cache.alloc(1, pool=pool)))
        raised(ValueError, pool.usage)
        assert cache.empty() == 2 * MIB
        kept.close()
        assert cache.memory_info()[0] == 64 * MIB
        with cache.pool(no_split=True) as pool, cache.alloc(1000, pool=pool) as block:
            assert block.size == 2 * MIB
        with cache.pool(use_on_oom=True) as pool:
            cache.alloc(60 * MIB, pool=pool).close()
            with cache.alloc(50 * MIB) as block:
                assert block.pool == pool.number


@test
def a_pool_collects_the_requests_of_streams():
    streams = Streams()
    cache = Cache(simulated=64 * MIB, configuration="", events=streams)
    pool = cache.pool()
    pool.begin([1, 2])
    assert (cache.alloc(1000, stream=1).pool, cache.alloc(1000, stream=3).pool) == (pool.number, 0)
    assert raised(Error, pool.begin).errno == errno.EEXIST
    pool.end()
    assert cache.alloc(1000, stream=1).pool == 0
    assert raised(Error, pool.end).errno == errno.ENOENT
    pool.begin(capture=True)
    with cache.alloc(1000, stream=3) as block:
        assert block.pool == pool.number
        block.record_stream(4)
    assert not streams.recorded
    # The end of the pool is the end of begin().
    pool.close()
    assert streams.recorded == [4] and cache.alloc(1000, stream=3).pool == 0
    pool = cache.pool()
    pool.begin()
    del pool
    assert cache.alloc(1000).pool == 0


@test
def memory_goes_back_when_the_device_is_full():
    with Cache(simulated=64 * MIB, configuration="") as cache:
        for size in (20 * MIB, 30 * MIB):
            cache.alloc(size).close()
        assert cache.trim(0) == 0 and cache.trim(1) >= 20 * MIB and cache.trim(64 * MIB) > 0 == cache.trim(64 * MIB)
        assert raised(Error, cache.start_helper).errno == raised(Error, cache.serve_pressure).errno == errno.EOPNOTSUPP
    with Device() as device, Cache(device, configuration="") as cache:
        cache.alloc(20 * MIB).close()
        assert cache.serve_pressure() is None
        kernel.fake_press(2)
        assert cache.serve_pressure() == 20 * MIB and cache.serve_pressure() is None
        # The helper waits for events of the device. The fake has no file for poll(): a pipe without an event is one.
        ends = os.pipe()
        os.dup2(ends[0], device.fileno())
        cache.start_helper()
        assert raised(Error, cache.start_helper).errno == errno.EEXIST
        cache.stop_helper()
        assert raised(Error, cache.stop_helper).errno == errno.ENOENT
        for end in (*ends, device.fileno()):
            os.close(end)
    assert all_closed()


@test
def a_forked_child_frees_nothing():
    with Device() as device, Cache(device) as cache:
        memory, block = device.alloc(1024), cache.alloc(1024)
        handles = device.statistics().own_handles
        child = os.fork()
        if not child:
            memory.close()
            block.close()
            # A forked child has its own fake kernel, so the parent sees no free of the child's.
            os._exit(0 if device.statistics().own_handles == handles else 1)
        assert os.waitpid(child, 0)[1] == 0
        memory.close()
        assert device.statistics().own_handles == handles - 1
        block.close()
    assert all_closed()


@test
def examples_run():
    for name, expected in (("bytes", "copied: [0. 1. 2. 3.]\nout of device memory: "),
                           ("cached", "2 of 3 from the cache, 2 MiB reserved\n2 MiB given back\n")):
        done = subprocess.run([sys.executable, os.path.join(BINDING, "examples", f"{name}.py")], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": PACKAGE}, check=False)
        assert done.returncode == 0 and expected in done.stdout and not done.stderr, done


@test
def it_installs():
    destination = os.path.join(BUILD, "python-install")

    def make(goal):
        subprocess.run(["make", "-s", "-C", BINDING, f"O={BUILD}/python-shipped", f"LIB={BUILD}/shipped", f"DESTDIR={destination}",
                        "prefix=/opt/flexmem", "pythondir=/opt/flexmem/python", goal], check=True)

    make("install")
    where = f"{destination}/opt/flexmem/python"
    done = subprocess.run([sys.executable, "-c", "import flexmem; print(flexmem.__file__, flexmem.version())"], cwd="/",
                          capture_output=True, text=True, env={**os.environ, "PYTHONPATH": where}, check=True)
    assert done.stdout.split() == [f"{where}/flexmem/__init__.py", version()], done
    assert os.path.exists(f"{where}/flexmem/py.typed")
    make("uninstall")
    assert not os.path.exists(f"{where}/flexmem")


if __name__ == "__main__":
    sys.exit(main(tests))
