# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Random numbers: the same seed gives the same numbers as on the CPU."""

import torch

from .device import _index, device_count

_ops = torch.ops.flexmem


def _signed(seed):
    # A negative seed counts modulo 2^64.
    seed = int(seed) & ((1 << 64) - 1)
    return seed - (1 << 64) if seed >> 63 else seed


def manual_seed(seed):
    _ops.manual_seed(_signed(seed), -1)


def manual_seed_all(seed):
    _ops.manual_seed_all(_signed(seed))


def seed():
    return _ops.seed(-1)


def seed_all():
    """Gives all devices one new seed."""
    fresh = seed()
    manual_seed_all(fresh)
    return fresh


def initial_seed():
    return _ops.initial_seed(-1)


def get_rng_state(device="flexmem"):
    return _ops.get_rng_state(_index(device))


def get_rng_state_all():
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state(new_state, device="flexmem"):
    _ops.set_rng_state(new_state, _index(device))


def set_rng_state_all(new_states):
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
