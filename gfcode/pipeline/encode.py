"""Encode a file or a stream into a new shard set."""

import contextlib
import os
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

import gfcode
from gfcode.codec import Codec
from gfcode.errors import InputChangedError, ParameterError, ShardFormatError
from gfcode.params import LayoutName
from gfcode.pipeline.batch import Batch, batch_stripes
from gfcode.pipeline.files import check_descriptors, sync_directories, write_at
from gfcode.pipeline.frame import FrameHash, Hashes
from gfcode.pipeline.keys import checksum_for, every_hash
from gfcode.pipeline.layout import DEFAULT_FRAME, block_length_for
from gfcode.pipeline.metadata import MAX_SHARDS, Metadata, check_file_name, describe, new_set_id
from gfcode.pipeline.outcomes import EncodeReport
from gfcode.pipeline.probe import open_regular
from gfcode.pipeline.publication import Check, Temporaries
from gfcode.pipeline.report import Progress
from gfcode.pipeline.source import FileSource, Source, StreamSource
from gfcode.pipeline.targets import check_targets, is_interrupted, made_directories, shard_targets
from gfcode.pipeline.workers import Meter, run_workers, usable_threads
from gfcode.pipeline.writeback import start_write_back

__all__ = ["Recipe", "Written", "encode_file", "recipe_for", "write_set"]

StrPath = str | os.PathLike[str]


def encode_file(
    source: StrPath | IO[bytes],
    *,
    k: int = 10,
    m: int = 4,
    w: int = 8,
    matrix: Any = "auto",
    layout: LayoutName = "packets",
    polynomial: int | None = None,
    frame: int = DEFAULT_FRAME,
    out: StrPath | Sequence[StrPath] = ".",
    name: str | None = None,
    engine: str | None = None,
    threads: int | None = None,
    force: bool = False,
    durable: bool = True,
    checksum: str | None = None,
    key: StrPath | None = None,
    progress: Progress | None = None,
) -> EncodeReport:
    """Cut a file into k data shards and add m parity shards, as files `NAME.000.gfs`, `NAME.001.gfs`, ...

    Shards are written under temporary names and get their own only when all of them are complete. On any failure
    nothing is left behind, and what was there before is untouched.

    Parameters
    ----------
    source : path or binary file object
        A file object, or a path that is no regular file, is read to its end as a stream.
    k, m, w : int
        Data shards, parity shards, bits per symbol.
    matrix : str or array_like, shape (m, k)
        Family of the parity matrix, or the matrix itself.
    layout : {"packets", "words"}
    polynomial : int, optional
        Of the field, with its highest bit; the usual one for w by default.
    frame : int
        Most bytes of a frame: header and block.
    out : path or sequence of path
        Directories; shard i goes to number i modulo their count. Missing ones are made.
    name : str, optional
        NAME; the source's own name by default. A stream needs one.
    engine : str, optional
        Engine that must be used.
    threads : int, optional
        Workers, each with a buffer of at most 16 MiB or one stripe.
    force : bool
        Replace a set of the same name, whole.
    durable : bool
        Flush files and directories to the device before the shards get their names.
    checksum : str, optional
        Checksum of the frames: "xxh3-128" (the default) or "blake3".
    key : path, optional
        File that holds a key, 16 bytes or more: the checksum is keyed BLAKE3, and without the key nobody can write a
        frame that counts.
    progress : callable, optional
        See `gfcode.pipeline.report.Progress`.

    Returns
    -------
    EncodeReport

    Raises
    ------
    ParameterError
        For parameters that no code, layout or frame has, or a name that cannot be used.
    TargetExistsError
        If a shard of that name exists and `force` is false.
    InputChangedError
        If the source changed while it was read.
    OSError
        If the source cannot be read or a shard not written.
    """
    recipe = recipe_for(
        k=k, m=m, w=w, matrix=matrix, layout=layout, polynomial=polynomial, frame=frame, engine=engine,
        checksum=checksum, key=key,
    )  # fmt: skip
    directories = [os.fsdecode(out)] if isinstance(out, str | os.PathLike) else [os.fsdecode(path) for path in out]
    with made_directories(directories) as made, Temporaries() as files:
        written = write_set(
            files, source, recipe, directories, name=name, force=force, threads=threads, durable=durable,
            progress=progress,
        )  # fmt: skip
        files.publish(replace=written.replaces, durable=durable, check=written.check)
        if durable:
            sync_directories(made)
    return written.report


@dataclass(frozen=True, slots=True)
class Recipe:
    """How sets are made, whatever of."""

    codec: Codec
    block_length: int
    checksum: FrameHash
    tool: str

    @property
    def hashes(self) -> Hashes:
        """Checksums by which older sets can be known."""
        return every_hash(self.checksum)


@dataclass(frozen=True, slots=True)
class Written:
    """A set whose shards are complete and have no names yet.

    Attributes
    ----------
    report : EncodeReport
    replaces : bool
        Whether its shards may replace what has their names.
    check : callable
        For `Temporaries.publish`: refuses targets that appeared meanwhile, and returns shards without a successor.
    """

    report: EncodeReport
    replaces: bool
    check: Check


def recipe_for(
    *, k: int, m: int, w: int, matrix: Any, layout: LayoutName, polynomial: int | None, frame: int, engine: str | None,
    checksum: str | None, key: StrPath | None,
) -> Recipe:  # fmt: skip
    """Build the codec and check all that does not depend on a source; parameters as for `encode_file`."""
    codec = Codec(k, m, w, matrix=matrix, layout=layout, polynomial=polynomial, engine=engine)
    if codec.n > MAX_SHARDS:
        raise ParameterError(f"k + m = {codec.n} shards are too many for a shard set; the limit is {MAX_SHARDS}")
    block_length = block_length_for(frame, codec.layout, codec.n)
    return Recipe(codec, block_length, checksum_for(checksum, key), f"gfcode {gfcode.__version__}")


def write_set(
    files: Temporaries, source: StrPath | IO[bytes], recipe: Recipe, directories: Sequence[str], *, name: str | None,
    force: bool, threads: int | None, durable: bool, progress: Progress | None, regular: bool = False,
) -> Written:  # fmt: skip
    """Write the shards of a new set under temporary names; parameters as for `encode_file`.

    Parameters
    ----------
    files : Temporaries
        New; gets the shards.
    regular : bool
        Whether the source was a regular file when it was looked at: it is refused if it has become a FIFO, whose
        opening could take forever.
    """
    started = time.perf_counter()
    codec = recipe.codec
    with _opened(source, regular=regular) as (stream, path):
        if name is None:
            if path is None:
                raise ParameterError("a stream has no name of its own; give one")
            name = os.path.basename(path)
        targets = shard_targets(directories, check_file_name(name), codec.n)
        status = None if path is None else os.fstat(stream.fileno())
        if status is not None and not stat.S_ISREG(status.st_mode):
            status = None
        metadata = describe(
            codec, set_id=new_set_id(), name=name, size=None if status is None else status.st_size,
            mode=None if status is None else stat.S_IMODE(status.st_mode) & 0o777,
            mtime_ns=None if status is None else status.st_mtime_ns, block_length=recipe.block_length,
            checksum=recipe.checksum, tool=recipe.tool,
        )  # fmt: skip
        stripes = None if metadata.size is None else metadata.geometry.stripes(metadata.size)
        capacity = batch_stripes(metadata.geometry, codec.n, stripes)
        reader: Source
        if status is None:
            reader = StreamSource(stream, metadata.geometry)
        else:
            reader = FileSource(stream.fileno(), path or name, metadata.geometry, capacity)
        check_descriptors(codec.n)

        def check() -> list[str]:
            replaces = force or is_interrupted(targets, status, recipe.hashes)
            return check_targets(targets, name, force=replaces, source=status, hashes=recipe.hashes)

        replaces = force or is_interrupted(targets, status, recipe.hashes)
        check_targets(targets, name, force=replaces, source=status, hashes=recipe.hashes)
        for index, target in enumerate(targets):
            _begin(files, target, metadata, index)
        workers = usable_threads(threads, None if stripes is None else -(-stripes // capacity))
        _write(codec, metadata, reader, files, capacity, workers, Meter(progress, metadata.size), durable=durable)
        size = reader.finish()
    geometry = metadata.geometry
    stripes = geometry.stripes(size)
    report = EncodeReport(
        set_id=metadata.set_id.hex(), name=name, size=size, k=codec.k, m=codec.m, w=codec.w, layout=codec.layout.name,
        family=codec.family, check=recipe.checksum.check, frame_length=geometry.frame_length,
        block_length=recipe.block_length, stripes=stripes, paths=tuple(targets),
        bytes_written=codec.n * geometry.shard_length(stripes, geometry.last_data(size)),
        seconds=time.perf_counter() - started,
    )  # fmt: skip
    return Written(report, replaces, check)


@contextlib.contextmanager
def _opened(source: StrPath | IO[bytes], *, regular: bool) -> Iterator[tuple[IO[bytes], str | None]]:
    """Open a path; pass a file object on. The second value is the path."""
    if not isinstance(source, str | os.PathLike):
        yield source, None
        return
    path = os.fsdecode(source)
    try:
        opened = open_regular(path) if regular else path
    except ShardFormatError as error:
        raise InputChangedError(f"{path} is no regular file any more; encode it again") from error
    with open(opened, "rb", buffering=0) as stream:
        yield stream, path


def _begin(files: Temporaries, target: str, metadata: Metadata, index: int) -> None:
    """Create a shard with its metadata frame."""
    # Shards hold the data itself: they are no more readable than their source.
    mode = 0o666 if metadata.mode is None else (metadata.mode & 0o666) | 0o600
    file = files.create(target, mode)
    if metadata.size is not None:
        geometry = metadata.geometry
        file.reserve(geometry.shard_length(geometry.stripes(metadata.size), geometry.last_data(metadata.size)))
    write_at(file.fd, [memoryview(metadata.frame(index))], 0)


def _write(
    codec: Codec, metadata: Metadata, reader: Source, files: Temporaries, capacity: int, workers: int, meter: Meter,
    *, durable: bool,
) -> None:  # fmt: skip
    """Encode all stripes."""
    operator = codec.encoder() if codec.m else None
    data, parity, everything = range(codec.k), range(codec.k, codec.n), range(codec.n)
    descriptors = [file.fd for file in files.files]

    def work(stop: threading.Event) -> None:
        batch = Batch(metadata, capacity)
        while not stop.is_set() and reader.fill(batch):
            if operator is not None:
                batch.apply(operator, data, parity)
            batch.stamp(everything)
            offset = batch.geometry.offset(batch.first)
            for index in everything:
                row = batch.row(index)
                write_at(descriptors[index], [row], offset)
                if durable:
                    start_write_back(descriptors[index], offset, len(row))
            meter.add(batch.data_length)

    run_workers(workers, work)
