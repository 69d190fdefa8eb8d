# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""PyTorch's device "flexmem": tensors in memory that flexmem manages.

    import torch
    import torch_flexmem

    x = torch.ones(3, device="flexmem")
    torch.flexmem.memory_allocated()

The names are those of torch.cuda. FLEXMEM_VISIBLE_DEVICES chooses the devices, FLEX_DEVICE one; FLEXMEM_TORCH=host
uses host memory instead, on machines without the driver.
"""

import atexit
import ctypes
import gc
import os
import sys

import torch

_LIBRARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libflexmem_torch.so")
torch.ops.load_library(_LIBRARY)
_ops = torch.ops.flexmem

from .device import (  # noqa: E402
    Event,
    Stream,
    _is_in_bad_fork,
    current_device,
    current_stream,
    default_stream,
    device,
    device_count,
    get_amp_supported_dtype,
    get_device_name,
    init,
    is_available,
    is_bf16_supported,
    is_initialized,
    set_device,
    stream,
    synchronize,
)
from .memory import (  # noqa: E402
    MemPool,
    _dump_snapshot,
    _record_memory_history,
    _snapshot,
    empty_cache,
    get_per_process_memory_fraction,
    largest_segment,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
    use_mem_pool,
)
from .random import (  # noqa: E402
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)



def _lazy_init():
    """PyTorch calls this for a tensor of any device. The first allocation on a device opens it."""


OutOfMemoryError = torch.OutOfMemoryError

torch.utils.rename_privateuse1_backend("flexmem")
torch._register_device_module("flexmem", sys.modules[__name__])
torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)


# Called after the first failure of a request, before the request is tried again. ctypes takes the GIL for the call.
@ctypes.CFUNCTYPE(None)
def _collect_garbage():
    gc.collect()


_on_oom = ctypes.CDLL(_LIBRARY).flexmem_torch_on_oom
_on_oom.restype = None
_on_oom(_collect_garbage)
# Removes the callback at exit, because a thread may call it after Python has ended.
atexit.register(_on_oom, None)
