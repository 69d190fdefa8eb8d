#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs every operator for which PyTorch has samples, on the device and on the CPU. Prints TAP: a test for each
operator.

Each sample of type float32 and int64 that passes on the CPU must pass on the device. Results and arguments must be the
same afterwards, bit for bit and with the same strides; results must be on the device, without a copy. The same holds
for the results of the operator with out=, of the operator in place, and for its backward and forward derivatives.
opinfo.txt names the operators that are left out, with reasons: at most 30. Calls that the CPU refuses are counted. The
CPU may not refuse all calls of an operator in one of these forms.

Usage: opinfo.py [NAME...]      NAME: whole names of operators; default: all
"""

import collections
import contextlib
import itertools
import os
import sys
import types
import warnings

import torch

# PyTorch's samples import a module that builds extensions and needs setuptools. Nothing is built here, so an empty
# module replaces it.
sys.modules["torch.utils.cpp_extension"] = torch.utils.cpp_extension = types.ModuleType("cpp_extension")

from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves, tree_map

from torch.autograd import forward_ad

import torch_flexmem  # noqa: F401, it registers the device

from common import DEVICE, bits

CPU = torch.device("cpu")
SEED = 7
MOST_LEFT_OUT = 30


def left_out():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "opinfo.txt"), encoding="utf-8") as file:
        lines = [line.split(None, 1) for line in file if line.strip() and not line.startswith("#")]
    assert len(lines) <= MOST_LEFT_OUT, f"{len(lines)} operators are left out"
    return {name: reason.strip() for name, reason in lines}


def place(value, device, storages):
    """Returns a copy of an argument on a device. A view stays a view, because the operator may access the storage
    beyond the view. The copies of views share a storage if the views did."""
    if isinstance(value, torch.Tensor):
        storage = value.untyped_storage()
        if storage._cdata not in storages:
            storages[storage._cdata] = torch.empty(0, dtype=torch.uint8).set_(storage).to(device, copy=True).untyped_storage()
        placed = torch.empty(0, dtype=value.dtype, device=device)
        placed.set_(storages[storage._cdata], value.storage_offset(), value.shape, value.stride())
        return placed.conj() if value.is_conj() else placed
    if isinstance(value, torch.device) or value == "cpu":
        return device
    return value


def plain(op, arguments):
    return op(arguments[0], *arguments[1], **arguments[2])


def with_out(op, arguments):
    """Calls the operator with out= tensors that exist already."""
    clones = tree_map(lambda value: value.clone() if isinstance(value, torch.Tensor) else value, arguments)
    out = tree_map(torch.zeros_like, plain(op, clones))
    return op(arguments[0], *arguments[1], **arguments[2], out=out), out


def in_place(op, arguments):
    return op.inplace_variant(arguments[0], *arguments[1], **arguments[2])


def is_differentiable(value):
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def numbers_like(tensor):
    numbers = torch.linspace(0.5, 1.5, max(tensor.numel(), 1), device=tensor.device).to(tensor.dtype)
    return numbers[:tensor.numel()].reshape(tensor.shape)


def backward(op, arguments):
    """Returns the gradients of all arguments that can have one."""
    leaves = tree_map(lambda value: value.detach().requires_grad_() if is_differentiable(value) else value, arguments)
    inputs = [leaf for leaf in tree_leaves(leaves) if is_differentiable(leaf)]
    outputs = [leaf for leaf in tree_leaves(plain(op, leaves)) if is_differentiable(leaf) and leaf.requires_grad]
    return torch.autograd.grad(outputs, inputs, [numbers_like(output) for output in outputs], allow_unused=True)


def forward(op, arguments):
    """Returns the forward derivatives of all results. Only every second argument gets a tangent, so that PyTorch has to
    make zeros for the others."""
    with forward_ad.dual_level():
        number = itertools.count()

        def dual(value):
            if is_differentiable(value) and next(number) % 2 == 0:
                return forward_ad.make_dual(value, numbers_like(value))
            return value

        duals = tree_map(dual, arguments)
        results = [forward_ad.unpack_dual(leaf) for leaf in tree_leaves(plain(op, duals)) if is_differentiable(leaf)]
        tangents = [result.tangent.clone() for result in results if result.tangent is not None]
        # Results that are whole numbers have no derivative.
        assert tangents, "no result has a derivative"
        return tangents


FORMS = {plain: lambda op: True, with_out: lambda op: op.supports_out, in_place: lambda op: op.inplace_variant,
         backward: lambda op: op.supports_autograd, forward: lambda op: op.supports_forward_ad}
# Operators for which the CPU refuses all calls in one form. equal() returns no tensor. Two operators need out= in
# another form. One works in place only with float64. Three have no gradients, or not for all arguments. The results of
# the last three are whole numbers.
REFUSED = {("equal", with_out), ("_batch_norm_with_update", with_out), ("histogramdd", with_out), ("float_power", in_place),
           ("_batch_norm_with_update", backward), ("nn.functional.one_hot", backward),
           ("nn.functional.soft_margin_loss", backward), ("__rand__", forward), ("__ror__", forward), ("__rxor__", forward)}

# How many calls of each form the CPU may refuse, over all operators. PyTorch 2.6 has this many samples that suit only
# other forms.
MOST_REFUSED = {plain: 0, with_out: 145, in_place: 512, backward: 5384, forward: 5242}


def forms(op):
    """Returns the forms in which an operator can be called."""
    return [form for form, has in FORMS.items() if has(op)]


def call(form, op, sample, device):
    """Calls the operator. Returns its results, and its arguments, which it may have changed."""
    storages = {}
    arguments = tree_map(lambda value: place(value, device, storages), sample)
    torch.manual_seed(SEED)
    # Operators without a tensor among their arguments must make their results on the device too.
    has_tensor = any(isinstance(leaf, torch.Tensor) for leaf in tree_leaves(arguments))
    with contextlib.nullcontext() if has_tensor else device:
        result = form(op, arguments)
    leaves = tree_leaves((result, arguments))
    # All tensors of the device are strided.
    assert all(leaf.layout == torch.strided for leaf in leaves if isinstance(leaf, torch.Tensor))
    return [leaf.detach() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]


def is_same(ours, cpu):
    if not isinstance(cpu, torch.Tensor):
        return ours == cpu or (ours != ours and cpu != cpu) or (ours, cpu) == (DEVICE, CPU)
    if not isinstance(ours, torch.Tensor) or (ours.device, ours.dtype, ours.shape) != (DEVICE, cpu.dtype, cpu.shape):
        return False
    if ours.stride() != cpu.stride():
        return False
    return torch.equal(bits(ours), bits(cpu))


def are_same(ours, cpu):
    return len(ours) == len(cpu) and all(map(is_same, ours, cpu))


def notices_differences():
    """Whether are_same() distinguishes tensors that differ in a single respect."""
    cpu = torch.arange(6.0).reshape(2, 3)
    negative_zero = cpu.to(DEVICE)
    negative_zero[0, 0] = -0.0
    others = [cpu, cpu.to(DEVICE) + 1, negative_zero, cpu.to(DEVICE, torch.float64), cpu.to(DEVICE)[0],
              cpu.to(DEVICE).t().contiguous().t(), 1.0]
    return are_same([cpu.to(DEVICE) / 0, 2.0, DEVICE], [cpu / 0, 2.0, CPU]) and not any(are_same([other], [cpu]) for other in others)


def samples(op, dtype):
    """Returns the same samples of an operator each time. Leaves out samples with sparse tensors, because the device has
    none."""
    torch.manual_seed(SEED)
    every = [(sample.input, sample.args, sample.kwargs) for sample in op.sample_inputs("cpu", dtype, requires_grad=False)]
    return [arguments for arguments in every
            if all(leaf.layout == torch.strided for leaf in tree_leaves(arguments) if isinstance(leaf, torch.Tensor))]


def types_of(op):
    """Returns float32 and int64 to test with; if the operator supports neither, a type that it supports."""
    supported = op.supported_dtypes("cpu")
    usual = [dtype for dtype in (torch.float32, torch.int64) if dtype in supported]
    return usual or sorted(supported, key=str)[:1]


def copies():
    """Returns how many results of kernels were copied into the device's memory since the program began."""
    return torch.ops.flexmem.kernel_counters()[1]


def problems(op):
    """Runs all samples of an operator. Returns texts about samples that differ, how many calls of each form were
    compared, and how many the CPU refused."""
    found = []
    compared, refused = collections.Counter(), collections.Counter()
    copied = copies()
    for dtype in types_of(op):
        for number, sample in enumerate(samples(op, dtype)):
            for form in forms(op):
                try:
                    expected = call(form, op, sample, CPU)
                except Exception:
                    refused[form.__name__] += 1
                    continue
                compared[form.__name__] += 1
                name = f"{dtype} sample {number}, {form.__name__}"
                try:
                    if not are_same(call(form, op, sample, DEVICE), expected):
                        found.append(f"{name}: another result")
                except Exception as error:
                    found.append(f"{name}: {type(error).__name__}: {str(error).splitlines()[0][:150]}")
    if copies() != copied:
        found.append(f"{copies() - copied} results were copied")
    for form in forms(op):
        if bool(compared[form.__name__]) == ((op.name, form) in REFUSED):
            found.append(f"{compared[form.__name__]} calls {form.__name__}")
    return found, compared, refused


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    skipped = left_out()
    unmet = {name for name, _ in REFUSED}
    wanted = set(sys.argv[1:])
    compared, refused = collections.Counter(), collections.Counter()
    lines = failed = 0

    def line(good, text):
        nonlocal lines, failed
        lines += 1
        failed += not good
        print(f"{'' if good else 'not '}ok {lines} - {text}", flush=True)

    line(notices_differences(), "differences are noticed")
    for op in op_db:
        name = f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name
        if wanted and name not in wanted:
            continue
        if name in skipped:
            line(True, f"{name} # SKIP {skipped.pop(name)}")
            continue
        if not op.supported_dtypes("cpu"):
            line(True, f"{name} # SKIP the CPU has no kernel")
            continue
        unmet.discard(op.name)
        found, ours, theirs = problems(op)
        compared += ours
        refused += theirs
        line(not found, f"{name}, {ours.total()} calls, {theirs.total()} refused by the CPU")
        for text in found[:5]:
            print(f"# {text}")
    if not wanted:
        line(not skipped, f"what is left out is known: {', '.join(skipped) or 'all'}")
        line(not unmet, f"what the CPU refuses is known: {', '.join(unmet) or 'all'}")
        line(len(compared) == len(FORMS), "operators are called in each form")
        for form, most in MOST_REFUSED.items():
            count = refused[form.__name__]
            line(count <= most, f"the CPU refuses {count} calls {form.__name__}")
    for form, count in compared.items():
        print(f"# {count} calls {form}, {refused[form]} refused by the CPU")
    print(f"1..{lines}")
    return 0 if not failed and compared else 1


if __name__ == "__main__":
    sys.exit(main())
