"""What decoding does beside butterflies: rows are set to zero, summed with blocks and scaled, and scaled into blocks."""

from gfcode.kernels.simd.fft_vectors import Writer

__all__ = ["SCALINGS", "ScalingWriter"]

#: All functions that there are: zeros to `groups` rows; factor · (row + block); factor · block to a row; factor · row to
#: a block. Places are the blocks of `groups` rows in turn, for the last one rows and blocks in turn.
SCALINGS = ("clear", "merge", "take", "give")


class ScalingWriter(Writer):
    """Writes the functions."""

    def functions(self) -> list[str]:
        """Return the functions' LLVM texts."""
        return [self._clear(), self._merge("merge"), self._merge("take"), self._give()]

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
                total = self.add(self.load(target), values) if name == "merge" else values
                scaled = self.add_product(None, total, entry)
                assert scaled is not None
                self.store(target, scaled)
            following = f.op(f"getelementptr i64, ptr {places}, i64 1")
            row.carry([f.address(factors, self.way.entry_bytes), f.address(into, self.row), following])
        return f.text()

    def _give(self) -> str:
        f = self.start("give")
        with f.loop("0", self.groups, 1, [("ptr", self.factors), ("ptr", self.places)]) as row:
            factors, places = row.values
            entry = self.entry(0, factors)
            source = f.address(self.base, f.op(f"mul i64 {f.word(places, 0)}, {self.row}"))
            block = self.block(f.word(places, 1), output=True)
            with f.loop("0", self.length, self.stride) as at:
                scaled = self.add_product(None, self.load(self.inside(source, at.index)), entry)
                assert scaled is not None
                self.store(f.address(block, at.index), scaled, outside=True)
            following = f.op(f"getelementptr i64, ptr {places}, i64 2")
            row.carry([f.address(factors, self.way.entry_bytes), following])
        return f.text()
