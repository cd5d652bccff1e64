"""How likely a shard set is to lose data: a Markov chain of failing and repaired disks, solved exactly.

A set has one shard on each of n = k + m disks. Its state is the number i of disks that are lost and not yet repaired;
data is lost in state m + 1. From state i another disk fails at the rate (n − i)·λ and a lost one is restored at i·μ (at
μ, where only one is repaired at a time), with λ the failures per disk-year and 1/μ the mean time to repair. This is the
model of Gibson & Patterson for disk arrays ("Designing Disk Arrays for High Data Reliability", 1993; Patterson,
Gibson & Katz, SIGMOD 1988) carried on to any m, the repairable k-out-of-n system of Angus ("On Computing MTBF for a
k-out-of-n:G Repairable System", IEEE Trans. Reliability 37, 1988).

What the model leaves out makes real systems worse than its figures: failures that come together (one batch, one rack,
one operator), repairs that do not take an exponentially distributed time, software that damages what it should keep
(Greenan, Plank & Wylie, "Mean time to meaningless", HotStorage 2010). Use it to compare codes.
"""

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from gfcode.errors import ParameterError

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["HOURS_PER_YEAR", "Chain", "Durability", "Repairs", "chain", "durability"]

#: Of a Julian year.
HOURS_PER_YEAR: Final = 365.25 * 24
#: Parity shards up to which the chain is solved; the time grows as their cube.
MAX_PARITY: Final = 512
#: Terms of the series of a small time step beyond the first that matters.
_TERMS: Final = 24
#: Logarithm beyond which a float is infinite.
_LARGEST: Final = 709.0

#: How lost disks are restored: each at once and on its own, or one after the other.
Repairs = Literal["parallel", "serial"]


@dataclass(frozen=True, slots=True)
class Chain:
    """The transition rates, per year, of a birth-death chain on the states 0 to m, with data loss behind state m.

    Attributes
    ----------
    failure : tuple of float
        From each state 0 .. m to the next; from state m to data loss.
    repair : tuple of float
        From each state 1 .. m to the one before.
    """

    failure: tuple[float, ...]
    repair: tuple[float, ...]

    def mean_years(self) -> float:
        """Return the mean time to data loss from state 0 (MTTDL), in years.

        The mean time T_i from state i to state i + 1 is 1/f_i for i = 0, and (1 + r_i·T_(i−1)) / f_i after it: the
        stay in state i, and the way back after each repair. Only positive numbers are added, so that nothing cancels.
        """
        total = step = 1 / self.failure[0]
        for failure, repair in zip(self.failure[1:], self.repair, strict=True):
            step = (1 + repair * step) / failure
            total += step
        return total

    def approximate_years(self) -> float:
        """Return the usual approximation of the same, good where repairs are much faster than failures.

        It is r_1 ⋯ r_m / (f_0 f_1 ⋯ f_m). For one parity that is MTTF² / (n·(n − 1)·MTTR), Patterson, Gibson & Katz's.
        """
        if not all(self.repair):
            return 0.0
        logarithm = sum(map(math.log, self.repair)) - sum(map(math.log, self.failure))
        return math.exp(logarithm) if logarithm < _LARGEST else math.inf

    def loss_within(self, years: float) -> float:
        """Return the probability that data is lost within some years, from state 0.

        It is an element of exp(Q·years), Q the generator of the chain. A step of at most 1/Λ, Λ the fastest way out of
        any state, is the series of uniformisation (Jensen 1953), and squaring doubles the step. No term of either is
        negative, so that nothing cancels and small probabilities have as many right digits as large ones. Below about
        10^−300 the result is 0.
        """
        import numpy as np  # noqa: PLC0415 - whoever only compares formulas need not load it

        size = len(self.failure) + 1
        fastest = max(f + r for f, r in zip(self.failure, (0.0, *self.repair), strict=True))
        doublings = max(0, math.ceil(math.log2(max(1.0, fastest * years))))
        x = fastest * years / 2**doublings
        failure, repair = np.array([*self.failure, 0.0]) / fastest, np.array([0.0, *self.repair, 0.0]) / fastest
        stay = np.maximum(1 - failure - repair, 0)
        stay[-1] = 1.0
        power = np.eye(size)
        term = math.exp(-x)
        step: npt.NDArray[np.float64] = term * power
        for j in range(1, size + _TERMS):
            moved = power * stay
            moved[:, 1:] += power[:, :-1] * failure[:-1]
            moved[:, :-1] += power[:, 1:] * repair[1:]
            power, term = moved, term * x / j
            step += term * power
        for _ in range(doublings):
            step = step @ step
        return min(1.0, float(step[0, -1]))


@dataclass(frozen=True, slots=True)
class Durability:
    """What the chain says of a code.

    Attributes
    ----------
    k, m, sets : int
    overhead : float
        Bytes stored for each byte of data, n / k.
    repair_reads : int
        Shards that are read to restore one.
    repair_reads_per_year : float
        Bytes that repairs of one set read in a year, for each byte of the set's data.
    unreadable_repair : float
        Probability that a repair without spare shards meets an unreadable place.
    annual_loss : float
        Probability that one set loses data within a year, from all disks good.
    annual_loss_any : float
        Probability that any of the sets does, if they fail independently.
    mttdl_years : float
        Mean time to data loss of one set.
    approximate_loss : float
        One year over the usual approximation of that time.
    """

    k: int
    m: int
    sets: int
    overhead: float
    repair_reads: int
    repair_reads_per_year: float
    unreadable_repair: float
    annual_loss: float
    annual_loss_any: float
    mttdl_years: float
    approximate_loss: float

    @property
    def nines(self) -> float:
        """Digits 9 of the annual durability of one set: 11 for a loss of 10^−11."""
        return -math.log10(self.annual_loss) if self.annual_loss else math.inf

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values, under the attributes' names; null for infinity."""
        values = asdict(self) | {"nines": self.nines}
        return {name: value if math.isfinite(value) else None for name, value in values.items()}


def chain(
    k: int, m: int, *, afr: float, mttr_hours: float, repairs: Repairs = "parallel", unreadable_repair: float = 0.0
) -> Chain:
    """Return the chain of a code.

    Parameters
    ----------
    k, m : int
    afr : float
        Failures per disk-year: 0.02 for an annualised failure rate of 2 %.
    mttr_hours : float
        Mean hours from the failure of a disk to the end of its repair: noticing, replacing, rebuilding.
    repairs : {"parallel", "serial"}
    unreadable_repair : float
        Probability that a repair in state m, which has no shard to spare, meets an unreadable place: such a repair is
        a loss of data.

    Raises
    ------
    ParameterError
    """
    _check("k", k, k >= 1, "at least 1")
    _check("m", m, 0 <= m <= MAX_PARITY, f"0 to {MAX_PARITY}")
    _check("the failure rate", afr, 0 < afr < math.inf, "above 0")
    _check("the time to repair", mttr_hours, 0 < mttr_hours < math.inf, "above 0 hours")
    _check("the probability of an unreadable repair", unreadable_repair, 0 <= unreadable_repair <= 1, "0 to 1")
    mu = HOURS_PER_YEAR / mttr_hours
    failure = [(k + m - i) * afr for i in range(m + 1)]
    repair = [mu * (i if repairs == "parallel" else 1) for i in range(1, m + 1)]
    if m:
        failure[m] += repair[-1] * unreadable_repair
        repair[-1] *= 1 - unreadable_repair
    return Chain(tuple(failure), tuple(repair))


def durability(
    k: int,
    m: int,
    *,
    afr: float,
    mttr_hours: float,
    sets: int = 1,
    repairs: Repairs = "parallel",
    unreadable_bits: float = 0.0,
    shard_bytes: float = 0.0,
) -> Durability:
    """Return how durable shard sets of a code are.

    Parameters
    ----------
    k, m : int
        Data and parity shards; k = 1 is replication.
    afr : float
        Failures per disk-year: 0.02 for an annualised failure rate of 2 %.
    mttr_hours : float
        Mean hours from the failure of a disk to the end of its repair.
    sets : int
        Sets that fail independently, each on n disks.
    repairs : {"parallel", "serial"}
        Whether all lost disks of a set are repaired at once, or one at a time.
    unreadable_bits : float
        Unreadable bits per bit read, as data sheets give it: 1e-15.
    shard_bytes : float
        Bytes of one shard, all that a disk holds of the set. Only with it do unreadable bits count.

    Returns
    -------
    Durability

    Raises
    ------
    ParameterError
        For numbers outside their range.

    Examples
    --------
    >>> code = durability(10, 4, afr=0.02, mttr_hours=24)
    >>> f"{code.annual_loss:.2e}", f"{code.approximate_loss:.2e}", code.overhead
    ('1.79e-15', '1.80e-15', 1.4)
    """
    _check("the number of sets", sets, sets >= 1, "at least 1")
    _check("the rate of unreadable bits", unreadable_bits, 0 <= unreadable_bits < 1, "0 to below 1")
    _check("the size of a shard", shard_bytes, 0 <= shard_bytes < math.inf, "0 or more")
    unreadable = -math.expm1(8 * k * shard_bytes * math.log1p(-unreadable_bits)) if m else 0.0
    model = chain(k, m, afr=afr, mttr_hours=mttr_hours, repairs=repairs, unreadable_repair=unreadable)
    loss = model.loss_within(1.0)
    any_loss = 1.0 if loss == 1.0 else -math.expm1(sets * math.log1p(-loss))
    approximate = model.approximate_years()
    return Durability(
        k=k, m=m, sets=sets, overhead=(k + m) / k, repair_reads=k if m else 0,
        repair_reads_per_year=(k + m) * afr if m else 0.0, unreadable_repair=unreadable, annual_loss=loss,
        annual_loss_any=any_loss, mttdl_years=model.mean_years(),
        approximate_loss=1 / approximate if approximate else math.inf,
    )  # fmt: skip


def _check(name: str, value: float, holds: object, limit: str) -> None:
    if not holds:
        raise ParameterError(f"{name} must be {limit}, not {value}")
