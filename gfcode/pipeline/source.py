"""Where the bytes to encode come from: a file, read at any offset by any worker, or a stream, read in order."""

import os
import threading
from typing import Any, Protocol

from gfcode.errors import InputChangedError
from gfcode.pipeline.batch import Batch
from gfcode.pipeline.files import named_errors, read_at
from gfcode.pipeline.layout import Geometry
from gfcode.pipeline.workers import Counter

__all__ = ["FileSource", "Source", "StreamSource", "shorten"]


class Source(Protocol):
    """Fills batches with the data of consecutive stripes. Safe to call from many threads."""

    def fill(self, batch: Batch) -> bool:
        """Read the next stripes into the data rows of a batch, which is told what it holds; False at the end."""
        ...

    def finish(self) -> int:
        """Return the bytes of the whole input, once it has been read.

        Raises
        ------
        InputChangedError
            If the input is not what it was at the beginning.
        """
        ...


class FileSource:
    """A regular file.

    Parameters
    ----------
    fd : int
        Stays the caller's.
    name : str
        For messages.
    geometry : Geometry
    capacity : int
        Stripes of a batch.
    """

    def __init__(self, fd: int, name: str, geometry: Geometry, capacity: int) -> None:
        self._fd, self._name, self._geometry, self._capacity = fd, name, geometry, capacity
        self._before = os.fstat(fd)
        self.size = self._before.st_size
        self._stripes = geometry.stripes(self.size)
        self._batches = Counter(-(-self._stripes // capacity))

    def fill(self, batch: Batch) -> bool:
        """Read the next stripes."""
        number = self._batches.take()
        if number is None:
            return False
        first = number * self._capacity
        count = min(self._capacity, self._stripes - first)
        last = first + count == self._stripes
        batch.place(first, count, self._geometry.last_data(self.size) if last else None)
        if read_at(self._fd, batch.data_views(), first * self._geometry.stripe_data) != batch.data_length:
            raise InputChangedError(f"{self._name} became shorter while it was read; encode it again")
        _clear_slack(batch)
        return True

    def finish(self) -> int:
        """Check that the file is the one that was opened."""
        after = os.fstat(self._fd)
        if (after.st_size, after.st_mtime_ns) != (self._before.st_size, self._before.st_mtime_ns):
            raise InputChangedError(f"{self._name} changed while it was read; encode it again")
        return self.size


class StreamSource:
    """A pipe, or any object with `readinto` or `read`.

    Parameters
    ----------
    stream : binary file object
    geometry : Geometry
    """

    def __init__(self, stream: Any, geometry: Geometry) -> None:
        self._stream, self._geometry = stream, geometry
        self._read_into = getattr(stream, "readinto", None) or self._read_copy
        self._lock = threading.Lock()
        self._next = 0
        self._ahead = bytearray()  # one byte read beyond a full batch, to know whether the stream ends there
        self._ended = False
        self.size = 0

    def fill(self, batch: Batch) -> bool:
        """Read the next stripes."""
        with self._lock:
            if self._ended:
                return False
            first = self._next
            batch.place(first, batch.capacity, None)
            got = self._fill(batch.data_views())
            if got == batch.data_length:
                self._ahead = bytearray(1)
                self._ended = not self._read(memoryview(self._ahead))
            else:
                self._ended = True
            self._next += batch.capacity
            self.size += got
        if self._ended_with(batch, first):
            shorten(batch, got)
        return True

    def finish(self) -> int:
        """Return the bytes that came."""
        return self.size

    def _ended_with(self, batch: Batch, first: int) -> bool:
        return self._ended and first + batch.capacity == self._next

    def _fill(self, views: list[memoryview]) -> int:
        got = 0
        for view in views:
            at = 0
            if self._ahead:
                view[:1], at = self._ahead, 1
                self._ahead = bytearray()
            while at < len(view):
                count = self._read(view[at:])
                if not count:
                    return got + at
                at += count
            got += at
        return got

    def _read(self, view: memoryview) -> int:
        with named_errors(self._stream):
            count = self._read_into(view)
        if count is None:
            raise BlockingIOError("the input is a non-blocking stream without data; use a blocking one")
        return int(count)

    def _read_copy(self, view: memoryview) -> int | None:
        data = self._stream.read(len(view))
        if data is None:
            return None
        view[: len(data)] = data
        return len(data)


def shorten(batch: Batch, got: int) -> None:
    """Make the batch, filled as if with full stripes, one that ends after `got` bytes."""
    stripe = batch.geometry.stripe_data
    count = max(1, -(-got // stripe))
    tail = got - (count - 1) * stripe
    data = b"".join(batch.blocks[j][count - 1] for j in range(batch.k))[:tail]
    batch.place(batch.first, count, tail)
    at = 0
    if batch.tail_block != batch.geometry.block_length:
        for j in range(batch.k):
            part = data[at : at + batch.tail_block]
            batch.blocks[j][count - 1][: len(part)] = part
            at += len(part)
    _clear_slack(batch)


def _clear_slack(batch: Batch) -> None:
    for _, slack in batch.slack_views():
        slack[:] = bytes(len(slack))
