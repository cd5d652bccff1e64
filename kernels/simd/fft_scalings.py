"""What goes on beside butterflies: rows are cleared, summed with blocks and scaled, and scaled into blocks."""

from gfcode.kernels.simd.fft_vectors import Writer

__all__ = ["SCALINGS", "ScalingWriter"]

#: All functions that there are: zeros to `groups` rows; factor · (row + block) to a row, for `groups` in turn; factor ·
#: block to a row; factor · row to a block, for rows (in bytes) and blocks at the places; what `_ask` says, twice.
SCALINGS = ("clear", "merge", "take", "give", "ask", "expect")


class ScalingWriter(Writer):
    """Writes the functions."""

    def functions(self) -> list[str]:
        """Return the functions' LLVM texts."""
        return [
            self._clear(),
            self._merge("merge"),
            self._merge("take"),
            self._give(),
            self._ask("ask"),
            self._ask("expect"),
        ]

    def _clear(self) -> str:
        f = self.start("clear")
        with f.loop("0", self.groups, 1, [("ptr", self.into)]) as row:
            with f.loop("0", self.length, self.stride) as at:
                zeros = ["zeroinitializer"] * max(self.vectors, self.way.group)
                self.store(self.inside(row.values[0], at.index), zeros)
            row.carry([f.address(row.values[0], self.row)])
        return f.text()

    def _merge(self, name: str) -> str:
        f = self.start(name)
        carried = [("ptr", self.factors), ("ptr", self.into), ("ptr", self.places)]
        with f.loop("0", self.groups, 1, carried) as row:
            factors, into, places = row.values
            entry = self.entry(0, factors)
            block = self.block(f.word(places, 0), output=False)
            with f.loop("0", self.length, self.stride) as at:
                target = self.inside(into, at.index)
                values = self.load(f.address(block, at.index), outside=True)
                if name == "merge":
                    values = self.sum(self.load(target), values)
                self.store(target, self.product(values, entry))
            following = f.op(f"getelementptr i64, ptr {places}, i64 1")
            row.carry([f.address(factors, self.way.entry_bytes), f.address(into, self.row), following])
        return f.text()

    def _give(self) -> str:
        f = self.start("give")
        with f.loop("0", self.groups, 1, [("ptr", self.factors), ("ptr", self.places)]) as row:
            factors, places = row.values
            entry = self.entry(0, factors)
            source = f.address(self.base, f.word(places, 0))
            block = self.block(f.word(places, 1), output=True)
            with f.loop("0", self.length, self.stride) as at:
                scaled = self.product(self.load(self.inside(source, at.index)), entry)
                self.store(f.address(block, at.index), scaled, outside=True)
            following = f.op(f"getelementptr i64, ptr {places}, i64 2")
            row.carry([f.address(factors, self.way.entry_bytes), following])
        return f.text()

    def _ask(self, name: str) -> str:
        """Ask for lines of blocks: of inputs `step` pieces on, to read, or of this piece's outputs, to write."""
        f = self.start(name)
        write = name == "expect"
        if write and self.streaming:  # which does not read what it writes
            return f.text()
        with f.loop("0", self.groups, 1, [("ptr", self.places)]) as row:
            block = self.block(f.word(row.values[0], 0), output=write)
            block = f.address(block, f.op(f"mul i64 {self.step}, {self.length}"))
            with f.loop("0", self.length, 64) as at:
                f.prefetch(f.address(block, at.index), write=write, near=False)
            row.carry([f.op(f"getelementptr i64, ptr {row.values[0]}, i64 1")])
        return f.text()
