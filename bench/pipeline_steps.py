"""What each step of the pipeline costs by itself: start-up, reading, checking, computing and writing, in one thread.

    python -m bench.pipeline_steps [--size 1GiB] [--code 10+4] [--rounds 5] [--directory DIR]

CPU seconds (user and system), medians with their range. Steps are given for each GiB that they touch: bytes read,
frames checked, data encoded, bytes written into new files. Start-up is that of whole commands on 1,000 bytes.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.bench_pipeline import GFCODE, empty, make_source, measure, parse_size
from gfcode.pipeline.batch import Batch, batch_stripes
from gfcode.pipeline.discovery import find_set
from gfcode.pipeline.files import read_at, write_at
from gfcode.pipeline.shardset import ShardSet

GIB = 1 << 30


def cpu_seconds(step: Callable[[], object]) -> float:
    """Run a step; return its CPU seconds."""
    before = time.process_time()
    step()
    return time.process_time() - before


def show(name: str, values: list[float], unit: str) -> None:
    """Print a median with its range."""
    print(f"{name:44} {statistics.median(values):6.3f} [{min(values):.3f}-{max(values):.3f}] {unit}", flush=True)


def start_up(work: Path, code: list[str], rounds: int) -> None:
    """Time whole commands on a file of which nothing but the start-up shows."""
    tiny, made = work / "tiny", work / "tiny.set"
    tiny.write_bytes(os.urandom(1000))
    empty(made)
    lossy = work / "tiny.lossy"
    subprocess.run([*GFCODE, "encode", str(tiny), "-q", *code, "--out", str(made)], check=True)

    def prepare() -> None:
        empty(work / "tiny.new")
        (work / "tiny.out").unlink(missing_ok=True)
        empty(lossy)
        for shard in sorted(made.iterdir())[1:]:
            os.link(shard, lossy / shard.name)

    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "verify": [*GFCODE, "verify", "-q", str(made)],
        "decode, nothing lost": [*GFCODE, "decode", "-q", "--no-sync", str(made), "-o", str(work / "tiny.out")],
        "encode": [*GFCODE, "encode", "-q", "--no-sync", str(tiny), *code, "--out", str(work / "tiny.new")],
        "repair of one shard": [*GFCODE, "repair", "-q", "--no-sync", str(lossy)],
    }
    for name, command in commands.items():
        runs = []
        for _ in range(rounds + 1):
            prepare()
            runs.append(measure(command, cold=False).cpu)
        show(f"start-up: {name}", runs[1:], "s")


class Steps:
    """The steps of the pipeline on a set in the page cache, full batches only."""

    def __init__(self, shards: ShardSet, out: Path) -> None:
        metadata = shards.metadata
        self.shards, self.geometry, self.n = shards, shards.geometry, metadata.n
        capacity = batch_stripes(self.geometry, metadata.n, shards.stripes)
        self.batches = shards.stripes // capacity
        self.one, self.batch = Batch(metadata, capacity, single=True), Batch(metadata, capacity)
        shards.place(self.batch, 0)
        self.operator = metadata.codec().encoder()
        self.inputs, self.outputs = range(metadata.k), range(metadata.k, metadata.n)
        self.row = capacity * self.geometry.frame_length
        self.files = [Path(f"{out}.{shard}") for shard in range(metadata.n)]

    def read(self) -> None:
        for number in range(self.batches):
            self.shards.place(self.one, number)
            for shard in range(self.n):
                offset = self.geometry.offset(self.one.first)
                read_at(self.shards.files[shard][0].fd, [self.one.row(shard)], offset)

    def check(self) -> None:
        for _ in range(self.batches):
            for shard in range(self.n):
                self.one.is_sound(shard)

    def encode(self) -> None:
        for _ in range(self.batches):
            self.batch.apply(self.operator, self.inputs, self.outputs)

    def write(self) -> None:
        fds = [os.open(file, os.O_CREAT | os.O_WRONLY | os.O_TRUNC) for file in self.files]
        for fd in fds:
            os.posix_fallocate(fd, 0, self.batches * self.row)
        for number in range(self.batches):
            for shard, fd in enumerate(fds):
                write_at(fd, [self.batch.row(shard)], number * self.row)
        for fd in fds:
            os.close(fd)

    def time(self, rounds: int) -> None:
        """Time all steps."""
        moved = self.n * self.batches * self.row / GIB
        data = len(self.inputs) * self.batches * self.row / GIB
        for name, step, amount in (
            ("read, for each GiB read", self.read, moved),
            ("check, for each GiB checked", self.check, moved),
            ("encode, for each GiB of data", self.encode, data),
            ("write, for each GiB written", self.write, moved),
        ):
            values = []
            for _ in range(rounds + 1):
                values.append(cpu_seconds(step) / amount)
                for file in self.files:
                    file.unlink(missing_ok=True)
            show(name, values[1:], "s/GiB")


def main() -> None:
    """Measure all steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="1GiB")
    parser.add_argument("--code", default="10+4")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--directory", help="where the files are put; a temporary directory by default")
    options = parser.parse_args()
    k, m = options.code.split("+")
    code = ["-k", k, "-m", m]
    with tempfile.TemporaryDirectory(prefix="gfcode-bench-", dir=options.directory) as name:
        work = Path(name)
        start_up(work, code, options.rounds)
        source, made = work / "source", work / "set"
        make_source(source, parse_size(options.size))
        empty(made)
        subprocess.run(
            [*GFCODE, "encode", str(source), "-q", *code, "--no-sync", "--out", str(made)], check=True
        )  # fmt: skip
        with ShardSet(find_set(made)) as shards:
            Steps(shards, work / "written").time(options.rounds)


if __name__ == "__main__":
    main()
