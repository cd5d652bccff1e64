"""Whatever fails, nothing that was there is lost, and nothing incomplete gets a name."""

import errno
import os
import resource
import threading
from pathlib import Path
from typing import Any

import pytest

from gfcode.errors import InputChangedError, ParameterError, TargetExistsError, UnrecoverableError
from gfcode.pipeline import decode_file, encode_file
from gfcode.pipeline.files import is_temporary
from tests.unit.shard_files import FileSet, make_set, random_bytes

DATA = random_bytes(3 * 512 * 1000 + 9)


def tree(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


@pytest.fixture
def files(tmp_path: Path) -> FileSet:
    return make_set(tmp_path, DATA, 3, 2, frame=1024)


def fail_after(monkeypatch: pytest.MonkeyPatch, name: str, calls: int, error: BaseException) -> None:
    """Let a function of `os` fail at its call number `calls`, once."""
    real, count, lock = getattr(os, name), iter(range(10**9)), threading.Lock()

    def wrapper(*args: Any, **options: Any) -> Any:
        with lock:
            number = next(count)
        if number == calls:
            raise error
        return real(*args, **options)

    monkeypatch.setattr(os, name, wrapper)


def source_of(tmp_path: Path, data: bytes = DATA) -> Path:
    path = tmp_path / "input" / "file"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return path


def test_existing_target_is_refused_and_nothing_changes(files: FileSet, tmp_path: Path) -> None:
    source = source_of(tmp_path)
    files.remove(0, 1, 2, 3)
    before = tree(tmp_path)
    with pytest.raises(TargetExistsError, match=r"file\.004\.gfs exists"):
        encode_file(source, k=3, m=2, out=files.directory, durable=False)
    assert tree(tmp_path) == before


def test_force_replaces_the_whole_old_set(files: FileSet, tmp_path: Path) -> None:
    (files.directory / "file.txt").write_text("mine")
    (files.directory / "file.007.gfs").write_text("no shard of the old set")
    report = encode_file(source_of(tmp_path, b"new"), k=2, m=1, out=files.directory, force=True, durable=False)
    assert sorted(os.listdir(files.directory)) == [
        "file.000.gfs", "file.001.gfs", "file.002.gfs", "file.007.gfs", "file.txt",
    ]  # fmt: skip
    assert files.verify().set_id == report.set_id
    assert files.decode()[0] == b"new"


@pytest.mark.parametrize("calls", [0, 3, 7])
@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_full_disk_while_encoding(
    files: FileSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: int, force: bool, threads: int
) -> None:
    source = source_of(tmp_path)
    before = tree(tmp_path)
    out = files.directory if force else tmp_path / "new" / "deep"
    fail_after(monkeypatch, "pwritev", calls, OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(OSError, match="No space left"):
        encode_file(source, k=3, m=2, out=out, frame=1024, force=force, durable=False, threads=threads)
    assert tree(tmp_path) == before
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("call", range(5))
def test_renaming_fails_halfway(files: FileSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int) -> None:
    source = source_of(tmp_path)
    before = tree(tmp_path)
    fail_after(monkeypatch, "replace", call, OSError(errno.EIO, "Input/output error"))
    with pytest.raises(OSError, match="Input/output error"):
        encode_file(source, k=3, m=2, out=files.directory, force=True, durable=False)
    assert tree(tmp_path) == before
    monkeypatch.undo()
    fail_after(monkeypatch, "link", call, OSError(errno.EIO, "Input/output error"))
    with pytest.raises(OSError, match="Input/output error"):
        encode_file(source, k=3, m=2, out=tmp_path / "new", durable=False)
    assert tree(tmp_path) == before


def test_target_that_appears_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    source = source_of(tmp_path)
    rival = tmp_path / "new" / "file.002.gfs"

    def progress(done: int, total: int | None) -> None:
        if done == total:
            rival.write_text("another run's")

    with pytest.raises(TargetExistsError, match=r"file\.002\.gfs exists"):
        encode_file(source, k=3, m=2, out=tmp_path / "new", durable=False, progress=progress)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["file.002.gfs"]
    assert rival.read_text() == "another run's"


def test_file_system_without_hard_links(files: FileSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **options: Any) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    source = source_of(tmp_path, b"new")
    encode_file(source, k=3, m=2, out=tmp_path / "new", durable=False)
    encode_file(source, k=3, m=2, out=files.directory, force=True, durable=False)
    assert files.decode()[0] == b"new"
    with pytest.raises(TargetExistsError):
        encode_file(source, k=3, m=2, out=tmp_path / "new", durable=False)
    before = tree(tmp_path)
    fail_after(monkeypatch, "replace", 3, OSError(errno.EIO, "Input/output error"))
    with pytest.raises(OSError, match="Input/output error"):
        encode_file(source, k=3, m=2, out=files.directory, force=True, durable=False)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("from a callback")])
def test_exception_of_any_thread_ends_the_run(
    files: FileSet, tmp_path: Path, threads: int, error: BaseException
) -> None:
    source = source_of(tmp_path)
    files.change(1, files.offset(2) + 700)
    before, running = tree(tmp_path), set(threading.enumerate())
    calls = iter(range(10**9))

    def progress(done: int, total: int | None) -> None:
        if next(calls) == 1:
            raise error

    runs: list[Any] = [
        lambda: encode_file(source, k=3, m=2, out=tmp_path / "n", frame=1024, threads=threads, progress=progress),
        lambda: decode_file(files.directory, tmp_path / "out", threads=threads, progress=progress),
        lambda: files.verify(threads=threads, progress=progress),
        lambda: files.repair(threads=threads, progress=progress),
    ]
    for run in runs:
        calls = iter(range(10**9))
        with pytest.raises(type(error)):
            run()
        assert tree(tmp_path) == before
    assert set(threading.enumerate()) <= running


def test_input_that_changes(tmp_path: Path) -> None:
    source = source_of(tmp_path)

    def grow(done: int, total: int | None) -> None:
        with source.open("ab") as file:
            file.write(b"more")

    def shrink(done: int, total: int | None) -> None:
        os.truncate(source, 1000)

    def touch(done: int, total: int | None) -> None:
        os.utime(source, ns=(1, 1))

    for change, message in ((grow, "changed"), (touch, "changed"), (shrink, "became shorter|changed")):
        source.write_bytes(DATA)
        with pytest.raises(InputChangedError, match=message):
            encode_file(source, k=3, m=2, out=tmp_path / "s", frame=1024, durable=False, progress=change)
        assert not (tmp_path / "s").exists()


def test_input_is_never_its_own_output(tmp_path: Path) -> None:
    source = tmp_path / "x.000.gfs"
    source.write_bytes(b"precious")
    with pytest.raises(ParameterError, match="is the input itself"):
        encode_file(source, k=2, m=1, out=tmp_path, name="x", force=True)
    assert tree(tmp_path) == {str(source): b"precious"}


def test_unusable_names_and_directories(tmp_path: Path) -> None:
    source = source_of(tmp_path)
    for name in ("", ".", "..", "a/b", "a\0b"):
        with pytest.raises(ParameterError, match="not the name of a file"):
            encode_file(source, out=tmp_path / "s", name=name)
    with pytest.raises(ParameterError, match="names of 258 bytes"):
        encode_file(source, out=tmp_path / "s", name="é" * 125)
    with pytest.raises(ParameterError, match="at least one directory"):
        encode_file(source, out=[])
    with pytest.raises(NotADirectoryError):
        encode_file(source, out=source / "sub")
    with pytest.raises(FileNotFoundError):
        encode_file(tmp_path / "nothing", out=tmp_path / "s")
    with pytest.raises(IsADirectoryError):
        encode_file(tmp_path, out=tmp_path / "s")
    assert tree(tmp_path) == {str(source): DATA}
    long_name = "é" * 123 + "x"
    assert len(encode_file(source, k=2, m=1, out=tmp_path / "s", name=long_name, durable=False).paths) == 3


def test_frames_out_of_bounds(tmp_path: Path) -> None:
    source = source_of(tmp_path)
    with pytest.raises(ParameterError, match="use at least 1024"):
        encode_file(source, out=tmp_path / "s", frame=1023)
    with pytest.raises(ParameterError, match="use at most 4194304"):
        encode_file(source, out=tmp_path / "s", frame=2**22 + 1)
    with pytest.raises(ParameterError, match="use frames of at most 335544 bytes"):
        encode_file(source, k=100, m=100, w=16, out=tmp_path / "s", frame=2**20)
    with pytest.raises(ParameterError, match="threads must be at least 1"):
        encode_file(source, out=tmp_path / "s", threads=0)
    with pytest.raises(ParameterError, match="unknown hash"):
        encode_file(source, out=tmp_path / "s", checksum="md5")
    assert not (tmp_path / "s").exists()


def test_more_shards_than_files_may_be_open(files: FileSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (20, 4096))
    with pytest.raises(OSError, match=r"5 shards are open at once; raise the limit of 20 files \(ulimit -n\)"):
        encode_file(source_of(tmp_path), k=3, m=2, out=tmp_path / "s")
    assert not (tmp_path / "s").exists()
    with pytest.raises(OSError, match="raise the limit"):
        files.verify()


def test_decode_does_not_overwrite(files: FileSet, tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.write_text("mine")
    with pytest.raises(TargetExistsError, match="out exists"):
        decode_file(files.directory, target)
    assert target.read_text() == "mine"
    decode_file(files.directory, target, force=True, durable=False)
    assert target.read_bytes() == DATA
    with pytest.raises(ParameterError, match="is a directory"):
        decode_file(files.directory, tmp_path, force=True)
    with pytest.raises(ParameterError, match="is a shard of the set itself"):
        decode_file(files.directory, files.paths[0], force=True)
    files.assert_original()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(TargetExistsError):
        decode_file(files.directory, tmp_path / "link")
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("threads", [1, 3])
def test_full_disk_while_decoding(
    files: FileSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    fail_after(monkeypatch, "pwritev", 2, OSError(errno.ENOSPC, "No space left on device"))
    before = tree(tmp_path)
    with pytest.raises(OSError, match="No space left"):
        decode_file(files.directory, tmp_path / "out", threads=threads)
    assert tree(tmp_path) == before


def test_beyond_repair_leaves_no_file(files: FileSet, tmp_path: Path) -> None:
    for shard in (0, 1, 4):
        files.change(shard, files.offset(700) + 600)
        files.change(shard, files.offset(800) + 600)
    files.change(0, files.offset(801) + 600)
    before = tree(tmp_path)
    with pytest.raises(UnrecoverableError) as caught:
        decode_file(files.directory, tmp_path / "out")
    assert str(caught.value) == (
        "2 of 1001 stripes of 'file' are beyond repair (stripe 700, 800): frames of shards 0, 1, 4 are missing or "
        "damaged there, which leaves as few as 2 of the 3 needed"
    )
    assert tree(tmp_path) == before


def test_short_writes_and_reads_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_write, real_read = os.pwritev, os.preadv

    def few(buffers: Any) -> list[memoryview]:
        return [memoryview(buffers[0])[:777]]

    monkeypatch.setattr(os, "pwritev", lambda fd, buffers, at: real_write(fd, few(buffers), at))
    monkeypatch.setattr(os, "preadv", lambda fd, buffers, at: real_read(fd, few(buffers), at))
    files = make_set(tmp_path, random_bytes(50_000))
    files.remove(1)
    files.assert_decodes()
    files.repair()
    files.assert_original()


def test_no_temporary_file_is_ever_left(files: FileSet, tmp_path: Path) -> None:
    files.remove(0)
    files.repair()
    decode_file(files.directory, tmp_path / "out", durable=False)
    assert not [path for path in tmp_path.rglob("*") if is_temporary(path.name)]
