"""Find the shards of a set among files and directories, by what they hold and never by their names alone."""

import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gfcode.errors import AuthenticationError, ParameterError, ShardFormatError, ShardSetError, UnrecoverableError
from gfcode.pipeline.candidates import Candidate, identify, look_at
from gfcode.pipeline.files import is_temporary, target_name
from gfcode.pipeline.frame import HASHES, Hashes
from gfcode.pipeline.metadata import Metadata
from gfcode.pipeline.names import shard_index, shard_name
from gfcode.pipeline.report import FrameStatus, Stray

__all__ = ["Candidate", "Found", "StrPath", "assemble", "find_set", "is_unfinished", "present_shards"]

StrPath = str | os.PathLike[str]


@dataclass(slots=True)
class Found:
    """The files of one set.

    Attributes
    ----------
    metadata : Metadata
    files : list of list of Candidate
        For each shard the files that hold it, the one to be repaired first.
    extra : list of list of Candidate
        For each shard the files that hold another one, but also frames of this one.
    metadata_status : dict
        State of the metadata frame by path.
    notes : dict
        Notes by path.
    strays : list of Stray
    directories : list of str
        Directories that the caller named.
    unfinished : list of str
        Hidden files beside them that have the names of its shards' unfinished ones.
    below : str
        Path from the directory that the caller named to that of the set's first file; empty where they are the same.
    """

    metadata: Metadata
    files: list[list[Candidate]]
    extra: list[list[Candidate]]
    metadata_status: dict[str, FrameStatus]
    notes: dict[str, list[str]]
    strays: list[Stray]
    directories: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    below: str = ""

    @property
    def present(self) -> int:
        """Number of shards for which there is a file."""
        return sum(1 for files in self.files if files)


def _expand(paths: Sequence[StrPath]) -> tuple[list[str], list[str], list[str], list[Stray]]:
    """Return files, left-over temporary files, directories that were named, and what cannot be looked at."""
    files: list[str] = []
    temporary: list[str] = []
    directories: list[str] = []
    strays: list[Stray] = []
    for path in map(os.fsdecode, paths):
        try:
            if not stat.S_ISDIR(os.stat(path).st_mode):
                files.append(path)
                continue
            names = sorted(os.listdir(path))
        except OSError as error:
            strays.append(Stray(path, error.strerror or str(error)))
            continue
        directories.append(path)
        for name in names:
            inside = os.path.join(path, name)
            if os.path.isfile(inside):
                (temporary if is_temporary(name) else files).append(inside)
    return files, temporary, directories, strays


def present_shards(candidates: Iterable[Candidate], set_id: bytes) -> int:
    """Return how many shards of a set the candidates hold."""
    return len({candidate.holds[1] for candidate in candidates if candidate.holds and candidate.holds[0] == set_id})


def _label(metadata: Metadata, present: int) -> str:
    return f"{metadata.set_id.hex()} ({metadata.name!r}, {present} of {metadata.n} shards, {metadata.k} needed)"


def _choose(candidates: list[Candidate], sets: dict[bytes, Metadata], wanted: str | None) -> Metadata:
    """Pick the set that is meant; refuse to guess."""
    labels = {set_id: _label(metadata, present_shards(candidates, set_id)) for set_id, metadata in sets.items()}
    if wanted is not None:
        chosen = [metadata for set_id, metadata in sets.items() if set_id.hex().startswith(wanted.lower())]
        if len(chosen) != 1:
            found = "no set" if not chosen else "more than one set"
            raise ShardSetError(
                f"{found} has an id that begins with {wanted!r}; there are {', '.join(labels.values())}"
            )
        return chosen[0]
    if len(sets) == 1:
        return next(iter(sets.values()))
    usable = [metadata for set_id, metadata in sets.items() if present_shards(candidates, set_id) >= metadata.k]
    if len(usable) == 1:
        return usable[0]
    if usable:
        raise ShardSetError(
            f"shards of {len(usable)} sets are here: {'; '.join(labels[metadata.set_id] for metadata in usable)}; "
            f"choose one by its id"
        )
    best = max(present_shards(candidates, set_id) / metadata.k for set_id, metadata in sets.items())
    nearest = [item for set_id, item in sets.items() if present_shards(candidates, set_id) / item.k == best]
    if len(nearest) > 1:
        raise UnrecoverableError(f"no set has enough shards: {'; '.join(labels.values())}")
    return nearest[0]


def find_set(paths: StrPath | Sequence[StrPath], set_id: str | None = None, hashes: Hashes = HASHES) -> Found:
    """Find the one shard set that is meant by some paths.

    Parameters
    ----------
    paths : path or sequence of path
        Shard files, and directories, whose files (not those of their directories) are looked at.
    set_id : str, optional
        The set's id, or the first digits of it.
    hashes : mapping of int to FrameHash
        Checksums that count: see `gfcode.pipeline.keys.hashes_for`.

    Raises
    ------
    AuthenticationError
        If the shards are keyed and no key is given, or none is authentic with the key that is.
    ShardSetError
        If there is no shard, or several sets could be meant, or shards of the set contradict one another.
    ShardFormatError
        If all that was found is of a format version that this release does not know.
    UnrecoverableError
        If none of several sets has enough shards, or no shard has a sound metadata frame.
    """
    if set_id is not None and (not set_id or set_id.lower().strip("0123456789abcdef")):
        raise ParameterError(f"a set id has hexadecimal digits, {set_id!r} has not")
    named = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    files, temporary, directories, strays = _expand(named)
    seen: dict[tuple[int, int], str] = {}
    candidates = look_at(files, strays, seen, hashes)
    sets = identify(candidates)
    meant = [metadata for metadata in sets.values() if metadata.set_id.hex().startswith((set_id or "").lower())]
    if not any(present_shards(candidates, metadata.set_id) >= metadata.k for metadata in meant) and temporary:
        # Complete shards that an interrupted run left under their temporary names are better than no set at all.
        candidates += look_at(temporary, strays, seen, hashes)
        sets = identify(candidates)
    else:
        strays += [Stray(path, "unfinished, or left behind by an interrupted run") for path in temporary]
    if not sets:
        raise _nothing(named, candidates, strays)
    found = assemble(_choose(candidates, sets, set_id), candidates, sets, strays, directories)
    found.unfinished = [path for path in temporary if is_unfinished(path, found.metadata.name)]
    return found


def is_unfinished(path: str, name: str) -> bool:
    """Return whether a hidden file has the name of an unfinished shard of the set `name`."""
    return shard_index(target_name(os.path.basename(path)), name) is not None


def assemble(
    metadata: Metadata, candidates: Iterable[Candidate], sets: dict[bytes, Metadata], strays: list[Stray],
    directories: list[str],
) -> Found:  # fmt: skip
    """Put the files of one set where they belong; all others become strays.

    Parameters
    ----------
    metadata : Metadata
        Of the set.
    candidates : iterable of Candidate
    sets : dict of bytes to Metadata
        All sets that are known.
    strays : list of Stray
        Those that are known already.
    directories : list of str
        Directories that the caller named.
    """
    found = Found(metadata, _lists(metadata.n), _lists(metadata.n), {}, {}, strays, directories)
    unknown = [candidate for candidate in candidates if not _assign(found, candidate, sets)]
    _assign_by_name(found, unknown)
    _rank(found)
    return found


def _lists(count: int) -> list[list[Candidate]]:
    return [[] for _ in range(count)]


def _nothing(named: Sequence[StrPath], candidates: Sequence[Candidate], strays: Sequence[Stray]) -> Exception:
    """Return the error that says why there is no set."""
    places = ", ".join(os.fsdecode(path) for path in named[:3]) + (", ..." if len(named) > 3 else "")
    marked = [candidate for candidate in candidates if candidate.marked]
    for candidate in marked:
        if candidate.denied is not None:
            return AuthenticationError(f"{candidate.path}: {candidate.reason}")
    if marked:
        first = f"{marked[0].path}: {marked[0].reason}"
        if all("format version" in candidate.reason for candidate in marked):
            return ShardFormatError(first)
        return UnrecoverableError(
            f"{len(marked)} shards are in {places}, but the metadata frame of every one is damaged ({first})"
        )
    reasons = [f"{candidate.path}: {candidate.reason}" for candidate in candidates]
    reasons = (reasons + [f"{stray.path}: {stray.reason}" for stray in strays])[:1]
    detail = f" ({reasons[0]})" if reasons else ""
    return ShardSetError(f"no shard in {places or 'nothing'}{detail}")


def _assign(found: Found, candidate: Candidate, sets: dict[bytes, Metadata]) -> bool:
    """Put a file where it belongs; False if nothing in it tells."""
    if candidate.holds is None:
        return False
    for set_id, index in candidate.votes:
        if set_id == found.metadata.set_id and (set_id, index) != candidate.holds:
            found.extra[index].append(candidate)
    set_id, index = candidate.holds
    if set_id != found.metadata.set_id:
        label = f"another set: {sets[set_id].name!r}" if set_id in sets else "a set without metadata:"
        found.strays.append(Stray(candidate.path, f"shard {index} of {label} {set_id.hex()}"))
        return True
    if candidate.claim == candidate.holds:
        status = FrameStatus.GOOD
    elif candidate.claim is None:
        status = FrameStatus.MISSING if candidate.size == 0 else FrameStatus.CHECKSUM
    else:
        status = FrameStatus.MISPLACED if candidate.claim[0] == set_id else FrameStatus.FOREIGN
    found.metadata_status[candidate.path] = status
    found.files[index].append(candidate)
    return True


def _assign_by_name(found: Found, unknown: Iterable[Candidate]) -> None:
    """Take files without one sound frame for the shard whose exact name they have, if no other file holds it."""
    for candidate in unknown:
        index = shard_index(os.path.basename(candidate.path), found.metadata.name)
        # A keyed shard that is read without its key may be all right: it must not be taken for damage.
        locked = candidate.denied is not None and candidate.denied.key_missing
        if locked or index is None or index >= found.metadata.n or found.files[index]:
            found.strays.append(Stray(candidate.path, f"no shard: {candidate.reason}"))
            continue
        found.metadata_status[candidate.path] = FrameStatus.MISSING if candidate.size == 0 else FrameStatus.CHECKSUM
        found.notes[candidate.path] = ["is known by its name only: it holds no sound frame"]
        found.files[index].append(candidate)


def _rank(found: Found) -> None:
    """Order the files of each shard: the one that has the shard's name first. Note odd names and second copies."""
    for index, files in enumerate(found.files):
        name = shard_name(found.metadata.name, index)
        files.sort(key=lambda candidate: os.path.basename(candidate.path) != name)
        for candidate in files[1:]:
            found.strays.append(Stray(candidate.path, f"a second copy of shard {index}, beside {files[0].path}"))
        for candidate in files[:1]:
            notes = found.notes.setdefault(candidate.path, [])
            if os.path.basename(candidate.path) != name:
                notes.append(f"holds shard {index}, whose name is {name}")
            if len(files) > 1:
                notes.append(f"has copies: {', '.join(other.path for other in files[1:])}")
