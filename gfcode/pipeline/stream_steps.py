"""Encoding and decoding of streams, apart from how bytes are read and written.

Each is a generator of steps: it yields what is to be read or written next, and is sent how many bytes came. Whoever
drives it reads and writes as its streams want it: `gfcode.pipeline.streams` by calls, `gfcode.pipeline.streams_async`
in an event loop. Between two steps the generator computes.
"""

from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from gfcode.codec import Codec
from gfcode.errors import InputChangedError, ShardFormatError, ShardSetError, UnrecoverableError
from gfcode.pipeline.batch import Batch, batch_stripes
from gfcode.pipeline.frame import FLAG_LAST, HEADER_BYTES, FrameHeader, Hashes, is_sealed, parse_header
from gfcode.pipeline.metadata import MAX_METADATA, METADATA_MULTIPLE, Metadata
from gfcode.pipeline.probe import metadata_frame
from gfcode.pipeline.recover import LazyCodec, rebuild
from gfcode.pipeline.source import shorten

__all__ = ["Fill", "Put", "Steps", "StreamReport", "decode_steps", "encode_steps"]


@dataclass(frozen=True, slots=True)
class Fill:
    """Fill buffers from readers, by number; those of one reader in order, each as far as its bytes go."""

    parts: Sequence[tuple[int, memoryview]]


@dataclass(frozen=True, slots=True)
class Put:
    """Write buffers to writers, by number; those of one writer in order. They are reused afterwards."""

    parts: Sequence[tuple[int, memoryview]]


@dataclass(frozen=True, slots=True)
class StreamReport:
    """What a stream came to.

    Attributes
    ----------
    set_id, name : str
    size : int
        Bytes of the data.
    stripes : int
    shards : tuple of int
        Those that were written or read.
    damaged : tuple of int
        Of these, the ones with any frame that was lost or wrong.
    rebuilt_blocks : int
        Data blocks that had to be made from others.
    """

    set_id: str
    name: str
    size: int
    stripes: int
    shards: tuple[int, ...]
    damaged: tuple[int, ...] = ()
    rebuilt_blocks: int = 0


#: Yields what to do; is sent the bytes that each part of a `Fill` got.
Steps: TypeAlias = Generator[Fill | Put, list[int], StreamReport]


def encode_steps(codec: Codec, metadata: Metadata, shards: Sequence[int]) -> Steps:
    """Read data from reader 0 to its end, and write shards.

    Parameters
    ----------
    codec : Codec
    metadata : Metadata
    shards : sequence of int
        Those that are written, each to the writer of its number.

    Raises
    ------
    InputChangedError
        If the metadata names a size, and another number of bytes came.
    """
    batch = Batch(metadata, batch_stripes(metadata.geometry, metadata.n, None))
    everything = range(metadata.n)
    yield Put([(shard, memoryview(metadata.frame(shard))) for shard in shards])
    ahead, size, first, ended = bytearray(), 0, 0, False
    while not ended:
        batch.place(first, batch.capacity, None)
        views = batch.data_views()
        views[0][: len(ahead)] = ahead
        counts = yield Fill([(0, views[0][len(ahead) :]), *((0, view) for view in views[1:])])
        got = len(ahead) + sum(counts)
        if got == batch.data_length:
            ahead = bytearray(1)  # whether the stream ends here is known by the next byte only
            (count,) = yield Fill([(0, memoryview(ahead))])
            ended = not count
        else:
            ended = True
        size += got
        if ended:
            shorten(batch, got)
            if metadata.size is not None and size != metadata.size:
                raise InputChangedError(f"the stream was said to have {metadata.size} bytes and has {size}")
        if codec.m:
            batch.apply(codec.encoder(), range(codec.k), range(codec.k, codec.n))
        batch.stamp(everything)
        yield Put([(shard, batch.row(shard)) for shard in shards])
        first += batch.count
    return StreamReport(metadata.set_id.hex(), metadata.name, size, first, tuple(shards))


class _Checked:
    """One stripe, and which frames of it are sound."""

    def __init__(self, metadata: Metadata) -> None:
        self.metadata = metadata
        self.batch = Batch(metadata, 1)
        self.good = np.zeros((metadata.n, 1), np.bool_)

    def check(self, shard: int, got: int) -> None:
        """Judge a frame of which `got` bytes are there."""
        batch = self.batch
        self.good[shard, 0] = got >= len(batch.row(shard)) and batch.is_sound(shard)

    def last_data(self, stripe: int, shard: int, got: int) -> int | None:
        """Return the data bytes of the stripe if a sound frame says that it is the last."""
        header = self._header(shard)
        if header is None or header.flags != FLAG_LAST or (header.shard, header.stripe) != (shard, stripe):
            return None
        length = HEADER_BYTES + header.block_length
        row = self.batch.rows[shard]
        fits = header.block_length == self.metadata.geometry.block_for(header.data_length) and length <= got
        sealed = fits and header.set_id == self.metadata.set_id and is_sealed(row[:length], self.metadata.checksum)
        return header.data_length if sealed else None

    def block_length(self, shard: int) -> int:
        """Return the bytes that follow a header: what it says, or else those of a full block."""
        header, full = self._header(shard), self.metadata.geometry.block_length
        return header.block_length if header is not None and header.block_length <= full else full

    def _header(self, shard: int) -> FrameHeader | None:
        try:
            header = parse_header(self.batch.rows[shard])
        except ShardFormatError:
            return None
        return header if header.hash_id == self.metadata.checksum.number else None


def decode_steps(count: int, hashes: Hashes, engine: str | None) -> Steps:
    """Read shards from `count` readers, in any order, and write the data to writer 0.

    Parameters
    ----------
    count : int
    hashes : mapping of int to FrameHash
        Checksums that count.
    engine : str or None

    Raises
    ------
    ShardSetError, ShardFormatError, AuthenticationError
        If the streams do not begin with the metadata of one set.
    UnrecoverableError
        If a stripe has fewer than k sound frames. All data before it has been written.
    """
    readers, metadata = yield from _begin(count, hashes)
    codec, geometry = LazyCodec(metadata, engine), metadata.geometry
    checked = _Checked(metadata)
    batch = checked.batch
    stripes = None if metadata.size is None else geometry.stripes(metadata.size)
    damaged: set[int] = set()
    size, rebuilt, stripe, ended = 0, 0, 0, False
    while not ended:
        if metadata.size is not None and stripes is not None:
            ended = stripe == stripes - 1
            batch.place(stripe, 1, geometry.last_data(metadata.size) if ended else None)
            counts = yield Fill([(number, batch.row(shard)) for shard, number in readers.items()])
            got = dict(zip(readers, counts, strict=True))
        else:
            got = yield from _frames(checked, readers)
            ends = {checked.last_data(stripe, shard, length) for shard, length in got.items()} - {None}
            last_data = ends.pop() if ends else None
            ended = last_data is not None
            batch.place(stripe, 1, last_data)
            if not any(got.values()):
                raise UnrecoverableError(
                    f"all streams of {metadata.name!r} end after {stripe} stripes, without a frame that says so: what "
                    "may follow is lost"
                )
        checked.good[:] = False
        for shard, length in got.items():
            checked.check(shard, length)
        damaged.update(shard for shard in readers if not checked.good[shard, 0])
        sound = int(checked.good.sum())
        if sound < metadata.k and not checked.good[: metadata.k].all():
            raise UnrecoverableError(
                f"stripe {stripe} of {metadata.name!r} is beyond repair: {sound} sound frames came, and {metadata.k} "
                "are needed"
            )
        rebuilt += rebuild(checked, codec, range(metadata.k))
        size += batch.data_length
        yield Put([(0, view) for view in batch.data_views()])
        stripe += 1
    return StreamReport(
        metadata.set_id.hex(), metadata.name, size, stripe, tuple(sorted(readers)), tuple(sorted(damaged)), rebuilt
    )


def _frames(checked: _Checked, readers: dict[int, int]) -> Generator[Fill, list[int], dict[int, int]]:
    """Read a frame of each reader, of whatever length it says; return the bytes that came, by shard."""
    rows = checked.batch.rows
    checked.batch.place(0, 1, None)
    heads = yield Fill([(number, rows[shard][:HEADER_BYTES]) for shard, number in readers.items()])
    parts = []
    for (shard, number), head in zip(readers.items(), heads, strict=True):
        length = checked.block_length(shard) if head == HEADER_BYTES else 0
        parts.append((number, rows[shard][HEADER_BYTES : HEADER_BYTES + length]))
    tails = yield Fill(parts)
    return {shard: head + tail for shard, head, tail in zip(readers, heads, tails, strict=True)}


def _begin(count: int, hashes: Hashes) -> Generator[Fill, list[int], tuple[dict[int, int], Metadata]]:
    """Read the metadata frames; return which reader has which shard, and the metadata.

    All metadata frames of a set have one length, so that a stream whose own is damaged is still read in step. Such a
    stream is taken for the shard of its place, if it has n readers beside it: its frames say whether that is so.
    """
    heads = [bytearray(HEADER_BYTES) for _ in range(count)]
    yield Fill([(number, memoryview(head)) for number, head in enumerate(heads)])
    lengths: Counter[int] = Counter()
    reason: ShardFormatError | None = None
    for head in heads:
        try:
            lengths[HEADER_BYTES + parse_header(head).block_length] += 1
        except ShardFormatError as error:
            reason = reason or error
    likely = [length for length, _ in lengths.most_common() if not length % METADATA_MULTIPLE]
    length = likely[0] if likely and likely[0] <= MAX_METADATA else METADATA_MULTIPLE
    frames = [head + bytearray(length - HEADER_BYTES) for head in heads]
    counts = yield Fill([(number, memoryview(frame)[HEADER_BYTES:]) for number, frame in enumerate(frames)])
    known: dict[bytes, Metadata] = {}
    claims: dict[int, int] = {}
    lost: list[int] = []
    for number, (frame, got) in enumerate(zip(frames, counts, strict=True)):
        try:
            _, shard = metadata_frame(frame if got == length - HEADER_BYTES else frame[:1], known, hashes)
        except ShardFormatError as error:
            reason = reason or error
            lost.append(number)
        else:
            claims.setdefault(shard, number)
    if not known:
        raise reason or ShardSetError("there is no stream to decode")
    if len(known) > 1:
        sets = ", ".join(sorted({metadata.set_id.hex() for metadata in known.values()}))
        raise ShardSetError(f"the streams are of more than one set, or contradict each other: {sets}")
    (metadata,) = known.values()
    for number in _by_place(lost, count, metadata):
        claims.setdefault(number, number)
    return dict(sorted(claims.items())), metadata


def _by_place(numbers: Iterable[int], count: int, metadata: Metadata) -> list[int]:
    return list(numbers) if count == metadata.n else []
