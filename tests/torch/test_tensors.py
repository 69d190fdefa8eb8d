# SPDX-License-Identifier: GPL-2.0
"""Tensors behave as on the CPU: views, out= tensors, resizing, conjugates."""

import torch

from common import DEVICE, FlexmemTest


class Tensors(FlexmemTest):
    def test_factories(self):
        self.assert_same(torch.arange(10, device=DEVICE), torch.arange(10))
        self.assert_same(torch.full((2, 3), 7.0, device="flexmem"), torch.full((2, 3), 7.0))
        self.assert_same(torch.tensor([[1, 2], [3, 4]], device=DEVICE), torch.tensor([[1, 2], [3, 4]]))
        self.assertEqual(torch.empty(0, device=DEVICE).numel(), 0)
        with torch.device(DEVICE):
            self.assertEqual(torch.ones(3).device, DEVICE)

    def test_deterministic_memory(self):
        torch.use_deterministic_algorithms(True)
        try:
            for make in (lambda: torch.empty(3, device=DEVICE), lambda: torch.empty_strided((2, 3), (3, 1), device=DEVICE),
                         lambda: torch.ones(2, device=DEVICE).resize_(9)[2:], lambda: torch.ones(2, device=DEVICE).new_empty(3)):
                self.assertTrue(make().isnan().all().item())
        finally:
            torch.use_deterministic_algorithms(False)

    def test_in_place_on_views_of_views(self):
        cpu = torch.arange(24.0).reshape(4, 6)
        ours = cpu.to(DEVICE)
        for x in (cpu, ours):
            x[1:3].t()[2:5].mul_(10).add_(1)
            x.view(6, 4)[::2, 1].zero_()
            x.diagonal().neg_()
            x.unfold(1, 2, 2)[..., 0].add_(100)
        self.assert_same(ours, cpu)

    def test_views_share_their_bytes(self):
        x = torch.zeros(4, 4, device=DEVICE)
        for view in (x[1], x.t(), x.view(16), x.reshape(2, 8), x.detach(), x.expand(2, 4, 4), x.split(2)[1],
                     x.as_strided((2,), (1,), 3), x.unbind()[0], x.view(torch.int32)):
            self.assertEqual(view.untyped_storage().data_ptr(), x.untyped_storage().data_ptr())
        x.split(2)[1].fill_(5)
        self.assertEqual(x.sum().item(), 40.0)

    def test_results_that_are_given(self):
        a, b = torch.randn(3, 4), torch.randn(3, 4)
        expected = a + b
        out = torch.empty(3, 4, device=DEVICE)
        self.assertIs(torch.add(a.to(DEVICE), b.to(DEVICE), out=out), out)
        self.assert_same(out, expected)
        # An empty out= tensor is resized.
        out = torch.empty(0, device=DEVICE)
        self.assertIs(torch.add(a.to(DEVICE), b.to(DEVICE), out=out), out)
        self.assert_same(out, expected)
        # An out= tensor of the wrong size is resized too, with a warning.
        out = torch.ones(100, device=DEVICE)
        with self.assertWarns(UserWarning):
            torch.add(a.to(DEVICE), b.to(DEVICE), out=out)
        self.assert_same(out, expected)
        values, indices = torch.empty(0, device=DEVICE), torch.empty(0, dtype=torch.long, device=DEVICE)
        torch.sort(a.to(DEVICE), out=(values, indices))
        self.assert_same(values, a.sort().values)
        self.assert_same(indices, a.sort().indices)

        # With out= these operators need a kernel of the device; without it they do not.
        self.assert_same(torch.nanmean(a.to(DEVICE), 0, out=torch.empty(4, device=DEVICE)), a.nanmean(0))
        torch.mode(a.to(DEVICE), out=(values.resize_(0), indices.resize_(0)))
        self.assert_same(values, a.mode().values)

    def test_resize(self):
        x = torch.arange(4.0, device=DEVICE)
        x.resize_(10)
        self.assertEqual(x[:4].tolist(), [0.0, 1.0, 2.0, 3.0])
        x.untyped_storage().resize_(0)
        self.assertEqual(x.untyped_storage().nbytes(), 0)
        x.untyped_storage().resize_(40)
        x.fill_(2)
        self.assertEqual(x.sum().item(), 20.0)

    def test_set(self):
        x = torch.arange(6.0, device=DEVICE)
        y = torch.empty(0, device=DEVICE)
        y.set_(x)
        self.assertEqual(y.data_ptr(), x.data_ptr())
        z = torch.empty(0, device=DEVICE).set_(x.untyped_storage(), 2, (2, 2), (2, 1))
        self.assertEqual(z.tolist(), [[2.0, 3.0], [4.0, 5.0]])
        z.data = torch.ones(3, device=DEVICE)
        self.assertEqual(z.tolist(), [1.0] * 3)

    def test_conjugates_and_negatives(self):
        cpu = torch.randn(3, dtype=torch.complex64)
        ours = cpu.to(DEVICE)
        self.assertTrue(ours.conj().is_conj())
        self.assertTrue(ours.conj().imag.is_neg())
        for make in (lambda x: x.conj() + 1, lambda x: x.conj() @ x, lambda x: x.conj().imag * 2,
                     lambda x: x.conj().resolve_conj(), lambda x: x.conj().imag.resolve_neg(),
                     lambda x: torch.zeros_like(x).copy_(x.conj()), lambda x: x.conj().clone()):
            self.assert_same(make(ours), make(cpu))
        self.assertTrue(torch.equal(ours.conj().cpu(), cpu.conj()))
        self.assertTrue(torch.equal(ours.conj().imag.cpu(), cpu.conj().imag))

    def test_devices_do_not_mix(self):
        x = torch.ones(3, device=DEVICE)
        for call in (lambda: x + torch.ones(3), lambda: torch.ones(3) * x, lambda: torch.cat([x, torch.ones(3)]),
                     lambda: torch.mm(torch.ones(3, 3), x.view(3, 1)), lambda: x.add_(torch.ones(3))):
            with self.assertRaisesRegex(RuntimeError, "same device"):
                call()
        # Indices must be on the tensor's device too, except in index(). Operators whose names only begin like index()
        # or copy_() are no exceptions.
        index = torch.tensor([0, 2])
        for call in (lambda: torch.copysign(x, torch.ones(3)), lambda: x.index_select(0, index),
                     lambda: x.index_add(0, index, torch.ones(2, device=DEVICE)),
                     lambda: x.index_copy(0, index.to(DEVICE), torch.ones(2)), lambda: x.index_fill(0, index, 1.0),
                     lambda: torch.ones(3)[index.to(DEVICE)], lambda: torch.nn.functional.embedding(index, x.view(3, 1)),
                     lambda: x.index_put((index.to(DEVICE),), torch.ones(2))):
            with self.assertRaisesRegex(RuntimeError, "same device"):
                call()
        # A tensor that is just a number may be on the CPU, and so may the indices of index().
        self.assert_same(x + torch.tensor(2.0), torch.full((3,), 3.0))
        self.assert_same(x[index], torch.ones(2))
        self.assert_same(x.index_put((index,), torch.tensor(2.0)), torch.tensor([2.0, 1.0, 2.0]))
        y = x.clone().requires_grad_()
        y[index].sum().backward()
        self.assert_same(y.grad, torch.tensor([1.0, 0.0, 1.0]))
        # An operator must not write to a CPU tensor that is just a number.
        number = torch.tensor(1.0)
        for call in (lambda: number.add_(x[0]), lambda: torch.sum(x, (0,), out=number), lambda: torch._foreach_add_([number], [x[0]])):
            with self.assertRaisesRegex(RuntimeError, "same device"):
                call()
        self.assertEqual(number.item(), 1.0)
        number.copy_(x.sum())
        self.assertEqual(number.item(), 3.0)

    def test_copies(self):
        cpu = torch.randn(4, 5)
        ours = cpu.to(DEVICE)
        self.assertTrue(torch.equal(ours.cpu(), cpu))
        self.assertTrue(torch.equal(torch.empty(5, 4).copy_(ours.t()), cpu.t()))
        self.assert_same(ours.to(torch.float64), cpu.double())
        self.assert_same(cpu.to(DEVICE, torch.int32), cpu.int())
        with self.assertRaises(TypeError):
            ours.numpy()

    def test_other_layouts_are_refused(self):
        x = torch.eye(3, device=DEVICE)
        with self.assertRaisesRegex(NotImplementedError, "flexmem:0 has no tensors of layout Sparse"):
            x.to_sparse()
        with self.assertRaisesRegex(NotImplementedError, "Sparse"):
            torch.nn.Embedding(4, 3, sparse=True, device=DEVICE)(torch.tensor([1], device=DEVICE)).sum().backward()

    def test_functions(self):
        cpu = torch.randn(4, 4)
        ours = cpu.to(DEVICE)
        for name in ("sort", "unique", "nonzero", "cumsum", "median", "svd", "fft", "inverse", "softmax"):
            function = {"cumsum": lambda x: x.cumsum(0), "fft": torch.fft.fft, "svd": torch.linalg.svdvals,
                        "softmax": lambda x: x.softmax(1)}.get(name, getattr(torch, name, None))
            mine, expected = function(ours), function(cpu)
            if isinstance(expected, torch.Tensor):
                mine, expected = (mine,), (expected,)
            for a, b in zip(mine, expected):
                self.assert_same(a, b)

    def test_transforms(self):
        def loss(x):
            return x.sin().square().sum()

        cpu = torch.randn(3, 4)
        ours = cpu.to(DEVICE)
        self.assert_same(torch.func.grad(loss)(ours), torch.func.grad(loss)(cpu))
        self.assert_same(torch.vmap(loss)(ours), torch.vmap(loss)(cpu))
        self.assert_same(torch.func.jvp(loss, (ours,), (ours,))[1], torch.func.jvp(loss, (cpu,), (cpu,))[1])
        x = torch.randn(3, dtype=torch.float64, device=DEVICE, requires_grad=True)
        self.assertTrue(torch.autograd.gradcheck(lambda x: x.exp().prod(), (x,)))

    def test_forward_derivatives(self):
        # The bias has no gradient. PyTorch represents that by zeros without bytes.
        def run(device):
            torch.manual_seed(12)
            x, weight, bias = (torch.randn(*size).to(device) for size in ((4, 3), (5, 3), (5,)))
            return torch.func.jvp(lambda x: torch.nn.functional.linear(x, weight, bias), (x,), (x,))

        for ours, cpu in zip(run(DEVICE), run("cpu")):
            self.assert_same(ours, cpu)

    def test_zeros_without_bytes(self):
        ours = torch._efficientzerotensor((3, 4), device=DEVICE)
        cpu = torch.zeros(3, 4)
        for view in (lambda x: x, lambda x: x.t(), lambda x: x[1], lambda x: x[0].expand(2, 4), lambda x: x.unfold(1, 2, 2)):
            self.assertTrue(view(ours)._is_zerotensor())
            self.assert_same(view(ours), view(cpu))
        for make in (lambda x: x.clone(), lambda x: x.cos(), lambda x: torch.cat([x, x + 1]), lambda x: torch.ones_like(x).copy_(x),
                     lambda x: x.clone().add_(x), lambda x: torch._foreach_add([x], [x + 1])[0], lambda x: x.to(torch.float64)):
            self.assert_same(make(ours), make(cpu))
        self.assertEqual(ours.tolist(), cpu.tolist())

    def test_anomalies_are_detected(self):
        x = torch.zeros(3, device=DEVICE, requires_grad=True)
        with torch.autograd.detect_anomaly(check_nan=True):
            with self.assertRaisesRegex(RuntimeError, "'SqrtBackward0' returned nan"), self.assertWarns(UserWarning):
                (x.sqrt() * 0).sum().backward()

    def test_attention(self):
        for causal in (False, True):
            torch.manual_seed(6)
            cpu = [torch.randn(2, 2, 5, 8, requires_grad=True) for _ in range(3)]
            ours = [x.detach().to(DEVICE).requires_grad_() for x in cpu]
            results = []
            for tensors in (cpu, ours):
                result = torch.nn.functional.scaled_dot_product_attention(*tensors, is_causal=causal)
                result.square().sum().backward()
                results.append(result.detach())
            self.assertTrue(torch.equal(results[1].cpu(), results[0]))
            for a, b in zip(ours, cpu):
                self.assertTrue(torch.equal(a.grad.cpu(), b.grad))

    def test_random_numbers(self):
        def draw(device):
            torch.manual_seed(7)
            x = torch.rand(5, device=device)
            return torch.cat([x, torch.randn(5, device=device), torch.nn.functional.dropout(x, 0.5),
                              torch.randperm(5, device=device).float(), x.bernoulli()])

        self.assert_same(draw(DEVICE), draw("cpu"))
        state = torch.flexmem.get_rng_state()
        x = torch.rand(3, device=DEVICE)
        torch.flexmem.set_rng_state(state)
        self.assertTrue(torch.equal(torch.rand(3, device=DEVICE), x))
        generator = torch.Generator(device=DEVICE)
        generator.manual_seed(8)
        self.assert_same(torch.rand(3, device=DEVICE, generator=generator),
                         torch.rand(3, generator=torch.Generator().manual_seed(8)))
        torch.flexmem.manual_seed(-1)
        self.assertEqual(torch.flexmem.initial_seed(), -1)

    def test_dropout(self):
        def run(device, p, train, native):
            torch.manual_seed(7)
            x = torch.arange(1.0, 41.0).reshape(5, 8).to(device).requires_grad_()
            result = torch.native_dropout(x, p, train) if native else (torch.dropout(x, p, train),)
            result[0].sum().backward()
            return [result[0].detach(), x.grad, *result[1:]]

        for p in (0.0, 0.3, 1.0):
            for train in (True, False):
                for native in (True, False):
                    for ours, cpu in zip(run(DEVICE, p, train, native), run("cpu", p, train, native)):
                        self.assert_same(ours, cpu)
        with self.assertRaisesRegex(RuntimeError, "between 0 and 1"):
            torch.dropout(torch.ones(3, device=DEVICE), 1.5, True)

    def test_dropout_draws_from_the_devices_generator(self):
        state = torch.get_rng_state()
        x = torch.ones(100, device=DEVICE)
        for inference in (False, True):
            for function in (torch.dropout, lambda *arguments: torch.native_dropout(*arguments)[0]):
                with torch.inference_mode(inference):
                    torch.flexmem.manual_seed(3)
                    first = function(x, 0.5, True)
                    torch.flexmem.manual_seed(3)
                    self.assertTrue(torch.equal(function(x, 0.5, True), first))
                    self.assertFalse(torch.equal(function(x, 0.5, True), first))
        self.assertTrue(torch.equal(torch.get_rng_state(), state))

    def test_printing(self):
        self.assertEqual(str(torch.arange(3, device=DEVICE)), "tensor([0, 1, 2], device='flexmem:0')")
        self.assertIn("device='flexmem:0'", repr(torch.nn.Parameter(torch.ones(2, device=DEVICE))))
