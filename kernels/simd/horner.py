"""Rows of powers by Horner's rule, in the `packets` layout: parity[r] = sum over j of a^(e_r · j) · data[j], a = x.

With packets as bit planes, multiplying by x renames w accumulators and adds one to the taps of the polynomial, so a row
costs about one XOR for each packet read, whatever its constants. The number of inputs is known only at run time.

The row with exponent 0 is a plain sum; its planes are dealt out to the passes over the inputs in which registers are
left, and so ride on loads that another row needs anyway (Plank and Greenan call the layout bit-sliced; the scheduling
is this module's own).
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gfcode.kernels.simd.assembly import STREAMED, Function
from gfcode.kernels.simd.target import Target

__all__ = ["PACKET", "HornerKernel", "bind"]

PACKET = 64
#: Places in a kernel's context, in 8-byte words: how many inputs there are, the outputs, the inputs.
_COUNT, _OUTPUTS = 0, 1
#: Bytes to read ahead from memory.
_FAR = 1024

# Rows of one pass over the inputs, and the planes computed of each.
_Group = list[tuple[int, tuple[int, ...]]]


@dataclass(frozen=True, slots=True)
class HornerKernel:
    """One kernel: see the module.

    Parameters
    ----------
    w, polynomial : int
        The field.
    exponents : tuple of int
        e_r of each row, in the order of the outputs.
    streaming : bool
        Whether outputs bypass the caches; they must then be 64-byte aligned.
    resume : bool
        Whether there are sums already, of inputs that come after these.
    """

    w: int
    polynomial: int
    exponents: tuple[int, ...]
    streaming: bool = False
    resume: bool = False

    @property
    def name(self) -> str:
        """Symbol of the kernel."""
        flags = ("n" if self.streaming else "") + ("r" if self.resume else "")
        return f"horner{self.w}x{self.polynomial:x}_{'_'.join(map(str, self.exponents))}{flags}"

    @property
    def symbols(self) -> tuple[str, ...]:
        """No further functions."""
        return ()

    def emit(self, target: Target) -> str:
        """Return the kernel's LLVM text."""
        return _Writer(self, target).text()


def bind(*, inputs: Sequence[int], outputs: Sequence[int], sums: Sequence[int] = ()) -> npt.NDArray[np.int64]:
    """Build the context of a kernel; places are those in the row of block addresses, `sums` for one that resumes."""
    return np.array([len(inputs), *outputs, *sums, *inputs], np.int64)


def _forms(w: int, polynomial: int, exponent: int, inputs: int) -> list[list[int]]:
    """Terms of each plane after adding `inputs` inputs: planes of the accumulators, then of each input in turn."""
    columns: list[list[int]] = []  # images of the w planes under x^(exponent · power), for each power
    for power in range(inputs, -1, -1):
        images = []
        for bit in range(w):
            value = 1 << bit
            for _ in range(exponent * power):
                value <<= 1
                if value >> w:
                    value ^= polynomial
            images.append(value)
        columns.append(images)
    return [
        [part * w + bit for part, images in enumerate(columns) for bit in range(w) if images[bit] >> plane & 1]
        for plane in range(w)
    ]


def _share(forms: list[list[int]], fresh: int) -> list[tuple[int, int]]:
    """Find sums of two terms to be computed once, while that saves three-input XORs; `forms` are rewritten.

    Returns
    -------
    list of pairs
        Terms of each shared sum, which is then known as `fresh`, `fresh` + 1, ...
    """
    shared: list[tuple[int, int]] = []
    while True:
        gains: dict[tuple[int, int], int] = {}
        for terms in forms:
            if len(terms) > 2:
                saved = 1 - len(terms) % 2  # n terms take n // 2 XORs of three
                for pair in itertools.combinations(terms, 2):
                    gains[pair] = gains.get(pair, -1) + saved
        best = max(gains, key=gains.__getitem__, default=None)
        if best is None or gains[best] < 1:
            return shared
        for terms in forms:
            if len(terms) > 2 and best[0] in terms and best[1] in terms:
                terms[:] = [term for term in terms if term not in best] + [fresh + len(shared)]
        shared.append(best)


class _Writer:
    """Writes one kernel for one target."""

    def __init__(self, kernel: HornerKernel, target: Target) -> None:
        self.kernel, self.target = kernel, target
        self.w = kernel.w
        self.width = target.vector_bytes
        self.f = Function(kernel.name, [("ptr", "context"), ("ptr", "row"), ("i64", "begin"), ("i64", "end")])
        self.outputs: list[str] = []
        self.sums: list[str] = []
        self.inputs = ""
        self.count = ""
        self.stage = ""
        self.passes = self._passes()
        # Two inputs at a time need fewer XORs of three; with one pass there are too few registers for that.
        self.together = 2 if target.registers == 32 and len(self.passes) > 1 else 1

    def _passes(self) -> list[_Group]:
        """For each pass over the inputs, its rows and the planes computed of each.

        With 32 registers a pass takes whole rows: up to 24 planes where that makes one pass, else 16. With 16 registers
        it takes one row, and the planes of the plain sum are dealt out to the passes.
        """
        w, rows = self.w, self.kernel.exponents
        every = tuple(range(w))
        if self.target.registers == 32:
            room = 24 if len(rows) * w <= 24 else 16
            per = max(1, room // w)
            groups = [range(start, min(start + per, len(rows))) for start in range(0, len(rows), per)]
            # Plain sums come last: the inputs that they need are then in registers, and die there.
            return [[(row, every) for row in sorted(group, key=lambda row: not rows[row])] for group in groups]
        full = [row for row, exponent in enumerate(rows) if exponent]
        riding = [(row, plane) for row, exponent in enumerate(rows) if not exponent for plane in range(w)]
        share = max(0, min(14 - w, -(-len(riding) // max(1, len(full)))))
        result = []
        for row in full:
            here, riding = riding[:share], riding[share:]
            result.append([(row, every), *_grouped(here)])
        while riding:
            here, riding = riding[:8], riding[8:]
            result.append(_grouped(here))
        return result

    def text(self) -> str:
        f = self.f
        strip = self.w * PACKET
        self.count = f.word("%context", _COUNT)
        rows = len(self.kernel.exponents)
        self.outputs = [f.pointer("%row", f.word("%context", _OUTPUTS + row)) for row in range(rows)]
        if self.kernel.resume:
            self.sums = [f.pointer("%row", f.word("%context", _OUTPUTS + rows + row)) for row in range(rows)]
        self.inputs = f.address("%context", 8 * (_OUTPUTS + rows + len(self.sums)))
        if self._staged:
            size = PACKET * max(sum(len(planes) for _, planes in group) for group in self.passes)
            self.stage = f.op(f"alloca i8, i64 {size}, align 64")
        with f.loop("%begin", "%end", strip) as position:
            if self._staged:
                self._staged_strip(position.index)
            elif self.width == PACKET:
                self._strip(position.index)
            else:
                with f.loop("0", str(PACKET), self.width) as piece:
                    self._strip(f.op(f"add i64 {position.index}, {piece.index}"))
        if self.kernel.streaming and self.target.x86:
            f.emit(STREAMED)
        return f.text()

    @property
    def _staged(self) -> bool:
        """Whether results are collected until they fill lines: parts of a line, one long after the other, are slow."""
        return self.kernel.streaming and self.width < PACKET

    def _staged_strip(self, position: str) -> None:
        """Compute every plane of every output: a pass's lines vector by vector beside them, then write them at once."""
        f, kind = self.f, self.target.vector
        for index, group in enumerate(self.passes):
            slots = [(row, plane) for row, planes in group for plane in planes]
            with f.loop("0", str(PACKET), self.width) as piece:
                ahead = self._part(piece.index, index)
                values = self._sums(f.op(f"add i64 {position}, {piece.index}"), group, slots, ahead)
                for place, value in enumerate(values):
                    f.store(kind, value, f.address(f.address(self.stage, piece.index), place * PACKET), self.width)
            for place, (row, plane) in enumerate(slots):
                line = f.address(f.address(self.outputs[row], position), plane * PACKET)
                for part in range(0, PACKET, self.width):
                    value = f.load(kind, f.address(self.stage, place * PACKET + part), self.width)
                    f.store(kind, value, f.address(line, part), self.width, streaming=True)
            f.barrier()

    def _part(self, piece: str, index: int) -> list[str]:
        """Offsets, from a vector, of the part of a later strip to read ahead: passes and their vectors share it."""
        f, passes = self.f, len(self.passes)
        lines = -(-self.w * self.width // (PACKET * passes))
        share = f.op(f"udiv i64 {f.op(f'mul i64 {piece}, {self.w}')}, {passes}")
        first = f.op(f"add i64 {f.op(f'sub i64 {share}, {piece}')}, {_FAR + index * self.w * PACKET // passes}")
        return [f.op(f"add i64 {first}, {line * PACKET}") for line in range(lines)]

    def _strip(self, position: str) -> None:
        """Compute one vector of every plane of every output."""
        f, kind = self.f, self.target.vector
        streaming = self.kernel.streaming
        for index, group in enumerate(self.passes):
            slots = [(row, plane) for row, planes in group for plane in planes]
            last = index == len(self.passes) - 1
            following = self.w * PACKET if last and len(self.passes) > 1 else 0
            first = _FAR if self.kernel.streaming else following
            ahead = range(first, first + self.w * PACKET, PACKET) if first else ()
            values = self._sums(position, group, slots, ahead)
            for (row, plane), value in zip(slots, values, strict=True):
                pointer = f.address(f.address(self.outputs[row], position), plane * PACKET)
                f.store(kind, value, pointer, self.width if streaming else 1, streaming=streaming)
            f.barrier()

    def _sums(
        self, position: str, group: _Group, slots: list[tuple[int, int]], ahead: Sequence[int | str]
    ) -> list[str]:
        """Run over the inputs, from the last to the first."""
        f, kind, together = self.f, self.target.vector, self.together
        values = ["zeroinitializer"] * len(slots)
        if self.kernel.resume:
            values = [
                f.load(kind, f.address(f.address(self.sums[row], position), plane * PACKET)) for row, plane in slots
            ]
        rest = self.count
        if together > 1:
            odd = f.op(f"and i64 {rest}, 1")
            with f.when(f.op(f"icmp ne i64 {odd}, 0"), [(kind, value) for value in values]) as single:
                single.carry(self._turn(position, group, values, rest, 1, ahead))
            values = single.values
            rest = f.op(f"sub i64 {rest}, {odd}")
        # There are at least two inputs, so that something is left.
        with f.loop("0", rest, together, [(kind, value) for value in values]) as turn:
            above = f.op(f"sub i64 {rest}, {turn.index}")
            turn.carry(self._turn(position, group, turn.values, above, together, ahead))
        return turn.values

    def _turn(
        self, position: str, group: _Group, values: Sequence[str], above: str, inputs: int, ahead: Sequence[int | str]
    ) -> list[str]:
        """Multiply the accumulators by the power of x of their row and add input `above` - 1, then the one before."""
        f, kind, w = self.f, self.target.vector, self.w
        data: list[dict[int, str]] = []
        for back in range(1, inputs + 1):
            place = f.word(self.inputs, f.op(f"sub i64 {above}, {back}"))
            source = f.address(f.pointer("%row", place), position)
            needed = {plane for row, planes in group for plane in (range(w) if self.kernel.exponents[row] else planes)}
            data.append({plane: f.load(kind, f.address(source, plane * PACKET)) for plane in sorted(needed)})
            for offset in ahead:
                f.prefetch(f.address(source, offset))
        out: list[str] = []
        for row, planes in group:
            mine, values = list(values[: len(planes)]), values[len(planes) :]
            if not self.kernel.exponents[row]:
                out += [
                    self._xor([value, *(d[plane] for d in data)]) for value, plane in zip(mine, planes, strict=True)
                ]
                continue
            names = [*mine, *(d[plane] for d in data for plane in range(w))]
            forms = _forms(w, self.kernel.polynomial, self.kernel.exponents[row], inputs)
            for pair in _share(forms, len(names)):
                names.append(self._xor([names[term] for term in pair]))
            out += [self._xor([names[term] for term in terms]) for terms in forms]
        return out

    def _xor(self, names: Sequence[str]) -> str:
        total = names[0]
        for name in names[1:]:
            total = self.f.op(f"xor {self.target.vector} {total}, {name}")
        return total


def _grouped(planes: Sequence[tuple[int, int]]) -> _Group:
    """Planes by row."""
    return [
        (row, tuple(plane for other, plane in planes if other == row)) for row in sorted({row for row, _ in planes})
    ]
