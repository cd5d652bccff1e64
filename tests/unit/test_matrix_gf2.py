from typing import Any

import numpy as np
import pytest

from gfcode.errors import OutOfFieldError, ParameterError, SingularMatrixError
from gfcode.matrix import gf2


def random_bits(rows: int, columns: int, seed: int = 0) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.random.default_rng(seed).integers(0, 2, (rows, columns), dtype=np.uint8)


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 4), (64, 64, 64), (65, 63, 129), (0, 3, 2), (2, 0, 3), (3, 2, 0)])
def test_product(shape: tuple[int, int, int]) -> None:
    a, b = random_bits(shape[0], shape[1]), random_bits(shape[1], shape[2], 1)
    product = gf2.product(a, b)
    assert product.dtype == np.uint8
    assert np.array_equal(product, a.astype(int) @ b % 2)


@pytest.mark.parametrize("n", [1, 2, 8, 63, 64, 65, 200])
def test_inverse(n: int) -> None:
    seed = next(seed for seed in range(200) if gf2.rank(random_bits(n, n, seed)) == n)
    a = random_bits(n, n, seed)
    before = a.copy()
    inverse = gf2.inverse(a)
    assert inverse.dtype == np.uint8
    assert np.array_equal(gf2.product(a, inverse), np.eye(n))
    assert np.array_equal(gf2.product(inverse, a), np.eye(n))
    assert np.array_equal(a, before)


@pytest.mark.parametrize(("rows", "columns", "rank"), [(5, 5, 3), (70, 130, 66), (130, 70, 1), (4, 4, 0)])
def test_rank_of_a_product(rows: int, columns: int, rank: int) -> None:
    left = np.concatenate([np.eye(rank, dtype=np.uint8), random_bits(rows - rank, rank)])
    right = np.concatenate([np.eye(rank, dtype=np.uint8), random_bits(rank, columns - rank, 1)], axis=1)
    permuted = gf2.product(left, right)[np.random.default_rng(2).permutation(rows)]
    assert gf2.rank(permuted) == rank


def test_empty_matrices() -> None:
    assert gf2.rank(np.zeros((0, 3), np.uint8)) == gf2.rank(np.zeros((3, 0), np.uint8)) == 0
    assert gf2.inverse(np.zeros((0, 0), np.uint8)).shape == (0, 0)


def test_solve() -> None:
    a = np.array([[1, 1], [0, 1], [1, 0]])
    x = np.array([[1, 0, 1], [1, 1, 0]])
    assert np.array_equal(gf2.solve(a, a @ x % 2), x)
    with pytest.raises(SingularMatrixError, match="contradict"):
        gf2.solve(a, [[1], [1], [1]])
    with pytest.raises(SingularMatrixError, match="rank 2"):
        gf2.solve(a.T, [[1], [1]])
    with pytest.raises(ParameterError, match="right-hand sides"):
        gf2.solve(a, x)


def test_singular_inverse_and_wrong_shapes() -> None:
    with pytest.raises(SingularMatrixError, match="rank 1"):
        gf2.inverse([[1, 1], [1, 1]])
    with pytest.raises(ParameterError, match="square"):
        gf2.inverse([[1, 0]])
    with pytest.raises(ParameterError, match="no product"):
        gf2.product([[1, 0]], [[1, 0]])
    with pytest.raises(ParameterError, match="two dimensions"):
        gf2.rank([1, 0])


@pytest.mark.parametrize("wrong", [[[2]], [[-1]], [[0.0]], [["1"]]])
def test_values_other_than_0_and_1_are_refused(wrong: Any) -> None:
    for operation in (gf2.rank, gf2.inverse, lambda a: gf2.product(a, [[1]]), lambda a: gf2.solve([[1]], a)):
        with pytest.raises(OutOfFieldError):
            operation(wrong)


def test_booleans_are_bits() -> None:
    assert gf2.rank(np.eye(3, dtype=bool)) == 3
