"""From data of any length to the blocks of stripes, and back."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from gfcode.codec.arguments import BlockLike, BlocksLike, Bytes, array_of, arrays_of, check_length, integer_of, rows_of
from gfcode.errors import BlockError

__all__ = ["join_blocks", "split_data"]


def split_data(data: BlockLike, k: int, multiple: int, block: int | None, out: BlocksLike | None) -> Any:
    """Do what `Codec.split` says."""
    source = array_of(data, "the data")
    if source.ndim != 1:
        raise BlockError(f"the data has shape {source.shape}; give it as one row of bytes")
    if not source.size:
        raise BlockError("there is no data to split: at least one byte is needed")
    if out is not None:
        if block is not None:
            raise BlockError("give block or out, not both: out has blocks of its own length")
        _fill(source, k, out)
        return out
    if block is None:
        length = -(-source.size // (k * multiple)) * multiple
        return [_block(source, j * length, length) for j in range(k)]
    length = integer_of("block", block)
    if length <= 0:
        raise BlockError(f"blocks must have at least one byte, not {length}")
    check_length(length, multiple)
    stripes = -(-source.size // (k * length))
    if source.size == stripes * k * length:
        return source.reshape(stripes, k, length)
    copied = np.zeros((stripes, k, length), np.uint8)
    copied.reshape(-1)[: source.size] = source
    return copied


def _block(source: Bytes, start: int, length: int) -> Bytes:
    part = source[start : start + length]
    if part.size == length:
        return part
    padded = np.zeros(length, np.uint8)
    padded[: part.size] = part
    return padded


def _rows(blocks: BlocksLike, k: int, what: str, *, writable: bool = False) -> list[Bytes]:
    """Blocks as arrays of shape (stripes, length)."""
    arrays = arrays_of(rows_of(blocks, k, what), lambda i: f"block {i} of {what}", writable=writable)
    return [np.atleast_2d(array) for array in arrays]


def _fill(source: Bytes, k: int, out: BlocksLike) -> None:
    rows = _rows(out, k, "out", writable=True)
    stripes, length = rows[0].shape
    room = stripes * k * length
    if source.size > room:
        raise BlockError(f"out has room for {room} bytes, and the data has {source.size}")
    for j, row in enumerate(rows):
        if np.may_share_memory(row, source) and np.shares_memory(row, source):
            raise BlockError(f"block {j} of out overlaps the data; give memory of its own")
    for stripe in range(stripes):
        for j, row in enumerate(rows):
            start = (stripe * k + j) * length
            part = source[start : start + length]
            row[stripe, : part.size] = part
            row[stripe, part.size :] = 0


def join_blocks(blocks: BlocksLike | Mapping[int, BlockLike], k: int, size: int, out: BlockLike | None) -> Any:
    """Do what `Codec.join` says."""
    if isinstance(blocks, Mapping):
        lost = [shard for shard in range(k) if shard not in blocks]
        if lost:
            raise BlockError(f"shard {lost[0]} is not given: all data shards are needed; decode makes the lost ones")
        blocks = [blocks[shard] for shard in range(k)]
    rows = _rows(blocks, k, "the blocks")
    stripes, length = rows[0].shape
    size = integer_of("size", size)
    if not 0 <= size <= stripes * k * length:
        raise BlockError(f"the blocks hold {stripes * k * length} bytes, not {size}")
    views: list[Bytes] = []
    left = size
    for stripe in range(stripes):
        for row in rows:
            if left <= 0:
                break
            views.append(row[stripe, : min(left, length)])
            left -= length
    if out is None:
        return b"".join(view.data for view in views)
    target = array_of(out, "out", writable=True)
    if target.shape != (size,):
        raise BlockError(f"out has shape {target.shape}, not ({size},)")
    for j, row in enumerate(rows):
        if np.may_share_memory(row, target) and np.shares_memory(row, target):
            raise BlockError(f"out overlaps block {j}; give memory of its own")
    at = 0
    for view in views:
        target[at : at + view.size] = view
        at += view.size
    return out
