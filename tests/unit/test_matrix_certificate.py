from itertools import combinations

import numpy as np
import pytest

from gfcode.errors import NotMDSError
from gfcode.gf import GF, Field
from gfcode.matrix import certificate
from gfcode.matrix.certificate import certify
from gfcode.matrix.dense import Matrix
from gfcode.matrix.generator import generator_matrix, parity_matrix, powers
from gfcode.matrix.minors import count_minors, find_zero_minor

F8 = GF(8)


def defeats(parity: Matrix, lost: tuple[int, ...]) -> bool:
    """Whether a loss leaves too few independent rows of the generator matrix."""
    m, k = parity.shape
    assert len(set(lost)) == m
    assert set(lost) <= set(range(k + m))
    return generator_matrix(parity).rows(i for i in range(k + m) if i not in lost).rank() < k


@pytest.mark.parametrize(("field", "longest"), [(F8, 21), (GF(8, 0x165), 23)])
def test_reach_of_powers_with_four_rows(field: Field, longest: int) -> None:
    for k in range(1, longest + 1):
        certify(parity_matrix("powers", field, k, 4))
    with pytest.raises(NotMDSError):
        certify(parity_matrix("powers", field, longest + 1, 4))


def test_reach_of_powers_with_five_rows_over_another_polynomial() -> None:
    field = GF(8, 0x12B)
    for k in range(1, 14):
        certify(parity_matrix("powers", field, k, 5))
    with pytest.raises(NotMDSError):
        certify(parity_matrix("powers", field, 14, 5))


@pytest.mark.parametrize("m", [1, 2, 3])
def test_powers_with_up_to_three_rows_are_always_safe(m: int) -> None:
    for k in (*range(1, 20), 60, 254):
        assert certify(parity_matrix("powers", F8, k, m)).method != "exhaustive"
    assert find_zero_minor(F8, parity_matrix("powers", F8, 60, m).values) is None


def test_three_rows_of_powers_use_every_element() -> None:
    # A code of length 2^w + 2, as long as an MDS code of three parity shards can be.
    parity = Matrix(GF(4), powers(GF(4), 15, 3))
    assert certify(parity).method == "conic"
    assert find_zero_minor(parity.field, parity.values) is None
    assert certify(Matrix(F8, powers(F8, 255, 3))).method == "conic"
    with pytest.raises(NotMDSError):
        certify(Matrix(F8, powers(F8, 256, 3)))


@pytest.mark.parametrize(
    ("k", "m", "data", "rows"),
    [(22, 4, (0, 10, 21), (0, 1, 3)), (6, 5, (0, 3, 5), (0, 1, 4)), (5, 6, (0, 3, 4), (0, 2, 5))],
)
def test_first_failures_of_powers(k: int, m: int, data: tuple[int, ...], rows: tuple[int, ...]) -> None:
    parity = parity_matrix("powers", F8, k, m)
    with pytest.raises(NotMDSError) as caught:
        certify(parity)
    lost = data + tuple(k + i for i in range(m) if i not in rows)
    assert caught.value.lost == lost
    assert defeats(parity, lost)
    for numbers in (lost, data, rows):
        assert "{" + ",".join(map(str, numbers)) + "}" in str(caught.value)
    smaller = parity_matrix("powers", F8, k - 1, m)
    certify(smaller)


@pytest.mark.parametrize(
    ("k", "m", "lost"),
    [
        (10, 5, (0, 3, 5, 12, 13)),
        (10, 10, (5, 8, 9, 11, 13, 14, 16, 17, 18, 19)),
        (9, 9, (0, 1, 2, 5, 7, 9, 10, 14, 16)),
    ],
)
def test_further_losses_that_powers_do_not_survive(k: int, m: int, lost: tuple[int, ...]) -> None:
    parity = parity_matrix("powers", F8, k, m)
    assert defeats(parity, lost)
    with pytest.raises(NotMDSError) as caught:
        certify(parity)
    assert defeats(parity, caught.value.lost)
    assert not defeats(parity_matrix("auto", F8, k, m), lost)


@pytest.mark.parametrize(
    ("family", "field", "k", "m", "method"),
    [
        ("powers", F8, 10, 4, "exhaustive"),
        ("powers", F8, 10, 3, "conic"),
        ("powers", F8, 3, 8, "conic"),
        ("powers", F8, 10, 2, "cauchy"),
        ("powers", F8, 10, 1, "trivial"),
        ("powers", F8, 10, 0, "trivial"),
        ("powers", F8, 1, 10, "trivial"),
        ("vandermonde", F8, 200, 50, "cauchy"),
        ("cauchy", F8, 10, 10, "cauchy"),
        ("cauchy-good", F8, 10, 10, "cauchy"),
        ("cauchy-good", GF(32), 6, 4, "cauchy"),
        ("powers", GF(32), 9, 4, "exhaustive"),
        ("vandermonde", GF(16), 1000, 300, "cauchy"),
    ],
)
def test_methods(family: str, field: Field, k: int, m: int, method: str) -> None:
    found = certify(parity_matrix(family, field, k, m))
    assert found.method == method
    assert found.detail


@pytest.mark.parametrize("middle", range(3))
def test_conics_in_any_order_of_rows(middle: int) -> None:
    rows = parity_matrix("powers", F8, 30, 3).rows({0: (1, 0, 2), 1: (0, 1, 2), 2: (2, 0, 1)}[middle])
    scaled = Matrix(F8, F8.mul(F8.mul(rows.values, [[3], [7], [9]]), np.arange(1, 31)))
    assert certify(scaled).method == "conic"
    assert certify(scaled.transpose()).method == "conic"
    assert find_zero_minor(F8, scaled.values) is None


@pytest.mark.parametrize(
    ("values", "lost"),
    [
        ([[1, 0, 1]], (1,)),
        ([[1, 1], [1, 0]], (1, 2)),
        ([[1], [0], [1]], (0, 1, 3)),
        ([[1, 2, 1], [1, 3, 1]], (0, 2)),
        ([[1, 2], [5, 7], [1, 2]], (0, 1, 3)),
        ([[1, 2, 3], [2, 4, 6]], (0, 1)),
    ],
)
def test_zeros_and_twins_are_named(values: list[list[int]], lost: tuple[int, ...]) -> None:
    parity = Matrix(F8, values)
    with pytest.raises(NotMDSError) as caught:
        certify(parity)
    assert caught.value.lost == lost
    assert defeats(parity, lost)


def test_a_long_loss_is_abbreviated_in_the_message_only() -> None:
    parity = parity_matrix("powers", F8, 5, 250)
    with pytest.raises(NotMDSError) as caught:
        certify(parity)
    assert len(caught.value.lost) == 250
    assert defeats(parity, caught.value.lost)
    assert "{0,3-4,6,8-9,11-254}" in str(caught.value)
    assert len(str(caught.value)) < 300


def test_what_cannot_be_proven_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    parity = parity_matrix("powers", GF(16), 20, 4)
    assert count_minors(4, 20) == 10625
    monkeypatch.setattr(certificate, "MINORS_LIMIT", 10624)
    certificate._outcome.cache_clear()
    with pytest.raises(NotMDSError, match=r"could not be proven MDS.* 10625 .* 10624 .*cauchy-good") as caught:
        certify(parity)
    assert caught.value.lost == ()
    certificate._outcome.cache_clear()


def test_a_failure_is_found_in_the_corner_of_a_large_matrix() -> None:
    parity = parity_matrix("powers", GF(16), 250, 125)
    with pytest.raises(NotMDSError) as caught:
        certify(parity)
    assert len(caught.value.lost) == 125
    assert defeats(parity, caught.value.lost)


@pytest.mark.parametrize("shape", [(125, 250), (250, 125), (4, 300), (300, 4), (30000, 30000), (2, 60000), (3, 3)])
def test_corners_are_as_large_as_they_may_be(shape: tuple[int, int]) -> None:
    limit = 1 << 22
    rows, columns = certificate._corner(*shape, limit)
    assert rows <= shape[0]
    assert columns <= shape[1]
    assert count_minors(rows, columns) <= limit
    assert rows == shape[0] or columns == shape[1] or count_minors(rows + 1, columns + 1) > limit


def test_outcomes_are_cached() -> None:
    good, bad = parity_matrix("powers", F8, 21, 4), parity_matrix("powers", F8, 22, 4)
    assert certify(good) is certify(Matrix(F8, good.values))
    errors = []
    for _ in range(2):
        with pytest.raises(NotMDSError) as caught:
            certify(bad)
        errors.append(caught.value)
    assert errors[0] is not errors[1]  # a raised exception is never raised again: it carries its traceback
    assert errors[0].lost == errors[1].lost


def test_count_of_minors() -> None:
    for rows in range(5):
        for columns in range(5):
            expected = sum(
                len(list(combinations(range(rows), size))) * len(list(combinations(range(columns), size)))
                for size in range(1, 5)
            )
            assert count_minors(rows, columns) == expected


def test_search_in_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gfcode.matrix.minors._BLOCK", 7)
    parity = parity_matrix("powers", F8, 22, 4).values
    assert find_zero_minor(F8, parity[:, :21]) is None
    assert find_zero_minor(F8, parity) == ((0, 1, 3), (0, 10, 21))
    assert find_zero_minor(F8, parity.T) == ((0, 10, 21), (0, 1, 3))
