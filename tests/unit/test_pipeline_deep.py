"""Deep checks: what was computed wrongly and sealed rightly, located where spare frames tell, and said where not."""

from pathlib import Path

import pytest

from gfcode.pipeline import repair_set, verify_set
from gfcode.pipeline.frame import HEADER_BYTES, XXH3, seal
from gfcode.pipeline.report import FrameStatus
from tests.unit.shard_files import FileSet, make_set, random_bytes

STRIPES = 40


def sealed_change(files: FileSet, shard: int, stripe: int, at: int = 0, length: int = 1) -> None:
    """Change bytes of a block and make the checksum right again, as a machine with bad memory would have written it."""
    path = files.paths[shard]
    content = bytearray(path.read_bytes())
    start, end = files.offset(stripe), min(files.offset(stripe + 1), len(content))
    for offset in range(start + HEADER_BYTES + at, start + HEADER_BYTES + at + length):
        content[offset] ^= 0x5A
    seal(memoryview(content)[start:end], XXH3)
    path.write_bytes(content)


def built(tmp_path: Path, k: int = 3, m: int = 2, w: int = 8, layout: str = "packets") -> FileSet:
    block = 1024
    data = random_bytes(k * block * STRIPES - 700)
    return make_set(tmp_path, data, k, m, frame=HEADER_BYTES + block, w=w, layout=layout)


@pytest.mark.parametrize(("w", "layout"), [(8, "packets"), (16, "words"), (4, "packets"), (32, "words")])
@pytest.mark.parametrize("shard", [0, 2, 3, 4])
def test_one_wrong_frame_of_a_stripe_is_located_and_restored(tmp_path: Path, w: int, layout: str, shard: int) -> None:
    files = built(tmp_path, w=w, layout=layout)
    stripes = [0, 7, 8, STRIPES - 1]
    for stripe in stripes:
        sealed_change(files, shard, stripe, 3, 1 + stripe)
    assert files.verify().state == "intact"
    report = files.verify(deep=True)
    assert (report.state, report.parity_checked, report.stripes_in_doubt.size) == ("repairable", STRIPES, 0)
    assert (report.damage != 0).sum() == len(stripes)
    assert {FrameStatus(int(report.damage[shard, stripe])) for stripe in stripes} == {FrameStatus.PARITY}
    assert report.to_json()["damage"][str(shard)][1] == [7, 8, "parity"]
    fixed = files.repair(deep=True)
    assert [item.index for item in fixed.repaired] == [shard]
    files.assert_original()
    assert files.verify(deep=True).state == "intact"


def test_intact_set_is_intact_deep_down(tmp_path: Path) -> None:
    for k, m, w, layout in ((1, 1, 8, "packets"), (5, 3, 8, "words"), (4, 2, 6, "packets")):
        files = built(tmp_path / f"{k}{w}", k, m, w, layout)
        report = files.verify(deep=True)
        assert (report.state, report.parity_checked) == ("intact", report.stripes)
        assert not report.damage.any()


def test_different_wrong_shards_in_different_stripes(tmp_path: Path) -> None:
    files = built(tmp_path)
    for stripe in range(STRIPES):
        sealed_change(files, stripe % 5, stripe)
    report = files.verify(deep=True, threads=3)
    assert (report.damage == FrameStatus.PARITY).sum() == STRIPES
    files.repair(deep=True)
    files.assert_original()


def test_two_wrong_shards_need_four_to_spare(tmp_path: Path) -> None:
    files = built(tmp_path, 3, 4)
    sealed_change(files, 1, 5, 0, 600)
    sealed_change(files, 6, 5, 300, 600)
    report = files.verify(deep=True)
    assert report.state == "repairable"
    assert [shard for shard in range(7) if report.damage[shard, 5]] == [1, 6]
    files.repair(deep=True)
    files.assert_original()


@pytest.mark.parametrize(("m", "wrong"), [(1, [0]), (1, [3]), (2, [0, 4]), (3, [1, 2])])
def test_what_cannot_be_located_is_said_and_left_alone(tmp_path: Path, m: int, wrong: list[int]) -> None:
    files = built(tmp_path, 3, m)
    for shard in wrong:
        sealed_change(files, shard, 5, 10 * shard, 50)
    files.change(0, files.offset(9) + 600)
    before = {path: path.read_bytes() for path in files.paths}
    report = files.verify(deep=True)
    assert (report.state, report.stripes_in_doubt.tolist()) == ("beyond repair", [5])
    assert report.summary() == (
        f"1 of {STRIPES} stripes of 'file' contradict themselves (stripe 5): checksums are right, parity is not, "
        f"and which shard is wrong cannot be told"
    )
    assert report.to_json()["stripes_in_doubt"] == {"count": 1, "ranges": [[5, 5]]}
    fixed = repair_set(files.directory, deep=True, durable=False)
    assert (fixed.state, fixed.repaired) == ("beyond repair", ())
    assert {path: path.read_bytes() for path in files.paths} == before


def test_losses_leave_fewer_frames_to_compare(tmp_path: Path) -> None:
    """With one shard gone a contradiction still shows; with as many gone as can be, nothing does."""
    files = built(tmp_path)
    files.remove(1)
    sealed_change(files, 0, 5)
    report = files.verify(deep=True)
    assert (report.state, report.stripes_in_doubt.tolist(), report.parity_checked) == ("beyond repair", [5], STRIPES)
    files.remove(2)
    report = files.verify(deep=True)
    assert (report.state, report.parity_checked) == ("repairable", 0)


def test_wrong_and_lost_frames_of_one_stripe(tmp_path: Path) -> None:
    files = built(tmp_path, 3, 3)
    sealed_change(files, 4, 5)
    files.change(0, files.offset(5) + 600)
    assert verify_set(files.directory, deep=True).state == "repairable"
    files.repair(deep=True)
    files.assert_original()


def test_empty_file(tmp_path: Path) -> None:
    files = make_set(tmp_path, b"")
    assert files.verify(deep=True).state == "intact"
