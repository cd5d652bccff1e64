"""The matrices of the family `fft`, which transforms multiply by: known by a rule, written out only where asked for.

**Parity.** Shards are values at points of GF(2^w): with M the power of two from m on, parity i at i and data j at
M + j. The polynomials of degree below M through each M data shards, a coset of V = {0 .. M − 1} each, are summed;
parities are values of the sum. This is a Cauchy matrix with scaled columns, and MDS by that.

**Decoding.** Blocks that are not there, and are not read, are at M points E. With L the locator of E, a value at e in E
is a sum over all known points s (Lagrange's formula, as the k shards and the unused points determine a codeword):

    f(e) = Σ L(s) · f(s) / (L'(e) · (e + s))

Sums over s of g(s) / (e + s) are what transforms do. Let a *pivot* be a coset P of V that no wanted point is in. The
sum S of the interpolations of all other cosets, as in encoding, stands for all of these values by its own values on P,
so that only known points of P are left, with L(s) · (f(s) + S(s)). The polynomial r through these (zero at points of E)
has

    f(e) = r(e) · Z' / (Z(e + p) · L'(e))

where Z is the product of x + v over V, Z' its derivative, a constant, and p in P. That is one transform on P, one
inverse transform, and one for each coset of wanted shards, over those of encoding. When data is wanted, P is the
parities' coset: present data is encoded again, and what is left is a Cauchy system whose inverse is a Cauchy matrix
too. The erasure decoder of Lin, Al-Naffouri, Han and Chung (2016) takes instead transforms of all points of the code,
and a derivative between them.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gfcode.errors import ParameterError
from gfcode.gf import Field
from gfcode.gf.tables import FieldArray
from gfcode.matrix.dense import Matrix
from gfcode.matrix.subspaces import evaluate, interpolate, locator_logarithms, subspace_values
from gfcode.once import cached_property
from gfcode.params import MAX_ELEMENTS

__all__ = ["MAX_LOGARITHM", "Decoding", "Parity", "Transformed"]

#: Largest w whose fields have tables of logarithms, which `Decoding` needs.
MAX_LOGARITHM = 16

_Points = npt.NDArray[np.int64]


class Transformed(Matrix):
    """A matrix that transforms multiply by. `values` are made when they are first asked for.

    It equals matrices made by the same rule from the same numbers, and no dense one.
    """

    __slots__ = ("__dict__", "_shape")

    _shape: tuple[int, int]
    _key: tuple[Any, ...]

    def _begin(self, field: Field, shape: tuple[int, int], key: tuple[Any, ...]) -> None:
        for name, value in (("field", field), ("_shape", shape), ("_key", key), ("_hash", hash((field, key)))):
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Matrix):
            return NotImplemented
        if not isinstance(other, Transformed):
            return False
        return (type(self), self.field, self._key) == (type(other), other.field, other._key)

    __hash__ = Matrix.__hash__

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self._shape

    @property
    def is_huge(self) -> bool:
        """Whether the matrix is too large to be written out."""
        return self._shape[0] * self._shape[1] > MAX_ELEMENTS

    @property
    def values(self) -> FieldArray:
        """Elements, read-only.

        Raises
        ------
        ParameterError
            If they are more than `gfcode.params.MAX_ELEMENTS`.
        """
        return self._written

    @cached_property
    def _written(self) -> FieldArray:
        rows, columns = self._shape
        if self.is_huge:
            raise ParameterError(
                f"a matrix of {rows} x {columns} elements is too large to be written out (the limit is {MAX_ELEMENTS} "
                f"elements); so large a code runs in layout 'words' only"
            )
        values = self.part(np.arange(rows), np.arange(columns))
        values.flags.writeable = False
        return values

    def part(self, rows: _Points, columns: _Points) -> FieldArray:
        """Elements in some rows and columns."""
        raise NotImplementedError

    def apply(self, symbols: FieldArray) -> FieldArray:
        """Multiply by transforms: arrays of shape (columns, symbols) to (rows, symbols)."""
        raise NotImplementedError

    def rows(self, indices: Iterable[int]) -> Matrix:
        """Return the rows of these indices, in this order."""
        return Matrix(self.field, self.part(np.fromiter(indices, np.int64), np.arange(self._shape[1])))

    def columns(self, indices: Iterable[int]) -> Matrix:
        """Return the columns of these indices, in this order."""
        return Matrix(self.field, self.part(np.arange(self._shape[0]), np.fromiter(indices, np.int64)))


class Parity(Transformed):
    """The parity matrix of the family; see the module.

    Parameters
    ----------
    field : Field
    k, m : int
        m ≥ 1.

    Attributes
    ----------
    size : int
        M, the points of a transform.

    Raises
    ------
    ParameterError
        If k + M points are more than the field has.
    """

    def __init__(self, field: Field, k: int, m: int) -> None:
        self._begin(field, (m, k), (k, m))
        object.__setattr__(self, "size", 1 << (m - 1).bit_length())
        if k + self.size > field.order:
            # As many points as the next power of two are the parities', used or not.
            raise ParameterError(
                f"k + m = {k + m} shards are too many for matrix 'fft' over GF(2^{field.w}), which has room for "
                f"{field.order - self.size + m}" + ("; use a larger w" if field.w < 32 else "")
            )

    size: int

    def __reduce__(self) -> tuple[Callable[..., Matrix], tuple[Any, ...]]:
        return Parity, (self.field, self._shape[1], self._shape[0])

    @cached_property
    def _scales(self) -> FieldArray:
        """Z(c) / Z' for the first point c of each coset of data."""
        field, level = self.field, self.size.bit_length() - 1
        starts = np.arange(self.size, self.size + self._shape[1], self.size, dtype=np.int64)
        return field.div(subspace_values(field, level, starts), np.array(self.slope, field.dtype))

    @cached_property
    def slope(self) -> int:
        """Z', the product of all points of V but 0."""
        field, value = self.field, 1
        for level in range(self.size.bit_length() - 1):
            value = field.mul(value, int(subspace_values(field, level, np.array([1 << level]))[0]))
        return value

    def part(self, rows: _Points, columns: _Points) -> FieldArray:
        """Elements in some rows and columns: Lagrange's formula, Z(c) / (Z' · (i + M + j))."""
        differences = (rows[:, None] ^ (self.size + columns)[None]).astype(self.field.dtype)
        return self.field.div(self._scales[columns // self.size], differences)

    def apply(self, symbols: FieldArray) -> FieldArray:
        """Multiply by transforms."""
        return evaluate(self.field, self.sums(symbols, self.size), 0)[: self._shape[0]]

    def sums(self, symbols: FieldArray, first: int, but: int = -1) -> FieldArray:
        """Sum the interpolations of the cosets of values at the points from `first` on, all but one coset's."""
        field, size = self.field, self.size
        total = np.zeros((size, symbols.shape[1]), field.dtype)
        for start in range(0, len(symbols), size):
            if first + start != but:
                values = symbols[start : start + size]
                padded = np.concatenate([values, np.zeros((size - len(values), values.shape[1]), field.dtype)])
                total ^= interpolate(field, padded, first + start)
        return total

    def point(self, shards: _Points) -> _Points:
        """Points of shards, 0 .. k + m − 1."""
        k = self._shape[1]
        return np.where(shards < k, shards + self.size, shards - k)


class Decoding(Transformed):
    """Wanted shards, made from k others; see the module.

    Parameters
    ----------
    code : Parity
    sources : sequence of int
        k shards; where none of the wanted is another, any.
    want : sequence of int
        Rows of the matrix. A wanted shard may be a source: its row copies it.

    Attributes
    ----------
    code : Parity
    sources, want : tuple of int
    """

    code: Parity
    sources: tuple[int, ...]
    want: tuple[int, ...]

    def __init__(self, code: Parity, sources: Sequence[int], want: Sequence[int]) -> None:
        sources, want = tuple(sources), tuple(want)
        self._begin(code.field, (len(want), len(sources)), (code, sources, want))
        for name, value in (("code", code), ("sources", sources), ("want", want)):
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Callable[..., Matrix], tuple[Any, ...]]:
        return Decoding, (self.code, self.sources, self.want)

    @cached_property
    def copied(self) -> dict[int, int]:
        """Rows that copy a source, and which of the sources."""
        places = {shard: place for place, shard in enumerate(self.sources)}
        return {row: places[shard] for row, shard in enumerate(self.want) if shard in places}

    @cached_property
    def made(self) -> _Points:
        """Rows that are computed."""
        return np.array([row for row in range(len(self.want)) if row not in self.copied], np.int64)

    @cached_property
    def known(self) -> npt.NDArray[np.bool_]:
        """Which points are known: those of sources, and those beyond all shards, whose values are zero."""
        m, k = self.code.shape
        del m
        size = 1 << (self.code.size + k - 1).bit_length()
        known = np.zeros(size, np.bool_)
        known[self.code.size + k :] = True
        known[self.code.point(np.array(self.sources, np.int64))] = True
        return known

    @cached_property
    def logarithms(self) -> _Points:
        """Logarithms of the locator L of unknown points, and of its derivative at these."""
        return locator_logarithms(self.field, ~self.known)

    def part(self, rows: _Points, columns: _Points) -> FieldArray:
        """Elements in some rows and columns: L(s) / (L'(e) · (e + s))."""
        field = self.field
        values = np.zeros((len(rows), len(columns)), field.dtype)
        is_made = np.array([int(row) not in self.copied for row in rows], np.bool_)
        for i in np.flatnonzero(~is_made):
            values[i, columns == self.copied[int(rows[i])]] = 1
        if is_made.any():
            to = self.code.point(np.array(self.want, np.int64)[rows[is_made]])
            of = self.code.point(np.array(self.sources, np.int64)[columns])
            logarithms = self.logarithms
            exponents = logarithms[of] - logarithms[to][:, None] - field.log_table[to[:, None] ^ of]
            values[is_made] = field.exp_table[exponents % (field.order - 1)]
        return values

    def scales(self, points: _Points, pivot: int) -> _Points:
        """Z' / (Z(e + p) · L'(e)) at wanted points e, for a pivot that starts at p."""
        field, level = self.field, self.code.size.bit_length() - 1
        vanishing = subspace_values(field, level, points ^ pivot)
        exponents = field.log_table[self.code.slope] - field.log_table[vanishing] - self.logarithms[points]
        scales: _Points = field.exp_table[exponents % (field.order - 1)].astype(np.int64)
        return scales

    def locators(self, pivot: int) -> _Points:
        """L at the points of a pivot, zero at the unknown ones."""
        points = np.arange(pivot, pivot + self.code.size)
        inside = points < len(self.known)
        known, logarithms = np.ones(len(points), np.bool_), np.zeros(len(points), np.int64)
        known[inside], logarithms[inside] = self.known[points[inside]], self.logarithms[points[inside]]
        return np.where(known, self.field.exp_table[logarithms].astype(np.int64), 0)

    def pivots(self) -> dict[int, _Points]:
        """For each pivot that is needed, where it starts, the computed rows that use it.

        A coset without wanted shards serves all; where there is none, two cosets serve each the other's rows.
        """
        if not len(self.made):
            return {}
        size = self.code.size
        points = self.code.point(np.array(self.want, np.int64)[self.made])
        wanted = set((points // size).tolist())
        free = [coset for coset in range(len(self.known) // size) if coset not in wanted]
        if free:
            return {free[0] * size: self.made}
        return {0: self.made[points >= size], size: self.made[points < size]}

    def apply(self, symbols: FieldArray) -> FieldArray:
        """Multiply by transforms."""
        field, size = self.field, self.code.size
        result = np.empty((len(self.want), symbols.shape[1]), field.dtype)
        for row, source in self.copied.items():
            result[row] = symbols[source]
        values = np.zeros((len(self.known), symbols.shape[1]), field.dtype)
        values[self.code.point(np.array(self.sources, np.int64))] = symbols
        for pivot, rows in self.pivots().items():
            left = evaluate(field, self.code.sums(values, 0, pivot), pivot) ^ values[pivot : pivot + size]
            left = field.mul(self.locators(pivot).astype(field.dtype)[:, None], left)
            remainder = interpolate(field, left, pivot)
            points = self.code.point(np.array(self.want, np.int64)[rows])
            for coset in np.unique(points // size * size).tolist():
                inside = points // size * size == coset
                found = evaluate(field, remainder, coset)[points[inside] - coset]
                scales = self.scales(points[inside], pivot).astype(field.dtype)
                result[rows[inside]] = field.mul(scales[:, None], found)
        return result
