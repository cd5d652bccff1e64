"""Metadata: read back as written; and from hostile bytes nothing but a typed error."""

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gfcode.codec import Codec
from gfcode.errors import ParameterError, ShardFormatError
from gfcode.pipeline import inspect_shard
from gfcode.pipeline.frame import XXH3, FrameHeader, seal
from gfcode.pipeline.metadata import Metadata, check_file_name, describe, parity_digest, parse_metadata
from gfcode.pipeline.probe import read_metadata
from gfcode.pipeline.report import FrameStatus
from tests.unit.shard_files import make_set, random_bytes


def metadata_of(codec: Codec, **changes: Any) -> Metadata:
    fields: dict[str, Any] = {
        "set_id": bytes(range(16)), "name": "name", "size": 5, "mode": 0o644, "mtime_ns": -1, "block_length": 64_512,
        "checksum": XXH3, "tool": "test", **changes,
    }  # fmt: skip
    return describe(codec, **fields)


@pytest.fixture(scope="module")
def fields() -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(metadata_of(Codec(3, 2)).text)
    return parsed


@pytest.mark.parametrize("name", ["plain", 'ü\u2028\n"\\', "\udcff\udc80", "x" * 255])
def test_round_trip(name: str) -> None:
    codec = Codec(4, 3, 16, matrix="cauchy", layout="words")
    metadata = metadata_of(codec, name=name, size=None, mode=None, mtime_ns=None)
    assert parse_metadata(metadata.text) == metadata
    assert (metadata.name, metadata.size, metadata.w, metadata.family) == (name, None, 16, "cauchy")
    again = metadata.codec()
    assert again.parity == codec.parity
    assert again.layout == codec.layout


def test_every_shard_has_the_same_text_and_its_own_number() -> None:
    metadata = metadata_of(Codec(3, 2))
    frames = [metadata.frame(shard) for shard in range(5)]
    assert len({frame[512:] for frame in frames}) == 1
    assert len({frame[:8] + frame[24:48] + frame[52:] for frame in frames}) == 1
    assert [int.from_bytes(frame[48:52], "little") for frame in frames] == list(range(5))


def test_large_matrix_is_named_by_family_and_digest() -> None:
    codec = Codec(150, 100, 16, matrix="cauchy", layout="words")
    metadata = metadata_of(codec, block_length=6400)
    assert metadata.parity is None
    assert metadata.digest == parity_digest(codec.parity.values)
    assert metadata.frame_length == 4096
    assert metadata.codec().parity == codec.parity
    text = metadata.text.replace(metadata.digest.encode(), b"0" * 32)
    with pytest.raises(ShardFormatError, match="another 'cauchy' matrix"):
        parse_metadata(text).codec()


def test_large_explicit_matrix_is_kept_whole(tmp_path: Path) -> None:
    parity = Codec(150, 100, 16, matrix="cauchy", layout="words").parity.values
    files = make_set(tmp_path, random_bytes(30_000), 150, 100, w=16, layout="words", matrix=parity, frame=1024)
    assert read_metadata(str(files.paths[0]))[0].frame_length > 64 * 1024
    files.remove(*range(100))
    files.assert_decodes()


def test_uncertified_matrix_is_refused(fields: dict[str, Any]) -> None:
    text = json.dumps({**fields, "parity": [[1, 1, 1], [1, 1, 2]], "family": "explicit"}).encode()
    with pytest.raises(ShardFormatError, match="names a code that cannot be used"):
        parse_metadata(text).codec()


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("format", [0, 2, "1", None, 1.0, True]),
        ("set", ["", "00", "zz" * 16, 5, None, "0" * 33]),
        ("name", [None, 5, ["x"], "x" * 5000]),
        ("size", [-1, 2**63, 10**400, 1.5, "5", True]),
        ("mode", [-1, 0o10000, 1.0, "644"]),
        ("mtime_ns", [2**63, -(2**63) - 1, "0"]),
        ("k", [0, -1, 65_537, 10**30, None, 3.0, 4, 2]),
        ("m", [-1, 65_536, 10**30, None, 3, 1]),
        ("w", [0, 17, 31, 64, 10**9, None]),
        ("polynomial", [0, 255, 512, None, 10**30]),
        ("layout", ["", "word", 5, None]),
        ("packet_bytes", [-1, 0, 12, 10**12, None]),
        ("block_length", [0, -512, 100, 511, 2**22, 2**63, 10**40, None]),
        ("hash", ["md5", None, 5]),
        ("family", [None, 7, "x" * 65]),
        ("parity", [None, 5, [], [[1, 2, 3]], [[1, 2], [3, 4]], [[1, 1, 1], [1, 2, 256]], [[1, 1, 1], [1, 2, "4"]],
                    [[1, 1, 1], [1, 2, -4]], [[1, 1, 1], [1, 2, True]]]),
    ],
)  # fmt: skip
def test_bad_values_are_refused(fields: dict[str, Any], key: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(ShardFormatError):
            parse_metadata(json.dumps({**fields, key: value}).encode())
    missing = {name: value for name, value in fields.items() if name != key}
    if key not in {"size", "mode", "mtime_ns"}:
        with pytest.raises(ShardFormatError):
            parse_metadata(json.dumps(missing).encode())


def test_unknown_keys_are_ignored_and_version_is_named(fields: dict[str, Any]) -> None:
    assert parse_metadata(json.dumps({**fields, "later": [1, {"x": None}]}).encode()).k == 3
    with pytest.raises(ShardFormatError, match="format version 7 is not known to this release, which reads version 1"):
        parse_metadata(json.dumps({**fields, "format": 7}).encode())


@pytest.mark.parametrize(
    "text",
    [
        b"", b"{", b"[]", b"null", b"5", b"\xff\xfe", b'{"format": NaN}', b'{"format": Infinity}',
        b"[" * 100_000, b'{"a":' * 50_000, b'{"format": ' + b"9" * 5000 + b"}", b'{"format": 1e999}',
    ],
)  # fmt: skip
def test_text_that_is_no_metadata(text: bytes) -> None:
    with pytest.raises(ShardFormatError):
        parse_metadata(text)


def test_stripe_of_many_shards_is_bounded(fields: dict[str, Any]) -> None:
    big = {**fields, "k": 40_000, "m": 2, "w": 16, "polynomial": 0x1100B, "block_length": 2**20, "packet_bytes": 64}
    del big["parity"]
    with pytest.raises(ShardFormatError, match="block length"):
        parse_metadata(json.dumps({**big, "parity_digest": "0" * 32}).encode())


def header_only(tmp_path: Path, **fields: int) -> Path:
    """Write a file that is one frame with a right checksum."""
    values = {"flags": 1, "shard": 0, "k": 3, "m": 2, "w": 8, "stripe": 0, "block": 3584, "data": 10, **fields}
    header = FrameHeader(
        values["flags"], bytes(16), values["shard"], values["k"], values["m"], values["w"], values["stripe"],
        values["block"], values["data"],
    )  # fmt: skip
    frame = bytearray(4096)
    frame[:512] = header.pack()
    seal(frame, XXH3)
    path = tmp_path / "shard"
    path.write_bytes(frame)
    return path


@pytest.mark.parametrize(
    "fields_",
    [{}, {"flags": 0}, {"stripe": 1}, {"block": 2**63}, {"block": 2**64 - 512}, {"block": 2**24}, {"block": 7680},
     {"block": 0}, {"data": 2**64 - 1}, {"data": 3585}, {"data": 0}],
)  # fmt: skip
def test_hostile_metadata_frames(tmp_path: Path, fields_: dict[str, int]) -> None:
    with pytest.raises(ShardFormatError):
        inspect_shard(header_only(tmp_path, **fields_))


def test_header_that_contradicts_the_text(tmp_path: Path) -> None:
    files = make_set(tmp_path, b"abc", 3, 2)
    # shard 8 of 5, k = 4, m = 1, w = 12, another set id
    for at, change in ((48, 8), (52, 7), (56, 3), (60, 4), (32, 99)):
        frame = bytearray(files.original[str(files.paths[0])][:4096])
        frame[at] ^= change
        seal(frame, XXH3)
        files.change(0, 0, bytes(frame))
        with pytest.raises(ShardFormatError, match="contradicts itself"):
            inspect_shard(files.paths[0])
        files.assert_decodes()


def test_slack_of_the_metadata_frame_is_checked(tmp_path: Path) -> None:
    files = make_set(tmp_path, b"abc", 3, 2)
    frame = bytearray(files.original[str(files.paths[0])][:4096])
    frame[4000] = 1
    seal(frame, XXH3)
    files.change(0, 0, bytes(frame))
    assert files.verify().shards[0].metadata is FrameStatus.CHECKSUM
    files.repair()
    files.assert_original()


def test_file_names() -> None:
    for name in ("a", " ", "...", "-", "\n", "\udcff"):
        assert check_file_name(name) == name
    for name in ("", ".", "..", "/", "a/b", "a\0"):
        with pytest.raises(ParameterError):
            check_file_name(name)


def test_random_bytes_in_the_text(fields: dict[str, Any]) -> None:
    text = json.dumps(fields).encode()
    rng = np.random.default_rng(4)
    for _ in range(3000):
        bad = bytearray(text)
        for at in rng.integers(0, len(bad), rng.integers(1, 4)):
            bad[at] = rng.integers(0, 256)
        with contextlib.suppress(ShardFormatError):
            assert len(parse_metadata(bytes(bad)).frame(0)) == 4096
