"""The format version: readers of version 1 refuse what is newer, with a clear line, and touch nothing."""

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gfcode
from gfcode.errors import ShardFormatError
from gfcode.pipeline import inspect_shard
from gfcode.pipeline.frame import HEADER_BYTES, XXH3, seal
from tests.unit.shard_files import SMALL_FRAME, FileSet, make_set, random_bytes

LINE = "format version 2 is not known to this release, which reads version 1"


def renew(shard: bytes, metadata: bool, frames: bool) -> bytes:
    """Make frames of version 2, checksums right: of another meaning, for all that version 1 knows."""
    changed = bytearray(shard)
    if metadata:
        text = changed[HEADER_BYTES:4096].replace(b'"format": 1', b'"format": 2')
        changed[HEADER_BYTES:4096] = text
    places = ([(0, 4096)] if metadata else []) + [
        (at, min(at + SMALL_FRAME, len(changed))) for at in range(4096, len(changed), SMALL_FRAME) if frames
    ]
    for start, stop in places:
        changed[start + 24 : start + 26] = (2).to_bytes(2, "little")
        with memoryview(changed)[start:stop] as frame:
            seal(frame, XXH3)
    return bytes(changed)


@pytest.fixture
def files(tmp_path: Path) -> FileSet:
    return make_set(tmp_path, random_bytes(7000))


def rewrite(files: FileSet, shards: range, **what: bool) -> dict[str, bytes]:
    for shard in shards:
        files.paths[shard].write_bytes(renew(files.paths[shard].read_bytes(), **what))
    return {path.name: path.read_bytes() for path in files.directory.iterdir()}


READERS: dict[str, Callable[[FileSet], Any]] = {
    "decode": lambda files: gfcode.decode_file(files.directory, io.BytesIO()),
    "open": lambda files: gfcode.open_set(files.directory),
    "verify": lambda files: gfcode.verify_set(files.directory),
    "repair": lambda files: gfcode.repair_set(files.directory, durable=False),
    "inspect": lambda files: inspect_shard(files.paths[0]),
    "stream": lambda files: gfcode.decode_stream(
        [io.BytesIO(path.read_bytes()) for path in files.paths], io.BytesIO()
    ),
}  # fmt: skip


@pytest.mark.parametrize("reader", READERS)
def test_a_newer_set_is_refused_with_one_line(reader: str, files: FileSet) -> None:
    before = rewrite(files, range(5), metadata=True, frames=True)
    with pytest.raises(ShardFormatError, match=LINE) as caught:
        READERS[reader](files)
    assert "\n" not in str(caught.value)
    assert {path.name: path.read_bytes() for path in files.directory.iterdir()} == before


def test_newer_metadata_in_frames_of_version_1_is_refused(files: FileSet) -> None:
    for shard in range(5):
        content = bytearray(files.paths[shard].read_bytes())
        content[HEADER_BYTES:4096] = content[HEADER_BYTES:4096].replace(b'"format": 1', b'"format": 2')
        with memoryview(content)[:4096] as frame:
            seal(frame, XXH3)
        files.paths[shard].write_bytes(content)
    with pytest.raises(ShardFormatError, match=LINE):
        gfcode.decode_file(files.directory, io.BytesIO())


def test_newer_shards_and_frames_among_others_count_as_lost(files: FileSet) -> None:
    rewrite(files, range(1), metadata=True, frames=True)
    rewrite(files, range(1, 2), metadata=False, frames=True)
    files.assert_decodes()
    with gfcode.open_set(files.directory) as reader:
        assert reader.read() == files.data
    rewrite(files, range(2, 3), metadata=False, frames=True)
    with pytest.raises(gfcode.UnrecoverableError):
        gfcode.decode_file(files.directory, io.BytesIO())


def test_unknown_fields_of_metadata_are_ignored(files: FileSet) -> None:
    for path in files.paths:
        content = bytearray(path.read_bytes())
        end = content.index(b"\n}\n", HEADER_BYTES)
        content[end : end + 3] = b',\n  "later": {"anything": [1, 2]}\n}\n'
        del content[4096 : 4096 + len(content) - os.stat(path).st_size]  # zeros that pad the frame
        content[80:88] = (content.index(b"\n}\n", HEADER_BYTES) + 3 - HEADER_BYTES).to_bytes(8, "little")
        with memoryview(content)[:4096] as frame:
            seal(frame, XXH3)
        path.write_bytes(content)
    files.assert_decodes()


def test_the_policy_names_what_there_is() -> None:
    page = (Path(__file__).parents[2] / "docs/stability.md").read_text(encoding="utf-8")
    assert LINE in page
    for name in gfcode.errors.__all__:
        error = getattr(gfcode, name)
        assert issubclass(error, gfcode.GFCodeError)
        assert error.__doc__
