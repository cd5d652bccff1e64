"""Vectors against the `galois` library, which shares no code with gfcode."""

from typing import Any

import numpy as np
import pytest

from gfcode.gf import GF, factor, is_irreducible

# Importing galois compiles nothing, but its own dependencies may warn of their future.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

CASES = [
    (2, 0x7),
    (3, 0xD),
    (5, 0x25),
    (8, 0x11D),
    (8, 0x11B),
    (8, 0x187),
    (12, 0x1053),
    (13, 0x201B),
    (16, 0x1100B),
    (16, 0x1002D),
    (32, 0x100400007),
]


@pytest.fixture(scope="module")
def galois() -> Any:
    return pytest.importorskip("galois")


@pytest.mark.parametrize(("w", "polynomial"), CASES)
def test_arithmetic(galois: Any, w: int, polynomial: int) -> None:
    field = GF(w, polynomial)
    # python-calculate: explicit arithmetic in Python integers, without tables and without numba's compiler
    peer = galois.GF(
        2**w, irreducible_poly=polynomial, primitive_element=field.generator, verify=False, compile="python-calculate"
    )
    rng = np.random.default_rng(w)
    a = rng.integers(0, 2**w, 16, dtype=np.int64)
    b = rng.integers(1, 2**w, 16, dtype=np.int64)
    exponents = rng.integers(-50, 50, 16)
    theirs_a, theirs_b = peer(a), peer(b)
    for ours, theirs in (
        (field.add(a, b), theirs_a + theirs_b),
        (field.mul(a, b), theirs_a * theirs_b),
        (field.div(a, b), theirs_a / theirs_b),
        (field.inv(b), theirs_b**-1),
        (field.pow(b, exponents), theirs_b**exponents),
        (field.polyval(a[:5], b), galois.Poly(theirs_a[:5])(theirs_b)),
        (
            field.dot(a[:12].reshape(3, 4), b[:12].reshape(4, 3)),
            theirs_a[:12].reshape(3, 4) @ theirs_b[:12].reshape(4, 3),
        ),
    ):
        assert np.array_equal(np.asarray(ours).astype(np.int64), np.asarray(theirs).astype(np.int64))
    if w <= 16:
        assert np.array_equal(field.log(b), np.asarray(theirs_b.log()).astype(np.int64))


def test_smallest_primitive_element(galois: Any) -> None:
    for w, polynomial in CASES[:-1]:
        assert GF(w, polynomial).generator == int(galois.primitive_element(galois.Poly.Int(polynomial))), (
            f"{polynomial:#x}"
        )


def test_polynomials(galois: Any) -> None:
    rng = np.random.default_rng(0)
    for polynomial in rng.integers(2, 2**33, 40).tolist():
        theirs, multiplicities = galois.factors(galois.Poly.Int(polynomial))
        expected = sorted(int(f) for f, times in zip(theirs, multiplicities, strict=True) for _ in range(times))
        assert factor(polynomial) == expected
        assert is_irreducible(polynomial) == (expected == [polynomial])
