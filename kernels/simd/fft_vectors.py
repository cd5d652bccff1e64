"""What functions of the transforms' kernel share: their frame, vectors in the order of scratch, and butterflies."""

from collections.abc import Sequence

from gfcode.kernels.simd.assembly import Function
from gfcode.kernels.simd.products import multiplication
from gfcode.kernels.simd.target import Target

__all__ = ["Vectors", "Writer"]

#: Vectors of one row; None for zeros.
Vectors = list[str] | None


class Writer:
    """Writes functions that take a frame and a record, for a number of vectors at a time.

    The frame says where a piece is: scratch, tables of input and output blocks, position in the blocks, length, bytes
    from a row of scratch to the next, places, factors. The record says what to do: number of the operation, row, row to
    write to, step, groups, where its factors (in bytes) and its places (in words) start.

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
        self.position, self.length, self.row = (f.word("%frame", place) for place in (3, 4, 5))
        self.base = f.address(self.scratch, f.op(f"mul i64 {f.word('%record', 1)}, {self.row}"))
        self.into = f.address(self.scratch, f.op(f"mul i64 {f.word('%record', 2)}, {self.row}"))
        self.step, self.groups = f.word("%record", 3), f.word("%record", 4)
        self.factors = f.address(f.pointer("%frame", 7), f.word("%record", 5))
        self.places = f.op(f"getelementptr i64, ptr {f.pointer('%frame', 6)}, i64 {f.word('%record', 6)}")
        return f

    def block(self, place: str, *, output: bool) -> str:
        """Where the piece of a block is; for one that is not there (-1), the row of zeros, or the one to write to."""
        f = self.f
        table = self.outputs if output else self.inputs
        other = f.address(self.scratch, self.row) if output else self.scratch
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
        return [self.f.op(f"xor {self.kind} {a}, {b}") for a, b in zip(x, y, strict=True)]

    def add_product(self, x: Vectors, y: Vectors, entry: list[str] | None) -> Vectors:
        """X + entry · y; None as entry is zero."""
        if y is None or entry is None:
            return x
        f, way = self.f, self.way
        result = []
        for start in range(0, len(y), way.group):
            terms = way.products(f, y[start : start + way.group], entry)
            for place, group in enumerate(terms):
                total = None if x is None else x[start + place]
                for term in group:
                    total = term if total is None else f.op(f"xor {self.kind} {total}, {term}")
                assert total is not None
                result.append(total)
        return result

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
