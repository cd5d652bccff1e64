"""Products on device memory against the oracle, with guards around every output."""

import os
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from gfcode.engine.naive import NumpyEngine
from gfcode.engine.protocol import Blocks, Product
from gfcode.gf import GF
from gfcode.kernels.cuda.blocks import DeviceBlocks
from gfcode.kernels.cuda.engine import CudaEngine, KernelName
from gfcode.matrix.dense import Matrix
from gfcode.params import Layout
from tests.gpu.shim import ShimDevice

SLOW: Final = bool(os.environ.get("GFCODE_SLOW"))
GUARD: Final = 0xA5

Bytes = npt.NDArray[np.uint8]


def oracle(product: Product, data: Bytes) -> Bytes:
    """Return what the outputs must be; data has shape (stripes, c, length)."""
    wanted = np.zeros((data.shape[0], product.matrix.shape[0], data.shape[2]), np.uint8)
    NumpyEngine().prepare(product)(Blocks.of_array(data), Blocks.of_array(wanted, writable=True))
    return wanted


def layout_of(name: str, w: int, packet_bytes: int = 64) -> Layout:
    """Return a layout by name."""
    return Layout("packets", w, packet_bytes) if name == "packets" else Layout("words", w)


def random_matrix(rng: np.random.Generator, w: int, rows: int, columns: int) -> Matrix:
    """Return a matrix with zeros, ones and a row of zeros among its elements."""
    values = rng.integers(0, 1 << w, (rows, columns))
    values[rng.random(values.shape) < 0.15] = 0
    values[rng.random(values.shape) < 0.1] = 1
    if rows > 2:
        values[rng.integers(rows)] = 0
    field = GF(w)
    return Matrix(field, values.astype(field.dtype))


def random_bytes(*shape: int) -> Bytes:
    """Return the random bytes of a shape, the same every time."""
    return np.random.default_rng(shape).integers(0, 256, shape, dtype=np.uint8)


#: A product for tests of what is around kernels.
WORDS: Final = layout_of("words", 8)
PRODUCT: Final = Product(random_matrix(np.random.default_rng(11), 8, 3, 5), WORDS)


class DlpackOnly:
    """An array that speaks DLPack and nothing else."""

    def __init__(self, array: Bytes, kind: int = 2) -> None:
        self.array, self.kind = array, kind

    def __dlpack__(self, **_: object) -> object:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self.kind, 0)


@dataclass(frozen=True)
class Place:
    """How blocks lie in memory: `gap` bytes behind each, `offset` from a multiple of 256, by strides or by table."""

    gap: int = 0
    offset: int = 0
    table: bool = False


class Arena:
    """Blocks in guarded memory."""

    def __init__(self, stripes: int, count: int, length: int, place: Place) -> None:
        pitch = length + place.gap
        size = stripes * count * pitch
        self._raw = np.full(size + 1024, GUARD, np.uint8)
        start = -self._raw.ctypes.data % 256 + 256 + place.offset
        self._whole = self._raw[start : start + size].reshape(stripes, count, pitch)
        self._start, self._size = start, size
        self.data = self._whole[:, :, :length]
        self.blocks = DeviceBlocks(
            int(self._whole.ctypes.data), (count * pitch, pitch), (stripes, count, length), self._raw
        )

    def intact(self) -> bool:
        """Tell whether nothing was written outside the blocks."""
        gaps = (self._whole[:, :, self.data.shape[2] :] == GUARD).all()
        edges = (self._raw[: self._start] == GUARD).all() and (self._raw[self._start + self._size :] == GUARD).all()
        return bool(gaps and edges)


@dataclass(frozen=True)
class Bench:
    """A device and its engine."""

    device: ShimDevice
    engine: CudaEngine

    def check(
        self,
        product: Product,
        kernel: KernelName,
        shapes: list[tuple[int, int]],
        place: Place,
        rng: np.random.Generator,
    ) -> None:
        """Run a product on blocks of each (stripes, length), and compare with the oracle."""
        rows, columns = product.matrix.shape
        operator = self.engine.prepare(product, kernel)
        for stripes, length in shapes:
            source, target = Arena(stripes, columns, length, place), Arena(stripes, rows, length, place)
            source.data[:] = rng.integers(0, 256, source.data.shape)
            inputs, outputs = source.blocks, target.blocks
            wanted = oracle(product, np.ascontiguousarray(source.data))
            if place.table:  # blocks of a stripe in another order, and the inputs of stripe s those of stripe s
                order = np.stack([rng.permutation(columns) for _ in range(stripes)])
                inputs = inputs.gather(order)
                wanted = oracle(product, np.take_along_axis(source.data, order[:, :, None], axis=1))
            operator.apply_device(inputs, outputs, 0)
            self.device.finish(0)
            label = f"{product.layout} {product.matrix.shape} {kernel} stripes {stripes} length {length} {place}"
            assert np.array_equal(target.data, wanted), label
            assert target.intact(), label
