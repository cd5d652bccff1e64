"""Finding wrong shards: which of them must be disbelieved for the others to agree."""

from collections.abc import Iterator
from itertools import combinations
from typing import Final

import numpy as np
import numpy.typing as npt

from gfcode.codec.preset_codec import PresetCodec
from gfcode.engine.buffers import allocate
from gfcode.engine.protocol import Blocks
from gfcode.errors import UnrecoverableError

__all__ = ["Finding", "Locator", "differences"]

Bytes = npt.NDArray[np.uint8]
#: Bytes of a shard that are judged together, at least; less where two shards are wrong within them.
_GRANULE: Final = 512
#: Granules on which a set of shards is tried before it is tried on all.
_SAMPLE: Final = 64
#: Sets of shards that are tried, at most.
_MOST_SUSPECTS: Final = 1 << 14


class Finding:
    """What is wrong in one window.

    Attributes
    ----------
    wrong : dict of int to ndarray of int64
        Offsets of the wrong bytes of each shard found wrong, within the window, ascending.
    unexplained : list of (int, int)
        First and last byte of the places that no set of few enough shards explains.
    """

    def __init__(self) -> None:
        self.wrong: dict[int, npt.NDArray[np.int64]] = {}
        self.unexplained: list[tuple[int, int]] = []


def differences(codec: PresetCodec, given: tuple[int, ...], rows: Bytes) -> Bytes:
    """Compare the shards that others determine with what these make them.

    Parameters
    ----------
    codec : PresetCodec
    given : tuple of int
        Shards, ascending.
    rows : ndarray of uint8, shape (len(given), length)
        Their bytes.

    Returns
    -------
    ndarray of uint8, shape (spare, length)
        XOR of each spare shard with what the basis makes it; zero where they agree.
    """
    basis = codec.basis(given)
    spare = tuple(shard for shard in given if shard not in basis)
    made = allocate(len(spare), rows.shape[1])
    if spare:
        plan = codec.plan(basis, spare)
        place = {shard: row for row, shard in enumerate(given)}
        inputs = Blocks.of_array(rows).select([place[shard] for shard in plan.sources])
        plan.operator(inputs, Blocks.of_array(made))
        for row, shard in enumerate(spare):
            np.bitwise_xor(made[row], rows[place[shard]], out=made[row])
    return made


class Locator:
    """Finds wrong shards in windows; sets of shards that have explained something are tried first afterwards.

    With e spare shards, ⌊e/2⌋ wrong ones at any one place are found for certain in an MDS code: no other set as small
    explains what is seen there.

    Parameters
    ----------
    codec : PresetCodec
    given : tuple of int
        Shards, ascending.
    """

    def __init__(self, codec: PresetCodec, given: tuple[int, ...]) -> None:
        self.codec = codec
        self.given = given
        self.spare = len(given) - len(codec.basis(given))
        self._known: list[tuple[int, ...]] = []

    def find(self, rows: Bytes) -> Finding:
        """Say what is wrong in a window.

        Parameters
        ----------
        rows : ndarray of uint8, shape (len(given), length)
        """
        finding = Finding()
        bad = np.flatnonzero(differences(self.codec, self.given, rows).any(axis=0))
        multiple = self.codec.block_multiple
        coarse = -(-_GRANULE // multiple) * multiple
        left = self._explain(rows, np.unique(bad // coarse), coarse, finding)
        if left.size and coarse > multiple:
            starts = (left[:, None] * coarse + np.arange(0, coarse, multiple)).ravel() // multiple
            left = self._explain(rows, np.intersect1d(starts, np.unique(bad // multiple)), multiple, finding)
            coarse = multiple
        finding.unexplained = [(int(i) * coarse, min((int(i) + 1) * coarse, rows.shape[1]) - 1) for i in left]
        for shard, offsets in finding.wrong.items():
            finding.wrong[shard] = np.unique(offsets)
        return finding

    def _explain(
        self, rows: Bytes, granules: npt.NDArray[np.int64], size: int, finding: Finding
    ) -> npt.NDArray[np.int64]:
        """Explain granules by the smallest sets of shards that do; return those left."""
        fruitless = 0
        while granules.size and fruitless < 2:
            before = granules.size
            sample = granules[:: max(1, granules.size // _SAMPLE)]
            for suspects in self._suspects():
                if not self._agree_without(rows, sample, size, suspects).any() or not self._determined(suspects):
                    continue
                explained = granules[self._agree_without(rows, granules, size, suspects)]
                self._record(rows, explained, size, suspects, finding)
                granules = np.setdiff1d(granules, explained)
                sample = np.setdiff1d(sample, explained)
                if suspects not in self._known:
                    self._known.append(suspects)
                if not sample.size:
                    break
            fruitless = fruitless + 1 if granules.size == before else 0
        return granules

    def _suspects(self) -> Iterator[tuple[int, ...]]:
        """Yield sets of shards to disbelieve: by size, those known first."""
        yielded = 0
        for count in range(1, self.spare // 2 + 1):
            known = [suspects for suspects in self._known if len(suspects) == count]
            yield from known
            for suspects in combinations(self.given, count):
                if suspects in known:
                    continue
                yielded += 1
                if yielded > _MOST_SUSPECTS:
                    return
                yield suspects

    def _determined(self, suspects: tuple[int, ...]) -> bool:
        """Whether the other shards determine the suspects, which they may not in a code that is not MDS."""
        try:
            self.codec.plan([shard for shard in self.given if shard not in suspects], suspects)
        except UnrecoverableError:
            return False
        return True

    def _agree_without(
        self, rows: Bytes, granules: npt.NDArray[np.int64], size: int, suspects: tuple[int, ...]
    ) -> npt.NDArray[np.bool_]:
        """Whether the shards other than the suspects agree, for each granule."""
        others = tuple(shard for shard in self.given if shard not in suspects)
        columns, padded = _columns(granules, size, rows.shape[1])
        kept = [row for row, shard in enumerate(self.given) if shard not in suspects]
        part = np.ascontiguousarray(rows[kept][:, columns])
        part[:, padded] = 0
        wrong = differences(self.codec, others, part)
        if not wrong.shape[0]:
            return np.zeros(granules.size, np.bool_)
        by_granule = wrong.reshape(-1, granules.size, size).transpose(1, 0, 2).reshape(granules.size, -1)
        return np.asarray(~by_granule.any(axis=1), np.bool_)

    def _record(
        self, rows: Bytes, granules: npt.NDArray[np.int64], size: int, suspects: tuple[int, ...], finding: Finding
    ) -> None:
        """Make the suspects from the others, and note where they differ from what they should be."""
        others = tuple(shard for shard in self.given if shard not in suspects)
        columns, padded = _columns(granules, size, rows.shape[1])
        part = np.ascontiguousarray(rows[:, columns])
        part[:, padded] = 0
        plan = self.codec.plan(others, suspects)
        made = allocate(len(suspects), len(columns))
        inputs = Blocks.of_array(part).select([self.given.index(shard) for shard in plan.sources])
        plan.operator(inputs, Blocks.of_array(made))
        for row, shard in enumerate(suspects):
            offsets = columns[made[row] != part[self.given.index(shard)]]
            if offsets.size:
                earlier = finding.wrong.get(shard, np.empty(0, np.int64))
                finding.wrong[shard] = np.concatenate([earlier, offsets])


def _columns(
    granules: npt.NDArray[np.int64], size: int, length: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Columns of granules, and which of them lie behind the end of the window (and stand for its last byte)."""
    columns = (granules[:, None] * size + np.arange(size)).ravel()
    return np.minimum(columns, length - 1), columns >= length
