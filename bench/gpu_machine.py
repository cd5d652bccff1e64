"""A GPU for benchmarks: arrays on it, marks in its stream, and every product checked before it is timed."""

import importlib
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from gfcode.codec import Codec
from gfcode.engine.naive import NumpyEngine
from gfcode.engine.protocol import Blocks, Product
from gfcode.kernels.cuda.device import Device
from gfcode.kernels.cuda.engine import CudaEngine
from gfcode.params import Layout

__all__ = ["GEMMS", "CupyMachine", "Machine", "decode_product", "encode_product", "median_seconds", "wanted"]

Bytes = npt.NDArray[np.uint8]


class _Gemm(NamedTuple):
    """A kind of matrix product: bytes of an operand's and of a result's element, and what cuBLAS calls its types."""

    operand_bytes: int
    result_bytes: int
    operand: int
    result: int
    arithmetic: int
    scale: str


#: cudaDataType: CUDA_R_32F 0, CUDA_R_16F 2, CUDA_R_8I 3, CUDA_R_32I 10, CUDA_R_16BF 14. cublasComputeType_t:
#: CUBLAS_COMPUTE_32F 68, CUBLAS_COMPUTE_32I 72.
GEMMS: Final = {
    "int8": _Gemm(1, 4, 3, 10, 72, "int32"),
    "bf16": _Gemm(2, 2, 14, 14, 68, "float32"),
    "fp16": _Gemm(2, 2, 2, 2, 68, "float32"),
}
_NORMAL, _TRANSPOSED, _DEFAULT_ALGORITHM = 0, 1, -1


class Machine(Protocol):
    """What a benchmark needs of a GPU."""

    device: Device
    engine: CudaEngine
    #: cupy, or what stands in for it.
    xp: Any

    def array(self, *shape: int) -> Any:
        """Return an uninitialised array of uint8 in device memory."""
        ...

    def put(self, array: Any, values: Bytes) -> None:
        """Copy values into a device array, and wait."""
        ...

    def get(self, array: Any) -> Bytes:
        """Copy a device array out, after all that its stream has before it."""
        ...

    def address(self, array: Any) -> int:
        """Return where an array is."""
        ...

    def pinned(self, *shape: int) -> Bytes:
        """Return page-locked host memory."""
        ...

    def free_bytes(self) -> int:
        """Return device memory that is free."""
        ...

    def release(self) -> None:
        """Give memory that no array uses back to the driver."""
        ...

    def gemm(self, kind: str, side: int) -> Callable[[], None]:
        """Return what enqueues the library's product of two square matrices of a kind in `GEMMS`.

        Raises
        ------
        ImportError, RuntimeError
            If the library is not there, or does not do that on this GPU.
        """
        ...


class CupyMachine:
    """The current GPU, through CuPy."""

    def __init__(self, engine: CudaEngine) -> None:
        import cupy  # there is one: the engine was loaded

        self.engine = engine
        self.device = engine.device
        self.xp: Any = cupy

    def array(self, *shape: int) -> Any:
        """Return an uninitialised array."""
        return self.xp.empty(shape, np.uint8)

    def put(self, array: Any, values: Bytes) -> None:
        """Copy values in."""
        array.set(values)
        self.xp.cuda.get_current_stream().synchronize()

    def get(self, array: Any) -> Bytes:
        """Copy values out."""
        return np.asarray(self.xp.asnumpy(array))

    def address(self, array: Any) -> int:
        """Return where an array is."""
        return int(array.data.ptr)

    def pinned(self, *shape: int) -> Bytes:
        """Return page-locked host memory."""
        size = int(np.prod(shape))
        return np.frombuffer(self.xp.cuda.alloc_pinned_memory(size), np.uint8, size).reshape(shape)

    def free_bytes(self) -> int:
        """Return device memory that is free."""
        return int(self.xp.cuda.runtime.memGetInfo()[0])

    def release(self) -> None:
        """Give CuPy's pools back."""
        self.xp.get_default_memory_pool().free_all_blocks()
        self.xp.get_default_pinned_memory_pool().free_all_blocks()

    def gemm(self, kind: str, side: int) -> Callable[[], None]:
        """Return a product by cuBLAS itself: CuPy's own `matmul` of integers does without it."""
        cublas: Any = importlib.import_module("cupy.cuda.cublas")
        handle = importlib.import_module("cupy.cuda.device").get_cublas_handle()
        types = GEMMS[kind]
        left, right = (self.array(side * side * types.operand_bytes) for _ in range(2))
        result = self.array(side * side * types.result_bytes)
        for operand in (left, right):
            operand.fill(0x3C)  # a plain number in each type
        scales = np.array([1, 0], types.scale)
        one, zero = int(scales.ctypes.data), int(scales.ctypes.data) + scales.itemsize

        def product() -> None:
            cublas.gemmEx(
                handle, _TRANSPOSED, _NORMAL, side, side, side, one, self.address(left), types.operand, side,
                self.address(right), types.operand, side, zero, self.address(result), types.result, side,
                types.arithmetic, _DEFAULT_ALGORITHM,
            )  # fmt: skip

        return product


def median_seconds(machine: Machine, action: Callable[[], None], runs: int, *, host: bool = False) -> float:
    """Return the median time of an action, by marks in the stream, or by the host's clock for what waits by itself."""
    device = machine.device
    action()  # compiles, and warms up
    times = []
    for _ in range(runs):
        if host:
            started = time.perf_counter()
            action()
            times.append(time.perf_counter() - started)
            continue
        stream = device.current_stream()
        start = device.record(stream)
        action()
        end = device.record(stream)
        device.synchronize(end)
        times.append(device.elapsed(start, end))
    return statistics.median(times)


def encode_product(k: int, m: int, layout: Layout) -> Product:
    """Return the product that makes all parity of the default code."""
    return Product(Codec(k, m, w=layout.w, layout=layout.name, engine="numpy").parity, layout)


def decode_product(k: int, m: int, layout: Layout, lost: Sequence[int]) -> tuple[Product, tuple[int, ...]]:
    """Return the product that makes lost shards, and the shards that it reads."""
    codec = Codec(k, m, w=layout.w, layout=layout.name, engine="numpy")
    plan = codec.plan([shard for shard in range(k + m) if shard not in set(lost)], lost)
    return Product(plan.matrix, layout), plan.sources


def wanted(product: Product, data: Bytes) -> Bytes:
    """Return what the oracle makes of (stripes, c, length)."""
    out = np.zeros((data.shape[0], product.matrix.shape[0], data.shape[2]), np.uint8)
    NumpyEngine().prepare(product)(Blocks.of_array(data), Blocks.of_array(out, writable=True))
    return out
