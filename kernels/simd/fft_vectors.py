"""What functions of the transforms' kernel share: their frame, vectors in the order of scratch, and butterflies."""

from collections.abc import Sequence
from functools import reduce
from typing import TypeAlias

from gfcode.kernels.simd.assembly import Function
from gfcode.kernels.simd.products import multiplication
from gfcode.kernels.simd.target import Target

__all__ = ["Some", "Vectors", "Writer"]

Some: TypeAlias = list[str]
#: Vectors of one row; None for zeros.
Vectors: TypeAlias = Some | None


class Writer:
    """Writes functions that take a frame and a record, for a number of vectors at a time.

    The frame says where a piece is: scratch, tables of input and output blocks, position in the blocks, length, where
    the row for what nobody wants is, places, factors. The record says what to do: number of the operation, where its
    first row is and where that goes to, step, groups, where its factors are (all in bytes) and its places (in words),
    and bytes from a row to the next.

    Parameters
    ----------
    prefix : str
        Of functions' names.
    w : int
        Bits of a symbol.
    target : Target
    vectors : int
        Vectors of a row at a time.
    streaming : bool
        Whether outputs bypass the caches.
    """

    def __init__(self, prefix: str, w: int, target: Target, vectors: int, *, streaming: bool) -> None:
        self.prefix, self.target, self.vectors, self.streaming = prefix, target, vectors, streaming
        self.kind, self.width = target.vector, target.vector_bytes
        self.way = multiplication(w, target)
        self.stride = vectors * self.width
        self.f = Function("", [])

    def start(self, name: str) -> Function:
        """Start a function, and load what its frame and record say."""
        self.f = f = Function(
            self.prefix + name,
            [("ptr", "frame"), ("ptr", "record")],
            convention="internal",
            attributes="nounwind noinline",
        )
        self.scratch = f.pointer("%frame", 0)
        self.inputs, self.outputs = f.pointer("%frame", 1), f.pointer("%frame", 2)
        self.position, self.length = f.word("%frame", 3), f.word("%frame", 4)
        self.base = f.address(self.scratch, f.word("%record", 1))
        self.into = f.address(self.scratch, f.word("%record", 2))
        self.row = f.word("%record", 7)
        self.step, self.groups = f.word("%record", 3), f.word("%record", 4)
        self.factors = f.address(f.pointer("%frame", 7), f.word("%record", 5))
        self.places = f.op(f"getelementptr i64, ptr {f.pointer('%frame', 6)}, i64 {f.word('%record', 6)}")
        return f

    def block(self, place: str, *, output: bool) -> str:
        """Where the piece of a block is; for one that is not there (-1), the row of zeros, or the one to write to."""
        f = self.f
        table = self.outputs if output else self.inputs
        other = f.address(self.scratch, f.word("%frame", 5)) if output else self.scratch
        missing = f.op(f"icmp slt i64 {place}, 0")
        there = f.op(f"select i1 {missing}, i64 0, i64 {place}")
        address = f.address(f.pointer(table, there), self.position)
        return f.op(f"select i1 {missing}, ptr {other}, ptr {address}")

    def inside(self, pointer: str, at: str) -> str:
        """Where in a row of scratch bytes of a block are: a lone vector becomes two where products take two."""
        spread = max(self.way.group // self.vectors, 1)
        return self.f.address(pointer, at if spread == 1 else self.f.op(f"mul i64 {at}, {spread}"))

    def entry(self, number: int, factors: str) -> list[str]:
        """Load a factor."""
        return self.way.entry(self.f, self.f.address(factors, number * self.way.entry_bytes))

    def add(self, x: Vectors, y: Vectors) -> Vectors:
        """Sum of two rows."""
        if x is None or y is None:
            return y if x is None else x
        return self.sum(x, y)

    def sum(self, x: Some, y: Some) -> Some:
        """Sum of two rows that are not zero."""
        return [self.f.op(f"xor {self.kind} {a}, {b}") for a, b in zip(x, y, strict=True)]

    def add_product(self, x: Vectors, y: Vectors, entry: list[str] | None) -> Vectors:
        """Add entry · y to x; None as entry is zero."""
        if y is None or entry is None:
            return x
        if x is None:
            return self.product(y, entry)
        return self._fold([[a, *terms] for a, terms in zip(x, self._terms(y, entry), strict=True)])

    def product(self, y: Some, entry: list[str]) -> Some:
        """Entry · y."""
        return self._fold(self._terms(y, entry))

    def _terms(self, y: Some, entry: list[str]) -> list[list[str]]:
        """For each vector, the terms that sum to its product."""
        group = self.way.group
        parts = [self.way.products(self.f, y[start : start + group], entry) for start in range(0, len(y), group)]
        return [terms for part in parts for terms in part]

    def _fold(self, sums: list[list[str]]) -> Some:
        return [reduce(lambda a, b: self.f.op(f"xor {self.kind} {a}, {b}"), terms) for terms in sums]

    def load(self, pointer: str, *, outside: bool = False) -> list[str]:
        """Load vectors of a row, or of a block; a lone one twice where products take two."""
        f, group = self.f, self.way.group
        count = self.vectors if outside else max(self.vectors, group)
        values = [f.load(self.kind, f.address(pointer, place * self.width)) for place in range(count)]
        if not outside:
            return values
        if count < group:
            values *= group
        entered = [self.way.enter(f, values[place : place + group]) for place in range(0, len(values), group)]
        return [value for part in entered for value in part]

    def store(self, pointer: str, values: Sequence[str], *, outside: bool = False) -> None:
        """Store vectors of a row, or of a block."""
        f, group = self.f, self.way.group
        if outside:
            left = [self.way.join(f, values[place : place + group]) for place in range(0, len(values), group)]
            values = [value for part in left for value in part][: self.vectors]
        streaming = outside and self.streaming
        for place, value in enumerate(values):
            at = f.address(pointer, place * self.width)
            f.store(self.kind, value, at, self.width if streaming else 1, streaming=streaming)
