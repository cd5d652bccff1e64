"""Byte ranges of the data, and the blocks that hold them."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index as as_index

from gfcode.compat.ec_errors import error

__all__ = ["Range", "ranges_of"]


@dataclass(frozen=True, slots=True)
class Range:
    """Bytes `begin` to `end`, the last not included, of data cut into blocks of `size` bytes."""

    begin: int
    end: int
    size: int

    def touched(self) -> range:
        """Blocks that hold bytes of it."""
        if self.begin >= self.end:
            return range(0)
        return range(self.begin // self.size, (self.end - 1) // self.size + 1)

    def cut(self, blocks: list[memoryview]) -> bytes:
        """Return the bytes of it, from the blocks that it touches."""
        if blocks:
            blocks[-1] = blocks[-1][: (self.end - 1) % self.size + 1]
            blocks[0] = blocks[0][self.begin % self.size :]
        return b"".join(blocks)


def ranges_of(given: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Check ranges (first byte, last byte); a last byte just before the first makes an empty one.

    Raises
    ------
    ECInvalidParameter
    """
    found = []
    for pair in given:
        try:
            begin, end = map(as_index, pair)
        except (TypeError, ValueError) as failure:
            raise error("ECInvalidParameter", f"a range is a pair of integers, not {pair!r}") from failure
        if begin < 0 or end < begin - 1:
            raise error(
                "ECInvalidParameter", f"range ({begin}, {end}) has no meaning: it goes from a first to a last byte"
            )
        found.append((begin, end))
    return found
