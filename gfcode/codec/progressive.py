"""Parity that accumulates: data shards arrive one by one, and none has to be kept."""

import threading
from collections.abc import Callable
from typing import Any

from gfcode.codec.arguments import (
    BlockLike,
    BlocksLike,
    Bytes,
    array_of,
    check_indices,
    check_length,
    count_of,
    join,
    outputs_of,
    refuse_overlap,
)
from gfcode.codec.spans import accumulate
from gfcode.engine.buffers import allocate
from gfcode.engine.protocol import Operator
from gfcode.errors import BlockError, ParameterError

__all__ = ["ProgressiveEncoder"]


class ProgressiveEncoder:
    """The parity of the data shards that have been added so far; `Codec.progressive` makes it.

    Each data shard is added once, in any order, from any thread; the block may be reused when `add` returns. A shard
    that is never added counts as zeros, which is what the parity of a shortened code is.

    Attributes
    ----------
    parity : ndarray of uint8, shape (m, length) or (stripes, m, length), or what was given as `out`
        What has accumulated. It is the parity of the code once nothing is missing.
    missing : tuple of int
        Data shards that have not been added.
    """

    def __init__(
        self, k: int, m: int, multiple: int, patch: Callable[[tuple[int, ...], int, int], Operator], length: int,
        stripes: int | None, out: BlocksLike | None,
    ) -> None:  # fmt: skip
        length = count_of("length", length)
        stripes = None if stripes is None else count_of("stripes", stripes)
        check_length(length, multiple)
        self._k, self._m, self._multiple, self._patch = k, m, multiple, patch
        self._shape = (length,) if stripes is None else (stripes, length)
        self.parity: Any
        if out is None:
            self.parity = allocate(*self._shape[:-1], m, length)
            self._rows: list[Bytes] = [self.parity[..., i, :] for i in range(m)]
        else:
            self.parity = out
            self._rows = outputs_of(out, m, self._shape)
            if m:
                refuse_overlap(join(self._rows).select(()), join(self._rows))
        for row in self._rows:
            row[...] = 0
        self._missing = set(range(k))
        self._lock = threading.Lock()

    @property
    def missing(self) -> tuple[int, ...]:
        """Data shards that have not been added."""
        return tuple(sorted(self._missing))

    def add(self, index: int, block: BlockLike) -> None:
        """Add a data shard.

        Parameters
        ----------
        index : int
            0 .. k − 1.
        block : block of shape (length,) or (stripes, length)
            Read, never written; must not overlap the parity.

        Raises
        ------
        ParameterError
            For an index that is no data shard, or was added before.
        BlockError
        """
        (index,) = check_indices([index], self._k)
        data = array_of(block, f"shard {index}")
        if data.shape != self._shape:
            raise BlockError(f"shard {index} has shape {data.shape}, the parity's blocks {self._shape}")
        with self._lock:
            if index not in self._missing:
                raise ParameterError(f"shard {index} was added before; each data shard counts once")
            if self._m and data.size:
                refuse_overlap(join([data]), join(self._rows))
                accumulate(self._rows, self._patch(tuple(range(self._m)), index, 1), [data], self._multiple)
            self._missing.discard(index)

    def __repr__(self) -> str:
        return f"<parity of {self._k - len(self._missing)} of {self._k} data shards>"
