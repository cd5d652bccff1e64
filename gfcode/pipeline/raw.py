"""Raw shards: headerless files as other implementations write them, encoded, repaired and checked.

Nothing in such a file says what it is: preset, k, m and the index of each file come from the caller, and wrong ones
are noticed only where more shards are given than are needed.
"""

import os
import stat
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from gfcode.codec.locate import Locator, differences
from gfcode.codec.preset_codec import PresetCodec
from gfcode.engine.buffers import allocate
from gfcode.engine.protocol import Blocks
from gfcode.errors import InputChangedError, ParameterError, ShardSetError, TargetExistsError, UnrecoverableError
from gfcode.pipeline.files import write_at
from gfcode.pipeline.publication import Temporaries
from gfcode.pipeline.raw_report import RawEncodeReport, RawRepairReport, RawVerifyReport, WrongShard, merged, runs
from gfcode.pipeline.raw_shards import RawFiles, StripedFile, lengths_by_size, lengths_of_all, window_bytes
from gfcode.pipeline.report import Progress
from gfcode.pipeline.targets import made_directories
from gfcode.pipeline.workers import Counter, Meter, run_workers, usable_threads

__all__ = ["raw_encode", "raw_repair", "raw_verify"]

Bytes = npt.NDArray[np.uint8]
#: Permission bits of new files, before the umask.
_MODE: Final = 0o666


def raw_encode(
    source: str,
    codec: PresetCodec,
    *,
    out: str = ".",
    name: str | None = None,
    unit: int | None = None,
    short: bool = False,
    force: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> RawEncodeReport:
    """Encode a file into headerless shards, NAME.0 to NAME.(n−1).

    Parameters
    ----------
    source : str
        A regular file.
    codec : PresetCodec
    out, name : str
        Directory, made if missing, and name of the shards; the file's own by default.
    unit : int, optional
        Bytes of a cell: cells are dealt out to the data shards in turn. By default data shard j is the j-th k-th of
        the file.
    short : bool
        With `unit`: leave the last cells as short as the file ends, as HDFS does. By default all shards are of one
        length, filled up with zeros.
    force : bool
        Replace files that are there.

    Raises
    ------
    ParameterError, TargetExistsError, OSError
    InputChangedError
        If the file changes its size meanwhile.
    """
    k, m, n, multiple = codec.k, codec.m, codec.n, codec.block_multiple
    if short and unit is None:
        raise ParameterError("short last cells are for striped shards; give the cell size (--unit)")
    fd = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise ParameterError(f"{source} is no regular file: raw shards need to know its size beforehand")
        size = found.st_size
        if unit is None:
            cell = -(-size // (k * multiple)) * multiple
            lengths = [cell] * n
        else:
            lengths_of_all({}, {}, k, m, multiple, unit, None)  # checks the unit
            whole = -(-size // (k * unit)) * k * unit
            cell, lengths = unit, lengths_by_size(size if short else whole, k, m, unit, multiple)
        stem = os.path.join(out, os.path.basename(source) if name is None else name)
        targets = [f"{stem}.{index}" for index in range(n)]
        _check_targets(targets, {source: found}, force=force)
        reader = StripedFile(fd, source, size, k, cell)
        span = -(-max(lengths, default=0) // multiple) * multiple
        with made_directories([out]), Temporaries() as temporaries:
            files = [temporaries.create(target, _MODE) for target in targets]
            for file, length in zip(files, lengths, strict=True):
                file.reserve(length)

            def work(offset: int, length: int) -> None:
                rows = allocate(n, length)
                reader.read(offset, rows[:k])
                codec.encoder()(Blocks.of_array(rows[:k]), Blocks.of_array(rows[k:]))
                for file, row, total in zip(files, rows, lengths, strict=True):
                    _write(file.fd, row, offset, total)

            codec.encoder()
            window = window_bytes(n, multiple if unit is None else unit, multiple)
            _run(span, window, work, threads, Meter(progress, span * k), k)
            if os.fstat(fd).st_size != size:
                raise InputChangedError(f"{source} changed its size while it was read")
            temporaries.publish(replace=force, durable=True)
    finally:
        os.close(fd)
    return RawEncodeReport(tuple(targets), tuple(lengths), size)


def raw_repair(
    shards: Mapping[int, str],
    missing: Mapping[int, str],
    codec: PresetCodec,
    *,
    unit: int | None = None,
    size: int | None = None,
    check: bool = True,
    force: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> RawRepairReport:
    """Make missing shards from the others.

    Parameters
    ----------
    shards : mapping of int to str
        Path of each shard that is there, by its index.
    missing : mapping of int to str
        Path for each shard to make.
    codec : PresetCodec
    unit, size : int, optional
        Cell size and file size of striped shards; see `lengths_of_all`.
    check : bool
        Compare all further shards with those needed; nothing is written unless they agree.
    force : bool
        Replace files that stand where missing shards go.

    Raises
    ------
    UnrecoverableError
        If the shards given do not determine the missing ones.
    ShardSetError
        If lengths do not fit, or the shards do not belong together.
    ParameterError, TargetExistsError, OSError
    """
    overlap = sorted(set(shards) & set(missing))
    if overlap:
        raise ParameterError(f"shard {overlap[0]} is given and said to be missing")
    available, want = tuple(sorted(shards)), tuple(sorted(missing))
    plan = codec.plan(available, want)
    basis = codec.basis(available)
    spare = tuple(shard for shard in available if shard not in basis) if check else ()
    notes = []
    with RawFiles(shards) as files:
        _check_targets([missing[index] for index in want], files.stats, force=force)
        lengths, certain = lengths_of_all(
            files.lengths, files.paths, codec.k, codec.m, codec.block_multiple, unit, size
        )
        if not certain and any(index < codec.k for index in want):
            notes.append("a missing shard may have ended earlier, all others being full; --size would tell")
        if check and not spare:
            notes.append("no shard is left over to check the others by: a wrong order or preset would not be noticed")
        read = available if check else plan.sources
        span = -(-max(lengths) // codec.block_multiple) * codec.block_multiple
        with (
            made_directories(sorted({os.path.dirname(path) or "." for path in missing.values()})),
            Temporaries() as new,
        ):
            outputs = [new.create(missing[index], _MODE) for index in want]
            for output, index in zip(outputs, want, strict=True):
                output.reserve(lengths[index])

            def work(offset: int, length: int) -> None:
                rows = allocate(len(read), length)
                for shard, row in zip(read, rows, strict=True):
                    files.read(shard, offset, row)
                if spare:
                    _refuse_disagreement(codec, available, rows, files, offset)
                made = allocate(len(want), length)
                inputs = Blocks.of_array(rows).select([read.index(shard) for shard in plan.sources])
                plan.operator(inputs, Blocks.of_array(made))
                for output, row, index in zip(outputs, made, want, strict=True):
                    _write(output.fd, row, offset, lengths[index])

            window = window_bytes(len(read) + len(want), codec.block_multiple, codec.block_multiple)
            if want:
                _run(span, window, work, threads, Meter(progress, span * len(read)), len(read))
            new.publish(replace=force, durable=True)
    return RawRepairReport(
        dict(sorted(missing.items())), plan.sources, tuple(shard for shard in read if shard not in plan.sources),
        {index: lengths[index] for index in want}, tuple(notes),
    )  # fmt: skip


def raw_verify(
    shards: Mapping[int, str],
    codec: PresetCodec,
    *,
    unit: int | None = None,
    size: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> RawVerifyReport:
    """Tell whether shards belong together, and if not, which are wrong as far as the spare ones can tell.

    Parameters
    ----------
    shards : mapping of int to str
        Path of each shard that is there, by its index; more than are needed.
    codec : PresetCodec
    unit, size : int, optional
        Cell size and file size of striped shards; see `lengths_of_all`.

    Raises
    ------
    ShardSetError
        If lengths do not fit, or no shard is left over to compare.
    """
    given = tuple(sorted(shards))
    locator = Locator(codec, given)
    if not locator.spare:
        raise ShardSetError(
            f"the {len(given)} shards given leave none to compare: more than k = {codec.k} are needed to verify any"
        )
    wrong: dict[int, WrongShard] = {}
    unexplained: list[tuple[int, int]] = []
    lock = threading.Lock()
    with RawFiles(shards) as files:
        lengths, _ = lengths_of_all(files.lengths, files.paths, codec.k, codec.m, codec.block_multiple, unit, size)
        span = -(-max(lengths) // codec.block_multiple) * codec.block_multiple

        def work(offset: int, length: int) -> None:
            rows = allocate(len(given), length)
            for shard, row in zip(given, rows, strict=True):
                files.read(shard, offset, row)
            if not differences(codec, given, rows).any():
                return
            with lock:
                finding = locator.find(rows)
                unexplained.extend((offset + first, offset + last) for first, last in finding.unexplained)
                for shard, offsets in finding.wrong.items():
                    entry = wrong.setdefault(shard, WrongShard(shard, files.paths[shard]))
                    entry.wrong_bytes += len(offsets)
                    entry.ranges.extend(runs(offsets + offset))

        window = window_bytes(len(given), codec.block_multiple, codec.block_multiple)
        _run(span, window, work, threads, Meter(progress, span * len(given)), len(given))
    for entry in wrong.values():
        entry.ranges = merged(entry.ranges)
    state: Literal["consistent", "repairable", "beyond repair"] = "consistent"
    if wrong or unexplained:
        state = "repairable" if not unexplained and _determined(codec, given, wrong) else "beyond repair"
    places = tuple(merged(unexplained))
    return RawVerifyReport(state, given, tuple(wrong[i] for i in sorted(wrong)), places, locator.spare, max(lengths))


def _run(
    span: int, window: int, work: Callable[[int, int], None], threads: int | None, meter: Meter, read: int
) -> None:
    """Call `work(offset, length)` for each window of `span` bytes, from several threads."""
    windows = -(-span // window)
    counter = Counter(windows)

    def worker(stop: threading.Event) -> None:
        while not stop.is_set() and (number := counter.take()) is not None:
            length = min(window, span - number * window)
            work(number * window, length)
            meter.add(length * read)

    if windows:
        run_workers(usable_threads(threads, windows), worker)


def _write(fd: int, row: Bytes, offset: int, total: int) -> None:
    kept = min(len(row), max(total - offset, 0))
    if kept:
        write_at(fd, [row[:kept].data], offset)


def _check_targets(targets: Sequence[str], inputs: Mapping[str, os.stat_result], *, force: bool) -> None:
    """Refuse targets that are inputs, stand twice, or exist and may not be replaced."""
    identities = {(found.st_dev, found.st_ino): path for path, found in inputs.items()}
    if len(set(map(os.path.abspath, targets))) < len(targets):
        raise ParameterError("two shards would be written to one file")
    for target in targets:
        try:
            found = os.stat(target)
        except OSError:
            continue
        if (found.st_dev, found.st_ino) in identities:
            raise ParameterError(f"{target} is an input and would be replaced; name another file")
        if not force:
            raise TargetExistsError(f"{target} exists; --force replaces it")


def _refuse_disagreement(codec: PresetCodec, given: tuple[int, ...], rows: Bytes, files: RawFiles, offset: int) -> None:
    wrong = differences(codec, given, rows).any(axis=0)
    if wrong.any():
        place = offset + int(np.argmax(wrong))
        raise ShardSetError(
            f"the shards given do not belong together: they disagree at byte {place} "
            f"({', '.join(f'{i}: {path}' for i, path in list(files.paths.items())[:4])}, ...): wrong order, preset, k "
            "or m, or a damaged shard; `gfcode raw verify` tells which, and nothing was written"
        )


def _determined(codec: PresetCodec, given: tuple[int, ...], wrong: Iterable[int]) -> bool:
    """Whether the shards found wrong can all be made from the others."""
    bad = tuple(sorted(wrong))
    try:
        codec.plan([shard for shard in given if shard not in bad], bad)
    except UnrecoverableError:
        return False
    return True
