"""The 80 bytes in front of every fragment: liberasurecode's `fragment_header_t`, packed.

Numbers are little-endian; fragments of big-endian machines have big-endian ones, and only their metadata is read.

| byte | bytes | field |
|---|---|---|
| 0 | 4 | index of the fragment |
| 4 | 4 | bytes of payload |
| 8 | 4 | bytes of a code's own metadata behind the payload: 0 |
| 12 | 8 | bytes of the data that was encoded |
| 20 | 1 | checksum type |
| 21 | 32 | checksum of the payload, a CRC in the first 4 |
| 53 | 1 | whether the checksum was found wrong |
| 54 | 1 | number of the code |
| 55 | 4 | version of the code |
| 59 | 4 | magic, 0x0b0c5ecc |
| 63 | 4 | version of liberasurecode |
| 67 | 4 | CRC of bytes 0 to 58, from version 1.2 |
| 71 | 9 | zeros |
"""

from struct import Struct
from typing import Any, Final, NamedTuple, TypeAlias

from gfcode.compat.checksums import crc32, matches
from gfcode.compat.ec_types import PyECLib_EC_Types, get_liberasurecode_version, version_number

__all__ = [
    "CHECKED_FROM",
    "CRC32",
    "HEADER_BYTES",
    "METADATA",
    "METADATA_BYTES",
    "WRITTEN_VERSION",
    "Header",
    "as_dict",
    "metadata_of",
    "read",
    "with_checksum",
    "write",
]

HEADER_BYTES: Final = 80
#: The part that `get_metadata` returns.
METADATA_BYTES: Final = 59
MAGIC: Final = 0x0B0C5ECC
CRC32: Final = 2
_MD5: Final = 3
#: The version that is written.
WRITTEN_VERSION: Final = get_liberasurecode_version()
#: Headers carry a checksum of their own from this version on.
CHECKED_FROM: Final = version_number(1, 2, 0)

#: Where the checksums of the payload and of the header are.
_CHECKSUM_AT, _OWN_AT = 21, 67

METADATA: Final = Struct("<IIIQBI28sBBI")
_TAIL: Final = Struct("<III9x")
_HEADER: Final = Struct("<IIIQBI28sBBIIII")
_BIG_ENDIAN: Final = Struct(">IIIQBI28sBBIIII")
_WORDS: Final = Struct(">7I"), Struct("<7I")
_BIG_MAGIC: Final = MAGIC.to_bytes(4, "big")
_NO_REST: Final = bytes(28)

_CHECKSUM_NAMES: Final = {1: ("none", 0), CRC32: ("crc32", 4), _MD5: ("md5", 16)}
_CODE_NAMES: Final = {0: "null", **{code.value: code.name for code in PyECLib_EC_Types}}

_Octets: TypeAlias = bytes | memoryview


class Header(NamedTuple):
    """A header's fields, in their order."""

    idx: int
    size: int
    own_metadata: int
    data_length: int
    checksum_type: int
    checksum: int
    checksum_rest: bytes
    mismatch: int
    code: int
    code_version: int
    magic: int
    version: int
    metadata_checksum: int


def write(
    index: int, size: int, data_length: int, checksum: tuple[int, int], code: tuple[int, int], *, legacy: bool
) -> bytes:
    """Make a header.

    Parameters
    ----------
    index, size, data_length : int
        Of the fragment; of its payload and of the data in bytes.
    checksum : (int, int)
        Type and value.
    code : (int, int)
        Number and version.
    legacy : bool
        Which CRC protects the header.
    """
    kind, value = checksum
    metadata = METADATA.pack(index, size, 0, data_length, kind, value, _NO_REST, 0, *code)
    return metadata + _TAIL.pack(MAGIC, WRITTEN_VERSION, crc32(metadata, legacy=legacy))


def with_checksum(head: bytes, checksum: int, *, legacy: bool) -> bytes:
    """Return a header with the checksum of a payload put in, and its own made new."""
    metadata = head[:_CHECKSUM_AT] + checksum.to_bytes(4, "little") + head[_CHECKSUM_AT + 4 : METADATA_BYTES]
    own = crc32(metadata, legacy=legacy)
    return metadata + head[METADATA_BYTES:_OWN_AT] + own.to_bytes(4, "little") + head[_OWN_AT + 4 :]


def read(fragment: _Octets, *, foreign: bool = False) -> Header | str:
    """Read and check a header; return what is wrong with it where something is.

    Parameters
    ----------
    fragment : bytes or memoryview
    foreign : bool
        Whether big-endian headers are read too.
    """
    if len(fragment) < HEADER_BYTES:
        return f"has {len(fragment)} bytes, and the header alone takes {HEADER_BYTES}"
    fields = Header._make(_HEADER.unpack_from(fragment))
    if fields.magic != MAGIC:
        if fragment[METADATA_BYTES : METADATA_BYTES + 4] != _BIG_MAGIC:
            return f"does not have liberasurecode's magic, {MAGIC:#010x}, at byte {METADATA_BYTES}"
        if not foreign:
            return "has a big-endian header; of such fragments metadata can be read, and nothing decoded"
        fields = Header._make(_BIG_ENDIAN.unpack_from(fragment))
        rest = _WORDS[1].pack(*_WORDS[0].unpack(fields.checksum_rest))
        fields = fields._replace(checksum_rest=rest)
    if fields.version >= CHECKED_FROM and not matches(fields.metadata_checksum, fragment[:METADATA_BYTES]):
        return "has a damaged header: its checksum is wrong"
    return fields


def metadata_of(fields: Header) -> bytes:
    """Return the metadata part of a header, little-endian."""
    return METADATA.pack(*fields[:10])


def as_dict(metadata: bytes) -> dict[str, Any]:
    """Spell the metadata part of a header out, by PyECLib's keys."""
    index, size, _, data_length, kind, _, _, mismatch, code, version = METADATA.unpack(metadata)
    name, length = _CHECKSUM_NAMES.get(kind, ("unknown", 0))
    return {
        "index": index,
        "size": size,
        "orig_data_size": data_length,
        "chksum_type": name,
        "chksum": metadata[21 : 21 + length].hex(),
        "chksum_mismatch": mismatch,
        "backend_id": _CODE_NAMES.get(code, "unknown"),
        "backend_version": version,
    }
