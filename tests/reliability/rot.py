"""Rot: random damages of small sets, each to be repaired byte for byte or to be reported beyond repair.

A model that knows the original bytes, and nothing of how shards are found, says for each damaged set what must be
possible and what cannot be.
"""

import io
import os
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from gfcode.errors import ShardFormatError, ShardSetError, UnrecoverableError
from gfcode.pipeline import decode_file, repair_set, verify_set
from gfcode.pipeline.report import FrameStatus, SetReport
from tests.reliability.damage import Files, damage
from tests.reliability.samples import Sample, samples, scratch_directory

__all__ = ["Model", "WrongError", "rot_campaign", "rot_trial"]

_REFUSALS = (ShardSetError, ShardFormatError, UnrecoverableError)


class WrongError(AssertionError):
    """A promise that was broken."""


@dataclass(frozen=True)
class Model:
    """What can be known of damaged files by whoever knows the original bytes.

    Attributes
    ----------
    possible : bool
        Some file begins with a sound metadata frame, and for each stripe sound frames of k shards stand at the offset
        of that stripe, in whatever files. Where this is false nothing could restore the set.
    certain : bool
        The same holds with frames only that stand in the file with their shard's own name, where all that is sound in
        that file belongs to that shard; and no file says that it is of another set. Where this is true a set must be
        restored.
    """

    possible: bool
    certain: bool

    @classmethod
    def of(cls, files: Files, sample: Sample, other: Sample) -> "Model":
        """Compare files with the original."""
        anywhere: list[set[int]] = [set() for _ in range(sample.stripes)]
        at_home: list[set[int]] = [set() for _ in range(sample.stripes)]
        described = foreign = False
        strangers = {other.frame(shard, stripe) for shard in range(other.n) for stripe in range(-1, other.stripes)}
        for name, content in files.items():
            held: set[tuple[int, int]] = set()
            for stripe in range(-1, sample.stripes):
                found = bytes(content[sample.starts[stripe + 1] : sample.starts[stripe + 2]])
                held |= {(shard, stripe) for shard in range(sample.n) if found == sample.frame(shard, stripe)}
            described |= any(stripe == -1 for _, stripe in held)
            foreign |= any(frame in content for frame in strangers)
            shards = {shard for shard, _ in held}
            home = len(shards) == 1 and name == sample.name(min(shards))
            for shard, stripe in held:
                if stripe >= 0:
                    anywhere[stripe].add(shard)
                    if home:
                        at_home[stripe].add(shard)
        return cls(
            described and all(len(shards) >= sample.k for shards in anywhere),
            described and not foreign and all(len(shards) >= sample.k for shards in at_home),
        )


def rot_trial(seed: int, number: int, directory: Path) -> tuple[str, tuple[str, ...]]:
    """Damage a set at random and try to restore it.

    Returns
    -------
    outcome : str
    kinds : tuple of str
        The damages done.

    Raises
    ------
    WrongError
        If a promise is broken.
    """
    rng = random.Random(f"{seed}/{number}")
    sample, other = rng.choice(samples())
    files, kinds = damage(rng, sample, other)
    for entry in os.scandir(directory):
        os.unlink(entry.path)
    for name, content in files.items():
        (directory / name).write_bytes(content)
    try:
        return _restore(files, sample, other, directory, to_file=rng.random() < 0.1), kinds
    except WrongError as error:
        raise WrongError(f"trial {number} of seed {seed}, damages {', '.join(kinds)}: {error}") from error


def _restore(files: Files, sample: Sample, other: Sample, directory: Path, *, to_file: bool) -> str:
    model = Model.of(files, sample, other)
    try:
        report = verify_set(directory, threads=1)
    except _REFUSALS as error:
        _require(not model.certain, f"refused, though enough frames are at home: {error}")
        _refused(files, directory)
        return "no set to be told" if not model.possible else "refused to guess"
    if report.set_id != sample.set_id.hex():
        _require(not model.certain, "the other set was taken")
        _require(_decoded(directory, to_file=to_file) in {None, other.data}, "the other set's bytes are wrong")
        return "the other set"
    _check_report(report, files, sample)
    decoded = _decoded(directory, to_file=to_file)
    if report.state == "beyond repair":
        _require(not model.certain, "reported beyond repair, though enough frames are at home")
        _require(decoded is None, "decoded what verify calls beyond repair")
        _require(repair_set(directory, durable=False, threads=1).repaired == (), "repaired what is beyond repair")
        _require(_contents(directory) == files, "a set beyond repair was changed")
        return "beyond repair" if not model.possible else "refused to guess"
    _require(decoded == sample.data, "WRONG BYTES WITH SUCCESS" if decoded is not None else "decode refuses")
    _require(model.possible, "restored what the model calls lost")
    _repair(files, sample, directory, report)
    return "intact" if report.state == "intact" else "repaired"


def _repair(files: Files, sample: Sample, directory: Path, report: SetReport) -> None:
    fixed = repair_set(directory, durable=False, threads=1)
    _require((fixed.repaired == ()) == (report.state == "intact"), "repair and verify disagree")
    after = verify_set(directory, threads=1)
    _require(after.state == "intact", f"after its repair the set is {after.state}")
    touched = set()
    for shard in after.shards:
        path = Path(str(shard.path))
        touched.add(path.name)
        _require(path.read_bytes() == sample.shards[shard.index], "WRONG BYTES WITH SUCCESS (repair)")
    now = _contents(directory)
    untouched = {name: content for name, content in files.items() if name not in touched}
    _require({name: now.get(name) for name in untouched} == untouched, "a file that is no damaged shard was changed")
    _require(set(now) == set(files) | touched, "files came that are no shards")


def _refused(files: Files, directory: Path) -> None:
    """Check that all commands refuse what verify refuses, and change nothing."""
    _require(_decoded(directory, to_file=True) is None, "decoded what verify refuses")
    try:
        repair_set(directory, durable=False, threads=1)
    except _REFUSALS:
        pass
    else:
        raise WrongError("repaired what verify refuses")
    _require(_contents(directory) == files, "a set that was refused was changed")


def _check_report(report: SetReport, files: Files, sample: Sample) -> None:
    """Check every frame's status against the original bytes."""
    _require(report.stripes == sample.stripes or report.size is None, f"{report.stripes} stripes")
    for shard in report.shards:
        content = files[Path(shard.path).name] if shard.path else bytearray()
        for stripe in range(min(sample.stripes, report.stripes)):
            right = content[sample.starts[stripe + 1] : sample.starts[stripe + 2]] == sample.frame(shard.index, stripe)
            told = report.damage[shard.index, stripe] == FrameStatus.GOOD
            _require(right == told, f"shard {shard.index}, stripe {stripe}: reported {told}, is {right}")
        whole = content == sample.shards[shard.index]
        _require(whole == shard.intact, f"shard {shard.index}: reported intact {shard.intact}, is {whole}")


def _decoded(directory: Path, *, to_file: bool) -> bytes | None:
    """Return the decoded bytes; None where decoding is refused."""
    target = directory.parent / f"{directory.name}.out"
    out = io.BytesIO()
    try:
        decode_file(directory, target if to_file else out, threads=1, durable=False)
    except _REFUSALS:
        _require(not target.exists(), "a refused decoding left a file")
        return None
    if not to_file:
        return out.getvalue()
    data = target.read_bytes()
    target.unlink()
    return data


def _contents(directory: Path) -> Files:
    return {entry.name: bytearray(Path(entry.path).read_bytes()) for entry in os.scandir(directory)}


def _require(held: bool, message: str) -> None:
    if not held:
        raise WrongError(message)


def rot_campaign(count: int, seed: int, *, first: int = 0, progress: bool = False) -> Counter[str]:
    """Run trials first, ..., first + count - 1 and count outcomes, and damages as "damage: KIND"."""
    counts: Counter[str] = Counter()
    started = time.monotonic()
    with scratch_directory() as base:
        directory = base / "s"
        directory.mkdir()
        for number in range(first, first + count):
            outcome, kinds = rot_trial(seed, number, directory)
            counts[outcome] += 1
            counts.update(f"damage: {kind}" for kind in kinds)
            if progress and number % 1000 == 999:
                print(f"rot: {number + 1} after {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return counts
