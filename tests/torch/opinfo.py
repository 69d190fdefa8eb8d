#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Every operator that PyTorch has samples for, on the device and on the CPU. Prints TAP: a test for each operator.

Each sample of type float32 and int64 that passes on the CPU must pass on the device, with the same result and without a copy of
it. What opinfo.txt names is left out, with a reason: at most 30 operators.

Usage: opinfo.py [NAME...]      NAME: whole names of operators; default: all
"""

import os
import sys
import types
import warnings

import torch

# PyTorch's samples import a module that needs setuptools. An empty module replaces it.
sys.modules["torch.utils.cpp_extension"] = torch.utils.cpp_extension = types.ModuleType("cpp_extension")

from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves, tree_map

import torch_flexmem  # noqa: F401, it registers the device

DEVICE = torch.device("flexmem:0")
SEED = 7
MOST_LEFT_OUT = 30


def left_out():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "opinfo.txt"), encoding="utf-8") as file:
        lines = [line.split(None, 1) for line in file if line.strip() and not line.startswith("#")]
    assert len(lines) <= MOST_LEFT_OUT, f"{len(lines)} operators are left out"
    return {name: reason.strip() for name, reason in lines}


def to_device(value):
    """A view stays a view: the operator may look beyond it."""
    if isinstance(value, torch.Tensor) and value.device.type == "cpu":
        whole = torch.empty(0, dtype=value.dtype).set_(value.untyped_storage())
        return whole.to(DEVICE).as_strided(value.shape, value.stride(), value.storage_offset())
    if isinstance(value, torch.device) or value == "cpu":
        return DEVICE
    return value


def call(op, sample):
    """What the operator returns, and what it makes of its arguments."""
    torch.manual_seed(SEED)
    result = op(sample[0], *sample[1], **sample[2])
    return [leaf.detach() if isinstance(leaf, torch.Tensor) else leaf for leaf in tree_leaves(result)]


def is_same(ours, cpu):
    if not isinstance(cpu, torch.Tensor):
        return ours == cpu or (ours != ours and cpu != cpu)
    if not isinstance(ours, torch.Tensor) or ours.dtype != cpu.dtype or ours.shape != cpu.shape:
        return False
    return torch.allclose(ours.cpu(), cpu, rtol=0, atol=0, equal_nan=True) if cpu.numel() else True


def samples(op, dtype):
    """The same ones each time. The device has no sparse tensors."""
    torch.manual_seed(SEED)
    every = [(sample.input, sample.args, sample.kwargs) for sample in op.sample_inputs("cpu", dtype, requires_grad=False)]
    return [arguments for arguments in every
            if all(leaf.layout == torch.strided for leaf in tree_leaves(arguments) if isinstance(leaf, torch.Tensor))]


def copies():
    """Results of kernels that were copied into the device's memory since the program began."""
    return torch.ops.flexmem.kernel_counters()[1]


def problems(op):
    """The samples that differ, as texts; and how many were compared."""
    found = []
    count = 0
    copied = copies()
    for dtype in (torch.float32, torch.int64):
        if dtype not in op.supported_dtypes("cpu"):
            continue
        # Generates the samples twice, because an operator may change its arguments.
        for number, (cpu, ours) in enumerate(zip(samples(op, dtype), samples(op, dtype))):
            ours = tree_map(to_device, ours)
            try:
                expected = call(op, cpu)
            except Exception:
                continue
            count += 1
            try:
                result = call(op, ours)
                if len(result) != len(expected) or not all(map(is_same, result, expected)):
                    found.append(f"{dtype} sample {number}: another result")
            except Exception as error:
                found.append(f"{dtype} sample {number}: {type(error).__name__}: {str(error).splitlines()[0][:150]}")
    if copies() != copied:
        found.append(f"{copies() - copied} results were copied")
    return found, count


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    skipped = left_out()
    wanted = set(sys.argv[1:])
    count = failed = compared = 0
    for op in op_db:
        name = f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name
        if wanted and name not in wanted:
            continue
        count += 1
        if name in skipped:
            print(f"ok {count} - {name} # SKIP {skipped.pop(name)}", flush=True)
            continue
        found, samples_of = problems(op)
        compared += samples_of
        failed += bool(found)
        print(f"{'not ' if found else ''}ok {count} - {name}, {samples_of} samples", flush=True)
        for text in found[:5]:
            print(f"# {text}")
    if not wanted:
        count += 1
        failed += bool(skipped)
        print(f"{'not ' if skipped else ''}ok {count} - what is left out is known: {', '.join(skipped) or 'all'}")
    print(f"# {compared} samples")
    print(f"1..{count}")
    return 0 if not failed and compared else 1


if __name__ == "__main__":
    sys.exit(main())
