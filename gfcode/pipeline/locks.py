"""Locks that need no files of their own: on the directory in which names are given, and on unfinished files.

They are `flock` locks, which end with the process that has them, however it ends. A lock on a directory is held while
files there get their final names, so that two runs never mix their shards. A lock on an unfinished file is held until
it has its name: an unfinished file that nobody locks was left behind by a run that was killed.

Where a file system knows no such locks, directories are not locked, and no file is taken for left behind.
"""

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterable, Iterator

__all__ = ["claim", "is_abandoned", "locked_directories", "remove_if_abandoned"]

#: What a file system answers that has no `flock`, for directories or at all.
_NO_LOCKS = {errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP}


def claim(fd: int) -> bool:
    """Lock an unfinished file that was just made, as long as its descriptor is open.

    Returns
    -------
    bool
        False if another process, which took it for left behind, has removed it or is about to.
    """
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    return os.fstat(fd).st_nlink > 0


def is_abandoned(path: str) -> bool:
    """Return whether an unfinished file is there, and no process is at work on it."""
    return _abandoned(path, remove=False)


def remove_if_abandoned(path: str) -> bool:
    """Remove an unfinished file, unless a process is at work on it; return whether it was removed."""
    return _abandoned(path, remove=True)


def _abandoned(path: str, *, remove: bool) -> bool:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            return False
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(found, os.lstat(path)):
            return False
        if remove:
            os.unlink(path)
    except OSError:  # locked by its owner, or by none for want of locks, or gone
        return False
    finally:
        os.close(fd)
    return True


@contextlib.contextmanager
def locked_directories(directories: Iterable[str]) -> Iterator[None]:
    """Lock directories for the length of a `with` block; wait while another run holds one of them."""
    with contextlib.ExitStack() as stack:
        opened: dict[tuple[int, int], int] = {}
        for directory in dict.fromkeys(path or "." for path in directories):
            try:
                fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except PermissionError:  # files can be made in directories that cannot be listed, but not locked
                continue
            stack.callback(os.close, fd)
            found = os.fstat(fd)
            opened.setdefault((found.st_dev, found.st_ino), fd)
        for identity in sorted(opened):  # always in the same order, so that two runs never wait for each other
            try:
                fcntl.flock(opened[identity], fcntl.LOCK_EX)
            except OSError as error:
                if error.errno not in _NO_LOCKS:
                    raise
        yield
