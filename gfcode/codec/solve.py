"""Rows that make shards of an MDS code from k others: only the e × e system of lost data shards is solved."""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from gfcode.gf import Field
from gfcode.matrix.dense import Matrix

__all__ = ["solve"]

_Values: TypeAlias = npt.NDArray[Any]
#: Largest w with tables of logarithms.
_TABLES: Final = 16


def solve(parity: Matrix, basis: Sequence[int], want: Sequence[int]) -> _Values:
    """Express shards that are not in a basis by it.

    With data shards D and parity rows P in the basis, and data shards L not in it, as many as P: the equations
    parity_P = A[P, D] · data_D + A[P, L] · data_L give data_L = A[P, L]⁻¹ · (A[P, D] · data_D + parity_P), and a
    wanted parity row i is A[i, D] · data_D + A[i, L] · data_L.

    Parameters
    ----------
    parity : Matrix, shape (m, k)
        Of an MDS code.
    basis : sequence of int
        k shards, in ascending order.
    want : sequence of int
        Shards that are not among them.

    Returns
    -------
    ndarray of `parity.field.dtype`, shape (len(want), k)
        Elements on the shards of the basis.
    """
    field = parity.field
    k = parity.shape[1]
    data = [shard for shard in basis if shard < k]
    rows = [shard - k for shard in basis if shard >= k]
    lost = [shard for shard in range(k) if shard not in basis]
    wanted = [shard - k for shard in want if shard >= k]
    used = parity.values[[*rows, *wanted]]
    values = np.empty((len(want), k), field.dtype)
    count = len(rows)
    inverse = _inverse(field, used[:count][:, lost])
    of_data = _product(field, inverse, used[:count][:, data])
    places = {shard: place for place, shard in enumerate(lost)}
    others = iter(range(count, len(used)))
    for row, shard in enumerate(want):
        if shard < k:
            values[row, : len(data)] = of_data[places[shard]]
            values[row, len(data) :] = inverse[places[shard]]
        else:
            line = used[next(others)]
            values[row, : len(data)] = line[data] ^ _product(field, line[None, lost], of_data)[0]
            values[row, len(data) :] = _product(field, line[None, lost], inverse)[0]
    return values


def _inverse(field: Field, square: _Values) -> _Values:
    """Invert by Gauss and Jordan, with tables of logarithms: a quarter of the time that checked operations take."""
    count = len(square)
    if field.w > _TABLES:
        return Matrix(field, square).inverse().values
    exp, log, top = field.exp_table, field.log_table, field.order - 1
    work = np.concatenate([square, np.eye(count, dtype=field.dtype)], axis=1)
    for place in range(count):
        if not work[place, place]:
            candidates = place + np.flatnonzero(work[place:, place])
            if not len(candidates):
                return Matrix(field, square).inverse().values  # which says that there is none
            work[[place, candidates[0]]] = work[[candidates[0], place]]
        line = exp[log[work[place]] + (top - log[work[place, place]])]
        factors = log[work[:, place]]
        factors[place] = log[0]
        work ^= exp[factors[:, None] + log[line]]
        work[place] = line
    return work[:, count:]


def _product(field: Field, left: _Values, right: _Values) -> _Values:
    """Multiply small matrices."""
    if field.w > _TABLES:
        return np.asarray(field.dot(left, right))
    products = field.exp_table[field.log_table[left][:, :, None] + field.log_table[right]]
    return np.asarray(np.bitwise_xor.reduce(products, axis=1))
