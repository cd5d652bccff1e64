"""Shards are found by what they hold: mixed, renamed, swapped, copied, and found again without their metadata."""

import itertools
import os
import random
import shutil
from pathlib import Path

import pytest

from gfcode.errors import ParameterError, ShardFormatError, ShardSetError, UnrecoverableError
from gfcode.pipeline import inspect_shard
from gfcode.pipeline.files import temporary_name
from gfcode.pipeline.report import FrameStatus
from tests.unit.shard_files import FileSet, make_set, random_bytes


@pytest.fixture
def files(tmp_path: Path) -> FileSet:
    return make_set(tmp_path, random_bytes(9_000), 3, 2)


def strays(report: object) -> dict[str, str]:
    return {os.path.basename(stray.path): stray.reason for stray in report.strays}  # type: ignore[attr-defined]


def test_two_names_swapped(files: FileSet, tmp_path: Path) -> None:
    a, b = files.paths[1], files.paths[4]
    a.rename(tmp_path / "x")
    b.rename(a)
    (tmp_path / "x").rename(b)
    report = files.verify()
    assert report.state == "intact"
    assert report.shards[1].path == str(b)
    assert "holds shard 1, whose name is file.001.gfs" in report.shards[1].notes[0]
    data, decoded = files.decode()
    assert data == files.data
    assert decoded.notes == (
        f"{b} holds shard 1, whose name is file.001.gfs",
        f"{a} holds shard 4, whose name is file.004.gfs",
    )
    before = {path: path.read_bytes() for path in files.paths}
    assert files.repair().repaired == ()
    assert {path: path.read_bytes() for path in files.paths} == before


def test_all_names_random(files: FileSet) -> None:
    rng = random.Random(1)
    for path in files.paths:
        path.rename(path.with_name(f"{rng.getrandbits(64):x}"))
    report = files.verify()
    assert report.state == "intact"
    assert all(shard.notes for shard in report.shards)
    files.assert_decodes()


def test_second_encoding_mixed_in(files: FileSet, tmp_path: Path) -> None:
    other = make_set(tmp_path / "other", random_bytes(9_000, 7), 3, 2)
    for shard in (0, 4):
        shutil.copy(other.paths[shard], files.directory / f"other{shard}")
    files.remove(2)
    data, report = files.decode()
    assert data == files.data
    assert set(strays(report)) == {"other0", "other4"}
    assert all(other.report.set_id in reason for reason in strays(report).values())
    fixed = files.repair()
    assert [shard.index for shard in fixed.repaired] == [2]
    assert files.paths[2].read_bytes() == files.original[str(files.paths[2])]
    assert (files.directory / "other0").read_bytes() == other.original[str(other.paths[0])]


def test_shard_replaced_by_one_of_a_second_encoding(files: FileSet, tmp_path: Path) -> None:
    other = make_set(tmp_path / "other", random_bytes(9_000, 7), 3, 2)
    shutil.copy(other.paths[0], files.paths[0])
    files.assert_decodes()
    report = files.repair()
    # The foreign shard stays; the missing one gets a free name.
    assert report.repaired[0].path == str(files.directory / "file.000-1.gfs")
    assert "file.000.gfs" in report.notes[0]
    assert files.paths[0].read_bytes() == other.original[str(other.paths[0])]
    assert files.verify().state == "intact"


def test_two_whole_sets_need_a_choice(files: FileSet, tmp_path: Path) -> None:
    other = make_set(tmp_path / "other", random_bytes(9_000, 7), 3, 2)
    both = [files.directory, other.directory]
    with pytest.raises(ShardSetError, match="2 sets") as caught:
        files.decode(paths=both)
    assert files.report.set_id in str(caught.value)
    assert other.report.set_id in str(caught.value)
    assert files.decode(paths=both, set_id=files.report.set_id)[0] == files.data
    assert files.decode(paths=both, set_id=other.report.set_id[:6].upper())[0] == other.data
    with pytest.raises(ShardSetError, match="no set has an id that begins"):
        files.decode(paths=both, set_id="0" * 32)
    with pytest.raises(ParameterError, match="hexadecimal"):
        files.decode(paths=both, set_id="xyz")


def test_one_of_two_sets_is_recoverable(files: FileSet, tmp_path: Path) -> None:
    other = make_set(tmp_path / "other", random_bytes(9_000, 7), 3, 2)
    other.remove(0, 1, 2)
    both = [files.directory, other.directory]
    data, report = files.decode(paths=both)
    assert data == files.data
    assert set(strays(report)) == {"file.003.gfs", "file.004.gfs"}


def test_no_set_is_recoverable(files: FileSet, tmp_path: Path) -> None:
    other = make_set(tmp_path / "other", random_bytes(9_000, 7), 3, 2)
    other.remove(0, 1, 2)
    files.remove(0, 1, 2)
    with pytest.raises(UnrecoverableError, match="no set has enough shards") as caught:
        files.decode(paths=[files.directory, other.directory])
    assert files.report.set_id in str(caught.value)
    other.remove(3)
    with pytest.raises(UnrecoverableError, match="2 shards are here and 3 are needed; missing are shards 0, 1, 2"):
        files.decode(paths=[files.directory, other.directory])


def test_same_shard_given_twice(files: FileSet) -> None:
    shutil.copy(files.paths[2], files.directory / "copy")
    report = files.verify()
    assert report.state == "intact"
    assert strays(report) == {"copy": f"a second copy of shard 2, beside {files.paths[2]}"}
    files.assert_decodes()
    data, decoded = files.decode(paths=[*files.paths, files.paths[1]])
    assert data == files.data
    assert strays(decoded) == {"file.001.gfs": "given twice"}
    os.link(files.paths[0], files.directory / "link")
    assert "the same file as" in strays(files.verify())["link"]


def test_frames_of_both_copies_are_used(files: FileSet) -> None:
    copy = files.directory / "copy"
    shutil.copy(files.paths[2], copy)
    files.remove(0, 1)
    files.change(2, files.offset(0) + 600)
    with copy.open("r+b") as file:
        file.seek(files.offset(2) + 600)
        file.write(b"damage")
    report = files.verify()
    assert report.state == "repairable"
    assert report.shards[2].damaged == 1
    data, decoded = files.decode()
    assert data == files.data
    assert decoded.damaged_shards == (2,)
    files.repair()
    for path, content in files.original.items():
        assert Path(path).read_bytes() == content


@pytest.mark.parametrize("lost", list(itertools.combinations(range(5), 2)))
def test_metadata_destroyed_in_all_but_one(files: FileSet, lost: tuple[int, int]) -> None:
    survivor = next(index for index in range(5) if index not in lost)
    for shard, path in enumerate(files.paths):
        if shard != survivor:
            path.rename(path.with_name(f"x{shard}"))
            with path.with_name(f"x{shard}").open("r+b") as file:
                file.write(bytes(4096))
    report = files.verify()
    assert report.state == "repairable"
    assert not report.damage.any()
    assert [shard.metadata for shard in report.shards].count(FrameStatus.CHECKSUM) == 4
    for shard in lost:
        (files.directory / f"x{shard}").unlink(missing_ok=True)
    files.assert_decodes()


def test_no_metadata_at_all(files: FileSet) -> None:
    for shard in range(5):
        files.change(shard, 700)
    with pytest.raises(UnrecoverableError, match=r"5 shards are in .*, but the metadata frame of every one is damaged"):
        files.verify()
    for shard in range(5):
        files.change(shard, 0, bytes(4096))
    with pytest.raises(ShardSetError, match=r"no shard in .*magic"):
        files.verify()


def test_metadata_frames_swapped_between_shards(files: FileSet) -> None:
    heads = [files.original[str(path)][:4096] for path in files.paths]
    files.change(0, 0, heads[3])
    files.change(3, 0, heads[0])
    report = files.verify()
    assert report.shards[0].metadata is FrameStatus.MISPLACED
    assert report.shards[0].path == str(files.paths[0])
    assert not report.damage.any()
    files.repair()
    files.assert_original()


def test_metadata_frame_of_another_set(files: FileSet, tmp_path: Path) -> None:
    other = make_set(tmp_path / "other", random_bytes(9_000, 7), 3, 2)
    files.change(1, 0, other.original[str(other.paths[1])][:4096])
    report = files.verify()
    assert report.shards[1].metadata is FrameStatus.FOREIGN
    files.repair()
    files.assert_original()


def test_metadata_decides_a_tie(tmp_path: Path) -> None:
    files = make_set(tmp_path, random_bytes(700), 2, 1, frame=1024)
    other = make_set(tmp_path / "other", random_bytes(700, 7), 2, 1, frame=1024)
    foreign = other.original[str(other.paths[0])]
    files.change(0, 0, foreign[:4096])
    files.change(1, 4096, foreign[4096:])
    report = files.verify()
    assert report.set_id == files.report.set_id
    # File 0 passes for one of the other set, and yet its frame is used; file 1 does not.
    assert set(strays(report)) == {"file.000.gfs"}
    assert report.damage.tolist() == [[FrameStatus.MISSING], [FrameStatus.FOREIGN], [FrameStatus.GOOD]]
    files.assert_decodes()
    assert [shard.index for shard in files.repair().repaired] == [0, 1]
    assert files.verify().state == "intact"
    assert files.paths[1].read_bytes() == files.original[str(files.paths[1])]
    assert files.paths[0].read_bytes() == foreign[:4096] + files.original[str(files.paths[0])][4096:]


@pytest.mark.parametrize("known", [True, False])
def test_frames_in_a_file_that_is_mostly_of_another_set(tmp_path: Path, known: bool) -> None:
    files = make_set(tmp_path, random_bytes(18_000), 3, 2)
    other = make_set(tmp_path / "other", random_bytes(18_000, 7), 3, 2)
    # Of the 6 frames of file 1, 4 are of the other set, which is known here by its metadata or by them only.
    first = 0 if known else files.offset(0)
    files.change(1, first, other.original[str(other.paths[1])][first : files.offset(4)])
    # The other 2 are needed.
    for shard, stripe in ((0, 4), (2, 4), (0, 5), (2, 5)):
        files.change(shard, files.offset(stripe) + 600)
    report = files.verify()
    label = "shard 1 of another set: 'file' " if known else "shard 1 of a set without metadata: "
    assert strays(report) == {"file.001.gfs": label + other.report.set_id}
    assert report.shards[1].path is None
    assert report.state == "repairable"
    files.assert_decodes()
    repaired = {shard.index: Path(shard.path).read_bytes() for shard in files.repair().repaired}
    assert repaired == {index: files.original[str(files.paths[index])] for index in (0, 1, 2)}
    assert files.verify().state == "intact"


def test_shard_without_one_sound_frame_is_known_by_its_name(files: FileSet) -> None:
    files.paths[1].write_bytes(b"")
    files.paths[4].write_bytes(random_bytes(len(files.original[str(files.paths[4])])))
    report = files.verify()
    assert report.state == "repairable"
    assert report.shards[1].path == str(files.paths[1])
    assert report.shards[1].missing == report.stripes
    assert report.shards[4].damaged == report.stripes
    files.repair()
    files.assert_original()


def test_other_files_are_left_alone(files: FileSet, tmp_path: Path) -> None:
    (files.directory / "notes.txt").write_text("hello")
    (files.directory / "sub").mkdir()
    os.mkfifo(files.directory / "fifo")
    (files.directory / "dangling").symlink_to(tmp_path / "nowhere")
    report = files.verify()
    assert report.state == "intact"
    assert set(strays(report)) == {"notes.txt"}
    assert files.verify().shards[0].notes == ()


def test_symbolic_links_to_shards(files: FileSet, tmp_path: Path) -> None:
    for path in files.paths:
        (tmp_path / "links").mkdir(exist_ok=True)
        (tmp_path / "links" / path.name).symlink_to(path)
    files.assert_decodes(paths=tmp_path / "links")


def test_places_that_are_gone_are_named(files: FileSet, tmp_path: Path) -> None:
    data, report = files.decode(paths=[files.directory, tmp_path / "gone"])
    assert data == files.data
    assert strays(report) == {"gone": "No such file or directory"}
    with pytest.raises(ShardSetError, match="gone: No such file or directory"):
        files.decode(paths=[tmp_path / "gone"])
    with pytest.raises(ShardSetError, match="no shard"):
        files.decode(paths=[])


def test_conflicting_metadata_is_refused(files: FileSet) -> None:
    from gfcode.pipeline.frame import HEADER_BYTES, XXH3, seal

    frame = bytearray(files.original[str(files.paths[2])][:4096])
    at = frame.index(b'"name": "file"', HEADER_BYTES)
    frame[at : at + 14] = b'"name": "evil"'
    seal(frame, XXH3)
    files.change(2, 0, bytes(frame))
    with pytest.raises(ShardSetError, match="different metadata"):
        files.verify()
    files.assert_decodes(paths=[path for index, path in enumerate(files.paths) if index != 2])


def test_temporary_files_count_only_if_needed(files: FileSet) -> None:
    hidden = files.directory / temporary_name("file.000.gfs")
    shutil.copy(files.paths[0], hidden)
    report = files.verify()
    assert strays(report) == {hidden.name: "unfinished, or left behind by an interrupted run"}
    # An interrupted run gave no shard but one its name.
    for path in files.paths[1:]:
        path.rename(path.with_name(temporary_name(path.name)))
    files.assert_decodes()
    assert files.repair().repaired == ()


def test_unknown_format_version_is_named(files: FileSet) -> None:
    for shard in range(5):
        files.change(shard, 24, b"\x02\x00")
    with pytest.raises(ShardFormatError, match="format version 2 is not known to this release, which reads version 1"):
        files.verify()
    with pytest.raises(ShardFormatError, match="format version 2"):
        inspect_shard(files.paths[0])


def test_inspect(files: FileSet) -> None:
    info = inspect_shard(files.paths[3])
    assert (info.index, info.metadata["k"], info.metadata["m"]) == (3, 3, 2)
    assert info.file_length == info.expected_length == len(files.original[str(files.paths[3])])
    assert info.to_json()["hash_name"] == "xxh3-128"
