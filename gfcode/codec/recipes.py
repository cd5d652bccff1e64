"""Parity matrices of other implementations, beyond the families of `gfcode.matrix.generator`."""

import numpy as np
import numpy.typing as npt

from gfcode.gf import Field
from gfcode.gf.tables import FieldArray

__all__ = ["bch_remainders", "cauchy_original", "interpolation", "par1", "root_powers", "successive_points"]


def interpolation(field: Field, k: int, points: FieldArray) -> FieldArray:
    """Parity of a Vandermonde matrix that is multiplied by the inverse of its top square.

    The n × k matrix V has row (1, p, .., p^(k−1)) for each of the n points. V · V_top^(−1) maps the values of a
    polynomial of degree below k at the first k points to its values at all n: the element for data point x_j and
    parity point y_i is Lagrange's basis polynomial, the product over l ≠ j of (y_i − x_l) / (x_j − x_l). Points are
    distinct, so that the code is a Reed-Solomon code and MDS.

    Parameters
    ----------
    field : Field
        With w ≤ 16.
    k : int
    points : ndarray of `field.dtype`, shape (n,)
        Distinct.

    Returns
    -------
    ndarray of `field.dtype`, shape (n − k, k)
    """
    x, y = points[:k], points[k:]
    differences = x[:, None] ^ x
    np.fill_diagonal(differences, 1)
    scale = field.log(differences).sum(axis=1)
    distances = field.log(y[:, None] ^ x)
    exponents: npt.NDArray[np.int64] = distances.sum(axis=1)[:, None] - distances - scale
    return field.exp(exponents)


def successive_points(field: Field, n: int) -> FieldArray:
    """Return the points 0, 1, .., n − 1: JavaReedSolomon's and klauspost/reedsolomon's."""
    return np.arange(n, dtype=np.int64).astype(field.dtype)


def root_powers(field: Field, n: int) -> FieldArray:
    """Return the points 0, 1, α, .., α^(n−2): zfec's."""
    return np.concatenate([np.zeros(1, field.dtype), field.exp(np.arange(n - 1, dtype=np.int64))])


def cauchy_original(field: Field, k: int, m: int) -> FieldArray:
    """Jerasure's `cauchy_orig`: 1 / (x_i + y_j) with x_i = i and y_j = m + j."""
    sums = np.arange(m, dtype=np.int64)[:, None] ^ (m + np.arange(k, dtype=np.int64))
    return field.inv(sums.astype(field.dtype))


def par1(field: Field, k: int, m: int) -> FieldArray:
    """PAR 1.0: (j + 1)^i, a transposed Vandermonde matrix; some of its square submatrices are singular."""
    bases = np.arange(1, k + 1, dtype=np.int64).astype(field.dtype)
    return field.pow(np.broadcast_to(bases, (m, k)), np.arange(m, dtype=np.int64)[:, None])


def bch_remainders(field: Field, k: int, m: int) -> FieldArray:
    """Hadoop's `rs-legacy` (HDFS-RAID): a systematic cyclic Reed-Solomon code.

    With g the monic polynomial with roots α^0 .. α^(m−1), data shard j is the coefficient of x^(m+j) of a multiple of
    g and parity shard i that of x^i: column j of the parity matrix holds the coefficients of x^(m+j) mod g. By the BCH
    bound the code is MDS for n ≤ 2^w − 1.
    """
    g = np.ones(1, field.dtype)  # coefficients, lowest first
    for i in range(m):
        times_root = field.mul(g, field.exp(i))
        g = np.concatenate([times_root, np.zeros(1, field.dtype)]) ^ np.concatenate([np.zeros(1, field.dtype), g])
    tail = g[:m]
    parity = np.empty((m, k), field.dtype)
    remainder = tail.copy()  # x^m mod g
    for j in range(k):
        parity[:, j] = remainder
        overflow = int(remainder[-1])
        remainder = np.concatenate([np.zeros(1, field.dtype), remainder[:-1]]) ^ field.mul(tail, overflow)
    return parity
