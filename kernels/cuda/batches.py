"""Work cut to fit the memory that there is: batches of stripes, or of parts of one stripe."""

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from gfcode.errors import DeviceMemoryError

__all__ = ["PITCH", "Batch", "cut", "round_up", "stride_of", "take"]

_Taken = TypeVar("_Taken")

#: Rows of a batch start at multiples of this, so that kernels find them aligned.
PITCH = 256


class Batch(NamedTuple):
    """Stripes [start, start + stripes) of blocks, bytes [offset, offset + length) of each."""

    start: int
    stripes: int
    offset: int
    length: int

    @property
    def pitch(self) -> int:
        """Bytes from row to row in a buffer of the batch."""
        return round_up(self.length, PITCH)


def round_up(value: int, multiple: int) -> int:
    """Return the least multiple that is no less than a value."""
    return -(-value // multiple) * multiple


def cut(rows: int, stripes: int, length: int, size: int, quantum: int) -> Iterator[Batch]:
    """Cut work into batches that fit `size` bytes: whole stripes if one fits, else parts of one stripe.

    Parameters
    ----------
    rows : int
        Blocks of a stripe that a batch holds.
    stripes, length : int
        Of the work.
    size : int
    quantum : int
        Bytes that a part of a block is a multiple of.
    """
    stripe = rows * round_up(length, PITCH)
    if stripe <= size:
        step = size // stripe
        for start in range(0, stripes, step):
            yield Batch(start, min(step, stripes - start), 0, length)
        return
    part = max(quantum, size // rows // quantum * quantum)
    for start in range(stripes):
        for offset in range(0, length, part):
            yield Batch(start, 1, offset, min(part, length - offset))


def take(allocate: Callable[[int], _Taken], size: int, smallest: int, needed: int = 1) -> tuple[_Taken, int]:
    """Take memory for batches: of `size` bytes, or of half as many, and so on, down to `smallest`.

    Parameters
    ----------
    allocate : callable
        Takes the bytes of a batch.
    size, smallest : int
    needed : int
        Batches that are allocated, for the message.

    Returns
    -------
    object
        What was allocated.
    int
        Bytes of a batch.

    Raises
    ------
    DeviceMemoryError
        If not even the smallest finds room.
    """
    asked = size
    while True:
        try:
            return allocate(size), size
        except DeviceMemoryError as error:
            if size == smallest:
                raise DeviceMemoryError(
                    f"the GPU has no room for batches, neither of {asked} bytes nor of {smallest}, of which "
                    f"{needed} {'is' if needed == 1 else 'are'} needed; free memory on it or use another engine"
                ) from error
            size = max(smallest, size // 2)


def stride_of(addresses: npt.NDArray[np.int64], length: int) -> int | None:
    """Return the distance at which blocks lie, if it is one and they do not overlap; None otherwise."""
    steps = np.diff(addresses)
    if not steps.size:
        return length
    return int(steps[0]) if steps[0] >= length and (steps == steps[0]).all() else None
