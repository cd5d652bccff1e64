"""A shard set as a file: reads any part of what was encoded, and makes what is lost as it goes."""

import io
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from gfcode.errors import ParameterError, UnrecoverableError
from gfcode.pipeline.batch import Batch
from gfcode.pipeline.discovery import StrPath, find_set
from gfcode.pipeline.keys import hashes_for
from gfcode.pipeline.loader import Loader
from gfcode.pipeline.recover import LazyCodec
from gfcode.pipeline.shardset import ShardSet

__all__ = ["SetReader", "open_set"]

#: Buffers of one stripe that are kept while no thread needs them.
_IDLE: Final = 4


def open_set(
    paths: StrPath | Sequence[StrPath],
    *,
    set_id: str | None = None,
    key: StrPath | None = None,
    engine: str | None = None,
) -> "SetReader":
    """Open a shard set, whole or damaged, for reading as if it were the file that was encoded.

    Parameters
    ----------
    paths : path or sequence of path
        Shard files, and directories that hold them.
    set_id : str, optional
        The set that is meant where there are several: its id or the first digits of it.
    key : path, optional
        File with the key of a keyed set; only frames made with it count.
    engine : str, optional
        Engine that must be used.

    Returns
    -------
    SetReader
        To be closed, or used in a `with` statement.

    Raises
    ------
    ShardSetError, ShardFormatError, AuthenticationError, UnrecoverableError
        As `gfcode.pipeline.discovery.find_set`.
    EngineUnavailableError
        If the engine cannot be used here.
    """
    shards = ShardSet(find_set(paths, set_id, hashes_for(key)))
    try:
        return SetReader(shards, engine)
    except BaseException:
        shards.close()
        raise


class SetReader(io.RawIOBase):
    """The file that a shard set holds, for reading; `open_set` makes it.

    It is unbuffered: every read goes to the shards, though a stripe that was read last is still there. Put it under
    `io.BufferedReader` for many small reads. Only frames whose checksum, set, shard and stripe are right are used, and
    only those that hold what is asked for are read; a lost block is made from any k others of its stripe. Where fewer
    are left, reading raises `UnrecoverableError`: there is never a wrong byte.

    `read_at` and `readinto_at` may be called from any number of threads at once; they leave the position alone. The
    shards stay open, so that a set that is replaced meanwhile is read as it was.

    Attributes
    ----------
    name : str
        Name of the file that was encoded.
    """

    def __init__(self, shards: ShardSet, engine: str | None = None) -> None:
        super().__init__()
        self._shards = shards
        self._codec = LazyCodec(shards.metadata, engine)
        self.name = shards.metadata.name
        self._position = 0
        self._idle: list[_Stripe] = []
        self._state = threading.Condition()
        self._reading = 0
        self._closing = False

    # What io asks for

    def readable(self) -> bool:
        """Return True."""
        self._check_open()
        return True

    def seekable(self) -> bool:
        """Return True."""
        self._check_open()
        return True

    def tell(self) -> int:
        """Return the position."""
        self._check_open()
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Move the position, beyond the end too, and return it.

        Raises
        ------
        UnrecoverableError
            For a move from the end of a set whose end is lost.
        """
        self._check_open()
        if whence == os.SEEK_SET:
            position = offset
        elif whence == os.SEEK_CUR:
            position = self._position + offset
        elif whence == os.SEEK_END:
            position = self.size + offset
        else:
            raise ParameterError(f"whence must be 0, 1 or 2, not {whence!r}")
        if position < 0:
            raise ParameterError(f"there is no position {position}")
        self._position = position
        return position

    def readinto(self, buffer: Any, /) -> int:
        """Read into a buffer from the position on; return how many bytes, 0 at the end.

        Raises
        ------
        UnrecoverableError
            If a stripe is beyond repair, and no byte before it could be read.
        """
        count = self._read(self._position, memoryview(buffer).cast("B"), partial=True)
        self._position += count
        return count

    def write(self, data: Any, /) -> int:  # noqa: ARG002
        """Raise: shard sets are read only."""
        raise io.UnsupportedOperation("a shard set is opened for reading")

    def readall(self) -> bytes:
        """Read all that follows."""
        self._check_open()
        data = self.read_at(self._position, max(0, self.size - self._position))
        self._position += len(data)
        return data

    def close(self) -> None:
        """Close the shards, once reads in other threads are done."""
        if not self.closed:
            with self._state:
                self._closing = True
                while self._reading:
                    self._state.wait()
            self._idle.clear()
            self._shards.close()
        super().close()

    # What io does not have

    @property
    def size(self) -> int:
        """Bytes of the file.

        Raises
        ------
        UnrecoverableError
            If the set was made from a stream and no frame that ends it is left.
        """
        size = self._shards.size
        if size is None:
            raise UnrecoverableError(f"no frame that ends {self.name!r} is left: how long it is cannot be told")
        return size

    def read_at(self, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset` on; fewer only where the file ends.

        Raises
        ------
        UnrecoverableError
            If a stripe that holds some of them is beyond repair.
        """
        if offset < 0 or length < 0:
            raise ParameterError(f"offset and length must not be negative: {offset}, {length}")
        size = self._shards.size
        data = bytearray(length if size is None else max(0, min(length, size - offset)))
        count = self.readinto_at(offset, data)
        del data[count:]
        return bytes(data)

    def readinto_at(self, offset: int, buffer: Any) -> int:
        """Fill a buffer from `offset` on; return how many bytes, fewer than it holds only where the file ends."""
        if offset < 0:
            raise ParameterError(f"offset must not be negative: {offset}")
        return self._read(offset, memoryview(buffer).cast("B"), partial=False)

    def _check_open(self) -> None:
        if self.closed or self._closing:
            raise ValueError("the shard set is closed")

    def _read(self, offset: int, target: memoryview, *, partial: bool) -> int:
        with self._stripe() as stripe:
            size = self._shards.size
            end = offset + len(target) if size is None else min(offset + len(target), size)
            done = 0
            while offset + done < end:
                try:
                    done += stripe.read(offset + done, target[done : end - offset])
                except UnrecoverableError:
                    if partial and done:
                        break  # the next read raises
                    raise
            return done

    @contextmanager
    def _stripe(self) -> Iterator["_Stripe"]:
        """Lend a buffer to a thread."""
        with self._state:
            self._check_open()
            self._reading += 1
            stripe = self._idle.pop() if self._idle else None
        try:
            yield (stripe := stripe or _Stripe(self._shards, self._codec))
        finally:
            with self._state:
                if stripe is not None and len(self._idle) < _IDLE:
                    self._idle.append(stripe)
                self._reading -= 1
                self._state.notify_all()


class _Stripe:
    """A buffer for one stripe and what is in it. For one thread at a time."""

    def __init__(self, shards: ShardSet, codec: LazyCodec) -> None:
        self._shards, self._codec = shards, codec
        self._batch = Batch(shards.metadata, 1)
        self._loader = Loader(shards, self._batch)
        self._number: int | None = None

    def read(self, offset: int, target: memoryview) -> int:
        """Fill the beginning of `target` with what one stripe has of it; return how many bytes."""
        shards, geometry = self._shards, self._shards.geometry
        number = min(offset // geometry.stripe_data, shards.stripes - 1)
        if not shards.end_known and number == shards.stripes - 1:
            raise UnrecoverableError(
                f"no frame that ends {shards.metadata.name!r} is left: stripe {number} and what may follow are lost"
            )
        if number != self._number:
            self._number = None
            self._loader.begin(number)
            self._number = number
        length = self._batch.block_length(0)
        start = offset - number * geometry.stripe_data
        stop = min(start + len(target), self._batch.data_length)
        wanted = range(start // length, -(-stop // length))
        self._load(wanted, number)
        for shard in wanted:
            low, high = max(start - shard * length, 0), min(stop - shard * length, length)
            at = shard * length + low - start
            target[at : at + high - low] = self._batch.blocks[shard][0][low:high]
        return stop - start

    def _load(self, wanted: range, number: int) -> None:
        """Bring blocks about: read them, or else make them from k others."""
        loader, batch = self._loader, self._batch
        for shard in wanted:
            if not loader.loaded[shard]:
                loader.load(shard)
        lost = [shard for shard in wanted if not loader.good[shard, 0]]
        if not lost:
            return
        for shard in range(batch.n):
            if loader.good[:, 0].sum() >= batch.k:
                break
            if not loader.loaded[shard]:
                loader.load(shard)
        good = loader.good[:, 0]
        if good.sum() < batch.k:
            raise UnrecoverableError(
                f"stripe {number} of {self._shards.metadata.name!r} is beyond repair: {int(good.sum())} sound frames "
                f"are left, and {batch.k} are needed"
            )
        plan = self._codec.get().plan(np.flatnonzero(good).tolist(), lost)
        batch.apply(plan.operator, plan.sources, lost)
        loader.good[lost, 0] = True
