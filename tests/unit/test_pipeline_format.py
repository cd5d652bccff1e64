"""The bytes on disk are those of docs/format.md: read here by a second, independent reader."""

import hashlib
import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash

import gfcode
from gfcode.errors import ParameterError, ShardFormatError
from gfcode.gf import GF
from gfcode.params import Layout
from gfcode.pipeline import encode, encode_file
from gfcode.pipeline.frame import HEADER_BYTES, XXH3, FrameHeader, frame_hash, parse_header, seal
from gfcode.pipeline.layout import Geometry, block_length_for, block_multiple
from gfcode.pipeline.names import shard_index, shard_name
from tests.unit.shard_files import make_set, random_bytes


def by_the_book(shard: bytes) -> tuple[int, dict[str, Any], list[tuple[dict[str, Any], bytes]]]:
    """Read a shard as the document says; return its number, its metadata, and header and block of its frames."""
    frames = []
    at = 0
    while at < len(shard):
        magic, digest = struct.unpack_from("<8s16s", shard, at)
        names = ("version", "hash_id", "flags", "set", "shard", "k", "m", "w", "zero", "stripe", "block", "data")
        header = dict(zip(names, struct.unpack_from("<HHI16sIIIHHQQQ", shard, at + 24), strict=True))
        assert magic == b"GFSHARD1"
        end = at + 512 + header["block"]
        assert digest == xxhash.xxh3_128(shard[at + 24 : end]).digest()
        assert (header["version"], header["hash_id"], header["zero"]) == (1, 1, 0)
        assert shard[at + 88 : at + 512] == bytes(424)
        frames.append((header, shard[at + 512 : end]))
        at = end
    (first, text), *stripes = frames
    assert (first["flags"], first["stripe"]) == (1, 0)
    assert (512 + len(text)) % 4096 == 0
    assert text[first["data"] :].strip(b"\0") == b""
    assert text[first["data"] - 1 : first["data"]] == b"\n"
    return first["shard"], json.loads(text[: first["data"]]), stripes


@pytest.mark.parametrize(
    ("layout", "w", "size"),
    [("packets", 8, 20_000), ("packets", 4, 5_000), ("words", 8, 20_000), ("words", 16, 7_777), ("packets", 8, 0)],
)
def test_by_the_book(tmp_path: Path, layout: str, w: int, size: int) -> None:
    files = make_set(tmp_path, random_bytes(size), 3, 2, layout=layout, w=w, frame=2048)
    shards = [by_the_book(shard) for shard in files.original.values()]
    assert [number for number, _, _ in shards] == list(range(5))
    metadata = shards[0][1]
    assert all(other == metadata for _, other, _ in shards)
    block = metadata["block_length"]
    stripes = max(1, -(-size // (3 * block)))
    out = b""
    for stripe in range(stripes):
        headers, blocks = zip(*(frames[stripe] for _, _, frames in shards), strict=True)
        length = min(size - stripe * 3 * block, 3 * block)
        unit = w * 64 if layout == "packets" else 64
        for number, header in enumerate(headers):
            assert header["set"].hex() == metadata["set"]
            assert (header["shard"], header["stripe"]) == (number, stripe)
            assert (header["k"], header["m"], header["w"]) == (3, 2, w)
            assert header["data"] == length
            assert header["block"] == (block if stripe < stripes - 1 else -(-length // (3 * unit)) * unit)
            assert header["flags"] == (2 if stripe == stripes - 1 else 0)
        data = b"".join(blocks[:3])
        assert data[length:].strip(b"\0") == b""
        out += data[:length]
        check_parity(metadata, blocks)
    assert out == files.data
    assert all(len(frames) == stripes for _, _, frames in shards)


def check_parity(metadata: dict[str, Any], blocks: tuple[bytes, ...]) -> None:
    field = GF(metadata["w"], metadata["polynomial"])
    symbols = [symbols_of(block, metadata) for block in blocks]
    for row, parity in zip(metadata["parity"], symbols[3:], strict=True):
        total = np.zeros_like(parity)
        for element, data in zip(row, symbols[:3], strict=True):
            total = field.add(total, field.mul(element, data)).astype(parity.dtype)
        assert np.array_equal(total, parity)


def symbols_of(block: bytes, metadata: dict[str, Any]) -> Any:
    raw = np.frombuffer(block, np.uint8)
    w, packet = metadata["w"], metadata["packet_bytes"]
    if metadata["layout"] == "words":
        return raw.view(f"<u{w // 8}")
    bits = np.unpackbits(raw.reshape(-1, w, packet), axis=2, bitorder="little")
    return (bits.astype(np.uint32) << np.arange(w, dtype=np.uint32)[:, None]).sum(axis=1).astype(np.uint16)


def test_the_text_can_be_read_with_head(tmp_path: Path) -> None:
    files = make_set(tmp_path, b"x", 10, 4)
    head = files.original[str(files.paths[7])][512:4096]
    text = head.rstrip(b"\0").decode()
    assert text.startswith('{\n  "format": 1,\n  "tool": "gfcode ')
    assert text.endswith("]\n  ]\n}\n")
    assert '  "parity": [\n    [1, 1, 1, 1, 1, 1, 1, 1, 1, 1],\n' in text


def test_golden_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 1 of the format never changes: these are its bytes."""
    monkeypatch.setattr(encode, "new_set_id", lambda: bytes(range(16)))
    monkeypatch.setattr(gfcode, "__version__", "0")
    source = tmp_path / "golden"
    source.write_bytes(bytes(range(251)) * 41)
    source.chmod(0o644)
    os.utime(source, ns=(0, 10**18))
    report = encode_file(source, k=3, m=2, matrix="cauchy", frame=1536, out=tmp_path / "s", durable=False)
    digest = hashlib.sha256(b"".join(Path(path).read_bytes() for path in report.paths)).hexdigest()
    assert digest == "4167462dd7ec7dfe86d00ba803d10795e04b34fc82b092dcc4a87e524036b6d1"


def test_a_header_is_read_as_it_was_written() -> None:
    header = FrameHeader(2, bytes(range(16)), 3, 5, 7, 16, 2**40 + 1, 65_024, 123_456)
    frame = header.pack()
    seal(frame, XXH3)
    assert len(frame) == HEADER_BYTES
    assert bytes(frame[:8]) == b"GFSHARD1"
    assert parse_header(frame) == header


def test_headers_that_are_none() -> None:
    frame = FrameHeader(0, bytes(16), 0, 1, 1, 8, 0, 64, 64).pack()
    for at, message in ((0, "magic"), (24, "version 257"), (26, "hash 257"), (62, "reserved"), (511, "reserved")):
        bad = bytearray(frame)
        bad[at] ^= 1
        if at in {24, 26}:
            bad[at], bad[at + 1] = 1, 1
        with pytest.raises(ShardFormatError, match=message):
            parse_header(bad)
    with pytest.raises(ShardFormatError, match="has 512 bytes, not 100"):
        parse_header(frame[:100])
    with pytest.raises(ParameterError, match="unknown hash 'crc'; choose xxh3-128"):
        frame_hash("crc")


@pytest.mark.parametrize(
    ("frame", "layout", "block"),
    [
        (65_536, Layout("packets", 8), 65_024),
        (65_536, Layout("packets", 6), 64_896),
        (65_536, Layout("packets", 16), 64_512),
        (65_536, Layout("words", 8), 65_024),
        (65_537, Layout("words", 16), 65_024),
        (576, Layout("words", 32), 64),
        (1024, Layout("packets", 3, 8), 384),
    ],
)
def test_block_lengths(frame: int, layout: Layout, block: int) -> None:
    assert block_length_for(frame, layout, 14) == block
    assert block % layout.strip_bytes == block % 64 == 0
    assert block_multiple(layout) % layout.strip_bytes == 0


@pytest.mark.parametrize("k", [1, 3, 10])
def test_geometry_covers_every_size(k: int) -> None:
    geometry = Geometry(k, 128, 512, 4096)
    for size in range(3 * k * 512 + 2):
        stripes, last = geometry.stripes(size), geometry.last_data(size)
        assert (stripes - 1) * k * 512 + last == size
        assert 0 < last <= k * 512 or size == last == 0
        block = geometry.block_for(last)
        assert last <= k * block <= k * 512
        assert k * (block - 128) < last or block == 0
        assert geometry.shard_length(stripes, last) == 4096 + (stripes - 1) * 1024 + 512 + block


def test_names() -> None:
    assert shard_name("a.b", 7) == "a.b.007.gfs"
    assert shard_name("a", 12_345) == "a.12345.gfs"
    for index in (0, 7, 999, 1000, 65_535):
        assert shard_index(shard_name("x\ny", index), "x\ny") == index
    for other in ("a.7.gfs", "a.0007.gfs", "b.007.gfs", "a.007.gfs.tmp", "a.٠٠٧.gfs", "a.007.gfs\n", ".007.gfs"):
        assert shard_index(other, "a") is None
