"""Repair: any mix of damage, byte for byte; never worse than before; new shards at sensible places."""

import os
import random
from pathlib import Path
from typing import Any

import pytest

from gfcode.errors import ParameterError, ShardSetError, TargetExistsError, UnrecoverableError
from gfcode.pipeline import decode_file, repair_set, verify_set
from gfcode.pipeline.frame import HEADER_BYTES, XXH3, seal
from gfcode.pipeline.report import FrameStatus
from tests.unit.shard_files import FileSet, make_set, random_bytes


@pytest.fixture
def files(tmp_path: Path) -> FileSet:
    return make_set(tmp_path, random_bytes(3 * 512 * 60 + 9), 3, 2, frame=1024)


def resealed(files: FileSet, shard: int, stripe: int, **fields: tuple[int, bytes]) -> None:
    """Change bytes of a frame and make its checksum right again."""
    path = str(files.paths[shard])
    at = files.offset(stripe)
    frame = bytearray(files.original[path][at : at + files.report.frame_length])
    for offset, new in fields.values():
        frame[offset : offset + len(new)] = new
    seal(frame, XXH3)
    files.change(shard, at, bytes(frame))


def test_damage_in_all_shards_at_once(files: FileSet) -> None:
    rng = random.Random(3)
    for stripe in range(61):
        for shard in rng.sample(range(5), 2):
            files.change(shard, files.offset(stripe) + rng.randrange(1024 if stripe < 60 else 576))
    report = files.verify()
    assert report.state == "repairable"
    assert (report.damage != FrameStatus.GOOD).sum(axis=0).tolist() == [2] * 61
    files.assert_decodes()
    fixed = files.repair()
    assert [shard.index for shard in fixed.repaired] == [0, 1, 2, 3, 4]
    assert sum(shard.rebuilt_stripes for shard in fixed.repaired) == 122
    assert not any(shard.created for shard in fixed.repaired)
    files.assert_original()


def test_missing_truncated_extended_rotten_together(files: FileSet) -> None:
    files.remove(0)
    os.truncate(files.paths[1], files.offset(30) + 99)
    with files.paths[2].open("ab") as file:
        file.write(b"tail")
    files.change(3, files.offset(5) + 700)
    files.change(4, 600)
    report = files.verify()
    assert [shard.missing for shard in report.shards] == [61, 31, 0, 0, 0]
    assert [shard.damaged for shard in report.shards] == [0, 0, 0, 1, 0]
    assert report.shards[2].trailing == 4
    assert report.shards[4].metadata is FrameStatus.CHECKSUM
    assert report.state == "repairable"
    assert report.summary() == "5 of 5 shards of 'file' can be repaired: 0, 1, 2, 3, 4"
    fixed = files.repair()
    assert [shard.created for shard in fixed.repaired] == [True, False, False, False, False]
    assert fixed.bytes_written == 5 * len(next(iter(files.original.values())))
    files.assert_original()
    assert files.repair().repaired == ()


def test_every_kind_of_bad_frame_is_named(files: FileSet, tmp_path: Path) -> None:
    other = make_set(tmp_path / "other", files.data, 3, 2, frame=1024)
    foreign = other.original[str(other.paths[0])]
    own = {shard: files.original[str(path)] for shard, path in enumerate(files.paths)}
    at = files.offset
    last = 3 * 512 * 60 + 9 - 60 * 1536
    files.change(0, at(1), foreign[at(1) : at(2)])
    files.change(0, at(2), own[3][at(2) : at(3)])  # of another shard
    files.change(0, at(3), own[0][at(4) : at(5)])  # of another stripe
    files.change(0, at(5), bytes(1024))
    resealed(files, 0, 6, k=(52, b"\x04"))
    resealed(files, 0, 7, data_length=(80, b"\x01\x00"))
    resealed(files, 0, 8, flags=(28, b"\x02"))
    resealed(files, 0, 9, version=(24, b"\x02"))
    resealed(files, 0, 60, slack=(HEADER_BYTES + last, b"\x01"))
    files.change(0, at(61), b"more")
    expected = {
        1: FrameStatus.FOREIGN, 2: FrameStatus.MISPLACED, 3: FrameStatus.MISPLACED, 5: FrameStatus.CHECKSUM,
        6: FrameStatus.FIELDS, 7: FrameStatus.FIELDS, 8: FrameStatus.FIELDS, 9: FrameStatus.CHECKSUM,
        60: FrameStatus.SLACK,
    }  # fmt: skip
    report = files.verify()
    row = report.damage[0]
    assert {stripe: FrameStatus(int(row[stripe])) for stripe in row.nonzero()[0].tolist()} == expected
    assert not report.damage[1:].any()
    assert report.to_json()["damage"]["0"][:3] == [[1, 1, "foreign"], [2, 3, "misplaced"], [5, 5, "checksum"]]
    files.assert_decodes()
    files.repair()
    files.assert_original()


def test_slack_is_checked_where_all_else_is_good(files: FileSet) -> None:
    last = 3 * 512 * 60 + 9 - 60 * 1536
    resealed(files, 0, 60, slack=(HEADER_BYTES + last, b"\x01"))
    resealed(files, 2, 60, slack=(HEADER_BYTES + 511, b"\x80"))  # all of this block is slack
    report = files.verify()
    assert report.damage[:, 60].tolist() == [FrameStatus.SLACK, 0, FrameStatus.SLACK, 0, 0]
    assert not report.damage[:, :60].any()
    files.assert_decodes()
    files.repair()
    files.assert_original()


def test_blocks_swapped_inside_and_between_shards(files: FileSet) -> None:
    own = [files.original[str(path)] for path in files.paths]
    a, b, c = files.offset(10), files.offset(20), files.offset(30)
    files.change(1, a, own[1][b : b + 1024])
    files.change(1, b, own[1][a : a + 1024])
    files.change(2, c, own[4][c : c + 1024])
    files.change(4, c, own[2][c : c + 1024])
    assert (files.verify().damage == FrameStatus.MISPLACED).sum() == 4
    files.assert_decodes()
    files.repair()
    files.assert_original()


@pytest.mark.parametrize("where", ["one stripe", "files", "metadata and files"])
def test_beyond_repair_is_left_untouched(files: FileSet, where: str) -> None:
    files.change(4, files.offset(2) + 600)
    if where == "one stripe":
        for shard in (0, 1, 2):
            files.change(shard, files.offset(33) + 600)
    else:
        files.remove(0, 1, 2)
        if where == "metadata and files":
            files.change(3, 600)
    before = {path: (path.read_bytes(), path.stat().st_ino) for path in files.directory.iterdir()}
    report = files.repair()
    assert report.state == report.before.state == "beyond repair"
    assert report.repaired == ()
    assert report.before.stripes_beyond_repair.tolist() == ([33] if where == "one stripe" else list(range(61)))
    assert {path: (path.read_bytes(), path.stat().st_ino) for path in files.directory.iterdir()} == before
    with pytest.raises(UnrecoverableError):
        files.decode()


def test_repair_elsewhere_leaves_the_originals(files: FileSet, tmp_path: Path) -> None:
    files.remove(0)
    files.change(3, files.offset(7) + 600)
    before = {path: path.read_bytes() for path in files.directory.iterdir()}
    out = tmp_path / "rescued"
    report = repair_set(files.directory, out=out, durable=False)
    assert {path: path.read_bytes() for path in files.directory.iterdir()} == before
    assert {path.name: path.read_bytes() for path in out.iterdir()} == {
        Path(path).name: content for path, content in files.original.items() if path[-5] in "03"
    }
    assert [shard.path for shard in report.repaired] == [str(out / "file.000.gfs"), str(out / "file.003.gfs")]
    (out / "file.000.gfs").write_text("another's")
    with pytest.raises(TargetExistsError, match=r"file\.000\.gfs exists"):
        repair_set(files.directory, out=out, durable=False)
    (out / "file.000.gfs").unlink()
    repair_set(files.directory, out=out, durable=False)
    assert verify_set([files.directory, out]).shards[0].intact


def test_failed_repair_elsewhere_leaves_no_directory(files: FileSet, tmp_path: Path) -> None:
    for shard in (0, 1, 2):
        files.change(shard, files.offset(33) + 600)
    files.change(3, files.offset(2) + 600)
    assert repair_set(files.directory, out=tmp_path / "out", durable=False).repaired == ()
    assert not (tmp_path / "out").exists()


def test_new_shards_follow_the_round_robin(tmp_path: Path) -> None:
    out = [tmp_path / name for name in "abc"]
    files = make_set(tmp_path, random_bytes(9_000), 5, 3, out=out)
    files.remove(1, 5, 6)
    repair_set(out, durable=False)
    files.assert_original()
    files.remove(2, 3, 7)
    # Without the directories, by their files alone.
    repair_set([path for path in files.paths if path.exists()], durable=False)
    files.assert_original()


def test_new_shards_go_where_few_are(tmp_path: Path) -> None:
    out = [tmp_path / f"d{index}" for index in range(8)]
    files = make_set(tmp_path, random_bytes(9_000), 5, 3, out=out)
    files.remove(2, 5, 6)
    # An order that is not the one in which the shards were dealt out: the empty directories get one each.
    report = repair_set(sorted(out, key=str, reverse=True), durable=False)
    assert {Path(shard.path).parent for shard in report.repaired} == {out[2], out[5], out[6]}
    assert {Path(shard.path).name for shard in report.repaired} == {f"file.00{index}.gfs" for index in (2, 5, 6)}


def test_permissions_are_kept(files: FileSet) -> None:
    for path in files.paths:
        path.chmod(0o640)
    files.remove(0)
    files.change(1, files.offset(2) + 600)
    files.repair()
    assert {path.stat().st_mode & 0o7777 for path in files.paths} == {0o640}


def test_misnamed_and_damaged_is_repaired_where_it_is(files: FileSet) -> None:
    odd = files.directory / "odd name"
    files.paths[2].rename(odd)
    files.paths[2] = odd
    files.change(2, files.offset(2) + 600)
    assert files.repair().repaired[0].path == str(odd)
    assert odd.read_bytes() == files.original[str(files.directory / "file.002.gfs")]


def test_symbolic_link_is_replaced_and_its_target_kept(files: FileSet, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    files.paths[0].rename(target)
    files.paths[0].symlink_to(target)
    with target.open("r+b") as file:
        file.seek(files.offset(1) + 600)
        file.write(b"damage")
    rotten = target.read_bytes()
    files.repair()
    assert not files.paths[0].is_symlink()
    assert target.read_bytes() == rotten
    files.assert_original()


def test_repaired_shard_that_does_not_verify_changes_nothing(files: FileSet, monkeypatch: pytest.MonkeyPatch) -> None:
    files.change(2, files.offset(2) + 600)
    before = {path: path.read_bytes() for path in files.directory.iterdir()}
    real = os.fsync

    def spoil(fd: int) -> None:
        os.pwrite(fd, b"\xff" * 8, files.offset(40) + 600)
        real(fd)

    monkeypatch.setattr(os, "fsync", spoil)
    with pytest.raises(ShardSetError, match="shard 2 does not verify after its repair; nothing was changed"):
        repair_set(files.directory)
    assert {path: path.read_bytes() for path in files.directory.iterdir()} == before


def test_device_errors_are_erasures(files: FileSet, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = files.paths[1].stat().st_ino
    real = os.preadv

    def failing(fd: int, buffers: Any, at: int) -> int:
        wanted = range(at, at + sum(map(len, buffers)))
        if os.fstat(fd).st_ino == bad and files.offset(7) + 9 in wanted:
            raise OSError(5, "Input/output error")
        return real(fd, buffers, at)

    monkeypatch.setattr(os, "preadv", failing)
    report = files.verify()
    assert FrameStatus(int(report.damage[1, 7])) is FrameStatus.UNREADABLE
    assert (report.damage != 0).sum() == 1
    files.assert_decodes()
    assert [shard.index for shard in files.repair().repaired] == [1]
    files.assert_original()


def test_hostile_name_in_metadata(files: FileSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for shard in range(5):
        head = bytearray(files.original[str(files.paths[shard])][:4096])
        at = head.index(b'"name": "file"')
        end = head.index(b"\n}\n") + 3
        text = bytes(head[512:end]).replace(b'"name": "file"', b'"name": "../up"')
        head[512:] = text.ljust(4096 - 512, b"\0")
        head[80:88] = len(text).to_bytes(8, "little")
        seal(head, XXH3)
        assert at
        files.change(shard, 0, bytes(head))
    inside = tmp_path / "cwd"
    inside.mkdir()
    monkeypatch.chdir(inside)
    with pytest.raises(ParameterError, match=r"'../up' is not the name of a file"):
        decode_file(files.directory)
    files.remove(1)
    with pytest.raises(ParameterError, match=r"'../up' is not the name of a file"):
        files.repair()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cwd", "shards"]
    decode_file(files.directory, inside / "out", durable=False)
    assert (inside / "out").read_bytes() == files.data
