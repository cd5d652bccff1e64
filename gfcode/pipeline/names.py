"""File names of shards. They are a convenience: what a file holds is told by its frames."""

import re

__all__ = ["looks_like_shard", "set_name", "shard_index", "shard_name"]

_NAME = re.compile(r"(?s)(.+)\.([0-9]{3,6})\.gfs")


def shard_name(name: str, index: int) -> str:
    """Return the name of shard `index` of the set `name`: `NAME.007.gfs`."""
    return f"{name}.{index:03d}.gfs"


def shard_index(file_name: str, name: str) -> int | None:
    """Return the shard number in the file name of a shard of the set `name`; None for any other file name."""
    match = _NAME.fullmatch(file_name)
    if match is None or match[1] != name or shard_name(name, int(match[2])) != file_name:
        return None
    return int(match[2])


def looks_like_shard(file_name: str) -> bool:
    """Return whether a file name is that of a shard of some set."""
    return _NAME.fullmatch(file_name) is not None


def set_name(file_name: str) -> str | None:
    """Return the name of the set whose shard has this file name; None for any other file name."""
    match = _NAME.fullmatch(file_name)
    return None if match is None or shard_name(match[1], int(match[2])) != file_name else match[1]
