"""Keys of keyed sets: the content of a file, made a key of 32 bytes."""

import os
from typing import Final

from blake3 import blake3

from gfcode.errors import ParameterError
from gfcode.pipeline.frame import HASHES, KEYED_NAME, KEYED_NUMBER, XXH3, FrameHash, Hashes, frame_hash, keyed_hash

__all__ = ["KEY_CONTEXT", "MAX_KEY_FILE", "MIN_KEY_FILE", "checksum_for", "every_hash", "hashes_for", "read_key"]

StrPath = str | os.PathLike[str]

#: Context of BLAKE3's key derivation; it keeps this key apart from all others made of the same file.
KEY_CONTEXT: Final = "gfcode 2026 shard format 1, keyed frames"
#: Bytes that a key file must have, and may have: what is shorter can be guessed, and what is longer is no key.
MIN_KEY_FILE: Final = 16
MAX_KEY_FILE: Final = 1 << 20


def read_key(path: StrPath) -> FrameHash:
    """Return the checksum of the key that a file holds: BLAKE3 `derive_key` of all its bytes, a newline included.

    Raises
    ------
    ParameterError
        If the file has fewer than 16 bytes or more than 1 MiB.
    OSError
        If it cannot be read.
    """
    name = os.fsdecode(path)
    with open(name, "rb") as file:
        content = file.read(MAX_KEY_FILE + 1)
    if not MIN_KEY_FILE <= len(content) <= MAX_KEY_FILE:
        size = f"{len(content)}" if len(content) <= MAX_KEY_FILE else f"more than {MAX_KEY_FILE}"
        raise ParameterError(f"{name} has {size} bytes; a key file has {MIN_KEY_FILE} to {MAX_KEY_FILE}")
    return keyed_hash(blake3(content, derive_key_context=KEY_CONTEXT).digest())


def hashes_for(key: StrPath | None) -> Hashes:
    """Return the checksums that count: with a key the keyed one only, or else an attacker would leave the key out."""
    return HASHES if key is None else {KEYED_NUMBER: read_key(key)}


def every_hash(checksum: FrameHash) -> Hashes:
    """Return all checksums that can be computed by who has this one."""
    return {**HASHES, checksum.number: checksum}


def checksum_for(name: str | None, key: StrPath | None) -> FrameHash:
    """Return the checksum of a new set.

    Parameters
    ----------
    name : str or None
        Its name; by default that of XXH3, or of keyed BLAKE3 where a key is given.
    key : path or None

    Raises
    ------
    ParameterError
        If there is none of that name, or a key is given with one that has none.
    """
    if key is None:
        if name == KEYED_NAME:
            raise ParameterError(f"{KEYED_NAME} needs a key; name the file that holds it")
        return frame_hash(XXH3.name if name is None else name)
    if name not in {None, "blake3", KEYED_NAME}:
        raise ParameterError(f"a key goes with blake3, not with {name!r}; leave one of them out")
    return read_key(key)
