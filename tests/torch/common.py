# SPDX-License-Identifier: GPL-2.0
"""Classes and functions that the test modules share."""

import gc
import time
import unittest

import torch

DEVICE = torch.device("flexmem:0")


def bits(tensor):
    """Returns the bits of a tensor's numbers, so that -0.0 differs from 0.0. All NaNs are made equal, because kernels
    may write different ones."""
    numbers = tensor.detach().cpu().resolve_conj().resolve_neg()
    if numbers.is_complex():
        numbers = torch.view_as_real(numbers)
    if numbers.is_floating_point():
        numbers = numbers.masked_fill(numbers.isnan(), float("nan"))
    return numbers.reshape(-1).clone(memory_format=torch.contiguous_format).view(torch.uint8)


def allocated():
    """Returns the bytes in tensors of each device."""
    return [torch.flexmem.memory_allocated(index) for index in range(torch.flexmem.device_count())]


class FlexmemTest(unittest.TestCase):
    """A test case. After each test all memory must have been freed, and no kernel may have copied a result."""

    def setUp(self):
        gc.collect()
        # Garbage collection is faster without the objects that exist now. Most of them belong to modules.
        gc.freeze()
        self.bytes_before = allocated()
        self.copied_before = torch.ops.flexmem.kernel_counters()[1]

    def tearDown(self):
        gc.collect()
        # A thread of autograd may drop its last tensors after backward() has returned.
        for _ in range(3000):
            if allocated() == self.bytes_before:
                break
            time.sleep(0.01)
        self.assertEqual(allocated(), self.bytes_before)
        self.assertEqual(torch.ops.flexmem.kernel_counters()[1], self.copied_before)

    def assert_same(self, ours, cpu):
        """Expects that our tensor is on the device, and equal to the CPU's bit for bit."""
        self.assertEqual(ours.device, DEVICE)
        self.assertEqual(ours.dtype, cpu.dtype)
        self.assertEqual(ours.shape, cpu.shape)
        self.assertEqual(ours.stride(), cpu.stride())
        # Formats the tensors only if they differ, because that takes long.
        if not torch.equal(bits(ours), bits(cpu)):
            self.fail(f"{ours} is not {cpu}")
