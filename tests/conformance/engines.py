"""What the conformance tests share: the usable engines, odd products, blocks at odd places."""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from gfcode.engine.protocol import Blocks, Engine, Product
from gfcode.engine.registry import get_engine, status
from gfcode.gf import GF
from gfcode.matrix.dense import Matrix
from gfcode.params import Layout

Bytes = npt.NDArray[np.uint8]

#: Engines that can run here and are not the oracle.
FAST = tuple(engine.name for engine in status() if engine.usable and engine.name != "numpy")
#: All engines that can run here.
USABLE = (*FAST, "numpy")

#: Every kind of layout: each w of `words`, and `packets` of the usual, the shortest and odd lengths, narrow and wide w.
LAYOUTS = (
    Layout("words", 4),
    Layout("words", 8),
    Layout("words", 16),
    Layout("words", 32),
    Layout("packets", 8),
    Layout("packets", 4),
    Layout("packets", 16),
    Layout("packets", 8, 8),
    Layout("packets", 8, 72),
    Layout("packets", 8, 264),
    Layout("packets", 1),
    Layout("packets", 3, 128),
    Layout("packets", 5, 1024),
    Layout("packets", 11),
    Layout("packets", 32, 16),
)

#: The layouts of which each engine, the oracle aside, runs every product.
PAIRS = tuple(
    (name, layout)
    for name in FAST
    for layout in LAYOUTS
    if get_engine(name).refuses(Product(Matrix(GF(layout.w), [[1]]), layout)) is None
)


def engine_id(pair: tuple[str, Layout]) -> str:
    """Name an engine and a layout in a test's id."""
    return f"{pair[0]}-{layout_id(pair[1])}"


def layout_id(layout: Layout) -> str:
    """Name a layout in a test's id."""
    return f"{layout.name}-w{layout.w}" + (f"-{layout.packet_bytes}" if layout.name == "packets" else "")


def strips_around(layout: Layout) -> Iterator[int]:
    """Yield block lengths from nothing to beyond any group of strips that a kernel takes at a time, and odd ones."""
    unit = layout.strip_bytes
    counts = [0, 1, 2, 3, 4, 5, 7, 8, 9, 13]
    if layout.name == "words":
        counts += [15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 191, 255, 256, 257, 300, 515]
    yield from (count * unit for count in counts)


def random_product(rng: np.random.Generator, layout: Layout, rows: int, columns: int) -> Product:
    """Make a product with a random matrix, in which zeros and ones are not rare."""
    field = GF(layout.w)
    values = rng.integers(0, field.order, (rows, columns), dtype=np.int64)
    special = rng.random((rows, columns))
    values[special < 0.15] = 0
    values[special > 0.85] = 1
    return Product(Matrix(field, values), layout)


@lru_cache
def oracle() -> Engine:
    """Return the engine that all others are held against."""
    return get_engine("numpy")


def expected(product: Product, data: Bytes) -> Bytes:
    """Apply a product with the oracle.

    Parameters
    ----------
    data : array of uint8, shape (stripes, columns, length)
    """
    result = np.empty((data.shape[0], product.matrix.shape[0], data.shape[2]), np.uint8)
    oracle().prepare(product)(Blocks.of_array(data), Blocks.of_array(result, writable=True))
    return result


def placed(rng: np.random.Generator, data: Bytes, shift: int) -> tuple[Bytes, Bytes]:
    """Copy blocks to a place `shift` bytes beyond a multiple of 64, with random bytes all round.

    Returns
    -------
    blocks : array of uint8 with the shape and bytes of `data`
    memory : array of uint8
        All of the memory in which they lie.
    """
    stripes, count, length = data.shape
    stride = length + 64 + shift
    memory = rng.integers(0, 256, stripes * count * stride + 192, dtype=np.uint8)
    start = -memory.__array_interface__["data"][0] % 64 + shift
    blocks = np.ndarray(data.shape, np.uint8, memory, start, (count * stride, stride, 1))
    blocks[...] = data
    return blocks, memory
