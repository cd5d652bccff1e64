"""Giving the files of a run their final names: all of a set, or none of it."""

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import Self

from gfcode.errors import GFCodeError
from gfcode.pipeline.files import (
    NO_LINKS,
    TemporaryFile,
    leftovers,
    publish,
    sync_directories,
    temporary_name,
    thoroughly,
)
from gfcode.pipeline.locks import locked_directories, remove_if_abandoned

__all__ = ["Check", "Temporaries", "publish_together"]

#: Called when the directories are locked: looks once more whether names may be given, and returns what they replace.
Check = Callable[[], Sequence[str]]


class Temporaries:
    """The files of one set: all get their final names, or none does.

    As a context manager it removes, on the way out, every file that has not been published.
    """

    def __init__(self) -> None:
        self.files: list[TemporaryFile] = []
        self._published = False
        self._backups: dict[str, str] = {}
        self._obsolete: Sequence[str] = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        thoroughly(self._clean_up)

    def _clean_up(self) -> None:
        for file in self.files:
            if self._published:
                file.close()
            else:
                file.discard()
        if self._published:
            self._remove_replaced()

    @property
    def directories(self) -> list[str]:
        """Directories of the targets."""
        return list(dict.fromkeys(os.path.dirname(file.target) for file in self.files))

    def create(self, target: str, mode: int) -> TemporaryFile:
        """Open a new file for `target`."""
        return TemporaryFile(target, mode, self.files)

    def publish(self, *, replace: bool, durable: bool, check: Check | None = None) -> None:
        """Give every file its final name once all are complete; take the names back if one cannot be given.

        Files that are replaced keep a hidden second name until the last new name stands, so that an interrupted run
        leaves both the old files and the new ones. Unfinished files that killed runs have left for these targets are
        removed at the end. Another run that gives names in the same directories is waited for.

        Parameters
        ----------
        replace : bool
            Whether existing targets may be replaced.
        durable : bool
            Whether contents and names are flushed to the device.
        check : callable, optional
            Called before the first name is given, when no other run can give names there. Returns files of what is
            replaced that have no successor; they are removed last.
        """
        for file in self.files:
            file.flush(durable=durable)
        with locked_directories(self.directories):
            try:
                self.give_names(replace=replace, check=check)
                if durable:
                    sync_directories(file.target for file in self.files)
                stale = leftovers(file.target for file in self.files)
                self._published = True
            except BaseException:
                self.take_back()
                raise
            removed = self.settle(stale)
            if durable and removed:
                sync_directories(removed)

    def give_names(self, *, replace: bool, check: Check | None = None) -> None:
        """Give all files their names; whoever calls has the directories locked, and takes back what fails."""
        self._obsolete = check() if check is not None else ()
        if replace:
            for file in self.files:
                self._keep(file.target)
        for file in self.files:
            publish(file.path, file.target, replace=replace)

    def keep(self) -> None:
        """Keep the new names, whatever comes."""
        self._published = True

    def settle(self, stale: dict[str, list[str]]) -> list[str]:
        """Keep the new names for good: remove what they replaced, and what killed runs have left.

        Parameters
        ----------
        stale : dict of str to list of str
            What `leftovers` found.

        Returns
        -------
        list of str
            What was removed.
        """
        self._published = True
        for file in self.files:
            file.close()
        return self._remove_replaced() + [
            path for file in self.files for path in stale[file.target] if remove_if_abandoned(path)
        ]

    def _remove_replaced(self) -> list[str]:
        # Hidden names last: by them a later run knows which shards an interrupted one has yet to remove.
        removed = [*self._obsolete, *self._backups.values()]
        for path in removed:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        return removed

    def take_back(self) -> None:
        """Undo whatever part of a publication has happened."""
        self._published = False
        for file in self.files:
            with contextlib.suppress(OSError):
                found = os.lstat(file.target)
                if (found.st_dev, found.st_ino) == file.identity and file.target not in self._backups:
                    os.unlink(file.target)
        for target, backup in self._backups.items():
            with contextlib.suppress(OSError):
                if os.path.lexists(target) and os.path.samestat(os.lstat(target), os.lstat(backup)):
                    os.unlink(backup)  # nothing has replaced the file yet
                else:
                    os.replace(backup, target)

    def _keep(self, target: str) -> None:
        """Give an existing target a hidden second name; where the file system cannot, a hidden name only."""
        directory, name = os.path.split(target)
        backup = os.path.join(directory, temporary_name(name))
        self._backups[target] = backup
        try:
            os.link(target, backup, follow_symlinks=False)
        except FileNotFoundError:
            del self._backups[target]
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            os.rename(target, backup)


def publish_together(
    runs: Sequence[tuple[Temporaries, bool, Check]], *, durable: bool, made: Sequence[str] = ()
) -> list[Exception | None]:
    """Give the files of several sets their names, with one flush for all contents and one for all names.

    Each set gets all of its names or none of them, as by `Temporaries.publish`.

    Parameters
    ----------
    runs : sequence of (Temporaries, bool, callable)
        `replace` and `check` with each.
    durable : bool
    made : sequence of str
        Directories that were made for them, whose names become durable too.

    Returns
    -------
    list of Exception or None
        For each set why it got no names; None where it did.
    """
    files = [file for run, _, _ in runs for file in run.files]
    _flush(files, durable=durable)
    outcomes: list[Exception | None] = []
    begun: list[Temporaries] = []
    with locked_directories(directory for run, _, _ in runs for directory in run.directories):
        try:
            for run, replace, check in runs:
                begun.append(run)
                try:
                    run.give_names(replace=replace, check=check)
                except (GFCodeError, OSError) as error:
                    run.take_back()
                    begun.pop()
                    outcomes.append(error)
                else:
                    outcomes.append(None)
            if durable and not _sync_file_systems(files):
                sync_directories((*made, *(file.target for run in begun for file in run.files)))
            stale = leftovers(file.target for run in begun for file in run.files)
            for run in begun:  # all of them before the first is settled: an interrupt of that must not cost the others
                run.keep()
        except BaseException:
            for run in begun:
                run.take_back()
            raise
        for run in begun:
            run.settle(stale)
    return outcomes


def _flush(files: Sequence[TemporaryFile], *, durable: bool) -> None:
    """Flush the contents of files, where they are many by flushing their file systems."""
    if not durable or not _sync_file_systems(files):
        for file in files:
            file.flush(durable=durable)


def _sync_file_systems(files: Sequence[TemporaryFile]) -> bool:
    """Flush the file systems on which files lie; False where that cannot be had, or would hide errors.

    A file system says of a flush what went wrong since the descriptor was opened: that of the file opened first tells
    of all. Linux before 5.8 says nothing.
    """
    version = tuple(int(part) for part in os.uname().release.split(".")[:2] if part.isdecimal())
    if version < (5, 8):
        return False
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "syncfs"):
        return False
    first: dict[int, TemporaryFile] = {}
    for file in files:
        first.setdefault(file.identity[0], file)
    for file in first.values():
        if libc.syncfs(file.fd):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), file.target)
    return True
