"""Where missing shards are written."""

import os

from gfcode.pipeline.discovery import Found
from gfcode.pipeline.names import shard_name

__all__ = ["places_of_new"]


def places_of_new(found: Found) -> tuple[dict[int, str], list[str]]:
    """Choose the paths of the shards that no file holds.

    The directories are those that the caller named, or else those in which shards were found. If every shard that was
    found lies in directory number (shard modulo the count of directories), as `encode_file` deals them out, so will
    the new ones; otherwise each goes to the directory with the fewest shards of the set, so that one lost directory
    costs as few shards as possible.

    Returns
    -------
    paths : dict of int to str
        A free name for each missing shard.
    notes : list of str
        Which of them are not the shard's own name, and why.
    """
    shown: dict[str, str] = {}  # the caller's spelling of each directory
    for directory in (*found.directories, *(os.path.dirname(files[0].path) for files in found.files if files)):
        shown.setdefault(_real(directory), directory)
    where = {index: _real(os.path.dirname(files[0].path)) for index, files in enumerate(found.files) if files}
    directories = list(dict.fromkeys(map(_real, found.directories))) or list(dict.fromkeys(where.values()))
    count = len(directories)
    dealt = all(directory == directories[index % count] for index, directory in where.items())
    loads = {directory: list(where.values()).count(directory) for directory in directories}
    paths: dict[int, str] = {}
    notes: list[str] = []
    for index, files in enumerate(found.files):
        if files:
            continue
        chosen = directories[index % count] if dealt else min(directories, key=loads.__getitem__)
        loads[chosen] += 1
        own = os.path.join(shown[chosen], shard_name(found.metadata.name, index))
        paths[index] = _free(own)
        if paths[index] != own:
            notes.append(f"{own} holds something else; shard {index} is written to {paths[index]}")
    return paths, notes


def _real(directory: str) -> str:
    return os.path.realpath(directory or ".")


def _free(path: str) -> str:
    """Return a path that does not exist: this one, or one with a number behind the stem."""
    stem, suffix = os.path.splitext(path)
    number, free = 0, path
    while os.path.lexists(free):
        number += 1
        free = f"{stem}-{number}{suffix}"
    return free
