"""Look into single shard files: their metadata frame, and what a frame at some offset says."""

import json
import os
import stat

from gfcode.errors import AuthenticationError, ShardFormatError
from gfcode.pipeline.files import read_at
from gfcode.pipeline.frame import (
    FLAG_METADATA,
    HASHES,
    HEADER_BYTES,
    KEYED_NUMBER,
    FrameHash,
    FrameHeader,
    Hashes,
    is_sealed,
    parse_header,
)
from gfcode.pipeline.keys import hashes_for
from gfcode.pipeline.metadata import MAX_METADATA, METADATA_MULTIPLE, Metadata, parse_metadata
from gfcode.pipeline.shard_info import ShardInfo

__all__ = ["inspect_shard", "metadata_frame", "metadata_of", "open_regular", "read_metadata", "sound_header"]


def open_regular(path: str) -> int:
    """Open a regular file for reading. Anything else is refused, and a FIFO without a writer does not block.

    Raises
    ------
    ShardFormatError
        If it is no regular file.
    OSError
        If it cannot be opened.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise ShardFormatError("not a regular file")
    return fd


def _read(fd: int, length: int, offset: int) -> bytearray:
    data = bytearray(length)
    got = read_at(fd, [memoryview(data)], offset)
    return data[:got]


def metadata_of(fd: int, known: dict[bytes, Metadata] | None = None, hashes: Hashes = HASHES) -> tuple[Metadata, int]:
    """Read and check the metadata frame at the beginning of an open file. Its text is read after its hash was checked.

    Parameters
    ----------
    fd : int
    known : dict of bytes to Metadata, optional
        Texts that have been parsed, to which this one is added: the shards of a set have the same.
    hashes : mapping of int to FrameHash
        Checksums that count.

    Returns
    -------
    metadata : Metadata
    index : int
        Number of the shard.

    Raises
    ------
    AuthenticationError
        If its checksum is none of `hashes`, or a keyed one is wrong.
    ShardFormatError
        If it is damaged, or of an unknown format version.
    OSError
        If the file cannot be read.
    """
    header = parse_header(_read(fd, HEADER_BYTES, 0))
    length = HEADER_BYTES + header.block_length
    checksum = _checksum_of(header, hashes)
    # The file's real size bounds what is allocated.
    if length > min(os.fstat(fd).st_size, MAX_METADATA) or length % METADATA_MULTIPLE:
        raise ShardFormatError("the metadata frame is damaged or cut off")
    return _metadata_in(_read(fd, length, 0), header, checksum, known)


def metadata_frame(frame: bytearray, known: dict[bytes, Metadata], hashes: Hashes) -> tuple[Metadata, int]:
    """Do what `metadata_of` does with a frame that has been read, whole or not."""
    header = parse_header(frame)
    return _metadata_in(frame, header, _checksum_of(header, hashes), known)


def _checksum_of(header: FrameHeader, hashes: Hashes) -> FrameHash:
    """Return the checksum of a metadata frame."""
    if header.flags != FLAG_METADATA or header.stripe:
        raise ShardFormatError("the file does not begin with a metadata frame")
    checksum = hashes.get(header.hash_id)
    if checksum is None:
        raise _denied(header.hash_id)
    return checksum


def _metadata_in(
    frame: bytearray, header: FrameHeader, checksum: FrameHash, known: dict[bytes, Metadata] | None
) -> tuple[Metadata, int]:
    """Check a metadata frame and read its text."""
    length = HEADER_BYTES + header.block_length
    if len(frame) != length or not is_sealed(frame, checksum):
        if checksum.number == KEYED_NUMBER:
            raise AuthenticationError("the metadata frame is not authentic: made with another key, or changed")
        raise ShardFormatError("the checksum of the metadata frame is wrong")
    end = HEADER_BYTES + header.data_length
    text = bytes(frame[HEADER_BYTES:end])
    metadata = known.get(text) if known is not None else None
    if metadata is None:
        metadata = parse_metadata(text, {checksum.number: checksum})
        if known is not None:
            known[text] = metadata
    if header.shard >= metadata.n or header != metadata.header(header.shard) or frame[end:] != bytes(length - end):
        raise ShardFormatError("the metadata frame contradicts itself")
    return metadata, header.shard


def _denied(hash_id: int) -> AuthenticationError:
    """Return the error for a checksum that does not count here."""
    if hash_id == KEYED_NUMBER:
        return AuthenticationError(
            "the shard is keyed, and nothing in it can be told from a forgery without its key; give the key",
            key_missing=True,
        )
    return AuthenticationError(
        f"the shard is not keyed ({HASHES[hash_id].check}), so that it gives no proof of the key; "
        f"leave the key out to read what anybody may have written"
    )


def read_metadata(path: str, hashes: Hashes = HASHES) -> tuple[Metadata, int]:
    """Read and check the metadata frame of a shard file; see `metadata_of`."""
    fd = open_regular(path)
    try:
        return metadata_of(fd, None, hashes)
    finally:
        os.close(fd)


def inspect_shard(path: str | os.PathLike[str], *, key: str | os.PathLike[str] | None = None) -> ShardInfo:
    """Read what a shard file says about itself; its data frames are not looked at.

    Parameters
    ----------
    path : path
    key : path, optional
        File with the key of a keyed set.

    Raises
    ------
    AuthenticationError
        If the shard is keyed and no key is given, or the other way round, or the key is another.
    ShardFormatError
        If the metadata frame is damaged, or of an unknown format version.
    OSError
        If the file cannot be read.
    """
    name = os.fsdecode(path)
    hashes = hashes_for(key)
    fd = -1
    try:
        fd = open_regular(name)
        metadata, index = metadata_of(fd, None, hashes)
        file_length = os.fstat(fd).st_size
    except ShardFormatError as error:
        raise type(error)(f"{name}: {error}") from error
    finally:
        if fd >= 0:
            os.close(fd)
    geometry = metadata.geometry
    expected = None
    if metadata.size is not None:
        expected = geometry.shard_length(geometry.stripes(metadata.size), geometry.last_data(metadata.size))
    return ShardInfo(
        path=name, index=index, metadata=json.loads(metadata.text), metadata_length=metadata.frame_length,
        frame_length=geometry.frame_length, file_length=file_length, expected_length=expected,
        hash_name=metadata.checksum.name, check=metadata.checksum.check,
    )  # fmt: skip


def sound_header(fd: int, offset: int, longest: int, checksum: FrameHash | None) -> FrameHeader | None:
    """Return the header of the frame at an offset; None where there is no frame.

    Parameters
    ----------
    fd, offset : int
    longest : int
        Longest block that the frame may have.
    checksum : FrameHash or None
        Checksum that must be right; None if any header will do.
    """
    try:
        header = parse_header(_read(fd, HEADER_BYTES, offset))
    except (ShardFormatError, OSError):
        return None
    if checksum is None:
        return header
    if header.hash_id != checksum.number or header.block_length > longest:
        return None
    try:
        frame = _read(fd, HEADER_BYTES + header.block_length, offset)
    except OSError:
        return None
    whole = len(frame) == HEADER_BYTES + header.block_length
    return header if whole and is_sealed(frame, checksum) else None
