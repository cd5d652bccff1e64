"""The `numba` engine: XOR programs run by two small kernels, on any CPU."""

import sys
from typing import Final

import numpy as np

from gfcode.engine.protocol import Blocks, Engine, Operator, Product
from gfcode.errors import EngineUnavailableError
from gfcode.matrix.bitmatrix import expand
from gfcode.matrix.transformed import Transformed

__all__ = ["NumbaEngine", "load"]

# Bits of the bit matrix that are expanded at a time: bounds the memory that a wide code takes to prepare.
_BITS: Final = 1 << 22


class NumbaEngine:
    """Runs any product; compiles at most one kernel for `packets` and one for each w of `words`."""

    name = "numba"

    @property
    def detail(self) -> str:
        """What the engine runs on."""
        import llvmlite.binding  # noqa: PLC0415 - with numba, at first use
        import numba  # noqa: PLC0415

        return f"numba {numba.__version__}, compiled for {llvmlite.binding.get_host_cpu_name()}"

    def refuses(self, product: Product) -> str | None:
        """Why the engine cannot run `product`; None if it can."""
        if sys.byteorder != "little" and product.layout.name == "words" and product.layout.w > 8:
            return "layout 'words' with w > 8 needs a little-endian machine"
        if isinstance(product.matrix, Transformed) and product.matrix.is_huge:
            return "the matrix is too large to be written out"
        return None

    def prepare(self, product: Product) -> Operator:
        """Bind a product."""
        if reason := self.refuses(product):
            raise EngineUnavailableError(f"engine 'numba' cannot run this product: {reason}")
        return _PacketsOperator(product) if product.layout.name == "packets" else _WordsOperator(product)


class _PacketsOperator:
    """The rows of the bit matrix, each a list of packets to XOR."""

    __slots__ = ("_entries", "_kernel", "_product", "_starts")

    def __init__(self, product: Product) -> None:
        from gfcode.kernels.portable.kernels import BIT_FIELD, packets_kernel  # noqa: PLC0415 - loads numba

        w, matrix = product.layout.w, product.matrix
        lengths, entries = [np.zeros(1, np.intp)], [np.empty(0, np.uint32)]
        step = max(1, _BITS // max(1, matrix.shape[1] * w * w))
        for first in range(0, matrix.shape[0], step):
            bits = expand(matrix.rows(range(first, min(first + step, matrix.shape[0]))))
            columns = np.nonzero(bits)[1]
            lengths.append(bits.sum(axis=1, dtype=np.intp))
            entries.append((columns // w << BIT_FIELD | columns % w).astype(np.uint32))
        self._entries = np.concatenate(entries)
        self._starts = np.cumsum(np.concatenate(lengths)).astype(np.uint32)
        self._kernel = packets_kernel()
        self._product = product

    def __call__(self, inputs: Blocks, outputs: Blocks) -> None:
        self._product.check(inputs, outputs)
        layout = self._product.layout
        self._kernel(
            inputs.table, outputs.table, inputs.length, layout.w, layout.packet_bytes, self._starts, self._entries
        )


class _WordsOperator:
    """The bits of the coefficients, from the top: for each, the list of inputs to XOR."""

    __slots__ = ("_entries", "_kernel", "_polynomial", "_product", "_starts")

    def __init__(self, product: Product) -> None:
        from gfcode.kernels.portable.kernels import words_kernel  # noqa: PLC0415 - loads numba

        w, field = product.layout.w, product.matrix.field
        shifts = np.arange(w - 1, -1, -1, dtype=field.dtype)[:, None]
        bits = product.matrix.values[:, None, :] >> shifts & field.dtype.type(1)
        bits = bits.reshape(product.matrix.shape[0] * w, product.matrix.shape[1])
        self._entries = np.nonzero(bits)[1].astype(np.uint32)
        self._starts = np.concatenate([[0], np.cumsum(bits.sum(axis=1, dtype=np.intp))]).astype(np.uint32)
        self._kernel = words_kernel(w)
        self._polynomial = field.polynomial ^ field.order
        self._product = product

    def __call__(self, inputs: Blocks, outputs: Blocks) -> None:
        self._product.check(inputs, outputs)
        self._kernel(inputs.table, outputs.table, inputs.length, self._polynomial, self._starts, self._entries)


def load() -> Engine:
    """Return the engine.

    Raises
    ------
    EngineUnavailableError
        If numba cannot be imported.
    """
    try:
        import numba  # noqa: F401, PLC0415
    except ImportError as error:
        raise EngineUnavailableError(f"numba cannot be imported ({error}): pip install numba") from error
    return NumbaEngine()
