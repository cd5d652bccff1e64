"""Any matrix in the `packets` layout, without compiling for it: threaded constants.

Multiplying by a constant is a fixed XOR program over the w packets of a strip. Each constant c of a field is compiled
once, as a function that turns the w accumulators a (held in registers) into c · a + d and jumps to the next function of
a list (threaded code; Bell 1973). The list is data: a few words for each element of a matrix, so a new loss pattern
costs no compilation. `chains` decides the order of the inputs, and so which constants these are.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gfcode.gf import Field
from gfcode.kernels.simd.assembly import STREAMED, Function
from gfcode.kernels.simd.chains import cheapest_orders
from gfcode.kernels.simd.multipliers import Multiplier, multipliers
from gfcode.kernels.simd.target import Target

__all__ = ["PACKET", "ConstantsKernel"]

PACKET = 64
#: Dearer than any multiplier.
_NEVER = 1 << 11
#: Prefetches of a strip are dealt out to so many rows: all at once they hold up the loads behind them.
_PARTS = 4
_AHEADS = tuple(f"ahead{part}" for part in range(_PARTS))
_HELPERS = ("clear", "first", "sum2", "store", "stream", "stage", *_AHEADS, "again", "finish")
#: Bytes to read ahead from memory.
_FAR = 1024


@dataclass(frozen=True, slots=True)
class ConstantsKernel:
    """The functions for all constants of a field, and those that load, store and loop.

    Symbols, with a the accumulators and d an input: `clear` sets a = 0; `first` a = d; `step<c>` a = c · a + d;
    `turn<c>` a = c · a; `sum2` a = a + d + d'; `store` and `stream` write a; `ahead<n>` reads a part of a later strip;
    `again` goes to the next strip, `finish` too, for programs that stream. `name` itself is the entry.
    Where vectors are shorter than packets, `stage` takes the place of `stream`: it keeps a in a second block until
    packets are whole, and then writes these, as parts of a line that come one long after the other are slow.

    Parameters
    ----------
    w, polynomial : int
        The field; w of at most 8.
    """

    w: int
    polynomial: int

    @property
    def name(self) -> str:
        """Symbol of the entry."""
        return f"constants{self.w}x{self.polynomial:x}"

    @property
    def symbols(self) -> tuple[str, ...]:
        """Symbols of the functions that programs are made of."""
        constants = range(1, 1 << self.w)
        return (*(f"step{c}" for c in constants), *(f"turn{c}" for c in constants[1:]), *_HELPERS)

    def emit(self, target: Target) -> str:
        """Return the LLVM text of all functions."""
        return _Writer(self, target).text()


class _Writer:
    """Writes the functions for one target."""

    def __init__(self, kernel: ConstantsKernel, target: Target) -> None:
        self.kernel, self.target = kernel, target
        self.w, self.width, self.kind = kernel.w, target.vector_bytes, target.vector
        self.f = Function("", [])

    def text(self) -> str:
        programs = multipliers(self.w, self.kernel.polynomial)
        parts = [self._step(constant, program) for constant, program in enumerate(programs, 1)]
        parts += [self._turn(constant, program) for constant, program in enumerate(programs, 1) if constant > 1]
        parts += [self._clear(), self._first(), self._sum(), self._store("store"), self._store("stream")]
        parts.append(self._stage())
        parts += [self._ahead(name, part) for part, name in enumerate(_AHEADS)]
        parts += [self._again("again"), self._again("finish")]
        return "\n".join([*parts, self._entry()])

    def _begin(self, name: str) -> list[str]:
        """Start a function; return its accumulators."""
        accumulators = [f"%a{plane}" for plane in range(self.w)]
        parameters = [(self.kind, name[1:]) for name in accumulators]
        parameters += [("ptr", "pc"), ("ptr", "row"), ("i64", "at"), ("ptr", "context"), ("i64", "end")]
        self.f = Function(name, parameters, convention="fastcc")
        return accumulators

    def _end(self, values: Sequence[str], following: str, at: str = "%at") -> str:
        """Jump to the function at `following`."""
        f = self.f
        target = f.pointer(following, 0)
        arguments = ", ".join(f"{self.kind} {value}" for value in values)
        f.emit(
            f"musttail call fastcc void {target}({arguments}, ptr {following}, ptr %row, i64 {at}, "
            "ptr %context, i64 %end)"
        )
        return f.text()

    def _planes(self, operand: int) -> list[str]:
        """Pointers to the planes of the block named by the operand at this place of the program."""
        f = self.f
        place = f.word("%pc", operand)
        block = f.load("ptr", f.address("%row", place), 8)
        base = f.address(block, "%at")
        return [f.address(base, plane * PACKET) for plane in range(self.w)]

    def _product(self, values: Sequence[str], program: Multiplier) -> list[list[str]]:
        """Terms of each plane of the product of the accumulators with a constant."""
        elements = list(values)
        for terms in program.shared:
            elements.append(self._xor([elements[term] for term in terms]))
        return [[elements[term] for term in terms] for terms in program.sums]

    def _step(self, constant: int, program: Multiplier) -> str:
        values = self._begin(f"step{constant}")
        inputs = self._planes(1)
        sums = self._product(values, program)
        # An input comes last in its sum, as the memory operand of a three-input XOR.
        values = [
            self._xor([*terms, self.f.load(self.kind, pointer)]) for terms, pointer in zip(sums, inputs, strict=True)
        ]
        return self._end(values, self.f.address("%pc", 16))

    def _turn(self, constant: int, program: Multiplier) -> str:
        values = self._begin(f"turn{constant}")
        return self._end([self._xor(terms) for terms in self._product(values, program)], self.f.address("%pc", 8))

    def _xor(self, names: Sequence[str]) -> str:
        total = names[0]
        for name in names[1:]:
            total = self.f.op(f"xor {self.kind} {total}, {name}")
        return total

    def _clear(self) -> str:
        self._begin("clear")
        return self._end(["zeroinitializer"] * self.w, self.f.address("%pc", 8))

    def _first(self) -> str:
        self._begin("first")
        values = [self.f.load(self.kind, pointer) for pointer in self._planes(1)]
        return self._end(values, self.f.address("%pc", 16))

    def _sum(self) -> str:
        values = self._begin("sum2")
        f = self.f
        first = [f.load(self.kind, pointer) for pointer in self._planes(1)]
        second = [f.load(self.kind, pointer) for pointer in self._planes(2)]
        values = [self._xor(terms) for terms in zip(values, first, second, strict=True)]
        return self._end(values, f.address("%pc", 24))

    def _store(self, name: str) -> str:
        values = self._begin(name)
        streaming = name == "stream"
        for value, pointer in zip(values, self._planes(1), strict=True):
            self.f.store(self.kind, value, pointer, self.width if streaming else 1, streaming=streaming)
        return self._end(values, self.f.address("%pc", 16))

    def _stage(self) -> str:
        values = self._begin("stage")
        f, width = self.f, self.width
        if width == PACKET:
            return self._end(values, f.address("%pc", 24))
        kept = self._planes(2)
        for value, pointer in zip(values, kept, strict=True):
            f.store(self.kind, value, pointer)
        last = f.op(f"icmp eq i64 {f.op(f'and i64 %at, {PACKET - 1}')}, {PACKET - width}")
        with f.when(last):
            for source, target in zip(kept, self._planes(1), strict=True):
                for back in range(PACKET - width, -1, -width):
                    value = f.load(self.kind, f.address(source, -back))
                    f.store(self.kind, value, f.address(target, -back), width, streaming=True)
        return self._end(values, f.address("%pc", 24))

    def _ahead(self, name: str, part: int) -> str:
        values = self._begin(name)
        f = self.f
        first, end = self.w * part // _PARTS, self.w * (part + 1) // _PARTS
        base = self._planes(1)[0]
        # A shorter vector's turn takes its share of the lines.
        inside = f.op(f"and i64 %at, {PACKET - 1}")
        start = f.op(f"add i64 {f.op(f'mul i64 {inside}, {end - first - 1}')}, {_FAR + first * PACKET}")
        for line in range(-(-(end - first) * self.width // PACKET)):
            f.prefetch(f.address(f.address(base, start), line * PACKET))
        return self._end(values, f.address("%pc", 16))

    def _again(self, name: str) -> str:
        values = self._begin(name)
        f = self.f
        strip = self.w * PACKET
        if self.width == PACKET:
            at = f.op(f"add i64 %at, {strip}")
        else:
            inside = f.op(f"add i64 %at, {self.width}")
            wrapped = f.op(f"icmp eq i64 {f.op(f'and i64 {inside}, {PACKET - 1}')}, 0")
            at = f.op(f"add i64 {inside}, {f.op(f'select i1 {wrapped}, i64 {strip - PACKET}, i64 0')}")
        more, done = f.fresh("more"), f.fresh("done")
        f.emit(f"br i1 {f.op(f'icmp ult i64 {at}, %end')}, label %{more}, label %{done}")
        f.start(done)
        if name == "finish" and self.target.x86:
            f.emit(STREAMED)
        f.emit("ret void")
        f.start(more)
        return self._end(values, "%context", at)

    def _entry(self) -> str:
        f = Function(self.kernel.name, [("ptr", "context"), ("ptr", "row"), ("i64", "begin"), ("i64", "end")])
        zeros = ", ".join([f"{self.kind} zeroinitializer"] * self.w)
        target = f.pointer("%context", 0)
        f.emit(f"call fastcc void {target}({zeros}, ptr %context, ptr %row, i64 %begin, ptr %context, i64 %end)")
        return f.text()


@dataclass(frozen=True, slots=True)
class Row:
    """What one output of a program is made of.

    Parameters
    ----------
    output : int
        Place in the row of block addresses.
    inputs : tuple of int
        Places, in the order in which they are added.
    steps : tuple of int
        The constant that multiplies the sum before each input but the first is added; then the one that multiplies the
        whole sum.
    sums : int or None
        Place of what is to be added to that.
    copy : int or None
        Place of a second output, which does not bypass the caches.
    stage : int or None
        Place of a block in which packets are kept until they are whole, where the output bypasses the caches.
    """

    output: int
    inputs: tuple[int, ...]
    steps: tuple[int, ...]
    sums: int | None = None
    copy: int | None = None
    stage: int | None = None


def chains(
    field: Field, constants: npt.NDArray[Any], inputs: Sequence[int], outputs: Iterable[int], costs: npt.NDArray[Any]
) -> list[Row]:
    """Choose the order for each row of constants, shape (rows, inputs). `costs` are those of the multipliers from 1 on.

    Inputs with a constant of zero are left out: they cost so much to end with that they come first.
    """
    zero = constants == 0
    values = np.where(zero, 1, constants)
    logarithms = field.log(values)
    ratios = field.exp((logarithms[:, :, None] - logarithms[:, None, :]) % (field.order - 1))
    final = np.where(zero, _NEVER, costs[values - 1])
    step = np.where(zero[:, :, None], _NEVER, costs[ratios.astype(np.intp) - 1])
    rows = []
    for row, (output, order) in enumerate(zip(outputs, cheapest_orders(step, final).tolist(), strict=True)):
        used = order[int(zero[row].sum()) :]
        steps = [int(ratios[row, a, b]) for a, b in itertools.pairwise(used)]
        last = [int(values[row, used[-1]])] if used else []
        rows.append(Row(output, tuple(inputs[place] for place in used), (*steps, *last)))
    return rows


def bind(rows: Sequence[Row], symbols: dict[str, int], *, streaming: bool = False, far: bool = False) -> list[int]:
    """Write the program that computes some rows, one after the other.

    Parameters
    ----------
    rows : sequence of Row
    symbols : dict
        Addresses of the functions.
    streaming : bool
        Whether to write past the caches.
    far : bool
        Whether to read ahead from memory.
    """
    program: list[int] = []
    for index, row in enumerate(rows):
        mine = [symbols[name] for part, name in enumerate(_AHEADS) if part * len(rows) // _PARTS == index]
        program += _sum(row, symbols, mine if far else [])
        if row.sums is not None:
            program += [symbols["step1"], 8 * row.sums]
        if row.copy is not None:
            program += [symbols["store"], 8 * row.copy]
        if row.stage is not None:
            program += [symbols["stage"], 8 * row.output, 8 * row.stage]
        else:
            program += [symbols["stream" if streaming else "store"], 8 * row.output]
    return [*program, symbols["finish" if streaming else "again"], 0]


def _sum(row: Row, symbols: dict[str, int], ahead: Sequence[int]) -> list[int]:
    """Compute one row in the accumulators; read parts of its inputs' later strips ahead."""
    if not row.inputs:
        return [symbols["clear"]]
    program = [symbols["first"], 8 * row.inputs[0]]
    program += [word for function in ahead for word in (function, 8 * row.inputs[0])]
    place = 1
    while place < len(row.inputs):
        if row.steps[place - 1 : place + 1] == (1, 1) and place + 1 < len(row.inputs):
            program += [symbols["sum2"], 8 * row.inputs[place], 8 * row.inputs[place + 1]]
            used = 2
        else:
            program += [symbols[f"step{row.steps[place - 1]}"], 8 * row.inputs[place]]
            used = 1
        program += [word for read in row.inputs[place : place + used] for call in ahead for word in (call, 8 * read)]
        place += used
    if row.steps[-1] != 1:
        program.append(symbols[f"turn{row.steps[-1]}"])
    return program
