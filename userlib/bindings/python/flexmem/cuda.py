# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""PyTorch's memory on NVIDIA GPUs, from flexmem's cache.

    import flexmem.cuda

    flexmem.cuda.use()          # before the first tensor on the GPU

or, without a change of the program: python -m flexmem.cuda SCRIPT [ARGUMENT...]

Afterwards PyTorch allocates from flexmem. torch.cuda.memory_stats(), memory_allocated(), memory_summary(),
reset_peak_memory_stats(), empty_cache() and set_per_process_memory_fraction() show and change flexmem's cache.
"""

from __future__ import annotations

import ctypes
import json
import os
import pickle
import runpy
import sys
from typing import Any

_POOLS = ("all", "small_pool", "large_pool")
_FIGURES = ("current", "peak", "allocated", "freed")
_VARIABLES = ("FLEXMEM_ALLOC_CONF", "MINDTORCH_NPU_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")


class _Figure(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in _FIGURES]


class _Statistics(ctypes.Structure):
    """struct flexmem_cache_statistics."""

    _fields_ = [
        *((name, _Figure * len(_POOLS)) for name in (
            "allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes", "active_bytes",
            "inactive_split_bytes", "requested_bytes")),
        ("oversize_allocations", _Figure),
        ("oversize_segments", _Figure),
        *((name, ctypes.c_uint64) for name in (
            "max_split_size", "num_ooms", "num_alloc_retries", "num_first_failures", "num_sync_all_streams",
            "num_device_alloc", "num_device_free", "num_device_grow", "num_device_shrink", "num_hits", "num_misses",
            "num_collections", "num_pressure_events", "pressure_bytes", "num_limit_errors")),
    ]


class _Calls(ctypes.Structure):
    """struct flexmem_cuda_calls."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("sections", "nanoseconds", "longest", "pages")]


def _find() -> str:
    """The library: in the folder of this package, where `make` builds it, or where the loader finds it."""
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in (here, os.path.join(here, "../.."), os.path.join(here, "../../../../build/userlib")):
        path = os.path.join(folder, "libflexmem_cuda.so")
        if os.path.exists(path):
            return os.path.normpath(path)
    return "libflexmem_cuda.so.0"


_PATH = _find()
_library = ctypes.CDLL(_PATH)


class Error(RuntimeError):
    """A call of flexmem failed. `errno` says how, the text why."""

    def __init__(self, error: int) -> None:
        text = ctypes.create_string_buffer(1024)
        _library.flexmem_cuda_error_text(text, ctypes.c_size_t(len(text)))
        super().__init__(text.value.decode(errors="replace"))
        self.errno = -error


def _check(error: int) -> None:
    if error:
        raise Error(error)


def _number(device: Any) -> int:
    """The number of a device that is given in any of PyTorch's ways."""
    if isinstance(device, int):
        return device
    import torch  # pylint: disable=import-outside-toplevel
    index = torch.device(device).index if device is not None else None
    return torch.cuda.current_device() if index is None else index


def _nested(device: Any = None) -> dict[str, Any]:
    """The figures, in the form of torch.cuda.memory_stats_as_nested_dict()."""
    found = _Statistics()
    _check(_library.flexmem_cuda_statistics(_number(device), ctypes.byref(found), ctypes.c_size_t(ctypes.sizeof(found))))
    figures: dict[str, Any] = {}
    for name, *_ in _Statistics._fields_:
        value = getattr(found, name)
        if isinstance(value, ctypes.Array):
            figures[name] = {pool: {figure: getattr(value[i], figure) for figure in _FIGURES}
                             for i, pool in enumerate(_POOLS)}
        elif isinstance(value, _Figure):
            figures[name] = {figure: getattr(value, figure) for figure in _FIGURES}
        else:
            figures[name] = value
    if figures["max_split_size"] == (1 << 64) - 1:
        figures["max_split_size"] = -1
    return figures


def _flat(prefix: str, value: Any) -> dict[str, int]:
    if not isinstance(value, dict):
        return {prefix: value}
    return {key: figure for name, below in value.items()
            for key, figure in _flat(f"{prefix}.{name}" if prefix else name, below).items()}


def memory_stats(device: Any = None) -> dict[str, int]:
    """The figures, under the keys of torch.cuda.memory_stats()."""
    return _flat("", _nested(device))


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The figures as a table for people."""
    import torch  # pylint: disable=import-outside-toplevel
    return str(torch.cuda.memory_summary(device, abbreviated))


def reset_peak_memory_stats(device: Any = None) -> None:
    """Sets all peaks to the current figures."""
    _check(_library.flexmem_cuda_reset_peaks(_number(device)))


def driver_calls(device: Any = None) -> dict[str, int]:
    """How often and how long flexmem has called the driver of the GPU: struct flexmem_cuda_calls."""
    found = _Calls()
    _check(_library.flexmem_cuda_driver_calls(_number(device), ctypes.byref(found), ctypes.c_size_t(ctypes.sizeof(found))))
    return {name: getattr(found, name) for name, *_ in _Calls._fields_}


def snapshot(path: str, device: Any = None) -> None:
    """Writes segments, blocks and history to a file that PyTorch's viewer opens. set_setting() switches the history
    on."""
    text = ctypes.c_char_p()
    _check(_library.flexmem_cuda_snapshot(_number(device), ctypes.byref(text), None))
    try:
        content = json.loads(text.value or b"{}")
    finally:
        _library.flexmem_cuda_text_free(text)
    with open(path, "wb") as file:
        pickle.dump(content, file, protocol=4)


def set_setting(key: str, value: str, device: Any = None) -> None:
    """Changes a setting of the cache, such as history_entries."""
    _check(_library.flexmem_cuda_set_setting(_number(device), key.encode(), value.encode()))


def set_limit(limit: int, device: Any = None) -> None:
    """The number of bytes of the GPU that flexmem may use."""
    _check(_library.flexmem_cuda_set_limit(_number(device), ctypes.c_uint64(limit)))


def use(settings: str = "expandable_segments:True") -> None:
    """PyTorch allocates from flexmem from now on. `settings` count unless the environment has some."""
    import torch  # pylint: disable=import-outside-toplevel
    if not any(name in os.environ for name in _VARIABLES):
        os.environ["FLEXMEM_ALLOC_CONF"] = settings
    made = torch.cuda.memory.CUDAPluggableAllocator(_PATH, "flexmem_cuda_malloc", "flexmem_cuda_free")
    allocator = made.allocator()
    for setter, function in (
            ("set_reset_fn", "empty"), ("set_memory_fraction_fn", "set_memory_fraction"),
            ("set_record_stream_fn", "record_stream"), ("set_begin_allocate_to_pool", "torch_pool_begin"),
            ("set_end_allocate_to_pool_fn", "torch_pool_end"), ("set_release_pool", "torch_pool_release")):
        address = ctypes.cast(getattr(_library, f"flexmem_cuda_{function}"), ctypes.c_void_p).value
        getattr(allocator, setter)(address)
    torch.cuda.memory.change_current_allocator(made)
    # These two are all that PyTorch's functions of figures use. An allocator that is plugged in cannot provide them.
    torch.cuda.memory.memory_stats_as_nested_dict = _nested
    for module in (torch.cuda, torch.cuda.memory):
        module.reset_peak_memory_stats = reset_peak_memory_stats


def _main() -> None:
    if len(sys.argv) < 2:
        sys.exit("usage: python -m flexmem.cuda SCRIPT [ARGUMENT...]")
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    use()
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    _main()
