"""Wide codes of the family `fft` in the `words` layout: parity in O(n log n) by additive Fourier transforms.

The parity matrix is a Cauchy matrix whose points are consecutive (`gfcode.matrix.generator.fft`), so that the code is
polynomial interpolation: with M the power of two from m on, each M data blocks are the values of a polynomial of degree
below M at the points of a coset of {0 .. M - 1}, an inverse transform finds its coefficients in the basis of Lin, Chung
and Han (FOCS 2014), the coefficients of all cosets are summed, and one transform evaluates the sum at 0 .. M - 1, which
are the parities (Lin, Al-Naffouri, Han, Chung 2016, "Novel polynomial basis with fast Fourier transform").

A transform goes through log2(M) layers of butterflies (x, y) -> x + t·y, y + x, two layers at a time on four vectors in
registers. A piece of every block passes through all layers in scratch that stays in the nearest cache.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gfcode.gf import Field
from gfcode.kernels.simd.assembly import Function
from gfcode.kernels.simd.products import multiplication
from gfcode.kernels.simd.target import Target

__all__ = ["FftKernel", "bind", "skews"]

#: Places in a kernel's context, in 8-byte words: log2(M), M, outputs, cosets, bytes of a piece, where inputs, outputs
#: and factors start (bytes).
_LEVELS, _SIZE, _OUTPUTS, _COSETS, _PIECE, _INPUTS_AT, _OUTPUTS_AT, _FACTORS_AT, _HEADER = range(9)
#: Bytes of scratch that the pieces of M blocks take together.
_SCRATCH = 16 << 10
_MAX_PIECE = 512
#: Vectors of each block that go through two layers together.
_TOGETHER = 4


@dataclass(frozen=True, slots=True)
class FftKernel:
    """One kernel: see the module.

    Parameters
    ----------
    w : int
        Bits of a symbol: 4, 8 or 16. Kernels for 4 and 8 are the same.
    streaming : bool
        Whether outputs bypass the caches; they must then be 64-byte aligned.
    """

    w: int
    streaming: bool = False

    @property
    def name(self) -> str:
        """Symbol of the kernel."""
        return f"fft{16 if self.w == 16 else 8}{'n' if self.streaming else ''}"

    @property
    def symbols(self) -> tuple[str, ...]:
        """No further functions."""
        return ()

    def emit(self, target: Target) -> str:
        """Return the kernel's LLVM text."""
        return _Writer(self, target).text()


def skews(field: Field, levels: int, points: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Values of the normalised subspace polynomials s_0 .. s_(levels-1) at some points; shape (levels, points).

    s_i vanishes on {0 .. 2^i - 1} and is 1 at 2^i; s_(i+1)(x) is s_i(x) · (s_i(x) + s_i(2^i)) before it is normalised.
    """
    values = points.astype(field.dtype)
    units = (1 << np.arange(levels, dtype=np.int64)).astype(field.dtype)
    result = []
    for level in range(levels):
        result.append(field.div(values, units[level]).astype(np.int64))
        values = field.mul(values, values ^ units[level])
        units = field.mul(units, units ^ units[level])
    return np.array(result, np.int64).reshape(levels, len(points))


def _factors(field: Field, levels: int, base: int, groups: int | None = None) -> list[int]:
    """Factors of the inverse transform on base + {0 .. 2^levels - 1}, in the order in which it uses them.

    `groups` limits the transform to the groups of butterflies that hold the first so many points.
    """
    table = skews(field, levels, base + np.arange(1 << levels, dtype=np.int64)).tolist()
    size = 1 << levels if groups is None else groups
    order: list[int] = []
    for level in range(0, levels - 1, 2):
        step = 1 << level
        for start in range(0, size, 4 * step):
            order += [table[level][start], table[level][start + 2 * step], table[level + 1][start]]
    if levels % 2:
        order.append(table[levels - 1][0])
    return order


def bind(field: Field, target: Target, *, inputs: Sequence[int], outputs: Sequence[int]) -> npt.NDArray[np.int64]:
    """Build the context of a kernel.

    Parameters
    ----------
    inputs, outputs : sequences of int
        Places in the row of block addresses: all data, all parities.
    """
    levels = max(1, (len(outputs) - 1).bit_length())
    size = 1 << levels
    cosets = -(-len(inputs) // size)
    factors: list[int] = []
    for coset in range(cosets):
        factors += _factors(field, levels, size * (coset + 1))
    factors += _backwards(_factors(field, levels, 0, len(outputs)), levels, len(outputs))
    table = multiplication(field.w, target).table(field, np.array(factors, np.int64)).reshape(-1)
    places = [*inputs, *([-1] * (cosets * size - len(inputs)))]
    made = [*outputs, *([-1] * (size - len(outputs)))]
    start = -(-(_HEADER + len(places) + len(made)) // 2) * 2
    context = np.zeros(start + table.size // 8, np.int64)
    step = _TOGETHER * target.vector_bytes
    piece = max(step, min(_MAX_PIECE, _SCRATCH // size // step * step))
    context[:_HEADER] = (
        *(levels, size, len(outputs), cosets, piece),
        *(8 * _HEADER, 8 * (_HEADER + len(places)), 8 * start),
    )
    context[_HEADER : _HEADER + len(places)] = places
    context[_HEADER + len(places) : _HEADER + len(places) + len(made)] = made
    context[start:] = table.view(np.int64)
    return context


def _backwards(factors: list[int], levels: int, outputs: int) -> list[int]:
    """Factors of the inverse transform in the order in which the transform uses them: by layers, from the last."""
    layers: list[list[int]] = []
    place = 0
    for level in range(0, levels - 1, 2):
        count = 3 * -(-outputs // (4 << level))
        layers.append(factors[place : place + count])
        place += count
    layers.append(factors[place:])
    return [factor for layer in reversed(layers) for factor in layer]


class _Writer:
    """Writes one kernel for one target.

    Layers are functions of their own, so that each has all general registers for its addresses: one for whole steps of
    several vectors, and one for single vectors, of which pieces at the end of a block are made.
    """

    def __init__(self, kernel: FftKernel, target: Target) -> None:
        self.name, self.target, self.streaming = kernel.name, target, kernel.streaming
        self.kind, self.width = target.vector, target.vector_bytes
        self.way = multiplication(kernel.w, target)
        self.f = Function("", [])
        # Four blocks in registers, beside three factors.
        self.together = _TOGETHER if target.registers == 32 and kernel.w != 16 else self.way.group
        self.stride = self.together * self.width

    def text(self) -> str:
        parts = []
        for vectors in sorted({1, self.together}):
            for edge in (False, True):
                for layer in (self._layer4, self._layer2):
                    parts += [layer(_Layer(vectors, forward=False, edge=edge, add=add)) for add in (False, True)]
                    parts.append(layer(_Layer(vectors, forward=True, edge=edge)))
            parts.append(self._piece(vectors))
        return "\n".join([*parts, self._entry()])

    def _entry(self) -> str:
        f = self.f = Function(self.name, [("ptr", "context"), ("ptr", "row"), ("i64", "begin"), ("i64", "end")])
        size, piece = f.word("%context", _SIZE), f.word("%context", _PIECE)
        room = f.op(f"mul i64 {size}, {piece}")
        # Scratch: sums, one coset's coefficients, zeros for blocks that are not there, a place to write such blocks to.
        parts = [f.op(f"alloca i8, i64 {count}, align 64") for count in (room, room, piece, piece)]
        addresses = f.op(f"alloca ptr, i64 {size}, align 64")
        with f.loop("0", piece, self.width) as at:
            f.store(self.kind, "zeroinitializer", f.address(parts[2], at.index), self.width)
        scratch = f.op("alloca [5 x ptr], align 64")
        for place, pointer in enumerate([*parts, addresses]):
            f.store("ptr", pointer, f.address(scratch, 8 * place), 8)

        def call(position: str, length: str, vectors: int) -> None:
            name = f"{self.name}_piece{vectors}"
            f.emit(f"call void @{name}(ptr %context, ptr %row, ptr {scratch}, i64 {position}, i64 {length})")

        # Whole pieces, what is left in whole steps and in whole vectors, and a vector that ends where the block ends.
        rest = f.op(f"urem i64 {f.op('sub i64 %end, %begin')}, {piece}")
        middle = f.op(f"sub i64 %end, {rest}")
        steps = f.op(f"and i64 {rest}, {-self.stride}")
        vectors = f.op(f"and i64 {f.op(f'sub i64 {rest}, {steps}')}, {-self.width}")
        done = f.op(f"add i64 {middle}, {steps}")
        with f.when(f.op(f"icmp ult i64 %begin, {middle}")), f.loop("%begin", middle, piece) as position:
            call(position.index, piece, self.together)
        with f.when(f.op(f"icmp ne i64 {steps}, 0")):
            call(middle, steps, self.together)
        with f.when(f.op(f"icmp ne i64 {vectors}, 0")):
            call(done, vectors, 1)
        with f.when(f.op(f"icmp ne i64 {f.op(f'add i64 {done}, {vectors}')}, %end")):
            call(f.op(f"sub i64 %end, {self.width}"), str(self.width), 1)
        if self.streaming and self.target.x86:
            f.emit("fence seq_cst")  # a reader in another thread may not overtake streaming stores
        return f.text()

    def _piece(self, vectors: int) -> str:
        """Write the function that takes `length` bytes of every block, from `position` on, through all layers."""
        f = self.f = Function(
            f"{self.name}_piece{vectors}",
            [("ptr", "context"), ("ptr", "row"), ("ptr", "scratch"), ("i64", "position"), ("i64", "length")],
            convention="internal",
            attributes="nounwind noinline",
        )
        levels, size, outputs = (f.word("%context", place) for place in (_LEVELS, _SIZE, _OUTPUTS))
        piece = f.word("%context", _PIECE)
        sums, work, zeros, trash, addresses = (f.pointer("%scratch", place) for place in range(5))
        transform = _Transform(self, vectors, levels, size, outputs, piece, addresses)
        start = f.address("%context", f.word("%context", _FACTORS_AT))
        inputs = f.address("%context", f.word("%context", _INPUTS_AT))
        with f.loop("0", f.word("%context", _COSETS), 1, [("ptr", start)]) as coset:
            places = f.address(inputs, f.op(f"mul i64 {f.op(f'mul i64 {coset.index}, {size}')}, 8"))
            self._addresses(places, addresses, size, zeros)
            coset.carry([transform.inverse(sums, work, f.op(f"icmp eq i64 {coset.index}, 0"), coset.values[0])])
        self._addresses(f.address("%context", f.word("%context", _OUTPUTS_AT)), addresses, size, trash)
        transform.forward(sums, coset.values[0])
        return f.text()

    def _addresses(self, places: str, addresses: str, count: str, stand_in: str) -> None:
        """Find where each block of a transform lies; `stand_in` for those that are not there."""
        f = self.f
        with f.loop("0", count) as block:
            place = f.word(places, block.index)
            missing = f.op(f"icmp slt i64 {place}, 0")
            there = f.op(f"select i1 {missing}, i64 0, i64 {place}")
            address = f.address(f.pointer("%row", there), "%position")
            address = f.op(f"select i1 {missing}, ptr {stand_in}, ptr {address}")
            f.store("ptr", address, f.op(f"getelementptr ptr, ptr {addresses}, i64 {block.index}"), 8)

    def _start(self, radix: int, layer: "_Layer") -> Function:
        """Start the function of a layer: `groups` groups of radix · `step` blocks; those `step` apart go together."""
        self.f = Function(
            f"{self.name}_{layer.name(radix)}",
            [("ptr", name) for name in ("base", "into", "addresses", "factors")]
            + [("i64", name) for name in ("step", "groups", "piece", "length")],
            convention="internal",
            attributes="nounwind noinline",
        )
        return self.f

    def _layer4(self, layer: "_Layer") -> str:
        """Write two layers at a time, three factors to a group."""
        f = self._start(4, layer)
        bytes_ = self.way.entry_bytes
        distance = f.op("mul i64 %step, %piece")
        carried = [("ptr", "%factors"), ("ptr", "%base"), ("ptr", "%into")]
        with f.loop("0", "%groups", 1, carried) as group:
            factors = group.values[0]
            entries = [self.way.entry(f, f.address(factors, place * bytes_)) for place in range(3)]
            with f.loop("0", "%step", 1, [("ptr", start) for start in group.values[1:]]) as inner:
                sources, targets = (self._apart(start, distance, 4) for start in inner.values)
                if layer.edge:  # where the step is 1
                    number = f.op(f"shl i64 {group.index}, 2")
                    outside = [f.pointer("%addresses", f.op(f"add i64 {number}, {place}")) for place in range(4)]
                    sources, targets = (sources, outside) if layer.forward else (outside, targets)
                self._vectors(layer, sources, targets, self._evaluate if layer.forward else self._interpolate, entries)
                inner.carry([f.address(start, "%piece") for start in inner.values])
            further = f.op(f"shl i64 {distance}, 2")
            group.carry([f.address(factors, 3 * bytes_), *(f.address(start, further) for start in group.values[1:])])
        return f.text()

    def _layer2(self, layer: "_Layer") -> str:
        """Write the last layer alone: blocks half a transform apart, one factor. At an edge there are only two."""
        f = self._start(2, layer)
        entries = [self.way.entry(f, "%factors")]
        distance = f.op("mul i64 %step, %piece")
        with f.loop("0", "%step", 1, [("ptr", "%base"), ("ptr", "%into")]) as block:
            sources, targets = (self._apart(start, distance, 2) for start in block.values)
            if layer.edge:
                outside = [f.pointer("%addresses", place) for place in range(2)]
                sources, targets = (sources, outside) if layer.forward else (outside, targets)
            self._vectors(layer, sources, targets, self._evaluate if layer.forward else self._interpolate, entries)
            block.carry([f.address(start, "%piece") for start in block.values])
        return f.text()

    def _apart(self, start: str, distance: str, count: int) -> list[str]:
        pointers = [start]
        while len(pointers) < count:
            pointers.append(self.f.address(pointers[-1], distance))
        return pointers

    def _vectors(
        self,
        layer: "_Layer",
        sources: Sequence[str],
        targets: Sequence[str],
        step: Callable[[list[list[str]], list[list[str]]], list[list[str]]],
        entries: list[list[str]],
    ) -> None:
        """Take a piece of some blocks through a step."""
        f = self.f
        with f.loop("0", "%length", layer.vectors * self.width) as at:
            data = [self._load(f.address(source, at.index), layer.vectors) for source in sources]
            if layer.edge and not layer.forward:
                for source in sources:  # the next piece, which comes after as many bytes of all other blocks
                    ahead = f.address(f.address(source, at.index), "%piece")
                    for line in range(0, layer.vectors * self.width, 64):
                        f.prefetch(f.address(ahead, line), near=False)
            for target, values in zip(targets, step(data, entries), strict=True):
                pointer = f.address(target, at.index)
                made = values[: layer.vectors]
                if layer.add:
                    made = self._add(made, self._load(pointer, layer.vectors)[: layer.vectors])
                # Single vectors are those at a block's end, which need not be aligned.
                whole = layer.edge and layer.forward and layer.vectors > 1
                self._store(pointer, made, streaming=self.streaming and whole)

    def _evaluate(self, data: list[list[str]], entries: list[list[str]]) -> list[list[str]]:
        if len(data) == 2:
            return list(self._butterfly(data[0], data[1], entries[0]))
        a, b, c, d = data
        a, c = self._butterfly(a, c, entries[2])
        b, d = self._butterfly(b, d, entries[2])
        a, b = self._butterfly(a, b, entries[0])
        c, d = self._butterfly(c, d, entries[1])
        return [a, b, c, d]

    def _interpolate(self, data: list[list[str]], entries: list[list[str]]) -> list[list[str]]:
        if len(data) == 2:
            return list(self._unbutterfly(data[0], data[1], entries[0]))
        a, b, c, d = data
        a, b = self._unbutterfly(a, b, entries[0])
        c, d = self._unbutterfly(c, d, entries[1])
        a, c = self._unbutterfly(a, c, entries[2])
        b, d = self._unbutterfly(b, d, entries[2])
        return [a, b, c, d]

    def _butterfly(self, x: list[str], y: list[str], entry: list[str]) -> tuple[list[str], list[str]]:
        x = self._add_product(x, y, entry)
        return x, self._add(y, x)

    def _unbutterfly(self, x: list[str], y: list[str], entry: list[str]) -> tuple[list[str], list[str]]:
        y = self._add(y, x)
        return self._add_product(x, y, entry), y

    def _add(self, x: list[str], y: list[str]) -> list[str]:
        return [self.f.op(f"xor {self.kind} {a}, {b}") for a, b in zip(x, y, strict=True)]

    def _add_product(self, x: list[str], y: list[str], entry: list[str]) -> list[str]:
        """Add entry · y to x."""
        f, way = self.f, self.way
        result: list[str] = []
        for start in range(0, len(y), way.group):
            terms = way.times(f, way.split(f, y[start : start + way.group]), entry)
            sums = []
            for group in terms:
                total = group[0]
                for term in group[1:]:
                    total = f.op(f"xor {self.kind} {total}, {term}")
                sums.append(total)
            result += way.join(f, sums)
        return self._add(x, result)

    def _load(self, pointer: str, vectors: int) -> list[str]:
        """Load some vectors; a lone one twice where the multiplication takes two."""
        values = [self.f.load(self.kind, self.f.address(pointer, step * self.width)) for step in range(vectors)]
        return values * (self.way.group // vectors) if vectors < self.way.group else values

    def _store(self, pointer: str, values: Sequence[str], *, streaming: bool) -> None:
        for step, value in enumerate(values):
            align = self.width if streaming else 1
            self.f.store(self.kind, value, self.f.address(pointer, step * self.width), align, streaming=streaming)


@dataclass(frozen=True, slots=True)
class _Layer:
    """Which function of a layer: for how many vectors at a time, in which direction, and where its blocks are.

    At an edge, the inputs of an inverse transform, or the outputs of a transform, are blocks outside the scratch. Where
    results are added, it is to what is there.
    """

    vectors: int
    forward: bool
    edge: bool
    add: bool = False

    def name(self, radix: int) -> str:
        """Return the symbol, less the kernel's."""
        flags = ("f" if self.forward else "i") + ("e" if self.edge else "") + ("a" if self.add else "")
        return f"layer{radix}x{self.vectors}{flags}"


class _Transform:
    """Writes the calls of layers that make up a transform whose size is known at run time."""

    def __init__(
        self, writer: _Writer, vectors: int, levels: str, size: str, outputs: str, piece: str, addresses: str
    ) -> None:
        self.writer, self.f, self.vectors = writer, writer.f, vectors
        self.size, self.outputs, self.piece, self.addresses = size, outputs, piece, addresses
        f = self.f
        self.entry = writer.way.entry_bytes
        self.odd = f.op(f"icmp ne i64 {f.op(f'and i64 {levels}, 1')}, 0")
        self.even = f.op(f"xor i1 {self.odd}, true")
        self.pairs = f.op(f"lshr i64 {levels}, 1")
        self.lone = f.op(f"icmp eq i64 {self.pairs}, 0")
        self.some = f.op(f"xor i1 {self.lone}, true")
        self.quarter, self.half = f.op(f"lshr i64 {size}, 2"), f.op(f"lshr i64 {size}, 1")

    def inverse(self, sums: str, work: str, first: str, factors: str) -> str:
        """Transform the blocks at the addresses to coefficients and add them to `sums`; return the factors after.

        If `first`, `sums` are overwritten.
        """
        f = self.f
        base = f.op(f"select i1 {first}, ptr {sums}, ptr {work}")
        others = f.op(f"xor i1 {first}, true")

        def last(radix: int, step: str, groups: str, factor: str, *, edge: bool) -> None:
            for condition, add in ((first, False), (others, True)):
                with f.when(condition):
                    layer = _Layer(self.vectors, forward=False, edge=edge, add=add)
                    self._call(radix, layer, base, sums, step, groups, factor)

        def middle(level: str, factor: str, *, edge: bool) -> str:
            step, groups = f.op(f"shl i64 1, {level}"), f.op(f"lshr i64 {self.quarter}, {level}")
            layer = _Layer(self.vectors, forward=False, edge=edge)
            self._call(4, layer, base, base, step, groups, factor)
            return f.address(factor, f.op(f"mul i64 {groups}, {3 * self.entry}"))

        with f.when(self.lone):
            last(2, "1", "1", factors, edge=True)
        with f.when(self.some, [("ptr", factors)]) as several:
            final = f.op(f"sub i64 {self.pairs}, {f.op(f'zext i1 {self.even} to i64')}")  # where the sums are made
            with f.when(f.op(f"icmp ne i64 {final}, 0"), [("ptr", factors)]) as begun:
                factor = middle("0", factors, edge=True)
                with f.when(f.op(f"icmp ugt i64 {final}, 1"), [("ptr", factor)]) as more:
                    with f.loop("1", final, 1, [("ptr", factor)]) as pair:
                        pair.carry([middle(f.op(f"shl i64 {pair.index}, 1"), pair.values[0], edge=False)])
                    more.carry(pair.values)
                begun.carry(more.values)
            factor = begun.values[0]
            with f.when(self.odd):
                last(2, self.half, "1", factor, edge=False)
            with f.when(self.even, [("ptr", factor)]) as ended:
                only = f.op(f"icmp eq i64 {final}, 0")
                with f.when(only):
                    last(4, "1", "1", factor, edge=True)
                with f.when(f.op(f"xor i1 {only}, true")):
                    last(4, self.quarter, "1", factor, edge=False)
                ended.carry([f.address(factor, 3 * self.entry)])
            several.carry(ended.values)
        return f.address(several.values[0], f.op(f"select i1 {self.odd}, i64 {self.entry}, i64 0"))

    def forward(self, sums: str, factors: str) -> None:
        """Evaluate the summed coefficients and write them to the blocks at the addresses."""
        f = self.f
        inside = _Layer(self.vectors, forward=True, edge=False)
        edge = _Layer(self.vectors, forward=True, edge=True)
        with f.when(self.lone):
            self._call(2, edge, sums, sums, "1", "1", factors)
        with f.when(self.some):
            with f.when(self.odd):
                self._call(2, inside, sums, sums, self.half, "1", factors)
            factor = f.address(factors, f.op(f"select i1 {self.odd}, i64 {self.entry}, i64 0"))
            with f.when(f.op(f"icmp ugt i64 {self.pairs}, 1"), [("ptr", factor)]) as more:
                with f.loop("1", self.pairs, 1, [("ptr", factor)]) as turn:
                    level = f.op(f"shl i64 {f.op(f'sub i64 {self.pairs}, {turn.index}')}, 1")
                    groups = self._groups(f.op(f"shl i64 4, {level}"))
                    self._call(4, inside, sums, sums, f.op(f"shl i64 1, {level}"), groups, turn.values[0])
                    turn.carry([f.address(turn.values[0], f.op(f"mul i64 {groups}, {3 * self.entry}"))])
                more.carry(turn.values)
            self._call(4, edge, sums, sums, "1", self._groups("4"), more.values[0])

    def _groups(self, size: str) -> str:
        """How many groups of `size` points hold all outputs."""
        f = self.f
        most = f.op(f"sub i64 {size}, 1")
        return f.op(f"udiv i64 {f.op(f'add i64 {self.outputs}, {most}')}, {size}")

    def _call(self, radix: int, layer: _Layer, base: str, into: str, step: str, groups: str, factors: str) -> None:
        pointers = f"ptr {base}, ptr {into}, ptr {self.addresses}, ptr {factors}"
        numbers = f"i64 {step}, i64 {groups}, i64 {self.piece}, i64 %length"
        self.f.emit(f"call void @{self.writer.name}_{layer.name(radix)}({pointers}, {numbers})")
