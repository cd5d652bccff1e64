import warnings
from itertools import product

import numpy as np
import pytest

from gfcode.errors import NotMDSError, ParameterError
from gfcode.gf import GF, Field
from gfcode.gf.polynomials import FIELD_SIZES
from gfcode.matrix import generator
from gfcode.matrix.bitmatrix import element_ones, ones
from gfcode.matrix.certificate import certify
from gfcode.matrix.dense import Matrix
from gfcode.matrix.generator import FAMILIES, generator_matrix, parity_matrix, resolve_auto

F8 = GF(8)


def test_powers() -> None:
    expected = [[F8.pow(2, i * j) for j in range(10)] for i in range(4)]
    assert parity_matrix("powers", F8, 10, 4).values.tolist() == expected


def test_cauchy() -> None:
    expected = [[F8.inv((10 + i) ^ j) for j in range(10)] for i in range(4)]
    assert parity_matrix("cauchy", F8, 10, 4).values.tolist() == expected


@pytest.mark.parametrize(("w", "k", "m"), [(8, 10, 4), (8, 5, 1), (4, 9, 8), (16, 7, 3), (3, 2, 5)])
def test_vandermonde_is_the_extended_matrix_with_identity_on_top(w: int, k: int, m: int) -> None:
    field = GF(w)
    extended = np.zeros((k + m, k), field.dtype)
    extended[:-1] = field.pow(np.arange(k + m - 1)[:, None], np.arange(k))
    extended[-1, -1] = 1
    top = Matrix(field, extended[:k])
    below = (Matrix(field, extended[k:]) @ top.inverse()).values
    below = field.div(below, below[0])
    below = field.div(below, below[:, :1])
    assert np.array_equal(parity_matrix("vandermonde", field, k, m).values, below)


@pytest.mark.parametrize("w", range(2, 12))
def test_cauchy_good_of_two_rows_takes_the_lightest_elements(w: int) -> None:
    field = GF(w)
    k = min(field.order - 1, 1023)
    first, second = parity_matrix("cauchy-good", field, k, 2).values
    weights = element_ones(field, second)
    assert (first == 1).all()
    assert second[0] == 1
    assert len(set(second.tolist())) == k
    assert (np.diff(weights) >= 0).all()
    left_out = np.setdiff1d(np.arange(1, field.order, dtype=field.dtype), second)
    assert not left_out.size or element_ones(field, left_out).min() >= weights[-1]


def test_cauchy_good_is_a_scaled_cauchy_matrix_with_fewer_ones() -> None:
    for field, k, m in ((F8, 10, 4), (GF(16), 12, 5), (GF(32), 5, 4)):
        good = parity_matrix("cauchy-good", field, k, m)
        plain = field.inv((np.arange(m)[:, None] ^ np.arange(m, m + k)).astype(field.dtype))
        ratio = field.div(good.values, plain)
        scaled = field.div(field.mul(ratio[:, :1], ratio[:1]), int(ratio[0, 0]))
        assert np.array_equal(ratio, scaled)  # rows and columns scaled, nothing else
        assert (good.values[0] == 1).all()
        assert ones(good) < ones(Matrix(field, plain))


def test_no_division_of_a_row_leaves_fewer_ones() -> None:
    for row in parity_matrix("cauchy-good", F8, 10, 4).values[1:]:
        weights = [int(element_ones(F8, F8.div(row, int(divisor))).sum()) for divisor in row]
        assert element_ones(F8, row).sum() == min(weights)


def test_ones_by_correlation_are_those_counted_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    for field, k in ((GF(16), 1100), (GF(16), 40), (F8, 255), (GF(11), 1500)):
        row = (rng.permutation(field.order - 1)[:k] + 1).astype(field.dtype)
        monkeypatch.setattr(generator, "_QUOTIENTS", 1 << 23)
        direct = generator._ones_by_divisor(field, row)
        monkeypatch.setattr(generator, "_QUOTIENTS", 1)
        assert np.array_equal(generator._ones_by_divisor(field, row), direct)


@pytest.mark.parametrize(("w", "k", "m"), [(8, 10, 3), (8, 7, 4), (4, 8, 7), (16, 5, 9), (8, 9, 1)])
def test_fft_sums_interpolations_over_cosets(w: int, k: int, m: int) -> None:
    """Each M data shards are interpolated at points of their own; parities are the sums of the values at 0 .. m - 1."""
    field = GF(w)
    size = 1 << (m - 1).bit_length()
    parity = parity_matrix("fft", field, k, m).values
    for data, row in product(range(k), range(m)):
        point = size + data
        coset = point // size * size
        value = 1
        for other in range(coset, coset + size):
            if other != point:  # Lagrange's basis polynomial of the point, at the row's
                value = field.mul(value, field.div(row ^ other, point ^ other))
        assert parity[row, data] == value


@pytest.mark.parametrize("family", [*(family for family in FAMILIES if family != "searched"), "auto"])
@pytest.mark.parametrize("w", FIELD_SIZES)
def test_small_shapes_of_every_family_and_field(family: str, w: int) -> None:
    field = GF(w)
    room = {"cauchy": field.order, "powers": min(5, field.order + 1), "cauchy-good": field.order}.get(
        family, field.order + 1
    )
    for k, m in product(range(1, 5), range(5)):
        taken = k + m if family != "fft" or m == 0 else k + (1 << (m - 1).bit_length())
        if taken > min(room, field.order if family == "fft" and m else room):
            continue
        parity = parity_matrix(family, field, k, m)
        assert parity.shape == (m, k)
        certify(parity)
        generator = generator_matrix(parity)
        assert generator.shape == (k + m, k)
        assert generator.rows(range(k)) == Matrix.identity(field, k)
        assert np.array_equal(generator.rows(range(k, k + m)).values, parity.values)


@pytest.mark.parametrize("family", ["vandermonde", "powers", "cauchy-good", "auto"])
@pytest.mark.parametrize(("k", "m"), [(300, 0), (300, 1), (1, 300)])
def test_codes_of_any_length(family: str, k: int, m: int) -> None:
    parity = parity_matrix(family, F8, k, m)
    assert (parity.values == 1).all()
    certify(parity)


@pytest.mark.parametrize(
    ("family", "w", "k", "m", "room"),
    [
        ("cauchy", 4, 14, 3, 16),
        ("cauchy", 8, 256, 1, 256),
        ("cauchy-good", 4, 14, 3, 16),
        ("auto", 8, 250, 125, 257),
        ("vandermonde", 8, 250, 125, 257),
        ("powers", 3, 7, 3, 9),
        ("fft", 4, 9, 5, 13),
        ("fft", 8, 200, 33, 225),
    ],
)
def test_too_many_shards_are_refused_with_the_limit(family: str, w: int, k: int, m: int, room: int) -> None:
    with pytest.raises(ParameterError, match=rf"{k + m} shards .* GF\(2\^{w}\).* room for {room}"):
        parity_matrix(family, GF(w), k, m)


@pytest.mark.parametrize(
    ("family", "w", "k", "m"),
    [
        ("cauchy", 4, 13, 3),
        ("cauchy-good", 4, 13, 3),
        ("cauchy-good", 4, 15, 2),
        ("vandermonde", 4, 14, 3),
        ("fft", 4, 12, 3),
        ("fft", 4, 8, 8),
    ],
)
def test_every_family_fills_its_room(family: str, w: int, k: int, m: int) -> None:
    assert certify(parity_matrix(family, GF(w), k, m)).method == "cauchy"


def test_unknown_family_and_bad_counts_are_refused() -> None:
    with pytest.raises(ParameterError, match="unknown matrix 'magic'; choose auto, vandermonde"):
        parity_matrix("magic", F8, 4, 2)
    for k, m in ((0, 1), (-1, 1), (1, -1)):
        with pytest.raises(ParameterError, match="at least"):
            parity_matrix("auto", F8, k, m)


@pytest.mark.parametrize(
    ("field", "k", "m", "family"),
    [
        (F8, 10, 4, "powers"),
        (F8, 21, 4, "powers"),
        (F8, 22, 4, "cauchy-good"),
        (F8, 5, 5, "powers"),
        (F8, 6, 5, "cauchy-good"),
        (F8, 4, 6, "powers"),
        (F8, 5, 6, "cauchy-good"),
        (F8, 10, 10, "cauchy-good"),
        (F8, 254, 3, "powers"),
        (F8, 5, 250, "cauchy-good"),
        (F8, 200, 57, "vandermonde"),
        (GF(8, 0x11B), 51, 2, "powers"),
        (GF(8, 0x11B), 52, 2, "cauchy-good"),
        (GF(1, 0x2), 2, 1, "powers"),
        (GF(16), 40, 4, "powers"),
        (GF(16), 250, 125, "cauchy-good"),
        (GF(16), 1000, 300, "cauchy-good"),
        (GF(16), 1023, 1024, "cauchy-good"),
        (GF(16), 1024, 1024, "fft"),
        (GF(16), 30000, 30000, "fft"),
        (GF(16), 40000, 25000, "cauchy-good"),
        (GF(32), 2000, 2000, "cauchy-good"),
        (GF(32), 20, 3, "powers"),
    ],
)
def test_auto(field: Field, k: int, m: int, family: str) -> None:
    assert resolve_auto(field, k, m) == family


@pytest.mark.parametrize(("w", "k", "m"), [(16, 4096, 4096), (16, 1100, 2000), (32, 1000, 100)])
def test_matrices_that_take_long_say_so_before(w: int, k: int, m: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(
            RuntimeWarning, match=f"k = {k}, m = {m} takes a while; 'fft' and 'cauchy' are made at once"
        ):
            parity_matrix("cauchy-good", GF(w), k, m)
        parity_matrix("cauchy-good", GF(16), 200, 50)


def test_wide_matrices_are_certified() -> None:
    for field, k, m in ((GF(16), 250, 125), (GF(16), 1000, 300)):
        parity = parity_matrix("auto", field, k, m)
        assert parity.shape == (m, k)
        assert certify(parity).method == "cauchy"


@pytest.mark.parametrize("k", [22, 60])
def test_powers_beyond_their_reach_are_made_but_not_certified(k: int) -> None:
    with pytest.raises(NotMDSError):
        certify(parity_matrix("powers", F8, k, 4))
