"""Small shard sets for the pipeline's tests."""

import io
import os
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gfcode.pipeline import decode_file, encode_file, repair_set, verify_set
from gfcode.pipeline.outcomes import DecodeReport, EncodeReport, RepairReport
from gfcode.pipeline.probe import read_metadata
from gfcode.pipeline.report import FrameStatus, SetReport

__all__ = ["SMALL_FRAME", "FileSet", "make_set", "random_bytes"]

#: A frame with a block of two strips of w = 8: many stripes from little data.
SMALL_FRAME = 512 + 1024


def random_bytes(count: int, seed: int = 0) -> bytes:
    """Return bytes that are the same in every run."""
    return random.Random(seed * 1_000_003 + count).randbytes(count)


@dataclass
class FileSet:
    """An encoded file, its directory, and what its shards held when they were new."""

    data: bytes
    directory: Path
    report: EncodeReport
    paths: list[Path]
    original: dict[str, bytes]

    @property
    def geometry(self) -> Any:
        for path in self.paths:
            if path.exists():
                return read_metadata(str(path))[0].geometry
        raise AssertionError("no shard is left")

    def offset(self, stripe: int) -> int:
        """Return where the frame of a stripe begins."""
        return int(4096 + stripe * self.report.frame_length)

    def change(self, shard: int, at: int, new: bytes | None = None) -> None:
        """Overwrite bytes of a shard; by default, flip all bits of one."""
        with self.paths[shard].open("r+b") as file:
            file.seek(at)
            old = file.read(1)
            file.seek(at)
            file.write(bytes([old[0] ^ 0xFF]) if new is None else new)

    def remove(self, *shards: int) -> None:
        for shard in shards:
            self.paths[shard].unlink()

    def verify(self, **options: Any) -> SetReport:
        return verify_set(self.directory, **options)

    def repair(self, **options: Any) -> RepairReport:
        return repair_set(self.directory, durable=False, **options)

    def decode(self, **options: Any) -> tuple[bytes, DecodeReport]:
        out = io.BytesIO()
        report = decode_file(options.pop("paths", self.directory), out, **options)
        return out.getvalue(), report

    def assert_decodes(self, **options: Any) -> None:
        assert self.decode(**options)[0] == self.data

    def assert_original(self) -> None:
        """Check that the directories hold just the shards as they were encoded."""
        found = {}
        for directory in {path.parent for path in self.paths}:
            found.update({str(directory / name): (directory / name).read_bytes() for name in os.listdir(directory)})
        assert found == self.original

    def status(self, shard: int, stripe: int) -> FrameStatus:
        return FrameStatus(int(self.verify().damage[shard, stripe]))


def make_set(directory: Path, data: bytes, k: int = 3, m: int = 2, name: str = "file", **options: Any) -> FileSet:
    """Encode some bytes into `directory`/shards (or `out`), in small frames and without flushing unless told."""
    directory.mkdir(parents=True, exist_ok=True)
    source = directory / name
    source.write_bytes(data)
    options = {"frame": SMALL_FRAME, "durable": False, "threads": 1, "out": directory / "shards", **options}
    report = encode_file(source, k=k, m=m, **options)
    source.unlink()
    paths = [Path(path) for path in report.paths]
    original = {str(path): path.read_bytes() for path in paths}
    return FileSet(data, paths[0].parent, report, paths, original)
