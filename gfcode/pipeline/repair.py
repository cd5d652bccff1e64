"""Restore the damaged and missing shards of a set, byte for byte as they were encoded.

One pass reads every frame and writes each bad one anew into a temporary file for its shard. Then the good frames of
that shard are copied beside them, and the whole file is read again and checked. Only when all of them are complete does
the first take its name. A set that has a stripe beyond repair is left as it is.
"""

import contextlib
import os
import stat
import threading
import time
from collections.abc import Sequence
from typing import Self

import numpy as np

from gfcode.errors import ShardFormatError, ShardSetError, TargetExistsError
from gfcode.pipeline.batch import Batch, batch_stripes
from gfcode.pipeline.deep import DeepCheck
from gfcode.pipeline.discovery import Found, StrPath, find_set
from gfcode.pipeline.files import TemporaryFile, leftovers, publish, read_at, sync_directories, thoroughly, write_at
from gfcode.pipeline.frame import HEADER_BYTES
from gfcode.pipeline.keys import hashes_for
from gfcode.pipeline.loader import Loader
from gfcode.pipeline.locks import locked_directories, remove_if_abandoned
from gfcode.pipeline.metadata import check_file_name
from gfcode.pipeline.names import shard_name
from gfcode.pipeline.outcomes import RepairedShard, RepairReport
from gfcode.pipeline.place import places_of_new
from gfcode.pipeline.probe import open_regular, read_metadata
from gfcode.pipeline.recover import LazyCodec, rebuild
from gfcode.pipeline.report import FrameStatus, Progress, SetReport, ranges
from gfcode.pipeline.shardset import OpenShard, ShardSet
from gfcode.pipeline.targets import make_directory, remove_empty
from gfcode.pipeline.verify import survey, total_bytes
from gfcode.pipeline.workers import Meter
from gfcode.pipeline.writeback import start_write_back

__all__ = ["repair_found", "repair_set"]

#: Bytes of one copying read and write.
_PIECE = 1024 * 1024


def repair_set(
    paths: StrPath | Sequence[StrPath],
    *,
    out: StrPath | None = None,
    set_id: str | None = None,
    key: StrPath | None = None,
    deep: bool = False,
    engine: str | None = None,
    threads: int | None = None,
    durable: bool = True,
    progress: Progress | None = None,
) -> RepairReport:
    """Restore every shard of a set that is missing or not as it was encoded.

    A shard that is repaired replaces the file that held it, under the name which that file has. A missing shard gets
    its own name, in the directory where its place in the set's distribution is; if that name is taken by another
    shard, it gets one that is free. Sound shards are never renamed, moved or removed, whatever their names.

    Parameters
    ----------
    paths : path or sequence of path
        Shard files, and directories that hold them.
    out : path, optional
        Directory for all repaired shards, each under its own name; the files that were read stay as they are. A shard
        there that an earlier repair of this set has written is replaced.
    set_id : str, optional
        The set that is meant where there are several: its id or the first digits of it.
    key : path, optional
        File with the key of a keyed set; only frames made with it count.
    deep : bool
        Compute parity again too, and restore sound frames that are found wrong by it: see `gfcode.pipeline.deep`.
    engine : str, optional
        Engine that must be used.
    threads : int, optional
        Workers.
    durable : bool
        Flush files and directories to the device before a repaired shard takes its name.
    progress : callable, optional
        See `gfcode.pipeline.report.Progress`; counts bytes of the shards.

    Returns
    -------
    RepairReport
        Its `before.state` is "beyond repair" where some stripe has fewer than k good frames, or is found to contradict
        itself; nothing is changed then.

    Raises
    ------
    TargetExistsError
        If something else in `out` has the name of a shard.
    ShardSetError, ShardFormatError, AuthenticationError, UnrecoverableError
        As `gfcode.pipeline.discovery.find_set`; ShardSetError too if a repaired shard does not verify.
    OSError
        If a shard cannot be written.
    """
    started = time.perf_counter()
    found = find_set(paths, set_id, hashes_for(key))
    return repair_found(
        found, out=out, deep=deep, engine=engine, threads=threads, durable=durable, progress=progress, started=started
    )


def repair_found(
    found: Found, *, out: StrPath | None, deep: bool = False, engine: str | None, threads: int | None, durable: bool,
    progress: Progress | None, started: float,
) -> RepairReport:  # fmt: skip
    """Repair a set that was found; parameters as for `repair_set` and `survey`."""
    with ShardSet(found) as shards:
        meter = Meter(progress, total_bytes(shards))
        codec = LazyCodec(shards.metadata, engine)
        run = _Repair(shards, codec, None if out is None else os.fsdecode(out), meter, durable=durable)
        check = DeepCheck(codec, shards.stripes) if deep else None
        with run:
            before = survey(shards, threads=threads, meter=meter, started=started, on_damage=run.rebuild, deep=check)
            if before.state == "repairable":
                run.finish(before, durable=durable)
            elif before.state == "intact":
                run.tidy()
        return RepairReport(
            before, tuple(run.repaired), run.bytes_written, time.perf_counter() - started, tuple(run.notes)
        )


class _Repair:
    """The temporary files of one repair; a context manager that removes those that got no name."""

    def __init__(self, shards: ShardSet, codec: LazyCodec, out: str | None, meter: Meter, *, durable: bool) -> None:
        self._shards, self._codec, self._out, self._meter = shards, codec, out, meter
        self._durable = durable
        self._files: dict[int, TemporaryFile] = {}
        self._made: list[TemporaryFile] = []
        self._lock = threading.Lock()
        self._hopeless = threading.Event()
        self._places: dict[int, str] = {}
        self._directories: list[str] = []
        self.repaired: list[RepairedShard] = []
        self.notes: list[str] = []
        self.bytes_written = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        thoroughly(self._discard)

    def _discard(self) -> None:
        for file in self._made:
            file.discard()
        remove_empty(self._directories)

    def rebuild(self, loader: Loader) -> None:
        """Write the bad frames of a batch anew, unless the set has turned out to be beyond repair."""
        batch = loader.batch
        good = loader.good[:, : batch.count]
        if (good.sum(axis=0) < batch.k).any():
            self._hopeless.set()
        if self._hopeless.is_set():
            return
        bad = loader.status[:, : batch.count] != FrameStatus.GOOD
        shards = np.flatnonzero(bad.any(axis=1)).tolist()
        rebuild(loader, self._codec, shards)
        batch.stamp(shards)
        for shard in shards:
            fd = self._file(shard).fd
            for first, last in ranges(np.flatnonzero(bad[shard]).astype(np.int64)):
                frames, offset = batch.row(shard, first, last + 1), batch.geometry.offset(batch.first + first)
                write_at(fd, [frames], offset)
                if self._durable:
                    start_write_back(fd, offset, len(frames))

    def finish(self, report: SetReport, *, durable: bool) -> None:
        """Complete, check and name the shards that are not intact."""
        broken = [shard for shard in report.shards if not shard.intact]
        self._meter.extend(2 * len(broken) * self._shards.shard_length)
        capacity = batch_stripes(self._shards.geometry, self._shards.metadata.n, self._shards.stripes)
        batch = Batch(self._shards.metadata, capacity)
        for shard in broken:
            self._complete(shard.index, report)
            if bad := self._check(shard.index, batch, durable=durable):
                # Frames that were sound could not be read again, or were read otherwise: they are lost too.
                self._mend(shard.index, bad, report)
                if self._check(shard.index, batch, durable=durable):
                    raise ShardSetError(f"shard {shard.index} does not verify after its repair; nothing was changed")
        targets = [self._files[shard.index].target for shard in broken]
        with locked_directories(map(os.path.dirname, targets)):
            for shard in broken:
                self._check_target(shard.index)
            for shard in broken:
                file = self._files[shard.index]
                replaced = shard.path is not None if self._out is None else os.path.lexists(file.target)
                publish(file.path, file.target, replace=replaced)
                del self._files[shard.index]
                file.close()
                rebuilt = shard.damaged + shard.missing
                self.repaired.append(RepairedShard(shard.index, file.target, shard.path is None, rebuilt))
            if durable:
                sync_directories((*targets, *self._directories))
            self._remove_leftovers(targets)
        self.bytes_written = len(broken) * self._shards.shard_length

    def tidy(self) -> None:
        """Remove what killed repairs have left of a set that is intact."""
        left = self._shards.found.unfinished
        if left and self._out is None:
            with locked_directories(map(os.path.dirname, left)):
                self._remove_leftovers(())

    def _file(self, shard: int) -> TemporaryFile:
        """Return the temporary file of a shard, made when it is first asked for."""
        with self._lock:
            if shard not in self._files:
                old = self._shards.files[shard][0] if self._shards.files[shard] else None
                target = self._target(shard, old)
                make_directory(os.path.dirname(target), self._directories)
                file = TemporaryFile(target, 0o600, self._made)
                self._files[shard] = file
                _take_owner(file.fd, old or next(files[0] for files in self._shards.files if files))
                file.reserve(self._shards.shard_length)
            return self._files[shard]

    def _target(self, shard: int, old: OpenShard | None) -> str:
        if self._out is not None:
            name = shard_name(check_file_name(self._shards.metadata.name), shard)
            target = os.path.join(self._out, name)
            self._check_elsewhere(shard, target)
            return target
        if old is not None:
            return old.path
        if not self._places:
            check_file_name(self._shards.metadata.name)
            self._places, self.notes = places_of_new(self._shards.found)
        return self._places[shard]

    def _check_elsewhere(self, shard: int, target: str) -> None:
        """Refuse a target in `out`, unless it is free or holds the shard, as an interrupted repair has left it."""
        metadata = self._shards.metadata
        try:
            fd = open_regular(target)
        except FileNotFoundError:
            if not os.path.lexists(target):
                return
            same = False
        except (OSError, ShardFormatError):
            same = False
        else:
            try:
                frame = bytearray(metadata.frame_length)
                same = read_at(fd, [memoryview(frame)], 0) == len(frame) and frame == metadata.frame(shard)
                opened = (file for files in (*self._shards.files, *self._shards.extra) for file in files)
                same = same and not any(os.path.sameopenfile(fd, file.fd) for file in opened)
            finally:
                os.close(fd)
        if not same or os.path.islink(target):
            raise TargetExistsError(f"{target} exists; choose another directory for repaired shards")

    def _check_target(self, shard: int) -> None:
        """Refuse to replace what is not the file that was read: another run may have replaced the set meanwhile."""
        target = self._files[shard].target
        if self._out is not None:
            self._check_elsewhere(shard, target)
            return
        old = self._shards.files[shard][0] if self._shards.files[shard] else None
        try:
            unchanged = old is None or os.path.samestat(os.stat(target), os.fstat(old.fd))
        except FileNotFoundError:
            unchanged = False
        if not unchanged or (old is None and os.path.lexists(target)):
            raise ShardSetError(f"{target} was replaced by another run during the repair; repair again")

    def _remove_leftovers(self, targets: Sequence[str]) -> None:
        """Remove what killed repairs of this set have left for these targets, and beside the set."""
        used = {file.path for files in (*self._shards.files, *self._shards.extra) for file in files}
        left = [path for paths in leftovers(targets).values() for path in paths]
        for path in dict.fromkeys([*left, *(self._shards.found.unfinished if self._out is None else ())]):
            if path not in used and self._is_own(path):
                remove_if_abandoned(path)

    def _is_own(self, path: str) -> bool:
        """Return whether an unfinished file is of a repair of this set, and not perhaps all that is left of another."""
        metadata = self._shards.metadata
        try:
            fd = open_regular(path)
            try:
                if not any(os.pread(fd, HEADER_BYTES, 0)):  # a repair writes the metadata frame last
                    return True
            finally:
                os.close(fd)
            return read_metadata(path, {metadata.checksum.number: metadata.checksum})[0].set_id == metadata.set_id
        except (OSError, ShardFormatError):
            return False

    def _complete(self, shard: int, report: SetReport) -> None:
        """Write all of a shard that was not rebuilt: its metadata frame, and copies of its good frames."""
        shards, file = self._shards, self._file(shard)
        write_at(file.fd, [memoryview(shards.metadata.frame(shard))], 0)
        buffer = memoryview(bytearray(_PIECE))
        good = np.flatnonzero(report.damage[shard] == FrameStatus.GOOD).astype(np.int64)
        for first, last in ranges(good):
            at = shards.geometry.offset(first)
            end = min(shards.geometry.offset(last + 1), shards.shard_length)
            while at < end:
                part = buffer[: min(_PIECE, end - at)]
                try:
                    got = read_at(shards.files[shard][0].fd, [part], at)
                except OSError:
                    got = 0  # what cannot be read any more is found when the copy is checked
                write_at(file.fd, [part[:got]], at)
                at += len(part)
        self._meter.add(shards.shard_length)

    def _mend(self, shard: int, stripes: Sequence[int], report: SetReport) -> None:
        """Write some frames of a shard anew, from whatever sound frames their stripes have."""
        file, batch = self._file(shard), Batch(self._shards.metadata, 1)
        loader = Loader(self._shards, batch)
        for stripe in stripes:
            loader.begin(stripe)
            for other in range(batch.n):
                loader.load(other)
            loader.good[report.damage[:, stripe] == FrameStatus.PARITY, 0] = False
            rebuild(loader, self._codec, [shard])
            batch.stamp([shard])
            write_at(file.fd, [batch.row(shard)], batch.geometry.offset(stripe))

    def _check(self, shard: int, batch: Batch, *, durable: bool) -> list[int]:
        """Flush a repaired shard, read it again and check every byte of it; return the stripes that are not sound.

        Raises
        ------
        ShardSetError
            If what is around the frames is wrong.
        """
        shards, file = self._shards, self._file(shard)
        file.flush(durable=durable)
        if durable:
            os.posix_fadvise(file.fd, 0, 0, os.POSIX_FADV_DONTNEED)  # what is checked comes from the device
        frame = bytearray(shards.metadata.frame_length)
        size = os.fstat(file.fd).st_size
        whole = read_at(file.fd, [memoryview(frame)], 0) == len(frame) and size == shards.shard_length
        bad: list[int] = []
        loader = Loader(shards, batch, {shard: [OpenShard(file.path, file.fd, size)]})
        for number in range(-(-shards.stripes // batch.capacity)):
            loader.begin(number)
            loader.load(shard)
            bad += (np.flatnonzero(~loader.good[shard, : batch.count]) + batch.first).tolist()
            self._meter.add(loader.bytes_read)
            loader.bytes_read = 0
        if not bad and not (whole and frame == shards.metadata.frame(shard)):
            raise ShardSetError(f"shard {shard} does not verify after its repair; nothing was changed")
        return bad


def _take_owner(fd: int, peer: OpenShard) -> None:
    """Give a new shard the permissions of the old one, or of another shard; and its owner, where that is allowed."""
    status = os.fstat(peer.fd)
    with contextlib.suppress(OSError):
        os.fchown(fd, status.st_uid, status.st_gid)
    os.fchmod(fd, stat.S_IMODE(status.st_mode) & 0o777)
