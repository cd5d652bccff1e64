"""The `cuda` engine: products on an NVIDIA GPU, for arrays that are there already and for host blocks through it."""

import functools
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from gfcode.engine.protocol import Engine, Product
from gfcode.errors import BlockError, EngineUnavailableError, ParameterError
from gfcode.kernels.cuda.blocks import DeviceBlocks, device_blocks, device_of
from gfcode.kernels.cuda.context import Context
from gfcode.kernels.cuda.device import Device
from gfcode.kernels.cuda.launch import WIDTHS
from gfcode.kernels.cuda.operator import CudaOperator, GroupedOperator
from gfcode.kernels.cuda.runners import HornerRunner, MatrixRunner, ProgramRunner, Runner, is_geometric
from gfcode.kernels.cuda.streaming import Streamer
from gfcode.kernels.cuda.verbs import add, copy, copy_out, find_ones
from gfcode.matrix.bitmatrix import expand
from gfcode.matrix.dense import Matrix
from gfcode.params import Layout

__all__ = ["CudaEngine", "KernelName", "load"]

#: "matrix": tensor cores, the matrix is data. "horner": XORs, geometric rows. "program": XORs, compiled for one matrix.
KernelName = Literal["auto", "matrix", "horner", "program"]


#: Products that are kept prepared.
_KEPT: Final = 256
#: Why AMD's GPUs do without.
_GATED: Final = "the matrix-product kernel needs an NVIDIA GPU's tensor cores"


class CudaEngine:
    """Runs products on one GPU. Safe to use from many threads.

    Parameters
    ----------
    context : Context
    sibling : callable, optional
        Gives the engine of another device, by its number.
    """

    name = "cuda"

    def __init__(self, context: Context, sibling: Callable[[int], "CudaEngine"] | None = None) -> None:
        self._context = context
        self._sibling = sibling
        self._streamer = Streamer(context.device)
        self._operators = functools.lru_cache(maxsize=_KEPT)(self.prepare)
        self._xor_runner = functools.lru_cache(maxsize=_KEPT)(self._make_xor_runner)

    @property
    def detail(self) -> str:
        """What the engine runs on."""
        info = self._context.device.info
        kind = info.gfx or "compute capability {}.{}".format(*divmod(info.capability, 10))
        return f"{info.name}, {kind}, {self._context.device.compiler}"

    @property
    def device(self) -> Device:
        """The device."""
        return self._context.device

    def refuses(self, product: Product) -> str | None:
        """Why this engine cannot run `product`; None if it can."""
        if reason := self._refuses_layout(product.layout):
            return reason
        if self.device.info.gfx:
            try:
                self._xor_runner(product)
            except EngineUnavailableError as error:
                return str(error)
        return None

    @staticmethod
    def _refuses_layout(layout: Layout) -> str | None:
        if layout.w not in WIDTHS:
            return f"the cuda engine has kernels for w = {', '.join(map(str, WIDTHS))}, not {layout.w}"
        return None

    def prepare(self, product: Product, kernel: KernelName = "auto") -> CudaOperator:
        """Bind a product.

        Parameters
        ----------
        product : Product
        kernel : {"auto", "matrix", "horner", "program"}
            By default Horner's rule for geometric rows, such as those of `powers`, and the matrix-product kernel for
            all others: neither compiles anything that other matrices do not share. "program" compiles a kernel for
            this very matrix, for seconds the first time, which is worth it for one that is used for long. On an AMD
            GPU, which has no matrix-product kernel, it takes that kernel's place.

        Raises
        ------
        EngineUnavailableError
            If `refuses` gives a reason, or the kernel asked for cannot run this product.
        """
        if reason := self._refuses_layout(product.layout):
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
        if kernel == "auto":
            if self.device.info.gfx:
                return self._xor_runner(product)
            if is_geometric(matrix):
                try:
                    return HornerRunner(self._context, layout, matrix)
                except EngineUnavailableError:
                    pass  # too many rows for the registers
        return self._matrix_runner(layout, expand(matrix)[None])

    def _make_xor_runner(self, product: Product) -> Runner:
        """Return the XOR kernel that an AMD GPU runs a product with, or say why there is none."""
        if is_geometric(product.matrix):
            try:
                return HornerRunner(self._context, product.layout, product.matrix)
            except EngineUnavailableError:
                pass  # a program takes fewer registers
        try:
            return ProgramRunner(self._context, product.layout, expand(product.matrix))
        except EngineUnavailableError as error:
            raise EngineUnavailableError(
                f"a {product.matrix.shape[0]} × {product.matrix.shape[1]} matrix is too large for the XOR kernels, and "
                f"{_GATED}; use an engine of the CPU"
            ) from error

    def _matrix_runner(self, layout: Layout, bits: npt.NDArray[np.uint8]) -> MatrixRunner:
        if self.device.info.gfx:
            raise EngineUnavailableError(f"{_GATED}; use the XOR kernels")
        return MatrixRunner(self._context, layout, bits)

    # For codecs with device arrays

    def at(self, arrays: Iterable[tuple[str, object]]) -> "CudaEngine":
        """Return the engine of the device that holds these arrays, given with their names.

        Raises
        ------
        BlockError
            If they are on different devices.
        """
        number = device_of(self.device, arrays)
        if number == self.device.number:
            return self
        if self._sibling is None:
            raise BlockError(f"blocks are on device {number}, but the engine runs on device {self.device.number}")
        return self._sibling(number)

    def blocks_of(
        self, arrays: object, *, writable: bool = False, name: Callable[[int], str] = "block {}".format
    ) -> DeviceBlocks:
        """Return the blocks of a device array or of a list of arrays, to be used on the current stream from here on."""
        return device_blocks(self.device, arrays, self.device.current_stream(), writable=writable, name=name)

    def new_array(self, shape: tuple[int, ...]) -> Any:
        """Make an uninitialised CuPy array of uint8 for a caller, first used by the current stream."""
        return self.device.new_array(shape)

    def sliceable(self, array: object) -> Any:
        """Return an array that can be sliced: the very one, or a CuPy array over its memory."""
        return array if hasattr(array, "__getitem__") else self.device.from_dlpack(array)

    def multiply(self, product: Product, inputs: DeviceBlocks, outputs: DeviceBlocks) -> None:
        """Enqueue outputs = matrix · inputs on the caller's current CuPy stream; return at once.

        Products are prepared at their first use; those used last are kept.

        Raises
        ------
        EngineUnavailableError, BlockError, DeviceMemoryError, DeviceError
        """
        self._operators(product).apply_device(inputs, outputs)

    def add(self, matrix: Matrix, layout: Layout, inputs: DeviceBlocks, outputs: DeviceBlocks) -> None:
        """Enqueue outputs += matrix · inputs; return at once. Takes device memory for some of the outputs."""
        both = Matrix.hstack([Matrix.identity(matrix.field, matrix.shape[0]), matrix])
        operator = self._operators(Product(both, layout))
        add(self.device, operator.apply_device, inputs, outputs, layout.strip_bytes, self.device.current_stream())

    def find_ones(self, product: Product, inputs: DeviceBlocks) -> npt.NDArray[np.bool_]:
        """Tell which outputs of a product have a one anywhere; waits for the answer, shape (stripes, r)."""
        operator, rows = self._operators(product), product.matrix.shape[0]
        stream = self.device.current_stream()
        return find_ones(
            self._context, operator.apply_device, inputs, rows, product.layout.strip_bytes, stream
        )  # fmt: skip

    def copy(self, source: DeviceBlocks, target: DeviceBlocks) -> None:
        """Enqueue copies of blocks to as many others; return at once."""
        copy(self.device, source, target, self.device.current_stream())

    def copy_out(self, blocks: DeviceBlocks) -> npt.NDArray[np.uint8]:
        """Copy blocks to the host, shape (stripes, count, length), and wait for them."""
        return copy_out(self.device, blocks, self.device.current_stream())

    # For repairs of many stripes

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
        if reason := self._refuses_layout(Product(first, layout).layout):
            raise EngineUnavailableError(reason)
        rows, columns = first.shape
        stacked = Matrix(first.field, np.concatenate([matrix.values for matrix in matrices]))
        bits = expand(stacked).reshape(len(matrices), rows * layout.w, columns * layout.w)
        return GroupedOperator(
            self._context,
            self._streamer,
            layout,
            first.shape,
            self._matrix_runner(layout, bits),
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


def _engine_at(number: int | None) -> CudaEngine:
    """Return the engine of a device, or of the current one."""
    from gfcode.kernels.cuda.cupy_device import CupyDevice  # noqa: PLC0415 - imports cupy, which may be missing

    with _loading:
        found = _engines.get(number) if number is not None else None
        if found is None:
            device = CupyDevice.open(number)
            found = _engines.get(device.number)
            if found is None:
                found = _engines[device.number] = CudaEngine(Context(device), _engine_at)
        return found


def load() -> Engine:
    """Return the engine of the current CUDA device.

    Raises
    ------
    EngineUnavailableError
        With the one-line reason: no cupy, no driver, no device, too old a device, no compiler.
    """
    return _engine_at(None)
