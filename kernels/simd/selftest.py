"""A known answer for every kernel, before its first result is trusted on this kind of CPU.

The answer is computed here in a second way, from the field's products or its bit matrices, so that a compiler that
selects a wrong instruction, or a CPU (or hypervisor) that claims one it does not have right, is found out.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from gfcode.engine.buffers import allocate
from gfcode.engine.protocol import Blocks, Operator, Product
from gfcode.kernels.simd.constants import Row
from gfcode.matrix.bitmatrix import expand
from gfcode.matrix.dense import Matrix

__all__ = ["every_constant", "expected", "passes"]

_Bytes = npt.NDArray[np.uint8]
#: Bytes of a `words` block in a test: whole steps of every kernel, single vectors and an odd end.
_LENGTH = 8 * 64 + 3 * 64 + 42
#: Inputs of a test that are not zero.
_SOME = 48


def every_constant(product: Product) -> tuple[Product, list[Row]]:
    """Return a product, and rows that compute it, in which all functions of a field's constants are used.

    Parameters
    ----------
    product : Product
        Names the field and the layout.
    """
    field = product.matrix.field
    steps = np.arange(1, field.order, dtype=field.dtype)
    turns = steps[::-1]
    rows = [
        Row(2 + row, (0, 1), (step, turn))
        for row, (step, turn) in enumerate(zip(steps.tolist(), turns.tolist(), strict=True))
    ]
    matrix = Matrix(field, np.stack([field.mul(steps, turns), turns], axis=1))
    return Product(matrix, product.layout), rows


def passes(operator: Operator, product: Product) -> bool:
    """Whether `operator` computes `product` on a small pseudo-random input."""
    rows, columns = product.matrix.shape
    layout = product.layout
    length = 2 * layout.strip_bytes if layout.name == "packets" else _LENGTH // layout.strip_bytes * layout.strip_bytes
    chance = np.random.default_rng(columns)
    # Of many inputs all but some are zero, so that the answer stays cheap.
    some = np.sort(chance.permutation(columns)[:_SOME])
    inputs = np.zeros((columns, length), np.uint8)
    inputs[some] = chance.integers(0, 256, (len(some), length), np.uint8)
    outputs = allocate(rows, length)  # aligned, as kernels that stream need it
    outputs[:] = 0
    operator(Blocks.of_array(inputs), Blocks.of_array(outputs, writable=True))
    smaller = Product(product.matrix.columns(some.tolist()), layout)
    return bool((outputs == expected(smaller, inputs[some])).all())


def expected(product: Product, inputs: _Bytes) -> _Bytes:
    """Compute a product plainly; inputs of shape (columns, length)."""
    return _packets(product, inputs) if product.layout.name == "packets" else _words(product, inputs)


def _packets(product: Product, inputs: _Bytes) -> _Bytes:
    rows, columns = product.matrix.shape
    layout = product.layout
    strips = inputs.reshape(columns, -1, layout.w, layout.packet_bytes)
    planes = strips.swapaxes(1, 2).reshape(columns * layout.w, -1, layout.packet_bytes)
    sums = [np.bitwise_xor.reduce(planes[line != 0], axis=0) for line in expand(product.matrix)]
    outputs = np.stack(sums).reshape(rows, layout.w, -1, layout.packet_bytes).swapaxes(1, 2)
    return np.ascontiguousarray(outputs).reshape(rows, -1)


def _words(product: Product, inputs: _Bytes) -> _Bytes:
    field = product.matrix.field

    def times(constants: Any, block: _Bytes) -> _Bytes:
        if field.w == 4:
            low, high = field.mul(constants, block & 15), field.mul(constants, block >> 4)
            return (low | high << 4).astype(np.uint8)
        symbols = block.view(np.dtype(field.dtype).newbyteorder("<")).astype(field.dtype)
        products = np.ascontiguousarray(field.mul(constants, symbols).astype(symbols.dtype.newbyteorder("<")))
        return products.view(np.uint8)

    outputs = np.zeros((product.matrix.shape[0], inputs.shape[1]), np.uint8)
    for column, block in zip(product.matrix.values.T, inputs, strict=True):
        outputs ^= times(column[:, None], block)
    return outputs
