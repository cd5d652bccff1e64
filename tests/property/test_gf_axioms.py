"""The field axioms, for every w and several polynomials."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gfcode.gf import GF, Field
from gfcode.gf.polynomials import FIELD_SIZES

FIELDS = [
    *map(GF, FIELD_SIZES),
    *(GF(8, polynomial) for polynomial in (0x11B, 0x12B, 0x165, 0x187)),
    GF(4, 0x19),
    GF(4, 0x1F),
    GF(16, 0x1002D),
    GF(32, 0x10000008D),
]
fields = st.sampled_from(FIELDS)
quick = settings(deadline=None, max_examples=60)
each_field = pytest.mark.parametrize("field", FIELDS, ids=repr)


def elements(field: Field, minimum: int = 0) -> st.SearchStrategy[int]:
    return st.integers(minimum, field.order - 1)


@each_field
@quick
@given(data=st.data())
def test_axioms(field: Field, data: st.DataObject) -> None:
    a, b, c = (field(data.draw(elements(field))) for _ in range(3))
    assert a + b == b + a
    assert a * b == b * a
    assert (a + b) + c == a + (b + c)
    assert (a * b) * c == a * (b * c)
    assert a * (b + c) == a * b + a * c
    assert a + 0 == a * 1 == a
    assert a + a == a * 0 == field(0)
    if b:
        assert b * (1 / b) == field(1)
        assert a / b * b == a
    assert (a + b) ** 2 == a**2 + b**2  # Frobenius
    assert a**field.order == a


@quick
@given(data=st.data(), field=fields)
def test_powers_and_logarithms(data: st.DataObject, field: Field) -> None:
    a, b = data.draw(elements(field, 1)), data.draw(elements(field, 1))
    d, e = data.draw(st.integers(-(2**70), 2**70)), data.draw(st.integers(-(2**70), 2**70))
    assert field.mul(field.pow(a, d), field.pow(a, e)) == field.pow(a, d + e)
    assert field.pow(field.pow(a, d), e) == field.pow(a, d * e)
    assert field.pow(a, -1) == field.inv(a)
    assert field.exp(field.log(a)) == a
    assert 0 <= field.log(a) < max(1, field.order - 1)
    assert field.log(field.mul(a, b)) == (field.log(a) + field.log(b)) % (field.order - 1)
    assert field.log(field.exp(d)) == d % (field.order - 1)


@quick
@given(data=st.data(), field=fields)
def test_arrays_do_what_integers_do(data: st.DataObject, field: Field) -> None:
    a = np.array(data.draw(st.lists(elements(field), min_size=1, max_size=5)), field.dtype)
    b = np.array(data.draw(st.lists(elements(field, 1), min_size=len(a), max_size=len(a))), field.dtype)
    e = np.array(data.draw(st.lists(st.integers(0, 2**40), min_size=len(a), max_size=len(a))))
    for operation in (field.add, field.mul, field.div):
        expected = [operation(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
        assert operation(a, b).tolist() == expected
    assert field.inv(b).tolist() == [field.inv(y) for y in b.tolist()]
    assert field.log(b).tolist() == [field.log(y) for y in b.tolist()]
    assert field.exp(e).tolist() == [field.exp(y) for y in e.tolist()]
    assert field.pow(a, e).tolist() == [field.pow(x, y) for x, y in zip(a.tolist(), e.tolist(), strict=True)]


@quick
@given(data=st.data(), field=fields)
def test_polynomials_and_dot_products(data: st.DataObject, field: Field) -> None:
    coefficients = data.draw(st.lists(elements(field), max_size=6))
    x = data.draw(elements(field))
    powers = [field.pow(x, i) for i in reversed(range(len(coefficients)))]
    expected = 0
    for coefficient, power in zip(coefficients, powers, strict=True):
        expected ^= field.mul(coefficient, power)
    assert field.polyval(coefficients, x) == expected
    assert field.dot(coefficients, powers) == expected


@quick
@given(data=st.data(), field=fields)
def test_tables_by_bytes_are_linear_and_right(data: st.DataObject, field: Field) -> None:
    c, v = data.draw(elements(field)), data.draw(elements(field))
    product = 0
    for position, table in enumerate(field.split_tables(c)):
        product ^= int(table[v >> 8 * position & 255])
    assert product == field.mul(c, v)
