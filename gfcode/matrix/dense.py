"""Matrices over GF(2^w): product, inverse, rank, solve."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gfcode.errors import MixedFieldsError, ParameterError, SingularMatrixError
from gfcode.gf import Field
from gfcode.gf.tables import FieldArray

__all__ = ["Matrix"]


class Matrix:
    """An immutable matrix over a field. Either dimension may be zero.

    Parameters
    ----------
    field : Field
    values : array_like of integers, shape (rows, columns)
        Copied.

    Attributes
    ----------
    field : Field
    values : ndarray of `field.dtype`, shape (rows, columns)
        Read-only.

    Raises
    ------
    ParameterError
        If the values are not two-dimensional.
    OutOfFieldError
        If a value is no element of the field.
    """

    __slots__ = ("_hash", "_values", "field")

    field: Field
    _values: FieldArray
    _hash: int

    def __init__(self, field: Field, values: npt.NDArray[Any] | Sequence[Sequence[int]]) -> None:
        array = np.array(field.check(values), order="C")
        if array.ndim != 2:
            raise ParameterError(f"a matrix has two dimensions, not {array.ndim}")
        array.flags.writeable = False
        object.__setattr__(self, "field", field)
        object.__setattr__(self, "_values", array)
        object.__setattr__(self, "_hash", hash((field, array.shape, array.tobytes())))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Matrix is immutable: cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Matrix is immutable: cannot delete {name!r}")

    def __reduce__(self) -> tuple[Callable[..., "Matrix"], tuple[Field, FieldArray]]:
        return Matrix, (self.field, self.values)

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"<Matrix {rows}×{columns} over {self.field!r}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Matrix):
            return NotImplemented
        return self.field == other.field and np.array_equal(self.values, other.values)

    def __hash__(self) -> int:
        return self._hash

    @property
    def values(self) -> FieldArray:
        """Elements, read-only."""
        return self._values

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        rows, columns = self.values.shape
        return rows, columns

    @classmethod
    def identity(cls, field: Field, n: int) -> "Matrix":
        """Return the n × n identity."""
        return cls(field, np.eye(n, dtype=field.dtype))

    @classmethod
    def vstack(cls, matrices: Iterable["Matrix"]) -> "Matrix":
        """Stack matrices of the same number of columns on top of each other.

        Raises
        ------
        ParameterError, MixedFieldsError
            If there are none, or they do not fit together.
        """
        return cls._stack(list(matrices), 0)

    @classmethod
    def hstack(cls, matrices: Iterable["Matrix"]) -> "Matrix":
        """Put matrices of the same number of rows side by side.

        Raises
        ------
        ParameterError, MixedFieldsError
            If there are none, or they do not fit together.
        """
        return cls._stack(list(matrices), 1)

    @classmethod
    def _stack(cls, matrices: list["Matrix"], axis: int) -> "Matrix":
        if not matrices:
            raise ParameterError("there are no matrices to stack")
        first = matrices[0]
        for other in matrices[1:]:
            _require_one_field(first, other)
            if other.shape[1 - axis] != first.shape[1 - axis]:
                raise ParameterError(f"matrices of shapes {first.shape} and {other.shape} do not fit together")
        return cls(first.field, np.concatenate([matrix.values for matrix in matrices], axis))

    def transpose(self) -> "Matrix":
        """Return the transpose."""
        return Matrix(self.field, self.values.T)

    def rows(self, indices: Iterable[int]) -> "Matrix":
        """Return the rows of these indices, in this order."""
        return Matrix(self.field, self.values[list(indices), :])

    def columns(self, indices: Iterable[int]) -> "Matrix":
        """Return the columns of these indices, in this order."""
        return Matrix(self.field, self.values[:, list(indices)])

    def __matmul__(self, other: "Matrix") -> "Matrix":
        _require_one_field(self, other)
        if self.shape[1] != other.shape[0]:
            raise ParameterError(f"no product of matrices of shapes {self.shape} and {other.shape}")
        return Matrix(self.field, np.asarray(self.field.dot(self.values, other.values)))

    def rank(self) -> int:
        """Return the number of linearly independent rows."""
        return len(_reduce(self.field, self.values.copy(), self.shape[1]))

    def inverse(self) -> "Matrix":
        """Return the inverse.

        Raises
        ------
        ParameterError
            If the matrix is not square.
        SingularMatrixError
            If it has no inverse.
        """
        rows, columns = self.shape
        if rows != columns:
            raise ParameterError(f"only a square matrix has an inverse, not one of shape {self.shape}")
        return self.solve(Matrix.identity(self.field, rows))

    def solve(self, rhs: "Matrix") -> "Matrix":
        """Solve ``self @ x = rhs``.

        Parameters
        ----------
        rhs : Matrix, shape (rows, r)
            r right-hand sides.

        Returns
        -------
        Matrix, shape (columns, r)
            The only solution.

        Raises
        ------
        ParameterError
            If the right-hand sides have another number of rows.
        SingularMatrixError
            If there is no solution, or more than one.
        """
        _require_one_field(self, rhs)
        rows, columns = self.shape
        if rhs.shape[0] != rows:
            raise ParameterError(f"a matrix of shape {self.shape} has no right-hand sides of shape {rhs.shape}")
        work = np.concatenate([self.values, rhs.values], axis=1)
        rank = len(_reduce(self.field, work, columns))
        if rank < columns:
            raise SingularMatrixError(f"the matrix of shape {self.shape} has rank {rank}: no unique solution")
        if work[rank:].any():
            raise SingularMatrixError("the equations contradict each other: no solution")
        return Matrix(self.field, work[:rank, columns:])


def _require_one_field(a: Matrix, b: Matrix) -> None:
    if a.field != b.field:
        raise MixedFieldsError(f"matrices are over two fields: {a.field} and {b.field}")


def _reduce(field: Field, work: FieldArray, columns: int) -> list[int]:
    """Bring the first `columns` columns to reduced echelon form, in place; return the pivot columns."""
    pivots: list[int] = []
    for column in range(columns):
        row = len(pivots)
        if row == work.shape[0]:
            break
        candidates = np.flatnonzero(work[row:, column])
        if not candidates.size:
            continue
        pivot = row + int(candidates[0])
        if pivot != row:
            work[[row, pivot]] = work[[pivot, row]]
        work[row, column:] = field.div(work[row, column:], int(work[row, column]))
        others = np.flatnonzero(work[:, column])
        others = others[others != row]
        work[others, column:] ^= field.mul(work[others, column, None], work[row, column:])
        pivots.append(column)
    return pivots
