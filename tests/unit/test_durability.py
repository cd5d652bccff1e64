"""The durability chain against closed forms, exact arithmetic, and a simulation of every disk."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gfcode.durability import HOURS_PER_YEAR, MAX_PARITY, Chain, Repairs, chain, durability
from gfcode.errors import ParameterError


def test_without_parity_any_failure_is_a_loss() -> None:
    code = durability(10, 0, afr=0.02, mttr_hours=24, unreadable_bits=1e-12, shard_bytes=1e15)
    assert code.annual_loss == pytest.approx(-math.expm1(-0.2), rel=1e-12)
    assert code.mttdl_years == pytest.approx(5)
    assert (code.repair_reads, code.repair_reads_per_year, code.unreadable_repair) == (0, 0, 0)


def test_one_parity_has_the_formula_of_disk_arrays() -> None:
    """MTTDL of Patterson, Gibson & Katz, and its exact form: ((2n − 1)·λ + μ) / (n·(n − 1)·λ²)."""
    n, afr, mttr_years = 9, 0.03, 36 / HOURS_PER_YEAR
    code = durability(n - 1, 1, afr=afr, mttr_hours=36)
    assert code.mttdl_years == pytest.approx(((2 * n - 1) * afr + 1 / mttr_years) / (n * (n - 1) * afr**2), rel=1e-12)
    assert 1 / code.approximate_loss == pytest.approx(1 / afr**2 / (n * (n - 1) * mttr_years), rel=1e-12)


@pytest.mark.parametrize(("afr", "mttr_hours"), [(0.02, 24.0), (0.5, 300.0), (3.0, 900.0), (0.001, 2.0)])
def test_one_parity_within_a_year(afr: float, mttr_hours: float) -> None:
    """Two states decay with the two roots of a quadratic equation.

    The smaller one holds the risk; it comes from their product.
    """
    n, mu = 6, HOURS_PER_YEAR / mttr_hours
    total = (2 * n - 1) * afr + mu
    product = n * (n - 1) * afr**2
    large = (total + math.sqrt(total**2 - 4 * product)) / 2
    small = product / large
    # P(loss) = (large · (1 − e^−small) − small · (1 − e^−large)) / (large − small)
    expected = (large * -math.expm1(-small) - small * -math.expm1(-large)) / (large - small)
    assert durability(n - 1, 1, afr=afr, mttr_hours=mttr_hours).annual_loss == pytest.approx(expected, rel=1e-9)


def exact_loss(rates: Chain, years: Fraction) -> float:
    """Uniformisation in whole numbers' ratios, summed until nothing is left that counts."""
    failure, repair = [*map(Fraction, rates.failure), Fraction(0)], [Fraction(0), *map(Fraction, rates.repair)]
    repair.append(Fraction(0))
    fastest = max(f + r for f, r in zip(failure, repair, strict=True))
    size = len(failure)
    state = [Fraction(1), *[Fraction(0)] * (size - 1)]
    x = fastest * years
    weight, total, lost, j = Fraction(1), Fraction(1), Fraction(0), 0
    while j < 8 * size + 8 * x:
        j += 1
        state = [
            state[i] * (1 - (failure[i] + repair[i]) / fastest)
            + (state[i - 1] * failure[i - 1] / fastest if i else 0)
            + (state[i + 1] * repair[i + 1] / fastest if i + 1 < size else 0)
            for i in range(size)
        ]
        weight *= x / j
        total += weight
        lost += weight * state[-1]
    return float(lost / total)


@pytest.mark.parametrize(("k", "m"), [(10, 4), (2, 7), (1, 2), (20, 3)])
def test_small_probabilities_keep_their_digits(k: int, m: int) -> None:
    rates = chain(k, m, afr=2**-10, mttr_hours=HOURS_PER_YEAR / 4)
    expected = exact_loss(rates, Fraction(1))
    assert expected < 1e-4
    assert rates.loss_within(1.0) == pytest.approx(expected, rel=1e-12)


def simulate(
    rng: np.random.Generator,
    k: int,
    m: int,
    afr: float,
    mttr_hours: float,
    repairs: Repairs,
    unreadable: float,
    sets: int,
) -> int:
    """Count the sets, of so many, that lose data within a year. Each disk is followed by itself, not the chain."""
    n, mttr = k + m, mttr_hours / HOURS_PER_YEAR
    up = np.ones((sets, n), np.bool_)
    event = rng.exponential(1 / afr, (sets, n))  # when each disk fails next; for a lost one, when it is restored
    lost = 0
    while len(event):
        row = np.arange(len(event))
        disk = event.argmin(axis=1)
        now = event[row, disk]
        failing = up[row, disk]
        down = (~up).sum(axis=1)
        restored = now <= 1
        dead = failing & (down == m) & restored
        # A repair with nothing to spare that meets an unreadable place.
        dead |= ~failing & (down == m) & (rng.random(len(row)) < unreadable) & restored
        lost += int(dead.sum())
        up[row, disk] = ~failing
        event[row, disk] = now + rng.exponential(1, len(row)) * np.where(failing, mttr, 1 / afr)
        if repairs == "serial":
            # Only one disk of a set is under repair; the others wait. Exponential times may be drawn anew.
            event[~up] = np.inf
            waiting = np.flatnonzero((~up).any(axis=1))
            first = (~up[waiting]).argmax(axis=1)
            event[waiting, first] = now[waiting] + rng.exponential(mttr, len(waiting))
        going = ~dead & restored
        up, event = up[going], event[going]
    return lost


@pytest.mark.parametrize(
    ("k", "m", "afr", "mttr_hours", "repairs", "unreadable"),
    [
        (3, 2, 2.0, 500.0, "parallel", 0.0),
        (3, 2, 2.0, 500.0, "serial", 0.0),
        (6, 1, 0.5, 300.0, "parallel", 0.1),
        (4, 4, 4.0, 700.0, "parallel", 0.0),
        (2, 3, 2.0, 400.0, "serial", 0.3),
        (1, 2, 3.0, 700.0, "parallel", 0.0),
        (5, 0, 0.1, 24.0, "parallel", 0.0),
    ],
)
def test_simulation_of_every_disk_agrees(
    k: int, m: int, afr: float, mttr_hours: float, repairs: Repairs, unreadable: float
) -> None:
    """With exaggerated rates, 40,000 simulated sets lose data as often as the chain says, to 4 standard errors."""
    sets = 40_000
    rates = chain(k, m, afr=afr, mttr_hours=mttr_hours, repairs=repairs, unreadable_repair=unreadable)
    p = rates.loss_within(1.0)
    assert 0.01 < p < 0.9
    rng = np.random.default_rng([k, m, 20])
    found = simulate(rng, k, m, afr, mttr_hours, repairs, unreadable, sets) / sets
    error = math.sqrt(p * (1 - p) / sets)
    assert abs(found - p) < 4 * error, f"simulated {found:.5f}, computed {p:.5f}, standard error {error:.5f}"
    # The tolerance is tight enough to notice a repair rate that is a quarter off.
    if m:
        wrong = chain(k, m, afr=afr, mttr_hours=1.25 * mttr_hours, repairs=repairs, unreadable_repair=unreadable)
        assert abs(found - wrong.loss_within(1.0)) > 4 * error


@given(
    k=st.integers(1, 30),
    m=st.integers(0, 8),
    afr=st.floats(0.001, 1),
    mttr=st.floats(1, 2000),
    repairs=st.sampled_from(["parallel", "serial"]),
)
def test_what_must_hold_of_any_code(k: int, m: int, afr: float, mttr: float, repairs: Repairs) -> None:
    code = durability(k, m, afr=afr, mttr_hours=mttr, repairs=repairs, sets=7)
    assert 0 < code.annual_loss < 1
    assert code.annual_loss <= code.annual_loss_any <= min(1.0, 7 * code.annual_loss * (1 + 1e-9))
    # More parity, faster repair, and repair of all disks at once never hurt.
    slack = 1 + 1e-9
    assert durability(k, m + 1, afr=afr, mttr_hours=mttr, repairs=repairs).annual_loss <= code.annual_loss * slack
    assert durability(k, m, afr=afr, mttr_hours=mttr / 2, repairs=repairs).annual_loss <= code.annual_loss * slack
    assert durability(k, m, afr=afr, mttr_hours=mttr).annual_loss <= code.annual_loss * slack
    # From all disks good, data is lost no sooner than the mean of an exponential time would have it.
    assert code.annual_loss <= 1 / code.mttdl_years * slack


def test_approximation_is_close_where_repair_is_fast() -> None:
    code = durability(10, 4, afr=0.02, mttr_hours=1)
    assert code.approximate_loss == pytest.approx(code.annual_loss, rel=1e-3)


def test_unreadable_places_cost_a_parity_at_worst() -> None:
    certain = chain(10, 4, afr=0.02, mttr_hours=24, unreadable_repair=1.0)
    assert certain.approximate_years() == 0
    code = durability(10, 4, afr=0.02, mttr_hours=24, unreadable_bits=0.5, shard_bytes=1e12)
    assert code.unreadable_repair == 1
    assert durability(10, 4, afr=0.02, mttr_hours=24).annual_loss < code.annual_loss
    assert code.annual_loss < durability(11, 3, afr=0.02, mttr_hours=24).annual_loss
    assert code.to_json()["approximate_loss"] is None
    assert durability(10, 4, afr=0.02, mttr_hours=24, unreadable_bits=1e-15, shard_bytes=1e12).unreadable_repair == (
        pytest.approx(-math.expm1(-0.08), rel=1e-9)
    )


def test_what_no_float_can_hold() -> None:
    code = durability(100, MAX_PARITY // 2, afr=0.02, mttr_hours=1)
    assert (code.annual_loss, code.approximate_loss, code.mttdl_years) == (0, 0, math.inf)
    assert code.to_json()["nines"] is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"k": 0}, "k must be at least 1, not 0"),
        ({"m": -1}, "m must be 0 to 512, not -1"),
        ({"m": MAX_PARITY + 1}, "m must be 0 to 512, not 513"),
        ({"afr": 0.0}, "the failure rate must be above 0, not 0.0"),
        ({"afr": math.nan}, "the failure rate must be above 0, not nan"),
        ({"mttr_hours": math.inf}, "the time to repair must be above 0 hours, not inf"),
        ({"sets": 0}, "the number of sets must be at least 1, not 0"),
        ({"unreadable_bits": 1.0}, "the rate of unreadable bits must be 0 to below 1, not 1.0"),
        ({"shard_bytes": -1.0}, "the size of a shard must be 0 or more, not -1.0"),
    ],
)
def test_numbers_out_of_range(change: dict[str, Any], words: str) -> None:
    arguments: dict[str, Any] = {"k": 10, "m": 4, "afr": 0.02, "mttr_hours": 24.0} | change
    with pytest.raises(ParameterError, match=f"^{words}$"):
        durability(**arguments)
