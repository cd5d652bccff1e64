"""Short ways for what most callers pass: one stripe, whole blocks, of one kind. They take no NumPy calls per block.

Each function returns None where it does not know the case at hand, right or wrong; the general way, which knows all
cases and names what is wrong, is taken then. So nothing is refused here.
"""

import sys
from array import array
from collections.abc import Collection
from ctypes import addressof, c_char, c_char_p, c_uint64, c_void_p, memmove
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

import numpy as np

from gfcode.codec.arguments import Bytes
from gfcode.engine.buffers import ALIGNMENT, address_of, row_stride
from gfcode.engine.protocol import Blocks

__all__ = [
    "apart",
    "are_integers",
    "blocks_at",
    "new_block",
    "new_stripe",
    "select",
    "stripe_of",
    "uniform_length",
    "write_row",
]

_BYTE: Final = np.dtype(np.uint8)
_INT: Final = {int}
_dtype_of: Final = attrgetter("dtype")
_strides_of: Final = attrgetter("strides")
_from_buffer: Final[Any] = c_char.from_buffer
#: Tables of addresses that are kept: callers use the same memory again and again, and so do allocators.
_TABLES: Final = 512


@lru_cache(_TABLES)
def _table(start: int, stop: int, stride: int) -> tuple["array[int]", int]:
    """Return the addresses of blocks in a row, and where they are. Never written."""
    table = array("Q", range(start, stop, stride))
    return table, table.buffer_info()[0]


#: All memory of a process as 64-bit words: number n is at address 8 · (n + 1).
_word: Final = memoryview((c_uint64 * (1 << 44)).from_address(8)).cast("B").cast("Q")
#: Which word is an object's first own field, counted from its address. NumPy's arrays begin with the pointer to their
#: data there, and CPython's `bytes` are in the object itself: extensions are compiled against both.
_DATA: Final = object.__basicsize__ // 8 - 1
_CONTENT: Final = bytes.__basicsize__ - 1


def _layouts_hold() -> bool:
    """Whether both are so in this interpreter, by what it says itself of some objects."""
    for size in (1, 7, 64, 70000):
        sample = bytes(size)
        if id(sample) + _CONTENT != c_void_p.from_buffer(c_char_p(sample)).value:
            return False
        for view in (np.empty(size, np.uint8), np.frombuffer(sample, np.uint8), np.empty((size, 3), np.uint8)[1:]):
            if _word[(id(view) >> 3) + _DATA] != view.__array_interface__["data"][0]:
                return False
    return True


_QUICK: Final = sys.implementation.name == "cpython" and sys.maxsize > 1 << 32 and _layouts_hold()


def _address(data: Bytes) -> int:
    """Return the address of an array's first element."""
    return _word[(id(data) >> 3) + _DATA] if _QUICK else address_of(data)


def stripe_of(data: Bytes, count: int, multiple: int, *, writable: bool = False) -> tuple[Blocks, int, int] | None:
    """Blocks of one stripe that lie in an array of shape (count, length).

    Returns
    -------
    blocks : Blocks
    start, stop : int
        Addresses of the first byte and behind the last. Blocks do not overlap each other.
    """
    if data.dtype is not _BYTE or data.ndim != 2 or (writable and not data.flags.writeable):
        return None
    rows, length = data.shape
    stride, step = data.strides
    if rows != count or not rows or not length or length % multiple or step != 1 or stride < length:
        return None
    start = _address(data)
    stop = start + rows * stride
    table, address = _table(start, stop, stride)
    return Blocks.of_native(table, address, rows, length, data), start, stop


def apart(inputs: tuple[Blocks, int, int], outputs: tuple[Blocks, int, int]) -> bool:
    """Whether two stripes are of one length and in different regions of memory."""
    return inputs[0].length == outputs[0].length and (inputs[2] <= outputs[1] or outputs[2] <= inputs[1])


def new_stripe(count: int, length: int) -> tuple[Bytes, Blocks]:
    """Make what `Blocks.allocate` makes, of at least one block and byte."""
    stride = row_stride(length)
    memory = np.empty(count * stride + ALIGNMENT, np.uint8)
    address = _address(memory)
    offset = -address % ALIGNMENT
    address += offset
    table, at = _table(address, address + count * stride, stride)
    made: Bytes = np.ndarray((count, length), np.uint8, memory, offset, (stride, 1))
    return made, Blocks.of_native(table, at, count, length, memory)


def new_block(length: int) -> tuple[Bytes, Blocks]:
    """Make one block, an array of shape (length,), aligned as those of `new_stripe` are."""
    memory = np.empty(length + ALIGNMENT, np.uint8)
    address = _address(memory)
    offset = -address % ALIGNMENT
    address += offset
    table, at = _table(address, address + 1, 1)
    return memory[offset : offset + length], Blocks.of_native(table, at, 1, length, memory)


def select(blocks: Blocks, columns: tuple[int, ...]) -> Blocks:
    """Return some of the blocks that `new_stripe` made."""
    table = array("Q", [blocks.native[column] for column in columns])
    return Blocks.of_native(table, table.buffer_info()[0], len(columns), blocks.length, blocks.owners)


def are_integers(indices: tuple[Any, ...]) -> bool:
    """Whether these are one or more plain integers."""
    if len(indices) == 1:
        return type(indices[0]) is int
    return set(map(type, indices)) == _INT


def uniform_length(blocks: Collection[Any], multiple: int) -> int | None:
    """Length of one or more blocks, if they are of one length and kind: `bytes`, `bytearray`, or a row of uint8."""
    if not _QUICK:
        return None
    count = len(blocks)
    # Counting what is alike takes half the time of a loop.
    kinds = list(map(type, blocks))
    kind = kinds[0]
    if kinds.count(kind) != count:
        return None
    if kind is np.ndarray:
        if list(map(_dtype_of, blocks)).count(_BYTE) != count or list(map(_strides_of, blocks)).count((1,)) != count:
            return None
    elif kind is not bytes and kind is not bytearray:
        return None
    lengths = list(map(len, blocks))
    length = lengths[0]
    return length if length and not length % multiple and lengths.count(length) == count else None


def blocks_at(blocks: list[Any], length: int) -> Blocks:
    """Blocks that `uniform_length` knows, as one stripe."""
    kind = type(blocks[0])
    if kind is bytes:
        addresses = [id(block) + _CONTENT for block in blocks]
    elif kind is bytearray:
        addresses = [addressof(_from_buffer(block)) for block in blocks]
    else:
        addresses = [_word[(id(block) >> 3) + _DATA] for block in blocks]
    table = array("Q", addresses)
    return Blocks.of_native(table, table.buffer_info()[0], len(blocks), length, blocks)


def write_row(made: Bytes, row: int, address: int, block: Any, length: int) -> None:
    """Copy a block that `uniform_length` knows into a row of an array, which lies at `address`."""
    if type(block) is bytes:
        memmove(address, block, length)
    elif type(block) is bytearray:
        made[row] = np.frombuffer(block, np.uint8)
    else:
        made[row] = block
