"""Any matrix in the `packets` layout, without compiling for it: threaded constants.

Multiplying by a constant is a fixed XOR program over the w packets of a strip. Each constant of a field is compiled
once, as a function that adds constant · input to w accumulators held in registers and then jumps to the next function
of a list (threaded code; Bell 1973). The list is data: a few words for each element of a matrix, so a new loss pattern
costs no compilation.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gfcode.kernels.simd.assembly import Function
from gfcode.kernels.simd.multipliers import Multiplier, multipliers
from gfcode.kernels.simd.target import Target

__all__ = ["PACKET", "ConstantsKernel"]

PACKET = 64
_HELPERS = ("sum2", "load", "store", "stream", "ahead", "again", "finish")


@dataclass(frozen=True, slots=True)
class ConstantsKernel:
    """The functions for all constants of a field, and those that load, store and loop.

    Symbols: `times<c>` adds c · input; `sum2` adds two inputs; `load` starts from an output; `store` and `stream` write
    one and start over from zero; `ahead` reads ahead; `again` goes to the next strip, `finish` too, for programs that
    stream. `name` itself is the entry.

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
        return (*(f"times{c}" for c in range(1, 1 << self.w)), *_HELPERS)

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
        parts = [
            self._times(constant, program)
            for constant, program in enumerate(multipliers(self.w, self.kernel.polynomial), 1)
        ]
        parts += [self._sum(), self._load(), self._store("store"), self._store("stream"), self._ahead()]
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

    def _times(self, constant: int, program: Multiplier) -> str:
        values = self._begin(f"times{constant}")
        f = self.f
        elements = [f.load(self.kind, pointer) for pointer in self._planes(1)]
        following = f.address("%pc", 16)
        for terms in program.shared:
            elements.append(self._xor([elements[term] for term in terms]))
        for plane, terms in enumerate(program.sums):
            for start in range(0, len(terms), 2):
                values[plane] = self._xor([values[plane], *(elements[term] for term in terms[start : start + 2])])
        return self._end(values, following)

    def _xor(self, names: Sequence[str]) -> str:
        total = names[0]
        for name in names[1:]:
            total = self.f.op(f"xor {self.kind} {total}, {name}")
        return total

    def _sum(self) -> str:
        values = self._begin("sum2")
        f = self.f
        first = [f.load(self.kind, pointer) for pointer in self._planes(1)]
        second = [f.load(self.kind, pointer) for pointer in self._planes(2)]
        values = [self._xor(terms) for terms in zip(values, first, second, strict=True)]
        return self._end(values, f.address("%pc", 24))

    def _load(self) -> str:
        self._begin("load")
        values = [self.f.load(self.kind, pointer) for pointer in self._planes(1)]
        return self._end(values, self.f.address("%pc", 16))

    def _store(self, name: str) -> str:
        values = self._begin(name)
        streaming = name == "stream" and self.width == PACKET
        for value, pointer in zip(values, self._planes(1), strict=True):
            self.f.store(self.kind, value, pointer, PACKET if streaming else 1, streaming=streaming)
        return self._end(["zeroinitializer"] * self.w, self.f.address("%pc", 16))

    def _ahead(self) -> str:
        values = self._begin("ahead")
        for pointer in self._planes(1):
            self.f.prefetch(self.f.address(pointer, 1024))
        return self._end(values, self.f.address("%pc", 16))

    def _again(self, name: str) -> str:
        self._begin(name)
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
        if name == "finish":
            f.emit("fence seq_cst")  # a reader in another thread may not overtake streaming stores
        f.emit("ret void")
        f.start(more)
        return self._end(["zeroinitializer"] * self.w, "%context", at)

    def _entry(self) -> str:
        f = Function(self.kernel.name, [("ptr", "context"), ("ptr", "row"), ("i64", "begin"), ("i64", "end")])
        zeros = ", ".join([f"{self.kind} zeroinitializer"] * self.w)
        target = f.pointer("%context", 0)
        f.emit(f"call fastcc void {target}({zeros}, ptr %context, ptr %row, i64 %begin, ptr %context, i64 %end)")
        return f.text()


def bind(
    constants: npt.NDArray[np.integer],
    symbols: dict[str, int],
    *,
    inputs: Sequence[int],
    outputs: Sequence[int],
    resume: bool = False,
    streaming: bool = False,
) -> list[int]:
    """Program that multiplies by a matrix.

    Parameters
    ----------
    constants : ndarray, shape (len(outputs), len(inputs))
    symbols : dict
        Addresses of the functions.
    inputs, outputs : sequences of int
        Places in the row of block addresses.
    resume : bool
        Whether the outputs already hold sums to be added to.
    streaming : bool
        Whether to write past the caches and to read ahead.
    """
    program: list[int] = []
    for index, (line, output) in enumerate(zip(constants.tolist(), outputs, strict=True)):
        if resume:
            program += [symbols["load"], 8 * output]
        ones = [place for constant, place in zip(line, inputs, strict=True) if constant == 1]
        for first, second in zip(ones[0::2], ones[1::2], strict=False):
            program += [symbols["sum2"], 8 * first, 8 * second]
        if len(ones) % 2:
            program += [symbols["times1"], 8 * ones[-1]]
        for constant, place in zip(line, inputs, strict=True):
            if constant > 1:
                program += [symbols[f"times{constant}"], 8 * place]
        if streaming and index == 0:
            for place in inputs:
                program += [symbols["ahead"], 8 * place]
        program += [symbols["stream" if streaming else "store"], 8 * output]
    return [*program, symbols["finish" if streaming else "again"], 0]
