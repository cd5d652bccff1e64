"""Search of all square submatrices for a singular one."""

from collections.abc import Callable, Iterator
from itertools import combinations
from math import comb
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from gfcode.gf import Field
from gfcode.gf.tables import FieldArray

__all__ = ["allowance", "count_minors", "find_zero_minor"]

Ranks: TypeAlias = npt.NDArray[np.integer[Any]]
Minor: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]

# Column sets handled in one NumPy call, which bounds temporaries.
_BLOCK = 1 << 15


def count_minors(rows: int, columns: int) -> int:
    """Return the number of square submatrices of a matrix."""
    return comb(rows + columns, rows) - 1


def allowance(field: Field, minors: int) -> int:
    """Scale a number of minors that is meant for fields with tables to the time that others take."""
    return minors if field.w <= 16 else minors // 8


def find_zero_minor(field: Field, values: FieldArray) -> Minor | None:
    """Find a square submatrix whose determinant is zero, one of the smallest there are.

    Parameters
    ----------
    field : Field
    values : ndarray of `field.dtype`, shape (rows, columns)

    Returns
    -------
    (rows, columns) or None
        Ascending indices; the same for the same matrix.
    """
    zeros = np.argwhere(values == 0)
    if zeros.size:
        return (int(zeros[0][0]),), (int(zeros[0][1]),)
    if values.shape[0] <= values.shape[1]:  # the longer side is the one that NumPy runs along
        return min(_zero_minors(field, values), default=None)
    return min(((rows, columns) for columns, rows in _zero_minors(field, values.T)), default=None)


def _zero_minors(field: Field, values: FieldArray) -> list[Minor]:
    """Find singular submatrices of the smallest size: of each set of rows the first in the first block with any.

    Minors of size s come from those of size s − 1 by Laplace's expansion along the last row. Sets of columns are
    numbered in colexicographic order, in which those with largest column c are the sets of one column less among the
    first c, in their order, with c added: ranks of the sets with a column removed then follow by addition.
    """
    rows, columns = values.shape
    encode, multiply = _products(field)
    factors = encode(values)
    minors: dict[tuple[int, ...], npt.NDArray[Any]]  # of the size before, encoded, by row set
    minors = {(row,): factors[row] for row in range(rows)}
    sets: Ranks = np.arange(columns, dtype=np.int32)[None]
    if columns <= 1 << 16:
        sets = sets.astype(np.uint16)
    removed: Ranks = np.zeros((1, columns), np.int32)
    for size in range(2, rows + 1):
        last = size == rows
        row_sets = list(combinations(range(rows), size))
        count = 0 if last else comb(columns, size)  # nothing is kept of the last size
        larger = {chosen: np.empty(count, factors.dtype) for chosen in row_sets}
        next_sets: Ranks = np.empty((size, count), sets.dtype)
        next_removed: Ranks = np.empty((size, count), removed.dtype)
        for start, block_sets, block_removed in _column_sets(columns, size, sets, removed):
            block = slice(start, start + block_sets.shape[1])
            found: list[Minor] = []
            for chosen in row_sets:
                row, smaller = factors[chosen[-1]], minors[chosen[:-1]]
                determinant = np.bitwise_xor.reduce(multiply(row[block_sets], smaller[block_removed]), axis=0)
                if not determinant.all():
                    position = int(np.argmin(determinant != 0))
                    found.append((chosen, tuple(map(int, block_sets[:, position]))))
                elif not last:
                    larger[chosen][block] = encode(determinant)
            if found:
                return found
            if not last:
                next_sets[:, block], next_removed[:, block] = block_sets, block_removed
        minors, sets, removed = larger, next_sets, next_removed
    return []


def _column_sets(columns: int, size: int, sets: Ranks, removed: Ranks) -> Iterator[tuple[int, Ranks, Ranks]]:
    """Yield the sets of `size` columns in colexicographic order, block by block.

    Parameters
    ----------
    columns, size : int
    sets, removed : ndarray, shape (size - 1, number of smaller sets)
        What this yields for size − 1, in one piece.

    Yields
    ------
    start : int
        Rank of the first set of the block.
    sets : ndarray, shape (size, block)
        Ascending columns of each set.
    removed : ndarray, shape (size, block)
        Rank of the set without its i-th column among the smaller sets.
    """
    block: list[tuple[Ranks, Ranks]] = []
    start = length = 0
    for column in range(size - 1, columns):
        count = comb(column, size - 1)
        offset = np.int32(count)  # smaller sets whose largest column is less than this one
        for low in range(0, count, _BLOCK):
            part = slice(low, min(low + _BLOCK, count))
            width = part.stop - low
            block.append(
                (
                    np.concatenate([sets[:, part], np.full((1, width), column, sets.dtype)]),
                    np.concatenate([removed[:, part] + offset, np.arange(low, part.stop, dtype=removed.dtype)[None]]),
                )
            )
            length += width
            if length >= _BLOCK or (column == columns - 1 and part.stop == count):
                yield (
                    start,
                    np.concatenate([piece[0] for piece in block], axis=1),
                    np.concatenate([piece[1] for piece in block], axis=1),
                )
                start, length, block = start + length, 0, []


def _products(field: Field) -> tuple[Callable[[FieldArray], npt.NDArray[Any]], Callable[..., FieldArray]]:
    """Tell how to keep non-zero elements for multiplication, and how to multiply what is kept."""
    if field.w > 16:
        return lambda elements: elements, field.mul
    exp, log = field.exp_table, field.log_table
    return lambda elements: log[elements].astype(np.uint16), lambda a, b: exp[np.add(a, b, dtype=np.intp)]
