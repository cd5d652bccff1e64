"""The family `fft`: transforms, locators, and matrices known by a rule."""

import itertools
from copy import copy  # by what pickling takes too

import numpy as np
import pytest

from gfcode.errors import ParameterError
from gfcode.gf import GF
from gfcode.matrix.certificate import certify
from gfcode.matrix.dense import Matrix
from gfcode.matrix.generator import parity_matrix
from gfcode.matrix.subspaces import evaluate, interpolate, locator_logarithms, skews
from gfcode.matrix.transformed import Decoding, Parity

FIELD = GF(8)
CHANCE = np.random.default_rng(3)


@pytest.mark.parametrize("levels", [1, 2, 5])
def test_subspace_polynomials_vanish_on_their_subspaces(levels: int) -> None:
    table = skews(FIELD, levels, np.arange(256))
    for level in range(levels):
        assert not table[level, : 1 << level].any()
        assert table[level, 1 << level] == 1
        sums = table[level][:, None] ^ table[level][None, :]
        assert (sums == table[level][np.arange(256)[:, None] ^ np.arange(256)[None, :]]).all(), "not linear"


@pytest.mark.parametrize(("w", "levels", "base"), [(8, 0, 3), (8, 3, 8), (8, 5, 224), (16, 4, 4096), (4, 2, 0)])
def test_interpolation_undoes_evaluation_of_polynomials(w: int, levels: int, base: int) -> None:
    field, size = GF(w), 1 << levels
    values = CHANCE.integers(0, field.order, (size, 3)).astype(field.dtype)
    coefficients = interpolate(field, values, base)
    assert (evaluate(field, coefficients, base) == values).all()
    # The sum of coefficients times products of normalised subspace polynomials.
    table = skews(field, levels, base + np.arange(size))
    for place in range(size):
        total = np.zeros(3, field.dtype)
        for number in range(size):
            product = 1
            for level in range(levels):
                if number >> level & 1:
                    product = field.mul(product, int(table[level, place]))
            total ^= field.mul(product, coefficients[number])
        assert (total == values[place]).all()


@pytest.mark.parametrize("w", [4, 8, 16])
def test_locators_are_products_of_differences(w: int) -> None:
    field = GF(w)
    for size in (2, 8, 16):
        for marked in (np.zeros(size, np.bool_), np.ones(size, np.bool_), CHANCE.random(size) < 0.4):
            logarithms = locator_logarithms(field, marked)
            for point in range(size):
                product = 1
                for other in np.flatnonzero(marked).tolist():
                    product = field.mul(product, point ^ other) if other != point else product
                assert field.exp_table[logarithms[point]] == product


def test_sums_of_logarithms_over_all_points_do_not_overflow() -> None:
    field = GF(16)
    marked = np.ones(1 << 16, np.bool_)
    logarithms = locator_logarithms(field, marked)
    # The product of all elements but 0 is 1, at every point.
    assert not logarithms.any()


@pytest.mark.parametrize(("w", "k", "m"), [(4, 3, 2), (4, 4, 3), (4, 2, 4), (3, 4, 3), (8, 5, 1), (4, 9, 2)])
def test_every_loss_is_decoded_as_elimination_does(w: int, k: int, m: int) -> None:
    field = GF(w)
    code = Parity(field, k, m)
    data = CHANCE.integers(0, field.order, (k, 4)).astype(field.dtype)
    shards = np.concatenate([data, np.asarray(field.dot(code.values, data))])
    assert (code.apply(data) == shards[k:]).all()
    generator = np.concatenate([np.eye(k, dtype=field.dtype), code.values])
    for basis in itertools.combinations(range(k + m), k):
        lost = [shard for shard in range(k + m) if shard not in basis]
        matrix = Decoding(code, basis, lost)
        dense = Matrix(field, generator[lost]) @ Matrix(field, generator[list(basis)]).inverse()
        assert (matrix.values == dense.values).all()
        assert (matrix.apply(shards[list(basis)]) == shards[lost]).all()


@pytest.mark.parametrize(("w", "k", "m"), [(8, 50, 20), (8, 128, 128), (8, 20, 100), (16, 70, 33)])
def test_chance_losses_of_wide_codes(w: int, k: int, m: int) -> None:
    field = GF(w)
    code = Parity(field, k, m)
    data = CHANCE.integers(0, field.order, (k, 3)).astype(field.dtype)
    shards = np.concatenate([data, code.apply(data)])
    assert (shards[k:] == np.asarray(field.dot(code.values, data))).all()
    for wanted in (range(k), range(k, k + m), range(k + m)):
        basis = np.sort(CHANCE.permutation(k + m)[:k])
        want = [shard for shard in wanted if shard not in basis] + [int(basis[0])]
        matrix = Decoding(code, basis.tolist(), want)
        assert (np.asarray(field.dot(matrix.values, shards[basis])) == shards[want]).all()
        assert (matrix.apply(shards[basis]) == shards[want]).all()


def test_what_is_too_large_is_refused_only_where_it_is_written_out() -> None:
    code = parity_matrix("fft", GF(16), 32768, 32768)
    assert certify(code).method == "cauchy"
    assert code.columns([5]).shape == (32768, 1)
    with pytest.raises(ParameterError, match="32768 x 32768 elements is too large"):
        code.values  # noqa: B018 - a property that raises


def test_equal_rules_make_equal_matrices() -> None:
    code = parity_matrix("fft", FIELD, 50, 20)
    assert code == Parity(FIELD, 50, 20)
    assert hash(code) == hash(Parity(FIELD, 50, 20))
    assert code != parity_matrix("fft", FIELD, 50, 19)
    assert code != Matrix(FIELD, code.values)
    assert copy(code) == code
    assert isinstance(code, Parity)
    matrix = Decoding(code, range(1, 51), [0])
    assert copy(matrix) == matrix
    assert matrix != Decoding(code, range(1, 51), [51])
    assert (matrix.rows([0]).values == matrix.values).all()
    assert (code.rows([3, 1]).values == code.values[[3, 1]]).all()
    with pytest.raises(AttributeError, match="immutable"):
        code.field = GF(4)
