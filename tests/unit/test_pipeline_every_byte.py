"""One byte flipped at every offset of a shard, one at a time: found at its place, never wrong bytes, repaired."""

import io
from pathlib import Path

import pytest

from gfcode.errors import UnrecoverableError
from gfcode.pipeline import decode_file, repair_set, verify_set
from gfcode.pipeline.report import FrameStatus
from tests.unit.shard_files import FileSet, make_set, random_bytes

K, M = 2, 1


@pytest.fixture
def files(tmp_path: Path) -> FileSet:
    # Two stripes: a full block of 64 bytes, and a last one of 64 with 37 bytes of slack in all.
    return make_set(tmp_path, random_bytes(2 * 64 + 91), K, M, frame=576, layout="words")


def check_flip(files: FileSet, shard: int, at: int) -> None:
    path = files.paths[shard]
    sound = files.original[str(path)]
    broken = bytearray(sound)
    broken[at] ^= 1 << (at % 8)
    path.write_bytes(broken)
    out = io.BytesIO()
    decode_file(files.directory, out, threads=1)
    assert out.getvalue() == files.data, at
    fixed = repair_set(files.directory, durable=False, threads=1)
    report = fixed.before
    assert report.state == "repairable", at
    assert [item.index for item in report.shards if not item.intact] == [shard], at
    if at < 4096:
        assert report.shards[shard].metadata is FrameStatus.CHECKSUM, at
        assert not report.damage.any(), at
    else:
        assert report.shards[shard].metadata is FrameStatus.GOOD, at
        places = [(int(s), int(t)) for s, t in zip(*report.damage.nonzero(), strict=True)]
        assert places == [(shard, (at - 4096) // 576)], at
        assert report.damage[places[0]] == FrameStatus.CHECKSUM, at
    assert [item.index for item in fixed.repaired] == [shard], at
    assert path.read_bytes() == sound, at


def test_every_byte_of_a_data_shard(files: FileSet) -> None:
    sound = files.original[str(files.paths[0])]
    assert len(sound) == 4096 + 2 * 576
    text_end = sound.index(b"\n}\n", 512) + 3
    for at in (*range(text_end), *range(4096, len(sound))):
        check_flip(files, 0, at)
    # The zeros behind the metadata text are all alike: reading tells for each, repairing for some.
    for at in range(text_end, 4096):
        if at % 16 == 0:
            check_flip(files, 0, at)
        files.change(0, at)
        report = verify_set(files.directory, threads=1)
        assert [item.index for item in report.shards if not item.intact] == [0], at
        assert report.shards[0].metadata is FrameStatus.CHECKSUM, at
        files.change(0, at)
    assert verify_set(files.directory).state == "intact"


def test_every_byte_of_the_frames_of_a_parity_shard(files: FileSet) -> None:
    for at in (*range(0, 4096, 61), *range(4096, 4096 + 2 * 576)):
        check_flip(files, 2, at)


def test_every_byte_of_a_parity_frame_that_is_needed(files: FileSet) -> None:
    # Without shard 0, one bad byte in parity is beyond repair: an error, and not one wrong byte.
    files.remove(0)
    path = files.paths[2]
    broken = bytearray(files.original[str(path)])
    for at in range(4096, len(broken)):
        broken[at] ^= 0x10
        path.write_bytes(broken)
        broken[at] ^= 0x10
        out = io.BytesIO()
        with pytest.raises(UnrecoverableError, match=f"1 of 2 stripes .*stripe {(at - 4096) // 576}"):
            decode_file(files.directory, out, threads=1)
        assert out.getvalue() == b"", at  # both stripes are in one batch


def test_every_cut(files: FileSet) -> None:
    path = files.paths[1]
    sound = files.original[str(path)]
    for length in (*range(0, 4096, 97), *range(4096, len(sound), 13)):
        path.write_bytes(sound[:length])
        report = verify_set(files.directory, threads=1)
        assert [item.index for item in report.shards if not item.intact] == [1], length
        assert report.shards[1].missing == 2 - max(0, length - 4096) // 576
        assert report.state == "repairable"
        repair_set(files.directory, durable=False, threads=1)
        assert path.read_bytes() == sound, length


@pytest.mark.parametrize("extra", [1, 511, 512, 576, 5000])
def test_extended(files: FileSet, extra: int) -> None:
    path = files.paths[0]
    for junk in (bytes(extra), random_bytes(extra), files.original[str(path)][-576:] * 9):
        with path.open("ab") as file:
            file.write(junk[:extra])
        report = verify_set(files.directory)
        assert report.state == "repairable"
        assert report.shards[0].trailing == min(extra, len(junk))
        assert not report.damage.any()
        files.assert_decodes()
        files.repair()
        files.assert_original()
