"""One tar stream of many files, written by a thread of its own while it is read."""

import io
import os
import stat
import tarfile
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from gfcode.errors import GFCodeError, InputChangedError, ShardFormatError
from gfcode.pipeline.probe import open_regular
from gfcode.pipeline.trees import Entry, walk

__all__ = ["TarStream"]

StrPath = str | os.PathLike[str]


class TarStream(io.RawIOBase):
    """A readable stream: the tar archive (pax format) of files and directories, with links as links.

    It must be used as a context manager, so that its thread ends. If a file cannot be read, or changes while it is
    read, the read that comes upon it raises, so that no archive passes for whole that isn't.

    Parameters
    ----------
    sources, exclude
        As for `gfcode.pipeline.trees.walk`.
    avoid : sequence of str
        Directories to pass over.
    """

    def __init__(self, sources: Sequence[StrPath], *, exclude: Sequence[str] = (), avoid: Sequence[str] = ()) -> None:
        super().__init__()
        self._entries = list(walk(sources, exclude=exclude, avoid=avoid, everything=True))
        for entry in self._entries:
            if entry.error is not None:
                raise entry.error
        self._failure: BaseException | None = None
        reading, writing = os.pipe2(os.O_CLOEXEC)
        self._reader = open(reading, "rb", buffering=0)  # noqa: SIM115 - closed by `close`
        # It only writes into the pipe: where an interrupt comes before anybody can end it, nobody need wait for it.
        self._thread = threading.Thread(target=self._write, args=(writing,), name="gfcode-tar", daemon=True)
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __enter__(self) -> Self:
        return self

    def close(self) -> None:
        """End the thread: its next write fails."""
        if not self.closed:
            self._reader.close()
            self._thread.join()
        super().close()

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # the base names a private buffer type
        """Read as `io.RawIOBase.readinto` does.

        Raises
        ------
        InputChangedError, OSError
            If a file changed while it was read, or cannot be read.
        """
        count = self._reader.readinto(buffer) or 0
        if not count and len(buffer):
            self._thread.join()
            if self._failure is not None:
                raise self._failure
        return count

    def _write(self, fd: int) -> None:
        try:
            with open(fd, "wb") as pipe, tarfile.open(fileobj=pipe, mode="w|", format=tarfile.PAX_FORMAT) as tar:
                for entry in self._entries:
                    _add(tar, entry)
        except (GFCodeError, OSError) as error:
            self._failure = error


def _add(tar: tarfile.TarFile, entry: Entry) -> None:
    """Add one file, directory or link."""
    if entry.status is None:
        return
    if stat.S_ISSOCK(entry.status.st_mode):
        return  # there is nothing of a socket that an archive could hold
    name = entry.relative
    if not stat.S_ISREG(entry.status.st_mode):
        tar.add(entry.path, name, recursive=False)
        return
    try:
        opened = open_regular(entry.path)
    except ShardFormatError as error:
        raise InputChangedError(f"{entry.path} is no regular file any more; encode again") from error
    with open(opened, "rb") as file:
        before = os.fstat(file.fileno())
        info = tar.gettarinfo(arcname=name, fileobj=file)
        if info.islnk():  # a second name of a file that is in the archive already
            tar.addfile(info)
            return
        try:
            tar.addfile(info, file)
        except OSError as error:
            if error.errno is None:  # tarfile's own: the file ended early
                raise InputChangedError(f"{entry.path} became shorter while it was read; encode again") from error
            if not isinstance(error, BrokenPipeError):  # that is the archive's end
                error.filename = entry.path
            raise
        after = os.fstat(file.fileno())
        if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            raise InputChangedError(f"{entry.path} changed while it was read; encode again")
