# SPDX-License-Identifier: GPL-2.0
"""Several devices in one process: tensors, models and memory on each, and copies between them."""

import contextlib
import io
import os
import pathlib
import runpy
import subprocess
import sys
import threading

import torch
from torch import nn

from common import DEVICE, FlexmemTest, bits
from test_models import mlp

OTHER = torch.device("flexmem:1")
MIB = 1 << 20


def program(text, **environment):
    return subprocess.run([sys.executable, "-c", "import torch, torch_flexmem\n" + text], capture_output=True, text=True,
                          check=False, env={**os.environ, **environment}, timeout=1200)


def loss_of(model, x, y):
    return nn.functional.cross_entropy(model(x), y)


def train(device, steps=3):
    """Returns the losses and the weights."""
    torch.manual_seed(3)
    model = mlp().to(device)
    x = torch.randn(32, 64).to(device)
    y = torch.randint(10, (32,)).to(device)
    return run(model, x, y, steps)


def run(model, x, y, steps):
    optimizer = torch.optim.Adam(model.parameters())
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model, x, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [bits(weight) for weight in model.parameters()]


class Devices(FlexmemTest):
    def assert_on(self, device, *tensors):
        for tensor in tensors:
            self.assertEqual(tensor.device, device)

    def test_a_thread_has_a_current_device(self):
        self.assertEqual(torch.flexmem.device_count(), 2)
        self.assertEqual(torch.flexmem.current_device(), 0)
        with torch.flexmem.device(1):
            self.assertEqual(torch.flexmem.current_device(), 1)
            self.assert_on(OTHER, torch.ones(3, device="flexmem"), torch.randn(3, device="flexmem"))
            self.assert_on(DEVICE, torch.ones(3, device=DEVICE))
            with torch.flexmem.device(DEVICE):
                self.assert_on(DEVICE, torch.ones(3, device="flexmem"))
            seen = []
            thread = threading.Thread(target=lambda: seen.append(torch.ones(3, device="flexmem").device))
            thread.start()
            thread.join()
            self.assertEqual(seen, [DEVICE])
        self.assert_on(DEVICE, torch.ones(3, device="flexmem"))
        torch.flexmem.set_device(OTHER)
        try:
            self.assert_on(OTHER, torch.ones(3, device="flexmem"))
        finally:
            torch.flexmem.set_device(0)

    def test_streams(self):
        stream = torch.flexmem.Stream(OTHER)
        self.assert_on(OTHER, stream, torch.flexmem.current_stream(1))
        self.assert_on(DEVICE, torch.flexmem.current_stream())
        with torch.flexmem.stream(stream):
            x = torch.ones(3, device="flexmem")
        self.assert_on(OTHER, x)
        self.assertEqual(torch.flexmem.current_device(), 0)
        event = torch.flexmem.Event()
        event.record(stream)
        event.synchronize()
        with torch.flexmem.stream(None):
            self.assertEqual(torch.flexmem.current_device(), 0)
        with self.assertRaisesRegex(RuntimeError, "there is no device"):
            torch.Stream("flexmem:2")

    def test_there_is_no_third_device(self):
        for attempt in (lambda: torch.empty(1, device="flexmem:2"), lambda: torch.flexmem.set_device(2),
                        lambda: torch.flexmem.memory_allocated("flexmem:2"), lambda: torch.flexmem.device(-2)):
            with self.assertRaisesRegex(RuntimeError, "there is no device"):
                attempt()

    def test_copies(self):
        model = torch.randn(6, 5)
        for x in (model, model.t(), model[::2, 1:], model.to(torch.complex64).conj(), model > 0, model[:0], model[1, 1]):
            ours = x.to(DEVICE)
            other = ours.to(OTHER)
            self.assert_on(OTHER, other)
            self.assertTrue(torch.equal(bits(other), bits(x)))
            back = torch.empty_like(x, device=DEVICE)
            back.copy_(other)
            self.assert_on(DEVICE, back)
            self.assertTrue(torch.equal(bits(back), bits(x)))
        x = torch.arange(4, device=DEVICE)
        y = torch.zeros(3, 4, device=OTHER)
        # The copy changes the type and repeats the row.
        y.copy_(x, non_blocking=True)
        self.assertTrue(torch.equal(y.cpu(), torch.arange(4.0).expand(3, 4)))
        ours, other = [torch.zeros(4, device=OTHER)], [torch.ones(4, device=DEVICE)]
        torch._foreach_copy_(ours, other)
        self.assertEqual(ours[0].sum().item(), 4.0)

    def test_results_are_where_the_arguments_are(self):
        before = torch.flexmem.memory_allocated(0)
        a = torch.randn(40, 30).to(OTHER)
        kept = [a, a + a, a @ a.t(), a.sum(), torch.cat([a, a]), a[a > 0], a.nonzero(), a.sort()[1], torch.zeros_like(a),
                a.new_empty(3), a.to(torch.float64), a.clone(), a.view(30, 40)[1:], a.svd()[1], a.expand(2, 40, 30).contiguous(),
                torch.arange(5, device=OTHER), torch.randperm(5, device=OTHER), torch.eye(3, device=OTHER),
                torch.tensor([1.0, 2.0], device=OTHER), torch.linspace(0, 1, 5, device=OTHER), torch.rand(3, device=OTHER)]
        kept += a.chunk(2)
        kept += nn.functional.layer_norm(a, (30,)), nn.functional.dropout(a)
        small = torch.zeros(2, device=OTHER)
        small.resize_(10000)
        storage = torch.zeros(2, device=OTHER)
        storage.untyped_storage().resize_(40000)
        out = torch.empty(0, device=OTHER)
        torch.add(a, a, out=out)
        kept += small, storage, out
        self.assert_on(OTHER, *kept)
        # Nothing of it is in the memory of the current device.
        self.assertEqual(torch.flexmem.memory_allocated(0), before)

    def test_memory_of_two_devices_does_not_mix(self):
        a = torch.ones(3, device=DEVICE)
        b = torch.ones(3, device=OTHER)
        index = torch.tensor([0, 1], device=DEVICE)
        for attempt in (lambda: a + b, lambda: b + a, lambda: torch.cat([a, b]), lambda: a.add_(b), lambda: b[index],
                        lambda: torch.add(a, a, out=b), lambda: torch.where(a > 0, a, b), lambda: a + b[0],
                        lambda: nn.functional.linear(a, b)):
            with self.assertRaisesRegex(RuntimeError, "on the same device.*(flexmem:0 and flexmem:1|flexmem:1 and flexmem:0)"):
                attempt()
        self.assertEqual(a.sum().item() + b.sum().item(), 6.0)
        # This calls an operator for each tensor.
        for tensor, device in zip(torch._foreach_add([a, b], 1.0), (DEVICE, OTHER)):
            self.assert_on(device, tensor)

    def test_a_model_on_each(self):
        losses, weights = train("cpu")
        for device in (DEVICE, OTHER):
            ours = train(device)
            self.assertEqual(ours[0], losses)
            self.assertTrue(all(torch.equal(*pair) for pair in zip(ours[1], weights)))

    def test_two_threads_train(self):
        # Two threads cannot share the generator that makes the weights.
        torch.manual_seed(4)
        models = [mlp() for _ in range(3)]
        for model in models[1:]:
            model.load_state_dict(models[0].state_dict())
        x, y = torch.randn(32, 64), torch.randint(10, (32,))
        places = ["cpu", DEVICE, OTHER]
        results = [None] * 3

        def work(i):
            torch.set_num_threads(1)
            results[i] = run(models[i].to(places[i]), x.to(places[i]), y.to(places[i]), 5)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for losses, weights in results[1:]:
            self.assertEqual(losses, results[0][0])
            self.assertTrue(all(torch.equal(*pair) for pair in zip(weights, results[0][1])))

    def test_a_model_over_two_devices(self):
        class Halves(nn.Module):
            def __init__(self, devices):
                super().__init__()
                self.devices = devices
                self.first = nn.LSTM(8, 16, batch_first=True)
                self.second = nn.Linear(16, 10)

            def place(self):
                self.first.to(self.devices[0])
                self.second.to(self.devices[1])
                return self

            def forward(self, x):
                return self.second(self.first(x.to(self.devices[0]))[0][:, -1].to(self.devices[1]))

        results = []
        for devices in (("cpu", "cpu"), (DEVICE, OTHER), (OTHER, DEVICE)):
            torch.manual_seed(5)
            model = Halves(devices).place()
            x, y = torch.randn(4, 6, 8), torch.randint(10, (4,)).to(devices[1])
            results.append(run(model, x, y, 3))
            for part, device in zip((model.first, model.second), devices):
                self.assert_on(torch.device(device), *(weight.grad for weight in part.parameters()))
        for losses, weights in results[1:]:
            self.assertEqual(losses, results[0][0])
            self.assertTrue(all(torch.equal(*pair) for pair in zip(weights, results[0][1])))

    def test_the_example(self):
        example = pathlib.Path(__file__).parents[2] / "userlib/bindings/torch/examples/two.py"
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            runpy.run_path(str(example))
        first, *bytes_in = said.getvalue().splitlines()
        self.assertRegex(first, r"loss \S+ on flexmem:1, gradients on flexmem:0 and flexmem:1$")
        self.assertRegex(" ".join(bytes_in), r"^flexmem:0: [1-9]\d+ bytes in tensors flexmem:1: [1-9]\d+ bytes in tensors$")

    def test_random_numbers(self):
        def draw(device):
            return torch.rand(5, device=device).cpu()

        torch.manual_seed(7)
        self.assertTrue(torch.equal(draw(DEVICE), draw(OTHER)))
        states = torch.flexmem.get_rng_state_all()
        self.assertEqual(len(states), 2)
        first = draw(OTHER)
        with torch.flexmem.device(1):
            torch.flexmem.manual_seed(8)
            self.assertEqual(torch.flexmem.initial_seed(), 8)
        self.assertEqual(torch.flexmem.initial_seed(), 7)
        torch.flexmem.set_rng_state(states[1], OTHER)
        self.assertTrue(torch.equal(draw(OTHER), first))
        torch.flexmem.set_rng_state_all(states)
        self.assertTrue(torch.equal(draw(DEVICE), first))
        self.assertTrue(torch.equal(draw(OTHER), first))
        with torch.random.fork_rng(devices=[1], device_type="flexmem"):
            draw(OTHER)
        self.assertTrue(torch.equal(torch.flexmem.get_rng_state(OTHER), torch.flexmem.get_rng_state(DEVICE)))
        generator = torch.Generator(OTHER)
        self.assert_on(OTHER, generator)
        generator.manual_seed(9)
        again = torch.Generator("cpu").manual_seed(9)
        self.assertTrue(torch.equal(torch.rand(5, generator=generator, device=OTHER).cpu(), torch.rand(5, generator=again)))

    def test_save_and_load(self):
        x = torch.arange(6.0, device=OTHER)
        file = io.BytesIO()
        torch.save({"x": x, "row": x[1:]}, file)
        for options, device in (({}, OTHER), ({"map_location": DEVICE}, DEVICE), ({"map_location": {"flexmem:1": "flexmem:0"}}, DEVICE)):
            file.seek(0)
            loaded = torch.load(file, **options)
            self.assert_on(device, *loaded.values())
            self.assertTrue(torch.equal(loaded["x"].cpu(), x.cpu()))

    def test_each_has_its_memory(self):
        torch.flexmem.empty_cache()
        free, total = torch.flexmem.mem_get_info(1)
        self.assertEqual(total, 256 * MIB)
        self.assertGreater(torch.flexmem.mem_get_info(0)[1], total)
        with self.assertRaises(torch.OutOfMemoryError):
            torch.empty(2 * total, dtype=torch.uint8, device=OTHER)
        x = torch.empty(MIB, dtype=torch.uint8, device=OTHER)
        self.assertEqual(torch.flexmem.memory_allocated(1), MIB)
        torch.flexmem.set_per_process_memory_fraction(0.5, OTHER)
        try:
            self.assertEqual(torch.flexmem.get_per_process_memory_fraction(), 1.0)
            with self.assertRaises(torch.OutOfMemoryError):
                torch.empty(total // 2, dtype=torch.uint8, device=OTHER)
        finally:
            torch.flexmem.set_per_process_memory_fraction(1.0, OTHER)
        del x
        self.assertEqual(torch.flexmem.memory_allocated(1), 0)
        torch.flexmem.reset_peak_memory_stats(1)
        self.assertEqual(torch.flexmem.max_memory_allocated(1), 0)
        self.assertGreater(torch.flexmem.memory_reserved(1), 0)
        self.assertIn("device ID 1", torch.flexmem.memory_summary(OTHER))
        torch.flexmem.empty_cache()
        self.assertEqual(torch.flexmem.memory_reserved(1), 0)
        self.assertEqual(torch.flexmem.mem_get_info(1)[0], free)

    def test_a_pool_is_on_one_device(self):
        with torch.flexmem.device(1):
            pool = torch.flexmem.MemPool()
        with torch.flexmem.use_mem_pool(pool):
            x = torch.empty(MIB, dtype=torch.uint8, device=DEVICE)
            y = torch.empty(MIB, dtype=torch.uint8, device=OTHER)
        used = [block for segment in pool.snapshot() for block in segment["blocks"] if block["state"] != "inactive"]
        self.assertEqual([block["size"] for block in used], [MIB])
        del x, y
        with self.assertRaisesRegex(ValueError, "the pool is on flexmem:1"):
            with torch.flexmem.use_mem_pool(pool, DEVICE):
                pass
        # A pool of another device does not end the use of the first.
        first = torch.flexmem.MemPool()
        with torch.flexmem.use_mem_pool(first), torch.flexmem.use_mem_pool(pool, OTHER):
            kept = torch.empty(MIB, dtype=torch.uint8, device=DEVICE)
        self.assertEqual(sum(segment["total_size"] for segment in pool.snapshot() if segment["allocated_size"]), 0)
        self.assertEqual(sum(segment["allocated_size"] for segment in first.snapshot()), MIB)
        del kept
        for one in (first, pool):
            torch.flexmem.empty_cache(one)
            self.assertEqual(one.snapshot(), [])

    def test_a_copy_on_write_stays_on_its_device(self):
        before = torch.flexmem.memory_allocated(0)
        x = torch.ones(1000, device=OTHER)
        y = torch._lazy_clone(x)
        y.add_(1)
        self.assertEqual((x.sum().item(), y.sum().item()), (1000.0, 2000.0))
        self.assertEqual(torch.flexmem.memory_allocated(0), before)

    def test_two_threads_open_a_device(self):
        done = program("""
import threading
results = []
barrier = threading.Barrier(8)
def work(i):
    barrier.wait()
    results.append(torch.full((100,), 1.0, device=f"flexmem:{i % 2}").sum().item())
threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sum(results), torch.flexmem.memory_allocated(0), torch.flexmem.memory_allocated(1))
""")
        self.assertEqual(done.stdout, "800.0 0 0\n", done.stderr)

    def test_a_device_is_opened_by_its_first_tensor(self):
        done = program("""
x = torch.ones(3, device="flexmem:1")
print(x.sum().item(), *(torch.flexmem.memory_reserved(index) > 0 for index in range(2)))
""", FLEXMEM_ALLOC_CONF="history_entries:10")
        self.assertEqual(done.stdout, "3.0 False True\n", done.stderr)

    def test_the_environment_decides_on_the_history(self):
        done = program("""
x = torch.ones(3, device="flexmem:1")
print([event["action"] for event in torch.flexmem._snapshot()["device_traces"][1]])
""", FLEXMEM_ALLOC_CONF="history_entries:10")
        self.assertIn("'alloc'", done.stdout, done.stderr)

    def test_a_fork_between_two_devices(self):
        x = torch.ones(3, device=OTHER)
        child = os.fork()
        if not child:
            said = 0
            for device in (DEVICE, OTHER):
                try:
                    torch.ones(3, device=device)
                except RuntimeError as error:
                    said += "forked process" in str(error)
            del x
            os._exit(said)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 2)
        self.assertEqual(x.sum().item(), 3.0)

    def test_a_snapshot_has_all_devices(self):
        torch.flexmem._record_memory_history(stacks="python", max_entries=100)
        try:
            kept = [torch.empty(MIB, dtype=torch.uint8, device=device) for device in (DEVICE, OTHER)]
            snapshot = torch.flexmem._snapshot()
            for index in range(2):
                blocks = [block for segment in snapshot["segments"] if segment["device"] == index for block in segment["blocks"]]
                self.assertTrue(any(block.get("requested_size") == MIB for block in blocks))
                trace = snapshot["device_traces"][index]
                self.assertEqual([event["size"] for event in trace if event["action"] == "alloc"], [MIB])
            del kept
        finally:
            torch.flexmem._record_memory_history(None)
