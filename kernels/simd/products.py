"""How vectors of symbols in the `words` layout are multiplied by a constant, by instruction set and symbol width.

Each way takes a group of one or two vectors apart, multiplies the parts, and puts results together again. Taking apart
and putting together are linear and independent of the constant: they are done once for an input and once for an
output, whatever the number of rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from gfcode.gf import Field
from gfcode.kernels.simd.assembly import Function
from gfcode.kernels.simd.target import Target

__all__ = ["Multiplication", "multiplication"]

_Bytes = npt.NDArray[np.uint8]


def multiplication(w: int, target: Target) -> "Multiplication":
    """Return the way for symbols of 4, 8 or 16 bits."""
    if target.product == "affine":
        return _Affine16(target) if w == 16 else _Affine(target)
    return _Shuffle16(target) if w == 16 else _Shuffle(target)


def _images(field: Field, constants: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Multiply each constant by each single bit of a byte (or of a symbol of 16 bits); shape (..., 8 or 16)."""
    images = field.bit_images(constants).astype(np.int64)
    if field.w == 4:  # two symbols in a byte
        images = np.concatenate([images, images << 4], axis=-1)
    return images


def _bit_matrix(images: npt.NDArray[np.int64]) -> _Bytes:
    """Bit matrices as the affine instruction takes them; (..., 8) images of bytes to (..., 8) bytes."""
    bits = np.unpackbits(images.astype(np.uint8)[..., None], axis=-1, bitorder="little")  # (..., column, row)
    rows = np.packbits(bits.swapaxes(-1, -2), axis=-1, bitorder="little")[..., 0]
    return np.ascontiguousarray(rows[..., ::-1])


def _nibble_table(images: npt.NDArray[np.int64]) -> _Bytes:
    """Sum four images by the nibble that selects them; (..., 4) images of bytes to (..., 16)."""
    table = np.zeros((*images.shape[:-1], 16), np.uint8)
    for bit in range(4):
        table[..., 1 << bit : 2 << bit] = table[..., : 1 << bit] ^ images[..., bit, None].astype(np.uint8)
    return table


class Multiplication(ABC):
    """One way; methods that take a `Function` write code into it.

    Parameters
    ----------
    target : Target

    Attributes
    ----------
    entry_bytes : int
        Bytes of what a constant becomes.
    group : int
        Vectors multiplied together.
    single : bool
        Whether a product is a single term.
    """

    entry_bytes: ClassVar[int]
    group: ClassVar[int] = 1
    single: ClassVar[bool] = False

    def __init__(self, target: Target) -> None:
        self.target = target
        self.width = target.vector_bytes

    @abstractmethod
    def table(self, field: Field, constants: npt.NDArray[np.int64]) -> _Bytes:
        """Turn constants (...) into what is multiplied by, (..., entry_bytes)."""

    @abstractmethod
    def entry(self, f: Function, pointer: str) -> list[str]:
        """Load what a constant became, ready in registers."""

    @abstractmethod
    def split(self, f: Function, vectors: Sequence[str]) -> list[str]:
        """Take a group of vectors (of 64-bit lanes) apart."""

    @abstractmethod
    def times(self, f: Function, parts: Sequence[str], entry: Sequence[str]) -> list[list[str]]:
        """Multiply: for each vector of the group, the terms (of 64-bit lanes) that sum to it."""

    def join(self, f: Function, vectors: Sequence[str]) -> list[str]:
        """Put a group of sums together again."""
        del f
        return list(vectors)

    # For values that are multiplied again and again: bytes are put in another order once, and stay in it.

    def enter(self, f: Function, vectors: Sequence[str]) -> list[str]:
        """Bring a group of vectors into the order of bytes that `products` takes and gives; `join` undoes it."""
        del f
        return list(vectors)

    def products(self, f: Function, vectors: Sequence[str], entry: Sequence[str]) -> list[list[str]]:
        """Multiply a group that has entered: for each vector of the group, the terms that sum to its product."""
        return self.times(f, self.split(f, vectors), entry)

    # For rows of powers of x, where tables of 16 are looked up by `pshufb`.

    @staticmethod
    def doubling(field: Field) -> _Bytes:
        """Return the entry that `doubled` needs: what reduces a byte, and what accumulators are off by; 32 bytes."""
        reduce = field.polynomial & 255
        return np.repeat(np.array([reduce, field.div(reduce, field.alpha ^ 1)], np.uint8), 16)

    def doubled(self, f: Function, value: str, reduce: str) -> list[str]:
        """Double bytes that are off by that constant: the terms whose sum is off by it again."""
        kind, value = self.target.byte_vector, self._bytes(f, value)
        return [self._lanes(f, f.op(f"add {kind} {value}, {value}")), self._look_up(f, reduce, value)]

    # Pieces that several ways share.

    def _bytes(self, f: Function, value: str) -> str:
        return f.op(f"bitcast {self.target.vector} {value} to {self.target.byte_vector}")

    def _lanes(self, f: Function, value: str) -> str:
        return f.op(f"bitcast {self.target.byte_vector} {value} to {self.target.vector}")

    def _permute(self, f: Function, first: str, second: str, order: Sequence[int]) -> str:
        """Bytes of two byte vectors in a new order, the same in each 16-byte lane (16.. are those of the second)."""
        width = self.width
        places = [
            lane * 16 + place if place < 16 else width + lane * 16 + place - 16
            for lane in range(width // 16)
            for place in order
        ]
        mask = ", ".join(f"i32 {place}" for place in places)
        kind = self.target.byte_vector
        return f.op(f"shufflevector {kind} {first}, {kind} {second}, <{width} x i32> <{mask}>")

    def _spread(self, f: Function, pointer: str, size: int) -> str:
        """Load 8 or 16 bytes into every lane of that size."""
        kind = f"<{size} x i8>"
        value = f.load(kind, pointer, size)
        mask = ", ".join(f"i32 {place % size}" for place in range(self.width))
        return f.op(f"shufflevector {kind} {value}, {kind} poison, <{self.width} x i32> <{mask}>")

    def _affine(self, f: Function, value: str, matrix: str) -> str:
        kind = self.target.byte_vector
        name = f"@llvm.x86.vgf2p8affineqb.{8 * self.width}"
        return self._lanes(f, f.op(f"call {kind} {name}({kind} {value}, {kind} {matrix}, i8 0)"))

    def _nibbles(self, f: Function, value: str) -> list[str]:
        """Low and high nibbles of each byte."""
        kind, lanes = self.target.vector, self.width // 8
        mask = "<" + ", ".join([f"i64 {0x0F0F0F0F0F0F0F0F}"] * lanes) + ">"
        four = "<" + ", ".join(["i64 4"] * lanes) + ">"
        low = f.op(f"and {kind} {value}, {mask}")
        high = f.op(f"and {kind} {f.op(f'lshr {kind} {value}, {four}')}, {mask}")
        return [self._bytes(f, low), self._bytes(f, high)]

    def _look_up(self, f: Function, table: str, places: str) -> str:
        """Entries of a 16-byte table."""
        if self.target.product == "sve":
            return self._look_up_sve(f, table, places)
        name = {
            ("shuffle86", 16): "llvm.x86.ssse3.pshuf.b.128",
            ("shuffle86", 32): "llvm.x86.avx2.pshuf.b",
            ("shuffle86", 64): "llvm.x86.avx512.pshuf.b.512",
            ("tbl", 16): "llvm.aarch64.neon.tbl1.v16i8",
        }[self.target.product, self.width]
        kind = self.target.byte_vector
        return self._lanes(f, f.op(f"call {kind} @{name}({kind} {table}, {kind} {places})"))

    def _look_up_sve(self, f: Function, table: str, places: str) -> str:
        """Do so by an instruction whose table is a whole register, of which the first 16 bytes are used."""
        kind, scalable, width = self.target.byte_vector, "<vscale x 16 x i8>", self.width
        whole = [
            f.op(f"call {scalable} @llvm.vector.insert.nxv16i8.v{width}i8({scalable} poison, {kind} {value}, i64 0)")
            for value in (table, places)
        ]
        found = f.op(f"call {scalable} @llvm.aarch64.sve.tbl.nxv16i8({scalable} {whole[0]}, {scalable} {whole[1]})")
        return self._lanes(f, f.op(f"call {kind} @llvm.vector.extract.v{width}i8.nxv16i8({scalable} {found}, i64 0)"))


class _Affine(Multiplication):
    """Bytes by GFNI's bit matrices: one instruction."""

    entry_bytes = 8
    single = True

    def table(self, field: Field, constants: npt.NDArray[np.int64]) -> _Bytes:
        return _bit_matrix(_images(field, constants))

    def entry(self, f: Function, pointer: str) -> list[str]:
        lanes = self.width // 8
        word = f.load("i64", pointer, 8)
        one = f.op(f"insertelement <{lanes} x i64> poison, i64 {word}, i64 0")
        zeros = f"<{lanes} x i32> zeroinitializer"
        return [self._bytes(f, f.op(f"shufflevector <{lanes} x i64> {one}, <{lanes} x i64> poison, {zeros}"))]

    def split(self, f: Function, vectors: Sequence[str]) -> list[str]:
        return [self._bytes(f, vectors[0])]

    def times(self, f: Function, parts: Sequence[str], entry: Sequence[str]) -> list[list[str]]:
        return [[self._affine(f, parts[0], entry[0])]]


class _Affine16(Multiplication):
    """16-bit words by GFNI, as 2 × 2 bit matrices.

    Low bytes are collected in the lower and high bytes in the upper half of each 16-byte lane, and a second copy with
    the halves exchanged, so that an instruction does the diagonal, and another the rest.
    """

    entry_bytes = 32

    def table(self, field: Field, constants: npt.NDArray[np.int64]) -> _Bytes:
        images = _images(field, constants)
        low, high = images[..., :8], images[..., 8:]
        quarters = [low & 255, high >> 8, high & 255, low >> 8]
        return np.concatenate([_bit_matrix(quarter) for quarter in quarters], axis=-1)

    def entry(self, f: Function, pointer: str) -> list[str]:
        return [self._spread(f, f.address(pointer, 16 * half), 16) for half in range(2)]

    def split(self, f: Function, vectors: Sequence[str]) -> list[str]:
        value = self._bytes(f, vectors[0])
        low, high = range(0, 16, 2), range(1, 16, 2)
        return [self._permute(f, value, value, [*low, *high]), self._permute(f, value, value, [*high, *low])]

    def times(self, f: Function, parts: Sequence[str], entry: Sequence[str]) -> list[list[str]]:
        return [[self._affine(f, part, matrix) for part, matrix in zip(parts, entry, strict=True)]]

    def enter(self, f: Function, vectors: Sequence[str]) -> list[str]:
        value = self._bytes(f, vectors[0])
        return [self._lanes(f, self._permute(f, value, value, [*range(0, 16, 2), *range(1, 16, 2)]))]

    def products(self, f: Function, vectors: Sequence[str], entry: Sequence[str]) -> list[list[str]]:
        value = self._bytes(f, vectors[0])
        exchanged = self._permute(f, value, value, [*range(8, 16), *range(8)])
        return self.times(f, [value, exchanged], entry)

    def join(self, f: Function, vectors: Sequence[str]) -> list[str]:
        value = self._bytes(f, vectors[0])
        order = [place // 2 + place % 2 * 8 for place in range(16)]
        return [self._lanes(f, self._permute(f, value, value, order))]


class _Shuffle(Multiplication):
    """Bytes by two table look-ups, one for each nibble (Plank, Greenan and Miller 2013)."""

    entry_bytes = 32

    def table(self, field: Field, constants: npt.NDArray[np.int64]) -> _Bytes:
        images = _images(field, constants)
        return np.concatenate([_nibble_table(images[..., :4]), _nibble_table(images[..., 4:])], axis=-1)

    def entry(self, f: Function, pointer: str) -> list[str]:
        return [self._spread(f, f.address(pointer, 16 * half), 16) for half in range(2)]

    def split(self, f: Function, vectors: Sequence[str]) -> list[str]:
        return self._nibbles(f, vectors[0])

    def times(self, f: Function, parts: Sequence[str], entry: Sequence[str]) -> list[list[str]]:
        return [[self._look_up(f, table, part) for part, table in zip(parts, entry, strict=True)]]


class _Shuffle16(Multiplication):
    """16-bit words by eight look-ups, on two vectors of which one then holds the low bytes and one the high."""

    entry_bytes = 128
    group = 2

    def table(self, field: Field, constants: npt.NDArray[np.int64]) -> _Bytes:
        images = _images(field, constants)
        halves = [
            _nibble_table(images[..., 4 * nibble : 4 * nibble + 4] >> shift & 255)
            for shift in (0, 8)
            for nibble in range(4)
        ]
        return np.concatenate(halves, axis=-1)

    def entry(self, f: Function, pointer: str) -> list[str]:
        return [self._spread(f, f.address(pointer, 16 * place), 16) for place in range(8)]

    def split(self, f: Function, vectors: Sequence[str]) -> list[str]:
        return [part for half in self.enter(f, vectors) for part in self._nibbles(f, half)]

    def enter(self, f: Function, vectors: Sequence[str]) -> list[str]:
        first, second = (self._bytes(f, vector) for vector in vectors)
        return [self._lanes(f, self._permute(f, first, second, range(half, 32, 2))) for half in range(2)]

    def products(self, f: Function, vectors: Sequence[str], entry: Sequence[str]) -> list[list[str]]:
        return self.times(f, [part for half in vectors for part in self._nibbles(f, half)], entry)

    def times(self, f: Function, parts: Sequence[str], entry: Sequence[str]) -> list[list[str]]:
        return [
            [self._look_up(f, table, part) for part, table in zip(parts, entry[4 * half : 4 * half + 4], strict=True)]
            for half in range(2)
        ]

    def join(self, f: Function, vectors: Sequence[str]) -> list[str]:
        low, high = (self._bytes(f, vector) for vector in vectors)
        orders = [[place // 2 + place % 2 * 16 + 8 * half for place in range(16)] for half in range(2)]
        return [self._lanes(f, self._permute(f, low, high, order)) for order in orders]
