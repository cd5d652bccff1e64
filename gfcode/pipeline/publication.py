"""Giving the files of a run their final names: all of a set, or none of it."""

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import Self

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

__all__ = ["Check", "Temporaries"]

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
                os.replace(backup, target)
                os.unlink(backup)  # renaming one name of a file to another of its names leaves both

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
