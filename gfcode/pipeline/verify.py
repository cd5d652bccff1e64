"""Read every frame of a set and say what is good, what is damaged, and whether it can be repaired."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gfcode.pipeline.batch import Batch, batch_stripes
from gfcode.pipeline.deep import DeepCheck
from gfcode.pipeline.discovery import Found, StrPath, find_set
from gfcode.pipeline.keys import hashes_for
from gfcode.pipeline.loader import Loader
from gfcode.pipeline.names import shard_name
from gfcode.pipeline.recover import LazyCodec
from gfcode.pipeline.report import FrameStatus, Progress, SetReport, SetState, ShardReport
from gfcode.pipeline.shardset import ShardSet
from gfcode.pipeline.workers import Counter, Meter, run_workers, usable_threads

__all__ = ["Stretch", "survey", "total_bytes", "verify_found", "verify_set"]


@dataclass(slots=True)
class Stretch:
    """The part of a set that one survey reads.

    Attributes
    ----------
    first : int
        Batch with which it begins.
    over : callable
        Whether no more batches are to be begun; at least one is.
    next : int
        Batch with which the next stretch has to begin; set by the survey.
    finished : bool
        Whether there is none; set by the survey.
    """

    first: int
    over: Callable[[], bool]
    next: int = 0
    finished: bool = False


#: Called in a worker for each batch with damage, once all frames of it have been read.
OnDamage = Callable[[Loader], None]


def verify_set(
    paths: StrPath | Sequence[StrPath],
    *,
    set_id: str | None = None,
    key: StrPath | None = None,
    deep: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> SetReport:
    """Read all shards of a set and check every byte of them. Nothing is written.

    Parameters
    ----------
    paths : path or sequence of path
        Shard files, and directories that hold them.
    set_id : str, optional
        The set that is meant where there are several: its id or the first digits of it.
    key : path, optional
        File with the key of a keyed set; only frames made with it count.
    deep : bool
        Compute parity again too: see `gfcode.pipeline.deep`.
    threads : int, optional
        Workers.
    progress : callable, optional
        See `gfcode.pipeline.report.Progress`; counts bytes of the shards.

    Returns
    -------
    SetReport

    Raises
    ------
    ShardSetError, ShardFormatError, AuthenticationError, UnrecoverableError
        As `gfcode.pipeline.discovery.find_set`.
    """
    started = time.perf_counter()
    found = find_set(paths, set_id, hashes_for(key))
    return verify_found(found, deep=deep, threads=threads, progress=progress, started=started)


def verify_found(
    found: Found, *, deep: bool = False, threads: int | None, progress: Progress | None, started: float
) -> SetReport:
    """Verify a set that was found; parameters as for `verify_set` and `survey`."""
    with ShardSet(found) as shards:
        check = DeepCheck(LazyCodec(shards.metadata, None), shards.stripes) if deep else None
        meter = Meter(progress, total_bytes(shards))
        return survey(shards, threads=threads, meter=meter, started=started, deep=check)


def total_bytes(shards: ShardSet) -> int:
    """Return the bytes that a survey reads."""
    return sum(min(files[0].size, shards.shard_length) for files in shards.files if files)


def survey(
    shards: ShardSet, *, threads: int | None, meter: Meter, started: float, on_damage: OnDamage | None = None,
    deep: DeepCheck | None = None, stretch: Stretch | None = None,
) -> SetReport:  # fmt: skip
    """Check all frames of an open set.

    Parameters
    ----------
    shards : ShardSet
    threads : int or None
    meter : Meter
    started : float
        Reading of `time.perf_counter` from which the report's seconds count.
    on_damage : callable, optional
        Called for each batch with damage.
    deep : DeepCheck, optional
        Compares the frames of each stripe.
    stretch : Stretch, optional
        Which part to read, by default all; the report says nothing of the others.
    """
    metadata, stripes = shards.metadata, shards.stripes
    n = metadata.n
    damage = np.zeros((n, stripes), np.uint8)
    beyond = np.zeros(stripes, np.bool_)
    capacity = batch_stripes(shards.geometry, n, stripes)
    batches = -(-stripes // capacity)
    first = 0 if stretch is None else stretch.first
    counter = Counter(batches, first)
    read: list[int] = []

    def work(stop: threading.Event) -> None:
        batch = Batch(metadata, capacity)
        loader = Loader(shards, batch)
        while not stop.is_set() and not _is_over(stretch, counter) and (number := counter.take()) is not None:
            loader.begin(number)
            before = loader.bytes_read
            for shard in range(n):
                loader.load(shard)
            if deep is not None:
                deep.check(loader)
            status = loader.status[:, : batch.count]
            if status.any():
                here = slice(batch.first, batch.first + batch.count)
                damage[:, here] = status
                beyond[here] = loader.good[:, : batch.count].sum(axis=0) < metadata.k
                if on_damage is not None:
                    on_damage(loader)
            meter.add(loader.bytes_read - before)
        read.append(loader.bytes_read)

    run_workers(usable_threads(threads, max(1, batches - first)), work)
    if stretch is not None:
        stretch.next = counter.next
        stretch.finished = counter.next >= batches
    reports = tuple(_shard_report(shards, index, damage) for index in range(n))
    state: SetState = "intact" if all(report.intact for report in reports) else "repairable"
    if beyond.any() or (deep is not None and deep.doubt.any()):
        state = "beyond repair"
    return SetReport(
        set_id=metadata.set_id.hex(), name=metadata.name, size=shards.size, k=metadata.k, m=metadata.m, w=metadata.w,
        layout=metadata.layout.name, family=metadata.family, stripes=stripes, damage=damage, shards=reports,
        strays=tuple(shards.found.strays), stripes_beyond_repair=np.flatnonzero(beyond).astype(np.int64), state=state,
        check=metadata.checksum.check, parity_checked=None if deep is None else int(deep.checked.sum()),
        stripes_in_doubt=np.flatnonzero(() if deep is None else deep.doubt).astype(np.int64), bytes_read=sum(read),
        seconds=time.perf_counter() - started,
    )  # fmt: skip


def _is_over(stretch: Stretch | None, counter: Counter) -> bool:
    return stretch is not None and counter.next > stretch.first and stretch.over()


def _shard_report(shards: ShardSet, index: int, damage: np.ndarray[tuple[int, int], np.dtype[np.uint8]]) -> ShardReport:
    row = damage[index]
    missing = int((row == FrameStatus.MISSING).sum())
    damaged = int((row != FrameStatus.GOOD).sum()) - missing
    files = shards.files[index]
    if not files:
        note = f"no file holds it; its name would be {shard_name(shards.metadata.name, index)}"
        return ShardReport(index, None, FrameStatus.MISSING, damaged, missing, notes=(note,))
    file = files[0]
    trailing = max(0, file.size - shards.shard_length) if shards.end_known else 0
    return ShardReport(
        index, file.path, shards.found.metadata_status[file.path], damaged, missing, trailing,
        tuple(shards.found.notes.get(file.path, ())),
    )  # fmt: skip
