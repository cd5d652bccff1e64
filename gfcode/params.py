"""What a code is made of, below any arithmetic: shard counts and block layouts."""

from dataclasses import dataclass
from operator import index as as_index
from typing import Literal

from gfcode.errors import ParameterError

__all__ = [
    "MAX_ELEMENTS",
    "MAX_PACKET_BYTES",
    "PACKET_BYTES",
    "WORD_SIZES",
    "Layout",
    "LayoutName",
    "check_matrix_size",
    "check_shard_counts",
]

LayoutName = Literal["packets", "words"]

#: Bytes of one packet in the default `packets` layout: one cache line.
PACKET_BYTES = 64
#: Most bytes of one packet: strips of more are no block that a machine has.
MAX_PACKET_BYTES = 1 << 40
#: Most elements of a parity matrix, 256 MiB of 32-bit ones: larger codes would use up memory before they encode a byte.
MAX_ELEMENTS = 1 << 26
#: Symbol widths that the `words` layout knows.
WORD_SIZES = (4, 8, 16, 32)


@dataclass(frozen=True, slots=True)
class Layout:
    """How the bytes of a block are symbols of GF(2^w).

    In `packets` a block is a row of strips; a strip is w packets; packet b holds bit b of 8 · `packet_bytes` symbols:
    bit i of byte p of packet b is bit b of symbol 8·p + i of the strip (Jerasure's layout).
    In `words` a block is a row of w-bit little-endian words; with w = 4 the low nibble of a byte comes first.

    Parameters
    ----------
    name : {"packets", "words"}
    w : int
        Bits per symbol.
    packet_bytes : int
        Bytes of a packet, a multiple of 8, at most 2^40. Fixed to 0 for `words`, which has no packets.

    Raises
    ------
    ParameterError
        If the layout does not exist for this w, or `packet_bytes` is not allowed.
    """

    name: LayoutName
    w: int
    packet_bytes: int = PACKET_BYTES

    def __post_init__(self) -> None:
        if self.name == "words":
            if self.w not in WORD_SIZES:
                sizes = ", ".join(map(str, WORD_SIZES))
                raise ParameterError(f"layout 'words' needs w in {sizes}, not {self.w}; use layout 'packets'")
            object.__setattr__(self, "packet_bytes", 0)
        elif self.name == "packets":
            try:
                object.__setattr__(self, "packet_bytes", as_index(self.packet_bytes))
            except TypeError:
                raise ParameterError(f"packet bytes must be an integer, not {self.packet_bytes!r}") from None
            if self.packet_bytes < 8 or self.packet_bytes % 8:
                raise ParameterError(f"packet bytes must be a positive multiple of 8, not {self.packet_bytes}")
            if self.packet_bytes > MAX_PACKET_BYTES:
                raise ParameterError(f"packet bytes must be at most {MAX_PACKET_BYTES}, not {self.packet_bytes}")
        else:
            raise ParameterError(f"unknown layout {self.name!r}; choose 'packets' or 'words'")

    @property
    def strip_bytes(self) -> int:
        """Bytes that a block length must be a multiple of: a strip of `packets`, the bytes of a word of `words`."""
        return self.w * self.packet_bytes if self.name == "packets" else max(1, self.w // 8)


def check_shard_counts(k: int, m: int, w: int) -> None:
    """Refuse shard counts that no MDS code over GF(2^w) has.

    Raises
    ------
    ParameterError
        If k < 1, m < 0, or k + m exceeds 2^w + 1, the longest non-trivial MDS code known (codes with m ≤ 1 exist at
        any length).
    """
    if k < 1:
        raise ParameterError(f"k must be at least 1, not {k}")
    if m < 0:
        raise ParameterError(f"m must be at least 0, not {m}")
    if m > 1 and k > 1 and k + m > 2**w + 1:
        raise ParameterError(
            f"k + m = {k + m} shards are too many for GF(2^{w}), which has room for {2**w + 1}; use a larger w"
        )


def check_matrix_size(k: int, m: int) -> None:
    """Refuse parity matrices that are too large to be built.

    Raises
    ------
    ParameterError
        If there are more than `MAX_ELEMENTS` elements (a matrix without rows counts as one with one).
    """
    if k * max(m, 1) > MAX_ELEMENTS:
        raise ParameterError(
            f"a parity matrix of {m} x {k} elements is too large; the limit is {MAX_ELEMENTS} elements, "
            f"use fewer shards"
        )
