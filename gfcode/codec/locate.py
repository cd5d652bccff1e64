"""Finding wrong shards: which of them must be disbelieved for the others to agree."""

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from gfcode.codec.plan import Plan
from gfcode.engine.buffers import allocate
from gfcode.engine.protocol import Blocks
from gfcode.errors import UnrecoverableError

__all__ = ["Code", "Finding", "Locator", "differences"]

Bytes = npt.NDArray[np.uint8]
#: Bytes of a shard that are judged together, at least; less where two shards are wrong within them.
_GRANULE: Final = 512
#: Granules on which a set of shards is tried before it is tried on all.
_SAMPLE: Final = 64
#: Sets of shards that are tried, at most.
_MOST_SUSPECTS: Final = 1 << 14
#: Granules of a window that are cut smaller where no set explains them whole.
_MOST_REFINED: Final = 64
#: Windows in which nothing could be explained after which only sets that have explained something are tried.
_PATIENCE: Final = 4


class Code(Protocol):
    """What is asked of a codec."""

    @property
    def block_multiple(self) -> int:
        """Bytes that the length of every block is a multiple of."""
        ...

    def basis(self, given: Iterable[int]) -> tuple[int, ...]:
        """Return the shards, of those given, that determine all others given."""
        ...

    def plan(self, available: Iterable[int], want: Iterable[int]) -> Plan:
        """Return how to make the wanted shards from some of the available ones."""
        ...


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


def differences(codec: Code, given: tuple[int, ...], rows: Bytes) -> Bytes:
    """Compare the shards that others determine with what these make them.

    Parameters
    ----------
    codec : Code
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
    codec : Code
    given : tuple of int
        Shards, ascending.
    """

    def __init__(self, codec: Code, given: tuple[int, ...]) -> None:
        self.codec = codec
        self.given = given
        self.spare = len(given) - len(codec.basis(given))
        self._known: list[tuple[int, ...]] = []
        self._in_vain = 0

    def find(self, rows: Bytes) -> Finding:
        """Say what is wrong in a window.

        Parameters
        ----------
        rows : ndarray of uint8, shape (len(given), length)
        """
        finding = Finding()
        length = rows.shape[1]
        multiple = self.codec.block_multiple
        coarse = -(-_GRANULE // multiple) * multiple
        if length % coarse:  # zeros agree in any linear code
            rows = np.pad(rows, ((0, 0), (0, -length % coarse)))
        bad = np.asarray(differences(self.codec, self.given, rows).any(axis=0), np.bool_)
        left = self._explain(rows, _granules(bad, coarse), coarse, finding)
        if left.size and coarse > multiple and self._in_vain < _PATIENCE:
            left, small = left[_MOST_REFINED:], left[:_MOST_REFINED]
            fine = _granules(bad, multiple)
            fine = fine[np.isin(fine // (coarse // multiple), small)]
            fine = self._explain(rows, fine, multiple, finding)
            finding.unexplained = _places(fine, multiple, length)
        finding.unexplained += _places(left, coarse, length)
        self._in_vain = self._in_vain + 1 if finding.unexplained and not finding.wrong else 0
        for shard, offsets in finding.wrong.items():
            finding.wrong[shard] = np.sort(offsets)
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
                granules = granules[~np.isin(granules, explained)]
                sample = sample[~np.isin(sample, explained)]
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
            for suspects in combinations(self.given, count) if self._in_vain < _PATIENCE else ():
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
        kept = [row for row, shard in enumerate(self.given) if shard not in suspects]
        wrong = differences(self.codec, others, np.ascontiguousarray(_parts(rows, granules, size)[kept]))
        if not wrong.shape[0]:
            return np.zeros(granules.size, np.bool_)
        by_granule = wrong.reshape(-1, granules.size, size).transpose(1, 0, 2).reshape(granules.size, -1)
        return np.asarray(~by_granule.any(axis=1), np.bool_)

    def _record(
        self, rows: Bytes, granules: npt.NDArray[np.int64], size: int, suspects: tuple[int, ...], finding: Finding
    ) -> None:
        """Make the suspects from the others, and note where they differ from what they should be."""
        others = tuple(shard for shard in self.given if shard not in suspects)
        part = _parts(rows, granules, size)
        plan = self.codec.plan(others, suspects)
        made = allocate(len(suspects), part.shape[1])
        inputs = Blocks.of_array(part).select([self.given.index(shard) for shard in plan.sources])
        plan.operator(inputs, Blocks.of_array(made))
        for row, shard in enumerate(suspects):
            places = np.flatnonzero(made[row] != part[self.given.index(shard)])
            offsets = granules[places // size] * size + places % size
            if offsets.size:
                earlier = finding.wrong.get(shard, np.empty(0, np.int64))
                finding.wrong[shard] = np.concatenate([earlier, offsets])


def _granules(bad: npt.NDArray[np.bool_], size: int) -> npt.NDArray[np.int64]:
    """Granules with any bad byte."""
    return np.flatnonzero(bad.reshape(-1, size).any(axis=1))


def _places(granules: npt.NDArray[np.int64], size: int, length: int) -> list[tuple[int, int]]:
    """First and last bytes of runs of granules."""
    if not granules.size:
        return []
    breaks = np.flatnonzero(np.diff(granules) > 1)
    firsts = granules[np.concatenate([[0], breaks + 1])] * size
    lasts = (granules[np.concatenate([breaks, [granules.size - 1]])] + 1) * size - 1
    return list(zip(firsts.tolist(), np.minimum(lasts, length - 1).tolist(), strict=True))


def _parts(rows: Bytes, granules: npt.NDArray[np.int64], size: int) -> Bytes:
    """Bytes of these granules, one behind the other, of every shard."""
    return np.ascontiguousarray(rows.reshape(rows.shape[0], -1, size)[:, granules].reshape(rows.shape[0], -1))
