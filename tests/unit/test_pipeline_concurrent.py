"""Two runs at once on one target, and what killed runs leave behind."""

import fcntl
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gfcode.errors import ShardSetError, TargetExistsError
from gfcode.pipeline import decode_file, encode_file, repair_set, verify_set
from gfcode.pipeline import files as files_module
from gfcode.pipeline.files import TemporaryFile, is_temporary, leftovers, temporary_name
from gfcode.pipeline.locks import claim, locked_directories, remove_if_abandoned
from tests.unit.shard_files import FileSet, make_set, random_bytes

DATA = random_bytes(3 * 512 * 20 + 9)


@pytest.fixture
def files(tmp_path: Path) -> FileSet:
    return make_set(tmp_path, DATA, 3, 2, frame=1024)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in" / "file"
    path.parent.mkdir()
    path.write_bytes(DATA)
    return path


def hidden(directory: Path) -> list[str]:
    return [name for name in os.listdir(directory) if is_temporary(name)]


def in_child(work: Callable[[], Any]) -> int:
    """Start a process that runs something; return its id."""
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
        os._exit(0)
    except BaseException:  # noqa: BLE001
        os._exit(1)


def killed_at(name: str, call: int, work: Callable[[], Any]) -> None:
    """Run something in a process that is killed at its call number `call` of a function of `os`."""

    def doomed() -> None:
        real, count = getattr(os, name), iter(range(10**9))

        def wrapper(*args: Any, **options: Any) -> Any:
            if next(count) == call:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **options)

        setattr(os, name, wrapper)
        work()

    _, status = os.waitpid(in_child(doomed), 0)
    assert os.WIFSIGNALED(status)


@pytest.mark.parametrize(("function", "call"), [("pwritev", 7), ("link", 0), ("link", 2), ("unlink", 4)])
def test_encoding_again_after_a_kill(source: Path, tmp_path: Path, function: str, call: int) -> None:
    out = tmp_path / "out"

    def encode() -> Any:
        return encode_file(source, k=3, m=2, out=out, frame=1024, durable=False)

    killed_at(function, call, encode)
    assert hidden(out)
    encode()
    assert sorted(os.listdir(out)) == [f"file.{index:03}.gfs" for index in range(5)]
    assert verify_set(out).state == "intact"


@pytest.mark.parametrize("change", ["mtime", "size"])
def test_interrupted_set_of_another_source_is_kept(source: Path, tmp_path: Path, change: str) -> None:
    out = tmp_path / "out"
    killed_at("link", 2, lambda: encode_file(source, k=3, m=2, out=out, frame=1024, durable=False))
    before = sorted(os.listdir(out))
    source.write_bytes(DATA[: -1 if change == "size" else None])
    with pytest.raises(TargetExistsError, match=r"file\.000\.gfs exists"):
        encode_file(source, k=3, m=2, out=out, durable=False)
    assert sorted(os.listdir(out)) == before
    decode_file(out, tmp_path / "back", durable=False)
    assert (tmp_path / "back").read_bytes() == DATA


def test_partial_set_that_nobody_interrupted_is_not_replaced(source: Path, tmp_path: Path) -> None:
    report = encode_file(source, k=3, m=2, out=tmp_path / "out", durable=False)
    os.unlink(report.paths[2])
    with pytest.raises(TargetExistsError):
        encode_file(source, k=3, m=2, out=tmp_path / "out", durable=False)


@pytest.mark.parametrize(("function", "call"), [("replace", 1), ("replace", 4), ("link", 3)])
def test_forced_encoding_again_after_a_kill(files: FileSet, source: Path, function: str, call: int) -> None:
    def encode() -> Any:
        return encode_file(source, k=3, m=2, out=files.directory, frame=1024, durable=False, force=True)

    killed_at(function, call, encode)
    report = encode()
    assert sorted(os.listdir(files.directory)) == [path.name for path in files.paths]
    assert files.verify().state == "intact"
    assert files.verify().set_id == report.set_id


@pytest.mark.parametrize(("function", "call"), [("pwritev", 3), ("pwritev", 6), ("replace", 0), ("replace", 1)])
def test_repairing_again_after_a_kill(files: FileSet, function: str, call: int) -> None:
    files.change(1, files.offset(2) + 600)
    files.change(3, files.offset(5) + 600)
    killed_at(function, call, files.repair)
    assert hidden(files.directory)
    files.assert_decodes()
    files.repair()
    files.assert_original()


def test_decoding_again_after_a_kill(files: FileSet, tmp_path: Path) -> None:
    killed_at("pwritev", 0, lambda: decode_file(files.directory, tmp_path / "back", durable=False))
    assert len(hidden(tmp_path)) == 1
    decode_file(files.directory, tmp_path / "back", durable=False)
    assert hidden(tmp_path) == []
    assert (tmp_path / "back").read_bytes() == DATA


def test_only_abandoned_temporaries_of_the_same_target_are_removed(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    ours, other, odd = (out / name for name in (temporary_name("file.001.gfs"), temporary_name("x"), ".file.001.gfs.t"))
    for path in (ours, other, odd):
        path.write_text("left behind")
    live = TemporaryFile(str(out / "file.002.gfs"), 0o600)
    folder = out / temporary_name("file.003.gfs")
    folder.mkdir()
    link = out / temporary_name("file.004.gfs")
    link.symlink_to(source)
    encode_file(source, k=3, m=2, out=out, durable=False)
    assert not ours.exists()
    assert other.exists()
    assert odd.exists()
    assert folder.exists()
    assert link.is_symlink()
    assert os.path.exists(live.path)
    live.close()
    assert remove_if_abandoned(live.path)


def test_repair_keeps_what_may_be_left_of_another_set(files: FileSet, tmp_path: Path) -> None:
    other = make_set(tmp_path / "other", DATA, 3, 2, frame=1024)
    kept = files.directory / temporary_name("file.001.gfs")
    kept.write_bytes(other.paths[1].read_bytes())
    rotten = files.directory / temporary_name("file.001.gfs")
    rotten.write_bytes(b"?" + other.paths[1].read_bytes())
    files.change(1, files.offset(2) + 600)
    files.repair()
    assert kept.exists()
    assert rotten.exists()


def test_names_that_were_cut_are_nobodys() -> None:
    assert leftovers(["/nowhere/x"]) == {"/nowhere/x": []}


def test_cut_names_are_left_alone(tmp_path: Path) -> None:
    name = "é" * 123 + "x.000.gfs"
    (tmp_path / temporary_name(name)).write_text("")
    cut = temporary_name(name)[1:-21]
    assert leftovers([str(tmp_path / name), str(tmp_path / cut)]) == {str(tmp_path / name): [], str(tmp_path / cut): []}


def test_file_that_is_taken_for_abandoned_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([False, False, True])
    monkeypatch.setattr(files_module, "claim", lambda _: next(answers))
    file = TemporaryFile(str(tmp_path / "x"), 0o600)
    assert os.listdir(tmp_path) == [os.path.basename(file.path)]
    file.discard()
    with (tmp_path / "y").open("w") as one, (tmp_path / "y").open("w") as two:
        fcntl.flock(two, fcntl.LOCK_EX)
        assert not claim(one.fileno())
        fcntl.flock(two, fcntl.LOCK_UN)
        assert claim(one.fileno())
        (tmp_path / "y").unlink()
        assert not claim(one.fileno())


def test_forced_encodings_at_once_leave_one_whole_set(tmp_path: Path) -> None:
    """Different codes, so that leftovers of the loser would show."""
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(random_bytes(20_000, ord(name)))
    out = tmp_path / "out"
    out.mkdir()

    def many(name: str, m: int) -> Callable[[], None]:
        def work() -> None:
            for _ in range(15):
                encode_file(tmp_path / name / "file", k=3, m=m, out=out, force=True, durable=False)

        return work

    pids = [in_child(many("a", 1)), in_child(many("b", 4))]
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0, 0]
    report = verify_set(out)
    assert (report.state, report.strays) == ("intact", ())
    assert len(os.listdir(out)) == report.n
    decode_file(out, tmp_path / "back", durable=False)
    assert (tmp_path / "back").read_bytes() == random_bytes(20_000, ord("a" if report.n == 4 else "b"))


def test_encodings_of_one_new_name_at_once_leave_one_set(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    pids = [in_child(lambda: encode_file(source, k=3, m=2, out=out, durable=False)) for _ in range(4)]
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    assert sorted(codes) == [0, 1, 1, 1]
    assert len(os.listdir(out)) == 5
    assert verify_set(out).state == "intact"


def test_set_replaced_during_its_repair_is_not_touched(files: FileSet, source: Path) -> None:
    files.change(1, files.offset(2) + 600)
    source.write_bytes(b"new")
    done: list[Any] = []

    def progress(_: int, total: int | None) -> None:
        if not done:
            done.append(encode_file(source, k=3, m=2, out=files.directory, force=True, durable=False))

    with pytest.raises(ShardSetError, match=r"file\.001\.gfs was replaced by another run during the repair"):
        repair_set(files.directory, durable=False, progress=progress)
    report = files.verify()
    assert (report.state, report.set_id, report.strays) == ("intact", done[0].set_id, ())


@pytest.mark.parametrize("loss", ["damaged", "missing"])
def test_two_repairs_at_once(files: FileSet, loss: str) -> None:
    files.change(1, files.offset(2) + 600) if loss == "damaged" else files.remove(1)
    done: list[Any] = []

    def progress(_: int, total: int | None) -> None:
        if not done:
            done.append(files.repair())

    with pytest.raises(ShardSetError, match="was replaced by another run"):
        repair_set(files.directory, durable=False, progress=progress)
    assert len(done[0].repaired) == 1
    files.assert_original()


def test_directories_are_locked_in_one_order_and_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    (tmp_path / "c").symlink_to(tmp_path / "a")
    taken: list[int] = []
    monkeypatch.setattr(fcntl, "flock", lambda fd, _: taken.append(os.fstat(fd).st_ino))
    for names in ("abc", "bca", "cab"):
        taken.clear()
        with locked_directories(str(tmp_path / name) for name in names):
            assert taken == sorted((tmp_path / name).stat().st_ino for name in "ab")


def test_file_systems_without_locks(files: FileSet, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything works, and nothing is taken for abandoned."""

    def refuse(fd: int, kind: int) -> None:
        raise OSError(9, "Bad file descriptor")

    monkeypatch.setattr(fcntl, "flock", refuse)
    stale = files.directory / temporary_name("file.001.gfs")
    stale.write_text("")
    encode_file(source, k=3, m=2, out=files.directory, force=True, durable=False)
    assert stale.exists()
    assert files.verify().state == "intact"


def test_what_killed_repairs_have_left_of_sound_shards_is_removed(files: FileSet) -> None:
    """A kill between the two steps of giving a new shard its name leaves both names, and a set that may be intact."""
    second = files.directory / temporary_name("file.001.gfs")
    os.link(files.paths[1], second)
    unwritten = files.directory / temporary_name("file.004.gfs")
    unwritten.write_bytes(bytes(9000))
    other = files.directory / temporary_name("other.004.gfs")
    other.write_bytes(bytes(9000))
    assert files.repair().repaired == ()
    assert [path.exists() for path in (second, unwritten, other)] == [False, False, True]
    os.link(files.paths[1], second)
    files.change(3, files.offset(2) + 600)
    assert len(files.repair().repaired) == 1
    assert not second.exists()
    other.unlink()
    files.assert_original()
