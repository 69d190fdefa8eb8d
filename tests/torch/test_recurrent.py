# SPDX-License-Identifier: GPL-2.0
"""LSTM, GRU and RNN: their gradients come from an autograd graph of the CPU, which must not keep memory too long, and
must not use memory that was freed."""

import contextlib
import functools
import gc
import threading
import time

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from common import DEVICE, FlexmemTest


def overwrite():
    """Allocates the memory that has been freed and fills it with NaN. Code that still reads the memory gets no number.
    """
    return [torch.full((size,), float("nan"), device=DEVICE) for size in (64, 128, 256, 512, 1024, 2048) for _ in range(40)]


class Recurrent(FlexmemTest):
    def test_cells(self):
        def run(kind, width, bias, device):
            torch.manual_seed(10)
            cell = kind(8, width, bias=bias).to(device)
            x = torch.randn(5, 8).to(device).requires_grad_()
            state = None
            for _ in range(3):
                state = cell(x, state)
            last = state[0] if kind is nn.LSTMCell else state
            last.square().sum().backward()
            with torch.no_grad():
                first = cell(x)
            return [last.detach(), x.grad, first[0] if kind is nn.LSTMCell else first, *(w.grad for w in cell.parameters())]

        for kind in (nn.LSTMCell, nn.GRUCell, nn.RNNCell):
            for width in (1, 16, 37):
                for bias in (True, False):
                    for ours, cpu in zip(run(kind, width, bias, DEVICE), run(kind, width, bias, "cpu")):
                        self.assert_same(ours, cpu)

    def recurrent(self, device):
        """Returns an LSTM and its arguments, on the device."""
        torch.manual_seed(6)
        model = nn.LSTM(8, 16, proj_size=4).to(device)
        return model, torch.randn(5, 3, 8).to(device).requires_grad_(), torch.randn(1, 3, 16).to(device).requires_grad_()

    def test_autocast(self):
        """Gradients in lower precision, with and without hooks for the saved tensors."""
        def run(kind, autocast, hooks):
            torch.manual_seed(11)
            front, model = nn.Linear(8, 8).to(DEVICE), kind(8, 16).to(DEVICE)
            x = torch.randn(5, 3, 8, device=DEVICE)
            with torch.autocast("flexmem", dtype=torch.bfloat16, enabled=autocast), hooks():
                y, _ = model(front(x))
            y.float().square().sum().backward()
            return y, model.weight_hh_l0.grad

        for kind in (nn.LSTM, nn.GRU, nn.RNN):
            plain, full = run(kind, False, contextlib.nullcontext)
            y, gradient = run(kind, True, contextlib.nullcontext)
            hooked, other = run(kind, True, torch.autograd.graph.save_on_cpu)
            self.assertEqual((y.dtype, gradient.dtype), (torch.bfloat16, torch.float32), kind)
            self.assertEqual((hooked.dtype, other.dtype), (y.dtype, gradient.dtype), kind)
            self.assert_same(hooked, y)
            self.assertLess((y.float() - plain).abs().max().item(), 0.05, kind)
            self.assertLess((gradient - full).abs().max().item(), 0.5, kind)

    def test_lstm_of_a_packed_sequence(self):
        def run(device):
            model, x, cell = self.recurrent(device)
            packed = nn.utils.rnn.pack_padded_sequence(x, [5, 4, 2])
            y, (hidden, _) = model(packed, (cell[:, :, :4].contiguous(), cell))
            nn.utils.rnn.pad_packed_sequence(y)[0].square().sum().backward()
            return [hidden.detach(), x.grad, cell.grad, *(weight.grad for weight in model.parameters())]

        for ours, cpu in zip(run(DEVICE), run("cpu")):
            self.assert_same(ours, cpu)

    def test_lstm_without_gradients(self):
        model, x, _ = self.recurrent("cpu")
        with torch.no_grad():
            expected = model(x)[0]
            self.assert_same(model.to(DEVICE)(x.to(DEVICE))[0], expected)
        with torch.inference_mode():
            self.assert_same(model(x.to(DEVICE))[0], expected)

    def test_lstm_with_a_state_given_twice(self):
        def run(device):
            torch.manual_seed(7)
            model = nn.GRU(8, 8, num_layers=2).to(device)
            state = torch.randn(2, 3, 8).to(device).requires_grad_()
            y = model(torch.randn(4, 3, 8).to(device), state)[0]
            (y.sum() + state.sum()).backward()
            return state.grad

        self.assert_same(run(DEVICE), run("cpu"))
        model = nn.LSTM(8, 8).to(DEVICE)
        state = torch.randn(1, 3, 8, device=DEVICE, requires_grad=True)
        other = state.detach().clone().requires_grad_()
        torch.manual_seed(8)
        x = torch.randn(4, 3, 8, device=DEVICE)
        both = torch.autograd.grad(model(x, (state, state))[0].sum(), state)[0]
        parts = torch.autograd.grad(model(x, (state, other))[0].sum(), (state, other))
        self.assertTrue(torch.allclose(both, parts[0] + parts[1]))

    def test_lstm_twice_backward(self):
        model, x, _ = self.recurrent(DEVICE)
        loss = model(x)[0].sum()
        loss.backward(retain_graph=True)
        first = x.grad.clone()
        loss.backward()
        self.assertTrue(torch.equal(x.grad, 2 * first))
        with self.assertRaisesRegex(RuntimeError, "second time"):
            loss.backward()
        with self.assertRaisesRegex(RuntimeError, "no second derivatives"):
            torch.autograd.grad(model(x)[0].sum(), x, create_graph=True)

    def test_lstm_notices_a_changed_input(self):
        model, x, _ = self.recurrent(DEVICE)
        x = x * 1
        loss = model(x)[0].sum()
        x.add_(1)
        with self.assertRaisesRegex(RuntimeError, "inplace operation"):
            loss.backward()

    def test_lstm_drops_out_by_the_devices_generator(self):
        model = nn.LSTM(8, 8, num_layers=2, dropout=0.5).to(DEVICE)
        x = torch.randn(4, 3, 8, device=DEVICE)
        state = torch.get_rng_state()
        torch.flexmem.manual_seed(9)
        first = model(x)[0]
        torch.flexmem.manual_seed(9)
        self.assertTrue(torch.equal(model(x)[0], first))
        self.assertFalse(torch.equal(model(x)[0], first))
        self.assertTrue(torch.equal(torch.get_rng_state(), state))

    def gradients_of(self, device, kind=nn.LSTM, hooks=contextlib.nullcontext, between=lambda model, x: None):
        """Returns the gradients of the weights. `hooks` applies to the forward pass. `between` is called before the
        backward pass."""
        torch.manual_seed(9)
        first, model = nn.Linear(8, 8).to(device), kind(8, 16, num_layers=2).to(device)
        with hooks():
            # Only the graph holds the output of the linear layer.
            y = model(first(torch.randn(5, 3, 8).to(device)))[0]
        kept = between(model, y)
        y.square().sum().backward()
        del kept
        return [weight.grad for layer in (first, model) for weight in layer.parameters()]

    def assert_all_close(self, ours, cpu):
        """Expects equal tensors except for the last bits, which differ if the device composes the operators."""
        for a, b in zip(ours, cpu, strict=True):
            torch.testing.assert_close(a.cpu(), b)

    def assert_all_same(self, ours, cpu):
        self.assertEqual(len(ours), len(cpu))
        for a, b in zip(ours, cpu):
            self.assert_same(a, b)

    def test_saved_tensors_on_the_cpu(self):
        seen = []

        def see(tensor):
            seen.append(tensor)
            return tensor

        def hooks():
            return torch.autograd.graph.saved_tensors_hooks(see, lambda tensor: tensor)

        for kind in (nn.LSTM, nn.GRU, nn.RNN):
            ours = self.gradients_of(DEVICE, kind, torch.autograd.graph.save_on_cpu, lambda *_: overwrite())
            self.assert_all_close(ours, self.gradients_of("cpu", kind))
            self.assert_all_same(self.gradients_of(DEVICE, kind, hooks), [gradient.cpu() for gradient in ours])
            self.assertEqual({tensor.device for tensor in seen}, {DEVICE})
            seen.clear()

    def test_saved_tensors_leave_the_device(self):
        for kind in (nn.LSTM, nn.GRU, nn.RNN):
            model = kind(8, 16, num_layers=2).to(DEVICE)
            x = torch.randn(5, 3, 8, device=DEVICE)
            with torch.autograd.graph.save_on_cpu():
                before = torch.flexmem.memory_allocated()
                y = model(x)[0]
                kept = torch.flexmem.memory_allocated() - before
            # Only the output is left, so no other tensor keeps the graph.
            other = torch.empty_like(y)
            self.assertEqual(torch.flexmem.memory_allocated() - before, 2 * kept, kind)
            del other, y

    def test_forward_derivatives(self):
        for kind in (nn.LSTM, nn.GRU, nn.RNN):
            for trains in (False, True):
                torch.manual_seed(12)
                model = kind(8, 8).to(DEVICE).requires_grad_(trains)
                x = torch.randn(4, 3, 8, dtype=torch.double, device=DEVICE)
                model.double()
                with torch.autograd.forward_ad.dual_level():
                    y = model(torch.autograd.forward_ad.make_dual(x, torch.ones_like(x)))[0]
                    ours = torch.autograd.forward_ad.unpack_dual(y).tangent.detach()
                step = 1e-6
                with torch.no_grad():
                    torch.testing.assert_close(ours, (model(x + step)[0] - model(x - step)[0]) / (2 * step))

    def test_batches_of_gradients_are_refused(self):
        model, x, _ = self.recurrent(DEVICE)
        y = model(x)[0]
        with self.assertRaisesRegex(RuntimeError, "Batched"):
            torch.autograd.grad(y, x, torch.ones(2, *y.shape, device=DEVICE), is_grads_batched=True)

    def test_two_backward_passes_at_once(self):
        for kind in (nn.LSTM, nn.GRU, nn.RNN):
            model = kind(8, 16, num_layers=2).to(DEVICE)
            loss = model(torch.randn(5, 3, 8, device=DEVICE))[0].square().sum()
            differentiate = functools.partial(torch.autograd.grad, loss, list(model.parameters()), retain_graph=True)
            expected = [gradient.cpu() for gradient in differentiate()]
            results = []
            threads = [threading.Thread(target=lambda: results.extend(differentiate() for _ in range(50)), daemon=True)
                       for _ in range(4)]
            for thread in threads:
                thread.start()
            # A thread that takes longer is stuck, however slow the machine is.
            deadline = time.monotonic() + 1200
            for thread in threads:
                thread.join(max(deadline - time.monotonic(), 0))
            self.assertEqual(len(results), 200)
            for result in results:
                self.assert_all_same(result, expected)

    def test_weights_that_are_replaced(self):
        def replace(model, _):
            for weight in model.parameters():
                weight.data = torch.full_like(weight, float("nan"))
            return overwrite()

        for kind in (nn.LSTM, nn.GRU, nn.RNN):
            self.assert_all_same(self.gradients_of(DEVICE, kind, between=replace), self.gradients_of("cpu", kind))

    def test_storages_that_are_emptied(self):
        def empty(model, _):
            saved = [weight.detach().cpu() for weight in model.parameters()]
            for weight in model.parameters():
                weight.untyped_storage().resize_(0)
            return saved, overwrite()

        def fill(model, saved):
            for weight, value in zip(model.parameters(), saved):
                weight.untyped_storage().resize_(value.untyped_storage().nbytes())
                weight.data.copy_(value)

        def fill_again(model, _):
            saved, kept = empty(model, _)
            fill(model, saved)
            return kept

        for kind in (nn.LSTM, nn.GRU, nn.RNN):
            with self.assertRaisesRegex(RuntimeError, "storage has been resized to 0"):
                self.gradients_of(DEVICE, kind, between=empty)
            # A backward pass that was refused succeeds when the bytes are there again.
            model = kind(8, 8).to(DEVICE)
            loss = model(torch.randn(4, 3, 8, device=DEVICE))[0].sum()
            saved, kept = empty(model, None)
            with self.assertRaisesRegex(RuntimeError, "resized"):
                loss.backward()
            fill(model, saved)
            loss.backward()
            del kept
            self.assert_all_same(self.gradients_of(DEVICE, kind, between=fill_again), self.gradients_of("cpu", kind))

    def test_storages_with_fewer_bytes_at_the_same_address(self):
        for kind in (nn.LSTM, nn.GRU, nn.RNN):
            model = kind(8, 64).to(DEVICE)
            weight = model.weight_hh_l0
            # The tensors before and behind the weight stay, so the weight's memory cannot merge with free memory before
            # it.
            around = [torch.ones_like(weight) for _ in range(3)]
            weight.data = around.pop(1)
            loss = model(torch.randn(4, 3, 8, device=DEVICE))[0].sum()
            storage = weight.untyped_storage()
            address, size = storage.data_ptr(), storage.nbytes()
            smaller = []
            storage.resize_(0)
            storage.resize_(size // 2)
            while storage.data_ptr() != address:
                # Another tensor takes the memory that the weight got, so that the next try gets other memory.
                storage.resize_(0)
                smaller.append(torch.empty(size // 2, dtype=torch.uint8, device=DEVICE))
                self.assertNotEqual(smaller[-1].data_ptr(), address)
                storage.resize_(size // 2)
            with self.assertRaisesRegex(RuntimeError, f"had {size} bytes, but its storage has been resized to {size // 2}"):
                loss.backward()

    def test_dropout_in_inference_mode(self):
        model = nn.LSTM(8, 8, num_layers=2, dropout=0.5).to(DEVICE)
        x = torch.randn(4, 3, 8, device=DEVICE)
        state = torch.get_rng_state()
        with torch.inference_mode():
            torch.flexmem.manual_seed(9)
            first = model(x)[0]
            torch.flexmem.manual_seed(9)
            self.assertTrue(torch.equal(model(x)[0], first))
        self.assertTrue(torch.equal(torch.get_rng_state(), state))

    def test_changes_in_place_are_noticed_as_on_the_cpu(self):
        def outcome(device, kind, change):
            try:
                return self.gradients_of(device, kind, between=change)
            except RuntimeError as error:
                self.assertIn("modified by an inplace operation", str(error))
                return None

        def change_output(_, y):
            y.relu_()

        def change_weight(model, _):
            with torch.no_grad():
                model.weight_hh_l1.mul_(2)

        for kind in (nn.LSTM, nn.GRU, nn.RNN):
            for change in (change_output, change_weight):
                ours, cpu = outcome(DEVICE, kind, change), outcome("cpu", kind, change)
                self.assertEqual(ours is None, cpu is None, (kind, change))
                self.assert_all_same(ours or [], cpu or [])

    def test_checkpoints(self):
        def gradients(device, kind, reentrant):
            torch.manual_seed(11)
            model = kind(8, 8).to(device)
            x = torch.randn(4, 3, 8).to(device).requires_grad_()
            checkpoint(lambda x: model(x * 2)[0], x, use_reentrant=reentrant).square().sum().backward()
            return [x.grad, *(weight.grad for weight in model.parameters())]

        for kind in (nn.LSTM, nn.GRU, nn.RNN):
            for reentrant in (False, True):
                # A checkpoint that is not reentrant uses hooks for saved tensors.
                compare = self.assert_all_same if reentrant else self.assert_all_close
                compare(gradients(DEVICE, kind, reentrant), gradients("cpu", kind, reentrant))

    def test_the_graph_is_freed(self):
        model, x, _ = self.recurrent(DEVICE)
        before = torch.flexmem.memory_allocated()
        y = model(x * 1)[0]
        size = torch.flexmem.memory_allocated()
        y.sum().backward()
        x.grad = None
        model.zero_grad()
        # Only the output is left.
        after = torch.flexmem.memory_allocated()
        self.assertGreater(size, after)
        other = torch.empty_like(y)
        self.assertEqual(torch.flexmem.memory_allocated() - after, after - before)
        del other

    def test_outputs_are_ordinary_tensors(self):
        model, x, _ = self.recurrent(DEVICE)
        y = model(x)[0]
        data = y.detach()
        data.resize_(1000)
        data.untyped_storage().resize_(0)
        with self.assertRaisesRegex(RuntimeError, "Inference tensors"):
            with torch.inference_mode():
                z = x * 1
            model(z)
