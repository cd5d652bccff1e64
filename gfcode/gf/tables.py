"""Tables of GF(2^w) for NumPy and for kernels: powers and logarithms, products, and GF(2)-linear maps by byte."""

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["FieldArray", "apply_linear", "exp_log_tables", "linear_tables", "product_table"]

FieldArray = npt.NDArray[np.unsignedinteger[Any]]


def linear_tables(images: FieldArray) -> FieldArray:
    """Tabulate GF(2)-linear maps by the bytes of their argument.

    Parameters
    ----------
    images : ndarray of unsigned integers, shape (..., w)
        The image of bit b of the argument, for each map.

    Returns
    -------
    ndarray of the same type, shape (..., ceil(w/8), 256)
        XOR of ``tables[..., i, byte i of the argument]`` over i is the image. Argument bits from w on count as zero.
    """
    w = images.shape[-1]
    positions = -(-w // 8)
    padded = np.zeros((*images.shape[:-1], positions * 8), images.dtype)
    padded[..., :w] = images
    bits = padded.reshape(*images.shape[:-1], positions, 8)
    tables = np.zeros((*images.shape[:-1], positions, 256), images.dtype)
    for b in range(8):
        half = 1 << b
        tables[..., half : 2 * half] = tables[..., :half] ^ bits[..., b, None]
    return tables


def apply_linear(tables: FieldArray, values: FieldArray) -> FieldArray:
    """Apply one map tabulated by `linear_tables` (shape (positions, 256)) to every value."""
    image: FieldArray = tables[0][values & 0xFF]
    for position in range(1, tables.shape[0]):
        image ^= tables[position][values >> (8 * position) & 0xFF]
    return image


def multiply_by_constant(values: FieldArray, constant: int, w: int, polynomial: int) -> FieldArray:
    """Product of every value by one constant, bit by bit of the constant (Horner), without tables."""
    wide = values.astype(np.uint64)
    product = np.zeros_like(wide)
    for b in range(w - 1, -1, -1):
        product <<= np.uint64(1)
        product ^= (product >> np.uint64(w)) * np.uint64(polynomial)
        if constant >> b & 1:
            product ^= wide
    return product.astype(values.dtype)


def exp_log_tables(w: int, polynomial: int, generator: int) -> tuple[FieldArray, npt.NDArray[np.intp]]:
    """Powers and logarithms to the base `generator`, for w ≤ 16.

    Returns
    -------
    exp : ndarray, shape (4 · (2^w − 1) + 1,)
        The powers of the generator twice over, then zeros.
    log : ndarray of intp, shape (2^w,)
        Logarithms in 0 .. 2^w − 2; that of zero is set to 2 · (2^w − 1), so that ``exp[log[a] + log[b]]`` is a · b for
        all a and b.
    """
    size = (1 << w) - 1
    dtype = np.uint8 if w <= 8 else np.uint16
    powers: FieldArray = np.ones(size, dtype)
    done, step = 1, generator
    while done < size:  # the next `done` powers are those known, times generator^done
        take = min(done, size - done)
        powers[done : done + take] = multiply_by_constant(powers[:take], step, w, polynomial)
        step = int(multiply_by_constant(np.array([step], dtype), step, w, polynomial)[0])
        done += take
    exp: FieldArray = np.zeros(4 * size + 1, dtype)
    exp[:size] = exp[size : 2 * size] = powers
    log = np.full(size + 1, 2 * size, np.intp)
    log[powers] = np.arange(size)
    return exp, log


def product_table(exp: FieldArray, log: npt.NDArray[np.intp]) -> FieldArray:
    """Every product of two elements, shape (2^w, 2^w); for w ≤ 8."""
    table: FieldArray = exp[log[:, None] + log]
    return table
