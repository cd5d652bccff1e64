"""Where the blocks that gfcode allocates lie: aligned for vector loads, staggered so that they do not alias."""

import math
from collections.abc import Callable, Sequence
from ctypes import addressof, c_char
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = ["ALIGNMENT", "STAGGER", "address_of", "addresses_of", "allocate", "place", "row_stride"]

#: Blocks start at multiples of this many bytes: a cache line, and the widest vector.
ALIGNMENT: Final = 64
#: Bytes by which the distance of neighbouring blocks is off a multiple of 512.
STAGGER: Final = 320
# Five lines beyond a multiple of eight: an odd number of lines, so that successive blocks visit every set of a 64-set
# cache, and no step of one to a few blocks comes back close to where it began.
_PERIOD: Final = 512
# Shorter blocks fill the sets evenly by lying side by side; padding would only spread them out.
_STAGGERED_FROM: Final = 1024
# Long blocks also keep the strips of 512 bytes that kernels take of each at a time apart, modulo a page: strips that
# share sets cost a fifth of the speed of a code with ten or more blocks.
_LONG_FROM: Final = 16 << 10
_LONG_STAGGER: Final = 2 * _PERIOD + STAGGER
_LONG_PERIOD: Final = 4096


_from_buffer: Final[Callable[[Any], c_char]] = c_char.from_buffer


def address_of(array: npt.NDArray[Any]) -> int:
    """Return the address of an array's first element."""
    try:  # a quarter of the time of the general way, where the array is contiguous and writable
        return addressof(_from_buffer(array))
    except (TypeError, ValueError, BufferError):
        address: int = array.__array_interface__["data"][0]
        return address


def addresses_of(arrays: Sequence[npt.NDArray[Any]]) -> list[int]:
    """Return the address of the first element of each array."""
    try:
        return [addressof(_from_buffer(array)) for array in arrays]
    except (TypeError, ValueError, BufferError):
        return [address_of(array) for array in arrays]


def row_stride(length: int) -> int:
    """Bytes from one block of `length` bytes to the next: a multiple of 64, never near a power of two if long."""
    if length < _STAGGERED_FROM:
        return -(-length // ALIGNMENT) * ALIGNMENT
    if length < _LONG_FROM:
        return length + (STAGGER - length) % _PERIOD
    return length + (_LONG_STAGGER - length) % _LONG_PERIOD


def allocate(*shape: int) -> npt.NDArray[np.uint8]:
    """Make an uninitialised array of blocks, each 64-byte aligned and at a staggered distance from the next.

    Parameters
    ----------
    *shape : int
        The last is the length of a block in bytes; the ones before count blocks, e.g. (stripes, k, length).

    Returns
    -------
    ndarray of uint8
        Of that shape. The bytes of a block are contiguous; blocks are padded apart, so that the array as a whole need
        not be.
    """
    return place(*shape)[0]


def place(*shape: int) -> tuple[npt.NDArray[np.uint8], int]:
    """Do what `allocate` does, and return the address of the first block too."""
    length = shape[-1]
    stride = row_stride(length)
    total = math.prod(shape[:-1]) * stride
    if not total:
        return np.empty(shape, np.uint8), 0
    memory = np.empty(total + ALIGNMENT, np.uint8)
    if len(shape) == 2:
        strides: tuple[int, ...] = (stride, 1)
    else:
        strides = (1,)
        for count in reversed(shape[:-1]):
            strides = (stride, *strides)
            stride *= count
    address = addressof(_from_buffer(memory))
    offset = -address % ALIGNMENT
    return np.ndarray(shape, np.uint8, memory, offset, strides), address + offset
