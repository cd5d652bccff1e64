import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gfcode.errors import MixedFieldsError, OutOfFieldError, ParameterError, SingularMatrixError
from gfcode.gf import GF
from gfcode.matrix.dense import Matrix

if TYPE_CHECKING:
    from collections.abc import Callable

F8 = GF(8)
OTHER = GF(8, 0x11B)


def test_values_are_a_read_only_copy() -> None:
    source = np.array([[1, 2], [3, 4]], np.uint8)
    matrix = Matrix(F8, source)
    source[0, 0] = 9
    assert matrix.values.tolist() == [[1, 2], [3, 4]]
    assert matrix.values.dtype == np.uint8
    assert matrix.shape == (2, 2)
    with pytest.raises(ValueError, match="read-only"):
        matrix.values[0, 0] = 9
    changes: list[Callable[[], None]] = [
        lambda: setattr(matrix, "values", source),
        lambda: delattr(matrix, "values"),
    ]
    for change in changes:
        with pytest.raises(AttributeError, match="immutable"):
            change()


def test_equality_hash_and_pickle() -> None:
    a, same = Matrix(F8, [[1, 2], [3, 4]]), Matrix(F8, np.array([[1, 2], [3, 4]], np.int64))
    assert a == same
    assert hash(a) == hash(same)
    assert a != Matrix(OTHER, [[1, 2], [3, 4]])
    assert a != Matrix(F8, [[1, 2, 3, 4]])
    assert a != "a matrix"
    assert pickle.loads(pickle.dumps(a)) == a  # noqa: S301
    assert repr(a) == "<Matrix 2×2 over GF(8, 0x11d)>"


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ([1, 2], ParameterError),
        ([[[1]]], ParameterError),
        ([[256]], OutOfFieldError),
        ([[-1]], OutOfFieldError),
        ([[1.0]], OutOfFieldError),
        ([[1], [2, 3]], OutOfFieldError),
        ([["1"]], OutOfFieldError),
    ],
)
def test_what_is_no_matrix_is_refused(values: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        Matrix(F8, values)


def test_parts_and_stacks() -> None:
    a = Matrix(F8, [[1, 2, 3], [4, 5, 6]])
    assert a.rows([1, 0, 1]).values.tolist() == [[4, 5, 6], [1, 2, 3], [4, 5, 6]]
    assert a.columns([2, 0]).values.tolist() == [[3, 1], [6, 4]]
    assert a.rows([]).shape == (0, 3)
    assert a.columns([]).shape == (2, 0)
    assert a.transpose().values.tolist() == [[1, 4], [2, 5], [3, 6]]
    assert Matrix.vstack([a.rows([0]), a.rows([1])]) == a
    assert Matrix.hstack(a.columns([j]) for j in range(3)) == a
    with pytest.raises(IndexError):
        a.rows([2])
    with pytest.raises(ParameterError, match="do not fit"):
        Matrix.vstack([a, a.transpose()])
    with pytest.raises(ParameterError, match="do not fit"):
        Matrix.hstack([a, a.transpose()])
    with pytest.raises(ParameterError, match="no matrices"):
        Matrix.vstack([])


def test_known_product_and_inverse() -> None:
    a = Matrix(F8, [[1, 1], [1, 2]])
    assert (a @ a).values.tolist() == [[0, 3], [3, 5]]
    assert a.inverse() @ a == Matrix.identity(F8, 2)
    assert a.inverse().values.tolist() == [[F8.div(2, 3), F8.inv(3)], [F8.inv(3), F8.inv(3)]]


def test_inverse_needs_row_exchanges() -> None:
    a = Matrix(F8, [[0, 0, 3], [2, 0, 1], [0, 7, 0]])
    assert a.inverse() @ a == Matrix.identity(F8, 3) == a @ a.inverse()


@pytest.mark.parametrize("field", [GF(1), F8, GF(16), GF(32)], ids=repr)
def test_empty_matrices(field: Any) -> None:
    none = Matrix(field, np.zeros((0, 3), field.dtype))
    assert none.rank() == 0
    assert none.transpose() @ none == Matrix(field, np.zeros((3, 3), field.dtype))
    assert (none @ none.transpose()).shape == (0, 0)
    assert Matrix.identity(field, 0).inverse().shape == (0, 0)


def test_rank() -> None:
    assert Matrix(F8, [[1, 2, 3], [2, 4, 6]]).rank() == 1
    assert Matrix(F8, [[0, 0], [0, 0]]).rank() == 0
    assert Matrix(F8, [[0, 1, 1], [0, 1, 2], [0, 0, 5]]).rank() == 2


def test_solve_takes_more_equations_than_unknowns() -> None:
    a = Matrix(F8, [[1, 2], [3, 4], [1, 1]])
    x = Matrix(F8, [[7, 1, 0], [9, 0, 255]])
    assert a.solve(a @ x) == x
    with pytest.raises(SingularMatrixError, match="contradict"):
        a.solve(Matrix(F8, [[1], [1], [1]]))
    with pytest.raises(SingularMatrixError, match="rank 2"):
        a.transpose().solve(Matrix(F8, [[1], [1]]))
    assert a.solve(Matrix(F8, np.zeros((3, 0), np.uint8))).shape == (2, 0)


def test_shapes_that_do_not_fit_are_refused() -> None:
    a = Matrix(F8, [[1, 2, 3], [4, 5, 6]])
    with pytest.raises(ParameterError, match="square"):
        a.inverse()
    with pytest.raises(ParameterError, match="no product"):
        a @ a
    with pytest.raises(ParameterError, match="right-hand sides"):
        a.solve(a.transpose())
    with pytest.raises(SingularMatrixError, match="rank 1"):
        Matrix(F8, [[1, 2], [2, 4]]).inverse()


def test_mixed_fields_are_refused() -> None:
    a, b = Matrix.identity(F8, 2), Matrix.identity(OTHER, 2)
    operations: list[Callable[[], Matrix]] = [
        lambda: a @ b,
        lambda: a.solve(b),
        lambda: Matrix.vstack([a, b]),
        lambda: Matrix.hstack([a, b]),
    ]
    for operation in operations:
        with pytest.raises(MixedFieldsError, match="0x11b"):
            operation()


def test_large_inverse() -> None:
    field = GF(16)
    values = np.random.default_rng(1).integers(0, field.order, (300, 300))
    a = Matrix(field, values)
    assert a @ a.inverse() == Matrix.identity(field, 300)
