"""The methods that the classic experiment compares, each a matrix and a way to multiply by it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from bench.loops import PACKET, Call, Memory, program_call, table_call
from gfcode.engine.naive import NumpyEngine
from gfcode.engine.protocol import Blocks, Engine, Product
from gfcode.engine.registry import get_engine
from gfcode.gf import GF
from gfcode.matrix.bitmatrix import expand
from gfcode.matrix.dense import Matrix
from gfcode.matrix.generator import generator_matrix, parity_matrix
from gfcode.params import Layout
from gfcode.xor import catalogue
from gfcode.xor.compress import paar
from gfcode.xor.fuse import fuse, split
from gfcode.xor.lower import lower
from gfcode.xor.program import XorProgram
from gfcode.xor.schedule import schedule

__all__ = ["METHODS", "Method", "Prepared", "decoding"]


@dataclass(frozen=True)
class Prepared:
    """A method on given blocks.

    Attributes
    ----------
    call : callable
        Multiplies.
    xors, accesses : int or None
        Of the program that it runs; None where it runs none.
    """

    call: Call
    xors: int | None = None
    accesses: int | None = None


@dataclass(frozen=True)
class Method:
    """A family of matrices and a way to multiply.

    Attributes
    ----------
    name : str
    family : str
        Of `FAMILIES`, or "catalogue".
    way : str
        "tables", "bit matrix", "compressed", "fused", "simd packets", "simd words".
    """

    name: str
    family: str
    way: str

    def parity(self, k: int, m: int, w: int) -> Matrix | None:
        """Return the parity matrix; None where there is none."""
        if self.family == "catalogue":
            return catalogue.lookup(k, m, w)
        return parity_matrix(self.family, GF(w), k, m)

    def prepare(self, matrix: Matrix, memory: Memory, inputs: list[int], outputs: list[int]) -> Prepared:
        """Bind the method to blocks of `memory`, and check it on the first bytes of them against the NumPy engine.

        Raises
        ------
        AssertionError
            If it gives other bytes.
        """
        prepared = self._prepare(matrix, memory, inputs, outputs)
        prepared.call()
        self._check(matrix, memory, inputs, outputs)
        return prepared

    def _prepare(self, matrix: Matrix, memory: Memory, inputs: list[int], outputs: list[int]) -> Prepared:
        w = matrix.field.w
        if self.way == "tables":
            return Prepared(table_call(matrix, memory, inputs, outputs))
        if self.way.startswith("simd"):
            operator = _simd().prepare(Product(matrix, self.layout(w)))
            sources = Blocks.of_buffers([memory.block(index) for index in inputs])
            targets = Blocks.of_buffers([memory.block(index) for index in outputs], writable=True)
            return Prepared(lambda: operator(sources, targets))
        program = _program(matrix, self.way)
        return Prepared(program_call(program, w, memory, inputs, outputs), program.xors, program.memory_accesses)

    def layout(self, w: int) -> Layout:
        """How the method's blocks hold symbols."""
        if self.way in {"tables", "simd words"}:
            return Layout("words", w)
        return Layout("packets", w, 64 if self.way.startswith("simd") else PACKET)

    def _check(self, matrix: Matrix, memory: Memory, inputs: list[int], outputs: list[int]) -> None:
        layout = self.layout(matrix.field.w)
        length = layout.strip_bytes if layout.name == "packets" else 8192
        sources = np.stack([memory.block(index)[:length] for index in inputs])
        right = np.zeros((len(outputs), length), np.uint8)
        operator = NumpyEngine().prepare(Product(matrix, layout))
        operator(Blocks.of_array(sources), Blocks.of_array(right, writable=True))
        made = np.stack([memory.block(index)[:length] for index in outputs])
        assert (made == right).all(), f"{self.name} gives wrong bytes"


METHODS = (
    Method("Vandermonde, tables", "vandermonde", "tables"),
    Method("Cauchy, bit matrix", "cauchy", "bit matrix"),
    Method("good Cauchy, bit matrix", "cauchy-good", "bit matrix"),
    Method("good Cauchy, compressed", "cauchy-good", "compressed"),
    Method("good Cauchy, fused, scheduled", "cauchy-good", "fused"),
    Method("searched matrix, fused, scheduled", "catalogue", "fused"),
    Method("powers, simd engine", "powers", "simd packets"),
    Method("Vandermonde, simd engine", "vandermonde", "simd words"),
)


def decoding(parity: Matrix, lost: Sequence[int], left: Sequence[int]) -> Matrix:
    """Return the matrix that makes lost data shards from k others."""
    return generator_matrix(parity).rows(left).inverse().rows(lost)


@cache
def _simd() -> Engine:
    return get_engine("simd")


@cache
def _compressed(matrix: Matrix) -> XorProgram:
    return paar(lower(expand(matrix)), 0)


def _program(matrix: Matrix, way: str) -> XorProgram:
    if way == "bit matrix":
        return split(lower(expand(matrix)))
    if way == "compressed":
        return split(_compressed(matrix))
    m, k = matrix.shape
    entry = catalogue.find(k, m, matrix.field.w)
    if entry is not None and entry.matrix == matrix:
        return entry.program
    return schedule(fuse(_compressed(matrix)))
