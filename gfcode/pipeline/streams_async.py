"""Shards as streams in an event loop, which is never blocked: what computes does so in a thread, one a stream."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from gfcode.params import LayoutName
from gfcode.pipeline.discovery import StrPath
from gfcode.pipeline.keys import hashes_for
from gfcode.pipeline.layout import DEFAULT_FRAME
from gfcode.pipeline.stream_steps import Fill, Put, Steps, StreamReport, decode_steps
from gfcode.pipeline.streams import readers_of, steps_of

__all__ = ["AsyncReader", "AsyncWriter", "decode_stream_async", "encode_stream_async"]

_T = TypeVar("_T")


class AsyncReader(Protocol):
    """What `asyncio.StreamReader` has."""

    async def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes, none at the end."""
        ...


class AsyncWriter(Protocol):
    """What `asyncio.StreamWriter` has."""

    def write(self, data: bytes, /) -> object:
        """Take bytes to be written."""
        ...

    async def drain(self) -> object:
        """Wait until more can be taken."""
        ...


async def encode_stream_async(
    reader: AsyncReader,
    writers: Sequence[AsyncWriter | None],
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
    """Do what `encode_stream` does, with streams of asyncio.

    All writers are written at once, and each batch waits for the slowest. Writers get bytes of their own: what a
    transport keeps is not reused. A stream computes in one thread at a time, of the loop's default executor.

    Parameters
    ----------
    reader : asyncio.StreamReader or the like
    writers : sequence of asyncio.StreamWriter or the like
    k, w, matrix, layout, frame, name, size, engine, checksum, key
        As for `encode_stream`.
    """

    def begin() -> Steps:
        return steps_of(
            writers, k=k, w=w, matrix=matrix, layout=layout, frame=frame, name=name, size=size, engine=engine,
            checksum=checksum, key=key,
        )[0]  # fmt: skip

    async def fill(_: int, view: memoryview) -> int:
        return await _fill(reader, view)

    return await _drive(begin, fill, lambda number, view: _put(writers[number], view))


async def decode_stream_async(
    readers: Sequence[AsyncReader | None] | Mapping[int, AsyncReader],
    writer: AsyncWriter,
    *,
    engine: str | None = None,
    key: StrPath | None = None,
) -> StreamReport:
    """Do what `decode_stream` does, with streams of asyncio. All readers are read at once.

    Parameters
    ----------
    readers : sequence of asyncio.StreamReader or the like, or mapping of shard index to one
    writer : asyncio.StreamWriter or the like
    engine, key
        As for `decode_stream`.
    """
    present = readers_of(readers)

    async def fill(number: int, view: memoryview) -> int:
        if present[number] is None:
            return 0
        try:
            return await _fill(present[number], view)
        except OSError:
            present[number] = None
            return 0

    def begin() -> Steps:
        return decode_steps(len(present), hashes_for(key), engine)

    return await _drive(begin, fill, lambda _, view: _put(writer, view))


async def _fill(reader: AsyncReader, view: memoryview) -> int:
    done = 0
    while done < len(view):
        data = await reader.read(len(view) - done)
        if not data:
            break
        view[done : done + len(data)] = data
        done += len(data)
    return done


async def _put(writer: AsyncWriter | None, view: memoryview) -> None:
    if writer is not None:
        writer.write(bytes(view))
        await writer.drain()


async def _drive(
    begin: Callable[[], Steps],
    fill: Callable[[int, memoryview], Coroutine[Any, Any, int]],
    put: Callable[[int, memoryview], Coroutine[Any, Any, None]],
) -> StreamReport:
    steps = await _in_thread(begin)
    try:
        step, report = await _in_thread(_next, steps, None)
        while step is not None:
            counts: list[int] = []
            if isinstance(step, Fill):
                counts = await _by_stream(step.parts, fill)
            else:
                await _by_stream(step.parts, put)
            step, report = await _in_thread(_next, steps, counts)
    finally:
        steps.close()
    assert report is not None  # noqa: S101 - the steps have ended
    return report


def _next(steps: Steps, counts: list[int] | None) -> tuple[Fill | Put | None, StreamReport | None]:
    """Compute up to the next step. A generator's end cannot pass through a future."""
    try:
        return (next(steps) if counts is None else steps.send(counts)), None
    except StopIteration as end:
        return None, end.value


async def _by_stream(
    parts: Sequence[tuple[int, memoryview]], action: Callable[[int, memoryview], Coroutine[Any, Any, _T]]
) -> list[_T]:
    """Act on all parts, those of one stream in order, all streams at once; return the results in order of the parts."""
    results: dict[int, _T] = {}
    streams: dict[int, list[int]] = {}
    for place, (number, _) in enumerate(parts):
        streams.setdefault(number, []).append(place)

    async def one(places: list[int]) -> None:
        for place in places:
            results[place] = await action(*parts[place])

    try:
        async with asyncio.TaskGroup() as group:
            for places in streams.values():
                group.create_task(one(places))
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
    return [results[place] for place in range(len(parts))]


async def _in_thread(call: Callable[..., _T], *arguments: object) -> _T:
    """Run a call in a thread, and wait for its end even if this task is cancelled: it works on the task's buffers."""
    future = asyncio.get_running_loop().run_in_executor(None, call, *arguments)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        await asyncio.wait([future])
        raise
