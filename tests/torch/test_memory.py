# SPDX-License-Identifier: GPL-2.0
"""The memory functions, which have the names of torch.cuda's, and what happens when memory runs out."""

import contextlib
import gc
import os
import pathlib
import pickle
import random
import subprocess
import sys
import tempfile
import threading
import weakref

import torch
import torch_flexmem

from common import DEVICE, FlexmemTest

MIB = 1 << 20
# Where tests/torch/Makefile puts what it makes.
MADE = pathlib.Path(torch_flexmem.__file__).parents[2]


def fill():
    """Allocates tensors that fit into the device's regions until it is out of memory."""
    piece = torch.flexmem.mem_get_info()[1] // 8
    pieces = []
    try:
        while True:
            pieces.append(torch.empty(piece, dtype=torch.uint8, device=DEVICE))
    except torch.OutOfMemoryError:
        return pieces


def more_than_reserved():
    """Returns a number of floats for which the cache has no room."""
    torch.flexmem.empty_cache()
    return torch.flexmem.memory_reserved() // 4 + 4 * MIB


@contextlib.contextmanager
def no_further_segment():
    """Keeps the cache from making segments, and Python from collecting garbage by itself."""
    torch.flexmem.empty_cache()
    torch.flexmem.set_per_process_memory_fraction(torch.flexmem.memory_reserved() / torch.flexmem.mem_get_info()[1])
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        torch.flexmem.set_per_process_memory_fraction(1.0)


class Memory(FlexmemTest):
    def test_figures(self):
        torch.flexmem.empty_cache()
        torch.flexmem.reset_peak_memory_stats()
        before = torch.flexmem.memory_allocated()
        x = torch.empty(MIB, dtype=torch.uint8, device=DEVICE)
        self.assertEqual(torch.flexmem.memory_allocated() - before, MIB)
        del x
        self.assertEqual(torch.flexmem.memory_allocated(), before)
        self.assertEqual(torch.flexmem.max_memory_allocated() - before, MIB)
        self.assertGreaterEqual(torch.flexmem.memory_reserved(), MIB)
        torch.flexmem.reset_peak_memory_stats()
        self.assertEqual(torch.flexmem.max_memory_allocated(), before)
        torch.flexmem.reset_accumulated_memory_stats()
        self.assertEqual(torch.flexmem.memory_stats()["allocation.all.freed"], 0)

    def test_keys_are_those_of_cuda(self):
        kinds = ["allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes", "active_bytes",
                 "inactive_split_bytes", "requested_bytes"]
        expected = {f"{kind}.{pool}.{what}" for kind in kinds for pool in ("all", "small_pool", "large_pool")
                    for what in ("current", "peak", "allocated", "freed")}
        expected |= {f"{kind}.{what}" for kind in ("oversize_allocations", "oversize_segments")
                     for what in ("current", "peak", "allocated", "freed")}
        expected |= {"max_split_size", "num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc",
                     "num_device_free"}
        self.assertEqual(set(torch.flexmem.memory_stats()), expected)
        torch.flexmem.init()
        nested = torch.flexmem.memory_stats_as_nested_dict()
        self.assertEqual(nested["allocated_bytes"]["all"]["current"], torch.flexmem.memory_allocated())
        self.assertEqual(nested["max_split_size"], -1)

    def test_summary(self):
        text = torch.flexmem.memory_summary()
        self.assertIn("Allocated memory", text)
        self.assertNotIn("cuda", text.lower())
        self.assertEqual({len(line) for line in text.splitlines()}, {77})
        self.assertLess(len(torch.flexmem.memory_summary(abbreviated=True)), len(text))

    def test_a_pool_has_its_own_memory(self):
        pool = torch.flexmem.MemPool()
        with torch.flexmem.use_mem_pool(pool):
            inside = torch.ones(MIB, device=DEVICE)
            with torch.flexmem.use_mem_pool(torch.flexmem.MemPool()) as nothing:
                self.assertIsNone(nothing)
            again = torch.ones(MIB, device=DEVICE)
            other = []
            thread = threading.Thread(target=lambda: other.append(torch.ones(MIB, device=DEVICE)))
            thread.start()
            thread.join()
        outside = torch.ones(MIB, device=DEVICE)
        allocated = {}
        for segment in torch.flexmem.memory_snapshot():
            number = tuple(segment["segment_pool_id"])
            allocated[number] = allocated.get(number, 0) + segment["allocated_size"]
        self.assertEqual((allocated.pop(pool.id), sum(allocated.values())),
                         (8 * MIB, self.bytes_before[0] + 8 * MIB))
        self.assertEqual([segment["segment_pool_id"] for segment in pool.snapshot()], [list(pool.id)])
        self.assertEqual(pool.use_count(), 1)
        del inside, again, outside, other
        # The free memory of the pool serves nobody else, and goes when that is asked for.
        reserved = torch.flexmem.memory_reserved()
        torch.flexmem.empty_cache()
        self.assertEqual(len(pool.snapshot()), 1)
        torch.flexmem.empty_cache(pool)
        self.assertEqual(pool.snapshot(), [])
        self.assertLess(torch.flexmem.memory_reserved(), reserved)
        self.assertRaises(NotImplementedError, torch.flexmem.MemPool, object())

    def test_a_pool_that_is_gone_keeps_its_tensors(self):
        pool = torch.flexmem.MemPool(use_on_oom=True)
        with torch.flexmem.use_mem_pool(pool):
            x = torch.ones(10 * MIB, device=DEVICE)
        torch.flexmem.empty_cache()
        reserved = torch.flexmem.memory_reserved()
        del pool
        self.assertEqual(x.sum().item(), 10 * MIB)
        # The sum has had memory of its own, outside of the pool.
        torch.flexmem.empty_cache()
        self.assertEqual(torch.flexmem.memory_reserved(), reserved)
        del x
        self.assertLessEqual(torch.flexmem.memory_reserved(), reserved - 40 * MIB)

    def test_empty_cache_gives_all_back(self):
        x = torch.empty(30 * MIB, dtype=torch.uint8, device=DEVICE)
        free, total = torch.flexmem.mem_get_info()
        self.assertLessEqual(free, total - 30 * MIB)
        self.assertIn(torch.flexmem.largest_segment(), range(1, free + 1))
        del x
        torch.flexmem.empty_cache()
        self.assertEqual(torch.flexmem.mem_get_info(), (total, total))
        self.assertEqual(torch.flexmem.memory_reserved(), 0)

    def test_cycles_of_three_sizes_leave_nothing(self):
        def figures():
            stats = torch.flexmem.memory_stats()
            return {key: value for key, value in stats.items() if key.endswith(".all.current")
                    and not key.startswith(("segment", "reserved_bytes", "inactive_split"))}

        torch.flexmem.empty_cache()
        before = figures()
        self.assertIn("allocated_bytes.all.current", before)
        dice = random.Random(2024)
        for _ in range(100):
            sizes = [0, 512, 16 << 10, MIB] * 4
            dice.shuffle(sizes)
            held = []
            while sizes or held:
                if sizes and (not held or dice.random() < 0.6):
                    held.append(torch.empty(sizes.pop(), dtype=torch.uint8, device=DEVICE))
                else:
                    held.pop(dice.randrange(len(held)))
                if len(sizes) == 8:
                    self.assertEqual(torch.flexmem.memory_allocated() - before["allocated_bytes.all.current"],
                                     sum(tensor.numel() for tensor in held))
            self.assertEqual(figures(), before)
        torch.flexmem.empty_cache()
        self.assertEqual(torch.flexmem.memory_reserved(), 0)
        free, total = torch.flexmem.mem_get_info()
        self.assertEqual(free, total)

    def test_out_of_memory(self):
        total = torch.flexmem.mem_get_info()[1]
        ooms = torch.flexmem.memory_stats()["num_ooms"]
        kept = torch.ones(3, device=DEVICE)
        with self.assertRaisesRegex(torch.OutOfMemoryError, "flexmem: .*GiB"):
            torch.empty(2 * total, dtype=torch.uint8, device=DEVICE)
        self.assertEqual(torch.flexmem.memory_stats()["num_ooms"], ooms + 1)
        pieces = fill()
        self.assertEqual(torch.flexmem.memory_stats()["num_ooms"], ooms + 2)
        # The remaining tensors have not changed. When one is freed, a new tensor of its size fits.
        self.assertEqual(kept.sum().item(), 3.0)
        size = pieces.pop().numel()
        torch.empty(size, dtype=torch.uint8, device=DEVICE)

    def test_garbage_is_collected_before_it_fails(self):
        class Cycle:
            pass

        gc.disable()
        try:
            cycle = Cycle()
            cycle.itself = cycle
            cycle.pieces = fill()
            size = cycle.pieces[0].numel()
            alive = weakref.ref(cycle)
            del cycle
            self.assertIsNotNone(alive())
            retries = torch.flexmem.memory_stats()["num_alloc_retries"]
            torch.empty(size, dtype=torch.uint8, device=DEVICE)
            self.assertIsNone(alive())
            self.assertEqual(torch.flexmem.memory_stats()["num_alloc_retries"], retries + 1)
        finally:
            gc.enable()

    def test_python_collects_garbage_as_elsewhere(self):
        # Garbage collection runs in a kernel that has turned autograd off and
        # puts new CPU tensors into the device's memory. A finalizer must notice
        # neither.
        made = []

        class Cycle:
            def __del__(self):
                made.append((torch.ones(1000, requires_grad=True) * 2, torch.flexmem.memory_stats()["allocation.all.allocated"]))

        x = torch.ones(more_than_reserved(), device=DEVICE)
        for mode in (contextlib.nullcontext, torch.no_grad, torch.inference_mode):
            made.clear()
            cycle = Cycle()
            cycle.itself = cycle
            with no_further_segment(), mode():
                del cycle
                before = torch.flexmem.memory_stats()["allocation.all.allocated"]
                with self.assertRaises(torch.OutOfMemoryError):
                    x.neg()
                self.assertEqual(torch.is_grad_enabled(), mode is contextlib.nullcontext)
                self.assertEqual(torch.is_inference_mode_enabled(), mode is torch.inference_mode)
            (tensor, after), = made
            self.assertTrue(tensor.requires_grad)
            self.assertFalse(tensor.is_inference())
            self.assertEqual(after, before)

    def test_a_kernel_with_a_generator_does_not_wait_for_python(self):
        # The kernel holds the mutex of its generator, and a thread that holds the GIL may wait for that mutex. So the
        # kernel must not wait for the GIL.
        class Cycle:
            pass

        # `small` keeps a segment with room for small temporary tensors, which the kernel makes without the mutex.
        small = torch.ones(3, device=DEVICE)
        x = torch.ones(more_than_reserved(), device=DEVICE)
        cycle = Cycle()
        cycle.itself = cycle
        alive = weakref.ref(cycle)
        with no_further_segment():
            del cycle
            with self.assertRaises(torch.OutOfMemoryError):
                torch.multinomial(x, 2, replacement=True)
            self.assertIsNotNone(alive())
        del small

    def test_fraction(self):
        total = torch.flexmem.mem_get_info()[1]
        self.assertEqual(torch.flexmem.get_per_process_memory_fraction(), 1.0)
        torch.flexmem.empty_cache()
        torch.flexmem.set_per_process_memory_fraction(0.25)
        try:
            self.assertEqual(torch.flexmem.get_per_process_memory_fraction(), 0.25)
            with self.assertRaises(torch.OutOfMemoryError):
                torch.empty(total // 2, dtype=torch.uint8, device=DEVICE)
        finally:
            torch.flexmem.set_per_process_memory_fraction(1.0)
        with self.assertRaises(RuntimeError):
            torch.flexmem.set_per_process_memory_fraction(1.5)

    def test_cpu_tensors_stay_where_they_were(self):
        before = torch.flexmem.memory_stats()["allocation.all.allocated"]
        x = torch.randn(100, 100)
        (x @ x).sum()
        self.assertEqual(torch.flexmem.memory_stats()["allocation.all.allocated"], before)

    def test_the_profiler_sees_memory(self):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
            x = torch.empty(MIB, dtype=torch.uint8, device=DEVICE)
            x.add_(1)
            del x
        allocated = [event.self_device_memory_usage for event in profile.events() if event.name == "aten::empty"]
        self.assertEqual(sum(allocated), MIB)
        # The profiler gives this name to a free outside of operators.
        freed = [event.self_device_memory_usage for event in profile.events() if event.name == "[memory]"]
        self.assertEqual(sum(freed), -MIB)

    def test_history_with_python_stacks(self):
        torch.flexmem._record_memory_history(stacks="python", max_entries=100)
        try:
            x = torch.empty(12345, dtype=torch.uint8, device=DEVICE)
            snapshot = torch.flexmem._snapshot()
            blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]
                      if block.get("requested_size") == 12345]
            self.assertEqual(len(blocks), 1)
            names = [frame["name"] for frame in blocks[0]["frames"]]
            self.assertIn("test_history_with_python_stacks", names)
            frame = blocks[0]["frames"][names.index("test_history_with_python_stacks")]
            self.assertTrue(frame["filename"].endswith("test_memory.py"))
            self.assertGreater(frame["line"], 0)
            del x
            actions = [event["action"] for trace in torch.flexmem._snapshot()["device_traces"] for event in trace]
            self.assertIn("alloc", actions)
            self.assertIn("free_completed", actions)
            with tempfile.NamedTemporaryFile() as file:
                torch.flexmem._dump_snapshot(file.name)
                with open(file.name, "rb") as saved:
                    self.assertEqual(pickle.load(saved).keys(), snapshot.keys())
        finally:
            torch.flexmem._record_memory_history(None)
        self.assertEqual(torch.flexmem.memory_snapshot(), torch.flexmem._snapshot()["segments"])


    def test_history_with_all_stacks(self):
        torch.flexmem._record_memory_history(max_entries=100)
        try:
            x = torch.empty(12345, dtype=torch.uint8, device=DEVICE)
            frames = [frame for segment in torch.flexmem._snapshot()["segments"] for block in segment["blocks"]
                      if block.get("requested_size") == 12345 for frame in block["frames"]]
            del x
        finally:
            torch.flexmem._record_memory_history(None)
        names = " ".join(frame["name"] for frame in frames)
        self.assertIn("test_history_with_all_stacks", names)
        self.assertIn("at::", names)

    def test_out_of_memory_names_the_line_of_python(self):
        total = torch.flexmem.mem_get_info()[1]
        for stacks in "python", "all":
            torch.flexmem._record_memory_history(stacks=stacks, max_entries=100)
            try:
                with self.assertRaises(torch.OutOfMemoryError) as caught:
                    torch.empty(2 * total, dtype=torch.uint8, device=DEVICE)
            finally:
                torch.flexmem._record_memory_history(None)
            self.assertRegex(str(caught.exception), r"requested by \S*test_memory\.py:\d+:test_out_of_memory_names")


class Accelerator(FlexmemTest):
    """PyTorch 2.9 and later have the same figures under torch.accelerator."""

    if hasattr(torch.accelerator, "memory_stats"):

        def test_figures_of_the_accelerator(self):
            torch.flexmem.empty_cache()
            x = torch.empty(MIB, dtype=torch.uint8, device=DEVICE)
            ours, theirs = torch.flexmem.memory_stats(), torch.accelerator.memory_stats()
            # torch.accelerator has all names that torch.flexmem has, with the same figures.
            self.assertGreater(len(ours), 100)
            self.assertEqual({key: theirs[key] for key in ours}, ours)
            self.assertEqual(torch.accelerator.memory_allocated(), torch.flexmem.memory_allocated())
            self.assertEqual(torch.accelerator.max_memory_allocated(), torch.flexmem.max_memory_allocated())
            self.assertEqual(torch.accelerator.memory_reserved(), torch.flexmem.memory_reserved())
            self.assertEqual(torch.accelerator.max_memory_reserved(), torch.flexmem.max_memory_reserved())
            del x

        def test_memory_info_of_the_accelerator(self):
            self.assertTrue(torch.accelerator.is_available())
            self.assertEqual(torch.accelerator.current_accelerator().type, "flexmem")
            x = torch.empty(30 * MIB, dtype=torch.uint8, device=DEVICE)
            free, total = torch.accelerator.get_memory_info()
            self.assertEqual((free, total), torch.flexmem.mem_get_info())
            self.assertLessEqual(free, total - 30 * MIB)
            del x
            torch.accelerator.empty_cache()
            self.assertGreaterEqual(torch.accelerator.get_memory_info()[0], free + 30 * MIB)

        def test_figures_of_the_accelerator_are_reset(self):
            torch.empty(MIB, dtype=torch.uint8, device=DEVICE)
            torch.accelerator.reset_peak_memory_stats()
            self.assertEqual(torch.flexmem.max_memory_allocated(), torch.flexmem.memory_allocated())
            torch.accelerator.reset_accumulated_memory_stats()
            self.assertEqual(torch.flexmem.memory_stats()["allocation.all.freed"], 0)


class Programs(FlexmemTest):
    """Tests that need another process."""

    def program(self, text, *arguments, **environment):
        """Runs a program. After 20 minutes it is ended, because it must be stuck, however slow the machine is."""
        return subprocess.run([sys.executable, "-c", "import torch, torch_flexmem\n" + text, *arguments], capture_output=True,
                              text=True, check=False, env={**os.environ, **environment}, timeout=1200)

    def test_host_memory_has_sizes(self):
        done = self.program("""
import os
for wrong in "host:many", "host:", "host:1,", ",host", "host:0", "host:1x", "host,guest":
    os.environ["FLEXMEM_TORCH"] = wrong
    assert not torch.flexmem.is_available() and not torch.flexmem.device_count()
    try:
        torch.empty(1, device="flexmem")
    except RuntimeError as error:
        assert f"FLEXMEM_TORCH is '{wrong}'" in str(error), error
    else:
        print(wrong)
os.environ["FLEXMEM_TORCH"] = "host:64,host,host:1"
print([torch.flexmem.mem_get_info(index)[1] >> 20 for index in range(torch.flexmem.device_count())])
""")
        self.assertEqual(done.stdout, "[64, 4096, 1]\n", done.stderr)

    def test_no_device(self):
        done = self.program("print(torch.flexmem.is_available())\ntorch.empty(1, device='flexmem')", FLEXMEM_TORCH="",
                            FLEX_DEVICE="/nonexistent")
        self.assertEqual(done.stdout, "False\n")
        self.assertIn("cannot open a device", done.stderr)

    def test_importing_opens_nothing(self):
        # A process that has made no tensors can still be forked.
        done = self.program("""
import os
assert torch.flexmem.is_available() and not torch.flexmem.is_initialized()
assert torch.flexmem.memory_stats()["allocation.all.current"] == 0
assert torch.flexmem.memory_stats()["max_split_size"] == -1
torch.manual_seed(1)
torch.flexmem.empty_cache()
torch.flexmem.reset_peak_memory_stats()
assert torch.flexmem.memory_summary() and not torch.flexmem.is_initialized()
child = os.fork()
print(torch.ones(3, device="flexmem").sum().item(), torch.flexmem.is_initialized(), flush=True)
if child:
    assert os.waitpid(child, 0)[1] == 0
""")
        self.assertEqual(done.stdout, "3.0 True\n" * 2, done.stderr)
        self.assertEqual(done.returncode, 0)

    def test_a_child_has_no_part_in_a_device_without_a_cache(self):
        done = self.program("""
import ctypes
import os

def attempt():
    try:
        print(torch.ones(3, device="flexmem").sum().item(), flush=True)
    except RuntimeError as error:
        print(str(error).splitlines()[0], flush=True)

refuse = ctypes.c_int.in_dll(ctypes.CDLL(os.environ["LD_PRELOAD"]), "refuse")
refuse.value = 1
attempt()
refuse.value = 0
child = os.fork()
if child:
    assert os.waitpid(child, 0)[1] == 0
attempt()
""", FLEXMEM_TORCH="host:16", LD_PRELOAD=str(MADE / "refuse.so"))
        self.assertEqual(len(done.stdout.splitlines()), 3, done.stderr)
        refused, child, parent = done.stdout.splitlines()
        self.assertIn("no cache: ", refused)
        self.assertIn("forked process", child)
        self.assertEqual(parent, "3.0")

    # An access to a mapping of an empty file causes SIGBUS, like an access to lost memory after a reset.
    LOSE = """
import ctypes, mmap, sys, tempfile
x = torch.ones(1 << 20, device=sys.argv[1])
page = x.data_ptr() + 8192 & -4096
file = tempfile.TemporaryFile()
map_file = ctypes.CDLL(None).mmap
map_file.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
map_file.restype = ctypes.c_void_p
MAP_FIXED = 16
assert map_file(page, 4096, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED | MAP_FIXED, file.fileno(), 0) == page
print("begins", flush=True)
x.add_(1)
"""

    def test_lost_memory_is_explained(self):
        done = self.program(self.LOSE, "flexmem", FLEXMEM_TORCH="host")
        self.assertEqual(done.stdout, "begins\n", done.stderr)
        self.assertIn("flexmem: host memory was reset or removed", done.stderr)
        self.assertNotEqual(done.returncode, 0)

    def test_bus_errors_elsewhere_are_not(self):
        done = self.program("torch.ones(1, device='flexmem')" + self.LOSE, "cpu", FLEXMEM_TORCH="host")
        self.assertEqual(done.stdout, "begins\n", done.stderr)
        self.assertNotIn("flexmem:", done.stderr)
        self.assertNotEqual(done.returncode, 0)

    def test_settings_come_from_the_environment(self):
        done = self.program("x = torch.empty(1000, device='flexmem')\nprint(torch.flexmem.memory_reserved())",
                            FLEXMEM_TORCH="host", PYTORCH_ALLOC_CONF="backend:direct")
        self.assertEqual(done.stdout, "4096\n", done.stderr)

    # If the history is on, the requests of a kernel are recorded with Python's stack.
    DRAW = """
import sys
import threading
sys.setswitchinterval(1e-6)
torch.flexmem._record_memory_history(stacks="python", max_entries=1000)
generator = torch.Generator("flexmem")
weights = torch.ones(1000, device="flexmem")
drawn = threading.Event()

def read():
    while not drawn.is_set():
        generator.get_state()

readers = [threading.Thread(target=read) for _ in range(4)]
for reader in readers:
    reader.start()
for _ in range(10000):
    torch.multinomial(weights, 2, replacement=True, generator=generator)
drawn.set()
for reader in readers:
    reader.join()
x = torch.normal(torch.ones(12345, dtype=torch.double, device="flexmem"), 1.0)
frames = [frame["name"] for segment in torch.flexmem._snapshot()["segments"] for block in segment["blocks"]
          if block.get("requested_size") == 8 * 12345 for frame in block["frames"]]
print(frames.count("<module>"))
"""

    def test_random_kernels_have_stacks(self):
        # If the threads waited for each other, the program would not end.
        done = self.program(self.DRAW, FLEXMEM_TORCH="host")
        self.assertEqual(done.stdout, "1\n", done.stderr)
