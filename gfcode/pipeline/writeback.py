"""Early write-back: the device is at work while the rest is read and computed, and a flush at the end finds little."""

from functools import cache
from typing import Any

__all__ = ["start_write_back"]

#: Begin to write dirty pages, and wait for nothing.
_WRITE = 2
#: What is shorter is not worth a call of its own.
_LEAST = 256 * 1024


@cache
def _sync_file_range() -> Any:
    """Return Linux's function of that name; None where there is none."""
    import ctypes

    function = getattr(ctypes.CDLL(None), "sync_file_range", None)
    if function is not None:
        function.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    return function


def start_write_back(fd: int, offset: int, length: int) -> None:
    """Let the device begin with bytes that were just written.

    It is a hint: whether they arrive is asked of the flush that follows, which reports what went wrong here too.
    """
    function = _sync_file_range()
    if function is not None and length >= _LEAST:
        function(fd, offset, length, _WRITE)
