import random
from functools import reduce

import pytest

from gfcode.errors import ParameterError, ReduciblePolynomialError
from gfcode.gf import GF
from gfcode.gf.polynomials import (
    FIELD_SIZES,
    default_polynomial,
    degree,
    divide,
    factor,
    format_polynomial,
    gcd,
    is_irreducible,
    multiply,
    power_mod,
    prime_factors,
)

# Numbers of irreducible polynomials over GF(2) of degree 1, 2, ... (OEIS A001037).
IRREDUCIBLE_COUNTS = [2, 1, 2, 3, 6, 9, 18, 30, 56, 99]


def test_counts_of_irreducible_polynomials() -> None:
    counts = [sum(map(is_irreducible, range(1 << d, 2 << d))) for d in range(1, 11)]
    assert counts == IRREDUCIBLE_COUNTS


def test_constants_are_not_irreducible() -> None:
    assert not is_irreducible(0)
    assert not is_irreducible(1)


def test_factors_multiply_back_and_are_irreducible() -> None:
    rng = random.Random(1)
    for polynomial in [*range(1, 1 << 9), *(rng.getrandbits(60) | 1 << 60 for _ in range(25))]:
        factors = factor(polynomial)
        assert reduce(multiply, factors, 1) == polynomial
        assert all(map(is_irreducible, factors))
        assert factors == sorted(factors)


def test_factor_separates_factors_of_equal_degree_and_repeated_ones() -> None:
    # All three irreducible quartics, and the square of one of them.
    assert factor(reduce(multiply, [0x13, 0x19, 0x1F, 0x19])) == [0x13, 0x19, 0x19, 0x1F]
    assert factor(1 << 5) == [2] * 5


def test_factor_of_zero_is_refused() -> None:
    with pytest.raises(ParameterError):
        factor(0)


def test_division() -> None:
    assert divide(0x11B, 0x13) == (0x12, 0xD)
    assert multiply(0x12, 0x13) ^ 0xD == 0x11B
    assert divide(0x5, 0x13) == (0, 0x5)
    with pytest.raises(ZeroDivisionError):
        divide(1, 0)


def test_gcd_and_powers() -> None:
    assert gcd(multiply(0x13, 0x7), multiply(0x7, 0xB)) == 0x7
    assert power_mod(2, 255, 0x11D) == 1
    assert power_mod(2, 51, 0x11B) == 1  # x is not primitive modulo 0x11b
    assert power_mod(0, 0, 0x11D) == 1


def test_prime_factors() -> None:
    assert prime_factors(2**32 - 1) == [3, 5, 17, 257, 65537]
    assert prime_factors(2**13 - 1) == [8191]
    assert prime_factors(1) == []


def test_defaults_are_irreducible_and_the_usual_ones() -> None:
    for w in FIELD_SIZES:
        assert degree(default_polynomial(w)) == w
        assert is_irreducible(default_polynomial(w))
    assert [default_polynomial(w) for w in (4, 8, 16, 32)] == [0x13, 0x11D, 0x1100B, 0x100400007]


@pytest.mark.parametrize("w", [0, -1, 17, 31, 33, 64, "8", None, 8.5])
def test_other_field_sizes_are_refused(w: int) -> None:
    with pytest.raises(ParameterError, match="w must be one of"):
        default_polynomial(w)
    with pytest.raises(ParameterError, match=r"w must be one of|integers"):
        GF(w, 0x20009)  # irreducible, of degree 17


def test_format() -> None:
    assert format_polynomial(0x11D) == "x^8 + x^4 + x^3 + x^2 + 1"
    assert format_polynomial(0x2) == "x"
    assert format_polynomial(0x0) == "0"


@pytest.mark.parametrize(
    ("w", "polynomial", "named"),
    [
        (8, 0x11A, "0x2 = x$"),
        (8, 0x11F, r"0x3 = x \+ 1$"),
        (8, multiply(0x7, 0x43), r"0x7 = x\^2 \+ x \+ 1$"),
        (4, 0x15, r"0x7 = x\^2 \+ x \+ 1$"),
        (16, multiply(0x11D, 0x11B), r"0x11b = "),
        (32, multiply(0x1100B, 0x1002D), r"0x1002d = "),
    ],
)
def test_reducible_polynomials_are_refused_with_a_factor(w: int, polynomial: int, named: str) -> None:
    with pytest.raises(ReduciblePolynomialError, match=f"divisible by {named}") as caught:
        GF(w, polynomial)
    assert f"{polynomial:#x}" in str(caught.value)


@pytest.mark.parametrize("polynomial", [0x1D, 0x21D, 0, -0x11D])
def test_polynomials_of_another_degree_are_refused(polynomial: int) -> None:
    with pytest.raises(ParameterError, match="has degree 8"):
        GF(8, polynomial)
