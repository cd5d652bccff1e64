"""Where decoded bytes go: a file, at any offset by any worker, or a stream, in order."""

import threading
from typing import Any, Protocol

from gfcode.pipeline.batch import Batch
from gfcode.pipeline.files import named_errors, write_at
from gfcode.pipeline.workers import Turns
from gfcode.pipeline.writeback import start_write_back

__all__ = ["FileSink", "Sink", "StreamSink"]

#: Bytes of one write.
_PIECE = 1024 * 1024


class Sink(Protocol):
    """Takes the data of batches. Safe to call from many threads."""

    def put(self, number: int, batch: Batch, stop: threading.Event) -> None:
        """Write the data rows of batch `number`."""
        ...


class FileSink:
    """A regular file, open for writing; it stays the caller's, who flushes it at the end if it is to be `durable`."""

    def __init__(self, fd: int, *, durable: bool) -> None:
        self._fd, self._durable = fd, durable

    def put(self, number: int, batch: Batch, stop: threading.Event) -> None:  # noqa: ARG002
        """Write at the batch's own offset."""
        offset = batch.first * batch.geometry.stripe_data
        views = batch.data_views()
        step = max(1, _PIECE // batch.geometry.block_length)
        for start in range(0, len(views), step):
            part = views[start : start + step]
            write_at(self._fd, part, offset)
            offset += sum(map(len, part))
        if self._durable:
            start_write_back(self._fd, batch.first * batch.geometry.stripe_data, batch.data_length)


class StreamSink:
    """A pipe or any binary file object with `write`; it stays the caller's."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._turns = Turns()

    def put(self, number: int, batch: Batch, stop: threading.Event) -> None:
        """Write when all smaller batches are written."""
        self._turns.wait(number, stop)
        with named_errors(self._stream):
            taken = all(map(self._write, batch.data_views()))
        if not taken:
            raise BlockingIOError("the output is a non-blocking stream that is full; use a blocking one")
        self._turns.done()

    def _write(self, view: memoryview) -> bool:
        """Write all of a buffer; return False where the stream takes no more at the moment."""
        while view:
            written = self._stream.write(view)
            if written is None:
                return False
            view = view[written:]
        return True
