"""Which kernels run a product, in which order, on which blocks: pure decisions, nothing is compiled here."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Flag
from typing import Any

import numpy as np
import numpy.typing as npt

from gfcode.engine.protocol import Product
from gfcode.kernels.simd import constants, horner, planes, transpose, words
from gfcode.kernels.simd.constants import ConstantsKernel
from gfcode.kernels.simd.horner import HornerKernel
from gfcode.kernels.simd.multipliers import multiplier_costs
from gfcode.kernels.simd.planes import PlanesKernel
from gfcode.kernels.simd.products import multiplication
from gfcode.kernels.simd.straight import MAX_ELEMENTS, StraightKernel
from gfcode.kernels.simd.target import Target
from gfcode.kernels.simd.transpose import TransposeKernel
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
#: Inputs to be in the nearest cache at a time where their strips share its sets, which hold a dozen lines.
_NEAR_INPUTS = 8
#: Bytes of a block that some inputs are taken through before others, and bytes of all the sums kept meanwhile.
_NEAR_PIECE, _NEAR_SUMS = 4 << 10, 16 << 10
#: Bytes of sums that are kept at most: they lie on the stack.
_MAX_SUMS = 64 << 10
#: Constants of a matrix beyond which a CPU no longer foresees the jumps from one to the next.
_MAX_JUMPS = 2048
#: Blocks of a stripe whose packets are transposed to words: a strip of each is on the stack.
_MAX_TRANSPOSED = 512
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

    kernel: WordsKernel | HornerKernel | ConstantsKernel | PlanesKernel | StraightKernel | TransposeKernel
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
    sums : int
        Blocks of one piece each for what steps leave to later ones; their places come after those of the outputs.
    """

    steps: tuple[Step, ...]
    piece: int = _WHOLE
    add: bool = False
    sums: int = 0


class Way(Flag):
    """How blocks lie, and so how to go about a product."""

    #: In a cache, staggered.
    CACHED = 0
    #: Far larger than the caches: outputs bypass them.
    STREAMING = 1
    #: So that the strips of many blocks share the sets of the nearest cache.
    ALIASED = 2


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
    if layout.w > _MAX_THREADED and not _transposes(product) and rows * columns * layout.w**2 > _MAX_BITS:
        return f"a bit matrix of more than {_MAX_BITS} places"
    return None


def _transposes(product: Product) -> bool:
    """Whether packets become words on the way: for those there are kernels, and all blocks' strips fit the stack."""
    layout = product.layout
    rows, columns = product.matrix.shape
    packets = layout.name == "packets" and layout.packet_bytes == PACKET and rows + columns <= _MAX_TRANSPOSED
    return packets and (layout.w == 16 or (layout.w == 8 and rows * columns > _MAX_JUMPS))


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
        """Find inputs (as zeros and ones) whose sum with all rows but the last is the last row, where that holds."""
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
            if steps := self._horner(way):
                return steps
            return self._transposed() if _transposes(self.product) else self._constants(way)
        if self.product.layout.packet_bytes == PACKET and (steps := self._horner(way)):
            return steps
        return self._transposed() if _transposes(self.product) else self._planes()

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

    def _transposed(self) -> Steps:
        """Rows as those of words, in scratch: its blocks come in the order of inputs and outputs, after these."""
        count = self.rows + self.columns
        inputs, outputs = list(range(self.columns)), list(range(self.columns, count))
        there = transpose.bind(inputs, [count + place for place in inputs])
        back = transpose.bind([count + place for place in outputs], outputs)
        multiply = self._words(Way.CACHED, offset=count).steps
        steps = (
            Step(TransposeKernel(self.field.w), there),
            *multiply,
            Step(TransposeKernel(self.field.w, back=True), back),
        )
        strip = self.field.w * PACKET
        return Steps(steps, max(_NEAR // (count * strip), 1) * strip, sums=count)

    def _words(self, way: Way, *, add: bool = False, offset: int = 0) -> Steps:
        """Rows by their products with bytes, some at a time, sums beside them; blocks come `offset` places later."""
        general = [row for row in range(self.rows) if row not in self.unit_rows]
        derived = self.derived if len(general) - 1 <= MAX_ROWS else None
        if derived is not None:
            general = general[:-1]
        units = list(self.unit_rows)
        groups = -(-len(general) // MAX_ROWS)
        plain = WordsKernel(self.field.w, 0, streaming=Way.STREAMING in way, add=add)
        # Plain sums leave reading ahead to the CPU, and with several groups inputs are close by.
        ahead = _AHEAD if self.columns in _FOLLOWED and groups == 1 else 0
        ahead = _AHEAD_FAR if Way.STREAMING in way else ahead
        across = Way.ALIASED in way
        if self._doubles:
            kernel = replace(plain, rows=1, summed=True, doubling=True, ahead=0 if across else ahead, across=across)
            places = [offset + place for place in range(self.columns + self.rows)]
            context = words.bind(
                multiplication(8, self.target).doubling(self.field)[None, None],
                inputs=places[: self.columns][::-1],
                summed=self.columns,
                outputs=[places[self.columns + row] for row in (*general, *units)],
            )
            return Steps((Step(kernel, context),), add=add)
        steps: list[Step] = []
        for index in range(groups):
            mine = general[index * len(general) // groups : (index + 1) * len(general) // groups]
            kernel = replace(plain, rows=len(mine), ahead=0 if across else ahead, across=across)
            if derived is not None:
                steps.append(self._step(replace(kernel, summed=True, fold=True), mine, self.rows - 1, derived, offset))
            elif units and index == 0:
                row = units.pop(0)
                steps.append(self._step(replace(kernel, summed=True), mine, row, self.values[row], offset))
            else:
                steps.append(self._step(kernel, mine, None, None, offset))
        steps += [self._step(replace(plain, summed=True), [], row, self.values[row], offset) for row in units]
        piece = max(_NEAR // self.columns // 512 * 512, 512) if len(steps) > 1 else _WHOLE
        return Steps(tuple(steps), piece, add)

    def _step(
        self,
        kernel: WordsKernel,
        rows: Sequence[int],
        sum_row: int | None,
        ones: npt.NDArray[np.int64] | None,
        offset: int,
    ) -> Step:
        """Bind some general rows, and the row that sums the inputs marked in `ones`."""
        values = self.values[list(rows)]
        used = (values != 0).any(0)
        first: list[int] = []
        if ones is not None:
            first = np.flatnonzero(ones).tolist()
            used[first] = False
        rest = np.flatnonzero(used).tolist()
        # An input with no constants but ones comes before all others.
        starts = [column for column in (rest if ones is None else first) if rows and (values[:, column] == 1).all()][:1]
        kernel = replace(kernel, ones=bool(starts))
        order = starts + [column for column in first + rest if column not in starts]
        table = np.empty((0, len(order), 8), np.uint8)
        if rows:
            table = multiplication(self.field.w, self.target).table(self.field, values[:, order])
        context = words.bind(
            table,
            inputs=[offset + place for place in order],
            summed=len(first),
            outputs=[offset + self.columns + row for row in [*rows, *([] if sum_row is None else [sum_row])]],
        )
        return Step(kernel, context)

    @property
    def _doubles(self) -> bool:
        """Whether the product is a plain sum and a row of powers of x, which need no tables of 16."""
        if self.field.w != 8 or self.target.product != "shuffle86" or self.rows != 2 or self.columns < 2:
            return False
        powers = self.field.pow(self.field.alpha, np.arange(self.columns))
        values = self.values[np.argsort(self.values[:, 1])]
        return bool((values == [powers**0, powers]).all())

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
        streaming = self._streams(way)
        kernel = HornerKernel(self.field.w, self.field.polynomial, tuple(found))
        groups = self._groups(way, self.columns)
        outputs = list(range(self.columns, self.columns + self.rows))
        sums = [self.rows + place for place in outputs] if streaming else outputs
        steps = []
        for index in range(len(groups)):  # from the last inputs to the first
            last = index == len(groups) - 1
            context = horner.bind(
                inputs=groups[-1 - index], outputs=outputs if last else sums, sums=sums if index else ()
            )
            steps.append(Step(replace(kernel, streaming=streaming and last, resume=index > 0), context))
        if len(groups) == 1:
            return Steps(tuple(steps))
        return Steps(tuple(steps), self._piece, sums=self.rows if streaming else 0)

    def _groups(self, way: Way, most: int) -> list[range]:
        """Divide the inputs into groups that are taken together."""
        count = -(-self.columns // (_NEAR_INPUTS if Way.ALIASED in way else most))
        ends = [index * self.columns // count for index in range(count + 1)]
        return [range(low, high) for low, high in itertools.pairwise(ends)]

    def _streams(self, way: Way) -> bool:
        """Whether outputs bypass the caches: with too many, the sums kept meanwhile would fill the stack."""
        return Way.STREAMING in way and self.rows * self.field.w * PACKET <= _MAX_SUMS

    @property
    def _piece(self) -> int:
        """Tell after how many bytes of a block groups of inputs start over: whole strips."""
        strip = self.field.w * PACKET
        strips: int = max(min(_NEAR_PIECE, _NEAR_SUMS // self.rows) // strip, 1)
        return strips * strip

    def _constants(self, way: Way, *, add: bool = False) -> Steps:
        """Rows by threaded constants; the derived row as a sum of inputs and of the rows before it."""
        kernel = ConstantsKernel(self.field.w, self.field.polynomial)
        costs = multiplier_costs(self.field.w, self.field.polynomial)
        streaming = self._streams(way)
        groups = self._groups(way, _MAX_INPUTS)
        outputs = list(range(self.columns, self.columns + self.rows))
        # Vectors shorter than packets are kept in the sums, as the copies would be, until packets are whole.
        staged = streaming and self.target.vector_bytes < PACKET
        # Rows written past the caches are not to be read again.
        sums = [self.rows + place for place in outputs] if streaming else outputs
        # Rows that are added to are not what was added.
        derived = None if add else self.derived
        values = self.values if derived is None else np.concatenate([self.values[:-1], derived[None]])
        steps = []
        for index, group in enumerate(groups):
            last = index == len(groups) - 1
            some, inputs = values[:, group], list(group)
            if derived is not None and last:
                some = np.concatenate([some, np.zeros((self.rows, self.rows - 1), np.int64)], axis=1)
                some[-1, len(group) :] = 1
                inputs += sums[:-1]
            rows = constants.chains(self.field, some, inputs, outputs if last else sums, costs)
            if add or index:
                rows = [replace(row, sums=place) for row, place in zip(rows, outputs if add else sums, strict=True)]
            if staged and last:
                rows = [replace(row, stage=place) for row, place in zip(rows, sums, strict=True)]
            elif derived is not None and last and streaming:
                rows[:-1] = [replace(row, copy=place) for row, place in zip(rows[:-1], sums[:-1], strict=True)]
            steps.append(Step(kernel, arguments={"rows": rows, "streaming": streaming and last, "far": streaming}))
        if len(groups) == 1 and not (streaming and (staged or derived is not None)):
            return Steps(tuple(steps), add=add)
        return Steps(tuple(steps), self._piece, add, self.rows if streaming else 0)

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
