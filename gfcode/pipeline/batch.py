"""The buffer in which a batch of stripes is read, computed, checked and written.

It has one row for each of the n shards and room for S frames in a row, one after another as in the file, so that one
system call moves S frames of a shard and one call of the checksum covers a frame. Rows start a little more than a
multiple of 4096 bytes apart: rows at such multiples would fall into the same sets of the processor's caches. Blocks are
64-byte aligned. A buffer is reused for every batch of a worker.

NumPy is imported when the first product is computed: checking and copying sound frames does without.
"""

import mmap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gfcode.pipeline.frame import COVER, FLAG_LAST, HEADER_BYTES, MAGIC_BYTES, FrameHeader
from gfcode.pipeline.layout import Geometry
from gfcode.pipeline.metadata import Metadata

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from gfcode.engine.protocol import Operator

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
#: Offsets in a header of the numbers of shard (4 bytes) and stripe (8 bytes).
_SHARD, _STRIPE = 48, 64


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
    single : bool
        Whether all shards share one row, for who looks at one shard after another: that row stays in the cache.

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
    """

    def __init__(self, metadata: Metadata, capacity: int, *, single: bool = False) -> None:
        self.geometry = metadata.geometry
        self.capacity = capacity
        self.k, self.n = metadata.k, metadata.n
        self._metadata = metadata
        self._digest = metadata.checksum.digest
        frame = self.geometry.frame_length
        # Sets of very many shards have short rows, of which whole pages would be mostly padding.
        unit = 4096 if capacity * frame >= 4096 else 64
        self._stride = -(-capacity * frame // unit) * unit + _STAGGER
        count = 1 if single else self.n
        self._memory = mmap.mmap(-1, count * self._stride, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if count * self._stride >= 2 * _HUGE_PAGE:
            self._memory.madvise(mmap.MADV_HUGEPAGE)
        view = memoryview(self._memory)
        rows = [view[at : at + capacity * frame] for at in range(0, count * self._stride, self._stride)]
        starts = range(0, capacity * frame, frame)
        repeats = self.n // count
        self.rows = rows * repeats
        self._heads = [[row[at : at + HEADER_BYTES] for at in starts] for row in rows] * repeats
        self._covered = [[row[at + COVER : at + frame] for at in starts] for row in rows] * repeats
        self.blocks = [[row[at + HEADER_BYTES : at + frame] for at in starts] for row in rows] * repeats
        self._fixed: dict[bool, bytes] = {}
        self._table: npt.NDArray[np.uint64] | None = None
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
        self.tail_block = self.geometry.block_length
        if last_data is not None:
            self.tail_block = self.geometry.block_for(last_data)
            self._fixed.pop(True, None)

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

    def digests(self, shard: int, first: int = 0, end: int | None = None) -> list[bytes]:
        """Return the hashes that one shard's frames should have; slots as for `row`."""
        end = self.count if end is None else end
        views = self._covered[shard][first:end]
        if end == self.count and self.tail_block != self.geometry.block_length:
            views[-1] = views[-1][: HEADER_BYTES - COVER + self.tail_block]
        return list(map(self._digest, views))

    def headers(self, shard: int, first: int = 0, end: int | None = None) -> list[bytes]:
        """Return what the headers of one shard's frames should say behind the hash; slots as for `row`."""
        end = self.count if end is None else end
        stripes = range(self.first + first, self.first + end)
        if end < self.count or self.last_data is None:
            return self._headers(shard, stripes, last=False)
        return self._headers(shard, stripes[:-1], last=False) + self._headers(shard, stripes[-1:], last=True)

    def is_sound(self, shard: int, first: int = 0, end: int | None = None) -> bool:
        """Return whether one shard's frames are exactly what they should be, slack included; slots as for `row`."""
        end = self.count if end is None else end
        parts: list[bytes] = []
        for digest, header in zip(self.digests(shard, first, end), self.headers(shard, first, end), strict=True):
            parts += (MAGIC_BYTES, digest, header)
        same = b"".join(parts) == b"".join(self._heads[shard][first:end])
        return same and not (end == self.count and self.has_slack(shard))

    def stamp(self, shards: Iterable[int]) -> None:
        """Write the headers of these shards, hashes included; their blocks must be final."""
        for shard in shards:
            heads = self._heads[shard][: self.count]
            for head, header in zip(heads, self.headers(shard), strict=True):
                head[COVER:] = header
            for head, digest in zip(heads, self.digests(shard), strict=True):
                head[:COVER] = MAGIC_BYTES + digest

    def _headers(self, shard: int, stripes: range, *, last: bool) -> list[bytes]:
        """Return what headers say behind the hash, those of full stripes or that of the last."""
        if not stripes:
            return []
        fixed = self._fixed.get(last)  # all of it is the same in every header but the numbers of shard and stripe
        if fixed is None:
            metadata = self._metadata
            block, data, flags = self.geometry.block_length, self.geometry.stripe_data, 0
            if last:
                block, data, flags = self.tail_block, self.last_data or 0, FLAG_LAST
            fixed = self._fixed[last] = bytes(FrameHeader(
                flags, metadata.set_id, 0, metadata.k, metadata.m, metadata.w, 0, block, data,
                hash_id=metadata.checksum.number,
            ).pack())  # fmt: skip
        before = fixed[COVER:_SHARD] + shard.to_bytes(4, "little") + fixed[_SHARD + 4 : _STRIPE]
        after = fixed[_STRIPE + 8 :]
        return [before + stripe.to_bytes(8, "little") + after for stripe in stripes]

    @property
    def table(self) -> "npt.NDArray[np.uint64]":
        """Address of each block, shape (S, n)."""
        if self._table is None:
            import numpy as np

            base = np.frombuffer(self._memory, np.uint8).__array_interface__["data"][0] + HEADER_BYTES
            rows = np.arange(self.n, dtype=np.int64) * self._stride
            slots = np.arange(self.capacity, dtype=np.int64)[:, None] * self.geometry.frame_length
            self._table = (rows + slots + base).astype(np.uint64)
        return self._table

    def apply(
        self, operator: "Operator", inputs: Sequence[int], outputs: Sequence[int], slots: Sequence[int] | None = None
    ) -> None:
        """Run a product on the blocks of some shards in some slots (all by default)."""
        from gfcode.engine.protocol import Blocks

        chosen = list(range(self.count)) if slots is None else list(slots)
        short = self.tail_block != self.geometry.block_length and self.count - 1 in chosen
        if short:
            chosen.remove(self.count - 1)
        for rows, length in ((chosen, self.geometry.block_length), ([self.count - 1] * short, self.tail_block)):
            if rows and length:
                table = self.table[rows]
                operator(
                    Blocks(table[:, list(inputs)], length, self._memory),
                    Blocks(table[:, list(outputs)], length, self._memory),
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

    def has_slack(self, shard: int) -> bool:
        """Return whether the slack of a data shard's last block holds anything but zeros."""
        return self.last_data is not None and any(
            j == shard and view != bytes(len(view)) for j, view in self.slack_views()
        )
