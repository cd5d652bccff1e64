import numpy as np
import pytest

from gfcode.gf import GF, Field
from gfcode.gf.polynomials import FIELD_SIZES
from gfcode.matrix.bitmatrix import element_ones, expand, ones
from gfcode.matrix.dense import Matrix


def test_columns_are_the_bits_of_the_element_times_powers_of_x() -> None:
    field = GF(4)
    square = expand(Matrix(field, [[9]]))
    assert square.dtype == np.uint8
    for b in range(4):
        product = field.mul(9, 1 << b)
        assert square[:, b].tolist() == [product >> i & 1 for i in range(4)]


def test_squares_stand_where_their_elements_do() -> None:
    field = GF(3)
    values = np.arange(6).reshape(2, 3)
    bits = expand(Matrix(field, values))
    assert bits.shape == (6, 9)
    for i in range(2):
        for j in range(3):
            square = expand(Matrix(field, values[i : i + 1, j : j + 1]))
            assert np.array_equal(bits[3 * i : 3 * i + 3, 3 * j : 3 * j + 3], square)


@pytest.mark.parametrize("field", [*map(GF, FIELD_SIZES), GF(8, 0x11B), GF(1, 0x2)], ids=repr)
def test_bit_matrix_multiplies_bits_and_ones_are_counted(field: Field) -> None:
    rng = np.random.default_rng(field.w)
    a = Matrix(field, rng.integers(0, field.order, (3, 4)))
    x = rng.integers(0, field.order, (4, 1)).astype(field.dtype)
    to_bits = (x >> np.arange(field.w, dtype=field.dtype) & 1).reshape(-1)
    product = expand(a).astype(int) @ to_bits % 2
    expected = np.asarray(field.dot(a.values, x)) >> np.arange(field.w, dtype=field.dtype) & 1
    assert np.array_equal(product, expected.reshape(-1))
    assert ones(a) == expand(a).sum()
    per_element = expand(a).reshape(3, field.w, 4, field.w).sum(axis=(1, 3))
    assert np.array_equal(element_ones(field, a.values), per_element)


def test_empty_matrices() -> None:
    field = GF(8)
    for shape in ((0, 3), (3, 0)):
        matrix = Matrix(field, np.zeros(shape, np.uint8))
        assert expand(matrix).shape == (8 * shape[0], 8 * shape[1])
        assert ones(matrix) == 0


def test_ones_of_many_elements() -> None:
    field = GF(16)
    values = np.arange(field.order, dtype=np.uint16)
    counts = element_ones(field, values)
    assert counts[0] == 0
    assert counts[1] == 16
    # Every nonzero column is a bijection of the field, which has as many ones as zeros in each bit.
    assert counts.sum() == 16 * 16 * field.order // 2
