"""A small tree of files, and how its tests encode it and read what comes out."""

import json
import os
from pathlib import Path
from typing import Any

from tests.cli.conftest import Outcome, Runner

__all__ = ["CODE", "FILES", "contents", "encode", "lines", "make_tree", "shards"]

CODE = ("-k", "3", "-m", "2", "--frame", "4KiB")
FILES = {"a": b"a" * 5000, "sub/a": b"other a", "sub/deep/b.txt": os.urandom(30_000), "sub/empty": b"", "z.log": b"z"}


def make_tree(tmp_path: Path) -> Path:
    """Write the files below `in`."""
    for name, content in FILES.items():
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path / "in"


def lines(done: Outcome) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.out.splitlines()]


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def shards(*names: str, n: int = 5) -> set[str]:
    return {f"{name}.{index:03}.gfs" for name in names for index in range(n)}


def encode(gfcode: Runner, *arguments: str) -> Outcome:
    return gfcode("encode", *CODE, *arguments)
