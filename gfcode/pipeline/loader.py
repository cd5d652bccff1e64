"""Read frames of a set into a batch, and check every one of them."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from gfcode.errors import ShardFormatError
from gfcode.pipeline.batch import Batch
from gfcode.pipeline.files import read_at
from gfcode.pipeline.frame import COVER, HEADER_BYTES, FrameHeader, is_sealed, parse_header
from gfcode.pipeline.report import FrameStatus
from gfcode.pipeline.shardset import OpenShard, ShardSet

__all__ = ["Loader"]

_GOOD = int(FrameStatus.GOOD)  # members of enumerations are slow to look up and to compare with arrays


class Loader:
    """Fills one batch again and again. Each worker has its own.

    Parameters
    ----------
    shards : ShardSet
    batch : Batch
    files : mapping of int to sequence of OpenShard, optional
        Files to read instead of those of the set.

    Attributes
    ----------
    status : ndarray of uint8, shape (n, S)
        `FrameStatus` of the frames of the primary file of each shard that was loaded.
    good : ndarray of bool, shape (n, S)
        Whether a sound frame, from whichever file, stands in the batch.
    loaded : ndarray of bool, shape (n,)
        Whether `load` was called for the shard.
    bytes_read : int
        Since the loader was made.
    """

    def __init__(self, shards: ShardSet, batch: Batch, files: Mapping[int, Sequence[OpenShard]] | None = None) -> None:
        self.shards, self.batch = shards, batch
        self._files: Mapping[int, Sequence[OpenShard]] = dict(enumerate(shards.files)) if files is None else files
        self._extra: Sequence[Sequence[OpenShard]] = shards.extra if files is None else [()] * batch.n
        shape = (batch.n, batch.capacity)
        self.status: npt.NDArray[np.uint8] = np.empty(shape, np.uint8)
        self.good: npt.NDArray[np.bool_] = np.empty(shape, np.bool_)
        self.loaded: npt.NDArray[np.bool_] = np.zeros(batch.n, np.bool_)
        self.bytes_read = 0

    def begin(self, number: int) -> None:
        """Turn to batch `number`; no frame of it is there yet."""
        self.shards.place(self.batch, number)
        self.status[:] = FrameStatus.MISSING
        self.good[:] = False
        self.loaded[:] = False

    def load(self, shard: int) -> bool:
        """Read the frames of one shard; what the primary file has not sound is taken from its copies.

        Returns
        -------
        bool
            Whether all of them are there.
        """
        self.loaded[shard] = True
        files = self._files[shard]
        if not files and not self._extra[shard]:
            return False
        count = self.batch.count
        good = self.good[shard, :count]
        if files:
            status = self._read(files[0], shard, 0, count)
            if status is None:
                self.status[shard, :count] = _GOOD
                good[:] = True
                return True
            self.status[shard, :count] = status
            good[:] = status == _GOOD
        for copy in (*files[1:], *self._extra[shard]):
            for slot in np.flatnonzero(~good).tolist():
                good[slot] = self._read(copy, shard, slot, slot + 1) is None
        return bool(good.all())

    def _read(self, file: OpenShard, shard: int, first: int, end: int) -> npt.NDArray[np.uint8] | None:
        """Read and check the frames in slots first, ..., end - 1; return their statuses, None where all are good."""
        batch = self.batch
        offset = batch.geometry.offset(batch.first + first)
        row = batch.row(shard, first, end)
        try:
            got = read_at(file.fd, [row], offset)
        except OSError:
            if end - first == 1:
                return np.array([FrameStatus.UNREADABLE], np.uint8)
            # Some of them can perhaps be read one by one.
            one_by_one = [self._read(file, shard, slot, slot + 1) for slot in range(first, end)]
            return np.array([_GOOD if status is None else status[0] for status in one_by_one], np.uint8)
        self.bytes_read += got
        if not got:
            return np.full(end - first, FrameStatus.MISSING, np.uint8)
        if got == len(row) and batch.is_sound(shard, first, end):
            return None
        return self._look(shard, first, end, got)

    def _look(self, shard: int, first: int, end: int, got: int) -> npt.NDArray[np.uint8] | None:
        """Say of frame after frame what is wrong with it."""
        batch = self.batch
        status = np.zeros(end - first, np.uint8)
        digests = batch.digests(shard, first, end)
        frame = batch.geometry.frame_length
        for slot in range(first, end):
            at = (slot - first) * frame
            status[slot - first] = self._classify(shard, slot, digests[slot - first], got - at)
        return status if status.any() else None

    def _classify(self, shard: int, slot: int, digest: bytes, got: int) -> FrameStatus:
        """Say what is wrong with one frame, of which `got` bytes were read."""
        batch = self.batch
        if got < HEADER_BYTES + batch.block_length(slot):
            return FrameStatus.MISSING
        frame = batch.rows[shard][slot * batch.geometry.frame_length :][: batch.geometry.frame_length]
        try:
            header = parse_header(frame)
        except ShardFormatError:
            return FrameStatus.CHECKSUM
        if header.hash_id != self.shards.metadata.checksum.number:
            return FrameStatus.CHECKSUM
        if digest != frame[8:COVER]:
            # A frame with a block of another length is sound in itself, and foreign or out of place.
            length = HEADER_BYTES + header.block_length
            same = header.block_length == batch.block_length(slot)
            if same or length > min(got, len(frame)) or not is_sealed(frame[:length], self.shards.metadata.checksum):
                return FrameStatus.CHECKSUM
        return self._place_of(header, shard, slot)

    def _place_of(self, header: FrameHeader, shard: int, slot: int) -> FrameStatus:
        batch = self.batch
        if header.set_id != self.shards.metadata.set_id:
            return FrameStatus.FOREIGN
        if header.shard != shard or header.stripe != batch.first + slot:
            return FrameStatus.MISPLACED
        at = slot * batch.geometry.frame_length
        if batch.rows[shard][at + COVER : at + HEADER_BYTES] != batch.headers(shard, slot, slot + 1)[0]:
            return FrameStatus.FIELDS
        if slot == batch.count - 1 and batch.has_slack(shard):
            return FrameStatus.SLACK
        return FrameStatus.GOOD
