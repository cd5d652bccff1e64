"""Kernels that multiply bytes where they lie: rows of any constants, and one row of ones that costs an XOR.

A kernel computes `rows` general rows, and may carry an XOR row beside them: the sum of some of the inputs, to which
`fold` adds the general rows themselves. Decoding uses that: where the first parity is a plain sum, the last lost block
is the sum of everything else. With `rows` = 0 only the XOR row is left; an XOR knows no symbols, so every layout can
use it.

Constants are data (bit matrices for GFNI, otherwise two tables of 16 for each nibble), so a kernel serves every matrix.
Two inputs are folded into an accumulator at a time: one three-input XOR where the CPU has it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gfcode.gf import Field
from gfcode.kernels.simd.assembly import Function
from gfcode.kernels.simd.target import Target

__all__ = ["MAX_ROWS", "WordsKernel", "bind", "images", "tables"]

#: General rows of one kernel; more rows take more kernels.
MAX_ROWS = 4
#: Places in a kernel's context, in 8-byte words: how many inputs the XOR row sums (they come first), how many there
#: are, where the tables start (bytes), the outputs (general rows, then the XOR row), the inputs.
_SUMMED, _COUNT, _TABLES, _OUTPUTS, _INPUTS = 0, 1, 2, 3, 8


@dataclass(frozen=True, slots=True)
class WordsKernel:
    """One kernel: see the module.

    Parameters
    ----------
    rows : int
        General rows, 0 to `MAX_ROWS`.
    summed : bool
        Whether there is an XOR row.
    fold : bool
        Whether the XOR row includes the general rows.
    streaming : bool
        Whether outputs bypass the caches; they must then be congruent modulo the vector width.
    ahead : int
        Bytes to read ahead of what is needed; 0 leaves that to the CPU, which follows some dozen blocks at once.
    """

    rows: int
    summed: bool = False
    fold: bool = False
    streaming: bool = False
    ahead: int = 0

    @property
    def name(self) -> str:
        """Symbol of the kernel."""
        flags = ("s" if self.summed else "") + ("f" if self.fold else "") + ("n" if self.streaming else "")
        return f"words{self.rows}{flags}{self.ahead or ''}"

    @property
    def symbols(self) -> tuple[str, ...]:
        """No further functions."""
        return ()

    def emit(self, target: Target) -> str:
        """Return the kernel's LLVM text."""
        return _Writer(self, target).text()


def images(field: Field, constants: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """Products of each constant with the eight bytes of a single one, shape (..., 8)."""
    products = field.bit_images(constants).astype(np.uint8)
    if field.w == 4:  # two symbols in a byte
        products = np.concatenate([products, products << 4], axis=-1)
    return products


def tables(images: npt.NDArray[np.uint8], product: str) -> npt.NDArray[np.uint8]:
    """Turn images (..., 8) into what kernels multiply by: bit matrices (..., 8), or pairs of tables (..., 32)."""
    if product == "affine":
        bits = np.unpackbits(images[..., None], axis=-1, bitorder="little")  # (..., column, row)
        rows = np.packbits(bits.swapaxes(-1, -2), axis=-1, bitorder="little")[..., 0]
        return np.ascontiguousarray(rows[..., ::-1])
    out = np.zeros((*images.shape[:-1], 2, 16), np.uint8)
    for half in range(2):
        for bit in range(4):
            out[..., half, 1 << bit : 2 << bit] = out[..., half, : 1 << bit] ^ images[..., 4 * half + bit, None]
    return out.reshape(*images.shape[:-1], 32)


def bind(
    images: npt.NDArray[np.uint8],
    target: Target,
    *,
    inputs: Sequence[int],
    summed: int,
    outputs: Sequence[int],
) -> npt.NDArray[np.int64]:
    """Build the context of a kernel.

    Parameters
    ----------
    images : ndarray, shape (rows, len(inputs), 8)
        Of the constants, columns in the order of `inputs`.
    inputs, outputs : sequences of int
        Places in the row of block addresses; the first `summed` inputs are those of the XOR row, whose output is last.
    """
    table = np.ascontiguousarray(tables(images, target.product).swapaxes(0, 1)).reshape(-1)
    start = -(-(_INPUTS + len(inputs)) // 2) * 2
    context = np.zeros(start + table.size // 8, np.int64)
    context[_SUMMED], context[_COUNT], context[_TABLES] = summed, len(inputs), 8 * start
    context[_OUTPUTS : _OUTPUTS + len(outputs)] = outputs
    context[_INPUTS : _INPUTS + len(inputs)] = inputs
    context[start:] = table.view(np.int64)
    return context


class _Writer:
    """Writes one kernel for one target."""

    def __init__(self, kernel: WordsKernel, target: Target) -> None:
        self.kernel, self.target = kernel, target
        self.f = Function(kernel.name, [("ptr", "context"), ("ptr", "row"), ("i64", "begin"), ("i64", "end")])
        self.width = target.vector_bytes
        self.entry_bytes = 8 if target.product == "affine" else 32
        self.outputs: list[str] = []

    def text(self) -> str:
        f, kernel = self.f, self.kernel
        total = kernel.rows + kernel.summed
        steps = self._unroll()
        summed, count = f.word("%context", _SUMMED), f.word("%context", _COUNT)
        table = f.address("%context", f.word("%context", _TABLES))
        self.outputs = [f.pointer("%row", f.word("%context", _OUTPUTS + place)) for place in range(total)]
        begin, end = "%begin", "%end"
        if kernel.streaming:
            begin = self._align(begin, end, summed, count, table)
        stride = steps * self.width
        whole = f.op(f"sub i64 {end}, {begin}")
        whole = f.op(f"and i64 {whole}, {-stride}") if stride & (stride - 1) == 0 else self._multiple(whole, stride)
        middle = f.op(f"add i64 {begin}, {whole}")
        with f.when(f.op(f"icmp ult i64 {begin}, {middle}")), f.loop(begin, middle, stride) as position:
            self._step(position.index, steps, summed, count, table, streaming=kernel.streaming)
        # What is left goes one vector at a time; the last one is moved back so that it ends where the block ends.
        last = f.op(f"sub i64 {end}, {self.width}")
        with f.when(f.op(f"icmp ult i64 {middle}, {end}")), f.loop(middle, end, self.width) as position:
            over = f.op(f"icmp ult i64 {last}, {position.index}")
            where = f.op(f"select i1 {over}, i64 {last}, i64 {position.index}")
            self._step(where, 1, summed, count, table, streaming=False)
        if kernel.streaming and self.target.x86:
            f.emit("fence seq_cst")  # a reader in another thread may not overtake streaming stores
        return f.text()

    def _multiple(self, value: str, of: int) -> str:
        rest = self.f.op(f"urem i64 {value}, {of}")
        return self.f.op(f"sub i64 {value}, {rest}")

    def _unroll(self) -> int:
        """Vectors handled at a time: as many as the accumulators leave registers for."""
        rows = self.kernel.rows + self.kernel.summed
        if self.target.registers == 32:
            return 8 if rows <= 1 else 4 if rows <= 4 else 2
        return 4 if rows <= 1 else 2

    def _align(self, begin: str, end: str, summed: str, count: str, table: str) -> str:
        """Handle the vector before the first aligned one; return where alignment starts."""
        f = self.f
        place = f.op(f"add i64 {f.op(f'ptrtoint ptr {self.outputs[0]} to i64')}, {begin}")
        ahead = f.op(f"and i64 {f.op(f'sub i64 0, {place}')}, {self.width - 1}")
        room = f.op(f"icmp uge i64 {f.op(f'sub i64 {end}, {begin}')}, {2 * self.width}")
        needed = f.op(f"and i1 {room}, {f.op(f'icmp ne i64 {ahead}, 0')}")
        with f.when(needed):
            self._step(begin, 1, summed, count, table, streaming=False)
        return f.op(f"select i1 {room}, i64 {f.op(f'add i64 {begin}, {ahead}')}, i64 {begin}")

    def _step(self, position: str, steps: int, summed: str, count: str, table: str, *, streaming: bool) -> None:
        """Compute `steps` vectors of every output at `position`."""
        f, kernel = self.f, self.kernel
        total = kernel.rows + kernel.summed
        kind = self.target.vector
        values = ["zeroinitializer"] * (total * steps)
        if kernel.summed:
            values = self._inputs(position, steps, "0", summed, table, values, with_sum=True)
        if kernel.rows:
            values = self._inputs(
                position, steps, summed if kernel.summed else "0", count, table, values, with_sum=False
            )
        if kernel.fold:
            for step in range(steps):
                place = kernel.rows * steps + step
                for row in range(kernel.rows):
                    values[place] = f.op(f"xor {kind} {values[place]}, {values[row * steps + step]}")
        for row in range(total):
            base = f.address(self.outputs[row], position)
            for step in range(steps):
                align = self.width if streaming else 1
                f.store(
                    kind, values[row * steps + step], f.address(base, step * self.width), align, streaming=streaming
                )

    def _inputs(
        self, position: str, steps: int, first: str, end: str, table: str, values: list[str], *, with_sum: bool
    ) -> list[str]:
        """Add the inputs first..end-1 to the accumulators, two at a time."""
        f, kind = self.f, self.target.vector
        carried = [(kind, value) for value in values]
        pairs = f.op(f"and i64 {f.op(f'sub i64 {end}, {first}')}, -2")
        stop = f.op(f"add i64 {first}, {pairs}")
        with f.when(f.op(f"icmp ult i64 {first}, {stop}"), carried) as guarded:
            with f.loop(first, stop, 2, carried) as pair:
                other = f.op(f"add i64 {pair.index}, 1")
                pair.carry(self._add(position, steps, [pair.index, other], table, pair.values, with_sum=with_sum))
            guarded.carry(pair.values)
        carried = [(kind, value) for value in guarded.values]
        with f.when(f.op(f"icmp ult i64 {stop}, {end}"), carried) as single:
            single.carry(self._add(position, steps, [stop], table, guarded.values, with_sum=with_sum))
        return single.values

    def _add(
        self, position: str, steps: int, inputs: list[str], table: str, values: Sequence[str], *, with_sum: bool
    ) -> list[str]:
        """Accumulators plus the products of one or two inputs."""
        f, kernel, width = self.f, self.kernel, self.width
        kind = self.target.vector
        out = list(values)
        bases = []
        for place in inputs:
            source = f.pointer("%row", f.word("%context", f.op(f"add i64 {place}, {_INPUTS}")))
            bases.append(f.address(source, position))
        entries = [
            [
                self._entry(table, f.op(f"add i64 {f.op(f'mul i64 {place}, {kernel.rows}')}, {row}"))
                for row in range(kernel.rows)
            ]
            for place in inputs
        ]
        if kernel.ahead:
            for base in bases:
                for line in range(0, steps * width, 64):
                    f.prefetch(f.address(base, kernel.ahead + line))
        for step in range(steps):
            data = [f.load(kind, f.address(base, step * width)) for base in bases]
            parts = [self._parts(value) for value in data]
            for row in range(kernel.rows):
                slot = row * steps + step
                for part, entry in zip(parts, entries, strict=True):
                    for term in self._products(part, entry[row]):
                        out[slot] = f.op(f"xor {kind} {out[slot]}, {term}")
            if with_sum:
                slot = kernel.rows * steps + step
                for value in data:
                    out[slot] = f.op(f"xor {kind} {out[slot]}, {value}")
        return out

    def _entry(self, table: str, place: str) -> list[str]:
        """Load what to multiply by, copied to every lane."""
        f, width = self.f, self.width
        pointer = f.address(table, f.op(f"mul i64 {place}, {self.entry_bytes}"))
        if self.target.product == "affine":
            lanes = width // 8
            word = f.load("i64", pointer, 8)
            one = f.op(f"insertelement <{lanes} x i64> poison, i64 {word}, i64 0")
            every = f.op(
                f"shufflevector <{lanes} x i64> {one}, <{lanes} x i64> poison, <{lanes} x i32> zeroinitializer"
            )
            return [f.op(f"bitcast <{lanes} x i64> {every} to {self.target.byte_vector}")]
        order = ", ".join(f"i32 {place % 16}" for place in range(width))
        halves = []
        for half in range(2):
            value = f.load("<16 x i8>", f.address(pointer, 16 * half), 16)
            halves.append(f.op(f"shufflevector <16 x i8> {value}, <16 x i8> poison, <{width} x i32> <{order}>"))
        return halves

    def _parts(self, value: str) -> list[str]:
        """Bytes as the product instruction takes them: whole, or nibble by nibble."""
        f, target = self.f, self.target
        if not self.kernel.rows:
            return []
        if target.product == "affine":
            return [f.op(f"bitcast {target.vector} {value} to {target.byte_vector}")]
        lanes = self.width // 8
        mask = "<" + ", ".join([f"i64 {0x0F0F0F0F0F0F0F0F}"] * lanes) + ">"
        four = "<" + ", ".join(["i64 4"] * lanes) + ">"
        low = f.op(f"and {target.vector} {value}, {mask}")
        high = f.op(f"and {target.vector} {f.op(f'lshr {target.vector} {value}, {four}')}, {mask}")
        return [f.op(f"bitcast {target.vector} {part} to {target.byte_vector}") for part in (low, high)]

    def _products(self, parts: Sequence[str], entry: Sequence[str]) -> list[str]:
        """Products to be summed, as 64-bit lanes."""
        f, target = self.f, self.target
        if target.product == "affine":
            kind = target.byte_vector
            calls = [f"@llvm.x86.vgf2p8affineqb.{8 * self.width}({kind} {parts[0]}, {kind} {entry[0]}, i8 0)"]
        else:
            name = {
                ("shuffle86", 16): "llvm.x86.ssse3.pshuf.b.128",
                ("shuffle86", 32): "llvm.x86.avx2.pshuf.b",
                ("shuffle86", 64): "llvm.x86.avx512.pshuf.b.512",
                ("tbl", 16): "llvm.aarch64.neon.tbl1.v16i8",
            }[target.product, self.width]
            calls = [
                f"@{name}({target.byte_vector} {table}, {target.byte_vector} {part})"
                for table, part in zip(entry, parts, strict=True)
            ]
        results = [f.op(f"call {target.byte_vector} {call}") for call in calls]
        return [f.op(f"bitcast {target.byte_vector} {result} to {target.vector}") for result in results]
