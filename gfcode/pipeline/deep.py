"""Do the frames of a stripe agree? What checksums cannot tell: parity, or data, that was written from bad memory."""

import threading

import numpy as np
import numpy.typing as npt

from gfcode.codec.locate import Locator, differences
from gfcode.pipeline.loader import Loader
from gfcode.pipeline.recover import LazyCodec
from gfcode.pipeline.report import FrameStatus

__all__ = ["DeepCheck"]


class DeepCheck:
    """Compares all good frames of each stripe: k of them determine the others. Safe to call from many threads.

    Where e frames more than k are good, up to ⌊e/2⌋ wrong ones are found, as errors of an MDS code; more than that show
    as a contradiction, save where they happen to be those of another content.

    Parameters
    ----------
    codec : LazyCodec
    stripes : int
        Of the set.

    Attributes
    ----------
    checked : ndarray of bool, shape (stripes,)
        Stripes that had a frame to spare, and were compared.
    doubt : ndarray of bool, shape (stripes,)
        Stripes that contradict themselves, and nothing tells which frames are wrong.
    """

    def __init__(self, codec: LazyCodec, stripes: int) -> None:
        self._codec = codec
        self._lock = threading.Lock()
        self._locators: dict[tuple[int, ...], Locator] = {}
        self.checked: npt.NDArray[np.bool_] = np.zeros(stripes, np.bool_)
        self.doubt: npt.NDArray[np.bool_] = np.zeros(stripes, np.bool_)

    def check(self, loader: Loader) -> None:
        """Compare the frames of a batch, all of which has been read; frames found wrong are good no longer."""
        batch = loader.batch
        groups: dict[bytes, list[int]] = {}
        for slot in range(batch.count):
            groups.setdefault(loader.good[:, slot].tobytes(), []).append(slot)
        for pattern, slots in groups.items():
            given = tuple(np.flatnonzero(np.frombuffer(pattern, np.bool_)).tolist())
            if len(given) <= batch.k:
                continue
            self.checked[[batch.first + slot for slot in slots]] = True
            whole = [slot for slot in slots if batch.block_length(slot) == batch.geometry.block_length]
            for same in (whole, [slot for slot in slots if slot not in whole]):
                self._compare(loader, given, same)

    def _compare(self, loader: Loader, given: tuple[int, ...], slots: list[int]) -> None:
        """Compare the frames of these shards in slots with blocks of one length."""
        batch = loader.batch
        length = batch.block_length(slots[0]) if slots else 0
        if not length:
            return
        blocks = [[np.frombuffer(batch.blocks[shard][slot], np.uint8)[:length] for slot in slots] for shard in given]
        rows = np.stack([np.concatenate(row) for row in blocks])
        wrong = differences(self._codec.get(), given, rows)
        for place in np.flatnonzero(wrong.reshape(-1, len(slots), length).any(axis=(0, 2))).tolist():
            self._locate(loader, given, slots[place], rows[:, place * length : (place + 1) * length])

    def _locate(self, loader: Loader, given: tuple[int, ...], slot: int, rows: npt.NDArray[np.uint8]) -> None:
        """Find the wrong frames of one stripe."""
        with self._lock:
            locator = self._locators.setdefault(given, Locator(self._codec.get(), given))
            finding = locator.find(np.ascontiguousarray(rows))
        if finding.unexplained or not 0 < len(finding.wrong) <= locator.spare // 2:
            self.doubt[loader.batch.first + slot] = True
            return
        for shard in finding.wrong:
            loader.good[shard, slot] = False
            loader.status[shard, slot] = FrameStatus.PARITY
