import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from gfcode.errors import DivisionByZeroError, FieldError, MixedFieldsError, OutOfFieldError, ParameterError
from gfcode.gf import GF, Element, Field
from gfcode.gf.polynomials import FIELD_SIZES, multiply_mod

F8 = GF(8)
FIELDS = [*map(GF, FIELD_SIZES), GF(1, 0x2), GF(4, 0x1F), GF(8, 0x11B), GF(16, 0x1002D), GF(32, 0x10000008D)]


def sample(field: Field, count: int, *, nonzero: bool = False) -> np.ndarray[Any, Any]:
    """Elements that include 0 (or not), 1, the largest, and random ones."""
    rng = np.random.default_rng(field.polynomial)
    values = rng.integers(int(nonzero), field.order, count, dtype=np.uint64)
    values[:3] = [int(nonzero), 1, field.order - 1]
    return values.astype(field.dtype)


def test_the_same_field_is_the_same_object() -> None:
    assert GF(8) is GF(8, 0x11D)
    assert GF(np.int64(8), np.int64(0x11D)) is GF(8)
    assert GF(8) != GF(8, 0x11B)
    assert pickle.loads(pickle.dumps(F8)) is F8  # noqa: S301
    with ThreadPoolExecutor(8) as pool:
        assert len({id(field) for field in pool.map(GF, [15] * 64)}) == 1


@pytest.mark.parametrize("polynomial", ["0x11d", 285.0])
def test_polynomials_that_are_no_integers_are_refused(polynomial: Any) -> None:
    with pytest.raises(ParameterError, match="integers"):
        GF(8, polynomial)


@pytest.mark.parametrize("field", FIELDS, ids=repr)
def test_products_are_those_of_polynomials(field: Field) -> None:
    a, b = sample(field, 300), sample(field, 300)[::-1]
    expected = [multiply_mod(x, y, field.polynomial) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    product = field.mul(a, b)
    assert product.dtype == field.dtype
    assert product.tolist() == expected
    assert [field.mul(x, y) for x, y in zip(a[:9].tolist(), b[:9].tolist(), strict=True)] == expected[:9]


@pytest.mark.parametrize("field", FIELDS, ids=repr)
def test_division_inverse_powers_and_logarithms(field: Field) -> None:
    a, b = sample(field, 300), sample(field, 300, nonzero=True)
    assert np.array_equal(field.mul(field.div(a, b), b), a)
    assert (field.mul(b, field.inv(b)) == 1).all()
    assert np.array_equal(field.exp(field.log(b)), b)
    assert np.array_equal(field.pow(b, -1), field.inv(b))
    assert np.array_equal(field.pow(a, 3), field.mul(a, field.mul(a, a)))
    assert np.array_equal(field.pow(a, field.order), a)
    assert field.log(b).max() < field.order - 1 or field.w == 1


@pytest.mark.parametrize(
    ("w", "polynomial", "alpha", "generator"),
    [(8, 0x11D, 2, 2), (8, 0x11B, 2, 3), (4, 0x1F, 2, 3), (1, 0x3, 1, 1), (1, 0x2, 0, 1), (16, 0x1100B, 2, 2)],
)
def test_alpha_and_generator(w: int, polynomial: int, alpha: int, generator: int) -> None:
    field = GF(w, polynomial)
    assert (field.alpha, field.generator) == (alpha, generator)
    powers = field.exp(np.arange(field.order - 1))
    assert np.array_equal(np.sort(powers), np.arange(1, field.order))
    assert np.array_equal(field.log(powers), np.arange(field.order - 1))


def test_known_values() -> None:
    assert F8.mul(0x80, 2) == 0x1D
    assert F8.inv(2) == 0x8E
    assert GF(8, 0x11B).mul(0x53, 0xCA) == 1  # FIPS 197
    assert GF(8, 0x11B).mul(0x57, 0x83) == 0xC1
    assert GF(32).mul(0x80000000, 2) == 0x00400007
    assert GF(16).log(0x100B) == 16
    assert GF(32).log(0x00400007) == 32
    assert F8.exp(-1) == 0x8E
    assert F8.polyval([1, 0, 3], 2) == 4 ^ 3
    assert F8.dot([1, 2, 3], [4, 5, 6]) == 4 ^ 10 ^ 10


def test_scalars_give_python_integers() -> None:
    for value in (
        F8.add(5, 3),
        F8.mul(np.uint8(5), 3),
        F8.div(5, F8(3)),
        F8.inv(7),
        F8.pow(5, -2),
        F8.exp(7),
        F8.log(7),
    ):
        assert type(value) is int
    assert type(F8.polyval([1, 2], 3)) is int
    assert type(F8.dot([1, 2], [3, 4])) is int


def test_arrays_broadcast_and_keep_the_type_of_the_field() -> None:
    column, row = np.arange(4)[:, None], np.arange(5)
    for outcome in (F8.add(column, row), F8.mul(column, row), F8.div(column, row + 1), F8.pow(column + 1, row)):
        assert outcome.shape == (4, 5)
        assert outcome.dtype == np.uint8
    assert F8.mul([1, 2], 3).tolist() == [3, 6]
    assert F8.mul(3, [1, 2]).tolist() == [3, 6]
    assert F8.pow(2, [0, 1, -1]).tolist() == [1, 2, 0x8E]
    assert F8.polyval([1, 0, 3], [[0, 1], [2, 3]]).tolist() == [[3, 2], [7, 6]]
    assert F8.polyval([], 7) == 0


@pytest.mark.parametrize("field", [F8, GF(16), GF(32)], ids=repr)
def test_empty_and_zero_dimensional_arrays(field: Field) -> None:
    empty = np.zeros((0, 3), field.dtype)
    for outcome in (field.mul(empty, 3), field.inv(empty), field.pow(empty, 2), field.exp([]), field.add([], [])):
        assert outcome.dtype == field.dtype
        assert outcome.size == 0
    assert field.log(empty).shape == (0, 3)
    point = field.mul(np.array(3), np.array(7))
    assert isinstance(point, np.ndarray)
    assert point.shape == ()
    assert int(point) == 9


@pytest.mark.parametrize("field", [F8, GF(16), GF(32)], ids=repr)
def test_dot_is_the_matrix_product(field: Field) -> None:
    a, b = sample(field, 12).reshape(3, 4), sample(field, 20).reshape(4, 5)
    expected = np.zeros((3, 5), field.dtype)
    for i in range(4):
        expected ^= field.mul(a[:, i, None], b[i])
    assert np.array_equal(field.dot(a, b), expected)
    assert np.array_equal(field.dot(a[0], b), expected[0])
    assert np.array_equal(field.dot(a, b[:, 0]), expected[:, 0])
    assert field.dot(a[0], b[:, 0]) == expected[0, 0]
    assert not np.any(field.dot(a[:, :0], b[:0]))


@pytest.mark.parametrize("shapes", [((3,), (4,)), ((2, 3), (2, 3)), ((), (3,)), ((1, 2, 3), (3,))])
def test_dot_refuses_shapes_that_do_not_fit(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    with pytest.raises(FieldError, match="no product"):
        F8.dot(np.zeros(shapes[0], np.uint8), np.zeros(shapes[1], np.uint8))
    with pytest.raises(FieldError, match="one-dimensional"):
        F8.polyval(np.zeros((2, 2), np.uint8), 1)


@pytest.mark.parametrize(
    "wrong",
    [
        256,
        -1,
        2**70,
        1.0,
        True,
        None,
        "1",
        np.float64(1),
        np.bool_(True),
        np.array([0, 256]),
        np.array([-1], np.int8),
        np.array([2**40], np.uint64),
        np.array([1.0]),
        np.array([True]),
        [2**70],
        [-(2**70)],
        [1.5],
        ["1"],
        "12",
        b"12",
        [[1], [2, 3]],
    ],
    ids=repr,
)
def test_values_out_of_the_field_are_refused_everywhere(wrong: Any) -> None:
    for operation in (F8.check, F8.inv, F8.log, lambda a: F8.add(a, 1), lambda a: F8.mul(1, a), lambda a: F8.pow(a, 2)):
        with pytest.raises(OutOfFieldError):
            operation(wrong)


@pytest.mark.parametrize("w", [1, 3, 8, 12, 16, 32])
def test_the_largest_element_is_in_and_the_next_is_out(w: int) -> None:
    field = GF(w)
    assert field.check([field.order - 1]).tolist() == [field.order - 1]
    for wrong in (field.order, -1):
        with pytest.raises(OutOfFieldError, match=str(wrong)):
            field.check(np.array([0, wrong], np.int64))
        with pytest.raises(OutOfFieldError, match=str(wrong)):
            field(wrong)


def test_check_copies_only_what_needs_another_type() -> None:
    array = np.arange(5, dtype=np.uint8)
    assert F8.check(array) is array
    assert F8.check(array.astype(np.int64)).dtype == np.uint8


@pytest.mark.parametrize("field", [GF(1), F8, GF(16), GF(32)], ids=repr)
def test_division_by_zero(field: Field) -> None:
    for a, b in ((1, 0), (0, 0), (np.array([1, 1]), np.array([1, 0])), (1, [0])):
        with pytest.raises(DivisionByZeroError):
            field.div(a, b)
    for zero in (0, [1, 0], np.zeros(2, field.dtype)):
        for operation in (field.inv, field.log, lambda a: field.pow(a, -1)):
            with pytest.raises(DivisionByZeroError):
                operation(zero)
    with pytest.raises(ZeroDivisionError):
        field.pow([0, 1], [-1, -1])


@pytest.mark.parametrize("field", [GF(1), GF(3), F8, GF(16), GF(32)], ids=repr)
def test_exponents(field: Field) -> None:
    size = field.order - 1
    assert field.pow(0, 0) == 1
    assert field.pow(0, 5) == 0
    assert field.pow([0, 1, 0], [0, 0, 7]).tolist() == [1, 1, 0]
    assert field.pow(0, size) == 0  # not 0 to the 0
    g = field.generator
    assert field.pow(g, size) == field.pow(g, 0) == field.pow(g, -size) == 1
    assert field.pow(g, 10**30) == field.exp(10**30 % size)
    assert field.pow(g, np.uint64(2**64 - 1)) == field.exp(np.array([2**64 - 1], np.uint64))[0]
    assert field.pow(g, np.array([-128], np.int8))[0] == field.exp(-128)
    wrongs: list[Any] = [1.0, [0.5], True, np.array([True])]
    for wrong in wrongs:
        with pytest.raises(FieldError, match="exponents are integers"):
            field.pow(1, wrong)


def test_elements_have_operators() -> None:
    a, b = F8(0x53), F8(0xCA)
    assert isinstance(a, Element)
    assert a + b == a - b == F8(0x53 ^ 0xCA)
    assert (a * b).value == F8.mul(0x53, 0xCA)
    assert a / b * b == a
    assert a**-1 == 1 / a
    assert 3 + a == a + 3 == 3 - a
    assert 2 * a == a * 2
    assert -a == a
    assert int(a) == 0x53
    assert range(256)[a] == 0x53
    assert not F8(0)
    assert len({a, F8(0x53), GF(8, 0x11B)(0x53)}) == 2
    assert repr(a) == "GF(8, 0x11d)(0x53)"
    assert pickle.loads(pickle.dumps(a)) == a  # noqa: S301
    with pytest.raises(DivisionByZeroError):
        a / F8(0)
    with pytest.raises(OutOfFieldError):
        a + 256


def test_mixed_fields_are_refused() -> None:
    a, other = F8(3), GF(8, 0x11B)(3)
    assert a != other
    for operation in (
        lambda: a + other,
        lambda: a * other,
        lambda: a / other,
        lambda: F8(other),
        lambda: F8.mul(1, other),
        lambda: F8.add(other, [1]),
        lambda: F8.check(other),
        lambda: F8.polyval([1], other),
    ):
        with pytest.raises(MixedFieldsError, match="0x11b"):
            operation()


@pytest.mark.parametrize("w", range(1, 17))
def test_exp_and_log_tables_multiply_zero_too(w: int) -> None:
    field = GF(w)
    a, b = sample(field, 200), sample(field, 200)[::-1]
    exp, log = field.exp_table, field.log_table
    assert np.array_equal(exp[log[a] + log[b]], field.mul(a, b))
    assert exp[2 * log[0]] == 0
    for table in (exp, log):
        with pytest.raises(ValueError, match="read-only"):
            table[0] = 1


def test_product_table() -> None:
    for w in range(1, 9):
        field = GF(w)
        everything = np.arange(field.order)
        assert np.array_equal(field.mul_table(), field.mul(everything[:, None], everything))
        assert not field.mul_table().flags.writeable
    with pytest.raises(FieldError, match="too large"):
        GF(9).mul_table()
    for read in (lambda: GF(32).exp_table, lambda: GF(32).log_table):
        with pytest.raises(FieldError, match="too large"):
            read()


@pytest.mark.parametrize("field", FIELDS, ids=repr)
def test_split_tables_multiply_bytes(field: Field) -> None:
    constants, values = sample(field, 12).reshape(3, 4), sample(field, 200)
    tables = field.split_tables(constants)
    positions = -(-field.w // 8)
    assert tables.shape == (3, 4, positions, 256)
    assert tables.dtype == field.dtype
    product = np.zeros((3, 4, 200), field.dtype)
    for position in range(positions):
        product ^= tables[:, :, position, values.astype(np.uint64) >> np.uint64(8 * position) & np.uint64(255)]
    assert np.array_equal(product, field.mul(constants[..., None], values))
    assert field.split_tables(3 % field.order).shape == (positions, 256)


def test_word_tables() -> None:
    field = GF(4)
    tables = field.word_tables(np.arange(16))
    assert tables.shape == (16, 1, 256)
    low, high = np.arange(256) & 15, np.arange(256) >> 4
    for c in range(16):
        assert np.array_equal(tables[c, 0], field.mul(c, low) | field.mul(c, high) << np.uint8(4))
    for w in (8, 16, 32):
        assert np.array_equal(GF(w).word_tables([3, 7]), GF(w).split_tables([3, 7]))
    with pytest.raises(ParameterError, match="w = 12"):
        GF(12).word_tables(1)
