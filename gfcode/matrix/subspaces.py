"""Additive Fourier transforms over GF(2^w), and what goes with them: subspace polynomials and locators.

V_i = {0 .. 2^i − 1} is a subspace, s_i the polynomial that vanishes on it, and ŝ_i = s_i / s_i(2^i). Products of the
ŝ_i selected by the bits of j are a basis of polynomials, X_j of degree j. `evaluate` takes the 2^L coefficients in this
basis to values at a coset of V_L, `interpolate` takes values to coefficients, both by L layers of butterflies:
O(n log n) (Lin, Chung, Han, "Novel Polynomial Basis and Its Application to Reed-Solomon Erasure Codes", FOCS 2014).

These are the transforms of the oracle, on arrays of symbols; engines have their own.
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from gfcode.gf import Field
from gfcode.gf.tables import FieldArray

__all__ = ["evaluate", "interpolate", "locator_logarithms", "skews", "subspace_values"]

_Points = npt.NDArray[np.int64]


def subspace_values(field: Field, level: int, points: _Points) -> FieldArray:
    """Values of s_level, of leading coefficient 1, at some points."""
    values, unit = points.astype(field.dtype), 1
    for lower in range(level):
        unit = _unit(field, lower)
        values = field.mul(values, values ^ field.dtype.type(unit))
    return values


@lru_cache(maxsize=512)
def _unit(field: Field, level: int) -> int:
    """s_level(2^level). s_(i+1)(x) is s_i(x) · (s_i(x) + s_i(2^i))."""
    value = 1 << level
    for lower in range(level):
        value = field.mul(value, value ^ _unit(field, lower))
    return value


def skews(field: Field, levels: int, points: _Points) -> _Points:
    """Values of ŝ_0 .. ŝ_(levels−1) at some points, shape (levels, points): the factors of butterflies.

    The butterflies of layer i on the coset of V_(i+1) that starts at p have the factor ŝ_i(p).
    """
    values = points.astype(field.dtype)
    result = np.empty((levels, len(points)), np.int64)
    for level in range(levels):
        unit = field.dtype.type(_unit(field, level))
        result[level] = field.div(values, unit)
        values = field.mul(values, values ^ unit)
    return result


def evaluate(field: Field, coefficients: FieldArray, base: int) -> FieldArray:
    """Values at base + {0 .. 2^L − 1} of polynomials given by 2^L coefficients.

    Parameters
    ----------
    coefficients : array, shape (2^L, polynomials)
    base : int
        A multiple of 2^L.

    Returns
    -------
    array, shape (2^L, polynomials)
    """
    values = coefficients.copy()
    levels = len(values).bit_length() - 1
    table = skews(field, levels, base + np.arange(len(values), dtype=np.int64)).astype(field.dtype)
    for level in reversed(range(levels)):
        pairs = values.reshape(-1, 2, 1 << level, values.shape[1])
        pairs[:, 0] ^= field.mul(table[level, :: 2 << level, None, None], pairs[:, 1])
        pairs[:, 1] ^= pairs[:, 0]
    return values


def interpolate(field: Field, values: FieldArray, base: int) -> FieldArray:
    """Coefficients from values: the inverse of `evaluate`."""
    coefficients = values.copy()
    levels = len(values).bit_length() - 1
    table = skews(field, levels, base + np.arange(len(values), dtype=np.int64)).astype(field.dtype)
    for level in range(levels):
        pairs = coefficients.reshape(-1, 2, 1 << level, values.shape[1])
        pairs[:, 1] ^= pairs[:, 0]
        pairs[:, 0] ^= field.mul(table[level, :: 2 << level, None, None], pairs[:, 1])
    return coefficients


def locator_logarithms(field: Field, marked: npt.NDArray[np.bool_]) -> _Points:
    """Logarithms of the locator of marked points, at every point; for w ≤ 16.

    The locator L is the product of x + e for all marked e. At a marked point, where L is zero, the value is that of its
    derivative: the product without the zero. Logarithms turn the product into a sum over all points of log(x + e),
    a convolution over the group of points under XOR, which Walsh–Hadamard transforms make in O(n log n) (Didier,
    "Efficient erasure decoding of Reed–Solomon codes", 2009).

    Parameters
    ----------
    marked : array of bool, shape (2^r,)
        For points 0 .. 2^r − 1.

    Returns
    -------
    ndarray of int64, shape (2^r,)
        From 0 to 2^w − 2.
    """
    size = len(marked)
    spectrum = _walsh_hadamard(marked.astype(np.uint64)) * _spectrum_of_logarithms(field, size)
    # Sums wrap at 2^64, the true one, which is size times the result, is less than 2^48.
    sums = _walsh_hadamard(spectrum) // np.uint64(size)
    return (sums % np.uint64(field.order - 1)).astype(np.int64)


@lru_cache(maxsize=16)
def _spectrum_of_logarithms(field: Field, size: int) -> npt.NDArray[np.uint64]:
    logarithms = np.zeros(size, np.uint64)
    logarithms[1:] = field.log_table[1:size]
    spectrum = _walsh_hadamard(logarithms)
    spectrum.flags.writeable = False
    return spectrum


def _walsh_hadamard(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    step = 1
    while step < len(values):
        pairs = values.reshape(-1, 2, step)
        values = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(-1)
        step *= 2
    return values
