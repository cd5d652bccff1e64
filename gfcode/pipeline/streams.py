"""Shards as streams: from a reader to a writer for each shard, and back."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Protocol

from gfcode.codec import Codec
from gfcode.errors import ParameterError
from gfcode.params import LayoutName
from gfcode.pipeline.discovery import StrPath
from gfcode.pipeline.keys import checksum_for, hashes_for
from gfcode.pipeline.layout import DEFAULT_FRAME, block_length_for
from gfcode.pipeline.metadata import check_file_name, describe
from gfcode.pipeline.stream_steps import Fill, Steps, StreamReport, decode_steps, encode_steps

__all__ = ["Reader", "Writer", "decode_stream", "encode_stream", "readers_of", "steps_of", "writers_of"]


class Reader(Protocol):
    """Anything to read bytes from, in order; `readinto` is used where there is one."""

    def read(self, size: int, /) -> bytes | None:
        """Return at most `size` bytes, none at the end."""
        ...


class Writer(Protocol):
    """Anything to write bytes to, in order."""

    def write(self, data: memoryview, /) -> int | None:
        """Write bytes and return how many were taken."""
        ...


def encode_stream(
    reader: Reader,
    writers: Sequence[Writer | None],
    *,
    k: int,
    w: int = 8,
    matrix: Any = "auto",
    layout: LayoutName = "packets",
    frame: int = DEFAULT_FRAME,
    name: str = "stream",
    size: int | None = None,
    engine: str | None = None,
    checksum: str | None = None,
    key: StrPath | None = None,
) -> StreamReport:
    """Read data to its end and write a shard to each writer, in the format of shard files.

    Memory is bounded: one batch of stripes. Streams stay open and are not flushed.

    Parameters
    ----------
    reader : binary file object
    writers : sequence of k + m binary file objects
        In the order of shards. None where a shard is not to be written; at least k must be.
    k : int
        Data shards; the others are parity.
    w, matrix, layout, frame, engine, checksum, key
        As for `gfcode.encode_file`.
    name : str
        Name of the data, which a decoder suggests.
    size : int, optional
        Bytes of the data, where that is known. Decoders then know where shards end.

    Returns
    -------
    StreamReport

    Raises
    ------
    ParameterError
        For parameters that no code, layout or frame has.
    InputChangedError
        If another number of bytes than `size` came.
    OSError
        Whatever streams raise. Shards are then incomplete, and decoders refuse their end.
    """
    steps, _ = steps_of(
        writers, k=k, w=w, matrix=matrix, layout=layout, frame=frame, name=name, size=size, engine=engine,
        checksum=checksum, key=key,
    )  # fmt: skip
    fill = filler(reader)
    return _drive(steps, lambda _, view: fill(view), lambda number, view: _put(writers[number], view))


def decode_stream(
    readers: Sequence[Reader | None] | Mapping[int, Reader],
    writer: Writer,
    *,
    engine: str | None = None,
    key: StrPath | None = None,
) -> StreamReport:
    """Read shards side by side and write the data that they hold.

    Every frame is checked before any byte of its stripe is written. A stream that ends early or raises `OSError` is
    lost from there on; others take its place while k are left.

    Parameters
    ----------
    readers : sequence of binary file objects, or mapping of shard index to one
        At least k shards of one set, in any order: they say which they are. All of them are read.
    writer : binary file object
    engine : str, optional
        Engine that must be used.
    key : path, optional
        File with the key of a keyed set; only frames made with it count.

    Returns
    -------
    StreamReport

    Raises
    ------
    UnrecoverableError
        If a stripe has fewer than k sound frames. What was written before it is right.
    ShardSetError, ShardFormatError, AuthenticationError
        If the streams do not begin with the metadata of one set.
    OSError
        If the data cannot be written.
    """
    present = readers_of(readers)
    fills = [filler(reader) for reader in present]

    def fill(number: int, view: memoryview) -> int:
        try:
            return fills[number](view)
        except OSError:
            fills[number] = _nothing
            return 0

    return _drive(decode_steps(len(present), hashes_for(key), engine), fill, lambda _, view: _put(writer, view))


def steps_of(
    writers: Sequence[object], *, k: int, w: int, matrix: Any, layout: LayoutName, frame: int, name: str,
    size: int | None, engine: str | None, checksum: str | None, key: StrPath | None,
) -> tuple[Steps, tuple[int, ...]]:  # fmt: skip
    """Check the arguments of `encode_stream`; return the steps and the shards to be written."""
    shards = writers_of(writers)
    codec = Codec(k, len(writers) - k, w, matrix=matrix, layout=layout, engine=engine)
    if len(shards) < k:
        raise ParameterError(f"{len(shards)} shards are to be written, and k = {k} are needed to decode")
    if size is not None and size < 0:
        raise ParameterError(f"size must not be negative: {size}")
    metadata = describe(
        codec, set_id=secrets.token_bytes(16), name=check_file_name(name), size=size, mode=None, mtime_ns=None,
        block_length=block_length_for(frame, codec.layout, codec.n), checksum=checksum_for(checksum, key),
        tool=f"gfcode {version('gfcode')}",
    )  # fmt: skip
    return encode_steps(codec, metadata, shards), shards


def writers_of(writers: Sequence[object]) -> tuple[int, ...]:
    """Return the numbers of the writers that there are."""
    return tuple(number for number, writer in enumerate(writers) if writer is not None)


def readers_of(readers: Sequence[Any] | Mapping[int, Any]) -> list[Any]:
    """Return the readers: all places of a sequence, so that these can stand for shard numbers."""
    if isinstance(readers, Mapping):
        return list(readers.values())
    return list(readers)


def filler(reader: Any) -> Callable[[memoryview], int]:
    """Return a function that fills a buffer as far as the bytes of a reader go."""
    if reader is None:
        return _nothing
    into = getattr(reader, "readinto", None)

    def fill(view: memoryview) -> int:
        done = 0
        while done < len(view):
            if into is not None:
                count = into(view[done:])
            else:
                data = reader.read(len(view) - done)
                count = None if data is None else len(data)
                if count:
                    view[done : done + count] = data
            if count is None:
                raise BlockingIOError("the input is a non-blocking stream without data; use a blocking one")
            if not count:
                break
            done += count
        return done

    return fill


def _nothing(view: memoryview) -> int:  # noqa: ARG001
    """Read from a stream that is not there."""
    return 0


def _put(writer: Any, view: memoryview) -> None:
    rest = view
    while rest:
        written = writer.write(rest)
        if written is None:
            raise BlockingIOError("the output is a non-blocking stream that is full; use a blocking one")
        rest = rest[written:]


def _drive(
    steps: Steps, fill: Callable[[int, memoryview], int], put: Callable[[int, memoryview], None]
) -> StreamReport:
    try:
        step = next(steps)
        while True:
            counts: list[int] = []
            if isinstance(step, Fill):
                counts = [fill(number, view) for number, view in step.parts]
            else:
                for number, view in step.parts:
                    put(number, view)
            step = steps.send(counts)
    except StopIteration as end:
        report: StreamReport = end.value
        return report
    finally:
        steps.close()
