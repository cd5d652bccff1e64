"""Which kernels run a product, in which order, on which blocks: pure decisions, nothing is compiled here."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any

import numpy as np
import numpy.typing as npt

from gfcode.engine.protocol import Product
from gfcode.kernels.simd import constants, horner, planes, words
from gfcode.kernels.simd.constants import ConstantsKernel
from gfcode.kernels.simd.horner import HornerKernel
from gfcode.kernels.simd.multipliers import multiplier_costs
from gfcode.kernels.simd.planes import PlanesKernel
from gfcode.kernels.simd.products import multiplication
from gfcode.kernels.simd.straight import MAX_ELEMENTS, StraightKernel
from gfcode.kernels.simd.target import Target
from gfcode.kernels.simd.words import MAX_ROWS, WordsKernel
from gfcode.matrix.bitmatrix import expand
from gfcode.once import cached_property

__all__ = ["PACKET", "Planner", "Step", "Steps", "Way", "refusal"]

PACKET = constants.PACKET
#: Driver steps that need no interleaving take blocks whole.
_WHOLE = 1 << 48
#: Largest w whose constants are compiled one by one.
_MAX_THREADED = 8
#: Bytes of inputs that several steps in turn should find close by; smaller pieces cost more in reading the tables.
_NEAR = 56 << 10
#: Largest power of x that a Horner row multiplies by at once.
_MAX_EXPONENT = 4
#: Inputs of one run of threaded constants; more take a run each, so that a strip of all of them stays in the cache.
_MAX_INPUTS = 48
#: Bytes to read ahead from memory, and from a cache.
_AHEAD_FAR, _AHEAD = 1024, 512
#: How many inputs are more than the CPU follows by itself, yet not too many to be in the cache that this pays for.
_FOLLOWED = range(13, 41)
#: Places of the bit matrix of a product that is run plane by plane.
_MAX_BITS = 1 << 22
#: Blocks of one stripe; their addresses are kept on the stack.
_MAX_BLOCKS = 4096


@dataclass(frozen=True)
class Step:
    """One kernel and what it is bound to.

    Attributes
    ----------
    kernel : kernel
    context : ndarray of int64, or None
        The kernel's context; None for threaded constants, which are bound to addresses of code.
    arguments : dict
        Of `constants.bind`.
    """

    kernel: WordsKernel | HornerKernel | ConstantsKernel | PlanesKernel | StraightKernel
    context: npt.NDArray[np.int64] | None = None
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Steps:
    """A whole product.

    Attributes
    ----------
    steps : tuple of Step
    piece : int
        Bytes of a block after which the steps start over.
    add : bool
        Whether the steps add to the outputs.
    """

    steps: tuple[Step, ...]
    piece: int = _WHOLE
    add: bool = False


class Way(Enum):
    """How blocks lie, and so how to go about a product."""

    #: In a cache, staggered.
    CACHED = auto()
    #: Far larger than the caches: outputs bypass them.
    STREAMING = auto()
    #: So that the strips of many blocks share the sets of the nearest cache.
    ALIASED = auto()


def refusal(product: Product, target: Target) -> str | None:
    """Why no plan exists for this product; None if there is one."""
    layout = product.layout
    if sum(product.matrix.shape) > _MAX_BLOCKS:
        return f"more than {_MAX_BLOCKS} blocks in a stripe"
    if layout.name == "words":
        return None if layout.w in {4, 8, 16} else f"words of {layout.w} bits"
    if layout.packet_bytes % target.vector_bytes:
        return f"packets of {layout.packet_bytes} bytes, no multiple of {target.vector_bytes}"
    rows, columns = product.matrix.shape
    if layout.w > _MAX_THREADED and rows * columns * layout.w**2 > _MAX_BITS:
        return f"a bit matrix of more than {_MAX_BITS} places"
    return None


class Planner:
    """Plans one product for one target.

    Parameters
    ----------
    product : Product
    target : Target
    """

    def __init__(self, product: Product, target: Target) -> None:
        self.product, self.target = product, target
        self.field = product.matrix.field
        self.values = product.matrix.values.astype(np.int64)
        self.rows, self.columns = self.values.shape

    @cached_property
    def unit_rows(self) -> list[int]:
        """Rows of zeros and ones."""
        return np.flatnonzero((self.values <= 1).all(1)).tolist()

    @cached_property
    def derived(self) -> npt.NDArray[np.int64] | None:
        """Inputs (as zeros and ones) whose sum with all rows but the last is the last row, where that holds."""
        if self.rows < 2 or self.unit_rows:
            return None
        total = np.bitwise_xor.reduce(self.values, axis=0)
        return total if (total <= 1).all() else None

    def steps(self, way: Way) -> Steps:
        """Return the plan for outputs that are overwritten."""
        if self.product.layout.name == "words":
            return self._words(way)
        if len(self.unit_rows) == self.rows:
            return self._words(way)
        if self._threaded:
            return self._horner(way) or self._constants(way)
        if self.product.layout.packet_bytes == PACKET and (steps := self._horner(way)):
            return steps
        return self._planes()

    def adding(self) -> Steps | None:
        """Return the plan for outputs that are added to; None where no kernel does that."""
        if self.product.layout.name == "words" or len(self.unit_rows) == self.rows:
            return self._words(Way.CACHED, add=True)
        return self._constants(Way.CACHED, add=True) if self._threaded else None

    def compiled(self) -> Steps | None:
        """Return the plan with a kernel of this one matrix, for blocks in a cache; None where nothing is gained."""
        if self.product.layout.name == "words" or not self._threaded or self.values.size > MAX_ELEMENTS:
            return None
        if len(self.unit_rows) == self.rows or self._horner(Way.CACHED) is not None:
            return None
        kernel = StraightKernel(self.field.w, self.field.polynomial, tuple(map(tuple, self.values.tolist())))
        return Steps((Step(kernel, np.zeros(1, np.int64)),))

    @property
    def _threaded(self) -> bool:
        return self.product.layout.packet_bytes == PACKET and self.field.w <= _MAX_THREADED

    def _words(self, way: Way, *, add: bool = False) -> Steps:
        """Rows by their products with bytes, some at a time, sums beside them."""
        general = [row for row in range(self.rows) if row not in self.unit_rows]
        derived = self.derived if len(general) - 1 <= MAX_ROWS else None
        if derived is not None:
            general = general[:-1]
        units = list(self.unit_rows)
        groups = -(-len(general) // MAX_ROWS)
        plain = WordsKernel(self.field.w, 0, streaming=way is Way.STREAMING, add=add)
        # Plain sums leave reading ahead to the CPU, and with several groups inputs are close by.
        ahead = _AHEAD if self.columns in _FOLLOWED and groups == 1 else 0
        ahead = _AHEAD_FAR if way is Way.STREAMING else ahead
        steps: list[Step] = []
        for index in range(groups):
            mine = general[index * len(general) // groups : (index + 1) * len(general) // groups]
            kernel = replace(plain, rows=len(mine), ahead=ahead)
            if derived is not None:
                steps.append(self._step(replace(kernel, summed=True, fold=True), mine, self.rows - 1, derived))
            elif units and index == 0:
                row = units.pop(0)
                steps.append(self._step(replace(kernel, summed=True), mine, row, self.values[row]))
            else:
                steps.append(self._step(kernel, mine, None, None))
        steps += [self._step(replace(plain, summed=True), [], row, self.values[row]) for row in units]
        piece = max(_NEAR // self.columns // 512 * 512, 512) if len(steps) > 1 else _WHOLE
        return Steps(tuple(steps), piece, add)

    def _step(
        self, kernel: WordsKernel, rows: Sequence[int], sum_row: int | None, ones: npt.NDArray[np.int64] | None
    ) -> Step:
        """Bind some general rows, and the row that sums the inputs marked in `ones`."""
        values = self.values[list(rows)]
        used = (values != 0).any(0)
        first: list[int] = []
        if ones is not None:
            first = np.flatnonzero(ones).tolist()
            used[first] = False
        order = first + np.flatnonzero(used).tolist()
        table = np.empty((0, len(order), 8), np.uint8)
        if rows:
            table = multiplication(self.field.w, self.target).table(self.field, values[:, order])
        context = words.bind(
            table,
            inputs=order,
            summed=len(first),
            outputs=[self.columns + row for row in [*rows, *([] if sum_row is None else [sum_row])]],
        )
        return Step(kernel, context)

    def _horner(self, way: Way) -> Steps | None:
        """Rows of powers of x, if all are that."""
        if self.columns < 2 or self.field.w < 3 or (self.values[:, 0] != 1).any() or not self.values.all():
            return None
        x = self.field.alpha
        powers = self.field.pow(x, np.arange(_MAX_EXPONENT + 1))
        found = []
        for row in self.values:
            exponent = np.flatnonzero(powers == row[1])
            if not len(exponent):
                return None
            found.append(int(exponent[0]))
        columns = np.arange(self.columns)
        if (self.field.pow(x, np.array(found)[:, None] * columns[None, :]) != self.values).any():
            return None
        kernel = HornerKernel(
            self.field.w, self.field.polynomial, tuple(found), way is Way.STREAMING, ahead=way is not Way.ALIASED
        )
        context = horner.bind(inputs=range(self.columns), outputs=range(self.columns, self.columns + self.rows))
        return Steps((Step(kernel, context),))

    def _constants(self, way: Way, *, add: bool = False) -> Steps:
        """Rows by threaded constants; the derived row as a sum of inputs and of the rows before it."""
        kernel = ConstantsKernel(self.field.w, self.field.polynomial)
        costs = multiplier_costs(self.field.w, self.field.polynomial)
        streaming = way is Way.STREAMING
        values = self.values
        inputs = list(range(self.columns))
        # Rows written past the caches are not to be read again, and memory is the limit then anyway; rows that are
        # added to are not what was added.
        if self.derived is not None and not streaming and not add:
            values = np.concatenate([values, np.zeros((self.rows, self.rows), np.int64)], axis=1)
            values[-1, : self.columns] = self.derived
            values[-1, self.columns : -1] = 1
            inputs = list(range(self.columns + self.rows))
        steps = []
        groups = -(-self.columns // _MAX_INPUTS)
        for index in range(groups):
            low = index * self.columns // groups
            high = (index + 1) * self.columns // groups if index < groups - 1 else len(inputs)
            outputs = range(self.columns, self.columns + self.rows)
            rows = constants.chains(self.field, values[:, low:high], inputs[low:high], outputs, costs)
            arguments = {"rows": rows, "resume": add or index > 0, "streaming": streaming and groups == 1}
            steps.append(Step(kernel, arguments=arguments))
        return Steps(tuple(steps), self.field.w * PACKET if groups > 1 else _WHOLE, add)

    def _planes(self) -> Steps:
        layout = self.product.layout
        across = layout.packet_bytes % (4 * self.target.vector_bytes) != 0
        context = planes.bind(
            expand(self.product.matrix),
            w=layout.w,
            packet_bytes=layout.packet_bytes,
            inputs=range(self.columns),
            outputs=range(self.columns, self.columns + self.rows),
        )
        return Steps((Step(PlanesKernel(across), context),))
