"""Parity matrices that may be cheap to encode with: what `gfcode.xor.search` chooses from.

None of them is certified here; most that are not MDS are weeded out by `certify` at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from random import Random

import numpy as np
import numpy.typing as npt

from gfcode.errors import ParameterError
from gfcode.gf import GF, Field, default_polynomial, is_irreducible
from gfcode.gf.tables import FieldArray
from gfcode.matrix.bitmatrix import element_ones
from gfcode.matrix.dense import Matrix
from gfcode.matrix.generator import parity_matrix
from gfcode.once import cached_property

__all__ = ["Candidate", "Weights", "cauchy", "mutate", "polynomials", "powers", "stock"]

# Families that a search begins with. Another set would find other matrices from the same seed.
_FAMILIES = ("vandermonde", "powers", "cauchy", "cauchy-good")
# Fields beyond this have too many elements to weigh them all.
_WIDEST = 16
# Steps of the climb to lighter Cauchy points.
_CLIMB = 60


@dataclass(frozen=True)
class Candidate:
    """A parity matrix and how it came about.

    Attributes
    ----------
    matrix : Matrix, shape (m, k)
    origin : str
        In a few words.
    """

    matrix: Matrix
    origin: str


class Weights:
    """Ones of the bit matrices of all elements of a field.

    Attributes
    ----------
    field : Field
    ones : ndarray of int, shape (2^w,)
    """

    def __init__(self, field: Field) -> None:
        self.field = field
        self.ones = element_ones(field, np.arange(field.order, dtype=field.dtype))

    @cached_property
    def cycle(self) -> FieldArray:
        """Powers of x: x^0, x^1, .. until it comes back to 1."""
        cycle = [1]
        while (element := self.field.mul(cycle[-1], self.field.alpha)) != 1:
            cycle.append(element)
        return np.array(cycle, self.field.dtype)

    def lightest_rows(self, values: FieldArray) -> FieldArray:
        """Divide each row by that of its elements which leaves the fewest ones."""
        return np.stack([self._lightest(row) for row in values])

    def _lightest(self, row: FieldArray) -> FieldArray:
        quotients = self.field.div(row, row[:, None])
        return np.asarray(quotients[int(self.ones[quotients].sum(axis=1).argmin())])


@lru_cache(maxsize=64)
def _weights(field: Field) -> Weights:
    return Weights(field)


def polynomials(w: int) -> list[int]:
    """Return the irreducible polynomials to choose from: all of degree w up to w = 8, beyond that the default one.

    Raises
    ------
    ParameterError
        If w is larger than 16 or smaller than 2.
    """
    if not 2 <= w <= _WIDEST:
        raise ParameterError(f"matrices are searched for w = 2 to {_WIDEST}, not {w}")
    if w > 8:
        return [default_polynomial(w)]
    return [number for number in range((1 << w) + 1, 2 << w, 2) if is_irreducible(number)]


def stock(k: int, m: int, w: int) -> Iterator[Candidate]:
    """Yield the matrices of the families that have room, over the default field."""
    field = GF(w)
    for family in _FAMILIES:
        try:
            yield Candidate(parity_matrix(family, field, k, m), family)
        except ParameterError:
            continue


def powers(k: int, m: int, w: int) -> list[Candidate]:
    """Return matrices with x^(e · (j − o)) in column j, for sets of m exponents e, by rising number of ones.

    Exponents are 0 and any others from −m to m; o is 0, or half of k so that exponents lie around zero, or chosen for
    each row by itself so that it has the fewest ones. All are row scalings of one matrix.
    """
    found: dict[bytes, tuple[int, Candidate]] = {}
    others = [exponent for exponent in range(-m, m + 1) if exponent]
    for polynomial in polynomials(w):
        field = GF(w, polynomial)
        weights = _weights(field)
        cycle = weights.cycle
        if len(cycle) < k:
            continue
        for chosen in combinations(others, m - 1):
            exponents = np.array([0, *chosen])[:, None]
            plain = cycle[exponents * np.arange(k) % len(cycle)]
            middle = cycle[exponents * (np.arange(k) - k // 2) % len(cycle)]
            for values, offset in (
                (plain, ""),
                (middle, f" around column {k // 2}"),
                (weights.lightest_rows(plain), ", lightest rows"),
            ):
                key = polynomial.to_bytes(4, "little") + values.tobytes()
                if key not in found:
                    origin = f"powers {', '.join(map(str, (0, *chosen)))}{offset}"
                    ones = int(weights.ones[values].sum())
                    found[key] = ones, Candidate(Matrix(field, values), origin)
    return [candidate for _, candidate in sorted(found.values(), key=lambda item: item[0])]


def cauchy(k: int, m: int, w: int, random: Random) -> Candidate | None:
    """Draw a Cauchy matrix and improve its points: columns scaled to a row of ones, then rows to the fewest ones.

    Points are exchanged for unused ones, one at a time, while that lowers the number of ones. None if k + m > 2^w.
    """
    field = GF(w, random.choice(polynomials(w)))
    weights = _weights(field)
    if k + m > field.order:
        return None
    points = random.sample(range(field.order), k + m)
    unused = sorted(set(range(field.order)) - set(points)) if w <= 8 else []

    def scaled(points: list[int]) -> tuple[int, FieldArray]:
        x = np.array(points[:m], field.dtype)[:, None]
        y = np.array(points[m:], field.dtype)
        values = field.inv(x ^ y)
        values = weights.lightest_rows(field.div(values, values[0]))
        return int(weights.ones[values].sum()), values

    ones, values = scaled(points)
    for _ in range(_CLIMB):
        trial = points.copy()
        place = random.randrange(k + m)
        if unused and random.random() < 0.7:
            other = random.randrange(len(unused))
            trial[place] = unused[other]
        else:
            other = -1
            swap = random.randrange(k + m)
            trial[place], trial[swap] = trial[swap], trial[place]
        trial_ones, trial_values = scaled(trial)
        if trial_ones <= ones:
            if other >= 0:
                unused[other] = points[place]
            points, ones, values = trial, trial_ones, trial_values
    return Candidate(Matrix(field, values), "cauchy")


def mutate(candidate: Candidate, random: Random) -> Candidate:
    """Change a matrix a little: scale a row or a column by a power of x, or give a column other light elements."""
    matrix = candidate.matrix
    field, (m, k) = matrix.field, matrix.shape
    weights = _weights(field)
    values = matrix.values.copy()
    kind = random.random()
    factor = weights.cycle[random.choice((-2, -1, 1, 2)) % len(weights.cycle)]
    if kind < 0.25:
        row = random.randrange(m)
        values[row] = field.mul(values[row], int(factor))
    elif kind < 0.5:
        column = random.randrange(k)
        values[:, column] = field.mul(values[:, column], int(factor))
    else:
        column = random.randrange(k)
        light = _light_elements(field)
        rows = random.sample(range(m), random.randint(1, m))
        values[rows, column] = [random.choice(light) for _ in rows]
    origin = candidate.origin if candidate.origin.endswith("changed") else f"{candidate.origin}, changed"
    return Candidate(Matrix(field, values), origin)


@lru_cache(maxsize=64)
def _light_elements(field: Field) -> list[int]:
    """Return the non-zero elements with the fewest ones, at most 48."""
    ones: npt.NDArray[np.intp] = _weights(field).ones
    return [int(element) for element in np.argsort(ones, kind="stable")[1:49]]
