"""Any bit matrix in the `packets` layout: each output packet is the sum of the packets that its row names.

Slower than the kernels that keep a whole symbol's planes in registers, but free of limits: any w, any packet size that
is a multiple of the vector width. Programs are data, as everywhere here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gfcode.kernels.simd.assembly import Function
from gfcode.kernels.simd.target import Target

__all__ = ["PlanesKernel", "bind"]

#: Places in a kernel's context, in 8-byte words: bytes of a strip and of a packet, how many output packets a strip
#: has, where each one's record starts (word index). A record: place of the block, offset of the packet, how many
#: terms, and for each term place and offset.
_STRIP, _PACKET, _COUNT, _RECORDS = 0, 1, 2, 3
#: Vectors of a sum that share the cost of finding their operands.
_TOGETHER = 4


@dataclass(frozen=True, slots=True)
class PlanesKernel:
    """One kernel: see the module.

    Parameters
    ----------
    across : bool
        Whether vectors handled together come from neighbouring strips; else from one packet, which then is a multiple
        of four vectors.
    """

    across: bool

    @property
    def name(self) -> str:
        """Symbol of the kernel."""
        return "planes_across" if self.across else "planes"

    @property
    def symbols(self) -> tuple[str, ...]:
        """No further functions."""
        return ()

    def emit(self, target: Target) -> str:
        """Return the kernel's LLVM text."""
        f = Function(self.name, [("ptr", "context"), ("ptr", "row"), ("i64", "begin"), ("i64", "end")])
        width = target.vector_bytes
        strip, packet = f.word("%context", _STRIP), f.word("%context", _PACKET)
        if not self.across:
            with f.loop("%begin", "%end", strip) as position, f.loop("0", packet, _TOGETHER * width) as piece:
                at = f.op(f"add i64 {position.index}, {piece.index}")
                _sums(f, target, at, [str(step * width) for step in range(_TOGETHER)])
            return f.text()
        several = f.op(f"mul i64 {strip}, {_TOGETHER}")
        length = f.op("sub i64 %end, %begin")
        middle = f.op(f"sub i64 %end, {f.op(f'urem i64 {length}, {several}')}")
        steps = ["0", strip, f.op(f"mul i64 {strip}, 2"), f.op(f"mul i64 {strip}, 3")]
        for first, last, stride, offsets in (("%begin", middle, several, steps), (middle, "%end", strip, ["0"])):
            with (
                f.when(f.op(f"icmp ult i64 {first}, {last}")),
                f.loop(first, last, stride) as position,
                f.loop("0", packet, width) as piece,
            ):
                _sums(f, target, f.op(f"add i64 {position.index}, {piece.index}"), offsets)
        return f.text()


def _sums(f: Function, target: Target, at: str, offsets: Sequence[str]) -> None:
    """Compute one vector of every output packet at each offset from `at`."""
    kind = target.vector
    with f.loop("0", f.word("%context", _COUNT)) as output:
        start = f.word("%context", f.op(f"add i64 {output.index}, {_RECORDS}"))
        record = f.op(f"getelementptr i64, ptr %context, i64 {start}")
        terms = f.word(record, 2)

        def add(term: str, values: Sequence[str]) -> list[str]:
            place = f.op(f"add i64 {f.op(f'shl i64 {term}, 1')}, 3")
            source = f.address(f.pointer("%row", f.word(record, place)), at)
            source = f.address(source, f.word(record, f.op(f"add i64 {place}, 1")))
            loaded = [f.load(kind, f.address(source, offset)) for offset in offsets]
            return [f.op(f"xor {kind} {value}, {other}") for value, other in zip(values, loaded, strict=True)]

        zeros = ["zeroinitializer"] * len(offsets)
        pairs = f.op(f"and i64 {terms}, -2")
        carried = [(kind, value) for value in zeros]
        with f.when(f.op(f"icmp ne i64 {pairs}, 0"), carried) as some:
            with f.loop("0", pairs, 2, carried) as pair:
                pair.carry(add(f.op(f"add i64 {pair.index}, 1"), add(pair.index, pair.values)))
            some.carry(pair.values)
        with f.when(f.op(f"icmp ne i64 {pairs}, {terms}"), [(kind, value) for value in some.values]) as single:
            single.carry(add(pairs, some.values))
        block = f.address(f.pointer("%row", f.word(record, 0)), at)
        block = f.address(block, f.word(record, 1))
        for value, offset in zip(single.values, offsets, strict=True):
            f.store(kind, value, f.address(block, offset))


def bind(
    bits: npt.NDArray[np.uint8], *, w: int, packet_bytes: int, inputs: Sequence[int], outputs: Sequence[int]
) -> npt.NDArray[np.int64]:
    """Build the context of a kernel.

    Parameters
    ----------
    bits : ndarray of zeros and ones, shape (len(outputs) · w, len(inputs) · w)
    inputs, outputs : sequences of int
        Places in the row of block addresses.
    """
    records: list[int] = []
    starts: list[int] = []
    head = _RECORDS + len(bits)
    for index, line in enumerate(bits):
        starts.append(head + len(records))
        ones = np.flatnonzero(line).tolist()
        records += [outputs[index // w], index % w * packet_bytes, len(ones)]
        for one in ones:
            records += [inputs[one // w], one % w * packet_bytes]
    return np.array([w * packet_bytes, packet_bytes, len(bits), *starts, *records], np.int64)
