"""Layers of butterflies: (x, y) -> (x + t·y, y + x) to evaluate, the inverse to interpolate; see `matrix.subspaces`.

Two layers go together on four rows in registers, so that scratch is read and written half as often. Rows that are zero,
results that nobody wants, and factors that are zero, as those of the first points are, have functions that leave these
out.
"""

from dataclasses import dataclass

from gfcode.kernels.simd.fft_vectors import Vectors, Writer

__all__ = ["LAYERS", "Layer", "LayerWriter"]


@dataclass(frozen=True, slots=True)
class Layer:
    """One function.

    Parameters
    ----------
    inverse : bool
        Whether to interpolate.
    radix : {2, 4}
        Rows that go together, a step apart: one layer, or two.
    parts : int
        To interpolate, how many of the rows, from the first, are not zero; to evaluate, how many are wanted.
    outside : bool
        Whether rows are read from input blocks (to interpolate), or written to output blocks. The step is then 1.
    first : bool
        For the group of butterflies that starts at point 0, where the factors of its first rows are zero.
    add : bool
        Whether results are added to the rows that they are written to.
    """

    inverse: bool
    radix: int
    parts: int
    outside: bool = False
    first: bool = False
    add: bool = False

    @property
    def name(self) -> str:
        """Name of the function."""
        flags = [letter for letter, flag in (("o", self.outside), ("z", self.first), ("a", self.add)) if flag]
        return f"{'interpolate' if self.inverse else 'evaluate'}{self.radix}p{self.parts}{''.join(flags)}"


#: All functions that there are.
LAYERS = (
    *(Layer(True, 4, parts, outside=True) for parts in range(1, 5)),
    *(Layer(True, radix, parts, add=add) for radix in (2, 4) for parts in range(1, radix + 1) for add in (False, True)),
    *(Layer(True, radix, parts, first=True) for radix in (2, 4) for parts in range(1, radix + 1)),
    *(
        Layer(False, radix, parts, outside=outside, first=first)
        for radix, outside in ((2, False), (4, False), (4, True))
        for parts in range(1, radix + 1)
        for first in (False, True)
    ),
)


class LayerWriter(Writer):
    """Writes the functions of layers."""

    def functions(self) -> list[str]:
        """Return the functions' LLVM texts."""
        return [self._function(layer) for layer in LAYERS]

    def _function(self, layer: Layer) -> str:
        f = self.start(layer.name)
        distance = f.op(f"mul i64 {self.step}, {self.row}")
        carried = [("ptr", self.factors), ("ptr", self.base), ("ptr", self.into), ("ptr", self.places)]
        with f.loop("0", self.groups, 1, carried) as group:
            factors, base, into, places = group.values
            entries = self._entries(layer, factors)
            if layer.outside:
                blocks = [self.block(f.word(places, row), output=not layer.inverse) for row in range(layer.parts)]
                # The step is 1.
                near = [
                    f.address(into if layer.inverse else base, f.op(f"mul i64 {self.row}, {row}")) for row in range(4)
                ]
                self._rows(layer, *((blocks, near) if layer.inverse else (near, blocks)), entries)
            else:
                with f.loop("0", self.step, 1, [("ptr", base), ("ptr", into)]) as inner:
                    sources, targets = (self._apart(start, distance, layer.radix) for start in inner.values)
                    self._rows(layer, sources, targets, entries)
                    inner.carry([f.address(start, self.row) for start in inner.values])
            further = f.op(f"mul i64 {distance}, {layer.radix}")
            following = f.op(f"getelementptr i64, ptr {places}, i64 4")
            used = (3 if layer.radix == 4 else 1) * self.way.entry_bytes
            group.carry([f.address(factors, used), f.address(base, further), f.address(into, further), following])
        return f.text()

    def _entries(self, layer: Layer, factors: str) -> list[list[str] | None]:
        """Factors of a group: of the first and the second pair of rows, and of rows two steps apart."""
        if layer.radix == 2:
            return [None if layer.first else self.entry(0, factors)]
        return [None if layer.first and number != 1 else self.entry(number, factors) for number in range(3)]

    def _apart(self, start: str, distance: str, count: int) -> list[str]:
        pointers = [start]
        while len(pointers) < count:
            pointers.append(self.f.address(pointers[-1], distance))
        return pointers

    def _rows(
        self,
        layer: Layer,
        sources: list[str],
        targets: list[str],
        entries: list[list[str] | None],
    ) -> None:
        """Take a piece of some rows through the layer."""
        f = self.f
        read = layer.parts if layer.inverse else layer.radix
        written = layer.radix if layer.inverse else layer.parts
        from_blocks, to_blocks = layer.outside and layer.inverse, layer.outside and not layer.inverse
        with f.loop("0", self.length, self.stride) as at:
            data: list[Vectors] = [None] * layer.radix
            for row in range(read):
                source = f.address(sources[row], at.index) if from_blocks else self.inside(sources[row], at.index)
                data[row] = self.load(source, outside=from_blocks)
            made = self._interpolate(data, entries) if layer.inverse else self._evaluate(data, entries)
            for row in range(written):
                target, values = targets[row], made[row]
                target = f.address(target, at.index) if to_blocks else self.inside(target, at.index)
                if values is None:
                    continue  # never: a row is left at zero only where all are
                if layer.add:
                    values = self.sum(values, self.load(target))
                self.store(target, values, outside=to_blocks)

    def _evaluate(self, data: list[Vectors], entries: list[list[str] | None]) -> list[Vectors]:
        if len(data) == 2:
            return list(self._butterfly(data[0], data[1], entries[0]))
        a, b, c, d = data
        a, c = self._butterfly(a, c, entries[2])
        b, d = self._butterfly(b, d, entries[2])
        a, b = self._butterfly(a, b, entries[0])
        c, d = self._butterfly(c, d, entries[1])
        return [a, b, c, d]

    def _interpolate(self, data: list[Vectors], entries: list[list[str] | None]) -> list[Vectors]:
        if len(data) == 2:
            return list(self._unbutterfly(data[0], data[1], entries[0]))
        a, b, c, d = data
        a, b = self._unbutterfly(a, b, entries[0])
        c, d = self._unbutterfly(c, d, entries[1])
        a, c = self._unbutterfly(a, c, entries[2])
        b, d = self._unbutterfly(b, d, entries[2])
        return [a, b, c, d]

    def _butterfly(self, x: Vectors, y: Vectors, entry: list[str] | None) -> tuple[Vectors, Vectors]:
        x = self.add_product(x, y, entry)
        return x, self.add(y, x)

    def _unbutterfly(self, x: Vectors, y: Vectors, entry: list[str] | None) -> tuple[Vectors, Vectors]:
        y = self.add(y, x)
        return self.add_product(x, y, entry), y
