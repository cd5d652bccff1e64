"""Whether the set of a file is up to date: by its size and modification time, else by its content."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Literal, cast

from gfcode.errors import GFCodeError, ShardFormatError
from gfcode.pipeline.decode import decode_file
from gfcode.pipeline.encode import Recipe
from gfcode.pipeline.metadata import Metadata
from gfcode.pipeline.probe import read_metadata
from gfcode.pipeline.targets import shard_targets

__all__ = ["Standing", "standing_of"]

State = Literal["new", "current", "incomplete", "changed"]


@dataclass(frozen=True, slots=True)
class Standing:
    """What is there of the set of a file.

    Attributes
    ----------
    state : str
        "new": nothing. "current": all shards, in their full length, of this content. "incomplete": of this content, but
        not all shards. "changed": something else, which `reason` names.
    reason : str
    """

    state: State
    reason: str = ""


class _Compare:
    """A binary stream that takes only what another one holds."""

    def __init__(self, path: str) -> None:
        self.file = open(path, "rb")  # noqa: SIM115 - closed by `close`

    def write(self, data: memoryview) -> int:
        if self.file.read(len(data)) != data:
            raise _DifferentError("another content")
        return len(data)

    def flush(self) -> None:
        if self.file.read(1):
            raise _DifferentError("another content")

    def close(self) -> None:
        self.file.close()


class _DifferentError(GFCodeError):
    """The content is another."""


def standing_of(
    path: str, status: os.stat_result, directories: Sequence[str], name: str, recipe: Recipe, key: str | None
) -> Standing:
    """Say whether the shards of a file are there, and of what content.

    Where the modification time is another than that of the set and the size is not, the set is decoded and compared.

    Parameters
    ----------
    path : str
        The file.
    status : stat_result
        Of the file.
    directories : sequence of str
        Where its shards are, or would be.
    name : str
        Name of its set.
    recipe : Recipe
        How it would be encoded.
    key : str or None
        File with the key of keyed sets.
    """
    targets = shard_targets(directories, name, recipe.codec.n)
    found = [target for target in targets if os.path.lexists(target)]
    if not found:
        return Standing("new")
    metadata = _metadata(found, recipe)
    if metadata is None:
        return Standing("changed", f"{found[0]} is there, and is no shard that can be read")
    if not _same_code(metadata, recipe):
        return Standing("changed", f"its set in {os.path.dirname(found[0]) or '.'} has other parameters")
    if metadata.size != status.st_size:
        return Standing("changed", "it has changed since it was encoded")
    geometry = metadata.geometry
    length = geometry.shard_length(geometry.stripes(status.st_size), geometry.last_data(status.st_size))
    whole = len(found) == len(targets) and all(_length(target) == length for target in targets)
    if metadata.mtime_ns != status.st_mtime_ns and not _same_content(path, found, metadata, key):
        return Standing("changed", "it has changed since it was encoded")
    return Standing("current" if whole else "incomplete")


def _metadata(found: Sequence[str], recipe: Recipe) -> Metadata | None:
    """Read the metadata of the first shard that has it sound."""
    for target in found:
        try:
            return read_metadata(target, {recipe.checksum.number: recipe.checksum})[0]
        except (OSError, ShardFormatError):
            continue
    return None


def _same_code(metadata: Metadata, recipe: Recipe) -> bool:
    codec = recipe.codec
    wanted = (codec.k, codec.m, codec.w, codec.field.polynomial, codec.layout, recipe.block_length, codec.family)
    field = (metadata.w, metadata.polynomial, metadata.layout)
    if wanted != (metadata.k, metadata.m, *field, metadata.block_length, metadata.family):
        return False
    return metadata.parity is None or [list(row) for row in metadata.parity] == codec.parity.values.tolist()


def _length(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return -1


def _same_content(path: str, found: Sequence[str], metadata: Metadata, key: str | None) -> bool:
    compare = _Compare(path)
    try:
        decode_file(found, cast("IO[bytes]", compare), set_id=metadata.set_id.hex(), key=key, threads=1)
    except (GFCodeError, OSError):
        return False
    finally:
        compare.close()
    return True
