"""The simd engine at every vector width and instruction set that this CPU has makes the oracle's bytes."""

from functools import cache

import numpy as np
import pytest

from gfcode.engine.buffers import allocate
from gfcode.engine.protocol import AddingOperator, Blocks, Product
from gfcode.gf import GF
from gfcode.kernels.simd import engine as engine_module
from gfcode.kernels.simd.engine import SimdEngine
from gfcode.kernels.simd.target import host_variants
from gfcode.matrix.dense import Matrix
from gfcode.matrix.generator import parity_matrix
from gfcode.params import Layout
from tests.conformance.engines import expected, layout_id, placed, random_product, strips_around

VARIANTS = host_variants()
LAYOUTS = (
    Layout("words", 4),
    Layout("words", 8),
    Layout("words", 16),
    Layout("packets", 8),
    Layout("packets", 4),
    Layout("packets", 5),
    Layout("packets", 16),
    Layout("packets", 8, 256),
    Layout("packets", 3, 192),
)
layouts = pytest.mark.parametrize("layout", LAYOUTS, ids=layout_id)

pytestmark = pytest.mark.parametrize("target", VARIANTS)


@cache
def engine(target: str) -> SimdEngine:
    return SimdEngine(VARIANTS[target])


def run(target: str, product: Product, data: np.ndarray, shift: int = 0) -> np.ndarray:
    """Apply a product to blocks `shift` bytes off alignment; check that nothing beside the outputs is written."""
    chance = np.random.default_rng(1)
    stripes, _, length = data.shape
    inputs, _ = placed(chance, data, shift)
    shape = (stripes, product.matrix.shape[0], length)
    outputs, memory = placed(chance, chance.integers(0, 256, shape, np.uint8), 63 - shift)
    around = memory.copy()
    operator = engine(target).prepare(product)
    operator(Blocks.of_array(inputs), Blocks.of_array(outputs, writable=True))
    result = outputs.copy()
    outputs[...] = np.ndarray(shape, np.uint8, around, outputs.ctypes.data - memory.ctypes.data, outputs.strides)
    assert (memory == around).all(), "written outside the blocks"
    assert (inputs == data).all()
    return result


@layouts
def test_random_matrices_at_every_length(target: str, layout: Layout) -> None:
    chance = np.random.default_rng(3)
    for index, length in enumerate(strips_around(layout)):
        rows, columns = (1 + index % 6, 1 + index * 3 % 11)
        product = random_product(chance, layout, rows, columns)
        data = chance.integers(0, 256, (1 + index % 3, columns, length), np.uint8)
        assert (run(target, product, data, index * 5 % 64) == expected(product, data)).all(), (rows, columns, length)


@layouts
def test_rows_that_have_kernels_of_their_own(target: str, layout: Layout) -> None:
    """Sums, powers, and a last row that is the sum of the others and of some inputs."""
    field = GF(layout.w)
    chance = np.random.default_rng(4)
    for rows, columns in ((1, 2), (1, 5), (2, 3), (2, 4), (3, 8), (4, 7), (4, 10), (5, 6), (9, 4)):
        powers = field.pow(field.alpha, np.arange(rows)[:, None] * np.arange(columns)) if layout.w > 1 else None
        derived = chance.integers(0, field.order, (rows, columns))
        derived[-1] = np.bitwise_xor.reduce(derived[:-1], axis=0) ^ chance.integers(0, 2, columns)
        sums = chance.integers(0, 2, (rows, columns))
        mixed = chance.integers(0, field.order, (rows, columns))
        mixed[rows // 2] = 1
        ones = chance.integers(0, field.order, (rows, columns))
        ones[:, columns // 2] = 1
        ones[-1] = np.bitwise_xor.reduce(ones[:-1], axis=0) ^ np.arange(columns) % 2
        zero = np.zeros((rows, columns), np.int64)
        for values in (powers, derived, sums, mixed, ones, zero):
            if values is None:
                continue
            product = Product(Matrix(field, values), layout)
            for strips in (3, 8):
                data = chance.integers(0, 256, (2, columns, strips * max(layout.strip_bytes, 50)), np.uint8)
                assert (run(target, product, data, 7) == expected(product, data)).all()


@layouts
def test_many_blocks(target: str, layout: Layout) -> None:
    chance = np.random.default_rng(5)
    order = GF(layout.w).order
    for rows, columns in ((2, 60), (13, 20), (30, 3), (40, 52)):
        product = Product(Matrix(GF(layout.w), chance.integers(0, order, (rows, columns))), layout)
        data = chance.integers(0, 256, (1, columns, 5 * max(layout.strip_bytes, 130)), np.uint8)
        assert (run(target, product, data) == expected(product, data)).all()


@layouts
def test_outputs_that_bypass_the_caches(target: str, layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "_STREAM_STRIPE", 0)
    field = GF(layout.w)
    chance = np.random.default_rng(6)
    for rows, columns in ((1, 3), (2, 4), (4, 9), (6, 7), (2, 60)):
        random = random_product(chance, layout, rows, columns)
        powers = Product(Matrix(field, field.pow(field.alpha, np.arange(rows)[:, None] * np.arange(columns))), layout)
        values = random.matrix.values.astype(np.int64)
        values[-1] = np.bitwise_xor.reduce(values[:-1], axis=0) ^ chance.integers(0, 2, columns)
        products = [random, powers, Product(Matrix(field, values), layout)]
        if layout.name == "words" and (w := layout.w) > 4:
            products.append(Product(parity_matrix("fft", GF(w), columns, rows + 6), layout))
        for product in products:
            for strips in (1, 2, 5, 9):
                data = chance.integers(0, 256, (2, columns, strips * max(layout.strip_bytes, 66)), np.uint8)
                outputs = allocate(2, product.matrix.shape[0], data.shape[2])
                engine(target).prepare(product)(Blocks.of_array(data), Blocks.of_array(outputs, writable=True))
                assert (outputs == expected(product, data)).all()


@layouts
def test_adding_to_outputs(target: str, layout: Layout) -> None:
    field = GF(layout.w)
    chance = np.random.default_rng(10)
    for rows, columns in ((1, 1), (4, 1), (4, 6), (6, 5)):
        random = chance.integers(0, field.order, (rows, columns))
        first_ones, derived = random.copy(), random.copy()
        first_ones[0] = 1
        derived[-1] = np.bitwise_xor.reduce(derived[:-1], axis=0) ^ chance.integers(0, 2, columns)
        powers = field.pow(field.alpha, np.arange(2)[:, None] * np.arange(columns))
        for values in (random, first_ones, derived, powers):
            product = Product(Matrix(field, values), layout)
            operator = engine(target).prepare(product)
            assert isinstance(operator, AddingOperator)
            for length in (layout.strip_bytes, 23 * layout.strip_bytes, 128 * layout.strip_bytes):
                data, _ = placed(chance, chance.integers(0, 256, (2, columns, length), np.uint8), 3)
                outputs, memory = placed(chance, chance.integers(0, 256, (2, len(values), length), np.uint8), 5)
                before = memory.copy()
                if not operator.add(Blocks.of_array(data), Blocks.of_array(outputs, writable=True)):
                    assert layout.name == "packets"
                    assert layout.w > 8 or layout.packet_bytes != 64
                else:
                    outputs ^= expected(product, data)  # what was added, added again, is gone
                assert (memory == before).all()


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("columns", [3, 12, 20, 60])
def test_blocks_at_powers_of_two(target: str, columns: int, streaming: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole pieces and parts of them; random rows, powers, and a last row that is a sum of the others."""
    if streaming:
        monkeypatch.setattr(engine_module, "_STREAM_STRIPE", 0)
    chance = np.random.default_rng(8)
    field = GF(8)
    powers = field.pow(field.alpha, np.arange(4)[:, None] * np.arange(columns))
    random = chance.integers(0, 256, (4, columns))
    derived = random.copy()
    derived[-1] = np.bitwise_xor.reduce(derived[:-1], axis=0) ^ chance.integers(0, 2, columns)
    stride = 1 << 14
    memory = np.zeros((columns + 6) * stride, np.uint8)
    start = -memory.ctypes.data % stride
    blocks = memory[start : start + (columns + 4) * stride].reshape(columns + 4, stride)
    for layout in (Layout("packets", 8), Layout("words", 8)):
        for values in (powers, powers[:2], random, derived):
            product = Product(Matrix(field, values), layout)
            end = columns + len(values)
            for length in (4096, 8192, 4608, 9728):
                blocks[:] = chance.integers(0, 256, blocks.shape, np.uint8)
                before = blocks.copy()
                inputs = Blocks.of_array(blocks[:columns, :length])
                engine(target).prepare(product)(inputs, Blocks.of_array(blocks[columns:end, :length], writable=True))
                assert (blocks[columns:end, :length] == expected(product, before[None, :columns, :length])[0]).all()
                assert (blocks[:columns] == before[:columns]).all()
                assert (blocks[:, length:] == before[:, length:]).all()


@pytest.mark.parametrize(("w", "polynomial"), [(8, 0x165), (4, 0x19), (16, 0x1002D)])
def test_other_polynomials(target: str, w: int, polynomial: int) -> None:
    field = GF(w, polynomial)
    chance = np.random.default_rng(7)
    for layout in (Layout("words", w), Layout("packets", w)):
        powers = field.pow(field.alpha, np.arange(3)[:, None] * np.arange(5))
        for values in (chance.integers(0, field.order, (3, 5)), powers, powers[:2]):
            data = chance.integers(0, 256, (1, 5, 3 * max(layout.strip_bytes, 66)), np.uint8)
            product = Product(Matrix(field, values), layout)
            assert (run(target, product, data) == expected(product, data)).all()
