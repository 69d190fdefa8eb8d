# SPDX-License-Identifier: GPL-2.0
"""What Python programs do with tensors: save and load them, fork, use threads, and pass tensors to other libraries and
processes."""

import copy
import io
import os
import pickle
import threading
import time

import torch
from torch.utils.data import DataLoader, Dataset

from common import DEVICE, FlexmemTest


class Numbers(Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        return torch.full((4,), float(index))


class Python(FlexmemTest):
    def test_save_and_load(self):
        x = torch.arange(6.0, device=DEVICE).reshape(2, 3)
        model = torch.nn.Linear(3, 2, device=DEVICE)
        file = io.BytesIO()
        torch.save({"x": x, "row": x[1], "model": model.state_dict()}, file)
        for options in ({}, {"weights_only": True}, {"map_location": "cpu"}, {"map_location": DEVICE}):
            file.seek(0)
            loaded = torch.load(file, **options)
            self.assertEqual(loaded["x"].device.type, str(options.get("map_location", DEVICE)).split(":")[0])
            self.assertTrue(torch.equal(loaded["x"].cpu(), x.cpu()))
            self.assertTrue(torch.equal(loaded["model"]["weight"].cpu(), model.weight.cpu()))
            # Loaded views still share their storage.
            loaded["row"].zero_()
            self.assertEqual(loaded["x"][1].sum().item(), 0.0)
        torch.nn.Linear(3, 2).load_state_dict(loaded["model"])

    def test_copies_and_pickles(self):
        x = torch.randn(3, device=DEVICE)
        for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), copy.copy(x)):
            self.assertEqual(y.device, DEVICE)
            self.assertTrue(torch.equal(y, x))
        model = copy.deepcopy(torch.nn.Linear(2, 2).to(DEVICE))
        self.assertEqual(model.weight.device, DEVICE)

    def test_an_optimizer_made_before_the_move(self):
        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), 1.0)
        model.to(DEVICE)
        self.assertIs(optimizer.param_groups[0]["params"][0], model.weight)
        before = model.weight.detach().clone()
        model(torch.ones(1, 2, device=DEVICE)).sum().backward()
        optimizer.step()
        self.assertFalse(torch.equal(before, model.weight))

    def test_data_loader_with_workers(self):
        x = torch.ones(3, device=DEVICE)
        for pin in (False, True):
            loader = DataLoader(Numbers(), batch_size=4, num_workers=2, pin_memory=pin, multiprocessing_context="fork")
            total = sum(batch.to(DEVICE).sum() for batch in loader)
            self.assertEqual(total.item(), 480.0)
        self.assertEqual(x.sum().item(), 3.0)

    def test_a_forked_child_cannot_use_the_device(self):
        x = torch.ones(3, device=DEVICE)
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            said = "nothing"
            try:
                torch.ones(3, device=DEVICE)
            except RuntimeError as error:
                said = str(error)
            os.write(writer, f"{torch.flexmem._is_in_bad_fork()} {said}".encode())
            # The child must not free the parent's tensor.
            del x
            os._exit(0)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        said = os.read(reader, 1000).decode()
        os.close(reader)
        os.close(writer)
        self.assertTrue(said.startswith("True flexmem: cannot use the device in a forked process"), said)
        self.assertEqual(x.sum().item(), 3.0)

    def test_threads(self):
        def work(results, index):
            x = torch.full((100,), float(index), device=DEVICE)
            for _ in range(50):
                x = (x * 2 - index).clone()
            results[index] = x.sum().item()

        results = [None] * 4
        threads = [threading.Thread(target=work, args=(results, i)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, [0.0, 100.0, 200.0, 300.0])

    def test_dlpack(self):
        x = torch.arange(4.0, device=DEVICE)
        y = torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x))
        self.assertEqual(y.device, DEVICE)
        y[0] = 7
        self.assertEqual(x[0].item(), 7.0)

    def test_streams(self):
        stream = torch.flexmem.current_stream()
        with torch.flexmem.stream(stream):
            x = torch.ones(3, device=DEVICE)
        torch.flexmem.synchronize()
        x.record_stream(stream)

    def test_events(self):
        start, end = (torch.flexmem.Event(enable_timing=True) for _ in range(2))
        # The version of PyTorch decides which error it is.
        refused = (RuntimeError, ValueError)
        with self.assertRaisesRegex(refused, "recorded|recording"):
            start.elapsed_time(end)
        start.record()
        time.sleep(0.01)
        end.record()
        end.synchronize()
        end.wait()
        self.assertTrue(end.query())
        self.assertGreaterEqual(start.elapsed_time(end), 10.0)
        # A second record() replaces the event's time.
        start.record()
        self.assertLessEqual(start.elapsed_time(end), 0.0)
        untimed = torch.flexmem.Event()
        untimed.record(torch.flexmem.current_stream())
        with self.assertRaisesRegex(refused, "enable_timing=True"):
            start.elapsed_time(untimed)

    def test_the_device(self):
        self.assertTrue(torch.flexmem.is_available())
        self.assertEqual(torch.accelerator.current_accelerator().type, "flexmem")
        with torch.flexmem.device(0):
            self.assertEqual(torch.flexmem.current_device(), 0)
        with self.assertRaisesRegex(RuntimeError, "no device"):
            torch.empty(1, device="flexmem:64")
        with self.assertRaises(RuntimeError):
            torch.flexmem.set_device(64)
