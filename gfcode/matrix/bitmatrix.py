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

_BYTE_ONES = np.array([value.bit_count() for value in range(256)], np.intp)


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
    total = np.zeros(values.shape, np.intp)
    for b in range(field.w):
        images = field.mul(values, np.array(1 << b, field.dtype))
        for byte in range(field.dtype.itemsize):
            total += _BYTE_ONES[images >> field.dtype.type(8 * byte) & field.dtype.type(255)]
    return total
