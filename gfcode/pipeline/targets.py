"""Where a new set goes: its directories, the names of its shards, and what stands there already."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Sequence

from gfcode.errors import AuthenticationError, ParameterError, ShardFormatError, TargetExistsError
from gfcode.pipeline.files import leftovers, thoroughly
from gfcode.pipeline.frame import HASHES, Hashes
from gfcode.pipeline.names import shard_index, shard_name
from gfcode.pipeline.probe import read_metadata

__all__ = ["check_targets", "is_interrupted", "made_directories", "make_directory", "remove_empty", "shard_targets"]

_NAME_MAX = 255
#: What is answered where there is no file that could be a shard.
_NO_FILE = {errno.ENOENT, errno.ELOOP, errno.ENXIO, errno.ENOTDIR}


def shard_targets(directories: Sequence[str], name: str, n: int) -> list[str]:
    """Return the paths of n shards, dealt round robin to the directories.

    Raises
    ------
    ParameterError
        If there is no directory, or the names would be too long.
    """
    if not directories:
        raise ParameterError("name at least one directory for the shards")
    if not all(directories):
        raise ParameterError("a directory for the shards has an empty name; . is the current one")
    longest = len(os.fsencode(shard_name(name, n - 1)))
    if longest > _NAME_MAX:
        raise ParameterError(f"shards of {name!r} would have names of {longest} bytes; give a shorter name")
    return [os.path.join(directories[index % len(directories)], shard_name(name, index)) for index in range(n)]


@contextlib.contextmanager
def made_directories(directories: Sequence[str]) -> Iterator[list[str]]:
    """Make the directories that are missing, and return them; if the body fails, remove them again."""
    made: list[str] = []
    try:
        for directory in directories:
            make_directory(directory, made)
        yield made
    except BaseException:
        thoroughly(lambda: remove_empty(made))
        raise


def make_directory(directory: str, made: list[str]) -> None:
    """Make a directory and those above it where they are missing.

    Parameters
    ----------
    directory : str
    made : list of str
        Takes each one before it is made (a signal's exception may come right after that), the outermost first.
    """
    for path in _missing(directory):
        made.append(path)
        try:
            os.mkdir(path)
        except OSError:
            made.pop()
            raise


def remove_empty(made: Sequence[str]) -> None:
    """Remove directories that `make_directory` has made and that are still empty."""
    for path in reversed(made):
        with contextlib.suppress(OSError):
            os.rmdir(path)


def _missing(directory: str) -> list[str]:
    """Return the directories to make for one to be there, the outermost first."""
    missing: list[str] = []
    while directory and not os.path.isdir(directory):
        missing.insert(0, directory)
        directory = os.path.dirname(directory)
    if missing and os.path.lexists(missing[0]):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), missing[0])
    return missing


def check_targets(
    targets: Sequence[str], name: str, *, force: bool, source: os.stat_result | None, hashes: Hashes = HASHES
) -> list[str]:
    """Refuse targets that exist, unless `force`.

    Parameters
    ----------
    targets : sequence of str
    name : str
        Name of the set.
    force : bool
    source : stat_result or None
        The input, which is never replaced.
    hashes : mapping of int to FrameHash
        Checksums by which shards of the set that is replaced are known.

    Returns
    -------
    list of str
        Shards beside the targets that belong to a set which will be replaced, and that have no successor (the old set
        had more shards): left there, they would be mixed with the new set.

    Raises
    ------
    TargetExistsError, ParameterError
        If a target must not be replaced.
    OSError
        If a file that may be of the set which is replaced cannot be read.
    """
    replaced: set[bytes] = set()
    for target in targets:
        try:
            found = os.lstat(target)
        except FileNotFoundError:
            continue
        if not force:
            raise TargetExistsError(f"{target} exists; force replaces the set")
        if stat.S_ISDIR(found.st_mode):
            raise TargetExistsError(f"{target} is a directory")
        if source is not None and os.path.samestat(found, source):
            raise ParameterError(f"{target} is the input itself; choose another name or directory")
        replaced |= _set_of(target, hashes)
    if force:
        # A run that was killed while it removed a set that it had replaced has left hidden names of some of its shards.
        for path in (path for paths in leftovers(targets).values() for path in paths):
            with contextlib.suppress(TargetExistsError, OSError):
                replaced |= _set_of(path, hashes)
    if not replaced:
        return []
    taken = set(targets)
    obsolete = []
    for directory in dict.fromkeys(os.path.dirname(target) for target in targets):
        for entry in os.listdir(directory or "."):
            path = os.path.join(directory, entry)
            if shard_index(entry, name) is not None and path not in taken and _set_of(path, hashes) & replaced:
                obsolete.append(path)
    return obsolete


def is_interrupted(targets: Sequence[str], source: os.stat_result | None, hashes: Hashes) -> bool:
    """Return whether an encoding of this very source was killed while its shards got their names.

    Then some targets stand, all of one set made of a file with this size and modification time, and shards of
    that set still have hidden names beside them. Who encodes the file again may replace them without being asked.
    """
    standing = [target for target in targets if os.path.lexists(target)]
    if source is None or not standing:
        return False
    sets: set[bytes] = set()
    for target in standing:
        try:
            metadata, _ = read_metadata(target, hashes)
        except (OSError, ShardFormatError):
            return False
        if (metadata.size, metadata.mtime_ns) != (source.st_size, source.st_mtime_ns):
            return False
        sets.add(metadata.set_id)
    waiting = (path for paths in leftovers(targets).values() for path in paths)
    return len(sets) == 1 and any(_set_of(path, hashes) == sets for path in waiting)


def _set_of(path: str, hashes: Hashes) -> set[bytes]:
    """Return the id of the set that a file says it belongs to, if it does."""
    try:
        return {read_metadata(path, hashes)[0].set_id}
    except AuthenticationError as error:
        if error.key_missing:  # which shards belong to it cannot be told: some of it might stay
            raise TargetExistsError(f"{path} is a shard of a keyed set; give its key to replace it") from error
        return set()
    except ShardFormatError:
        return set()
    except OSError as error:
        if error.errno in _NO_FILE:
            return set()
        # Which shards belong to its set cannot be told: some of it would stay, mixed with the new set.
        raise OSError(error.errno, f"{error.strerror}; remove it to replace its set", path) from error
