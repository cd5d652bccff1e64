"""Files to encode under directories: which of them, and where each stands below what was named."""

import fnmatch
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gfcode.errors import ParameterError, ShardFormatError
from gfcode.pipeline.files import is_temporary
from gfcode.pipeline.frame import MAGIC_BYTES
from gfcode.pipeline.names import looks_like_shard
from gfcode.pipeline.probe import open_regular

__all__ = ["Entry", "walk"]

StrPath = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that was found.

    Attributes
    ----------
    path : str
    relative : str
        Its path below the directory in which the thing that was named stands: `photos/2024/a.jpg` where `photos` was
        named, and `a.jpg` where `photos/2024/a.jpg` was.
    status : stat_result or None
        None where it could not be had.
    skipped : str
        Why it is not to be encoded; empty for a file that is.
    error : OSError or None
        Why it could not be looked at.
    """

    path: str
    relative: str
    status: os.stat_result | None = None
    skipped: str = ""
    error: OSError | None = None


def walk(
    sources: Sequence[StrPath], *, exclude: Sequence[str] = (), avoid: Sequence[str] = (), everything: bool = False
) -> Iterator[Entry]:
    """Yield the files that are meant by some paths, each directory's in the order of their names.

    Symbolic links are followed where they are named, and not inside directories. Of a directory named `.`, `..` or `/`
    the contents are taken, of any other the directory itself.

    Parameters
    ----------
    sources : sequence of path
    exclude : sequence of str
        Patterns as of the shell (`*`, `?`, `[a-z]`). One without `/` is compared with the name of every file and
        directory, one with `/` with the whole relative path; one that ends with `/` with directories only. What is in
        an excluded directory is excluded.
    avoid : sequence of str
        Directories in which shards are written: they are passed over, unless they are named themselves.
    everything : bool
        Whether to yield directories and what is no regular file too, as for an archive.

    Raises
    ------
    ParameterError
        If two things that were named would have one relative path, or a pattern is empty.
    """
    if not all(exclude):
        raise ParameterError("an empty pattern excludes nothing; leave it out")
    avoided = {_identity(path) for path in avoid}
    taken: dict[str, str] = {}
    for source in map(os.fsdecode, sources):
        base = os.path.basename(os.path.normpath(source))
        base = "" if base in {"", ".", ".."} else base
        try:
            status = os.stat(source)
        except OSError as error:
            yield Entry(source, base, error=error)
            continue
        if base in taken:
            raise ParameterError(f"{taken[base]} and {source} would both be {base or 'the top'!r}; name one at a time")
        taken[base] = source
        if base and _excluded(base, exclude, directory=stat.S_ISDIR(status.st_mode)):
            continue
        if not stat.S_ISDIR(status.st_mode):
            yield Entry(source, base, status)
            continue
        if everything and base:
            yield Entry(source, base, status)
        yield from _inside(source, base, exclude, avoided - {_identity(source)}, everything)


def _inside(
    directory: str, below: str, exclude: Sequence[str], avoided: set[tuple[int, int] | None], everything: bool
) -> Iterator[Entry]:
    try:
        names = sorted(os.listdir(directory))
    except OSError as error:
        yield Entry(directory, below, error=error)
        return
    for name in names:
        path, relative = os.path.join(directory, name), os.path.join(below, name)
        try:
            status = os.lstat(path)
        except OSError as error:
            yield Entry(path, relative, error=error)
            continue
        is_directory = stat.S_ISDIR(status.st_mode)
        if _excluded(relative, exclude, directory=is_directory):
            continue
        if is_directory:
            if (status.st_dev, status.st_ino) in avoided:
                continue
            if everything:
                yield Entry(path, relative, status)
            yield from _inside(path, relative, exclude, avoided, everything)
        else:
            yield Entry(path, relative, status, "" if everything else _reason(path, name, status))


def _reason(path: str, name: str, status: os.stat_result) -> str:
    """Say why a file inside a directory is not encoded."""
    if stat.S_ISLNK(status.st_mode):
        return "a symbolic link"
    if not stat.S_ISREG(status.st_mode):
        return "not a regular file"
    if is_temporary(name):
        return "an unfinished file"
    if looks_like_shard(name):
        try:
            with open(open_regular(path), "rb") as file:
                if file.read(len(MAGIC_BYTES)) == MAGIC_BYTES:
                    return "a shard"
        except (OSError, ShardFormatError):
            return ""  # what cannot be read is no shard for certain; the error shows when it is encoded
    return ""


def _excluded(relative: str, patterns: Sequence[str], *, directory: bool) -> bool:
    name = os.path.basename(relative)
    for pattern in patterns:
        wanted = pattern.rstrip("/")
        if pattern.endswith("/") and not directory:
            continue
        if fnmatch.fnmatchcase(relative if "/" in wanted else name, wanted.removeprefix("./")):
            return True
    return False


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
