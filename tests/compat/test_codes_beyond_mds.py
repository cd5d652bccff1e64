"""Codes that not every loss of m fragments leaves decodable: what the algebra allows is done, the rest named."""

import random
from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest

from gfcode.compat.pyeclib import ECDriver, ECInsufficientFragments
from gfcode.gf import GF
from gfcode.matrix.dense import Matrix

DATA = random.Random(6).randbytes(1000)


def losses(driver: ECDriver, most: int) -> Iterator[tuple[tuple[int, ...], bool]]:
    """Every loss of up to `most` fragments, and whether the rest has full rank."""
    parity = driver.ec_lib_reference._stripe().code.parity
    generator = Matrix.vstack([Matrix.identity(parity.field, driver.k), parity])
    n = driver.k + driver.m
    for count in range(most + 1):
        for lost in combinations(range(n), count):
            yield lost, generator.rows(i for i in range(n) if i not in lost).rank() == driver.k


@pytest.mark.parametrize(
    ("ec_type", "k", "m"),
    [("flat_xor_hd_3", 6, 5), ("flat_xor_hd_4", 5, 5), ("flat_xor_hd_3", 3, 3), ("isa_l_rs_vand", 6, 5)],
)
def test_decodes_whatever_can_be(ec_type: str, k: int, m: int) -> None:
    driver = ECDriver(ec_type=ec_type, k=k, m=m)
    f = driver.encode(DATA)
    decoded = refused = 0
    for lost, possible in losses(driver, m):
        left = [f[i] for i in range(k + m) if i not in lost]
        if possible:
            assert driver.decode(left) == DATA, lost
            decoded += 1
        else:
            with pytest.raises(ECInsufficientFragments, match="is not MDS"):
                driver.decode(left)
            refused += 1
    assert decoded > refused > 0


def test_what_else_would_help_is_named() -> None:
    """(6, 5) of powers of two: the loss of 0, 3, 5 and parities 2 and 3 leaves a singular square."""
    driver = ECDriver(ec_type="isa_l_rs_vand", k=6, m=5)
    f = driver.encode(DATA)
    lost = (0, 3, 5, 8, 9)
    with pytest.raises(ECInsufficientFragments) as raised:
        driver.decode([f[i] for i in range(11) if i not in lost])
    assert "with fragments 0, 3, 5, 8, 9 missing it does not determine fragments 0, 3, 5" in str(raised.value)
    assert "any one of fragments 0, 3, 5, 8, 9 besides would be enough" in str(raised.value)
    assert "shard" not in str(raised.value)


@pytest.mark.parametrize(("ec_type", "k", "m"), [("flat_xor_hd_3", 10, 5), ("flat_xor_hd_4", 12, 6)])
def test_fragments_needed_are_enough_and_few(ec_type: str, k: int, m: int) -> None:
    driver = ECDriver(ec_type=ec_type, k=k, m=m)
    f = driver.encode(DATA)
    for wanted in (*combinations(range(k + m), 1), *combinations(range(0, k + m, 2), 2)):
        found = driver.fragments_needed(list(wanted))
        assert not set(found) & set(wanted)
        assert len(found) < k or len(wanted) > 1
        assert driver.reconstruct([f[i] for i in found], list(wanted)) == [f[i] for i in wanted]
        without = driver.fragments_needed([wanted[0]], list(wanted[1:]))
        assert not set(without) & set(wanted)
        assert driver.reconstruct([f[i] for i in without], [wanted[0]]) == [f[wanted[0]]]
    assert driver.fragments_needed([]) == list(range(k))
    with pytest.raises(ECInsufficientFragments):
        driver.fragments_needed(list(range(m + 1)))


def test_needed_falls_back_where_the_first_k_are_singular() -> None:
    driver = ECDriver(ec_type="isa_l_rs_vand", k=6, m=5)
    f = driver.encode(DATA)
    for wanted, excluded in (((0, 3, 5), ()), ((0, 3, 5), (8,)), ((0, 3, 5), (7,)), ((0, 3), (5, 6))):
        found = driver.fragments_needed(wanted, excluded)
        assert len(found) == 6
        assert not set(found) & {*wanted, *excluded}
        assert driver.decode([f[i] for i in found]) == DATA


def test_local_repair_reads_its_group() -> None:
    driver = ECDriver(ec_type="isa_l_rs_lrc", k=10, m=5, local_parity=2)
    f = driver.encode(DATA)
    assert driver.fragments_needed([2]) == [0, 1, 3, 4, 13]
    assert driver.reconstruct([f[i] for i in (0, 1, 3, 4, 13)], [2]) == [f[2]]
    assert driver.reconstruct([f[i] for i in range(5)], [13]) == [f[13]]
    assert driver.decode([f[i] for i in range(15) if i not in {2, 7, 10, 11}]) == DATA


def test_bits_of_flat_xor_stay_bits() -> None:
    """Weights over GF(2^8) of a code of zeros and ones are zeros and ones: its decoding is XORs."""
    driver = ECDriver(ec_type="flat_xor_hd_4", k=10, m=5)
    stripe = driver.ec_lib_reference._stripe()
    for lost in combinations(range(10), 3):
        plan = stripe.plan([i for i in range(15) if i not in lost], lost)
        assert plan.matrix.field == GF(8)
        assert np.isin(plan.matrix.values, (0, 1)).all()
