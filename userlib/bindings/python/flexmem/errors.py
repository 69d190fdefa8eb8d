# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Errors, and objects that own something of the library."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from ._native import ffi, lib
from .structs import Failure, from_c

S = TypeVar("S", bound="Owner")
TEXT = 1024


class Error(OSError):
    """An error of the library or the driver: `errno`, and the reason in words as `strerror`."""


class OutOfMemory(Error, MemoryError):
    """Raised if there is no device memory. `failure` has the figures."""

    failure: Failure


def _failed(error: int, reply: Any) -> Error:
    failure = reply.failure if reply else None
    text = ffi.new("char[]", TEXT)
    arguments = (ffi.addressof(failure), ffi.sizeof(failure)) if reply else (ffi.NULL, 0)
    # The failure of a cache contains the failure of the device.
    cached = reply and ffi.typeof(failure) is ffi.typeof("struct flexmem_cache_failure")
    (lib.flexmem_cache_error_text if cached else lib.flexmem_error_text)(error, *arguments, text, TEXT)
    words = ffi.string(text).decode()
    if not reply or error != -errno.ENOMEM:
        return Error(-error, words)
    made = OutOfMemory(-error, words)
    made.failure = from_c(Failure, failure.device if cached else failure)
    return made


def check(error: int, reply: Any = None) -> None:
    """Raises an exception if a call has returned an error. @reply: the allocation that the call has filled, with the
    details of the failure."""
    if error < 0:
        raise _failed(error, reply)


def owned(pointer: Any, free: Callable[[Any], object], getpid: Callable[[], int] = os.getpid) -> Any:
    """Returns a pointer that is freed when no object uses it any more. A child that was forked does not free it."""
    process = getpid()
    return ffi.gc(pointer, lambda last: free(last) if getpid() == process else None)


class Owner:
    """An object that owns something until it is closed: a context manager."""

    _pointer: Any = None
    # The object that this one belongs to.
    _below: Any = None

    def _use(self) -> Any:
        if self._pointer is None:
            raise ValueError(f"this {type(self).__name__.lower()} is closed")
        return self._pointer

    def close(self) -> None:
        """Closes the object. What the object owns is freed when no other object uses it. A second close does nothing.
        """
        self._pointer = self._below = None

    def __enter__(self: S) -> S:
        self._use()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
