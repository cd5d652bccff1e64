"""Operators that multiply by transforms."""

import ctypes
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gfcode.engine.buffers import address_of, allocate
from gfcode.engine.protocol import Blocks, Product
from gfcode.errors import EngineUnavailableError
from gfcode.kernels.simd.fft import FftKernel
from gfcode.kernels.simd.fft_program import Program, program
from gfcode.kernels.simd.selftest import expected
from gfcode.kernels.simd.target import Target
from gfcode.matrix.transformed import Decoding, Parity

if TYPE_CHECKING:
    from gfcode.kernels.simd.engine import SimdEngine

__all__ = ["FftOperator", "pays"]

#: From this many bytes moved by a stripe, or by all stripes of a call, outputs bypass the caches.
_STREAM_STRIPE, _STREAM_BATCH = 16 << 20, 32 << 20
#: Bytes of scratch that a thread keeps.
_KEPT = 1 << 20
#: Bits of a symbol that there are kernels for, points of the least transform, and blocks that other kernels take.
_SIZES, _LEAST, _MANY = (4, 8, 16), 8, 4096
#: Bytes of a block in a test: whole pieces, whole vectors and an odd end.
_LENGTH = 2 * 512 + 3 * 64 + 42
# The interpreter's lock is released for as long as the call takes.
_KERNEL = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 6)
_threads = threading.local()


def pays(product: Product) -> bool:
    """Whether transforms are the way to multiply: for a matrix of the family, in `words`, that takes many products.

    A product costs about half as much as a butterfly: it is not stored. Blocks too many for the other kernels leave no
    choice.
    """
    matrix, layout = product.matrix, product.layout
    if not isinstance(matrix, Parity | Decoding) or layout.name != "words" or layout.w not in _SIZES:
        return False
    code = matrix if isinstance(matrix, Parity) else matrix.code
    size, (rows, columns) = code.size, matrix.shape
    if size < _LEAST:
        return False
    cosets = -(-code.shape[1] // size)
    # To decode, also the parities' coset forth and back, and cosets of wanted shards.
    transforms = cosets + 1 if isinstance(matrix, Parity) else cosets + 2 + min(rows, cosets)
    butterflies = transforms * size * (size.bit_length() - 1) // 2
    return rows * columns >= 2 * butterflies or rows + columns > _MANY


class FftOperator:
    """A product of the family `fft` bound to the transforms' kernel; see `gfcode.engine.protocol.Operator`.

    Parameters
    ----------
    engine : SimdEngine
    product : Product
        One that `pays`.

    Raises
    ------
    EngineUnavailableError
        If the kernel gives wrong results on this CPU, or the matrix is of another family.
    """

    __slots__ = ("_engine", "_kernels", "_made", "_program", "product")

    def __init__(self, engine: "SimdEngine", product: Product) -> None:
        matrix = product.matrix
        if not isinstance(matrix, Parity | Decoding):
            raise EngineUnavailableError("transforms multiply by matrices of the family 'fft' only")
        self.product = product
        self._engine = engine
        self._made = matrix.made.tolist() if isinstance(matrix, Decoding) else range(matrix.shape[0])
        self._program = program(matrix, engine.target)
        self._kernels = {False: self._bind(streaming=False)}

    def __call__(self, inputs: Blocks, outputs: Blocks) -> None:
        """Overwrite `outputs` with matrix · `inputs`."""
        self.product.check(inputs, outputs)
        matrix, length = self.product.matrix, outputs.length
        if not length or not outputs.stripes:
            return
        if isinstance(matrix, Decoding) and matrix.copied:
            for sources, targets in zip(inputs.table.tolist(), outputs.table.tolist(), strict=True):
                for row, source in matrix.copied.items():
                    ctypes.memmove(targets[row], sources[source], length)
        if self._made and length < self._engine.target.vector_bytes:
            self._pad(inputs, outputs)
        elif self._made:
            self._run(inputs, outputs)

    def _run(self, inputs: Blocks, outputs: Blocks) -> None:
        stripe = outputs.length * sum(self.product.matrix.shape)
        streaming = stripe >= _STREAM_STRIPE or stripe * outputs.stripes >= _STREAM_BATCH
        if streaming and int(np.bitwise_or.reduce(outputs.table, axis=None)) % 64:
            streaming = False  # such stores need whole lines
        kernel = self._kernels.get(streaming)
        if kernel is None:
            kernel = self._kernels[streaming] = self._bind(streaming=streaming)
        _call(kernel, self._program, inputs, outputs)

    def _bind(self, *, streaming: bool) -> Any:
        kernel, target = FftKernel(self.product.layout.w, streaming), self._engine.target
        return _KERNEL(self._engine.proven(kernel, partial(_is_right, self.product, target)))

    def _pad(self, inputs: Blocks, outputs: Blocks) -> None:
        """Do blocks shorter than a vector in copies of one."""
        width, length = self._engine.target.vector_bytes, inputs.length
        rows, columns = self.product.matrix.shape
        source, given = Blocks.allocate(columns, width)
        target, made = Blocks.allocate(rows, width)
        source[:] = 0
        for sources, targets in zip(inputs.views(), outputs.views(), strict=True):
            source[:, :length] = sources
            self._run(given, made)
            for row in self._made:
                targets[row][:] = target[row, :length]


def _call(kernel: Any, program: Program, inputs: Blocks, outputs: Blocks) -> None:
    scratch = _scratch(program.scratch)
    context = address_of(program.context)
    kernel(context, address_of(scratch), inputs.address, outputs.address, outputs.stripes, outputs.length)


def _is_right(product: Product, target: Target, address: int) -> bool:
    """Whether a kernel multiplies by small matrices right; `product` names the field and the layout."""
    kernel, layout = _KERNEL(address), product.layout
    k, m = (7, 6) if layout.w == 4 else (45, 21)
    code = Parity(product.matrix.field, k, m)
    mixed = Decoding(code, [*range(5, k), *range(k + 1, k + 6)], [0, k + 6, 1, k])
    chance = np.random.default_rng(k)
    for matrix in (code, Decoding(code, [*range(m, k), *range(k, k + m)], range(m)), mixed):
        inputs = chance.integers(0, 256, (matrix.shape[1], _LENGTH), np.uint8)
        outputs, made = Blocks.allocate(matrix.shape[0], _LENGTH)
        _call(kernel, program(matrix, target), Blocks.of_array(inputs), made)
        if (outputs != expected(Product(matrix, layout), inputs)).any():
            return False
    return True


def _scratch(size: int) -> Any:
    """Memory of the calling thread's own."""
    kept = getattr(_threads, "scratch", None)
    if kept is None or kept.size < size:
        kept = allocate(1, size)[0]
        if size <= _KEPT:
            _threads.scratch = kept
    return kept
