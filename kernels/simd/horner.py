"""Rows of powers by Horner's rule, in the `packets` layout: parity[r] = sum over j of a^(e_r · j) · data[j], a = x.

With packets as bit planes, multiplying by x renames w accumulators and adds one to the taps of the polynomial, so a row
costs about one XOR for each packet read, whatever its constants. The number of inputs is known only at run time.

The row with exponent 0 is a plain sum; its planes are dealt out to the passes over the inputs in which registers are
left, and so ride on loads that another row needs anyway (Plank and Greenan call the layout bit-sliced; the scheduling
is this module's own).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gfcode.kernels.simd.assembly import Function
from gfcode.kernels.simd.target import Target

__all__ = ["PACKET", "HornerKernel", "bind"]

PACKET = 64
#: Places in a kernel's context, in 8-byte words: how many inputs there are, the outputs, the inputs.
_COUNT, _OUTPUTS = 0, 1


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
    """

    w: int
    polynomial: int
    exponents: tuple[int, ...]
    streaming: bool = False

    @property
    def name(self) -> str:
        """Symbol of the kernel."""
        flags = "n" if self.streaming else ""
        return f"horner{self.w}x{self.polynomial:x}_{'_'.join(map(str, self.exponents))}{flags}"

    @property
    def symbols(self) -> tuple[str, ...]:
        """No further functions."""
        return ()

    def emit(self, target: Target) -> str:
        """Return the kernel's LLVM text."""
        return _Writer(self, target).text()


def bind(*, inputs: Sequence[int], outputs: Sequence[int]) -> npt.NDArray[np.int64]:
    """Build the context of a kernel; places are those in the row of block addresses."""
    return np.array([len(inputs), *outputs, *inputs], np.int64)


def _matrix(w: int, polynomial: int, power: int) -> list[int]:
    """Rows of the bit matrix of x^power, as masks over the planes."""
    columns = []
    for bit in range(w):
        value = 1 << bit
        for _ in range(power):
            value <<= 1
            if value >> w:
                value ^= polynomial
        columns.append(value)
    return [sum((columns[bit] >> row & 1) << bit for bit in range(w)) for row in range(w)]


class _Writer:
    """Writes one kernel for one target."""

    def __init__(self, kernel: HornerKernel, target: Target) -> None:
        self.kernel, self.target = kernel, target
        self.w = kernel.w
        self.width = target.vector_bytes
        self.f = Function(kernel.name, [("ptr", "context"), ("ptr", "row"), ("i64", "begin"), ("i64", "end")])
        self.outputs: list[str] = []
        self.inputs = ""
        self.count = ""

    def passes(self) -> list[list[tuple[int, tuple[int, ...]]]]:
        """For each pass over the inputs, its rows and the planes computed of each."""
        w, rows = self.w, self.kernel.exponents
        room = 24 if self.target.registers == 32 else 14
        per = max(1, room // w)
        full = [row for row, exponent in enumerate(rows) if exponent]
        sums = [(row, plane) for row, exponent in enumerate(rows) if not exponent for plane in range(w)]
        total = len(full) * w + len(sums)
        count = max(-(-len(full) // per), -(-total // room) if w <= room else len(full), 1)
        result: list[list[tuple[int, tuple[int, ...]]]] = []
        for index in range(count):
            share = full[index * len(full) // count : (index + 1) * len(full) // count]
            spare = max(room - len(share) * w, 0)
            last = index == count - 1
            take = len(sums) if last else min(spare, -(-len(sums) // (count - index)))
            riding, sums = sums[:take], sums[take:]
            here = [(row, tuple(range(w))) for row in share]
            here += [
                (row, tuple(plane for other, plane in riding if other == row))
                for row in sorted({row for row, _ in riding})
            ]
            result.append(here)
        return [group for group in result if group]

    def text(self) -> str:
        f = self.f
        strip = self.w * PACKET
        self.count = f.word("%context", _COUNT)
        rows = len(self.kernel.exponents)
        self.outputs = [f.pointer("%row", f.word("%context", _OUTPUTS + row)) for row in range(rows)]
        self.inputs = f.address("%context", 8 * (_OUTPUTS + rows))
        with f.loop("%begin", "%end", strip) as position:
            if self.width == PACKET:
                self._strip(position.index)
            else:
                with f.loop("0", str(PACKET), self.width) as piece:
                    self._strip(f.op(f"add i64 {position.index}, {piece.index}"))
        if self.kernel.streaming and self.target.x86:
            f.emit("fence seq_cst")  # a reader in another thread may not overtake streaming stores
        return f.text()

    def _strip(self, position: str) -> None:
        """Compute one vector of every plane of every output."""
        f, kind = self.f, self.target.vector
        streaming = self.kernel.streaming and self.width == PACKET
        for index, group in enumerate(self.passes()):
            slots = [(row, plane) for row, planes in group for plane in planes]
            carried = [(kind, "zeroinitializer")] * len(slots)
            with f.loop("0", self.count, 1, carried) as turn:
                place = f.op(f"sub i64 {f.op(f'sub i64 {self.count}, {turn.index}')}, 1")
                source = f.address(f.pointer("%row", f.word(self.inputs, place)), position)
                needed = sorted({plane for _, plane in slots})
                data = {plane: f.load(kind, f.address(source, plane * PACKET)) for plane in needed}
                if index == 0 and self.kernel.streaming:
                    for plane in range(self.w):
                        f.prefetch(f.address(source, 1024 + plane * PACKET))
                turn.carry(self._turn(group, turn.values, data))
            for (row, plane), value in zip(slots, turn.values, strict=True):
                pointer = f.address(f.address(self.outputs[row], position), plane * PACKET)
                f.store(kind, value, pointer, self.width if streaming else 1, streaming=streaming)
            f.barrier()

    def _turn(self, group: list[tuple[int, tuple[int, ...]]], values: list[str], data: dict[int, str]) -> list[str]:
        """Multiply the accumulators of each row by its power of x and add one input."""
        f, kind = self.f, self.target.vector
        out: list[str] = []
        for row, planes in group:
            mine, values = values[: len(planes)], values[len(planes) :]
            exponent = self.kernel.exponents[row]
            if not exponent:
                out += [f.op(f"xor {kind} {value}, {data[plane]}") for value, plane in zip(mine, planes, strict=True)]
                continue
            terms = [
                [source for source in range(self.w) if mask >> source & 1]
                for mask in _matrix(self.w, self.kernel.polynomial, exponent)
            ]
            names = dict(enumerate(mine))
            self._share(terms, names)
            for plane, sources in enumerate(terms):
                total = names[sources[0]]
                for source in sources[1:]:
                    total = f.op(f"xor {kind} {total}, {names[source]}")
                out.append(f.op(f"xor {kind} {total}, {data[plane]}"))
        return out

    def _share(self, terms: list[list[int]], names: dict[int, str]) -> None:
        """Compute once each pair that several sums of at least three terms have in common."""
        while True:
            pairs: dict[tuple[int, int], int] = {}
            for sources in terms:
                if len(sources) > 2:
                    for place, first in enumerate(sources):
                        for second in sources[place + 1 :]:
                            pairs[first, second] = pairs.get((first, second), 0) + 1
            best = max(pairs, key=lambda pair: pairs[pair], default=None)
            if best is None or pairs[best] < 2:
                return
            fresh = len(names)
            names[fresh] = self.f.op(f"xor {self.target.vector} {names[best[0]]}, {names[best[1]]}")
            for sources in terms:
                if len(sources) > 2 and best[0] in sources and best[1] in sources:
                    sources[:] = [source for source in sources if source not in best] + [fresh]
