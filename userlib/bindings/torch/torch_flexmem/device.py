# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""The devices, their streams and their events.

Each device has one stream. Operators run on the thread that calls them, so all work on a stream is always done, and
every event has happened. A thread has a current device, as with torch.cuda.
"""

import torch

_ops = torch.ops.flexmem


def is_available():
    """Whether there is a device that this process can open."""
    return _ops.is_available()


def is_initialized():
    """Whether a device has been opened."""
    return _ops.is_initialized()


def init():
    """Opens the current device. Without this call the first allocation on a device opens it."""
    _ops.init(-1)


def _is_in_bad_fork():
    return _ops.is_in_bad_fork()


def device_count():
    """The number of functions that this process sees and can open; with FLEX_DEVICE one."""
    return _ops.device_count()


def current_device():
    return _ops.device_index(-1)


def _index(device):
    """Returns the index of a device; of None, and of a device without index, that of the current one."""
    if device is None:
        index = -1
    elif isinstance(device, int):
        index = device
    else:
        device = torch.device(device)
        if device.type != "flexmem":
            raise ValueError(f"Expected a flexmem device, but got: {device}")
        index = -1 if device.index is None else device.index
    return _ops.device_index(index)


def set_device(device):
    _ops.exchange_device(_index(device))


def synchronize(device=None):
    _index(device)


def get_device_name(device=None):
    """Returns the path of the device's node, or "host memory"."""
    return _ops.device_name(_index(device))


def get_amp_supported_dtype():
    return [torch.bfloat16, torch.float16]


def is_bf16_supported():
    return True


class device:  # noqa: N801, torch.cuda has this name
    """Context manager that selects a device, as torch.cuda.device."""

    def __init__(self, device):
        self.idx = _index(device)

    def __enter__(self):
        self.prev_idx = _ops.exchange_device(self.idx)
        return self

    def __exit__(self, *_exception):
        _ops.exchange_device(self.prev_idx)
        return False


class Stream(torch.Stream):
    """The only stream of a device."""

    def __new__(cls, device=None, priority=0, **kwargs):
        return super().__new__(cls, device=f"flexmem:{_index(device)}", priority=priority, **kwargs)


def current_stream(device=None):
    return Stream(device)


default_stream = current_stream


class stream:  # noqa: N801, torch.cuda has this name
    """Context manager that selects a stream and its device, as torch.cuda.stream."""

    def __init__(self, stream):
        self.stream = stream
        self._device = device(None if stream is None else stream.device)

    def __enter__(self):
        self._device.__enter__()
        return self.stream

    def __exit__(self, *exception):
        return self._device.__exit__(*exception)


# Not a subclass of torch.Event: elapsed_time() of PyTorch 2.14 refuses
# subclasses.
def Event(enable_timing=False, blocking=False, interprocess=False):  # noqa: N802, torch.cuda has this name
    """Returns a torch.Event, a moment on the stream. It has happened as soon as it is recorded."""
    return torch.Event("flexmem", enable_timing=enable_timing, blocking=blocking, interprocess=interprocess)
