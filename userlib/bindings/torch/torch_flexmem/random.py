# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Random numbers: the same seed gives the same numbers as on the CPU."""

import torch

from .device import _index

_ops = torch.ops.flexmem


def manual_seed(seed):
    # A negative seed counts modulo 2^64.
    seed = int(seed) & ((1 << 64) - 1)
    _ops.manual_seed(seed - (1 << 64) if seed >> 63 else seed)


def manual_seed_all(seed):
    manual_seed(seed)


def seed():
    return _ops.seed()


def seed_all():
    return _ops.seed()


def initial_seed():
    return _ops.initial_seed()


def get_rng_state(device="flexmem"):
    _index(device)
    return _ops.get_rng_state()


def get_rng_state_all():
    return [get_rng_state()]


def set_rng_state(new_state, device="flexmem"):
    _index(device)
    _ops.set_rng_state(new_state)


def set_rng_state_all(new_states):
    for state in new_states:
        set_rng_state(state)
