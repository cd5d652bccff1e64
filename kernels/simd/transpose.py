"""Strips of packets to words and back, in registers, so that kernels for words serve packets of wide symbols or codes.

A bit matrix of symbols of 16 bits has some 128 ones for each constant, which is far more work than to multiply words.
With symbols of 8 bits it pays where a matrix has more constants than a CPU foresees jumps.
Each strip of an input is transposed into scratch, words are multiplied there, and each strip of an output is transposed
back. In which order words lie in scratch does not matter, as long as it is the same for all blocks: it is whatever
takes the fewest shuffles.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gfcode.kernels.simd.assembly import Function
from gfcode.kernels.simd.target import Target

__all__ = ["TransposeKernel", "bind"]

_PACKET = 64
#: Places in a kernel's context, in 8-byte words: how many blocks, then for each where it is and where it goes to.
_COUNT, _BLOCKS = 0, 1
#: Masks and shifts that transpose the 8 × 8 bits of a 64-bit word (Warren, Hacker's Delight, 7-3).
_SWAPS = ((7, 0x00AA00AA00AA00AA), (14, 0x0000CCCC0000CCCC), (28, 0x00000000F0F0F0F0))


@dataclass(frozen=True, slots=True)
class TransposeKernel:
    """One kernel, for packets of 64 bytes: see the module.

    Parameters
    ----------
    w : int
        Bits of a symbol: 8 or 16.
    back : bool
        Whether it makes packets of words.
    """

    w: int
    back: bool = False

    @property
    def name(self) -> str:
        """Symbol of the kernel."""
        return f"transpose{self.w}{'back' if self.back else ''}"

    @property
    def symbols(self) -> tuple[str, ...]:
        """No further functions."""
        return ()

    def emit(self, target: Target) -> str:
        """Return the kernel's LLVM text."""
        return _Writer(self, target).text()


def bind(sources: Sequence[int], targets: Sequence[int]) -> npt.NDArray[np.int64]:
    """Build the context of a kernel; places are those in the row of block addresses."""
    pairs = [place for pair in zip(sources, targets, strict=True) for place in pair]
    return np.array([len(sources), *pairs], np.int64)


class _Writer:
    """Writes one kernel for one target."""

    def __init__(self, kernel: TransposeKernel, target: Target) -> None:
        self.kernel, self.target, self.width = kernel, target, target.vector_bytes
        self.f = Function(kernel.name, [("ptr", "context"), ("ptr", "row"), ("i64", "begin"), ("i64", "end")])

    def text(self) -> str:
        f, kind, w = self.f, self.target.byte_vector, self.kernel.w
        with f.loop("0", f.word("%context", _COUNT)) as block:
            place = f.op(f"add i64 {f.op(f'shl i64 {block.index}, 1')}, {_BLOCKS}")
            source = f.pointer("%row", f.word("%context", place))
            target = f.pointer("%row", f.word("%context", f.op(f"add i64 {place}, 1")))
            with (
                f.loop("%begin", "%end", w * _PACKET) as position,
                f.loop("0", str(_PACKET), self.width) as piece,
            ):
                packets = f.op(f"add i64 {position.index}, {piece.index}")
                words = f.op(f"add i64 {position.index}, {f.op(f'mul i64 {piece.index}, {w}')}")
                first, apart, then, between = packets, _PACKET, words, self.width
                if self.kernel.back:
                    first, apart, then, between = words, self.width, packets, _PACKET
                base = f.address(source, first)
                data = [f.load(kind, f.address(base, index * apart)) for index in range(w)]
                made = self._back(data) if self.kernel.back else self._forward(data)
                base = f.address(target, then)
                for index, value in enumerate(made):
                    f.store(kind, value, f.address(base, index * between))
        return f.text()

    def _forward(self, planes: list[str]) -> list[str]:
        """Turn planes into vectors of words."""
        halves = []
        for start in range(0, len(planes), 8):
            half = planes[start : start + 8]
            values = half[::-1] if self._affine else half
            for apart in (4, 2, 1):
                values = self._stage(values, apart, back=False)
            halves.append([self._bits(value, ascending=False) for value in values])
        if self.kernel.w == 8:
            return halves[0]
        return [value for low, high in zip(*halves, strict=True) for value in self._interleave(low, high)]

    def _back(self, words: list[str]) -> list[str]:
        """Turn vectors of words into planes."""
        halves = [words]
        if self.kernel.w == 16:
            pairs = [self._separate(words[place], words[place + 1]) for place in range(0, 16, 2)]
            halves = [list(half) for half in zip(*pairs, strict=True)]
        planes: list[str] = []
        for half in halves:
            values = [self._bits(value, ascending=True) for value in half]
            for apart in (1, 2, 4):
                values = self._stage(values, apart, back=True)
            planes += values
        return planes

    def _stage(self, values: list[str], apart: int, *, back: bool) -> list[str]:
        """Interleave the bytes of vectors whose numbers differ in one bit, or undo that."""
        made = list(values)
        for place in range(8):
            if not place & apart:
                pair = values[place], values[place + apart]
                made[place], made[place + apart] = self._separate(*pair) if back else self._interleave(*pair)
        return made

    def _interleave(self, first: str, second: str) -> tuple[str, str]:
        orders = [[half + place // 2 + place % 2 * 16 for place in range(16)] for half in (0, 8)]
        return self._shuffle(first, second, orders[0]), self._shuffle(first, second, orders[1])

    def _separate(self, first: str, second: str) -> tuple[str, str]:
        orders = [list(range(start, 32, 2)) for start in (0, 1)]
        return self._shuffle(first, second, orders[0]), self._shuffle(first, second, orders[1])

    def _shuffle(self, first: str, second: str, order: Sequence[int]) -> str:
        """Bytes of two vectors, in the same order in each 16-byte lane; those from 16 on are the second's."""
        places = [
            lane * 16 + place % 16 + place // 16 * self.width for lane in range(self.width // 16) for place in order
        ]
        mask, kind = ", ".join(f"i32 {place}" for place in places), self.target.byte_vector
        return self.f.op(f"shufflevector {kind} {first}, {kind} {second}, <{self.width} x i32> <{mask}>")

    @property
    def _affine(self) -> bool:
        return self.target.product == "affine"

    def _bits(self, value: str, *, ascending: bool) -> str:
        """Transpose the 8 × 8 bits of each 64-bit lane.

        The affine instruction multiplies constant bytes by the data as bit matrices, of which it takes the last byte as
        the first row: planes are handed in in reverse, and the eight symbols come out in reverse, which `ascending`
        undoes.
        """
        f, kind, lanes = self.f, self.target.byte_vector, self.width // 8
        if self._affine:
            units = [1 << (bit if ascending else 7 - bit) for bit in range(8)] * lanes
            units_text = "<" + ", ".join(f"i8 {unit - 256 if unit > 127 else unit}" for unit in units) + ">"
            name = f"@llvm.x86.vgf2p8affineqb.{8 * self.width}"
            return f.op(f"call {kind} {name}({kind} {units_text}, {kind} {value}, i8 0)")
        wide = self.target.vector

        def every(number: int) -> str:
            return "<" + ", ".join([f"i64 {number}"] * lanes) + ">"

        total = f.op(f"bitcast {kind} {value} to {wide}")
        for shift, mask in _SWAPS:
            moved = f.op(f"lshr {wide} {total}, {every(shift)}")
            swapped = f.op(f"and {wide} {f.op(f'xor {wide} {total}, {moved}')}, {every(mask)}")
            moved = f.op(f"shl {wide} {swapped}, {every(shift)}")
            total = f.op(f"xor {wide} {f.op(f'xor {wide} {total}, {swapped}')}, {moved}")
        return f.op(f"bitcast {wide} {total} to {kind}")
