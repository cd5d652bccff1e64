"""`gfcode demo`: encode, damage, verify, repair and decode real data, in front of your eyes."""

import hashlib
import os
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, TypeVar

import click

from gfcode.cli.console import Console, human_bytes, human_count, human_seconds
from gfcode.cli.options import NamedPath, byte_size, engine_option, output_options, threads_option
from gfcode.cli.progress import progress_bar
from gfcode.errors import GFCodeError

if TYPE_CHECKING:
    from gfcode.pipeline.outcomes import DecodeReport, EncodeReport, RepairReport
    from gfcode.pipeline.report import Progress, SetReport, SetState

__all__ = ["Step", "command", "damage"]

T = TypeVar("T")

K, M = 10, 4
#: What is done to the shards: two are deleted, one is cut short, one is damaged in scattered places.
DELETED, TRUNCATED, CORRUPTED = (2, 11), 5, 8
_KEPT = 0.6
_PLACES = 25
_SEED = 20
#: Bytes of disk that the demonstration needs for each byte of its input: input, shards, a repaired copy of four of
#: them, and the decoded file.
_SPACE = 4


@dataclass(frozen=True, slots=True)
class Step:
    """One timed step.

    Attributes
    ----------
    name : str
    command : str
        The shell command that does the same.
    seconds : float
    bytes_per_second : float
        Bytes of the input, by the time.
    """

    name: str
    command: str
    seconds: float
    bytes_per_second: float


@click.command("demo", short_help="Encode, damage, repair and decode real data.")
@click.option(
    "--size", type=byte_size, default="200MiB", show_default=True, metavar="SIZE", help="Least bytes of the input."
)
@click.option("--keep", type=NamedPath(), metavar="DIR", help="Work in this new directory and leave everything there.")
@engine_option
@threads_option
@output_options
def command(console: Console, size: int, keep: str | None, engine: str | None, threads: int | None) -> None:
    """Encode an archive of this Python installation 10 + 4 into 14 directories, and lose nothing.

    Two shards are deleted, one is truncated and one is corrupted in many places; then come verify, repair and decode,
    and all is compared by SHA-256. Each step shows its time, its rate, and the shell command that does the same.
    """
    with _scratch(keep, size * _SPACE) as folder:
        demo = _Demo(console, folder, engine, threads)
        demo.run(size)


@contextmanager
def _scratch(keep: str | None, needed: int) -> Iterator[str]:
    """Make the folder to work in, with room enough; remove it afterwards unless it is to be kept."""
    if keep is not None:
        os.makedirs(keep)
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="gfcode-demo-") as folder:
        free = shutil.disk_usage(folder).free
        if free < needed:
            raise GFCodeError(
                f"{folder} has {human_bytes(free)} free and the demonstration needs {human_bytes(needed)}; "
                "use a smaller --size, or another disk with TMPDIR or --keep DIR"
            )
        yield folder


class _Demo:
    """One demonstration in one folder."""

    def __init__(self, console: Console, folder: str, engine: str | None, threads: int | None) -> None:
        self._console, self._folder, self._engine, self._threads = console, folder, engine, threads
        self._source = os.path.join(folder, "python.tar")
        self._decoded = os.path.join(folder, "decoded.tar")
        self._shown = [f"shards/{index:02}" for index in range(K + M)]
        self._directories = [os.path.join(folder, name) for name in self._shown]
        self._steps: list[Step] = []
        self._size = 0

    def run(self, size: int) -> None:
        """Do all steps; raise GFCodeError if anything differs in the end."""
        from gfcode.cli.demo_input import write_input

        console = self._console
        console.say(f"working in {self._folder}")
        files = self._step("archive", "tar cf python.tar ...", lambda _: write_input(self._source, size))
        self._size = os.path.getsize(self._source)
        console.say(f"{human_bytes(self._size)}, {human_count(files, 'file')} of this Python installation")
        digest = self._step("hash", "sha256sum python.tar", lambda _: _sha256(self._source))
        console.say(digest)
        paths = self._encode()
        originals = {index: _sha256(paths[index]) for index in (*DELETED, TRUNCATED, CORRUPTED)}
        for line in damage(paths):
            console.say(line)
        self._verify("repairable")
        self._repair()
        for index, original in originals.items():
            _same(f"shard {index}, repaired,", original, _sha256(paths[index]))
        self._verify("intact")
        self._decode()
        result = self._step("hash", "sha256sum decoded.tar", lambda _: _sha256(self._decoded))
        console.say(result)
        _same("decoded.tar", digest, result)
        self._sum_up(digest)

    def _step(self, name: str, shell: str, work: Callable[["Progress | None"], T]) -> T:
        """Show a command, do it, and take its time."""
        self._console.say(f"\n$ {shell}")
        with progress_bar(self._console, name) as progress:
            started = time.perf_counter()
            result = work(progress)
            seconds = time.perf_counter() - started
        size = self._size or os.path.getsize(self._source)
        self._steps.append(Step(name, shell, seconds, size / seconds))
        self._console.say(f"{human_seconds(seconds)}, {human_bytes(size / seconds)}/s")
        return result

    def _encode(self) -> Sequence[str]:
        from gfcode import encode_file

        def work(progress: "Progress | None") -> "EncodeReport":
            return encode_file(
                self._source, k=K, m=M, out=self._directories, engine=self._engine, threads=self._threads,
                progress=progress,
            )  # fmt: skip

        outs = " ".join(f"--out {name}" for name in self._shown)
        report = self._step("encode", f"gfcode encode python.tar -k {K} -m {M} {outs}", work)
        self._console.say(
            f"{human_bytes(report.bytes_written)} written in {human_count(len(report.paths), 'shard')} of "
            f"{human_count(report.stripes, 'stripe')}"
        )
        return report.paths

    def _verify(self, expected: "SetState") -> None:
        from gfcode import verify_set
        from gfcode.cli.damage_map import colour_for, print_set, verdict

        def work(progress: "Progress | None") -> "SetReport":
            return verify_set(self._directories, threads=self._threads, progress=progress)

        report = self._step("verify", "gfcode verify shards/*", work)
        if expected != "intact":
            print_set(self._console, report)
        summary = verdict(report, ["shards/*"]).replace("'shards/*'", "shards/*")
        self._console.say(summary, colour=colour_for(report.state))
        if report.state != expected:
            raise GFCodeError(f"the set is {report.state} where it should be {expected}")

    def _repair(self) -> None:
        from gfcode import repair_set
        from gfcode.cli.repair import repair_lines

        def work(progress: "Progress | None") -> "RepairReport":
            return repair_set(self._directories, engine=self._engine, threads=self._threads, progress=progress)

        for line in repair_lines(self._step("repair", "gfcode repair shards/*", work)):
            self._console.say(line.replace(self._folder + os.sep, ""))

    def _decode(self) -> None:
        from gfcode import decode_file

        def work(progress: "Progress | None") -> "DecodeReport":
            return decode_file(
                self._directories, self._decoded, engine=self._engine, threads=self._threads, progress=progress
            )

        self._step("decode", "gfcode decode shards/* -o decoded.tar", work)

    def _sum_up(self, digest: str) -> None:
        console = self._console
        console.result(
            {
                "size": self._size,
                "k": K,
                "m": M,
                "sha256": digest,
                "identical": True,
                "steps": [asdict(step) for step in self._steps],
            }
        )
        console.say(f"\n{'step':<8}  {'time':>10}  {'rate':>12}   (rates in bytes of python.tar)")
        for step in self._steps:
            rate = f"{human_bytes(step.bytes_per_second)}/s"
            console.say(f"{step.name:<8}  {human_seconds(step.seconds):>10}  {rate:>12}")
        console.say(f"\nidentical: python.tar and decoded.tar have SHA-256 {digest}")


def damage(paths: Sequence[str]) -> Iterator[str]:
    """Delete, truncate and corrupt shards, always in the same places; say what is done as shell comments."""
    dice = random.Random(_SEED)  # noqa: S311 - places, not secrets
    for index in DELETED:
        os.unlink(paths[index])
        yield f"\n$ rm {_short(paths[index])}" if index == DELETED[0] else f"$ rm {_short(paths[index])}"
    kept = int(os.path.getsize(paths[TRUNCATED]) * _KEPT)
    os.truncate(paths[TRUNCATED], kept)
    yield f"$ truncate -s {kept} {_short(paths[TRUNCATED])}"
    with open(paths[CORRUPTED], "r+b") as file:
        size = os.path.getsize(paths[CORRUPTED])
        for _ in range(_PLACES):
            length = dice.randint(1, 200)
            at = dice.randrange(size - length)
            file.seek(at)
            old = file.read(length)
            file.seek(at)
            file.write(bytes(byte ^ dice.randint(1, 255) for byte in old))
    yield f"overwriting {_PLACES} places of {_short(paths[CORRUPTED])}"


def _short(path: str) -> str:
    """Return the last parts of a path: shards/NN/NAME."""
    return os.path.join(*path.split(os.sep)[-3:])


def _sha256(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _same(what: str, expected: str, found: str) -> None:
    if found != expected:
        raise GFCodeError(f"{what} has SHA-256 {found} where it should have {expected}")
