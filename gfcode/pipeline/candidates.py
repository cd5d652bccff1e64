"""Look at files that may be shards, and decide which shard of which set each of them holds."""

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from gfcode.errors import AuthenticationError, ShardFormatError, ShardSetError
from gfcode.pipeline.frame import HASHES, MAGIC_BYTES, Hashes
from gfcode.pipeline.metadata import Metadata
from gfcode.pipeline.names import set_name, shard_name
from gfcode.pipeline.probe import metadata_of, open_regular, sound_header
from gfcode.pipeline.report import Stray

__all__ = ["Candidate", "Holding", "identify", "look_at"]

#: A set id and a shard number.
Holding: TypeAlias = tuple[bytes, int]

#: Frames that are looked at to learn which shard a file holds, where its metadata frame does not tell.
_VOTES = 64


@dataclass(slots=True)
class Candidate:
    """A file that may hold a shard."""

    path: str
    size: int
    identity: tuple[int, int]
    metadata: Metadata | None = None
    #: (set id, shard) that the metadata frame names.
    claim: Holding | None = None
    #: (set id, shard) that the file holds.
    holds: Holding | None = None
    #: Sound frames by (set id, shard), where not all that was looked at agreed with the metadata frame.
    votes: Counter[Holding] = field(default_factory=Counter)
    #: Why the metadata frame is no good.
    reason: str = ""
    #: Whether that is a matter of keys.
    denied: AuthenticationError | None = None
    #: Whether the file begins as a frame does.
    marked: bool = False


def look_at(
    paths: Iterable[str], strays: list[Stray], seen: dict[tuple[int, int], str], hashes: Hashes = HASHES
) -> list[Candidate]:
    """Read the metadata frame of every file, once however often it is named."""
    candidates: list[Candidate] = []
    parsed: dict[bytes, Metadata] = {}
    by_identity: dict[tuple[int, int], Candidate] = {}
    for path in paths:
        try:
            fd = open_regular(path)
            try:
                status = os.fstat(fd)
                candidate = Candidate(path, status.st_size, (status.st_dev, status.st_ino))
                if candidate.identity in seen:
                    first = seen[candidate.identity]
                    known = by_identity.get(candidate.identity)
                    unused = path
                    if known is not None and _misfit(path, known) < _misfit(first, known):
                        unused, first = first, path
                        known.path = seen[known.identity] = path
                    strays.append(Stray(unused, "given twice" if first == unused else f"the same file as {first}"))
                    continue
                seen[candidate.identity] = path
                try:
                    candidate.metadata, index = metadata_of(fd, parsed, hashes)
                    candidate.claim = (candidate.metadata.set_id, index)
                except ShardFormatError as error:
                    candidate.reason = str(error)
                    candidate.denied = error if isinstance(error, AuthenticationError) else None
                    candidate.marked = os.pread(fd, len(MAGIC_BYTES), 0) == MAGIC_BYTES
            finally:
                os.close(fd)
        except (OSError, ShardFormatError) as error:
            unread = isinstance(error, OSError) and not isinstance(error, FileNotFoundError)
            strays.append(Stray(path, getattr(error, "strerror", None) or str(error), unread))
            continue
        candidates.append(candidate)
        by_identity[candidate.identity] = candidate
    return candidates


def _misfit(path: str, candidate: Candidate) -> tuple[bool, bool]:
    """Rank the paths of one file. A repair replaces what has the path: that must not be a mere alias of the shard."""
    name = os.path.basename(path)
    if candidate.metadata is None or candidate.claim is None:
        odd = set_name(name) is None
    else:
        odd = name != shard_name(candidate.metadata.name, candidate.claim[1])
    return os.path.islink(path), odd


def _agrees(fd: int, candidate: Candidate, metadata: Metadata) -> bool:
    """Return whether the first, a middle and the last frame say what the metadata frame says (checksums aside)."""
    geometry = metadata.geometry
    frames = -(-(candidate.size - geometry.metadata_length) // geometry.frame_length)
    for stripe in {0, frames // 2, frames - 1} if frames > 0 else set():
        header = sound_header(fd, geometry.offset(stripe), geometry.block_length, None)
        if header is None or (header.set_id, header.shard) != candidate.claim:
            return False
    return True


def _vote(fd: int, candidate: Candidate, sets: dict[bytes, Metadata]) -> None:
    """Count which sets and shards the sound frames of a file name, at the places that known sets give them.

    The metadata frame has a vote too, and decides a tie.
    """
    votes = candidate.votes
    if candidate.claim is not None:
        votes[candidate.claim] += 1
    for geometry, checksum in dict.fromkeys((metadata.geometry, metadata.checksum) for metadata in sets.values()):
        frames = -(-(candidate.size - geometry.metadata_length) // geometry.frame_length)
        # A first pass over evenly spaced frames; a second over all of them if none is sound.
        for step in dict.fromkeys((max(1, frames // _VOTES), 1)):
            sound = False
            for stripe in range(0, frames, step):
                at = geometry.offset(stripe)
                header = sound_header(fd, at, geometry.block_length, None)
                if header is None or header.stripe != stripe or header.shard >= header.k + header.m:
                    continue
                known = sets.get(header.set_id)
                if known is not None and (known.geometry != geometry or header.shard >= known.n):
                    continue
                if sound_header(fd, at, geometry.block_length, checksum) is not None:
                    votes[header.set_id, header.shard] += 1
                    sound = True
            if sound:
                break
    if votes:
        most = max(votes.values())
        winners = [holding for holding, count in votes.items() if count == most]
        candidate.holds = candidate.claim if candidate.claim in winners else winners[0]


def identify(candidates: list[Candidate], conflicts: dict[bytes, str] | None = None) -> dict[bytes, Metadata]:
    """Decide what each file holds; return the metadata of every set.

    Parameters
    ----------
    candidates : list of Candidate
    conflicts : dict of bytes to str, optional
        Gets for each set whose shards carry different metadata a message.

    Raises
    ------
    ShardSetError
        If there is such a set, and no `conflicts` to put it in.
    """
    sets: dict[bytes, Metadata] = {}
    origin: dict[bytes, str] = {}
    for candidate in candidates:
        if candidate.metadata is None:
            continue
        known = sets.setdefault(candidate.metadata.set_id, candidate.metadata)
        first = origin.setdefault(known.set_id, candidate.path)
        if known.text != candidate.metadata.text:
            message = (
                f"{first} and {candidate.path} carry different metadata for set {known.set_id.hex()}; "
                f"leave out the one that you do not trust"
            )
            if conflicts is None:
                raise ShardSetError(message)
            conflicts.setdefault(known.set_id, message)
    for candidate in candidates:
        try:
            fd = open_regular(candidate.path)
        except (OSError, ShardFormatError) as error:
            candidate.reason = getattr(error, "strerror", None) or str(error)
            continue
        try:
            if candidate.metadata is not None and _agrees(fd, candidate, candidate.metadata):
                candidate.holds = candidate.claim
            else:
                _vote(fd, candidate, sets)
        except OSError:
            candidate.holds = candidate.claim
        finally:
            os.close(fd)
    return sets
