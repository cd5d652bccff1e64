"""The buffer in which a batch of stripes is read, computed, checked and written.

It has one row for each of the n shards and room for S frames in a row, one after another as in the file, so that one
system call moves S frames of a shard and one call of the checksum covers a frame. Rows start a little more than a
multiple of 4096 bytes apart: rows at such multiples would fall into the same sets of the processor's caches. Blocks are
64-byte aligned. A buffer is reused for every batch of a worker.
"""

import mmap
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from gfcode.engine.protocol import Blocks, Operator
from gfcode.pipeline.frame import COVER, FLAG_LAST, FORMAT_VERSION, HEADER, HEADER_BYTES, MAGIC
from gfcode.pipeline.layout import Geometry
from gfcode.pipeline.metadata import Metadata

__all__ = ["Batch", "batch_stripes"]

#: Bytes of a row: long enough that a system call costs little, short enough that a batch stays near the caches.
_ROW_BYTES = 512 * 1024
#: Bytes of all rows together, unless a single stripe is longer.
_BATCH_BYTES = 16 * 1024 * 1024
#: Most frames of a row; every frame has Python objects.
_MAX_FRAMES = 256
#: Rows start this much behind a multiple of 4096: 21 cache lines, so that 64 rows fall into different sets, and so that
#: the strips of 512 bytes that kernels take of each row at a time stay apart modulo a page.
_STAGGER = 1344
_HUGE_PAGE = 2 * 1024 * 1024
_WORDS = (HEADER_BYTES - COVER) // 8

_U64 = npt.NDArray[np.uint64]


def batch_stripes(geometry: Geometry, n: int, stripes: int | None) -> int:
    """Return the stripes of a batch.

    Parameters
    ----------
    geometry : Geometry
    n : int
        Rows of the batch.
    stripes : int or None
        Stripes of the set, where they are known: a batch has no more.
    """
    frame = geometry.frame_length
    most = max(1, min(_ROW_BYTES // frame, _BATCH_BYTES // (n * frame), _MAX_FRAMES))
    return most if stripes is None else min(most, stripes)


class Batch:
    """One reusable buffer of n rows × S frames.

    Parameters
    ----------
    metadata : Metadata
        The set whose frames the buffer holds.
    capacity : int
        S.

    Attributes
    ----------
    first, count : int
        The stripes that stand in the buffer, as `place` was told.
    last_data : int or None
        Data bytes of the set's last stripe where that is the last of the batch.
    rows : list of memoryview
        For each shard the bytes of its S frames.
    blocks : list of list of memoryview
        For each shard and slot the block.
    headers, hashes : ndarray
        Views of all headers, records of shape (n, S); and of their hashes, uint8 of shape (n, S, 16).
    expected : ndarray
        What the headers must say, apart from the hash; records of shape (n, S).
    """

    def __init__(self, metadata: Metadata, capacity: int) -> None:
        self.geometry = metadata.geometry
        self.capacity = capacity
        self.k, self.n = metadata.k, metadata.n
        self._digest = metadata.checksum.digest
        frame = self.geometry.frame_length
        # Sets of very many shards have short rows, of which whole pages would be mostly padding.
        unit = 4096 if capacity * frame >= 4096 else 64
        stride = -(-capacity * frame // unit) * unit + _STAGGER
        memory = mmap.mmap(-1, self.n * stride, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if self.n * stride >= 2 * _HUGE_PAGE:
            memory.madvise(mmap.MADV_HUGEPAGE)
        self.memory = np.frombuffer(memory, np.uint8)
        view = memoryview(memory)
        self.rows = [view[j * stride : j * stride + capacity * frame] for j in range(self.n)]
        starts = range(0, capacity * frame, frame)
        self.blocks = [[row[at + HEADER_BYTES : at + frame] for at in starts] for row in self.rows]
        self._covered = [[row[at + COVER : at + frame] for at in starts] for row in self.rows]
        shape, strides = (self.n, capacity), (stride, frame)
        self.headers = np.ndarray(shape, HEADER, memory, 0, strides)
        self.hashes = np.ndarray((*shape, 16), np.uint8, memory, 8, (*strides, 1))
        self.words: _U64 = np.ndarray((*shape, _WORDS), np.uint64, memory, COVER, (*strides, 8))
        base = self.memory.__array_interface__["data"][0] + HEADER_BYTES
        row_at = np.arange(self.n, dtype=np.int64) * stride
        self.table: _U64 = (row_at + np.arange(capacity, dtype=np.int64)[:, None] * frame + base).astype(np.uint64)
        self.expected = np.zeros(shape, HEADER)
        fixed = self.expected
        fixed["magic"] = MAGIC
        fixed["version"], fixed["hash_id"] = FORMAT_VERSION, metadata.checksum.number
        fixed["set"] = np.void(metadata.set_id)
        fixed["shard"] = np.arange(self.n, dtype=np.uint32)[:, None]
        fixed["k"], fixed["m"], fixed["w"] = metadata.k, metadata.m, metadata.w
        self.expected_words: _U64 = np.ndarray(
            (*shape, _WORDS), np.uint64, self.expected, COVER, (capacity * HEADER_BYTES, HEADER_BYTES, 8)
        )
        self._numbers = np.arange(capacity, dtype=np.uint64)
        self.first = self.count = 0
        self.last_data: int | None = None
        self.tail_block = self.geometry.block_length

    def place(self, first: int, count: int, last_data: int | None) -> None:
        """Say which stripes the buffer is to hold.

        Parameters
        ----------
        first, count : int
            Stripes first, ..., first + count - 1; count is at most the capacity.
        last_data : int or None
            Data bytes of the last of them, if it is the last of the set.
        """
        self.first, self.count, self.last_data = first, count, last_data
        block = self.geometry.block_length
        expected = self.expected[:, :count]
        expected["stripe"] = self._numbers[:count] + np.uint64(first)
        expected["flags"] = 0
        expected["block_length"], expected["data_length"] = block, self.geometry.stripe_data
        self.tail_block = block
        if last_data is not None:
            self.tail_block = self.geometry.block_for(last_data)
            tail = expected[:, -1]
            tail["flags"] = FLAG_LAST
            tail["block_length"], tail["data_length"] = self.tail_block, last_data

    @property
    def data_length(self) -> int:
        """Data bytes of the stripes in the buffer."""
        full = self.geometry.stripe_data
        return self.count * full if self.last_data is None else (self.count - 1) * full + self.last_data

    def block_length(self, slot: int) -> int:
        """Return the bytes of the blocks in a slot."""
        return self.tail_block if slot == self.count - 1 else self.geometry.block_length

    def row(self, shard: int, first: int = 0, end: int | None = None) -> memoryview:
        """Return the frames of one shard in slots first, ..., end - 1 (all by default) as they stand in its file."""
        end = self.count if end is None else end
        stop = (end - 1) * self.geometry.frame_length + HEADER_BYTES + self.block_length(end - 1)
        return self.rows[shard][first * self.geometry.frame_length : stop]

    def digests(self, shard: int, first: int = 0, end: int | None = None) -> bytes:
        """Return the hashes that one shard's frames should have, one after another; slots as for `row`."""
        end = self.count if end is None else end
        views = self._covered[shard][first:end]
        if end == self.count and self.tail_block != self.geometry.block_length:
            views[-1] = views[-1][: HEADER_BYTES - COVER + self.tail_block]
        return b"".join(map(self._digest, views))

    def stamp(self, shards: Iterable[int]) -> None:
        """Write the headers of these shards, hashes included; their blocks must be final."""
        count = self.count
        for shard in shards:
            self.headers["magic"][shard, :count] = MAGIC
            self.words[shard, :count] = self.expected_words[shard, :count]
            self.hashes[shard, :count] = np.frombuffer(self.digests(shard), np.uint8).reshape(count, 16)

    def apply(
        self, operator: Operator, inputs: Sequence[int], outputs: Sequence[int], slots: Sequence[int] | None = None
    ) -> None:
        """Run a product on the blocks of some shards in some slots (all by default)."""
        chosen = list(range(self.count)) if slots is None else list(slots)
        short = self.tail_block != self.geometry.block_length and self.count - 1 in chosen
        if short:
            chosen.remove(self.count - 1)
        for rows, length in ((chosen, self.geometry.block_length), ([self.count - 1] * short, self.tail_block)):
            if rows and length:
                table = self.table[rows]
                operator(
                    Blocks(table[:, list(inputs)], length, self.memory),
                    Blocks(table[:, list(outputs)], length, self.memory),
                )

    def data_views(self) -> list[memoryview]:
        """Return the blocks of the data shards in the order of the file, cut to its data."""
        k, count = self.k, self.count
        views = [self.blocks[j][slot] for slot in range(count) for j in range(k)]
        if self.last_data is None or self.last_data == self.geometry.stripe_data:
            return views
        del views[(count - 1) * k :]
        left, slot = self.last_data, count - 1
        for j in range(k):
            if left <= 0:
                break
            views.append(self.blocks[j][slot][: min(left, self.tail_block)])
            left -= self.tail_block
        return views

    def slack_views(self) -> list[tuple[int, memoryview]]:
        """Return the data shards that have slack in the last stripe, with that slack."""
        if self.last_data is None:
            return []
        slack = []
        for j in range(self.k):
            used = min(max(self.last_data - j * self.tail_block, 0), self.tail_block)
            if used < self.tail_block:
                slack.append((j, self.blocks[j][self.count - 1][used : self.tail_block]))
        return slack
