"""Small shard sets that the campaigns start from, and what their shards held when they were new."""

import functools
import io
import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gfcode.pipeline import encode_file
from gfcode.pipeline.probe import read_metadata

__all__ = ["NAME", "SHAPES", "Sample", "make_sample", "samples", "scratch_directory"]

NAME = "file"
#: k, m, bytes, and options of `encode_file`; "streamed" hides the size.
SHAPES: tuple[tuple[int, int, int, dict[str, Any]], ...] = (
    (2, 1, 700, {"frame": 1024}),
    (3, 2, 9_000, {"frame": 1024}),
    (4, 3, 20_000, {"frame": 1024}),
    (3, 2, 9_100, {"frame": 1024, "streamed": True}),
    (1, 2, 100, {"frame": 1024}),
    (1, 1, 5_000, {"frame": 1024, "streamed": True}),
    (5, 2, 12_345, {"frame": 1536, "w": 4}),
    (2, 4, 7_777, {"frame": 576, "w": 16, "layout": "words"}),
    (6, 2, 30_720, {"frame": 1024, "checksum": "blake3"}),
    (3, 1, 0, {"frame": 1024}),
)


@dataclass(frozen=True)
class Sample:
    """An encoded file.

    Attributes
    ----------
    data : bytes
    k, m : int
    set_id : bytes
    shards : tuple of bytes
        The shard files, byte for byte.
    starts : tuple of int
        Offsets of the frames in each of them, the metadata frame's (0) first; the length of a shard at the end.
    """

    data: bytes
    k: int
    m: int
    set_id: bytes
    shards: tuple[bytes, ...]
    starts: tuple[int, ...]

    @property
    def n(self) -> int:
        return self.k + self.m

    @property
    def stripes(self) -> int:
        return len(self.starts) - 2

    def name(self, shard: int) -> str:
        return f"{NAME}.{shard:03d}.gfs"

    def frame(self, shard: int, stripe: int) -> bytes:
        """Return the frame of a stripe; that of the metadata is stripe -1."""
        return self.shards[shard][self.starts[stripe + 1] : self.starts[stripe + 2]]

    def write(self, directory: Path) -> None:
        """Put the set into an empty directory."""
        for shard, content in enumerate(self.shards):
            (directory / self.name(shard)).write_bytes(content)


def make_sample(k: int, m: int, size: int, seed: int, options: dict[str, Any]) -> Sample:
    """Encode `size` random bytes."""
    options = dict(options)
    data = random.Random(seed).randbytes(size)
    with scratch_directory() as base:
        (base / NAME).write_bytes(data)
        source: Any = io.BytesIO(data) if options.pop("streamed", False) else base / NAME
        report = encode_file(source, k=k, m=m, name=NAME, out=base / "s", durable=False, threads=1, **options)
        shards = tuple(Path(path).read_bytes() for path in report.paths)
        geometry = read_metadata(report.paths[0])[0].geometry
    starts = (0, *(geometry.offset(stripe) for stripe in range(report.stripes)), len(shards[0]))
    return Sample(data, k, m, bytes.fromhex(report.set_id), shards, starts)


@functools.cache
def samples() -> tuple[tuple[Sample, Sample], ...]:
    """Return for each shape a set, and another one of the same shape to take foreign frames from."""
    return tuple(
        (make_sample(k, m, size, number, options), make_sample(k, m, size, 1000 + number, options))
        for number, (k, m, size, options) in enumerate(SHAPES)
    )


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """Give a new directory, in memory where the machine has a file system there; it is removed at the end."""
    memory = "/dev/shm"  # noqa: S108  (not a guessable name: a new directory inside it)
    parent = memory if os.access(memory, os.W_OK) else None
    path = Path(tempfile.mkdtemp(prefix="gfcode-reliability-", dir=parent))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
