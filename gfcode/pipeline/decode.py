"""Give the encoded bytes back, from any k good frames of each stripe."""

import os
import stat
import threading
import time
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

from gfcode.errors import ParameterError, TargetExistsError, UnrecoverableError
from gfcode.pipeline.batch import Batch, batch_stripes
from gfcode.pipeline.discovery import StrPath, find_set
from gfcode.pipeline.files import named_errors
from gfcode.pipeline.keys import hashes_for
from gfcode.pipeline.metadata import check_file_name
from gfcode.pipeline.names import shard_index
from gfcode.pipeline.outcomes import DecodeReport
from gfcode.pipeline.publication import Temporaries
from gfcode.pipeline.recover import LazyCodec, rebuild, short_slots
from gfcode.pipeline.report import FrameStatus, Progress, listed
from gfcode.pipeline.shardset import ShardSet
from gfcode.pipeline.sink import FileSink, Sink, StreamSink
from gfcode.pipeline.verify import read_sound, survey
from gfcode.pipeline.workers import Counter, Meter, run_workers, usable_threads

if TYPE_CHECKING:
    from gfcode.pipeline.loader import Loader

__all__ = ["decode_file"]


def decode_file(
    paths: StrPath | Sequence[StrPath],
    output: StrPath | IO[bytes] | None = None,
    *,
    set_id: str | None = None,
    key: StrPath | None = None,
    force: bool = False,
    engine: str | None = None,
    threads: int | None = None,
    durable: bool = True,
    progress: Progress | None = None,
) -> DecodeReport:
    """Write the file that a shard set holds.

    Every frame is checked before any byte of its stripe is written. A file is written under a temporary name and gets
    its own when it is complete; a stream gets its bytes in order, and an exception if it is cut short.

    Parameters
    ----------
    paths : path or sequence of path
        Shard files, and directories that hold them.
    output : path or binary file object, optional
        By default the name that the set suggests, in the current directory. A path that is a device or FIFO is written
        as a stream.
    set_id : str, optional
        The set that is meant where there are several: its id or the first digits of it.
    key : path, optional
        File with the key of a keyed set; only frames made with it count.
    force : bool
        Replace an existing file.
    engine : str, optional
        Engine that must be used.
    threads : int, optional
        Workers.
    durable : bool
        Flush the file and its directory to the device.
    progress : callable, optional
        See `gfcode.pipeline.report.Progress`.

    Returns
    -------
    DecodeReport

    Raises
    ------
    UnrecoverableError
        If some stripe has fewer than k good frames; no file is left then.
    TargetExistsError
        If the output exists and `force` is false.
    ShardSetError, ShardFormatError, AuthenticationError
        As `gfcode.pipeline.discovery.find_set`.
    OSError
        If the output cannot be written.
    """
    started = time.perf_counter()
    with ShardSet(find_set(paths, set_id, hashes_for(key))) as shards:
        run = _Run(shards, engine, threads, progress)
        if output is not None and not isinstance(output, str | os.PathLike):
            run.decode(StreamSink(output))
            with named_errors(output):
                output.flush()
            return run.report(None, started)
        target = check_file_name(shards.metadata.name) if output is None else os.fsdecode(output)
        if _is_stream(target, shards, force=force):
            if output is None:
                raise ParameterError(f"{target}, the name that the set suggests, is no regular file; name the output")
            with open(target, "wb", buffering=0) as stream:
                run.decode(StreamSink(stream))
            return run.report(target, started)
        _write_file(run, target, force=force, durable=durable)
        return run.report(target, started)


def _is_stream(target: str, shards: ShardSet, *, force: bool) -> bool:
    """Return whether a path is to be written as a stream; refuse one that must not be written at all."""
    try:
        found = os.stat(target)
    except FileNotFoundError:
        found = None
    if found is None:
        if os.path.lexists(target) and not force:
            raise TargetExistsError(f"{target} exists; force replaces it")
        return False
    if stat.S_ISDIR(found.st_mode):
        raise ParameterError(f"{target} is a directory; name the file to write")
    if not stat.S_ISREG(found.st_mode):
        return True
    for file in (file for files in shards.files for file in files):
        if os.path.samestat(found, os.fstat(file.fd)):
            raise ParameterError(f"{target} is a shard of the set itself; choose another output")
    if not force:
        raise TargetExistsError(f"{target} exists; force replaces it")
    return False


def _write_file(run: "_Run", target: str, *, force: bool, durable: bool) -> None:
    metadata = run.shards.metadata
    with Temporaries() as files:
        # Until all is there, nobody but the owner can read it.
        file = files.create(target, 0o600 if metadata.mode is not None else 0o666)
        if run.shards.size is not None:
            file.reserve(run.shards.size)
        run.decode(FileSink(file.fd, durable=durable))
        if metadata.mode is not None:
            os.fchmod(file.fd, metadata.mode & 0o777)
        if metadata.mtime_ns is not None:
            os.utime(file.fd, ns=(time.time_ns(), metadata.mtime_ns))
        files.publish(replace=force, durable=durable)


class _Run:
    """One decoding, apart from where its bytes go."""

    def __init__(self, shards: ShardSet, engine: str | None, threads: int | None, progress: Progress | None) -> None:
        self.shards, self.threads = shards, threads
        self._check_present()
        self._meter = Meter(progress, shards.size)
        self._codec = LazyCodec(shards.metadata, engine)
        n = shards.metadata.n
        self._capacity = batch_stripes(shards.geometry, n, shards.stripes)
        self._batches = Counter(-(-shards.stripes // self._capacity))
        self._whole = all(shards.files[: shards.metadata.k])
        self._damaged: set[int] = set()
        self._rebuilt: list[int] = []
        self._read: list[int] = []

    def _check_present(self) -> None:
        """Refuse a set with too few files without reading it."""
        shards, metadata = self.shards, self.shards.metadata
        missing = [index for index in range(metadata.n) if not (shards.files[index] or shards.extra[index])]
        left = metadata.n - len(missing)
        if left < metadata.k:
            unused = [
                f"; {stray.path} is not used: {stray.reason}" for stray in shards.found.strays
                if shard_index(os.path.basename(stray.path), metadata.name) in missing
            ]  # fmt: skip
            raise UnrecoverableError(
                f"all {shards.stripes} stripes of {metadata.name!r} are beyond repair: {left} shards are here and "
                f"{metadata.k} are needed; missing are shards {listed(missing)}{''.join(unused[:1])}"
            )

    def decode(self, sink: Sink) -> None:
        """Decode all batches."""
        shards = self.shards

        def work(stop: threading.Event) -> None:
            batch = Batch(shards.metadata, self._capacity)
            loader: Loader | None = None
            rebuilt = total = 0
            while not stop.is_set() and (number := self._batches.take()) is not None:
                count = self._read_whole(batch, number) if self._whole else 0
                if not count:
                    loader = loader or _new_loader(shards, batch)
                    before = loader.bytes_read
                    loader.begin(number)
                    rebuilt += self._restore(loader)
                    count = loader.bytes_read - before
                sink.put(number, batch, stop)
                total += count
                self._meter.add(batch.data_length)
            self._rebuilt.append(rebuilt)
            self._read.append(total)

        try:
            count = -(-shards.stripes // self._capacity)
            run_workers(usable_threads(self.threads, count), work)
        except _BeyondRepairError:
            report = survey(shards, threads=self.threads, meter=Meter(None, None), started=time.perf_counter())
            raise UnrecoverableError(report.summary()) from None

    def _read_whole(self, batch: Batch, number: int) -> int:
        """Read the data shards' frames of a batch; return their bytes if all are sound, or else 0."""
        self.shards.place(batch, number)
        total = 0
        for shard in range(batch.k):
            count = read_sound(self.shards, batch, shard)
            if not count:
                return 0
            total += count
        return total

    def _restore(self, loader: "Loader") -> int:
        """Bring the data blocks of a batch about; return how many had to be computed."""
        batch = loader.batch
        data = range(batch.k)
        for shard in data:
            loader.load(shard)
        if not loader.status[: batch.k, : batch.count].any():
            return 0
        for shard in range(batch.k, batch.n):
            if loader.good[: batch.k, : batch.count].all() or not short_slots(loader):
                break
            loader.load(shard)
        bad = (loader.status[:, : batch.count] != FrameStatus.GOOD).any(axis=1)
        self._damaged.update(
            shard for shard in range(batch.n) if bad[shard] and loader.loaded[shard] and self.shards.files[shard]
        )
        if short_slots(loader):
            raise _BeyondRepairError
        return rebuild(loader, self._codec, data)

    def report(self, path: str | None, started: float) -> DecodeReport:
        """Say what was done."""
        shards = self.shards
        return DecodeReport(
            set_id=shards.metadata.set_id.hex(), name=shards.metadata.name, path=path, size=shards.size or 0,
            stripes=shards.stripes, rebuilt_blocks=sum(self._rebuilt),
            missing_shards=tuple(index for index, files in enumerate(shards.files) if not files),
            damaged_shards=tuple(sorted(self._damaged)), strays=tuple(shards.found.strays),
            check=shards.metadata.checksum.check, bytes_read=sum(self._read), seconds=time.perf_counter() - started,
            notes=tuple(f"{path} {note}" for path, notes in shards.found.notes.items() for note in notes),
        )  # fmt: skip


def _new_loader(shards: ShardSet, batch: Batch) -> "Loader":
    from gfcode.pipeline.loader import Loader

    return Loader(shards, batch)


class _BeyondRepairError(UnrecoverableError):
    """A stripe was met that has too few good frames."""
