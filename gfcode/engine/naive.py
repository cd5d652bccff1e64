"""The `numpy` engine: the oracle. Every product as its definition says."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gfcode.engine.protocol import Blocks, Engine, Operator, Product
from gfcode.matrix.bitmatrix import expand
from gfcode.matrix.transformed import Transformed

__all__ = ["NumpyEngine", "load"]

#: How a block of the `words` layout is read as symbols. With w = 4 a byte holds two, see `_symbols`.
_WORDS: Final[dict[int, np.dtype[Any]]] = {8: np.dtype("u1"), 16: np.dtype("<u2"), 32: np.dtype("<u4")}


class NumpyEngine:
    """Runs any product, in either layout and over any field, in plain NumPy."""

    name = "numpy"

    @property
    def detail(self) -> str:
        """What the engine runs on."""
        return f"NumPy {np.__version__}: the reference for every other engine, and slow"

    def refuses(self, product: Product) -> str | None:  # noqa: ARG002 - an oracle refuses nothing
        """Return None: the oracle runs every product."""
        return None

    def prepare(self, product: Product) -> Operator:
        """Bind a product."""
        return _PacketsOperator(product) if product.layout.name == "packets" else _WordsOperator(product)


class _PacketsOperator:
    """XOR of whole packets, as the ones of the bit matrix say."""

    def __init__(self, product: Product) -> None:
        self._product = product
        self._bits = expand(product.matrix)

    def __call__(self, inputs: Blocks, outputs: Blocks) -> None:
        self._product.check(inputs, outputs)
        w, packet_bytes = self._product.layout.w, self._product.layout.packet_bytes
        strips = inputs.length // (w * packet_bytes)
        for sources, targets in zip(inputs.views(), outputs.views(), strict=True):
            blocks = np.stack(sources).reshape(len(sources), strips, w, packet_bytes)
            packets = blocks.transpose(0, 2, 1, 3).reshape(len(sources) * w, strips, packet_bytes)
            for row, (i, b) in zip(self._bits, np.ndindex(len(targets), w), strict=True):
                packet = np.bitwise_xor.reduce(packets[row == 1], axis=0)
                targets[i].reshape(strips, w, packet_bytes)[:, b] = packet


class _WordsOperator:
    """Multiplication of every symbol by the coefficient, and addition in the field.

    Matrices too large to be written out are the exception: by the transforms that define them.
    """

    def __init__(self, product: Product) -> None:
        self._product = product

    def __call__(self, inputs: Blocks, outputs: Blocks) -> None:
        self._product.check(inputs, outputs)
        field, w = self._product.matrix.field, self._product.layout.w
        for sources, targets in zip(inputs.views(), outputs.views(), strict=True):
            symbols = np.stack([_symbols(block, w) for block in sources])
            matrix = self._product.matrix
            if isinstance(matrix, Transformed) and matrix.is_huge:
                for row, target in zip(matrix.apply(symbols), targets, strict=True):
                    target[:] = _bytes(row, w)
                continue
            for row, target in zip(self._product.matrix.values, targets, strict=True):
                products = field.mul(row[:, None], symbols)
                target[:] = _bytes(np.bitwise_xor.reduce(products, axis=0), w)


def _symbols(block: npt.NDArray[np.uint8], w: int) -> npt.NDArray[Any]:
    """Read a block as symbols: little-endian words, or with w = 4 the low nibble of each byte, then the high one."""
    if w == 4:
        return np.stack([block & 15, block >> 4], axis=1).reshape(-1)
    words: npt.NDArray[Any] = block.view(_WORDS[w])
    return words


def _bytes(symbols: npt.NDArray[Any], w: int) -> npt.NDArray[np.uint8]:
    """Write symbols as the bytes of a block, the inverse of `_symbols`."""
    if w == 4:
        return np.asarray(symbols[0::2] | symbols[1::2] << 4, np.uint8)
    return symbols.astype(_WORDS[w]).view(np.uint8)


def load() -> Engine:
    """Return the engine; it can always be had."""
    return NumpyEngine()
