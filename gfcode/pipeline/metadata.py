"""The metadata frame: what every shard of a set says about the set, as JSON that a person can read.

All shards of a set hold the same JSON text; only the shard index in the frame's header differs, so that the metadata
frame of a lost shard can be written from that of any other. A decoder needs nothing else: the parity matrix is there.
"""

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import xxhash

from gfcode.errors import GFCodeError, ParameterError, ShardFormatError
from gfcode.params import Layout
from gfcode.pipeline.frame import (
    FLAG_METADATA,
    FORMAT_VERSION,
    HASHES,
    HEADER_BYTES,
    FrameHash,
    FrameHeader,
    Hashes,
    frame_hash,
    seal,
)
from gfcode.pipeline.layout import MAX_FRAME, MAX_STRIPE_BYTES, Geometry, block_multiple

if TYPE_CHECKING:
    import numpy.typing as npt

    from gfcode.codec import Codec

__all__ = [
    "MAX_METADATA",
    "MAX_SHARDS",
    "METADATA_MULTIPLE",
    "Metadata",
    "check_file_name",
    "describe",
    "new_set_id",
    "parity_digest",
    "parse_metadata",
]

#: A metadata frame is a multiple of this many bytes, which `head -c 4096` shows.
METADATA_MULTIPLE = 4096
#: Longest metadata frame that is written or read.
MAX_METADATA = 16 * 1024 * 1024
#: Most shards that a set may have.
MAX_SHARDS = 65536
#: A parity matrix whose JSON is longer than this is named by its family and digest instead, where it has a family.
_MAX_MATRIX_TEXT = 64 * 1024
_MAX_NAME = 4096
_WIDTHS = (*range(1, 17), 32)


@dataclass(frozen=True, slots=True)
class Metadata:
    """What a set says about itself.

    Attributes
    ----------
    text : bytes
        The JSON text, byte for byte as it stands in the shards.
    set_id : bytes
        16 bytes.
    name : str
        Name of the file that was encoded. A suggestion: `check_file_name` before it is used.
    size : int or None
        Bytes of the file; None where it was a stream.
    mode, mtime_ns : int or None
        Permission bits and modification time of the file.
    k, m, w, polynomial : int
    layout : Layout
    block_length : int
        Bytes of a block in every stripe but the last.
    checksum : FrameHash
    family : str
        Name of the matrix family.
    parity : tuple of tuple of int, or None
        m rows of k elements; None for a large matrix that its family gives.
    digest : str or None
        `parity_digest` of the matrix where `parity` is None.
    """

    text: bytes
    set_id: bytes
    name: str
    size: int | None
    mode: int | None
    mtime_ns: int | None
    k: int
    m: int
    w: int
    polynomial: int
    layout: Layout
    block_length: int
    checksum: FrameHash
    family: str
    parity: tuple[tuple[int, ...], ...] | None
    digest: str | None

    @property
    def n(self) -> int:
        """Number of shards."""
        return self.k + self.m

    @property
    def frame_length(self) -> int:
        """Bytes of the metadata frame."""
        return -(-(HEADER_BYTES + len(self.text)) // METADATA_MULTIPLE) * METADATA_MULTIPLE

    @property
    def geometry(self) -> Geometry:
        """Lengths and offsets of the set's shards."""
        return Geometry(self.k, block_multiple(self.layout), self.block_length, self.frame_length)

    def header(self, shard: int) -> FrameHeader:
        """Return the header of one shard's metadata frame."""
        return FrameHeader(
            FLAG_METADATA, self.set_id, shard, self.k, self.m, self.w, 0, self.frame_length - HEADER_BYTES,
            len(self.text), hash_id=self.checksum.number,
        )  # fmt: skip

    def frame(self, shard: int) -> bytes:
        """Return the metadata frame of one shard."""
        frame = bytearray(self.frame_length)
        frame[:HEADER_BYTES] = self.header(shard).pack()
        frame[HEADER_BYTES : HEADER_BYTES + len(self.text)] = self.text
        seal(frame, self.checksum)
        return bytes(frame)

    def codec(self, engine: str | None = None) -> "Codec":
        """Build the codec that the metadata describes.

        Raises
        ------
        ShardFormatError
            If the matrix is not certified, or its family gives another matrix than was used.
        """
        import numpy as np

        from gfcode.codec import Codec

        matrix: Any = self.family if self.parity is None else np.array(self.parity, np.uint32).reshape(self.m, self.k)
        try:
            codec = Codec(
                self.k, self.m, self.w, matrix=matrix, layout=self.layout.name, polynomial=self.polynomial,
                engine=engine, **({"packet_bytes": self.layout.packet_bytes} if self.layout.packet_bytes else {}),
            )  # fmt: skip
        except (ParameterError, ValueError) as error:
            raise ShardFormatError(f"set {self.set_id.hex()} names a code that cannot be used: {error}") from error
        if self.digest is not None and parity_digest(codec.parity.values) != self.digest:
            raise ShardFormatError(
                f"set {self.set_id.hex()} was made with another {self.family!r} matrix than this release builds"
            )
        return codec


def new_set_id() -> bytes:
    """Return 16 bytes that no other set has."""
    return os.urandom(16)


def parity_digest(parity: "npt.NDArray[Any]") -> str:
    """Return the XXH3-128 of a matrix (its elements as little-endian 32-bit words, row by row), in hexadecimal."""
    import numpy as np

    return xxhash.xxh3_128_hexdigest(np.ascontiguousarray(parity, "<u4").tobytes())


def describe(
    codec: "Codec", *, set_id: bytes, name: str, size: int | None, mode: int | None, mtime_ns: int | None,
    block_length: int, checksum: FrameHash, tool: str,
) -> Metadata:  # fmt: skip
    """Write the metadata of a new set.

    Raises
    ------
    ParameterError
        If an explicit matrix is too large for the metadata frame.
    """
    rows = [json.dumps(row) for row in codec.parity.values.tolist()]
    matrix = "[\n    " + ",\n    ".join(rows) + "\n  ]" if rows else "[]"
    fields: dict[str, Any] = {
        "format": FORMAT_VERSION,
        "tool": tool,
        "set": set_id.hex(),
        "name": name,
        "size": size,
        "mode": mode,
        "mtime_ns": mtime_ns,
        "k": codec.k,
        "m": codec.m,
        "w": codec.w,
        "polynomial": codec.field.polynomial,
        "layout": codec.layout.name,
        "packet_bytes": codec.layout.packet_bytes,
        "block_length": block_length,
        "hash": checksum.name,
        "family": codec.family,
    }
    lines = [f'  "{key}": {json.dumps(value, ensure_ascii=not _is_text(value))}' for key, value in fields.items()]
    if len(matrix) > _MAX_MATRIX_TEXT and codec.family != "explicit":
        lines.append(f'  "parity_digest": "{parity_digest(codec.parity.values)}"')
    else:
        lines.append(f'  "parity": {matrix}')
    text = ("{\n" + ",\n".join(lines) + "\n}\n").encode()
    if HEADER_BYTES + len(text) > MAX_METADATA:
        raise ParameterError(f"the parity matrix needs {len(text)} bytes of metadata; the limit is {MAX_METADATA}")
    return parse_metadata(text, {checksum.number: checksum})


def _is_text(value: object) -> bool:
    """Return whether a value can stand in UTF-8 as it is (names from the file system may hold lone surrogates)."""
    try:
        str(value).encode()
    except UnicodeEncodeError:
        return False
    return True


def check_file_name(name: str) -> str:
    """Return a name if it is the plain name of a file in a directory.

    Raises
    ------
    ParameterError
        If it is empty, `.` or `..`, or holds a separator or NUL.
    """
    if name in {"", ".", ".."} or "/" in name or "\0" in name:
        raise ParameterError(f"{name!r} is not the name of a file; name the file yourself")
    return name


def _refuse(what: str) -> NoReturn:
    raise ShardFormatError(f"metadata: {what}")


class _Reader:
    """Takes typed and bounded values out of a JSON object."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields

    def integer(self, key: str, low: int, high: int) -> int:
        value = self.fields.get(key)
        if type(value) is not int or not low <= value <= high:
            _refuse(f"{key!r} must be a whole number from {low} to {high}")
        return value

    def optional(self, key: str, low: int, high: int) -> int | None:
        return None if self.fields.get(key) is None else self.integer(key, low, high)

    def string(self, key: str, limit: int) -> str:
        value = self.fields.get(key)
        if type(value) is not str or len(value) > limit:
            _refuse(f"{key!r} must be a string of at most {limit} characters")
        return value

    def matrix(self, m: int, k: int, order: int) -> tuple[tuple[int, ...], ...]:
        rows = self.fields["parity"]
        if type(rows) is not list or len(rows) != m:
            _refuse(f"'parity' must have {m} rows")
        for row in rows:
            if type(row) is not list or len(row) != k or not all(type(x) is int and 0 <= x < order for x in row):
                _refuse(f"each row of 'parity' must have {k} elements below {order}")
        return tuple(map(tuple, rows))


def _load(text: bytes) -> dict[str, Any]:
    try:
        # The whole text must be ASCII or UTF-8; numbers that JSON does not know (NaN, Infinity) are refused.
        fields = json.loads(text.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        if isinstance(error, ShardFormatError):
            raise
        raise ShardFormatError(f"metadata is not JSON: {error}") from error
    if type(fields) is not dict:
        _refuse("not a JSON object")
    return fields


def parse_metadata(text: bytes, hashes: Hashes = HASHES) -> Metadata:
    """Read the JSON text of a metadata frame. Every number is bounded before anything depends on it.

    Parameters
    ----------
    text : bytes
    hashes : mapping of int to FrameHash
        Checksums that it may name.

    Raises
    ------
    ShardFormatError
        If it is not JSON, a field is missing or out of bounds, or the format version is unknown.
    """
    fields = _load(text)
    read = _Reader(fields)
    version = read.integer("format", 0, 2**16 - 1)
    if version != FORMAT_VERSION:
        _refuse(f"format version {version} is not known to this release, which reads version {FORMAT_VERSION}")
    try:
        set_id = bytes.fromhex(read.string("set", 32))
    except ValueError:
        set_id = b""
    if len(set_id) != 16:
        _refuse("'set' must have 32 hexadecimal digits")
    w = read.integer("w", 1, 32)
    if w not in _WIDTHS:
        _refuse(f"w = {w} is not supported")
    k = read.integer("k", 1, MAX_SHARDS)
    m = read.integer("m", 0, MAX_SHARDS - k)
    name = read.string("layout", 32)
    packet_bytes = read.integer("packet_bytes", 0, MAX_FRAME)
    try:
        layout = Layout(name, w, packet_bytes)  # type: ignore[arg-type]  # any other name is refused by Layout itself
        checksum = frame_hash(read.string("hash", 32), hashes)
    except GFCodeError as error:
        _refuse(str(error))
    multiple = block_multiple(layout)
    block_length = read.integer("block_length", multiple, MAX_FRAME - HEADER_BYTES)
    if block_length % multiple or (k + m) * (HEADER_BYTES + block_length) > MAX_STRIPE_BYTES:
        _refuse(f"block length {block_length} does not fit the layout or the limit of {MAX_STRIPE_BYTES} a stripe")
    parity, digest = None, None
    if "parity" in fields:
        parity = read.matrix(m, k, 2**w)
    else:
        digest = read.string("parity_digest", 32)
    return Metadata(
        text=text, set_id=set_id, name=read.string("name", _MAX_NAME), size=read.optional("size", 0, 2**63 - 1),
        mode=read.optional("mode", 0, 0o7777), mtime_ns=read.optional("mtime_ns", -(2**63), 2**63 - 1), k=k, m=m, w=w,
        polynomial=read.integer("polynomial", 2**w, 2 ** (w + 1) - 1), layout=layout, block_length=block_length,
        checksum=checksum, family=read.string("family", 64), parity=parity, digest=digest,
    )  # fmt: skip
