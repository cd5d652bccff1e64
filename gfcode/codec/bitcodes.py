"""RAID-6 codes that are given by bit matrices and by no matrix over GF(2^w): their second parity's squares.

The first parity of each is the XOR of the data. The second is the sum of X_j · d_j, where d_j are the w packets of
data shard j and X_j is a w × w matrix over GF(2). Such a code recovers every loss of two if and only if all X_j and
all X_i + X_j are non-singular. Each function returns the squares as 0/1 arrays of shape (k, w, w).
"""

import numpy as np
import numpy.typing as npt

from gfcode.errors import ParameterError

__all__ = ["blaum_roth", "liber8tion", "liberation", "raid6_bits"]

Bits = npt.NDArray[np.uint8]


def raid6_bits(squares: Bits) -> Bits:
    """Put identities above the squares of the second parity.

    Parameters
    ----------
    squares : ndarray of uint8, shape (k, w, w)

    Returns
    -------
    ndarray of uint8, shape (2 · w, k · w)
    """
    k, w, _ = squares.shape
    first = np.tile(np.eye(w, dtype=np.uint8), (1, k))
    return np.concatenate([first, squares.transpose(1, 0, 2).reshape(w, k * w)])


def liberation(k: int, w: int) -> Bits:
    """Liberation codes (Plank, "The RAID-6 Liberation Codes", FAST 2008), w an odd prime, k ≤ w.

    X_0 is the identity; X_j is the identity whose columns are rotated by j, with one more one, in row j·(w−1)/2 and
    column j·(w−1)/2 + j − 1 (mod w).
    """
    if w < 3 or not _is_prime(w):
        raise ParameterError(f"liberation codes need w to be an odd prime, not {w}")
    _check_width("liberation", k, w)
    squares = np.zeros((k, w, w), np.uint8)
    rows = np.arange(w)
    for j in range(k):
        squares[j, rows, (rows + j) % w] = 1
        if j:
            row = j * (w - 1) // 2 % w
            squares[j, row, (row + j - 1) % w] = 1
    return squares


def blaum_roth(k: int, w: int) -> Bits:
    """Blaum-Roth codes of minimal density, w + 1 a prime, k ≤ w; and Ceph's w = 7.

    From M. Blaum and R. Roth, "On Lowest Density MDS Codes", IEEE Transactions on Information Theory 45(1), 1999, in
    the form of Plank, Buchsbaum and Vander Zanden, "Minimum Density RAID-6 Codes", ACM ToS 6(4), 2011: with rows and
    columns counted from 1 and p = w + 1, row r of X_j has its one in column r + j mod p, but row p − j, where that
    would be column 0, has ones in columns j and j / 2 mod p.

    Ceph takes w = 7, its default of old, for which there is no code, for p = 8 is no prime. Jerasure makes a matrix for
    it all the same, with j / 2 for even j and (p + j) / 2 rounded down for odd; from k = 3 it is not MDS.
    """
    p = w + 1
    if w < 2 or not (_is_prime(p) or w == 7):
        raise ParameterError(f"Blaum-Roth codes need w + 1 to be an odd prime, not {p}")
    _check_width("Blaum-Roth", k, w)
    squares = np.zeros((k, w, w), np.uint8)
    squares[0] = np.eye(w, dtype=np.uint8)
    for j in range(1, k):
        for row in range(1, w + 1):
            columns = ((row + j) % p,) if row != p - j else (j, j // 2 if j % 2 == 0 else p // 2 + 1 + j // 2)
            squares[j, row - 1, np.array(columns) - 1] = 1
    return squares


#: The columns of the ones of each row of X_1 .. X_7, X_0 being the identity; found by search (Plank, "The RAID-6
#: Liber8tion Code", IJHPCA 23(3), 2009), so that there is no rule that would make them.
_LIBER8TION: tuple[tuple[tuple[int, ...], ...], ...] = (
    ((7,), (3,), (0,), (2,), (6, 7), (1,), (5,), (4,)),
    ((6,), (2, 3), (4,), (0,), (7,), (3,), (1,), (5,)),
    ((2,), (5,), (7,), (6,), (0,), (3, 4), (4,), (1,)),
    ((5,), (6,), (0, 1), (7,), (2,), (4,), (3,), (0,)),
    ((1,), (2,), (3,), (4,), (5,), (6,), (7,), (0, 2)),
    ((3,), (0,), (6,), (5,), (1,), (7,), (4, 5), (2,)),
    ((4,), (7,), (1,), (1, 5), (3,), (2,), (0,), (6,)),
)


def liber8tion(k: int) -> Bits:
    """Return the squares of the Liber8tion code: w = 8, k ≤ 8."""
    _check_width("liber8tion", k, 8)
    squares = np.zeros((k, 8, 8), np.uint8)
    squares[0] = np.eye(8, dtype=np.uint8)
    for square, rows in zip(squares[1:], _LIBER8TION, strict=False):
        for row, columns in enumerate(rows):
            square[row, list(columns)] = 1
    return squares


def _check_width(code: str, k: int, w: int) -> None:
    if not 1 <= k <= w:
        raise ParameterError(f"{code} codes with w = {w} take k from 1 to {w}, not {k}")


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))
