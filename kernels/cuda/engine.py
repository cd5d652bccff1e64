"""The `cuda` engine: products on an NVIDIA GPU, for arrays that are there already and for host blocks through it."""

import functools
import threading
from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from gfcode.engine.protocol import Engine, Product
from gfcode.errors import EngineUnavailableError, ParameterError
from gfcode.kernels.cuda.context import Context
from gfcode.kernels.cuda.device import Device
from gfcode.kernels.cuda.launch import WIDTHS
from gfcode.kernels.cuda.operator import CudaOperator, GroupedOperator
from gfcode.kernels.cuda.runners import HornerRunner, MatrixRunner, ProgramRunner, Runner, is_geometric
from gfcode.kernels.cuda.streaming import Streamer
from gfcode.matrix.bitmatrix import expand
from gfcode.matrix.dense import Matrix
from gfcode.params import Layout

__all__ = ["CudaEngine", "KernelName", "load"]

#: "matrix": tensor cores, the matrix is data. "horner": XORs, geometric rows. "program": XORs, compiled for one matrix.
KernelName = Literal["auto", "matrix", "horner", "program"]


#: Products that `multiply` keeps prepared.
_KEPT: Final = 256


class CudaEngine:
    """Runs products on one GPU. Safe to use from many threads.

    Parameters
    ----------
    context : Context
    """

    name = "cuda"

    def __init__(self, context: Context) -> None:
        self._context = context
        self._streamer = Streamer(context.device)
        self._operators = functools.lru_cache(maxsize=_KEPT)(self.prepare)

    @property
    def detail(self) -> str:
        """What the engine runs on."""
        info = self._context.device.info
        major, minor = divmod(info.capability, 10)
        return f"{info.name}, compute capability {major}.{minor}, {self._context.device.compiler}"

    @property
    def device(self) -> Device:
        """The device."""
        return self._context.device

    def refuses(self, product: Product) -> str | None:
        """Why this engine cannot run `product`; None if it can."""
        if product.layout.w not in WIDTHS:
            return f"the cuda engine has kernels for w = {', '.join(map(str, WIDTHS))}, not {product.layout.w}"
        if product.matrix.shape[1] == 0:
            return "the cuda engine runs no product without inputs"
        return None

    def prepare(self, product: Product, kernel: KernelName = "auto") -> CudaOperator:
        """Bind a product.

        Parameters
        ----------
        product : Product
        kernel : {"auto", "matrix", "horner", "program"}
            By default Horner's rule for geometric rows, such as those of `powers`, and the matrix-product kernel for
            all others: neither compiles anything that other matrices do not share. "program" compiles a kernel for
            this very matrix, for seconds the first time, which is worth it for one that is used for long.

        Raises
        ------
        EngineUnavailableError
            If `refuses` gives a reason, or the kernel asked for cannot run this product.
        """
        if reason := self.refuses(product):
            raise EngineUnavailableError(reason)
        return CudaOperator(self._context, self._streamer, product, self._runner(product, kernel))

    def _runner(self, product: Product, kernel: KernelName) -> Runner:
        matrix, layout = product.matrix, product.layout
        if kernel == "horner":
            return HornerRunner(self._context, layout, matrix)
        if kernel == "program":
            return ProgramRunner(self._context, layout, expand(matrix))
        if kernel not in {"auto", "matrix"}:
            raise ParameterError(f"there is no kernel {kernel!r}; choose auto, matrix, horner or program")
        if kernel == "auto" and is_geometric(matrix):
            try:
                return HornerRunner(self._context, layout, matrix)
            except EngineUnavailableError:
                pass  # too many rows for the registers
        return MatrixRunner(self._context, layout, expand(matrix)[None])

    def multiply(self, product: Product, data: object, out: Any = None) -> Any:
        """Enqueue matrix · data for arrays in device memory, on the caller's current CuPy stream; return at once.

        Parameters
        ----------
        product : Product
            Prepared at its first use; those used last are kept.
        data : device array, or list of c device arrays
            uint8, shape (c, length) or (stripes, c, length), or each of shape (length,) or (stripes, length).
        out : device array, or list of r device arrays, optional
            Where to put the result; overwritten.

        Returns
        -------
        device array
            `out`, or a new CuPy array of shape (r, length) or (stripes, r, length).

        Raises
        ------
        EngineUnavailableError, BlockError, DeviceMemoryError, DeviceError
        """
        operator = self._operators(product)
        inputs = operator.blocks_of(data)
        if out is None:
            stripes = () if inputs.single else (inputs.stripes,)
            out = self.device.new_array((*stripes, product.matrix.shape[0], inputs.length))
        operator.apply_device(inputs, out)
        return out

    def prepare_grouped(
        self,
        matrices: Sequence[Matrix],
        layout: Layout,
        sources: Sequence[Sequence[int]] | npt.NDArray[np.integer] | None = None,
        targets: Sequence[Sequence[int]] | npt.NDArray[np.integer] | None = None,
    ) -> GroupedOperator:
        """Bind several products of one shape, of which each stripe of a batch uses one.

        Parameters
        ----------
        matrices : sequence of Matrix
            All r × c over one field.
        layout : Layout
        sources, targets : array_like of int, shape (matrices, c) and (matrices, r), optional
            For each matrix, which shards of a stripe are its inputs and its outputs. By default blocks 0, 1, 2, ...

        Raises
        ------
        ParameterError
            If there are no matrices, or they differ in shape or field.
        EngineUnavailableError
            If this engine cannot run them.
        """
        if not matrices:
            raise ParameterError("a grouped product needs at least one matrix")
        first = matrices[0]
        if any(matrix.shape != first.shape or matrix.field != first.field for matrix in matrices):
            raise ParameterError("the matrices of a grouped product have one shape and one field")
        if reason := self.refuses(Product(first, layout)):
            raise EngineUnavailableError(reason)
        rows, columns = first.shape
        stacked = Matrix(first.field, np.concatenate([matrix.values for matrix in matrices]))
        bits = expand(stacked).reshape(len(matrices), rows * layout.w, columns * layout.w)
        return GroupedOperator(
            self._context,
            self._streamer,
            layout,
            first.shape,
            MatrixRunner(self._context, layout, bits),
            _index("sources", sources, (len(matrices), columns)),
            _index("targets", targets, (len(matrices), rows)),
        )


def _index(
    name: str, values: Sequence[Sequence[int]] | npt.NDArray[np.integer] | None, shape: tuple[int, int]
) -> npt.NDArray[np.int64] | None:
    if values is None:
        return None
    array = np.asarray(values)
    if array.shape != shape or array.dtype.kind not in "iu":
        raise ParameterError(f"{name} are integers of shape {shape}, not {array.dtype} of {array.shape}")
    return array.astype(np.int64)


_engines: dict[int, CudaEngine] = {}
_loading = threading.Lock()


def load() -> Engine:
    """Return the engine of the current CUDA device.

    Raises
    ------
    EngineUnavailableError
        With the one-line reason: no cupy, no driver, no device, too old a device, no compiler.
    """
    from gfcode.kernels.cuda.cupy_device import CupyDevice  # noqa: PLC0415 - imports cupy, which may be missing

    with _loading:
        device = CupyDevice.current()
        engine = _engines.get(device.number)
        if engine is None:
            engine = _engines[device.number] = CudaEngine(Context(device))
        return engine
