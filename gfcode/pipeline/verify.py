"""Read every frame of a set and say what is good, what is damaged, and whether it can be repaired."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gfcode.errors import ShardSetError
from gfcode.pipeline.batch import Batch, batch_stripes
from gfcode.pipeline.discovery import Found, StrPath, find_set
from gfcode.pipeline.files import read_at
from gfcode.pipeline.keys import hashes_for
from gfcode.pipeline.names import shard_name
from gfcode.pipeline.recover import LazyCodec
from gfcode.pipeline.report import Damage, FrameStatus, Progress, SetReport, SetState, ShardReport
from gfcode.pipeline.shardset import ShardSet
from gfcode.pipeline.workers import Counter, Meter, run_workers, usable_threads

if TYPE_CHECKING:
    from gfcode.pipeline.deep import DeepCheck
    from gfcode.pipeline.loader import Loader

__all__ = ["Stretch", "read_sound", "survey", "total_bytes", "verify_found", "verify_set"]


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


#: Frames of a set that are always told of one by one, and as many for each byte of its files: frames are so long that
#: this is enough where one of 4,608 shards is there.
_MOST_FRAMES = 1 << 24
_MOST_FRAMES_A_BYTE = 8
#: Called in a worker for each batch with damage, once all frames of it have been read.
OnDamage = Callable[["Loader"], None]


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
        check = None
        if deep:
            from gfcode.pipeline.deep import DeepCheck

            check = DeepCheck(LazyCodec(shards.metadata, None), shards.stripes)
        meter = Meter(progress, total_bytes(shards))
        return survey(shards, threads=threads, meter=meter, started=started, deep=check)


def total_bytes(shards: ShardSet) -> int:
    """Return the bytes that a survey reads."""
    return sum(min(files[0].size, shards.shard_length) for files in shards.files if files)


def survey(
    shards: ShardSet, *, threads: int | None, meter: Meter, started: float, on_damage: OnDamage | None = None,
    deep: "DeepCheck | None" = None, stretch: Stretch | None = None,
) -> SetReport:  # fmt: skip
    """Check all frames of an open set.

    Batches in which all is well are read shard by shard into one row, which stays in the processor's cache, and need no
    NumPy. A batch with damage is read once more, all of it, and looked at frame by frame; so are those behind it as
    long as they have damage too.

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
    capacity = batch_stripes(shards.geometry, metadata.n, stripes)
    batches = -(-stripes // capacity)
    first = 0 if stretch is None else stretch.first
    counter = Counter(batches, first)
    damages = _Damages(shards)
    whole = deep is None and all(shards.files) and not any(map(len, shards.extra))
    read: list[int] = []

    def work(stop: threading.Event) -> None:
        row = Batch(metadata, capacity, single=True)
        loader: Loader | None = None
        sound, total = whole, 0
        while not stop.is_set() and not _is_over(stretch, counter) and (number := counter.take()) is not None:
            if sound:
                shards.place(row, number)
                got = [read_sound(shards, row, shard) for shard in range(metadata.n)]
                count = sum(got)
            if not sound or not all(got):
                loader = loader or _new_loader(shards, capacity)
                count, sound = damages.look(loader, number, on_damage, deep)
                sound = sound and whole
            total += count
            meter.add(count)
        read.append(total)

    run_workers(usable_threads(threads, max(1, batches - first)), work)
    if stretch is not None:
        stretch.next = counter.next
        stretch.finished = counter.next >= batches
    found = damages.found
    if deep is not None and deep.doubt.any():
        found = damages.made()
        found.doubt = deep.doubt
    reports = tuple(_shard_report(shards, index, found) for index in range(metadata.n))
    state: SetState = "intact" if all(report.intact for report in reports) else "repairable"
    if found is not None and (found.beyond.any() or found.doubt.any()):
        state = "beyond repair"
    return SetReport(
        set_id=metadata.set_id.hex(), name=metadata.name, size=shards.size, k=metadata.k, m=metadata.m, w=metadata.w,
        layout=metadata.layout.name, family=metadata.family, stripes=stripes, shards=reports,
        strays=tuple(shards.found.strays), state=state, check=metadata.checksum.check,
        parity_checked=None if deep is None else int(deep.checked.sum()), found=found, bytes_read=sum(read),
        seconds=time.perf_counter() - started,
    )  # fmt: skip


def read_sound(shards: ShardSet, batch: Batch, shard: int) -> int:
    """Read the frames of one shard's file into a batch; return their bytes if all of them are sound, or else 0."""
    row = batch.row(shard)
    try:
        got = read_at(shards.files[shard][0].fd, [row], batch.geometry.offset(batch.first))
    except OSError:
        return 0  # perhaps some of them can be read one by one
    return got if got == len(row) and batch.is_sound(shard) else 0


def _new_loader(shards: ShardSet, capacity: int) -> "Loader":
    from gfcode.pipeline.loader import Loader

    return Loader(shards, Batch(shards.metadata, capacity))


class _Damages:
    """What the workers of a survey find; `found` is None as long as that is nothing."""

    def __init__(self, shards: ShardSet) -> None:
        self._shards = shards
        self._lock = threading.Lock()
        self.found: Damage | None = None

    def made(self) -> Damage:
        """Return the map, made when it is first asked for.

        Raises
        ------
        ShardSetError
            If it would be far larger than the files: whoever writes metadata can claim any number of shards.
        """
        import numpy as np

        with self._lock:
            if self.found is None:
                stripes, metadata = self._shards.stripes, self._shards.metadata
                held = sum(file.size for files in self._shards.files for file in files)
                if metadata.n * stripes > max(_MOST_FRAMES, _MOST_FRAMES_A_BYTE * held):
                    raise ShardSetError(
                        f"{metadata.name!r} says that it has {metadata.n} shards of {stripes} stripes, of which these "
                        f"{held} bytes hold next to nothing; name more of its shards"
                    )
                status = np.zeros((metadata.n, stripes), np.uint8)
                self.found = Damage(status, np.zeros(stripes, np.bool_), np.zeros(stripes, np.bool_))
            return self.found

    def look(
        self, loader: "Loader", number: int, on_damage: OnDamage | None, deep: "DeepCheck | None"
    ) -> tuple[int, bool]:
        """Read all frames of a batch and enter what is wrong; return the bytes read, and whether nothing is."""
        batch, before = loader.batch, loader.bytes_read
        loader.begin(number)
        for shard in range(batch.n):
            loader.load(shard)
        if deep is not None:
            deep.check(loader)
        status = loader.status[:, : batch.count]
        sound = not status.any()
        if not sound:
            here, found = slice(batch.first, batch.first + batch.count), self.made()
            found.status[:, here] = status
            found.beyond[here] = loader.good[:, : batch.count].sum(axis=0) < batch.k
            if on_damage is not None:
                on_damage(loader)
        return loader.bytes_read - before, sound


def _is_over(stretch: Stretch | None, counter: Counter) -> bool:
    return stretch is not None and counter.next > stretch.first and stretch.over()


def _shard_report(shards: ShardSet, index: int, found: Damage | None) -> ShardReport:
    missing = damaged = 0
    if found is not None:
        row = found.status[index]
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
