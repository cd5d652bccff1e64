"""Files that vanish or become something else between the steps of a run: they are lost, and no more than that."""

import errno
import io
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gfcode.errors import ShardSetError, TargetExistsError, UnrecoverableError
from gfcode.pipeline import candidates, decode_file, discovery, encode_file, open_set, repair, repair_set, shardset
from gfcode.pipeline.discovery import find_set
from gfcode.pipeline.files import read_at, temporary_name
from gfcode.pipeline.probe import open_regular
from gfcode.pipeline.shardset import ShardSet
from tests.unit.shard_files import FileSet, make_set, random_bytes

Change = Callable[[Path], None]


@pytest.fixture
def files(tmp_path: Path) -> FileSet:
    return make_set(tmp_path, random_bytes(30_000), 3, 2)


def vanish(path: Path) -> None:
    path.unlink()


def to_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def to_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def to_dangling_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def to_looping_link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def to_device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


CHANGES = (vanish, to_directory, to_fifo, to_dangling_link, to_looping_link, to_device)
#: Steps of the search for a set: names are listed, files are looked at, and put where they belong.
STEPS = ("_expand", "look_at", "assemble")


def when(monkeypatch: pytest.MonkeyPatch, name: str, change: Callable[[], object]) -> None:
    """Do something once, right after a step of the search for a set has returned for the first time."""
    real = getattr(discovery, name)
    done: list[object] = []

    def wrapper(*arguments: Any, **options: Any) -> Any:
        result = real(*arguments, **options)
        if not done:
            done.append(change())
        return result

    monkeypatch.setattr(discovery, name, wrapper)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("change", CHANGES)
class TestLostOnTheWay:
    """Shards 1 and 3 of 3 + 2 are lost behind some step."""

    @pytest.fixture(autouse=True)
    def _lose(self, files: FileSet, monkeypatch: pytest.MonkeyPatch, step: str, change: Change) -> None:
        def change_both() -> None:
            for shard in (1, 3):
                change(files.paths[shard])

        when(monkeypatch, step, change_both)

    def test_decode(self, files: FileSet) -> None:
        data, report = files.decode()
        assert data == files.data
        assert report.missing_shards == (1, 3)
        assert {stray.path for stray in report.strays} == {str(files.paths[1]), str(files.paths[3])}

    def test_read(self, files: FileSet) -> None:
        with open_set(files.directory) as reader:
            assert reader.readall() == files.data

    def test_verify(self, files: FileSet) -> None:
        report = files.verify()
        assert report.state == "repairable"
        assert [shard.index for shard in report.shards if not shard.intact] == [1, 3]

    def test_repair(self, files: FileSet, change: Change) -> None:
        report = files.repair()
        assert [shard.index for shard in report.repaired] == [1, 3]
        after = files.verify()
        assert after.state == "intact"
        for shard in after.shards:
            assert Path(str(shard.path)).read_bytes() == files.original[str(files.paths[shard.index])]
        # What has taken a shard's name is none of the repair's business.
        assert change is vanish or not files.paths[1].is_file() or files.paths[1].is_symlink()

    def test_repair_elsewhere(self, files: FileSet, tmp_path: Path) -> None:
        files.repair(out=tmp_path / "out")
        assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == {
            files.paths[shard].name: files.original[str(files.paths[shard])] for shard in (1, 3)
        }


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.ESTALE, errno.ENXIO])
def test_files_that_cannot_be_opened_any_more(files: FileSet, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    lost = {str(files.paths[shard]) for shard in (0, 4)}

    def opened(path: str) -> int:
        if path in lost:
            raise OSError(number, os.strerror(number), path)
        return open_regular(path)

    monkeypatch.setattr(shardset, "open_regular", opened)
    data, report = files.decode()
    assert (data, report.missing_shards) == (files.data, (0, 4))
    reasons = {stray.reason for stray in report.strays}
    assert reasons == {f"lost while the set was looked at: {os.strerror(number)}"}
    assert files.verify().state == "repairable"
    lost.add(str(files.paths[2]))
    with pytest.raises(
        UnrecoverableError, match=rf"missing are shards 0, 2, 4; .*000\.gfs is not used: .*{reasons.pop()}"
    ):
        files.decode()


def test_too_many_lost_on_the_way(files: FileSet, monkeypatch: pytest.MonkeyPatch) -> None:
    when(monkeypatch, STEPS[-1], lambda: files.remove(0, 2, 4))
    with pytest.raises(UnrecoverableError, match="2 shards are here and 3 are needed; missing are shards 0, 2, 4"):
        files.decode()
    assert files.verify().state == "beyond repair"


def test_a_copy_takes_the_place_of_the_file_that_is_lost(files: FileSet, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = files.directory / "copy"
    copy.write_bytes(files.paths[2].read_bytes())
    when(monkeypatch, STEPS[-1], lambda: files.remove(2))
    report = files.verify()
    assert report.state == "intact"
    assert report.shards[2].path == str(copy)


def test_a_stream_whose_last_frames_are_lost_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_bytes(5_000)
    paths = encode_file(io.BytesIO(data), k=2, m=1, name="x", out=tmp_path / "s", durable=False).paths
    when(monkeypatch, STEPS[-1], lambda: list(map(os.unlink, paths)))
    with pytest.raises(UnrecoverableError):
        decode_file(tmp_path / "s", io.BytesIO())


def test_another_file_of_the_same_name_is_another_run(files: FileSet) -> None:
    found = find_set(files.directory)
    os.replace(files.paths[1], files.paths[2])
    with pytest.raises(ShardSetError, match=r"file\.002\.gfs was replaced while the set was looked at; try again"):
        ShardSet(found)


@pytest.mark.parametrize("way", ["unreadable", "shorter", "other bytes"])
def test_sound_frames_that_are_lost_before_they_are_copied(
    files: FileSet, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Shard 1 has one bad frame when the set is looked at, and loses all others before the repair copies them."""
    files.change(1, files.offset(2) + 600)
    real_complete, real_read = repair._Repair._complete, read_at

    def read(fd: int, buffers: list[memoryview], at: int) -> int:
        if way == "unreadable":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        got = real_read(fd, buffers, at)
        if way == "other bytes":
            buffers[0][700] ^= 1
            return got
        return got // 2

    def complete(self: Any, *arguments: Any) -> None:
        monkeypatch.setattr(repair, "read_at", read)
        real_complete(self, *arguments)
        monkeypatch.setattr(repair, "read_at", real_read)

    monkeypatch.setattr(repair._Repair, "_complete", complete)
    assert [shard.index for shard in files.repair().repaired] == [1]
    files.assert_original()


def test_too_few_frames_are_left_before_they_are_copied(files: FileSet, monkeypatch: pytest.MonkeyPatch) -> None:
    files.change(1, files.offset(2) + 600)
    before = {path: path.read_bytes() for path in files.directory.iterdir()}
    real = repair._Repair._complete

    def complete(self: Any, *arguments: Any) -> None:
        for shard in (0, 1, 2):
            os.truncate(files.paths[shard], files.offset(9))
        real(self, *arguments)

    monkeypatch.setattr(repair._Repair, "_complete", complete)
    with pytest.raises(UnrecoverableError):
        files.repair()
    assert sorted(os.listdir(files.directory)) == sorted(path.name for path in before)
    assert files.paths[3].read_bytes() == before[files.paths[3]]


def test_interrupted_repair_elsewhere_is_finished(files: FileSet, tmp_path: Path) -> None:
    """A shard that is there already is replaced by the same; whatever else has the name is left alone."""
    out = tmp_path / "out"
    out.mkdir()
    files.remove(1, 3)
    wanted = {files.paths[shard].name: files.original[str(files.paths[shard])] for shard in (1, 3)}
    (out / files.paths[1].name).write_bytes(wanted[files.paths[1].name][:-1])
    (out / temporary_name(files.paths[3].name)).write_bytes(bytes(9000))
    for _ in range(2):
        files.repair(out=out)
        assert {path.name: path.read_bytes() for path in out.iterdir()} == wanted
    other = random.Random(5).randbytes(len(wanted[files.paths[1].name]))
    for content in (b"precious", b"", other, files.paths[0].read_bytes()):
        (out / files.paths[1].name).write_bytes(content)
        with pytest.raises(TargetExistsError, match=r"file\.001\.gfs exists; choose another directory"):
            files.repair(out=out)
        assert (out / files.paths[1].name).read_bytes() == content


@pytest.mark.parametrize("kind", ["directory", "fifo", "link", "dangling link"])
def test_what_is_no_file_in_the_place_of_a_shard_repaired_elsewhere(files: FileSet, tmp_path: Path, kind: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    target = out / files.paths[1].name
    match kind:
        case "directory":
            target.mkdir()
        case "fifo":
            os.mkfifo(target)
        case "link":
            (tmp_path / "elsewhere").write_bytes(files.paths[1].read_bytes())
            target.symlink_to(tmp_path / "elsewhere")
        case _:
            target.symlink_to("nowhere")
    files.remove(1)
    with pytest.raises(TargetExistsError, match=r"file\.001\.gfs exists"):
        files.repair(out=out)
    assert os.listdir(out) == [target.name]


def test_damaged_shards_are_not_replaced_by_a_repair_to_their_own_directory(files: FileSet) -> None:
    files.change(1, files.offset(2) + 600)
    before = files.paths[1].read_bytes()
    with pytest.raises(TargetExistsError):
        files.repair(out=files.directory)
    assert files.paths[1].read_bytes() == before


def test_interrupted_set_beside_a_whole_one_is_found_by_its_id(files: FileSet, tmp_path: Path) -> None:
    """Shards with hidden names count where the set that is meant has not enough without them."""
    other = make_set(tmp_path / "other", random_bytes(20_000, 1), 3, 2, name="other")
    for shard, path in enumerate(other.paths):
        name = path.name if shard < 2 else temporary_name(path.name)
        (files.directory / name).write_bytes(path.read_bytes())
    files.assert_decodes()
    out = io.BytesIO()
    decode_file(files.directory, out, set_id=other.report.set_id[:9])
    assert out.getvalue() == other.data
    assert repair_set(files.directory, set_id=other.report.set_id, durable=False).before.state == "intact"


def test_the_reason_is_kept_for_a_file_whose_name_tells_nothing(
    files: FileSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.paths[1].rename(files.directory / "renamed")
    seen: list[str] = []

    def opened(path: str) -> int:
        seen.append(path)
        if path.endswith("renamed") and seen.count(path) == 2:
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return open_regular(path)

    monkeypatch.setattr(candidates, "open_regular", opened)
    _, report = files.decode()
    assert [stray.reason for stray in report.strays] == ["no shard: Input/output error"]
