"""Descriptors and names: whole reads and writes at an offset, temporary names, and giving a file its final name."""

import contextlib
import errno
import os
import resource
from collections.abc import Callable, Iterable, Iterator, Sequence

from gfcode.errors import TargetExistsError
from gfcode.pipeline.locks import claim

__all__ = [
    "NO_LINKS",
    "TemporaryFile",
    "check_descriptors",
    "is_temporary",
    "leftovers",
    "named_errors",
    "publish",
    "read_at",
    "sync_directories",
    "target_name",
    "temporary_name",
    "thoroughly",
    "write_at",
]

#: Buffers that one system call takes (IOV_MAX of Linux).
_MAX_BUFFERS = 1024
_SUFFIX = ".tmp"
_TOKEN_DIGITS = 16
#: Bytes of a file's name that its temporary name keeps.
_LONGEST_KEPT = 255 - len(_SUFFIX) - _TOKEN_DIGITS - 2
#: Descriptors that a run needs beside those of the shards: input, output, standard streams, the caller's own.
_SPARE_DESCRIPTORS = 16
#: Files that are longer have their blocks allocated before they are written.
_LEAST_RESERVED = 64 * 1024
#: What a file system answers that has no hard links.
NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}


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
            try:
                moved = call(fd, part, offset + done)
            except OSError as error:
                raise _named(error, fd) from error
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


def _named(error: OSError, fd: int) -> OSError:
    """Return an error of a call on a descriptor with the path of the file; of its target, where it is unfinished."""
    try:
        directory, name = os.path.split(os.readlink(f"/proc/self/fd/{fd}"))
    except OSError:
        return error
    if is_temporary(name):
        name = target_name(name)
    number = error.errno or errno.EIO
    return OSError(number, os.strerror(number), os.path.join(directory, name))


@contextlib.contextmanager
def named_errors(stream: object) -> Iterator[None]:
    """Give an error of reading or writing a file object the name that the object has."""
    try:
        yield
    except OSError as error:
        name = getattr(stream, "name", None)
        if error.filename is None and isinstance(name, str):
            error.filename = name.strip("<>")  # as in <stdout>
        raise


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
    kept = os.fsencode(name)[:_LONGEST_KEPT]
    return f".{os.fsdecode(kept)}.{os.urandom(_TOKEN_DIGITS // 2).hex()}{_SUFFIX}"


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


def target_name(name: str) -> str:
    """Return the name (cut, where it was long) of the file that a temporary one is for."""
    return name[1 : -len(_SUFFIX) - _TOKEN_DIGITS - 1]


def leftovers(targets: Iterable[str]) -> dict[str, list[str]]:
    """Return for each target the files beside it that `temporary_name` has named for it.

    Where a name had to be cut, there is no telling whose temporary it is, and none is returned.
    """
    found: dict[str, list[str]] = {target: [] for target in targets}
    named = {os.path.split(target): target for target in found}
    for directory in dict.fromkeys(directory for directory, _ in named):
        try:
            names = os.listdir(directory or ".")
        except OSError:
            continue
        for name in filter(is_temporary, names):
            stem = target_name(name)
            if (directory, stem) in named and len(os.fsencode(stem)) < _LONGEST_KEPT:
                found[named[directory, stem]].append(os.path.join(directory, name))
    return found


def sync_directories(paths: Iterable[str]) -> None:
    """Make the names of the files at these paths durable."""
    for directory in dict.fromkeys(os.path.dirname(path) or "." for path in paths):
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        except OSError as error:
            if error.errno != errno.EINVAL:  # file systems without durable directories say so
                raise _named(error, fd) from error
        finally:
            os.close(fd)


class TemporaryFile:
    """A file that is written under a temporary name beside its target, which it does not touch.

    It is locked as long as it is open: see `gfcode.pipeline.locks`.

    Parameters
    ----------
    target : str
    mode : int
        Permission bits, from which the process's umask is taken.
    registry : list of TemporaryFile, optional
        Takes this one before the file is made: a signal's exception may come between that and any use of the result,
        and whoever then discards what is in the list must not miss it.
    """

    __slots__ = ("fd", "identity", "path", "target")

    def __init__(self, target: str, mode: int, registry: "list[TemporaryFile] | None" = None) -> None:
        directory, name = os.path.split(target)
        self.target = target
        self.fd = -1
        self.path = os.path.join(directory, temporary_name(name))
        if registry is not None:
            registry.append(self)
        while True:
            try:
                self.fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
            except OSError as error:
                error.filename = target  # nobody has asked for the hidden name
                raise
            if claim(self.fd):
                break
            self.discard()
            self.path = os.path.join(directory, temporary_name(name))
        found = os.fstat(self.fd)
        self.identity = (found.st_dev, found.st_ino)

    def reserve(self, length: int) -> None:
        """Allocate the file's blocks, so that a full disk shows at once and writes need not allocate.

        A file that one call writes gains nothing by it, and many of them are allocated better together.
        """
        if length > _LEAST_RESERVED:
            try:
                os.posix_fallocate(self.fd, 0, length)
            except OSError as error:
                if error.errno not in {errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS}:
                    raise OSError(error.errno, os.strerror(error.errno or 0), self.target) from error

    def flush(self, *, durable: bool) -> None:
        """Make sure that the file system has taken all that was written; that the device has, if `durable`.

        The file stays open, and with that locked, until it has its name.
        """
        try:
            if durable:
                os.fsync(self.fd)
            else:
                os.close(os.dup(self.fd))  # network file systems say only now that there was no room
        except OSError as error:
            raise _named(error, self.fd) from error

    def close(self) -> None:
        """Close the descriptor; the file stays."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def discard(self) -> None:
        """Close and remove the file; it is no error if it is gone, or has its final name."""
        self.close()
        with contextlib.suppress(OSError):
            os.unlink(self.path)


def thoroughly(clean_up: Callable[[], None]) -> None:
    """Run a clean-up, which may be run twice, to its end even if a signal's exception interrupts it."""
    try:
        clean_up()
    except (KeyboardInterrupt, SystemExit):
        clean_up()
        raise


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
        if error.errno not in NO_LINKS:
            raise
        if os.path.lexists(target):
            raise TargetExistsError(f"{target} exists") from error
        os.rename(path, target)
    else:
        os.unlink(path)
