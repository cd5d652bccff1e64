"""Identities of matrices over fields, of their bit matrices, and of certificates."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gfcode.errors import NotMDSError, SingularMatrixError
from gfcode.gf import GF, Field
from gfcode.matrix import gf2
from gfcode.matrix.bitmatrix import expand
from gfcode.matrix.certificate import certify
from gfcode.matrix.dense import Matrix
from gfcode.matrix.generator import FAMILIES, generator_matrix, parity_matrix
from gfcode.matrix.minors import find_zero_minor

# Families that have a matrix for every small code.
ANY_CODE = [*(family for family in FAMILIES if family != "searched"), "auto"]
quick = settings(deadline=None, max_examples=100)
fields = st.sampled_from([GF(1), GF(2), GF(3), GF(4), GF(8), GF(8, 0x11B), GF(11), GF(16), GF(32)])
small_fields = st.sampled_from([GF(1), GF(2), GF(2, 0x7), GF(3), GF(3, 0xD), GF(4), GF(4, 0x1F)])
sizes = st.integers(0, 6)


@st.composite
def matrices(draw: st.DrawFn, field: Field, rows: int, columns: int, minimum: int = 0) -> Matrix:
    elements = st.integers(minimum, field.order - 1)
    return Matrix(field, draw(hnp.arrays(field.dtype, (rows, columns), elements=elements)))


def determinant(field: Field, values: np.ndarray[Any, Any]) -> int:
    """By expansion along the first row; the permutation sum, without signs in characteristic 2."""
    if not len(values):
        return 1
    total = 0
    for j, entry in enumerate(values[0].tolist()):
        total ^= field.mul(entry, determinant(field, np.delete(values[1:], j, axis=1)))
    return total


@quick
@given(data=st.data(), field=fields, n=sizes)
def test_a_matrix_has_an_inverse_exactly_when_its_determinant_is_not_zero(
    data: st.DataObject, field: Field, n: int
) -> None:
    n = min(n, 4)
    a = data.draw(matrices(field, n, n))
    if determinant(field, a.values):
        assert a.inverse() @ a == a @ a.inverse() == Matrix.identity(field, n)
        assert a.inverse().inverse() == a
        assert a.rank() == n
    else:
        assert a.rank() < n
        with pytest.raises(SingularMatrixError):
            a.inverse()


@quick
@given(data=st.data(), field=fields, shape=st.tuples(sizes, sizes, sizes, sizes))
def test_products(data: st.DataObject, field: Field, shape: tuple[int, int, int, int]) -> None:
    p, q, r, s = shape
    a, b, c = data.draw(matrices(field, p, q)), data.draw(matrices(field, q, r)), data.draw(matrices(field, r, s))
    assert (a @ b) @ c == a @ (b @ c)
    assert (a @ b).transpose() == b.transpose() @ a.transpose()
    assert a @ Matrix.identity(field, q) == a
    assert (a @ b).rank() <= min(a.rank(), b.rank())
    assert a.rank() == a.transpose().rank()


@quick
@given(data=st.data(), field=fields, shape=st.tuples(sizes, sizes, sizes))
def test_solutions_solve(data: st.DataObject, field: Field, shape: tuple[int, int, int]) -> None:
    rows, columns, r = shape
    a, x = data.draw(matrices(field, rows, columns)), data.draw(matrices(field, columns, r))
    if a.rank() == columns:
        assert a.solve(a @ x) == x
    else:
        with pytest.raises(SingularMatrixError):
            a.solve(a @ x)


@quick
@given(data=st.data(), field=fields, shape=st.tuples(sizes, sizes, sizes))
def test_expansion_is_a_homomorphism(data: st.DataObject, field: Field, shape: tuple[int, int, int]) -> None:
    p, q, r = shape
    a, b, c = data.draw(matrices(field, p, q)), data.draw(matrices(field, q, r)), data.draw(matrices(field, p, q))
    assert np.array_equal(expand(a @ b), gf2.product(expand(a), expand(b)))
    assert np.array_equal(expand(Matrix(field, field.add(a.values, c.values))), expand(a) ^ expand(c))
    assert np.array_equal(expand(Matrix.identity(field, p)), np.eye(p * field.w))
    assert gf2.rank(expand(a)) == field.w * a.rank()


@quick
@given(data=st.data(), field=fields, n=sizes)
def test_inverse_of_an_expansion_is_the_expansion_of_the_inverse(data: st.DataObject, field: Field, n: int) -> None:
    a = data.draw(matrices(field, n, n))
    assume(a.rank() == n)
    assert np.array_equal(gf2.inverse(expand(a)), expand(a.inverse()))


@quick
@given(bits=hnp.arrays(np.uint8, st.tuples(sizes, sizes), elements=st.integers(0, 1)))
def test_elimination_over_gf2_agrees_with_that_over_the_field_of_two(bits: np.ndarray[Any, Any]) -> None:
    matrix = Matrix(GF(1), bits)
    assert gf2.rank(bits) == matrix.rank()
    if bits.shape[0] == bits.shape[1] == matrix.rank():
        assert np.array_equal(gf2.inverse(bits), matrix.inverse().values)


@settings(deadline=None, max_examples=300)
@given(data=st.data(), field=small_fields, m=st.integers(1, 4), k=st.integers(1, 4))
def test_certificates_say_what_all_determinants_say(data: st.DataObject, field: Field, m: int, k: int) -> None:
    parity = data.draw(matrices(field, m, k, minimum=1))
    singular = {
        (rows, columns)
        for size in range(1, min(m, k) + 1)
        for rows in combinations(range(m), size)
        for columns in combinations(range(k), size)
        if determinant(field, parity.values[np.ix_(rows, columns)]) == 0
    }
    found = find_zero_minor(field, parity.values)
    if not singular:
        assert found is None
        certify(parity)
        return
    assert found in singular
    assert found is not None
    assert len(found[0]) == min(len(rows) for rows, _ in singular)
    with pytest.raises(NotMDSError) as caught:
        certify(parity)
    lost = caught.value.lost
    columns = tuple(i for i in lost if i < k)
    rows = tuple(i for i in range(m) if k + i not in lost)
    assert len(lost) == m
    assert (rows, columns) in singular


@quick
@given(data=st.data(), field=st.sampled_from([GF(3), GF(4), GF(8), GF(16), GF(32)]))
def test_generalised_cauchy_matrices_are_proven_and_near_misses_are_not_mistaken(
    data: st.DataObject, field: Field
) -> None:
    m, k = data.draw(st.integers(2, 4)), data.draw(st.integers(2, 4))
    # m + k distinct points of the projective line, in any coordinates, and any scaling of rows and columns
    points = data.draw(st.lists(st.integers(0, field.order), min_size=m + k, max_size=m + k, unique=True))
    nonzero = st.integers(1, field.order - 1)
    homogeneous = [(1, 0) if point == field.order else (point, 1) for point in points]
    values = np.empty((m, k), field.dtype)
    row_scales = data.draw(st.lists(nonzero, min_size=m, max_size=m))
    column_scales = data.draw(st.lists(nonzero, min_size=k, max_size=k))
    for i, (a, b) in enumerate(homogeneous[:m]):
        for j, (c, d) in enumerate(homogeneous[m:]):
            bracket = field.add(field.mul(a, d), field.mul(b, c))
            values[i, j] = field.div(field.mul(row_scales[i], column_scales[j]), bracket)
    assert certify(Matrix(field, values)).method == "cauchy"
    assert find_zero_minor(field, values) is None
    values[data.draw(st.integers(0, m - 1)), data.draw(st.integers(0, k - 1))] ^= data.draw(nonzero)
    safe = find_zero_minor(field, values) is None
    try:
        certify(Matrix(field, values))
    except NotMDSError:
        assert not safe
    else:
        assert safe


@quick
@given(data=st.data(), family=st.sampled_from(ANY_CODE), field=st.sampled_from([GF(8), GF(16), GF(32)]))
def test_any_k_shards_of_a_certified_code_give_the_data(data: st.DataObject, family: str, field: Field) -> None:
    k, m = data.draw(st.integers(1, 8)), data.draw(st.integers(0, 4))
    parity = parity_matrix(family, field, k, m)
    try:
        certify(parity)
    except NotMDSError:
        assert family == "powers"
        return
    survivors = sorted(data.draw(st.permutations(range(k + m)))[:k])
    generator = generator_matrix(parity)
    decode = generator.rows(survivors).inverse()
    assert decode @ generator.rows(survivors) == Matrix.identity(field, k)
