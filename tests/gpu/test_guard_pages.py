"""Blocks between pages that may not be touched: kernels read and write nothing beyond them, whatever the length."""

import ctypes
import mmap

import numpy as np
import pytest

from gfcode.engine.protocol import Product
from gfcode.gf import GF
from gfcode.kernels.cuda.blocks import DeviceBlocks
from gfcode.kernels.cuda.engine import KernelName
from gfcode.matrix.generator import parity_matrix
from tests.gpu.harness import Bench, Bytes, layout_of, oracle

PAGE = mmap.PAGESIZE


def guarded(shape: tuple[int, ...], *, at_end: bool) -> tuple[Bytes, mmap.mmap]:
    """Memory whose last byte is the last before a forbidden page, or whose first byte is the first behind one."""
    size = int(np.prod(shape))
    whole = -(-size // PAGE) * PAGE
    memory = mmap.mmap(-1, whole + 2 * PAGE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    library = ctypes.CDLL(None, use_errno=True)
    for page in (base, base + PAGE + whole):
        assert library.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(PAGE), 0) == 0
    start = PAGE + (whole - size if at_end else 0)
    return np.frombuffer(memory, np.uint8, size, start).reshape(shape), memory


@pytest.mark.parametrize("at_end", [True, False])
@pytest.mark.parametrize(
    ("device", "kernel", "layout", "w", "k"),
    [
        (90, "matrix", "words", 8, 10),
        (90, "matrix", "words", 8, 33),
        (90, "matrix", "words", 16, 4),
        (90, "matrix", "packets", 8, 10),
        (90, "matrix", "packets", 4, 10),
        (100, "matrix", "words", 8, 30),
        (90, "horner", "words", 8, 5),
        (90, "horner", "words", 16, 3),
        (90, "horner", "packets", 8, 5),
    ],
)
def test_nothing_beyond_the_blocks_is_touched(
    benches: dict[int, Bench], device: int, kernel: KernelName, layout: str, w: int, k: int, *, at_end: bool
) -> None:
    bench = benches[device]
    rng = np.random.default_rng(k)
    m = 2
    product = Product(parity_matrix("powers", GF(w), k, m), layout_of(layout, w))
    operator = bench.engine.prepare(product, kernel)
    lengths = [1, 3, 16, 17, 33, 127, 129, 255, 513] if layout == "words" else [1, 3, 8]
    unit = product.layout.strip_bytes
    for length in (length * unit for length in lengths):
        data, _keep = guarded((2, k, length), at_end=at_end)
        out, _keep_too = guarded((2, m, length), at_end=at_end)
        data[:] = rng.integers(0, 256, data.shape)
        sources, targets = (
            DeviceBlocks(int(a.ctypes.data), (a.strides[0], a.strides[1]), (2, a.shape[1], length), a)
            for a in (data, out)
        )
        operator.apply_device(sources, targets, 0)
        bench.device.finish(0)
        assert np.array_equal(out, oracle(product, data))
