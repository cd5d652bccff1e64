"""Families of parity matrices, and the choice between them."""

import warnings
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from gfcode.errors import NotMDSError, ParameterError
from gfcode.gf import GF, Field
from gfcode.gf.tables import FieldArray
from gfcode.matrix import searched
from gfcode.matrix.bitmatrix import element_ones
from gfcode.matrix.certificate import certify
from gfcode.matrix.dense import Matrix
from gfcode.matrix.minors import allowance, count_minors
from gfcode.matrix.transformed import Parity
from gfcode.params import check_matrix_size, check_shard_counts

__all__ = ["FAMILIES", "family_field", "generator_matrix", "parity_matrix", "resolve_auto"]

#: Square minors that `auto` is willing to check before it gives up on `powers`. Part of what `auto` means: another
#: number would choose other matrices. For w = 32, an eighth.
AUTO_MINORS = 1 << 22
#: Elements of a parity matrix from which `auto` takes `fft`: whoever has that many shards cannot wait for each element
#: of a matrix to be multiplied by.
AUTO_FFT = 1 << 20
# Elements that `cauchy-good` is made of in ten seconds or so, where w = 32 and elsewhere.
_SLOW_WIDE, _SLOW_ROWS = 1 << 23, 1 << 10
# Quotients of a row that `_lightest_multiple` weighs one by one, at a time and at most.
_QUOTIENTS = 1 << 20


def vandermonde(field: Field, k: int, m: int) -> FieldArray:
    """Jerasure's `reed_sol_van`: an extended Vandermonde matrix with identity on top, all ones below it.

    The rows of the extended matrix are 1, x, .., x^(k−1) at x = 0, 1, .., k + m − 2 and, last, at infinity (0, .., 0,
    1). Column operations that make its top the identity turn it into Lagrange's basis polynomials of the points 0 ..
    k − 1, evaluated at the others; columns are then scaled to give ones in the first parity row, rows to give ones in
    the first column (Plank & Ding, "Note: Correction to the 1997 Tutorial on Reed-Solomon Coding", 2005). The result
    has a closed form, which is computed here: with y_j = j and x_i = k + i it is
    (x_0 + y_j) / (x_i + y_j) · (x_i + y_0) / (x_0 + y_0), where a factor with the infinite x is left out.

    Room for k + m ≤ 2^w + 1; one more than Jerasure allows.
    """
    if m <= 1 or k == 1:
        return np.ones((m, k), field.dtype)
    _require_room(field, "vandermonde", k, m, field.order + 1)
    y = np.arange(k, dtype=field.dtype)
    x = np.arange(k, k + m - 1, dtype=np.int64).astype(field.dtype)[:, None]
    parity = np.empty((m, k), field.dtype)
    parity[:-1] = field.div(field.mul(x[0] ^ y, x), field.mul(x ^ y, x[0]))
    parity[-1] = field.div(x[0] ^ y, x[0])
    return parity


def powers(field: Field, k: int, m: int) -> FieldArray:
    """ISA-L's `gf_gen_rs_matrix`: α^(i·j) in row i, column j, with α the element x. RAID-6's P and Q for m = 2."""
    exponents = np.arange(m, dtype=np.int64)[:, None] * np.arange(k, dtype=np.int64)
    return field.pow(np.full((m, k), field.alpha, field.dtype), exponents)


def cauchy(field: Field, k: int, m: int) -> FieldArray:
    """ISA-L's `gf_gen_cauchy1_matrix`: 1 / (x_i + y_j) with x_i = k + i and y_j = j. Room for k + m ≤ 2^w."""
    if m == 0:
        return np.ones((m, k), field.dtype)
    _require_room(field, "cauchy", k, m, field.order)
    return _cauchy(field, np.arange(k, k + m), np.arange(k))


def cauchy_good(field: Field, k: int, m: int) -> FieldArray:
    """Jerasure's `cauchy_good`: a Cauchy matrix scaled to few ones in its bit matrix.

    From 1 / (x_i + y_j) with x_i = i and y_j = m + j, columns are scaled to make the first row ones; then each further
    row is divided by that of its elements which leaves it the fewest ones, by the first such, and only if that improves
    it (Plank & Xu, "Optimizing Cauchy Reed-Solomon Codes", 2006). For m = 2 and w = 2 to 11 (k ≤ 1023 for w = 11) the
    second row is simply the k elements with the fewest ones, in ascending order of ones, then of value.

    Room for k + m ≤ 2^w, for m = 2 in the simple form for k ≤ 2^w − 1, and for every k with m ≤ 1. A row takes up to
    ten milliseconds with w ≤ 16, so that k = m = 4096 take most of a minute; with w = 32 the time grows as m · k². A
    warning says so where it is more than about ten seconds.
    """
    if m <= 1 or k == 1:
        return np.ones((m, k), field.dtype)
    if m == 2 and 2 <= field.w <= 11 and k <= min(field.order - 1, 1023):
        elements = np.arange(1, field.order, dtype=field.dtype)
        lightest = elements[np.argsort(element_ones(field, elements), kind="stable")]
        return np.stack([np.ones(k, field.dtype), lightest[:k]])
    _require_room(field, "cauchy-good", k, m, field.order)
    if m * k**2 > _SLOW_WIDE if field.w == 32 else m * min(k, 1024) ** 2 > _SLOW_ROWS << 20:
        warnings.warn(
            f"weighing the rows of matrix 'cauchy-good' with k = {k}, m = {m} takes a while; 'fft' and 'cauchy' are "
            "made at once",
            RuntimeWarning,
            stacklevel=2,
        )
    parity = _cauchy(field, np.arange(m), np.arange(m, m + k))
    parity = field.div(parity, parity[0])
    for row in parity[1:]:
        row[:] = _lightest_multiple(field, row)
    return parity


def fft(field: Field, k: int, m: int) -> FieldArray:
    """Cauchy, at points for which additive Fourier transforms make the parity in O(n log n) operations.

    With M the power of two from m on, shards are values of polynomials at points: parity i at i, data j at M + j. Each
    M data shards, the values at a coset of the subspace {0 .. M − 1}, determine a polynomial of degree below M; the
    parity is the sum of these polynomials at 0 .. m − 1. Lagrange's formula gives the element in row i and column j as
    S(c) / (S' · (i + M + j)), where S is the product of x + v for v = 0 .. M − 1, S' that of all such v but 0, and c
    the first point of the coset of j. The rows are those that leopard's encoder computes (Lin, Al-Naffouri, Han, Chung,
    "Novel Polynomial Basis With Fast Fourier Transform and Its Application to Reed-Solomon Erasure Codes", 2016), up
    to the choice of basis and field.

    Room for k + M ≤ 2^w.
    """
    return Parity(field, k, m).values if m else np.ones((m, k), field.dtype)


def _cauchy(field: Field, x: npt.NDArray[np.intp], y: npt.NDArray[np.intp]) -> FieldArray:
    return field.inv((x[:, None] ^ y).astype(field.dtype))


def _lightest_multiple(field: Field, row: FieldArray) -> FieldArray:
    """Divide a row of non-zero elements by that of its elements which leaves the fewest ones, if that leaves fewer."""
    weights = _ones_by_divisor(field, row)
    best = int(np.argmin(weights))
    return field.div(row, row[best : best + 1]) if weights[best] < element_ones(field, row).sum() else row


def _ones_by_divisor(field: Field, row: FieldArray) -> npt.NDArray[np.int64]:
    """Count the ones of a row after its division by each of its elements in turn."""
    k = row.shape[0]
    if field.w <= 16 and k * k > _QUOTIENTS:
        return _ones_by_correlation(field, row)
    counts = np.empty(k, np.int64)
    step = max(1, _QUOTIENTS // k)
    for start in range(0, k, step):
        divisors = row[start : start + step]
        if field.w <= 16:
            exponents = field.log_table[row] - field.log_table[divisors][:, None] + field.order - 1
            ones: npt.NDArray[np.integer[Any]] = _ones_of_powers(field)[exponents]
        else:
            ones = element_ones(field, field.mul(row, field.inv(divisors)[:, None]))
        counts[start : start + step] = ones.sum(axis=1, dtype=np.int64)
    return counts


def _ones_by_correlation(field: Field, row: FieldArray) -> npt.NDArray[np.int64]:
    """Do the same for long rows, in a time that hardly depends on their length.

    By logarithms the counts are a cyclic correlation of the row's with the ones of all powers. It stays below 2^25, so
    that a Fourier transform in double precision gives it exactly after rounding.
    """
    size = field.order - 1
    logarithms = field.log_table[row]
    present = np.bincount(logarithms, minlength=size)
    counts = np.fft.irfft(np.fft.rfft(present) * _spectrum_of_ones(field), size)
    return np.rint(counts).astype(np.int64)[logarithms]


@lru_cache(maxsize=4)
def _spectrum_of_ones(field: Field) -> npt.NDArray[np.complex128]:
    return np.fft.rfft(_ones_of_powers(field)[: field.order - 1]).conj()


@lru_cache(maxsize=4)
def _ones_of_powers(field: Field) -> npt.NDArray[np.uint16]:
    return element_ones(field, field.exp_table[: 2 * (field.order - 1)]).astype(np.uint16)


def _require_room(field: Field, family: str, k: int, m: int, room: int) -> None:
    if k + m > room:
        raise ParameterError(
            f"k + m = {k + m} shards are too many for matrix '{family}' over GF(2^{field.w}), which has room for {room}"
            + ("; use a larger w" if field.w < 32 else "")
        )


#: The families by name; each value makes the m × k parity matrix from a field, k and m.
FAMILIES: Mapping[str, Callable[[Field, int, int], FieldArray]] = MappingProxyType(
    {
        "vandermonde": vandermonde,
        "powers": powers,
        "cauchy": cauchy,
        "cauchy-good": cauchy_good,
        "fft": fft,
        "searched": searched.searched,
    }
)


def family_field(family: str, k: int, m: int, w: int) -> Field:
    """Return the field that a family's matrix for a code is over: that of the usual polynomial, except for `searched`.

    Raises
    ------
    ParameterError
        If `searched` has no matrix for the code.
    """
    return GF(w, searched.polynomial(k, m, w) if family == "searched" else None)


@lru_cache(maxsize=32)
def parity_matrix(family: str, field: Field, k: int, m: int) -> Matrix:
    """Make the parity matrix of a family.

    Parameters
    ----------
    family : str
        A key of `FAMILIES`, or ``"auto"`` for the choice of `resolve_auto`.
    field : Field
    k, m : int
        Data and parity shards.

    Returns
    -------
    Matrix, shape (m, k)
        Not certified: see `gfcode.matrix.certificate.certify`. One of the family `fft` is written out only when its
        values are asked for.

    Raises
    ------
    ParameterError
        For an unknown family, shard counts that no code has, more shards than the family has room for, or, except for
        `fft`, a matrix of more than `gfcode.params.MAX_ELEMENTS` elements.
    """
    check_shard_counts(k, m, field.w)
    if family == "fft" and m:
        return Parity(field, k, m)
    check_matrix_size(k, m)
    if family == "auto":
        family = resolve_auto(field, k, m)
    if family not in FAMILIES:
        raise ParameterError(f"unknown matrix {family!r}; choose {', '.join(['auto', *FAMILIES])}")
    return Matrix(field, FAMILIES[family](field, k, m))


@lru_cache(maxsize=1024)
def resolve_auto(field: Field, k: int, m: int) -> str:
    """Name the family that ``auto`` stands for.

    It is `powers`, the cheapest to encode with, where that can be certified by a proof (m ≤ 3 or k ≤ 3) or by at most
    2^22 minors (2^19 for w = 32); else `fft` for matrices of 2^20 elements or more, where it has room and w ≤ 16; else
    `cauchy-good`, or `vandermonde` for the one length, k + m = 2^w + 1, at which only that has room.

    Raises
    ------
    ParameterError
        If no MDS code over the field has such k and m.
    """
    check_shard_counts(k, m, field.w)
    # With four rows and columns or more no proof applies to powers of α: as 1, 1/α and 1/α² make a Vandermonde matrix,
    # the inverses have rank 3 at least. Only minors are left, and need not be begun where they are too many.
    if min(k, m) <= 3 or count_minors(m, k) <= allowance(field, AUTO_MINORS):
        try:
            certify(Matrix(field, powers(field, k, m)))
        except NotMDSError:
            pass
        else:
            return "powers"
    if m * k >= AUTO_FFT and field.w <= 16 and k + (1 << (m - 1).bit_length()) <= field.order:
        return "fft"
    return "vandermonde" if m > 2 and k > 1 and k + m > field.order else "cauchy-good"


def generator_matrix(parity: Matrix) -> Matrix:
    """Put the k × k identity on top of an m × k parity matrix: the n × k generator matrix of the systematic code."""
    return Matrix.vstack([Matrix.identity(parity.field, parity.shape[1]), parity])
