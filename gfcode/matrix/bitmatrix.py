"""Bit matrices: the same linear maps over GF(2).

An element a of GF(2^w) becomes the w × w square whose column b is the bits of a · x^b, bit 0 on top. Sums, products
and inverses of matrices become those of their bit matrices (Blömer et al. 1995).
"""

import numpy as np
import numpy.typing as npt

from gfcode.gf import Field
from gfcode.gf.tables import FieldArray
from gfcode.matrix.dense import Matrix

__all__ = ["element_ones", "expand", "ones"]

# Elements counted at a time: few enough for the first-level cache.
_BLOCK = 1 << 12


def expand(matrix: Matrix) -> npt.NDArray[np.uint8]:
    """Expand an r × c matrix over GF(2^w) to its bit matrix.

    Returns
    -------
    ndarray of uint8, shape (r · w, c · w)
        Zeros and ones; new memory.
    """
    rows, columns = matrix.shape
    w = matrix.field.w
    images = matrix.field.bit_images(matrix.values)  # (r, c, column of the square)
    bits = images[..., None] >> np.arange(w, dtype=images.dtype) & images.dtype.type(1)
    return bits.transpose(0, 3, 1, 2).reshape(rows * w, columns * w).astype(np.uint8)


def ones(matrix: Matrix) -> int:
    """Count the ones of the bit matrix, the cost of the matrix in XORs before any sharing."""
    return int(element_ones(matrix.field, matrix.values).sum())


def element_ones(field: Field, values: FieldArray) -> npt.NDArray[np.intp]:
    """Count the ones of the w × w square of each element of an array of `field.dtype`."""
    flat = values.reshape(-1)
    total = np.empty(flat.shape, np.intp)
    top, taps = np.uint32(field.w - 1), np.uint32(field.polynomial & (field.order - 1))
    below_top = np.uint32((1 << (field.w - 1)) - 1)
    for start in range(0, flat.size, _BLOCK):
        column = flat[start : start + _BLOCK].astype(np.uint32)  # a · x^b for b = 0, 1, ...
        count = np.zeros(column.shape, np.uint32)
        for _ in range(field.w):
            count += _word_ones(column)
            column = (column & below_top) << np.uint32(1) ^ (column >> top) * taps
        total[start : start + _BLOCK] = count
    return total.reshape(values.shape)


def _word_ones(words: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Count the ones of each word, by halves of growing size (Warren, "Hacker's Delight", 5-1)."""
    one, two, four = np.uint32(1), np.uint32(2), np.uint32(4)
    pairs = words - (words >> one & np.uint32(0x55555555))
    nibbles = (pairs & np.uint32(0x33333333)) + (pairs >> two & np.uint32(0x33333333))
    octets = nibbles + (nibbles >> four) & np.uint32(0x0F0F0F0F)
    counts: npt.NDArray[np.uint32] = octets * np.uint32(0x01010101) >> np.uint32(24)
    return counts
