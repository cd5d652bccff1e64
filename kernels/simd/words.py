"""Kernels that multiply bytes where they lie: rows of any constants, and one row of ones that costs an XOR.

A kernel computes `rows` general rows, and may carry an XOR row beside them: the sum of some of the inputs, to which
`fold` adds the general rows themselves. Decoding uses that: where the first parity is a plain sum, the last lost block
is the sum of everything else. With `rows` = 0 only the XOR row is left; an XOR knows no symbols, so every layout can
use it.

Constants are data (`products`), so that a kernel serves every matrix of its symbol width.
Two inputs are folded into an accumulator at a time: one three-input XOR where the CPU has it. Where a product is itself
two terms, that gains nothing, and one input at a time leaves registers for more accumulators.

A row of the powers of x, beside the XOR row of all inputs, needs no tables: by Horner's rule the accumulator is doubled
for each input. A byte's carry is looked up by `pshufb`, which gives zero where the top bit is set, and so the constant
that reduces where it should not: off by that constant each time. An accumulator that starts at the constant divided by
x + 1 is off by the same after each step, and is put right at the end.

Where an input has the constant 1 in every row, as the first one has in rows of powers, accumulators start with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gfcode.kernels.simd.assembly import STREAMED, Function
from gfcode.kernels.simd.products import multiplication
from gfcode.kernels.simd.target import Target

__all__ = ["MAX_ROWS", "WordsKernel", "bind"]

#: General rows of one kernel; more rows take more kernels.
MAX_ROWS = 4
#: Places in a kernel's context, in 8-byte words: how many inputs the XOR row sums (they come first), how many there
#: are, where the tables start (bytes), the outputs (general rows, then the XOR row), the inputs.
_SUMMED, _COUNT, _TABLES, _OUTPUTS, _INPUTS = 0, 1, 2, 3, 8
#: How many inputs a kernel that reads across is ahead of itself; so many of the first inputs stand after the last, too.
_ACROSS = 4


@dataclass(frozen=True, slots=True)
class WordsKernel:
    """One kernel: see the module.

    Parameters
    ----------
    w : int
        Bits of a symbol: 4, 8 or 16. Kernels for 4 and 8 are the same; without general rows it does not matter.
    rows : int
        General rows, 0 to `MAX_ROWS`.
    summed : bool
        Whether there is an XOR row.
    fold : bool
        Whether the XOR row includes the general rows.
    streaming : bool
        Whether outputs bypass the caches; they must then be congruent modulo the vector width.
    add : bool
        Whether outputs are added to; blocks are then whole vectors.
    ahead : int
        Bytes to read ahead of what is needed; 0 leaves that to the CPU, which follows some dozen blocks at once.
    across : bool
        Whether to read ahead in the next inputs instead: where blocks share the sets of a cache, what is read ahead in
        all of them is gone before it is needed.
    doubling : bool
        Whether the one general row is powers of x, x^0 for the last of the inputs, all of which are summed.
    ones : bool
        Whether all constants of the first input are 1.
    """

    w: int
    rows: int
    summed: bool = False
    fold: bool = False
    streaming: bool = False
    ahead: int = 0
    add: bool = False
    across: bool = False
    doubling: bool = False
    ones: bool = False

    @property
    def name(self) -> str:
        """Symbol of the kernel."""
        flags = ("s" if self.summed else "") + ("f" if self.fold else "") + ("n" if self.streaming else "")
        flags += ("a" if self.add else "") + ("x" if self.across else "")
        flags += ("d" if self.doubling else "") + ("o" if self.ones else "")
        kind = "xor" if not self.rows else "words16_" if self.w == 16 else "words"
        return f"{kind}{self.rows}{flags}{self.ahead or ''}"

    @property
    def symbols(self) -> tuple[str, ...]:
        """No further functions."""
        return ()

    def emit(self, target: Target) -> str:
        """Return the kernel's LLVM text."""
        return _Writer(self, target).text()


def bind(
    table: npt.NDArray[np.uint8], *, inputs: Sequence[int], summed: int, outputs: Sequence[int]
) -> npt.NDArray[np.int64]:
    """Build the context of a kernel.

    Parameters
    ----------
    table : ndarray, shape (rows, len(inputs), bytes)
        What the constants became (`Multiplication.table`), columns in the order of `inputs`.
    inputs, outputs : sequences of int
        Places in the row of block addresses; the first `summed` inputs are those of the XOR row, whose output is last.
    """
    flat = np.ascontiguousarray(table.swapaxes(0, 1)).reshape(-1)
    ahead = [inputs[place % len(inputs)] for place in range(_ACROSS)] if inputs else []
    start = -(-(_INPUTS + len(inputs) + len(ahead)) // 2) * 2
    context = np.zeros(start + flat.size // 8, np.int64)
    context[_SUMMED], context[_COUNT], context[_TABLES] = summed, len(inputs), 8 * start
    context[_OUTPUTS : _OUTPUTS + len(outputs)] = outputs
    context[_INPUTS : _INPUTS + len(inputs) + len(ahead)] = [*inputs, *ahead]
    context[start:] = flat.view(np.int64)
    return context


class _Writer:
    """Writes one kernel for one target."""

    def __init__(self, kernel: WordsKernel, target: Target) -> None:
        self.kernel, self.target = kernel, target
        self.f = Function(kernel.name, [("ptr", "context"), ("ptr", "row"), ("i64", "begin"), ("i64", "end")])
        self.width = target.vector_bytes
        self.way = multiplication(kernel.w if kernel.rows else 8, target)
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
            f.emit(STREAMED)
        return f.text()

    def _multiple(self, value: str, of: int) -> str:
        rest = self.f.op(f"urem i64 {value}, {of}")
        return self.f.op(f"sub i64 {value}, {rest}")

    @property
    def _together(self) -> int:
        """How many inputs are added at a time."""
        return 2 if self.way.single or not self.kernel.rows else 1

    def _unroll(self) -> int:
        """Vectors handled at a time: as many as the accumulators leave registers for."""
        rows = self.kernel.rows + self.kernel.summed
        if self.kernel.doubling:
            return 8 if self.target.registers == 32 else 4
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
        f, kernel, kind = self.f, self.kernel, self.target.vector
        held = max(steps, self.way.group)  # a lone vector of a group of two is computed twice and stored once
        values = ["zeroinitializer"] * (kernel.rows * held + kernel.summed * steps)
        begin = "0"
        if kernel.ones:
            values, begin = self._start(position, steps), "1"
        if kernel.doubling:
            values = self._powers(position, steps, count, table)
        elif kernel.summed:
            values = self._inputs(position, steps, begin, summed, table, values, with_sum=True)
        if kernel.rows and not kernel.doubling:
            first = summed if kernel.summed else begin
            values = self._inputs(position, steps, first, count, table, values, with_sum=False)
        results = []
        for row in range(kernel.rows):
            line: list[str] = []
            for start in range(row * held, (row + 1) * held, self.way.group):
                line += self.way.join(f, values[start : start + self.way.group])
            results.append(line)
        if kernel.summed:
            sums = values[kernel.rows * held :]
            if kernel.fold:
                sums = [self._xor([value, *(line[step] for line in results)]) for step, value in enumerate(sums)]
            results.append(sums)
        for output, line in zip(self.outputs, results, strict=True):
            base = f.address(output, position)
            for step, value in enumerate(line[:steps]):
                pointer = f.address(base, step * self.width)
                total = self._xor([value, f.load(kind, pointer)]) if kernel.add else value
                f.store(kind, total, pointer, self.width if streaming else 1, streaming=streaming)

    def _load(self, position: str, steps: int, place: str) -> list[str]:
        """Load the vectors of an input."""
        f = self.f
        source = f.pointer("%row", f.word("%context", f.op(f"add i64 {place}, {_INPUTS}")))
        base = f.address(source, position)
        self._read_ahead(position, steps, [place], [base])
        return [f.load(self.target.vector, f.address(base, step * self.width)) for step in range(steps)]

    def _grouped(self, data: list[str]) -> list[list[str]]:
        """Vectors in groups; a lone one of a group of two stands twice."""
        group = self.way.group
        groups = [data[start : start + group] for start in range(0, len(data), group)]
        return [vectors * (group // len(vectors)) for vectors in groups]

    def _start(self, position: str, steps: int) -> list[str]:
        """Accumulators that hold the first input."""
        data = self._load(position, steps, "0")
        entered = [value for group in self._grouped(data) for value in self.way.enter(self.f, group)]
        return entered * self.kernel.rows + data * self.kernel.summed

    def _powers(self, position: str, steps: int, count: str, table: str) -> list[str]:
        """Run over all inputs: accumulators by Horner's rule, then their sums."""
        f, kind, way = self.f, self.target.vector, self.way
        reduce, start = way.entry(f, table)
        off = f.op(f"bitcast {self.target.byte_vector} {start} to {kind}")
        data = self._load(position, steps, "0")
        # There are at least two inputs, so that something is left.
        carried = [(kind, value) for value in [*(self._xor([value, off]) for value in data), *data]]
        with f.loop("1", count, 1, carried) as turn:
            data = self._load(position, steps, turn.index)
            doubled = [way.doubled(f, value, reduce) for value in turn.values[:steps]]
            terms = [*doubled, *([value] for value in turn.values[steps:])]
            turn.carry([self._xor([*some, value]) for some, value in zip(terms, data * 2, strict=True)])
        return [self._xor([value, off]) for value in turn.values[:steps]] + turn.values[steps:]

    def _xor(self, names: Sequence[str]) -> str:
        total = names[0]
        for name in names[1:]:
            total = self.f.op(f"xor {self.target.vector} {total}, {name}")
        return total

    def _inputs(
        self, position: str, steps: int, first: str, end: str, table: str, values: list[str], *, with_sum: bool
    ) -> list[str]:
        """Add the inputs first..end-1 to the accumulators, two at a time where that gains anything."""
        f, kind = self.f, self.target.vector
        carried = [(kind, value) for value in values]
        if self._together == 1:
            with f.when(f.op(f"icmp ult i64 {first}, {end}"), carried) as guarded:
                with f.loop(first, end, 1, carried) as turn:
                    turn.carry(self._add(position, steps, [turn.index], table, turn.values, with_sum=with_sum))
                guarded.carry(turn.values)
            return guarded.values
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
        f, kernel, width, way = self.f, self.kernel, self.width, self.way
        out = list(values)
        held = max(steps, way.group)
        bases = []
        for place in inputs:
            source = f.pointer("%row", f.word("%context", f.op(f"add i64 {place}, {_INPUTS}")))
            bases.append(f.address(source, position))
        self._read_ahead(position, steps, inputs, bases)
        if self._together == 1:
            return self._add_one(bases[0], steps, inputs[0], table, out, with_sum=with_sum)
        entries = [[self._entry(table, place, row) for row in range(kernel.rows)] for place in inputs]
        for start in range(0, steps, way.group):
            size = min(way.group, steps - start)
            data = [
                [f.load(self.target.vector, f.address(base, (start + step) * width)) for step in range(size)]
                for base in bases
            ]
            if kernel.rows:
                parts = [way.split(f, group if size == way.group else group * way.group) for group in data]
                for row in range(kernel.rows):
                    terms = [way.times(f, part, entry[row]) for part, entry in zip(parts, entries, strict=True)]
                    for step in range(way.group):
                        slot = row * held + start + step
                        out[slot] = self._xor([out[slot], *(term for group in terms for term in group[step])])
            if with_sum:
                for step in range(size):
                    slot = kernel.rows * held + start + step
                    out[slot] = self._xor([out[slot], *(group[step] for group in data)])
        return out

    def _add_one(
        self, base: str, steps: int, place: str, table: str, out: list[str], *, with_sum: bool
    ) -> list[str]:  # fmt: skip
        """Accumulators plus the products of one input, row by row, so that few tables are in registers."""
        f, kernel, way = self.f, self.kernel, self.way
        held = max(steps, way.group)
        data = [f.load(self.target.vector, f.address(base, step * self.width)) for step in range(steps)]
        if with_sum:
            for step, value in enumerate(data, kernel.rows * held):
                out[step] = self._xor([out[step], value])
        parts = [way.split(f, group) for group in self._grouped(data)]
        for row in range(kernel.rows):
            f.barrier()
            entry = self._entry(table, place, row)
            for index, part in enumerate(parts):
                for step, terms in enumerate(way.times(f, part, entry), row * held + index * way.group):
                    out[step] = self._xor([out[step], *terms])
        return out

    def _read_ahead(self, position: str, steps: int, inputs: list[str], bases: list[str]) -> None:
        """Read what is needed later: further on in these inputs, or, across, in those that come soon."""
        f, kernel = self.f, self.kernel
        size = steps * self.width
        for place, base in zip(inputs, bases, strict=True):
            later = f.address(base, kernel.ahead)
            if kernel.across:
                other = f.op(f"add i64 {place}, {_ACROSS}")
                source = f.pointer("%row", f.word("%context", f.op(f"add i64 {other}, {_INPUTS}")))
                wrapped = f.op(f"icmp uge i64 {other}, {f.word('%context', _COUNT)}")
                next_step = f.op(f"select i1 {wrapped}, i64 {size}, i64 0")
                later = f.address(f.address(source, position), next_step)
            if kernel.across or kernel.ahead:
                for line in range(0, size, 64):
                    f.prefetch(f.address(later, line))

    def _entry(self, table: str, place: str, row: int) -> list[str]:
        """Load what the constant of an input and a row became."""
        f = self.f
        index = f.op(f"add i64 {f.op(f'mul i64 {place}, {self.kernel.rows}')}, {row}")
        return self.way.entry(f, f.address(table, f.op(f"mul i64 {index}, {self.way.entry_bytes}")))
