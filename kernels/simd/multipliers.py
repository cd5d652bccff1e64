"""XOR programs that multiply by a constant of GF(2^w), for machines that add three vectors at a time.

A program adds constant · (d_0 .. d_{w-1}) to w accumulators. It first computes a few shared sums of inputs, then adds
to each accumulator the inputs and shared sums that its row of the bit matrix calls for, two at a time. The cost is the
number of shared sums plus, for each row, half its terms. Common fields have their shared sums in `multiplier_data`;
for others a quick search tries a fixed sample of sets of up to three, for all constants at once.
"""

import itertools
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from gfcode.kernels.simd.multiplier_data import COSTS, SHARED

__all__ = ["Multiplier", "multiplier_costs", "multipliers"]


@dataclass(frozen=True, slots=True)
class Multiplier:
    """A program: see the module.

    Parameters
    ----------
    shared : tuple of tuples of int
        Terms of each shared sum: inputs (0..w-1) and earlier shared sums (w, w + 1, ...).
    sums : tuple of tuples of int
        Terms added to each accumulator.
    """

    shared: tuple[tuple[int, ...], ...]
    sums: tuple[tuple[int, ...], ...]

    @property
    def cost(self) -> int:
        """XORs of three operands."""
        return len(self.shared) + sum(-(-len(terms) // 2) for terms in self.sums)


def bit_rows(w: int, polynomial: int) -> npt.NDArray[np.intp]:
    """Rows of the bit matrices of all constants but zero, as masks over the inputs; shape (2^w - 1, w)."""
    constants = np.arange(1, 1 << w)
    columns = []
    for _ in range(w):
        columns.append(constants)
        constants = constants << 1
        constants = np.where(constants >> w, constants ^ polynomial, constants)
    bits = np.stack(columns, 1)[:, None, :] >> np.arange(w)[:, None] & 1  # (constant, row, input)
    rows: npt.NDArray[np.intp] = (bits << np.arange(w)).sum(2)
    return rows


def _reach(elements: npt.NDArray[np.intp], w: int) -> npt.NDArray[np.int8]:
    """How many XORs add each value to an accumulator, given sets of elements; shape (sets, 2^w)."""
    sets = len(elements)
    place, values = np.arange(sets)[:, None], np.arange(1 << w)[None, :]
    cost = np.full((sets, 1 << w), w, np.int8)
    with_zero = np.concatenate([elements, np.zeros((sets, 1), np.intp)], 1)
    reached = np.zeros((sets, 1 << w), bool)
    reached[place, (with_zero[:, :, None] ^ with_zero[:, None, :]).reshape(sets, -1)] = True
    for level in range(1, w // 2 + 1):
        cost[reached] = np.minimum(cost[reached], level)
        for _ in range(2):
            following = reached.copy()
            for index in range(elements.shape[1]):
                following |= reached[place, values ^ elements[:, index, None]]
            reached = following
    cost[:, 0] = 0
    return cost


def _candidates(w: int) -> list[npt.NDArray[np.intp]]:
    """List the sets of shared sums to try, by size."""
    inputs = [1 << bit for bit in range(w)]
    sums = [sum(terms) for size in (2, 3) for terms in itertools.combinations(inputs, size)]
    sets = [np.zeros((1, 0), np.intp)]
    chance = np.random.default_rng(1)
    for size, most in ((1, 1 << 10), (2, 1500), (3, 1500)):
        every = np.array(list(itertools.combinations(sums, size)), np.intp).reshape(-1, size)
        sets.append(every[chance.permutation(len(every))[:most]])
    return sets


def quick_search(rows: npt.NDArray[np.intp], w: int) -> list[tuple[int, ...]]:
    """Find a good set of shared sums for each constant."""
    inputs = np.array([1 << bit for bit in range(w)], np.intp)
    best = np.full(len(rows), 1 << 14, np.int16)
    chosen: list[tuple[int, ...]] = [()] * len(rows)
    for sets in _candidates(w):
        for start in range(0, len(sets), 500):
            some = sets[start : start + 500]
            cost = _reach(np.concatenate([np.tile(inputs, (len(some), 1)), some], 1), w)
            total = np.full((len(some), len(rows)), some.shape[1], np.int16)
            for row in range(w):
                total += cost[:, rows[:, row]]
            index = total.argmin(0)
            least = total[index, np.arange(len(rows))]
            for place in np.flatnonzero(least < best).tolist():
                best[place] = least[place]
                chosen[place] = tuple(some[index[place]].tolist())
    return chosen


class _Sums:
    """Elements, and for each value the fewest of them that sum to it."""

    def __init__(self, w: int) -> None:
        self._elements: list[int] = []
        self._few: dict[int, tuple[int, ...]] = {0: ()}  # sums of at most two elements
        for bit in range(w):
            self.append(1 << bit)

    def append(self, value: int) -> None:
        """Add an element."""
        place = len(self._elements)
        self._few[value] = (place,)
        for other, element in enumerate(self._elements):
            if len(self._few.get(element ^ value, (0, 0, 0))) > 2:
                self._few[element ^ value] = (other, place)
        self._elements.append(value)

    def terms(self, value: int) -> tuple[int, ...]:
        """Places of elements that sum to `value`: the fewest if these are at most four."""
        if (terms := self._few.get(value)) is not None:
            return terms
        best: tuple[int, ...] | None = None
        for half, terms in self._few.items():
            rest = self._few.get(half ^ value)
            if rest is not None and not set(terms) & set(rest) and (best is None or len(terms) + len(rest) < len(best)):
                best = (*terms, *rest)
        if best is None:  # a unit at a time
            top = value.bit_length() - 1
            return (*self.terms(value ^ 1 << top), top)
        return tuple(sorted(best))


def assemble(rows: list[int], w: int, shared: tuple[int, ...]) -> Multiplier:
    """Write the program that uses these shared sums."""
    sums = _Sums(w)
    steps = []
    for value in shared:
        steps.append(sums.terms(value))
        sums.append(value)
    return Multiplier(tuple(steps), tuple(sums.terms(value) for value in rows))


@cache
def multipliers(w: int, polynomial: int) -> tuple[Multiplier, ...]:
    """Programs for the constants 1 .. 2^w - 1 of a field, w of at most 8."""
    rows = bit_rows(w, polynomial)
    known = SHARED.get((w, polynomial))
    if known is None:
        chosen = quick_search(rows, w)
    else:
        chosen = [() if word == "-" else tuple(bytes.fromhex(word)) for word in known.split()]
    return tuple(assemble(line, w, shared) for line, shared in zip(rows.tolist(), chosen, strict=True))


@cache
def multiplier_costs(w: int, polynomial: int) -> npt.NDArray[np.intp]:
    """XORs of three operands for the constants 1 .. 2^w - 1."""
    known = COSTS.get((w, polynomial))  # to plan a product takes no programs: they are in the compiled kernel
    if known is not None:
        return np.array([int(digit, 16) for digit in known], np.intp)
    return np.array([program.cost for program in multipliers(w, polynomial)], np.intp)
