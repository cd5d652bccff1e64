"""Descriptors and names: whole reads and writes at an offset, temporary names, and giving files their final names."""

import contextlib
import errno
import os
import resource
import secrets
from collections.abc import Iterable, Sequence
from typing import Self

from gfcode.errors import TargetExistsError

__all__ = [
    "Temporaries",
    "TemporaryFile",
    "check_descriptors",
    "is_temporary",
    "publish",
    "read_at",
    "sync_directories",
    "temporary_name",
    "write_at",
]

#: Buffers that one system call takes (IOV_MAX of Linux).
_MAX_BUFFERS = 1024
_SUFFIX = ".tmp"
_TOKEN_DIGITS = 16
#: Descriptors that a run needs beside those of the shards: input, output, standard streams, the caller's own.
_SPARE_DESCRIPTORS = 16
#: What a file system answers that has no hard links.
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}


def check_descriptors(count: int) -> None:
    """Refuse to open more files at once than the process may.

    Raises
    ------
    OSError
        EMFILE, if `count` files and a few more are too many.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if count + _SPARE_DESCRIPTORS > limit:
        raise OSError(errno.EMFILE, f"{count} shards are open at once; raise the limit of {limit} files (ulimit -n)")


def read_at(fd: int, buffers: Sequence[memoryview], offset: int) -> int:
    """Fill buffers from a file, one after another.

    Returns
    -------
    int
        Bytes read; fewer than the buffers hold only where the file ends.
    """
    return _transfer(fd, buffers, offset, write=False)


def write_at(fd: int, buffers: Sequence[memoryview], offset: int) -> None:
    """Write buffers whole, one after another.

    Raises
    ------
    OSError
        If the file cannot take them.
    """
    _transfer(fd, buffers, offset, write=True)


def _transfer(fd: int, buffers: Sequence[memoryview], offset: int, *, write: bool) -> int:
    done = 0
    call = os.pwritev if write else os.preadv
    for start in range(0, len(buffers), _MAX_BUFFERS):
        part = buffers[start : start + _MAX_BUFFERS]
        wanted = sum(map(len, part))
        while wanted:
            moved = call(fd, part, offset + done)
            done += moved
            wanted -= moved
            if not wanted:
                break
            if not moved:
                if write:
                    raise OSError(errno.EIO, "nothing could be written")
                return done
            part = _after(part, moved)
    return done


def _after(buffers: Sequence[memoryview], moved: int) -> list[memoryview]:
    """Return what is left of the buffers behind the first `moved` bytes."""
    rest = list(buffers)
    while rest and moved >= len(rest[0]):
        moved -= len(rest.pop(0))
    if moved:
        rest[0] = rest[0][moved:]
    return rest


def temporary_name(name: str) -> str:
    """Return a new hidden name for the time in which the file `name` is incomplete.

    It is `.NAME.<16 hexadecimal digits>.tmp`; a long NAME is cut, so that the whole stays a legal name.
    """
    kept = os.fsencode(name)[: 255 - len(_SUFFIX) - _TOKEN_DIGITS - 2]
    return f".{os.fsdecode(kept)}.{secrets.token_hex(_TOKEN_DIGITS // 2)}{_SUFFIX}"


def is_temporary(name: str) -> bool:
    """Return whether a file name is one that `temporary_name` gives."""
    token = name[-len(_SUFFIX) - _TOKEN_DIGITS : -len(_SUFFIX)]
    return (
        name.startswith(".")
        and name.endswith(_SUFFIX)
        and name[: -len(_SUFFIX) - len(token)].endswith(".")
        and len(token) == _TOKEN_DIGITS
        and all(digit in "0123456789abcdef" for digit in token)
    )


def sync_directories(paths: Iterable[str]) -> None:
    """Make the names of the files at these paths durable."""
    for directory in dict.fromkeys(os.path.dirname(path) or "." for path in paths):
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        except OSError as error:
            if error.errno != errno.EINVAL:  # file systems without durable directories say so
                raise
        finally:
            os.close(fd)


class TemporaryFile:
    """A file that is written under a temporary name beside its target, which it does not touch.

    Parameters
    ----------
    target : str
    mode : int
        Permission bits, from which the process's umask is taken.
    """

    __slots__ = ("fd", "identity", "path", "target")

    def __init__(self, target: str, mode: int) -> None:
        directory, name = os.path.split(target)
        self.target = target
        self.path = os.path.join(directory, temporary_name(name))
        self.fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        found = os.fstat(self.fd)
        self.identity = (found.st_dev, found.st_ino)

    def reserve(self, length: int) -> None:
        """Allocate the file's blocks, so that a full disk shows at once and writes need not allocate."""
        if length:
            try:
                os.posix_fallocate(self.fd, 0, length)
            except OSError as error:
                if error.errno not in {errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS}:
                    raise OSError(error.errno, os.strerror(error.errno or 0), self.target) from error

    def close(self) -> None:
        """Close the descriptor; the file stays."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def discard(self) -> None:
        """Close and remove the file; it is no error if it is gone."""
        self.close()
        with contextlib.suppress(OSError):
            os.unlink(self.path)


def publish(path: str, target: str, *, replace: bool) -> None:
    """Give the finished file at `path` its final name.

    Raises
    ------
    TargetExistsError
        If `target` exists and `replace` is false.
    """
    if replace:
        os.replace(path, target)
        return
    try:
        os.link(path, target)  # unlike rename, it fails where the name is taken
    except FileExistsError as error:
        raise TargetExistsError(f"{target} exists") from error
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(target):
            raise TargetExistsError(f"{target} exists") from error
        os.rename(path, target)
    else:
        os.unlink(path)


class Temporaries:
    """The files of one run: all get their final names, or none does.

    As a context manager it removes, on the way out, every file that has not been published.
    """

    def __init__(self) -> None:
        self.files: list[TemporaryFile] = []
        self._published = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for file in self.files:
            if self._published:
                file.close()
            else:
                file.discard()

    def create(self, target: str, mode: int) -> TemporaryFile:
        """Open a new file for `target`."""
        file = TemporaryFile(target, mode)
        self.files.append(file)
        return file

    def publish(self, *, replace: bool, durable: bool, obsolete: Sequence[str] = ()) -> None:
        """Give every file its final name once all are complete; take the names back if one cannot be given.

        Files that are replaced keep a hidden second name until the last new name stands, so that an interrupted run
        leaves both the old files and the new ones.

        Parameters
        ----------
        replace : bool
            Whether existing targets may be replaced.
        durable : bool
            Whether contents and names are flushed to the device.
        obsolete : sequence of str
            Files of what is replaced that have no successor; removed last.
        """
        for file in self.files:
            if durable:
                os.fsync(file.fd)
            file.close()
        backups: dict[str, str] = {}
        try:
            if replace:
                for file in self.files:
                    self._keep(file.target, backups)
            for file in self.files:
                publish(file.path, file.target, replace=replace)
            if durable:
                sync_directories(file.target for file in self.files)
        except BaseException:
            self._take_back(backups)
            raise
        self._published = True
        for path in (*obsolete, *backups.values()):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        if durable and (obsolete or backups):
            sync_directories((*obsolete, *backups.values()))

    def _take_back(self, backups: dict[str, str]) -> None:
        """Undo whatever part of a publication has happened."""
        for file in self.files:
            with contextlib.suppress(OSError):
                found = os.lstat(file.target)
                if (found.st_dev, found.st_ino) == file.identity and file.target not in backups:
                    os.unlink(file.target)
        for target, backup in backups.items():
            with contextlib.suppress(OSError):
                os.replace(backup, target)
                os.unlink(backup)  # renaming one name of a file to another of its names leaves both

    @staticmethod
    def _keep(target: str, backups: dict[str, str]) -> None:
        """Give an existing target a hidden second name; where the file system cannot, a hidden name only."""
        directory, name = os.path.split(target)
        backup = os.path.join(directory, temporary_name(name))
        backups[target] = backup
        try:
            os.link(target, backup, follow_symlinks=False)
        except FileNotFoundError:
            del backups[target]
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            os.rename(target, backup)
