"""A fixed share of the hostile campaign, raw bytes for the parsers, and cases that are easily missed."""

import os
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gfcode.errors import GFCodeError, ParameterError, ShardFormatError, ShardSetError, UnrecoverableError
from gfcode.pipeline import decode_file, repair_set, verify_set
from gfcode.pipeline.discovery import find_set
from gfcode.pipeline.frame import XXH3, parse_header, seal
from gfcode.pipeline.metadata import parse_metadata
from gfcode.pipeline.probe import inspect_shard
from gfcode.pipeline.shardset import ShardSet
from tests.reliability.hostile import hostile_campaign, metadata_frame
from tests.unit.shard_files import FileSet, make_set

FIELDS = {
    "format": 1, "set": "0" * 32, "name": "file", "size": 3, "mode": None, "mtime_ns": None, "k": 2, "m": 1, "w": 8,
    "polynomial": 285, "layout": "packets", "packet_bytes": 64, "block_length": 512, "hash": "xxh3-128",
    "family": "powers", "parity": [[1, 1]],
}  # fmt: skip
OPTIONS = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_random_sets() -> None:
    counts = hostile_campaign(40, seed=1)
    assert sum(counts.values()) == 40
    assert len(counts) >= 3


@OPTIONS
@given(st.binary(max_size=600))
def test_raw_bytes_are_no_header(data: bytes) -> None:
    with pytest.raises(ShardFormatError):
        parse_header(data)


@OPTIONS
@given(st.binary(min_size=424, max_size=600), st.integers(0, 90))
def test_headers_of_raw_bytes(data: bytes, kept: int) -> None:
    header = b"GFSHARD1" + data[:16] + b"\1\0\1\0" + data[16 : 16 + kept] + bytes(600)
    try:
        parse_header(header[:512])
    except ShardFormatError:
        return


@OPTIONS
@given(st.dictionaries(st.sampled_from(sorted(FIELDS)), st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=3)
), max_size=4))  # fmt: skip
def test_metadata_of_any_json(tmp_path_factory: pytest.TempPathFactory, changes: dict[str, object]) -> None:
    path = tmp_path_factory.getbasetemp() / "shard"
    path.write_bytes(metadata_frame({**FIELDS, **changes}, 0, random.Random(0)))
    message = ""
    try:
        inspect_shard(path)
    except GFCodeError as error:
        message = str(error)
    assert "\n" not in message


@OPTIONS
@given(st.binary(max_size=300))
def test_raw_bytes_are_no_metadata(text: bytes) -> None:
    with pytest.raises(ShardFormatError):
        parse_metadata(text)


def lying(tmp_path: Path, **changes: object) -> Path:
    """Return a directory with the three shards of a set, of metadata only."""
    directory = tmp_path / "lying"
    directory.mkdir()
    for shard in range(3):
        frame = metadata_frame({**FIELDS, **changes}, shard, random.Random(0))
        (directory / f"file.{shard:03d}.gfs").write_bytes(frame)
    return directory


@pytest.mark.parametrize("size", [2**40, 2**62, 2**63 - 1])
def test_a_claim_of_far_more_stripes_than_there_are(tmp_path: Path, size: int) -> None:
    directory = lying(tmp_path, size=size)
    message = r"stripes of 'file' are beyond repair: fewer than 2 shards are long enough to hold stripe 1"
    for command in (verify_set, repair_set, lambda path: decode_file(path, tmp_path / "out")):
        with pytest.raises(UnrecoverableError, match=message):
            command(directory)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("size", [None, 14_558 * 64])
def test_a_map_of_damage_is_no_larger_than_its_files_warrant(tmp_path: Path, size: int | None) -> None:
    """One shard of 8 MiB, of 65,536 that the metadata claims: a byte for each of their frames would be 900 MiB."""
    text = {key: value for key, value in FIELDS.items() if key != "parity"}
    text |= {"k": 1, "m": 65_535, "w": 16, "polynomial": 0x1100B, "layout": "words", "packet_bytes": 0, "size": size}
    frame = metadata_frame({**text, "block_length": 64, "parity_digest": "0" * 32}, 0, random.Random(0))
    path = tmp_path / "file.000.gfs"
    path.write_bytes(frame)
    os.truncate(path, 8 << 20)
    for command in (verify_set, repair_set):
        with pytest.raises(ShardSetError, match=r"says that it has 65536 shards of 145.. stripes, of which"):
            command(path)


def test_a_claim_of_many_shards_makes_no_endless_message(tmp_path: Path) -> None:
    directory = lying(
        tmp_path, k=60_000, m=1, w=16, polynomial=0x1100B, layout="words", packet_bytes=0, block_length=64, parity=[],
    )  # fmt: skip
    with pytest.raises(GFCodeError):
        decode_file(directory, tmp_path / "out")
    text = {key: value for key, value in FIELDS.items() if key != "parity"}
    text |= {"k": 60_000, "w": 16, "polynomial": 0x1100B, "layout": "words", "packet_bytes": 0, "block_length": 64}
    frame = metadata_frame({**text, "parity_digest": "0" * 32}, 0, random.Random(0))
    (directory / "file.000.gfs").write_bytes(frame)
    with pytest.raises(UnrecoverableError) as caught:
        decode_file(directory / "file.000.gfs", tmp_path / "out")
    assert len(str(caught.value)) < 500
    assert "and 59976 more" in str(caught.value)


@pytest.fixture
def files(tmp_path: Path) -> FileSet:
    return make_set(tmp_path, b"content" * 1000)


def test_fifos_block_nothing(files: FileSet) -> None:
    files.remove(0)
    os.mkfifo(files.paths[0])
    os.mkfifo(files.directory / ".file.000.gfs.0123456789abcdef.tmp")
    os.mkfifo(files.directory / ".file.000-1.gfs.0123456789abcdef.tmp")
    files.assert_decodes()
    repaired = files.repair().repaired
    assert [Path(shard.path).name for shard in repaired] == ["file.000-1.gfs"]
    assert files.verify().state == "intact"


def test_files_swapped_while_a_set_is_looked_at(files: FileSet) -> None:
    found = find_set(files.directory)
    files.remove(0)
    os.mkfifo(files.paths[0])
    with ShardSet(found) as shards:
        assert shards.files[0] == []
    found = find_set(files.directory)
    files.remove(1)
    files.paths[1].symlink_to("/etc/hostname" if Path("/etc/hostname").exists() else files.paths[2])
    with pytest.raises(GFCodeError, match="was replaced while the set was looked at"), ShardSet(found):
        pass


def test_a_suggested_name_that_is_a_fifo_is_not_written_to(
    files: FileSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("file")
    reader = os.open("file", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(ParameterError, match="is no regular file; name the output"):
        decode_file(files.directory, force=True)
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_a_forged_frame_is_told_by_its_place(files: FileSet) -> None:
    frame = bytearray(files.original[str(files.paths[1])][4096:5632])
    seal(frame, XXH3)
    files.change(0, 4096, bytes(frame))
    files.assert_decodes()
    files.repair()
    files.assert_original()
