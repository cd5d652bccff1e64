"""The frame: 512 bytes of header, then a block. `docs/format.md` describes it byte by byte."""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import xxhash
from blake3 import blake3

from gfcode.errors import ParameterError, ShardFormatError

__all__ = [
    "BLAKE3",
    "COVER",
    "FLAG_LAST",
    "FLAG_METADATA",
    "FORMAT_VERSION",
    "HASHES",
    "HASH_BYTES",
    "HEADER_BYTES",
    "KEYED_NAME",
    "KEYED_NUMBER",
    "MAGIC_BYTES",
    "XXH3",
    "FrameHash",
    "FrameHeader",
    "Hashes",
    "frame_hash",
    "is_sealed",
    "keyed_hash",
    "parse_header",
    "seal",
]

HEADER_BYTES = 512
MAGIC_BYTES = b"GFSHARD1"
FORMAT_VERSION = 1
#: Offset in a frame of the first byte that the hash covers; it covers all from there to the end of the block.
COVER = 24
HASH_BYTES = 16
FLAG_METADATA = 1
FLAG_LAST = 2

_HEADER = struct.Struct("<8s16sHHI16sIIIHHQQQ")
_USED = _HEADER.size
_UNUSED = bytes(HEADER_BYTES - _USED)

#: A readable buffer of bytes.
Bytes = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class FrameHash:
    """A checksum that frames may carry.

    Attributes
    ----------
    number : int
        Its id in the header.
    name : str
    meaning : str
        What a right hash proves.
    digest : callable
        Maps a buffer to 16 bytes.
    """

    number: int
    name: str
    meaning: str
    digest: Callable[[Any], bytes]

    @property
    def check(self) -> str:
        """Name and meaning, for reports."""
        return f"{self.name}: {self.meaning}"


#: XXH3-128 in its canonical (big-endian) byte order. It finds accidents; it is no defence against forgery.
XXH3 = FrameHash(1, "xxh3-128", "against accidents", xxhash.xxh3_128_digest)
#: BLAKE3, its first 16 bytes. Nobody can make two blocks with one hash; but anybody can make a frame with a right one.
BLAKE3 = FrameHash(
    2, "blake3", "against accidents, collision-resistant; not authentic without a key",
    lambda data: blake3(data).digest(length=HASH_BYTES),
)  # fmt: skip
#: Id and name of keyed BLAKE3, which `keyed_hash` makes of a key.
KEYED_NUMBER = 3
KEYED_NAME = "blake3-keyed"
#: Checksums by their id.
Hashes = Mapping[int, FrameHash]
#: Those that need no key.
HASHES: Hashes = {XXH3.number: XXH3, BLAKE3.number: BLAKE3}


def keyed_hash(key: bytes) -> FrameHash:
    """Return keyed BLAKE3, its first 16 bytes, which only holders of the key can compute.

    Parameters
    ----------
    key : bytes
        32 bytes.
    """
    return FrameHash(
        KEYED_NUMBER, KEYED_NAME, "authentic", lambda data: blake3(data, key=key).digest(length=HASH_BYTES)
    )


def frame_hash(name: str, hashes: Hashes = HASHES) -> FrameHash:
    """Return the checksum of this name.

    Raises
    ------
    ParameterError
        If there is none.
    """
    for known in hashes.values():
        if known.name == name:
            return known
    raise ParameterError(f"unknown hash {name!r}; choose {', '.join(known.name for known in hashes.values())}")


@dataclass(frozen=True, slots=True)
class FrameHeader:
    """The fields of a frame header, without magic and hash."""

    flags: int
    set_id: bytes
    shard: int
    k: int
    m: int
    w: int
    stripe: int
    block_length: int
    data_length: int
    version: int = FORMAT_VERSION
    hash_id: int = XXH3.number

    def pack(self) -> bytearray:
        """Return the 512 bytes of the header; the 16 bytes of the hash are zero (`seal` fills them)."""
        header = bytearray(HEADER_BYTES)
        _HEADER.pack_into(
            header, 0, MAGIC_BYTES, bytes(HASH_BYTES), self.version, self.hash_id, self.flags, self.set_id, self.shard,
            self.k, self.m, self.w, 0, self.stripe, self.block_length, self.data_length,
        )  # fmt: skip
        return header


def parse_header(header: Bytes) -> FrameHeader:
    """Read the fields of a header, whose checksum is not looked at.

    Parameters
    ----------
    header : buffer of at least 512 bytes

    Raises
    ------
    ShardFormatError
        If the magic is not there, a byte that must be zero is not, or the format version or hash is unknown.
    """
    if len(header) < HEADER_BYTES:
        raise ShardFormatError(f"a frame header has {HEADER_BYTES} bytes, not {len(header)}")
    magic, _, version, hash_id, flags, set_id, shard, k, m, w, pad, stripe, block, data = _HEADER.unpack_from(header)
    if magic != MAGIC_BYTES:
        raise ShardFormatError("no frame: the magic bytes are missing")
    if version != FORMAT_VERSION:
        raise ShardFormatError(
            f"format version {version} is not known to this release, which reads version {FORMAT_VERSION}"
        )
    if hash_id not in HASHES and hash_id != KEYED_NUMBER:
        raise ShardFormatError(f"hash {hash_id} is not known to this release")
    if pad or header[_USED:HEADER_BYTES] != _UNUSED:
        raise ShardFormatError("reserved bytes of the frame header are not zero")
    return FrameHeader(flags, set_id, shard, k, m, w, stripe, block, data, version, hash_id)


def seal(frame: bytearray | memoryview, checksum: FrameHash) -> None:
    """Write the hash of a whole frame into its header."""
    frame[8:COVER] = checksum.digest(memoryview(frame)[COVER:])


def is_sealed(frame: Bytes, checksum: FrameHash) -> bool:
    """Return whether the hash in the header of a whole frame is right."""
    view = memoryview(frame)
    return checksum.digest(view[COVER:]) == view[8:COVER]
