"""Short ways for what most callers pass: one stripe, whole blocks, of one kind. They take no NumPy calls per block.

Each function returns None where it does not know the case at hand, right or wrong; the general way, which knows all
cases and names what is wrong, is taken then. So nothing is refused here.
"""

from array import array
from collections.abc import Mapping
from ctypes import Array, addressof, c_char, c_char_p, memmove
from functools import lru_cache
from typing import Any, Final

import numpy as np

from gfcode.codec.arguments import Bytes
from gfcode.engine.buffers import ALIGNMENT, address_of, row_stride
from gfcode.engine.protocol import Blocks

__all__ = [
    "addresses_in",
    "apart",
    "is_shard_choice",
    "new_block",
    "new_stripe",
    "select",
    "sources",
    "stripe_of",
    "uniform_length",
    "write_row",
]

_BYTE: Final = np.dtype(np.uint8)
_INT: Final = {int}
_BYTES: Final = {bytes}
_ARRAYS: Final = {np.ndarray}
_from_buffer: Final[Any] = c_char.from_buffer


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
    start = address_of(data[0])
    stop = start + rows * stride
    table = array("Q", range(start, stop, stride))
    return Blocks.of_native(table, table.buffer_info()[0], rows, length, data), start, stop


def apart(inputs: tuple[Blocks, int, int], outputs: tuple[Blocks, int, int]) -> bool:
    """Whether two stripes are of one length and in different regions of memory."""
    return inputs[0].length == outputs[0].length and (inputs[2] <= outputs[1] or outputs[2] <= inputs[1])


def new_stripe(count: int, length: int) -> tuple[Bytes, Blocks]:
    """Make what `Blocks.allocate` makes, of at least one block and byte."""
    stride = row_stride(length)
    memory = np.empty(count * stride + ALIGNMENT, np.uint8)
    address = addressof(_from_buffer(memory))
    offset = -address % ALIGNMENT
    address += offset
    table = array("Q", range(address, address + count * stride, stride))
    made: Bytes = np.ndarray((count, length), np.uint8, memory, offset, (stride, 1))
    return made, Blocks.of_native(table, table.buffer_info()[0], count, length, memory)


def new_block(length: int) -> tuple[Bytes, Blocks]:
    """Make one block, an array of shape (length,), aligned as those of `new_stripe` are."""
    memory = np.empty(length + ALIGNMENT, np.uint8)
    address = addressof(_from_buffer(memory))
    offset = -address % ALIGNMENT
    table = array("Q", (address + offset,))
    return memory[offset : offset + length], Blocks.of_native(table, table.buffer_info()[0], 1, length, memory)


def addresses_in(blocks: Blocks) -> Any:
    """Addresses of the blocks that `new_stripe` or `new_block` made."""
    return blocks.native


def select(blocks: Blocks, columns: tuple[int, ...]) -> Blocks:
    """Return some of the blocks that `new_stripe` made."""
    table = array("Q", [blocks.native[column] for column in columns])
    return Blocks.of_native(table, table.buffer_info()[0], len(columns), blocks.length, blocks.owners)


def is_shard_choice(indices: tuple[Any, ...], n: int) -> bool:
    """Whether these are one or more plain integers in 0 .. n − 1; they may come twice."""
    return set(map(type, indices)) == _INT and min(indices) >= 0 and max(indices) < n


def uniform_length(shards: Mapping[int, Any], multiple: int) -> int | None:
    """Length of blocks that are all `bytes`, or all arrays of uint8 of shape (length,), and of one length."""
    blocks = shards.values()
    kinds = set(map(type, blocks))
    if kinds == _ARRAYS:
        for block in blocks:
            if block.dtype is not _BYTE or block.ndim != 1:
                return None
    elif kinds != _BYTES:
        return None
    lengths = set(map(len, blocks))
    length = lengths.pop()
    return length if length and not lengths and not length % multiple else None


@lru_cache(64)
def _pointers(count: int) -> type[Array[c_char_p]]:
    return c_char_p * count


def sources(shards: Mapping[int, Any], order: tuple[int, ...], length: int) -> Blocks | None:
    """Blocks of some of the shards that `uniform_length` knows; None for what only NumPy can find the address of."""
    blocks = [shards[shard] for shard in order]
    if type(blocks[0]) is bytes:
        # Converting to char * gives the address of the bytes themselves, and keeps a reference to each.
        pointers = _pointers(len(blocks))(*blocks)
        return Blocks.of_native(pointers, addressof(pointers), len(blocks), length, pointers)
    try:
        # Refuses arrays that are read-only or not contiguous.
        table = array("Q", [addressof(_from_buffer(block)) for block in blocks])
    except (TypeError, ValueError, BufferError):
        return None
    return Blocks.of_native(table, table.buffer_info()[0], len(blocks), length, blocks)


def write_row(made: Bytes, row: int, address: int, block: Any, length: int) -> None:
    """Copy a block that `uniform_length` knows into a row of an array, which lies at `address`."""
    if type(block) is bytes:
        memmove(address, block, length)
    else:
        made[row] = block
