"""The plain way to multiply bit matrices on a GPU: bits as numbers, and the library's matrix product.

Bits are written to memory as numbers of a type that tensor cores take, multiplied, taken modulo two and packed again.
It moves many times the bytes that `bitmatmul.cu` moves, and is here as the baseline that it is measured against and as
a check that shares no code with it.
"""

from types import ModuleType
from typing import Any

import numpy as np

from gfcode.engine.protocol import Product
from gfcode.matrix.bitmatrix import expand

__all__ = ["multiply_bits"]


def multiply_bits(xp: ModuleType, product: Product, data: Any, dtype: str = "float16") -> Any:
    """Compute matrix · data by a dense product of numbers.

    Parameters
    ----------
    xp : module
        cupy, or numpy: anything with `matmul`, `unpackbits` and `packbits`.
    product : Product
        Over GF(2^w), w = 4, 8 or 16.
    data : array of uint8, shape (stripes, c, length)
    dtype : str
        Of the numbers. float16 counts exactly up to 2,048 ones, float32 up to 2^24.

    Returns
    -------
    array of uint8, shape (stripes, r, length)
        New memory.
    """
    layout = product.layout
    w, rows, columns = layout.w, *product.matrix.shape
    stripes, _, length = data.shape
    if columns * w > np.finfo(dtype).max or columns * w > 2 ** (np.finfo(dtype).nmant + 1):
        raise ValueError(f"{dtype} cannot count {columns * w} ones; use float32")
    # bits: (stripes, c · w, positions)
    flat = xp.unpackbits(data.reshape(-1), bitorder="little")
    if layout.name == "words":
        symbols = length * 8 // w
        bits = flat.reshape(stripes, columns, symbols, w).transpose(0, 1, 3, 2)
    else:
        strips, width = length // layout.strip_bytes, 8 * layout.packet_bytes
        symbols = strips * width
        bits = flat.reshape(stripes, columns, strips, w, width).transpose(0, 1, 3, 2, 4)
    left = xp.asarray(expand(product.matrix).astype(dtype))
    counts = xp.matmul(left, bits.reshape(stripes, columns * w, symbols).astype(dtype))
    parity = counts.astype(np.int32).astype(np.uint8) & np.uint8(1)
    if layout.name == "words":
        ordered = parity.reshape(stripes, rows, w, symbols).transpose(0, 1, 3, 2)
    else:
        ordered = parity.reshape(stripes, rows, w, strips, width).transpose(0, 1, 3, 2, 4)
    packed = xp.packbits(xp.ascontiguousarray(ordered).reshape(-1), bitorder="little")
    return packed.reshape(stripes, rows, length)
