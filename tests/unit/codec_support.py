"""What the codec's tests share: an engine that records, shards with known bytes, every kind of buffer."""

import array
import ctypes
import mmap
from collections.abc import Callable
from multiprocessing import shared_memory
from typing import Any

import numpy as np
import numpy.typing as npt

from gfcode.codec import Codec
from gfcode.engine.naive import NumpyEngine
from gfcode.engine.protocol import Blocks, Operator, Product

Bytes = npt.NDArray[np.uint8]


class RecordingEngine:
    """The oracle, noting which products it was given and which addresses it was called on."""

    name = "recording"

    def __init__(self) -> None:
        self.products: list[Product] = []
        self.calls: list[tuple[list[list[int]], list[list[int]]]] = []

    def refuses(self, product: Product) -> str | None:
        return NumpyEngine().refuses(product)

    def prepare(self, product: Product) -> Operator:
        self.products.append(product)
        operator = NumpyEngine().prepare(product)

        def record(inputs: Blocks, outputs: Blocks) -> None:
            self.calls.append((inputs.table.tolist(), outputs.table.tolist()))
            operator(inputs, outputs)

        return record


def address(array: Bytes) -> int:
    number: int = array.__array_interface__["data"][0]
    return number


def random_data(codec: Codec, strips: int = 2, stripes: int | None = None, seed: int = 0) -> Bytes:
    shape = (codec.k, strips * codec.block_multiple)
    if stripes is not None:
        shape = (stripes, *shape)  # type: ignore[assignment]
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def all_shards(codec: Codec, data: Bytes) -> dict[int, Bytes]:
    """Return every shard of data of shape (k, length) or (stripes, k, length)."""
    parity = codec.encode(data)
    blocks = np.concatenate([data, parity], axis=-2)
    return {i: np.ascontiguousarray(blocks[..., i, :]) for i in range(codec.n)}


def _anonymous_map(content: bytes) -> mmap.mmap:
    memory = mmap.mmap(-1, len(content))
    memory[:] = content
    return memory


def _shared(content: bytes) -> memoryview:
    memory = shared_memory.SharedMemory(create=True, size=len(content))
    memory.unlink()
    _kept.append(memory)
    assert memory.buf is not None
    view = memory.buf[: len(content)]
    view[:] = content
    return view


_kept: list[shared_memory.SharedMemory] = []

#: Makers of every kind of buffer from bytes, and whether it can be written.
BUFFERS: dict[str, tuple[Callable[[bytes], Any], bool]] = {
    "bytes": (bytes, False),
    "bytearray": (bytearray, True),
    "memoryview": (lambda content: memoryview(bytearray(content)), True),
    "read-only memoryview": (memoryview, False),
    "array": (lambda content: array.array("B", content), True),
    "array of words": (lambda content: array.array("I", content), True),
    "ctypes": (lambda content: (ctypes.c_uint8 * len(content)).from_buffer_copy(content), True),
    "mmap": (_anonymous_map, True),
    "shared memory": (_shared, True),
    "ndarray": (lambda content: np.frombuffer(content, np.uint8).copy(), True),
    "read-only ndarray": (lambda content: np.frombuffer(content, np.uint8), False),
    "unaligned ndarray": (lambda content: np.frombuffer(b"123" + content, np.uint8)[3:], False),
}
