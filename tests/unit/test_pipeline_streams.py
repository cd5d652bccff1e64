"""Pipes and other streams, in and out: the end is found, told by the shards, and found again by readers."""

import io
import os
import random
import threading
from pathlib import Path
from typing import Any

import pytest

from gfcode.errors import ParameterError, ShardSetError, UnrecoverableError
from gfcode.pipeline import decode_file, encode_file, repair_set, verify_set
from gfcode.pipeline.frame import FLAG_LAST, XXH3, seal
from gfcode.pipeline.metadata import parse_metadata
from tests.unit.shard_files import SMALL_FRAME, FileSet, random_bytes

BLOCK = SMALL_FRAME - 512


class Ragged(io.RawIOBase):
    """A stream that gives a few bytes at a time."""

    def __init__(self, data: bytes, most: int) -> None:
        self._data, self._most, self._rng = memoryview(data), most, random.Random(5)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = min(len(buffer), self._rng.randint(1, self._most), len(self._data))
        buffer[:count] = self._data[:count]
        self._data = self._data[count:]
        return count


class OnlyRead:
    """A file object without `readinto`."""

    def __init__(self, data: bytes) -> None:
        self._file = io.BytesIO(data)

    def read(self, count: int) -> bytes:
        return self._file.read(count)


def stream_set(directory: Path, data: bytes, stream: Any = None, k: int = 3, m: int = 2, **options: Any) -> FileSet:
    source = io.BytesIO(data) if stream is None else stream
    options = {"frame": SMALL_FRAME, "durable": False, "threads": 1, **options}
    report = encode_file(source, k=k, m=m, name="s", out=directory, **options)
    paths = [Path(path) for path in report.paths]
    return FileSet(data, directory, report, paths, {str(path): path.read_bytes() for path in paths})


@pytest.mark.parametrize("k", [1, 3])
def test_sizes_at_boundaries(tmp_path: Path, k: int) -> None:
    stripe = k * BLOCK
    # 256 stripes make a batch: a stream that ends with a batch needs one byte of looking ahead.
    near = {n + d for n in (512, BLOCK, stripe, 2 * stripe, 256 * stripe) for d in (-1, 0, 1)}
    for size in sorted({0, 1, k, *near, 3 * stripe + 1}):
        data = random_bytes(size)
        files = stream_set(tmp_path / str(size), data, k=k)
        assert files.report.size == size
        report = files.verify()
        assert (report.state, report.size) == ("intact", size)
        assert report.stripes == max(1, -(-size // stripe))
        files.remove(0, 1)
        files.assert_decodes()
        assert verify_set(files.directory).size == size
        files.repair()
        files.assert_original()


def test_metadata_of_a_stream_has_no_size(tmp_path: Path) -> None:
    files = stream_set(tmp_path, b"abc")
    text = files.original[str(files.paths[0])][512:4096].rstrip(b"\0")
    metadata = parse_metadata(text)
    assert (metadata.size, metadata.mode, metadata.mtime_ns, metadata.name) == (None, None, None, "s")


@pytest.mark.parametrize("most", [1, 700, 5000])
def test_ragged_streams(tmp_path: Path, most: int) -> None:
    data = random_bytes(7 * 3 * BLOCK + 11)
    files = stream_set(tmp_path, data, Ragged(data, most))
    files.remove(1, 2)
    files.assert_decodes()


def test_object_with_read_only(tmp_path: Path) -> None:
    data = random_bytes(3 * 3 * BLOCK)
    stream_set(tmp_path, data, OnlyRead(data)).assert_decodes()


@pytest.mark.parametrize("threads", [1, 3])
def test_through_pipes(tmp_path: Path, threads: int) -> None:
    data = random_bytes(2 * BLOCK * 1500 + 17)
    read_end, write_end = os.pipe()

    def feed() -> None:
        with open(write_end, "wb") as sink:
            sink.write(data)

    feeder = threading.Thread(target=feed)
    feeder.start()
    with open(read_end, "rb", buffering=0) as source:
        files = stream_set(tmp_path, data, source, k=2, threads=threads)
    feeder.join()
    files.remove(1)
    files.change(0, files.offset(1400) + 600)
    read_end, write_end = os.pipe()
    got: list[bytes] = []

    def drain() -> None:
        with open(read_end, "rb") as source:
            got.append(source.read())

    drainer = threading.Thread(target=drain)
    drainer.start()
    with open(write_end, "wb", buffering=0) as sink:
        report = decode_file(files.directory, sink, threads=threads)
    drainer.join()
    assert got == [data]
    assert report.size == len(data)
    assert report.damaged_shards == (0,)


def test_fifo_as_source_and_as_output(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    data = random_bytes(50_000)
    feeder = threading.Thread(target=fifo.write_bytes, args=(data,))
    feeder.start()
    report = encode_file(fifo, k=2, m=1, out=tmp_path / "s", durable=False)
    feeder.join()
    assert (report.name, report.size) == ("fifo", len(data))
    got: list[bytes] = []
    drainer = threading.Thread(target=lambda: got.append(fifo.read_bytes()))
    drainer.start()
    decode_file(tmp_path / "s", fifo)
    drainer.join()
    assert got == [data]
    assert decode_file(tmp_path / "s", "/dev/null").size == len(data)


def test_stream_needs_a_name(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="no name"):
        encode_file(io.BytesIO(b"x"), out=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_stream_that_fails_leaves_nothing(tmp_path: Path) -> None:
    class Failing(Ragged):
        def readinto(self, buffer: Any) -> int:
            if len(self._data) < 2000:
                raise OSError(5, "Input/output error")
            return super().readinto(buffer)

    for threads in (1, 3):
        with pytest.raises(OSError, match="Input/output error"):
            stream_set(tmp_path / "s", b"", Failing(bytes(2_000_000), 100_000), threads=threads)
        assert list(tmp_path.iterdir()) == []


def test_non_blocking_stream_is_refused(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    with open(read_end, "rb", buffering=0) as source, pytest.raises(BlockingIOError, match="non-blocking"):
        stream_set(tmp_path / "s", b"", source)
    os.close(write_end)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("threads", [1, 4])
def test_reader_that_goes_away(tmp_path: Path, threads: int) -> None:
    files = stream_set(tmp_path, bytes(4_000_000), frame=4096)
    read_end, write_end = os.pipe()
    os.close(read_end)
    with open(write_end, "wb", buffering=0) as sink, pytest.raises(BrokenPipeError):
        decode_file(files.directory, sink, threads=threads)


def test_nothing_wrong_is_written_before_the_error(tmp_path: Path) -> None:
    files = stream_set(tmp_path, random_bytes(3 * 512 * 2000), frame=1024)
    for shard in (0, 2, 4):
        files.change(shard, files.offset(1500) + 600)
    for threads in (1, 3):
        out = io.BytesIO()
        with pytest.raises(UnrecoverableError, match=r"1 of 2000 stripes of 's' are beyond repair \(stripe 1500\)"):
            decode_file(files.directory, out, threads=threads)
        written = out.getvalue()
        assert len(written) <= 1500 * 3 * 512
        assert files.data.startswith(written)


def test_end_of_a_stream_is_told_by_any_shard(tmp_path: Path) -> None:
    files = stream_set(tmp_path, random_bytes(3 * BLOCK * 5 + 100))
    last = files.offset(5)
    for shard in (0, 1, 2, 3):
        with files.paths[shard].open("r+b") as file:
            if shard % 2:
                file.truncate(last + 100)
            else:
                file.seek(0, os.SEEK_END)
                file.write(random_bytes(40_000))
    report = files.verify()
    assert (report.stripes, report.size) == (6, len(files.data))
    assert [shard.trailing for shard in report.shards] == [40_000, 0, 40_000, 0, 0]
    assert report.state == "repairable"
    files.assert_decodes()
    files.repair()
    files.assert_original()


def test_end_found_though_every_shard_is_extended(tmp_path: Path) -> None:
    files = stream_set(tmp_path, random_bytes(3 * BLOCK * 5 + 100))
    for path in files.paths:
        with path.open("ab") as file:
            file.write(random_bytes(10_000))
    files.assert_decodes()
    assert repair_set(files.directory, durable=False).before.size == len(files.data)
    files.assert_original()


def test_two_ends_are_refused(tmp_path: Path) -> None:
    files = stream_set(tmp_path, random_bytes(3 * BLOCK * 5))
    frame = bytearray(files.original[str(files.paths[1])][files.offset(2) : files.offset(3)])
    frame[28] = FLAG_LAST
    seal(frame, XXH3)
    files.change(1, files.offset(2), bytes(frame))
    os.truncate(files.paths[1], files.offset(3))
    with pytest.raises(ShardSetError, match=r"end set .* at different stripes"):
        files.verify()
    files.assert_decodes(paths=[path for path in files.paths if path != files.paths[1]])


def test_stream_without_an_end_is_beyond_repair(tmp_path: Path) -> None:
    files = stream_set(tmp_path, random_bytes(3 * BLOCK * 5))
    for path in files.paths:
        os.truncate(path, files.offset(4))  # a whole number of frames, and not the last
    report = files.verify()
    assert report.state == "beyond repair"
    assert report.size is None
    out = io.BytesIO()
    with pytest.raises(UnrecoverableError, match=r"1 of 5 stripes .*\(stripe 4\)"):
        decode_file(files.directory, out)
    with pytest.raises(UnrecoverableError):
        decode_file(files.directory, tmp_path / "out")
    assert not (tmp_path / "out").exists()
