# SPDX-License-Identifier: GPL-2.0
"""What the test modules share."""

import gc
import time
import unittest

import torch

DEVICE = torch.device("flexmem:0")


class FlexmemTest(unittest.TestCase):
    """After each test every byte is back, and no kernel has copied a result."""

    def setUp(self):
        gc.collect()
        self.bytes_before = torch.flexmem.memory_allocated()
        self.copied_before = torch.ops.flexmem.kernel_counters()[1]

    def tearDown(self):
        gc.collect()
        # A thread of autograd may drop its last tensors after backward() has returned.
        for _ in range(3000):
            if torch.flexmem.memory_allocated() <= self.bytes_before:
                break
            time.sleep(0.01)
        self.assertEqual(torch.flexmem.memory_allocated(), self.bytes_before)
        self.assertEqual(torch.ops.flexmem.kernel_counters()[1], self.copied_before)

    def assert_same(self, ours, cpu):
        """Equal bit for bit, and on the device."""
        self.assertEqual(ours.device, DEVICE)
        self.assertEqual(ours.dtype, cpu.dtype)
        self.assertEqual(ours.shape, cpu.shape)
        self.assertEqual(ours.stride(), cpu.stride())
        self.assertTrue(torch.equal(ours.cpu(), cpu), f"{ours} is not {cpu}")
