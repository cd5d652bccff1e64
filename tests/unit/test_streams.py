"""Streams of shards, by calls and in an event loop: the same bytes, every loss that can be borne, no wrong byte."""

import asyncio
import contextlib
import io
import random
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import gfcode
from gfcode.errors import (
    AuthenticationError,
    InputChangedError,
    ParameterError,
    ShardFormatError,
    ShardSetError,
    UnrecoverableError,
)
from gfcode.pipeline.stream_steps import StreamReport
from tests.unit.shard_files import SMALL_FRAME, random_bytes

STRIPE = 3 * 1024


class AsyncBuffer:
    """A reader and writer of asyncio's kind, in small pieces."""

    def __init__(self, content: bytes = b"", piece: int = 1 << 20) -> None:
        self.stream, self.piece = io.BytesIO(content), piece
        self.written: list[bytes] = []

    async def read(self, size: int) -> bytes:
        await asyncio.sleep(0)
        return self.stream.read(min(size, self.piece))

    def write(self, data: bytes) -> None:
        self.written.append(data)

    async def drain(self) -> None:
        await asyncio.sleep(0)


class ReadOnly:
    """A reader without `readinto`, in small pieces."""

    def __init__(self, content: bytes, piece: int = 333) -> None:
        self.stream, self.piece = io.BytesIO(content), piece

    def read(self, size: int) -> bytes:
        return self.stream.read(min(size, self.piece))


def encode(data: bytes, n: int = 5, k: int = 3, **options: Any) -> tuple[list[bytes], StreamReport]:
    writers = [io.BytesIO() for _ in range(n)]
    report = gfcode.encode_stream(io.BytesIO(data), writers, k=k, **{"frame": SMALL_FRAME, **options})
    return [writer.getvalue() for writer in writers], report


def encode_async(data: bytes, n: int = 5, k: int = 3, **options: Any) -> tuple[list[bytes], StreamReport]:
    writers = [AsyncBuffer() for _ in range(n)]
    report = asyncio.run(
        gfcode.encode_stream_async(AsyncBuffer(data, 1000), writers, k=k, **{"frame": SMALL_FRAME, **options})
    )
    return [b"".join(writer.written) for writer in writers], report


def decode(shards: Sequence[bytes | None], **options: Any) -> tuple[bytes, StreamReport]:
    out = io.BytesIO()
    report = gfcode.decode_stream([None if shard is None else io.BytesIO(shard) for shard in shards], out, **options)
    return out.getvalue(), report


def decode_async(shards: Sequence[bytes | None], **options: Any) -> tuple[bytes, StreamReport]:
    out = AsyncBuffer()
    readers = [None if shard is None else AsyncBuffer(shard, 700) for shard in shards]
    report = asyncio.run(gfcode.decode_stream_async(readers, out, **options))
    return b"".join(out.written), report


ENCODE: list[Callable[..., Any]] = [encode, encode_async]
DECODE: list[Callable[..., Any]] = [decode, decode_async]


@pytest.mark.parametrize("encode", ENCODE)
@pytest.mark.parametrize("decode", DECODE)
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("size", [0, 1, STRIPE - 1, STRIPE, STRIPE + 1, 257 * STRIPE + 11])
def test_every_size(encode: Any, decode: Any, known: bool, size: int) -> None:
    data = random_bytes(size)
    shards, report = encode(data, size=size if known else None)
    stripes = max(1, -(-size // STRIPE))
    assert (report.size, report.stripes, report.shards, report.name) == (size, stripes, (0, 1, 2, 3, 4), "stream")
    for kept in ((1, 3, 4), (4, 0, 2), (0, 1, 2, 3, 4), (0, 1, 2))[: 1 if size > 100_000 else 4]:
        got, report = decode([shards[i] for i in kept])
        assert got == data
        assert (report.size, report.shards, report.damaged) == (size, tuple(sorted(kept)), ())
        assert report.rebuilt_blocks == sum(i not in kept for i in range(3)) * stripes


def test_streams_are_shard_files(tmp_path: Path) -> None:
    data = random_bytes(20 * STRIPE + 5)
    shards, _ = encode(data, name="from a stream")
    for i in (0, 2, 4):
        (tmp_path / f"any{i}").write_bytes(shards[i])
    out = io.BytesIO()
    assert gfcode.decode_file(tmp_path, out).name == "from a stream"
    assert out.getvalue() == data
    source = tmp_path / "source"
    source.write_bytes(data)
    files = gfcode.encode_file(source, k=4, m=2, out=tmp_path / "shards", durable=False, frame=SMALL_FRAME)
    with contextlib.ExitStack() as stack:
        readers = [stack.enter_context(open(path, "rb", buffering=0)) for path in files.paths[2:]]
        target = stack.enter_context(open(tmp_path / "target", "wb", buffering=0))
        gfcode.decode_stream(readers, target)
    assert (tmp_path / "target").read_bytes() == data


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("decode", DECODE)
def test_damage_in_every_stream(decode: Any, known: bool) -> None:
    data = random_bytes(30 * STRIPE + 100)
    shards, _ = encode(data, size=len(data) if known else None)
    for seed in range(5):
        choice = random.Random(seed)
        damaged = [bytearray(shard) for shard in shards]
        for stripe in range(31):
            for shard in choice.sample(range(5), 2):
                at = 4096 + stripe * SMALL_FRAME + choice.randrange(512 + (1024 if stripe < 30 else 512))
                damaged[shard][at] ^= 1 << choice.randrange(8)
        damaged[seed % 5][choice.randrange(4096)] ^= 1  # its own metadata
        got, report = decode(damaged)
        assert got == data
        assert report.damaged


@pytest.mark.parametrize("decode", DECODE)
def test_every_byte_of_one_stream(decode: Any) -> None:
    data = random_bytes(2 * STRIPE + 100)
    shards, _ = encode(data, n=4)
    for at in range(0, len(shards[0]), 37 if decode.__name__ == "decode" else 181):
        wrong = bytearray(shards[1])
        wrong[at] ^= 0x80
        assert decode([shards[0], wrong, shards[2], shards[3]])[0] == data
        assert decode([shards[0], shards[1][:at], shards[2], shards[3]])[0] == data


@pytest.mark.parametrize("decode", DECODE)
@pytest.mark.parametrize("known", [False, True])
def test_too_little_left_gives_what_is_right_and_then_raises(decode: Any, known: bool) -> None:
    data = random_bytes(10 * STRIPE)
    shards, _ = encode(data, n=4, size=len(data) if known else None)
    cut = [shards[0], shards[1][: 4096 + 5 * SMALL_FRAME + 3], shards[2][: 4096 + 7 * SMALL_FRAME], shards[3]]
    out = io.BytesIO()
    with pytest.raises(UnrecoverableError, match="stripe 7 of 'stream' is beyond repair: 2 sound frames came"):
        gfcode.decode_stream([io.BytesIO(shard) for shard in cut], out)
    assert out.getvalue() == data[: 7 * STRIPE]
    with pytest.raises(UnrecoverableError, match="beyond repair"):
        decode(shards[:2])
    ended = [shard[: 4096 + 4 * SMALL_FRAME] for shard in shards]
    with pytest.raises(UnrecoverableError, match="beyond repair" if known else "end after 4 stripes, without a frame"):
        decode(ended)


class Failing:
    """A reader whose connection breaks."""

    def __init__(self, content: bytes, after: int) -> None:
        self.stream, self.left = io.BytesIO(content), after

    def read(self, size: int) -> bytes:
        if self.left <= 0:
            raise ConnectionResetError("gone")
        data = self.stream.read(min(size, self.left))
        self.left -= len(data)
        return data


class AsyncFailing(Failing):
    async def read(self, size: int) -> bytes:  # type: ignore[override]
        return super().read(size)


@pytest.mark.parametrize("after", [0, 100, 5000, 20000])
def test_streams_that_break_are_lost_from_there_on(after: int) -> None:
    data = random_bytes(20 * STRIPE)
    shards, _ = encode(data)
    out = io.BytesIO()
    readers: list[Any] = [Failing(shards[0], after), *map(ReadOnly, shards[1:4])]
    gfcode.decode_stream(readers, out)
    assert out.getvalue() == data
    target = AsyncBuffer()
    several: list[Any] = [AsyncFailing(shards[0], after), *map(AsyncBuffer, shards[1:4])]
    asyncio.run(gfcode.decode_stream_async(several, target))
    assert b"".join(target.written) == data
    with pytest.raises(ConnectionResetError):
        gfcode.encode_stream(Failing(data, 5000), [io.BytesIO() for _ in range(3)], k=2)


def test_sets_are_not_mixed_and_nothing_is_no_set() -> None:
    first, _ = encode(random_bytes(5000))
    second, _ = encode(random_bytes(5000))
    with pytest.raises(ShardSetError, match="of more than one set"):
        decode([first[0], first[1], second[2]])
    with pytest.raises(ShardSetError, match="there is no stream"):
        decode([])
    with pytest.raises(ShardFormatError, match="no frame: the magic bytes are missing"):
        decode([bytes(9999)] * 4)
    twice, _ = decode([first[0], first[0], first[1], first[2]])
    assert twice == random_bytes(5000)


def test_keys(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(bytes(range(32)))
    data = random_bytes(9000)
    shards, _ = encode(data, key=key)
    assert decode(shards[1:], key=key)[0] == data
    with pytest.raises(AuthenticationError):
        decode(shards)


def test_what_encoding_refuses() -> None:
    sink = io.BytesIO()
    with pytest.raises(ParameterError, match="2 shards are to be written, and k = 3 are needed"):
        gfcode.encode_stream(io.BytesIO(), [sink, None, None, sink], k=3)
    with pytest.raises(ParameterError, match="m must be at least 0"):
        gfcode.encode_stream(io.BytesIO(), [sink], k=3)
    with pytest.raises(ParameterError, match="is not the name of a file"):
        encode(b"", name="../x")
    with pytest.raises(InputChangedError, match="said to have 100 bytes and has 99"):
        encode(bytes(99), size=100)
    with pytest.raises(InputChangedError, match="said to have 1 bytes"):
        encode_async(bytes(99), size=1)
    assert sink.getvalue() == b""


def test_writers_that_are_not_there_and_short_writes() -> None:
    class Short(io.BytesIO):
        def write(self, data: Any) -> int:
            return super().write(bytes(data)[:100])

    data = random_bytes(4000)
    writers = [Short() if i != 2 else None for i in range(5)]
    report = gfcode.encode_stream(ReadOnly(data), writers, k=3, frame=SMALL_FRAME)
    assert report.shards == (0, 1, 3, 4)
    assert decode([writer.getvalue() for writer in writers if writer])[0] == data


def test_the_loop_is_never_blocked() -> None:
    """The computing is in other threads, and what it takes longest for leaves the loop free."""
    where: set[str] = set()
    gaps: list[float] = []

    class Slow(gfcode.Codec):
        def encoder(self) -> Any:
            where.add(threading.current_thread().name)
            return super().encoder()

    async def watch(stop: asyncio.Event) -> None:
        while not stop.is_set():
            start = time.perf_counter()
            await asyncio.sleep(0)
            gaps.append(time.perf_counter() - start)

    async def run() -> tuple[bytes, list[AsyncBuffer]]:
        stop = asyncio.Event()
        watcher = asyncio.create_task(watch(stop))
        writers = [AsyncBuffer() for _ in range(5)]
        await gfcode.encode_stream_async(AsyncBuffer(bytes(100_000)), writers, k=3, frame=SMALL_FRAME)
        out = AsyncBuffer()
        await gfcode.decode_stream_async([AsyncBuffer(b"".join(w.written)) for w in writers[1:]], out)
        stop.set()
        await watcher
        return b"".join(out.written), writers

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gfcode.pipeline.streams.Codec", Slow)
        patch.setattr("gfcode.codec.Codec", Slow)
        got, _ = asyncio.run(run())
    assert got == bytes(100_000)
    assert where
    assert not any("MainThread" in name for name in where)
    assert len(gaps) > 10


def test_cancelling_leaves_no_thread_at_work() -> None:
    entered, leave = threading.Event(), threading.Event()
    finished: list[bool] = []

    class Stuck(gfcode.Codec):
        def encoder(self) -> Any:
            entered.set()
            leave.wait(10)
            finished.append(True)
            return super().encoder()

    async def run() -> None:
        writers = [AsyncBuffer() for _ in range(5)]
        task = asyncio.create_task(gfcode.encode_stream_async(AsyncBuffer(bytes(9999)), writers, k=3))
        await asyncio.to_thread(entered.wait, 10)
        task.cancel()
        await asyncio.sleep(0.01)
        assert not task.done()
        leave.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert finished == [True]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gfcode.pipeline.streams.Codec", Stuck)
        asyncio.run(run())


def test_over_sockets() -> None:
    """Real transports keep what they are given: nothing that they keep may be reused."""
    data = random_bytes(300_000)
    received: dict[int, bytes] = {}

    async def run() -> bytes:
        done = asyncio.Event()

        async def store(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            index = (await reader.readexactly(1))[0]
            await asyncio.sleep(0.02)  # lets buffers fill
            received[index] = await reader.read(-1)
            writer.close()
            if len(received) == 5:
                done.set()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(received[(await reader.readexactly(1))[0]])
            await writer.drain()
            writer.close()

        async def connect(server: asyncio.Server, index: int) -> Any:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(bytes([index]))
            return reader, writer

        stores = await asyncio.start_server(store, "127.0.0.1", 0)
        writers = [(await connect(stores, i))[1] for i in range(5)]
        source = asyncio.StreamReader()
        source.feed_data(data)
        source.feed_eof()
        await gfcode.encode_stream_async(source, writers, k=3, frame=SMALL_FRAME)
        for writer in writers:
            writer.write_eof()
        await asyncio.wait_for(done.wait(), 10)
        for writer in writers:
            writer.close()
        servers = await asyncio.start_server(serve, "127.0.0.1", 0)
        pairs = [await connect(servers, i) for i in (1, 2, 4)]
        out = AsyncBuffer()
        await gfcode.decode_stream_async([reader for reader, _ in pairs], out)
        for _, writer in pairs:
            writer.close()
        stores.close()
        servers.close()
        return b"".join(out.written)

    assert asyncio.run(run()) == data
