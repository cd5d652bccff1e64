"""All shard sets under some paths: which files each of them has."""

import os
import stat
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gfcode.errors import AuthenticationError, GFCodeError, ParameterError, ShardSetError, UnrecoverableError
from gfcode.pipeline.candidates import Candidate, identify, look_at
from gfcode.pipeline.discovery import Found, StrPath, assemble, find_set, is_unfinished, present_shards
from gfcode.pipeline.files import is_temporary
from gfcode.pipeline.frame import HASHES, Hashes
from gfcode.pipeline.metadata import Metadata
from gfcode.pipeline.names import set_name
from gfcode.pipeline.report import Stray

__all__ = ["FoundSets", "LostSet", "find_sets", "look_again"]


@dataclass(frozen=True, slots=True)
class LostSet:
    """Files that are shards of some set, of which nothing more can be said; or a directory that cannot be listed."""

    name: str
    paths: tuple[str, ...]
    error: GFCodeError


@dataclass(slots=True)
class FoundSets:
    """What is under some paths.

    Attributes
    ----------
    sets : list of Found
        By the place of their first file.
    lost : list of LostSet
    strays : list of Stray
        Files that look like shards or unfinished ones, and belong to none of the sets.
    hashes : mapping of int to FrameHash
        Checksums that count.
    """

    sets: list[Found] = field(default_factory=list)
    lost: list[LostSet] = field(default_factory=list)
    strays: list[Stray] = field(default_factory=list)
    hashes: Hashes = field(default_factory=lambda: HASHES)

    @property
    def single(self) -> bool:
        """Whether there is one set, and nothing of another."""
        return len(self.sets) == 1 and not self.lost


@dataclass(slots=True)
class _Listing:
    files: list[str] = field(default_factory=list)
    temporary: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    named: list[str] = field(default_factory=list)
    strays: list[Stray] = field(default_factory=list)
    unread: list[LostSet] = field(default_factory=list)
    deep: bool = False


def find_sets(
    paths: StrPath | Sequence[StrPath], set_id: str | None = None, hashes: Hashes = HASHES, *, every: bool = False
) -> FoundSets:
    """Find all shard sets among some files and in directories, and in all directories below those.

    Where no directory has directories with files in them, and at most one set has shards enough, or one is asked for,
    this finds what `gfcode.pipeline.discovery.find_set` does.

    Parameters
    ----------
    paths : path or sequence of path
        Shard files and directories. Symbolic links to directories are followed where they are named only.
    set_id : str, optional
        The one set that is meant: its id, or the first digits of it.
    hashes : mapping of int to FrameHash
        Checksums that count.
    every : bool
        Whether sets without shards enough count too where only one has them.

    Raises
    ------
    ShardSetError, AuthenticationError, UnrecoverableError, ShardFormatError
        If there is no set, as by `find_set`.
    """
    named = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    listing = _Listing()
    listing.asked = [os.fsdecode(path) for path in named]
    for path in listing.asked:
        _list(path, listing)
    if set_id is not None and not listing.deep:
        return FoundSets([find_set(named, set_id, hashes)])
    seen: dict[tuple[int, int], str] = {}
    conflicts: dict[bytes, str] = {}
    candidates = look_at(listing.files, listing.strays, seen, hashes)
    sets = identify(candidates, conflicts)
    usable = sum(present_shards(candidates, known) >= metadata.k for known, metadata in sets.items())
    listing.unread += _unread_sets(listing, candidates, sets)
    if not listing.deep and usable <= 1 and not every and not listing.unread:
        return FoundSets([find_set(named, set_id, hashes)])
    return _grouped(listing, candidates, sets, conflicts, seen, set_id, hashes)


def _unread_sets(listing: _Listing, candidates: list[Candidate], sets: dict[bytes, Metadata]) -> list[LostSet]:
    """Return the sets of which no file can be read: by the names of their files, as nothing else is known."""
    known: set[tuple[str, str]] = set()
    for candidate in candidates:
        if candidate.holds is not None and candidate.holds[0] in sets:
            name, place = sets[candidate.holds[0]].name, os.path.dirname(candidate.path)
            # Shards of one set stand in one place below each of the directories that are named.
            known |= {(name, place)} | {(name, directory) for directory in _directories({place}, listing.named)}
    lost: dict[tuple[str, str], list[Stray]] = defaultdict(list)
    for stray in listing.strays:
        directory, file_name = os.path.split(stray.path)
        own = set_name(file_name)
        if stray.unread and own is not None and (own, directory) not in known:
            lost[own, directory].append(stray)
    return [
        LostSet(
            own, tuple(stray.path for stray in strays),
            GFCodeError(f"{len(strays)} shards cannot be read: {strays[0].path}: {strays[0].reason}"),
        )
        for (own, _), strays in lost.items()
    ]  # fmt: skip


def look_again(found: Found, hashes: Hashes) -> Found | None:
    """Return what there is of a set at its turn, which may be long after it was found; None if it is gone."""
    files = [file for listed in (*found.files, *found.extra) for file in listed]
    if all(_is_there(file) for file in files):
        return found
    set_id = found.metadata.set_id
    directories = sorted({os.path.dirname(file.path) or "." for file in files})
    paths = [entry.path for directory in directories if os.path.isdir(directory) for entry in os.scandir(directory)]
    if not any(file.claim and file.claim[0] == set_id for file in look_at(sorted(paths), [], {}, hashes)):
        return None
    again = find_set(directories, set_id.hex(), hashes)
    again.directories, again.below = found.directories, found.below
    return again


def _is_there(file: Candidate) -> bool:
    """Return whether a file is the one that was found."""
    try:
        status = os.stat(file.path)
    except OSError:
        return False
    return (status.st_dev, status.st_ino) == file.identity


def _grouped(
    listing: _Listing, candidates: list[Candidate], sets: dict[bytes, Metadata], conflicts: dict[bytes, str],
    seen: dict[tuple[int, int], str], set_id: str | None, hashes: Hashes,
) -> FoundSets:  # fmt: skip
    by_set = _by_set(candidates, sets)
    if listing.temporary and any(present_shards(by_set[known], known) < sets[known].k for known in sets):
        # Complete shards that an interrupted run left under their temporary names are better than no set at all.
        more = look_at(listing.temporary, listing.strays, seen, hashes)
        found = identify(candidates + more, conflicts)
        lacking = {known for known in sets if present_shards(by_set[known], known) < sets[known].k}
        used = [candidate for candidate in more if candidate.holds and candidate.holds[0] in lacking]
        candidates = candidates + used
        sets = {known: metadata for known, metadata in found.items() if known in sets}
        by_set = _by_set(candidates, sets)
        paths = {candidate.path for candidate in used}
        listing.temporary = [path for path in listing.temporary if path not in paths]
    result = FoundSets(strays=listing.strays, hashes=hashes)
    result.strays += [Stray(path, "unfinished, or left behind by an interrupted run") for path in listing.temporary]
    unfinished: dict[str, list[str]] = defaultdict(list)
    for path in listing.temporary:
        unfinished[os.path.dirname(path)].append(path)
    chosen = _chosen(sets, set_id)
    unknown = _unknown_by_name(candidates, sets)
    taken: set[str] = set()
    for known in chosen:
        metadata = sets[known]
        if known in conflicts:
            files = tuple(candidate.path for candidate in by_set[known])
            result.lost.append(LostSet(metadata.name, files, ShardSetError(conflicts[known])))
            continue
        places = {os.path.dirname(candidate.path) for candidate in by_set[known]}
        alone = sum(other.name == metadata.name for other in sets.values()) == 1
        own = [c for c in unknown[metadata.name] if alone or os.path.dirname(c.path) in places]
        found_set = assemble(metadata, by_set[known] + own, sets, [], _directories(places, listing.named))
        beside = {os.path.dirname(c.path) for files in found_set.files for c in files}
        found_set.unfinished = [
            path for directory in beside for path in unfinished[directory] if is_unfinished(path, metadata.name)
        ]
        first = next((c.path for files in found_set.files for c in files), "")
        found_set.below = _below(os.path.dirname(first), listing.named)
        taken.update(c.path for files in (*found_set.files, *found_set.extra) for c in files)
        result.sets.append(found_set)
    if set_id is None:
        _add_lost(result, candidates, sets, taken)
        result.lost += listing.unread
    if not result.sets and not result.lost:
        reason = next((f" ({stray.path}: {stray.reason})" for stray in listing.strays), "")
        raise ShardSetError(f"no shard in {', '.join(listing.asked[:3]) or 'nothing'}{reason}")
    if result.single:
        result.sets[0].strays += result.strays
    result.sets.sort(key=lambda found_set: min((c.path for files in found_set.files for c in files), default=""))
    return result


def _list(path: str, listing: _Listing, *, named: bool = True) -> None:
    """List files, with those in directories at any depth."""
    try:
        if not stat.S_ISDIR(os.stat(path).st_mode):
            listing.files.append(path)
            return
        names = sorted(os.listdir(path))
    except OSError as error:
        reason = error.strerror or str(error)
        if named:  # like a disk that is gone: its shards are missed in their sets
            listing.strays.append(Stray(path, reason))
        else:  # nobody knows which sets are there
            directory, name = os.path.split(path)
            unread = GFCodeError(f"the directory cannot be listed: {reason}")
            listing.unread.append(LostSet(name, (os.path.join(directory, name),), unread))
        return
    if named:
        listing.named.append(path)
    for name in names:
        inside = os.path.join(path, name)
        if os.path.isdir(inside):
            if not os.path.islink(inside):
                _list(inside, listing, named=False)
        elif os.path.isfile(inside):
            (listing.temporary if is_temporary(name) else listing.files).append(inside)
            listing.deep = listing.deep or not named


def _by_set(candidates: Iterable[Candidate], sets: dict[bytes, Metadata]) -> dict[bytes, list[Candidate]]:
    """Return for each set the files that hold any of it."""
    grouped: dict[bytes, list[Candidate]] = {known: [] for known in sets}
    for candidate in candidates:
        holdings = {set_id for set_id, _ in candidate.votes}
        if candidate.holds is not None:
            holdings.add(candidate.holds[0])
        for known in holdings:
            if known in grouped:
                grouped[known].append(candidate)
    return grouped


def _unknown_by_name(candidates: Iterable[Candidate], sets: dict[bytes, Metadata]) -> defaultdict[str, list[Candidate]]:
    """Return the files that hold nothing known, by the name of the set to which their own names say they belong."""
    unknown: defaultdict[str, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        name = set_name(os.path.basename(candidate.path))
        if name is not None and (candidate.holds is None or candidate.holds[0] not in sets):
            unknown[name].append(candidate)
    return unknown


def _chosen(sets: dict[bytes, Metadata], wanted: str | None) -> list[bytes]:
    if wanted is None:
        return list(sets)
    if not wanted or wanted.lower().strip("0123456789abcdef"):
        raise ParameterError(f"a set id has hexadecimal digits, {wanted!r} has not")
    chosen = [known for known in sets if known.hex().startswith(wanted.lower())]
    if len(chosen) != 1:
        raise ShardSetError(f"{'no' if not chosen else 'more than one'} set has an id that begins with {wanted!r}")
    return chosen


def _directories(places: set[str], named: Sequence[str]) -> list[str]:
    """Return the directories to which a set's shards were dealt, where the named ones tell.

    They do where every shard lies in the same place below one of them: `a/photos` and `b/photos` for `a`, `b`.
    """
    if not all(_above(place, named) for place in places):
        return []
    below = {_below(place, named) for place in places}
    if len(below) != 1:
        return []
    (relative,) = below
    return [os.path.join(path, relative) if relative else path for path in named]


def _above(place: str, named: Sequence[str]) -> list[str]:
    """Return those of the named directories that are a directory or above it."""
    return [path for path in named if place == path or place.startswith(os.path.join(path, ""))]


def _below(place: str, named: Sequence[str]) -> str:
    """Return the path to a directory from the nearest named one above it; empty where there is none."""
    above = _above(place, named)
    relative = os.path.relpath(place, max(above, key=len)) if above else "."
    return "" if relative == "." else relative


def _add_lost(result: FoundSets, candidates: Iterable[Candidate], sets: dict[bytes, Metadata], taken: set[str]) -> None:
    """Say of the files that belong to no set whether a set is lost with them."""
    lost: dict[tuple[str, str], list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        if candidate.path in taken or (candidate.holds is not None and candidate.holds[0] in sets):
            continue
        directory, file_name = os.path.split(candidate.path)
        name = set_name(file_name)
        if candidate.marked or candidate.votes:
            lost[directory, name or file_name].append(candidate)
        elif name is not None:
            result.strays.append(Stray(candidate.path, f"no shard: {candidate.reason}"))
    for (_, name), files in lost.items():
        denied = [candidate for candidate in files if candidate.denied is not None]
        first = (denied or files)[0]
        error: GFCodeError = (
            AuthenticationError(f"{first.path}: {first.reason}")
            if denied
            else UnrecoverableError(f"{first.path}: {len(files)} shards of a set without a sound metadata frame")
        )
        result.lost.append(LostSet(name, tuple(candidate.path for candidate in files), error))
