"""One matrix compiled into a kernel of its own, in the `packets` layout: for loss patterns and codes that live long.

A row is computed as threaded constants do it (`constants`): what is there times a ratio of two constants, plus the next
input. Here the multiplications stand one behind the other without jumps, and two rows at a time share the loads of the
inputs where there are registers for both. From a cache that is a third faster with 32 registers, a tenth with 16; where
blocks come from memory it gains nothing. LLVM takes 20 to 200 ms for it, so that nobody gets it who did not ask for it.

A program without such structure, compressed to few XORs over all rows (`gfcode.xor`), has more values alive than there
are registers, and loads and stores them; it takes half as long again as threaded constants.
"""

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gfcode.gf import GF
from gfcode.kernels.simd.assembly import Function
from gfcode.kernels.simd.multipliers import multiplier_costs, multipliers
from gfcode.kernels.simd.target import Target
from gfcode.once import cached_property

__all__ = ["MAX_ELEMENTS", "StraightKernel"]

_PACKET = 64
#: Elements of a matrix that is compiled: about 20 KiB of code, which the cache of instructions has room for.
MAX_ELEMENTS = 160


@dataclass(frozen=True)
class StraightKernel:
    """The kernel of one matrix; inputs are the first blocks of a stripe, outputs those behind them.

    Parameters
    ----------
    w, polynomial : int
        The field; w of at most 8.
    rows : tuple of tuple of int
        The matrix.
    """

    w: int
    polynomial: int
    rows: tuple[tuple[int, ...], ...]

    @cached_property
    def name(self) -> str:
        """Symbol of the kernel."""
        digest = hashlib.blake2b(repr(self.rows).encode(), digest_size=16).hexdigest()
        return f"straight{self.w}x{self.polynomial:x}_{digest}"

    @property
    def symbols(self) -> tuple[str, ...]:
        """No further functions."""
        return ()

    def emit(self, target: Target) -> str:
        """Return the kernel's LLVM text."""
        return _Writer(self, target).text()


class _Writer:
    """Writes one kernel for one target."""

    def __init__(self, kernel: StraightKernel, target: Target) -> None:
        self.kernel, self.target = kernel, target
        self.w, self.kind = kernel.w, target.vector
        self.field = GF(kernel.w, kernel.polynomial)
        self.values = np.array(kernel.rows, self.field.dtype)
        self.programs = multipliers(kernel.w, kernel.polynomial)
        self.costs = multiplier_costs(kernel.w, kernel.polynomial)
        self.f = Function(kernel.name, [("ptr", "context"), ("ptr", "row"), ("i64", "begin"), ("i64", "end")])

    def text(self) -> str:
        f, width = self.f, self.target.vector_bytes
        count, columns = self.values.shape
        blocks = [f.pointer("%row", place) for place in range(columns + count)]
        # Accumulators of two rows, an input, and what a multiplication needs fill 32 registers.
        together = 2 if self.target.registers == 32 else 1
        groups = [range(first, min(first + together, count)) for first in range(0, count, together)]
        orders = [cheapest_order(*self._costs(group)) for group in groups]
        with f.loop("%begin", "%end", self.w * _PACKET) as strip:
            if width == _PACKET:
                self._strip(blocks, strip.index, groups, orders)
            else:
                with f.loop("0", str(_PACKET), width) as piece:
                    self._strip(blocks, f.op(f"add i64 {strip.index}, {piece.index}"), groups, orders)
        return f.text()

    def _costs(self, group: range) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """XORs of going from each input to each other, and of ending with it, in all rows of a group."""
        columns = self.values.shape[1]
        step, final = np.zeros((columns, columns), np.int64), np.zeros(columns, np.int64)
        for row in group:
            used = np.flatnonzero(self.values[row])
            values = self.values[row, used]
            step[np.ix_(used, used)] += self.costs[self.field.div(values[:, None], values[None, :]) - 1]
            final[used] += self.costs[values - 1]
        return step, final

    def _strip(
        self, blocks: Sequence[str], position: str, groups: Sequence[range], orders: Sequence[Sequence[int]]
    ) -> None:
        """Compute one vector of every plane of every output."""
        f, columns = self.f, self.values.shape[1]
        for group, order in zip(groups, orders, strict=True):
            values: dict[int, list[str]] = {}
            latest: dict[int, int] = {}
            for column in order:
                users = [row for row in group if self.values[row, column]]
                if not users:
                    continue
                base = f.address(blocks[column], position)
                data = [f.load(self.kind, f.address(base, plane * _PACKET)) for plane in range(self.w)]
                for row in users:
                    constant = int(self.values[row, column])
                    if row in values:
                        terms = self._product(values[row], self.field.div(latest[row], constant))
                        values[row] = [self._xor([*mine, other]) for mine, other in zip(terms, data, strict=True)]
                    else:
                        values[row] = data
                    latest[row] = constant
            for row in group:
                base = f.address(blocks[columns + row], position)
                if row in values:
                    result = [self._xor(terms) for terms in self._product(values[row], latest[row])]
                else:
                    result = ["zeroinitializer"] * self.w
                for plane, value in enumerate(result):
                    f.store(self.kind, value, f.address(base, plane * _PACKET))
            # The next group's loads would only lengthen the lives of registers.
            f.barrier()

    def _product(self, values: Sequence[str], constant: int) -> list[list[str]]:
        """Terms of each plane of the product with a constant."""
        if constant == 1:
            return [[value] for value in values]
        program = self.programs[constant - 1]
        elements = list(values)
        for terms in program.shared:
            elements.append(self._xor([elements[term] for term in terms]))
        return [[elements[term] for term in terms] for terms in program.sums]

    def _xor(self, names: Sequence[str]) -> str:
        total = names[0]
        for name in names[1:]:
            total = self.f.op(f"xor {self.kind} {total}, {name}")
        return total


def cheapest_order(step: npt.NDArray[np.int64], final: npt.NDArray[np.int64]) -> list[int]:
    """Order inputs by the nearest neighbour from every end; the cheapest path of these.

    Parameters
    ----------
    step : ndarray, shape (k, k)
        Cost of going from input i to input j.
    final : ndarray, shape (k,)
        Cost of ending with an input.
    """
    paths = [_path(step, end) for end in range(len(final))]
    costs = [int(final[path[-1]]) + sum(int(step[a, b]) for a, b in itertools.pairwise(path)) for path in paths]
    return paths[costs.index(min(costs))]


def _path(step: npt.NDArray[np.int64], end: int) -> list[int]:
    """Grow a path backwards from its end, by the cheapest predecessor each time."""
    path, left = [end], [place for place in range(len(step)) if place != end]
    while left:
        path.append(left.pop(int(np.argmin(step[left, path[-1]]))))
    return path[::-1]
