"""Whether the set of a file is up to date: by its size and modification time, else by its content."""

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from gfcode.errors import GFCodeError, ShardFormatError
from gfcode.pipeline.discovery import find_set
from gfcode.pipeline.encode import Recipe
from gfcode.pipeline.files import is_temporary, leftovers, named_errors, target_name
from gfcode.pipeline.frame import Hashes
from gfcode.pipeline.locks import is_abandoned
from gfcode.pipeline.metadata import Metadata
from gfcode.pipeline.probe import metadata_of, open_regular
from gfcode.pipeline.reader import SetReader
from gfcode.pipeline.shardset import ShardSet
from gfcode.pipeline.targets import shard_targets

__all__ = ["Remains", "Standing", "standing_of"]

#: Bytes of the file that are compared at a time.
_PIECE: Final = 1 << 20
_CHANGED: Final = "it has changed since it was encoded"

State = Literal["new", "current", "incomplete", "changed"]


@dataclass(frozen=True, slots=True)
class Standing:
    """What is there of the set of a file.

    Attributes
    ----------
    state : str
        "new": nothing. "current": all shards, in their full length, of this content. "incomplete": of this content, but
        not all shards, or with files beside them that an interrupted run has left. "changed": something else, which
        `reason` names.
    reason : str
    """

    state: State
    reason: str = ""


class Remains:
    """Files that interrupted runs have left; of each directory the names are read once."""

    def __init__(self) -> None:
        self._listed: dict[str, set[str]] = {}

    def are_beside(self, targets: Sequence[str]) -> bool:
        """Return whether there are any for these targets."""
        by_directory: dict[str, list[str]] = defaultdict(list)
        for target in targets:
            by_directory[os.path.dirname(target)].append(target)
        for directory, inside in by_directory.items():
            if directory not in self._listed:
                self._listed[directory] = _named_by_temporaries(directory)
            if not self._listed[directory].isdisjoint(map(os.path.basename, inside)):
                found = leftovers(inside)
                if any(is_abandoned(path) for paths in found.values() for path in paths):
                    return True
        return False


def standing_of(
    path: str, status: os.stat_result, directories: Sequence[str], name: str, recipe: Recipe, remains: Remains
) -> Standing:  # fmt: skip
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
    remains : Remains
        The same one for all files of a run.

    Raises
    ------
    OSError
        If the file, or a shard, cannot be read: then nothing can be said.
    """
    targets = shard_targets(directories, name, recipe.codec.n)
    found = [target for target in targets if os.path.lexists(target)]
    if not found:
        return Standing("new")
    held = _holdings(found, recipe)
    sets = {metadata.set_id: metadata for metadata in held.values() if metadata is not None}
    metadata = next(iter(sets.values()), None)
    reason = ""
    if None in held.values():
        unknown = next(target for target, holding in held.items() if holding is None)
        reason = f"{unknown} is there, and is no shard that can be read"
    elif len(sets) > 1:
        # A run that was killed while its shards took the names of older ones leaves this.
        reason = f"shards of {len(sets)} sets in {os.path.dirname(found[0]) or '.'} have its name"
    elif metadata is not None and not _same_code(metadata, recipe):
        reason = f"its set in {os.path.dirname(found[0]) or '.'} has other parameters"
    elif metadata is not None and metadata.size != status.st_size:
        reason = _CHANGED
    if reason or metadata is None:
        return Standing("changed", reason) if reason else Standing("incomplete", "its set was incomplete")
    return _of_one_set(path, status, targets, found, metadata, remains)


def _of_one_set(
    path: str, status: os.stat_result, targets: Sequence[str], found: Sequence[str], metadata: Metadata,
    remains: Remains,
) -> Standing:  # fmt: skip
    """Say how things stand where all shards are of one set, made in the same way of as many bytes."""
    geometry = metadata.geometry
    length = geometry.shard_length(geometry.stripes(status.st_size), geometry.last_data(status.st_size))
    whole = len(found) == len(targets) and all(_length(target) == length for target in targets)
    if metadata.mtime_ns != status.st_mtime_ns and (reason := _difference(path, found, metadata)):
        return Standing("changed", reason)
    if whole and remains.are_beside(targets):
        return Standing("incomplete", "an interrupted run has left files beside its set")
    return Standing("current" if whole else "incomplete", "" if whole else "its set was incomplete")


def _holdings(found: Sequence[str], recipe: Recipe) -> dict[str, Metadata | None]:
    """Read the metadata of each shard that is not empty; None where it is not sound."""
    parsed: dict[bytes, Metadata] = {}
    held: dict[str, Metadata | None] = {}
    for target in found:
        held[target] = None
        try:
            fd = open_regular(target)
        except ShardFormatError:
            continue
        except FileNotFoundError:  # a link to nowhere, or gone just now
            del held[target]
            continue
        try:
            if os.fstat(fd).st_size:
                held[target] = metadata_of(fd, parsed, recipe.hashes)[0]
            else:
                del held[target]
        except ShardFormatError:
            continue
        finally:
            os.close(fd)
    return held


def _same_code(metadata: Metadata, recipe: Recipe) -> bool:
    codec = recipe.codec
    wanted = (codec.k, codec.m, codec.w, codec.field.polynomial, codec.layout, recipe.block_length, codec.family)
    field = (metadata.w, metadata.polynomial, metadata.layout)
    if wanted != (metadata.k, metadata.m, *field, metadata.block_length, metadata.family):
        return False
    if metadata.checksum.number != recipe.checksum.number:
        return False
    return metadata.parity is None or [list(row) for row in metadata.parity] == codec.parity.values.tolist()


def _named_by_temporaries(directory: str) -> set[str]:
    """Return the names of the files for which unfinished ones lie in a directory."""
    try:
        names = os.listdir(directory or ".")
    except OSError:
        return set()
    return {target_name(name) for name in names if is_temporary(name)}


def _length(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return -1


def _difference(path: str, found: Sequence[str], metadata: Metadata) -> str:
    """Compare a file with what its set holds; return in what way they differ."""
    with open(path, "rb", opener=lambda name, _: open_regular(name)) as file, named_errors(file):
        try:
            with SetReader(ShardSet(find_set(found, metadata.set_id.hex(), _hashes_of(metadata)))) as held:
                at = 0
                while data := file.read(_PIECE):
                    if held.read_at(at, len(data)) != data:
                        return _CHANGED
                    at += len(data)
                return "" if at == held.size else _CHANGED
        except GFCodeError as error:
            return f"its set cannot be compared with it: {error}"


def _hashes_of(metadata: Metadata) -> Hashes:
    """Return the checksums that count for a set."""
    return {metadata.checksum.number: metadata.checksum}
