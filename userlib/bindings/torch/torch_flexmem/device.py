# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""The device, its stream and its events.

There is one device with one stream. Operators run on the thread that calls them, so all work on the stream is always
done, and every event has happened.
"""

import torch

_ops = torch.ops.flexmem


def is_available():
    """Whether there is a device that this process can open."""
    return _ops.is_available()


def is_initialized():
    """Whether the device has been opened."""
    return _ops.is_initialized()


def init():
    """Opens the device. Without this call the first allocation opens it."""
    _ops.init()


def _is_in_bad_fork():
    return _ops.is_in_bad_fork()


def device_count():
    return 1 if is_available() else 0


def current_device():
    return 0


def _index(device):
    if device is None:
        return 0
    if isinstance(device, int):
        index = device
    else:
        device = torch.device(device)
        if device.type != "flexmem":
            raise ValueError(f"Expected a flexmem device, but got: {device}")
        index = device.index or 0
    if index not in (0, -1):
        raise RuntimeError(f"flexmem: there is no device {index}")
    return 0


def set_device(device):
    _index(device)


def synchronize(device=None):
    _index(device)


def get_device_name(device=None):
    """Returns the path of the device's node, or "host memory"."""
    _index(device)
    return _ops.device_name()


def get_amp_supported_dtype():
    return [torch.bfloat16, torch.float16]


def is_bf16_supported():
    return True


class device:  # noqa: N801, torch.cuda has this name
    """Context manager that selects a device, as torch.cuda.device."""

    def __init__(self, device):
        self.idx = _index(device)

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        return False


class Stream(torch.Stream):
    """The only stream of the device."""

    def __new__(cls, device=None, priority=0, **kwargs):
        _index(device)
        return super().__new__(cls, device="flexmem", priority=priority, **kwargs)


def current_stream(device=None):
    return Stream(device)


default_stream = current_stream


class stream:  # noqa: N801, torch.cuda has this name
    """Context manager that selects a stream, as torch.cuda.stream."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        return self.stream

    def __exit__(self, *_exception):
        return False


# Not a subclass of torch.Event: elapsed_time() of PyTorch 2.14 refuses
# subclasses.
def Event(enable_timing=False, blocking=False, interprocess=False):  # noqa: N802, torch.cuda has this name
    """Returns a torch.Event, a moment on the stream. It has happened as soon as it is recorded."""
    return torch.Event("flexmem", enable_timing=enable_timing, blocking=blocking, interprocess=interprocess)
