"""Linear algebra over GF(2) on arrays of zeros and ones, such as bit matrices. Rows are packed 64 to a word inside."""

from typing import Any

import numpy as np
import numpy.typing as npt

from gfcode.errors import OutOfFieldError, ParameterError, SingularMatrixError

__all__ = ["inverse", "product", "rank", "solve"]

BitArray = npt.NDArray[np.uint8]
PackedRows = npt.NDArray[np.uint64]


def product(a: npt.ArrayLike, b: npt.ArrayLike) -> BitArray:
    """Multiply two 0/1 matrices modulo 2.

    Parameters
    ----------
    a, b : array_like of 0 and 1, shapes (r, n) and (n, c)

    Returns
    -------
    ndarray of uint8, shape (r, c)

    Raises
    ------
    ParameterError
        If an operand is not two-dimensional or the shapes do not fit.
    OutOfFieldError
        If a value is neither 0 nor 1.
    """
    left, right = _bits(a), _bits(b)
    if left.shape[1] != right.shape[0]:
        raise ParameterError(f"no product of matrices of shapes {left.shape} and {right.shape}")
    packed = _pack(right)
    rows = np.zeros((left.shape[0], packed.shape[1]), np.uint64)
    for i in range(left.shape[1]):
        rows[left[:, i] == 1] ^= packed[i]
    return _unpack(rows, right.shape[1])


def rank(a: npt.ArrayLike) -> int:
    """Return the number of linearly independent rows of a 0/1 matrix.

    Raises
    ------
    ParameterError
        If the operand is not two-dimensional.
    OutOfFieldError
        If a value is neither 0 nor 1.
    """
    bits = _bits(a)
    return _reduce(_pack(bits), bits.shape[1])


def inverse(a: npt.ArrayLike) -> BitArray:
    """Return the inverse of a square 0/1 matrix, as uint8.

    Raises
    ------
    ParameterError
        If the matrix is not square.
    OutOfFieldError
        If a value is neither 0 nor 1.
    SingularMatrixError
        If it has no inverse.
    """
    bits = _bits(a)
    rows, columns = bits.shape
    if rows != columns:
        raise ParameterError(f"only a square matrix has an inverse, not one of shape {bits.shape}")
    return solve(bits, np.eye(rows, dtype=np.uint8))


def solve(a: npt.ArrayLike, rhs: npt.ArrayLike) -> BitArray:
    """Solve ``a @ x = rhs`` modulo 2.

    Parameters
    ----------
    a : array_like of 0 and 1, shape (rows, columns)
    rhs : array_like of 0 and 1, shape (rows, r)
        r right-hand sides.

    Returns
    -------
    ndarray of uint8, shape (columns, r)
        The only solution.

    Raises
    ------
    ParameterError
        If an operand is not two-dimensional or the numbers of rows differ.
    OutOfFieldError
        If a value is neither 0 nor 1.
    SingularMatrixError
        If there is no solution, or more than one.
    """
    left, right = _bits(a), _bits(rhs)
    rows, columns = left.shape
    if right.shape[0] != rows:
        raise ParameterError(f"a matrix of shape {left.shape} has no right-hand sides of shape {right.shape}")
    work = _pack(np.concatenate([left, right], axis=1))
    found = _reduce(work, columns)
    if found < columns:
        raise SingularMatrixError(f"the matrix of shape {left.shape} has rank {found}: no unique solution")
    if work[found:].any():
        raise SingularMatrixError("the equations contradict each other: no solution")
    return np.ascontiguousarray(_unpack(work[:found], columns + right.shape[1])[:, columns:])


def _bits(values: npt.ArrayLike) -> BitArray:
    array: npt.NDArray[Any] = np.asarray(values)
    if array.ndim != 2:
        raise ParameterError(f"a matrix has two dimensions, not {array.ndim}")
    if array.dtype.kind not in "iub" or ((array != 0) & (array != 1)).any():
        raise OutOfFieldError("a matrix over GF(2) holds the integers 0 and 1 only")
    return array.astype(np.uint8)


def _pack(bits: BitArray) -> PackedRows:
    """Pack each row into words, column i into bit i mod 64 of word i // 64."""
    rows, columns = bits.shape
    words = -(-columns // 64)
    octets = np.zeros((rows, 8 * words), np.uint8)
    packed = np.packbits(bits, axis=1, bitorder="little")
    octets[:, : packed.shape[1]] = packed
    return octets.view("<u8").astype(np.uint64).reshape(rows, words)


def _unpack(rows: PackedRows, columns: int) -> BitArray:
    octets = rows.astype("<u8").view(np.uint8).reshape(rows.shape[0], 8 * rows.shape[1])
    return np.unpackbits(octets, axis=1, count=columns, bitorder="little")


def _reduce(work: PackedRows, columns: int) -> int:
    """Bring the first `columns` columns to reduced echelon form, in place; return their rank."""
    row = 0
    for column in range(columns):
        if row == work.shape[0]:
            break
        word, shift = divmod(column, 64)
        ones = np.flatnonzero(work[:, word] >> np.uint64(shift) & np.uint64(1))
        candidates = ones[ones >= row]
        if not candidates.size:
            continue
        pivot = int(candidates[0])
        # Where the pivot was not yet in its place, its row changes places with one that has no 1 in this column.
        others = ones[ones != pivot]
        work[others, word:] ^= work[pivot, word:]
        if pivot != row:
            work[[row, pivot]] = work[[pivot, row]]
        row += 1
    return row
