"""A shard set as a file object: every byte right, or an error."""

import io
import random
import shutil
import tarfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import gfcode
from gfcode.errors import AuthenticationError, ParameterError, ShardSetError, UnrecoverableError
from gfcode.pipeline import encode_file
from gfcode.pipeline.files import read_at
from gfcode.pipeline.reader import SetReader, open_set
from tests.unit.shard_files import SMALL_FRAME, FileSet, make_set, random_bytes

STRIPE = 3 * 1024


@pytest.fixture
def damaged(tmp_path: Path) -> FileSet:
    """Make a set of 10 stripes in which every shard is damaged somewhere, and every stripe can be read."""
    files = make_set(tmp_path, random_bytes(9 * STRIPE + 700))
    files.remove(1)
    for stripe in range(10):
        files.change((0, 2, 3, 4)[stripe % 4], files.offset(stripe) + 520)
    return files


def test_read_seek_tell(damaged: FileSet) -> None:
    data = damaged.data
    with open_set(damaged.directory) as file:
        assert (file.name, file.size) == ("file", len(data))
        assert (file.readable(), file.seekable(), file.writable()) == (True, True, False)
        assert file.read() == data
        assert (file.tell(), file.read(), file.read(9)) == (len(data), b"", b"")
        assert file.seek(-100, io.SEEK_END) == len(data) - 100
        assert file.read() == data[-100:]
        assert file.seek(STRIPE - 10) == STRIPE - 10
        assert file.seek(5, io.SEEK_CUR) == STRIPE - 5
        part = bytearray(5000)
        assert file.readinto(part) == 5000
        assert part == data[STRIPE - 5 : STRIPE + 4995]
        assert file.seek(len(data) + 1000) == len(data) + 1000
        assert (file.read(5), file.readinto(part)) == (b"", 0)
        with pytest.raises(ParameterError, match="there is no position -1"):
            file.seek(-1)
        with pytest.raises(ParameterError, match="whence"):
            file.seek(0, 7)
        with pytest.raises(io.UnsupportedOperation):
            file.write(b"1")
    assert file.closed
    file.close()
    for call in (file.read, file.tell, file.readable, lambda: file.seek(0), lambda: file.read_at(0, 1)):
        with pytest.raises(ValueError, match="closed"):
            call()


def test_any_part_by_read_at(damaged: FileSet) -> None:
    choice = random.Random(5)
    with gfcode.open_set([damaged.directory]) as file:
        for _ in range(300):
            offset = choice.randrange(len(damaged.data) + 10)
            length = choice.choice((0, 1, 100, 1024, choice.randrange(4 * STRIPE)))
            assert file.read_at(offset, length) == damaged.data[offset : offset + length]
        assert file.tell() == 0
        for offset, length in ((-1, 3), (3, -1)):
            with pytest.raises(ParameterError):
                file.read_at(offset, length)


def test_under_buffers_copies_and_archives(tmp_path: Path) -> None:
    archive = io.BytesIO()
    members = {f"member{i}": random_bytes(3000 * i, i) for i in range(5)}
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    files = make_set(tmp_path, archive.getvalue())
    files.remove(0, 3)
    with open_set(files.directory) as raw:
        copy = io.BytesIO()
        shutil.copyfileobj(raw, copy, 777)
        assert copy.getvalue() == files.data
        raw.seek(0)
        with tarfile.open(fileobj=raw, mode="r:") as tar:
            assert {name: tar.extractfile(name).read() for name in reversed(members)} == members  # type: ignore[union-attr]
        raw.seek(0)
        with io.BufferedReader(raw, 100) as buffered:
            assert buffered.peek(3)[:3] == files.data[:3]
            assert [buffered.read(n) for n in (1, 500, 5000)] == [
                files.data[:1],
                files.data[1:501],
                files.data[501:5501],
            ]
            buffered.seek(10)
            assert buffered.read1(20) == files.data[10:30]
    assert raw.closed


def test_only_what_is_asked_for_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = make_set(tmp_path, random_bytes(5 * STRIPE))
    read: list[int] = []
    original = read_at

    def count(fd: int, buffers: list[memoryview], offset: int) -> int:
        read.append(sum(map(len, buffers)))
        return original(fd, buffers, offset)

    monkeypatch.setattr("gfcode.pipeline.loader.read_at", count)
    with open_set(files.directory) as file:
        assert file.read_at(2 * STRIPE + 1030, 50) == files.data[2 * STRIPE + 1030 : 2 * STRIPE + 1080]
        assert read == [SMALL_FRAME]
        file.read_at(2 * STRIPE + 1500, 9)  # there already
        assert read == [SMALL_FRAME]
    files.remove(1)
    read.clear()
    with open_set(files.directory) as file:
        assert file.read_at(2 * STRIPE + 1030, 50) == files.data[2 * STRIPE + 1030 : 2 * STRIPE + 1080]
        assert read == [SMALL_FRAME] * 3


def test_stripes_beyond_repair_raise_and_others_do_not(tmp_path: Path) -> None:
    files = make_set(tmp_path, random_bytes(5 * STRIPE))
    for shard in (0, 2, 4):
        files.change(shard, files.offset(3) + 600)
    with open_set(files.directory) as file:
        for _ in range(2):
            with pytest.raises(UnrecoverableError, match="stripe 3 of 'file' is beyond repair: 2 sound frames"):
                file.read_at(3 * STRIPE, 10)
        assert file.read_at(3 * STRIPE + 1024, 1024) == files.data[3 * STRIPE + 1024 : 3 * STRIPE + 2048]
        assert file.read_at(4 * STRIPE, STRIPE) == files.data[4 * STRIPE :]
        with pytest.raises(UnrecoverableError):
            file.read()
        assert file.tell() == 0
        whole = bytearray(5 * STRIPE)
        assert file.readinto(whole) == 3 * STRIPE  # up to the stripe, then the error
        assert whole[: 3 * STRIPE] == files.data[: 3 * STRIPE]
        with pytest.raises(UnrecoverableError):
            file.readinto(whole)
        with pytest.raises(UnrecoverableError), io.BufferedReader(file) as buffered:
            buffered.read()


def test_too_few_shards_still_give_what_they_hold(tmp_path: Path) -> None:
    files = make_set(tmp_path, random_bytes(2 * STRIPE))
    files.remove(0, 3, 4)
    with open_set(files.directory) as file:
        assert file.read_at(1024, 1024) == files.data[1024:2048]
        with pytest.raises(UnrecoverableError):
            file.read_at(1023, 2)


@pytest.mark.parametrize("size", [0, 1, STRIPE - 1, STRIPE, STRIPE + 1])
def test_sizes_and_streamed_sets(size: int, tmp_path: Path) -> None:
    data = random_bytes(size)
    out = tmp_path / "shards"
    encode_file(io.BytesIO(data), k=3, m=2, frame=SMALL_FRAME, out=out, name="stream", durable=False)
    (out / "stream.001.gfs").unlink()
    with open_set(out) as file:
        assert file.read() == data
        assert file.size == size


def test_a_stream_whose_end_is_lost(tmp_path: Path) -> None:
    data = random_bytes(3 * STRIPE + 5)
    encode_file(io.BytesIO(data), k=3, m=2, frame=SMALL_FRAME, out=tmp_path, name="stream", durable=False)
    for path in tmp_path.glob("*.gfs"):
        with path.open("r+b") as shard:
            shard.truncate(4096 + 3 * SMALL_FRAME)
    with open_set(tmp_path) as file:
        assert file.read_at(0, 3 * STRIPE) == data[: 3 * STRIPE]
        for call in (file.read, lambda: file.seek(0, 2), lambda: file.size, lambda: file.read_at(3 * STRIPE, 1)):
            with pytest.raises(UnrecoverableError, match="no frame that ends 'stream' is left"):
                call()


def test_keys(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(b"0123456789abcdef")
    files = make_set(tmp_path / "set", random_bytes(5000), key=key)
    files.remove(0)
    with open_set(files.directory, key=key) as file:
        assert file.read() == files.data
    with pytest.raises(AuthenticationError):
        open_set(files.directory)
    with pytest.raises(ShardSetError):
        open_set(tmp_path)


def test_many_threads_on_one_reader(damaged: FileSet) -> None:
    file = open_set(damaged.directory)
    barrier = threading.Barrier(16)

    def work(seed: int) -> None:
        choice = random.Random(seed)
        barrier.wait()
        for _ in range(40):
            offset, length = choice.randrange(len(damaged.data)), choice.randrange(2 * STRIPE)
            assert file.read_at(offset, length) == damaged.data[offset : offset + length]

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(16)))
    assert len(file._idle) <= 4
    file.close()


def test_close_waits_for_reads_in_other_threads(damaged: FileSet, monkeypatch: pytest.MonkeyPatch) -> None:
    file = open_set(damaged.directory)
    entered, leave = threading.Event(), threading.Event()

    def slow(self: SetReader, offset: int, target: memoryview, *, partial: bool) -> int:
        with self._stripe():
            entered.set()
            leave.wait(10)
            return 0

    monkeypatch.setattr(SetReader, "_read", slow)
    reader = threading.Thread(target=file.read_at, args=(0, 10))
    reader.start()
    entered.wait(10)
    closer = threading.Thread(target=file.close)
    closer.start()
    closer.join(0.05)
    assert closer.is_alive()
    assert any(file._shards.files)
    leave.set()
    for thread in (reader, closer):
        thread.join(10)
    assert not any(file._shards.files)


def test_a_set_that_is_replaced_is_read_as_it_was(tmp_path: Path) -> None:
    files = make_set(tmp_path, random_bytes(4 * STRIPE))
    files.remove(2)
    with open_set(files.directory) as file:
        make_set(tmp_path, random_bytes(4 * STRIPE, 9), force=True)
        assert file.read() == files.data
    with open_set(files.directory) as file:
        assert file.read() == random_bytes(4 * STRIPE, 9)
