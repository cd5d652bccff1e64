"""MDS certificates: proof that a parity matrix recovers every loss of up to m shards.

The code with parity matrix A is MDS if and only if every square submatrix of A is non-singular. Losing the data shards
C and keeping the parity rows R, as many, is undone by the inverse of the submatrix of these rows and columns.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from gfcode.errors import NotMDSError
from gfcode.gf import Field
from gfcode.gf.tables import FieldArray
from gfcode.matrix.dense import Matrix
from gfcode.matrix.minors import allowance, count_minors, find_zero_minor
from gfcode.matrix.transformed import Parity

__all__ = ["MINORS_LIMIT", "Certificate", "certify"]

#: Minors that `certify` is willing to compute: some seconds of work. For w = 32, an eighth.
MINORS_LIMIT = 1 << 26
# Minors searched in the corner of a matrix that is too large to be searched whole.
_CORNER_MINORS = 1 << 22
# Shards that a message lists one by one.
_LONG_LIST = 24

Minor: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Certificate:
    """Why a parity matrix is safe.

    Attributes
    ----------
    method : {"trivial", "cauchy", "conic", "exhaustive"}
        How it was shown.
    detail : str
        The argument, in one line.
    """

    method: str
    detail: str


class _SingularError(Exception):
    """A proof met a singular submatrix."""

    def __init__(self, rows: tuple[int, ...], columns: tuple[int, ...]) -> None:
        super().__init__(rows, columns)
        self.minor: Minor = (rows, columns)


def certify(parity: Matrix) -> Certificate:
    """Prove that the code of a parity matrix is MDS.

    By proof where there is one (see `Certificate`), else by computing every minor, if they are at most `MINORS_LIMIT`
    (an eighth of it for w = 32). Outcomes are cached.

    Parameters
    ----------
    parity : Matrix, shape (m, k)

    Returns
    -------
    Certificate

    Raises
    ------
    NotMDSError
        If some loss of m shards defeats the matrix: `lost` and the message name it. Or if no proof was found and there
        are too many minors: `lost` is empty. (Losses are still looked for in a corner of such a matrix.)
    """
    if isinstance(parity, Parity):
        return _prove_parity(parity)
    outcome = _outcome(parity)
    if isinstance(outcome, Certificate):
        return outcome
    raise NotMDSError(*outcome)


@lru_cache(maxsize=64)
def _outcome(parity: Matrix) -> Certificate | tuple[str, tuple[int, ...]]:
    field, values = parity.field, parity.values
    m, k = parity.shape
    try:
        proof = _prove(field, values)
    except _SingularError as error:
        return _refusal(parity, error.minor)
    if proof:
        return proof
    total, limit = count_minors(m, k), allowance(field, MINORS_LIMIT)
    rows, columns = (m, k) if total <= limit else _corner(m, k, allowance(field, _CORNER_MINORS))
    minor = find_zero_minor(field, values[:rows, :columns])
    if minor:
        return _refusal(parity, minor)
    if total <= limit:
        return Certificate("exhaustive", f"all {total} square submatrices are non-singular")
    message = (
        f"the {m}×{k} parity matrix over {field} could not be proven MDS: it is no generalised Cauchy matrix, and its "
        f"{total} square submatrices are more than the {limit} that are checked; use matrix 'cauchy-good'"
    )
    return message, ()


def _corner(m: int, k: int, minors: int) -> tuple[int, int]:
    """Choose a leading part of an m × k matrix, as square as it can be, with at most so many minors."""
    rows = columns = 1
    while True:
        wider = rows + (rows < m and (rows <= columns or columns == k)), columns
        larger = wider if wider[0] > rows else (rows, min(columns + 1, k))
        if larger == (rows, columns) or count_minors(*larger) > minors:
            return rows, columns
        rows, columns = larger


def _refusal(parity: Matrix, minor: Minor) -> tuple[str, tuple[int, ...]]:
    rows, columns = minor
    m, k = parity.shape
    lost = columns + tuple(k + row for row in range(m) if row not in rows)
    message = (
        f"the {m}×{k} parity matrix over {parity.field} is not MDS: the loss of shards {_list(lost)} cannot be decoded "
        f"(data shards {_list(columns)} from parity rows {_list(rows)})"
    )
    return message, lost


def _list(numbers: tuple[int, ...]) -> str:
    """Write a set, a long one with its runs contracted: ``{0,3,5}``, ``{0,2,250-374}``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1 and len(numbers) > _LONG_LIST:
            runs[-1].append(number)
        else:
            runs.append([number])
    return "{" + ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs) + "}"


def _prove(field: Field, values: FieldArray) -> Certificate | None:
    """Prove a matrix MDS without computing its minors.

    Raises
    ------
    _SingularError
        If a singular submatrix comes up.
    """
    m, k = values.shape
    zeros = np.argwhere(values == 0)
    if zeros.size:
        raise _SingularError((int(zeros[0][0]),), (int(zeros[0][1]),))
    if m <= 1 or k == 1:
        return Certificate("trivial", "no shard to recover" if m == 0 else "a single row or column without zeros")
    return _prove_cauchy(field, values) or _prove_conic(field, values)


def _prove_cauchy(field: Field, values: FieldArray) -> Certificate | None:
    """Prove that a matrix of at least two rows and columns is a generalised Cauchy matrix.

    That is, the inverses b_ij = 1 / a_ij of its elements have rank 2 and no two rows or columns of them are
    proportional. They are then 2 × 2 determinants [P_i, Q_j] of points of the projective line, all distinct, and by
    Cauchy's formula every minor of A is a product of non-zero [P_i, P_j], [Q_i, Q_j] and 1 / [P_i, Q_j]. Every
    generalised Reed-Solomon code has such a parity matrix (Roth & Seroussi, "On generator matrices of MDS codes",
    1985).
    """
    inverses = field.inv(values)
    # Proportional columns of the first two rows, or rows of the first two columns, are a singular 2 × 2 submatrix of
    # inverses, and so of elements.
    twins = _first_twins(field.div(inverses[1], inverses[0]))
    if twins:
        raise _SingularError((0, 1), twins)
    twins = _first_twins(field.div(inverses[:, 1], inverses[:, 0]))
    if twins:
        raise _SingularError(twins, (0, 1))
    # All rows must be combinations of the first two; the first two columns say which.
    basis = Matrix(field, inverses[:2, :2])
    weights = Matrix(field, inverses[:, :2]) @ basis.inverse()
    combined = field.mul(weights.values[:, :1], inverses[0]) ^ field.mul(weights.values[:, 1:], inverses[1])
    if not np.array_equal(combined, inverses):
        return None
    return Certificate("cauchy", "a generalised Cauchy matrix: its minors are products of non-zero differences")


def _prove_parity(parity: Parity) -> Certificate:
    """Prove a matrix of the family `fft` by its points, without its elements.

    It is a Cauchy matrix with scaled columns: points 0 .. m − 1 of rows and M .. M + k − 1 of columns are distinct
    elements of the field, as `Parity` sees to, and the scale of a column is the value at one of its coset's points of
    the polynomial that vanishes on {0 .. M − 1}, and only there.
    """
    if 1 in parity.shape:
        return Certificate("trivial", "a single row or column without zeros")
    return Certificate("cauchy", "a Cauchy matrix of distinct points, its columns scaled by non-zero factors")


def _prove_conic(field: Field, values: FieldArray) -> Certificate | None:
    """Prove a matrix of three rows (or columns) whose columns are points of a conic.

    Up to scaling the columns are (1, t, c · t²) with distinct t. Minors of the outer two rows are then differences of
    squares, which are squares of differences in characteristic 2; all others are Vandermonde determinants times
    non-zero factors. (The conic, its nucleus and two of its points: Segre's hyperoval.)
    """
    if values.shape[0] != 3:
        if values.shape[1] != 3:
            return None
        values = values.T
    for middle in range(3):
        first, second = (values[row] for row in range(3) if row != middle)
        shape = field.div(field.pow(values[middle], 2), field.mul(first, second))
        if (shape == shape[0]).all() and not _first_twins(field.div(values[middle], first)):
            return Certificate("conic", "columns are distinct points (1, t, c·t²) of a conic, in characteristic 2")
    return None


def _first_twins(values: FieldArray) -> tuple[int, int] | None:
    """Find two equal values and return their indices, the first such; None if all are distinct."""
    order = np.argsort(values, kind="stable")
    repeats = np.flatnonzero(values[order[1:]] == values[order[:-1]])
    if not repeats.size:
        return None
    later = int(order[repeats + 1].min())
    return int(np.flatnonzero(values == values[later])[0]), later
