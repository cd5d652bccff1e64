"""Every usable engine makes the oracle's bytes: all layouts, lengths, alignments, batches, odd matrices."""

import threading

import numpy as np
import pytest

from gfcode.engine.protocol import Blocks, Engine, Product
from gfcode.engine.registry import get_engine
from gfcode.errors import BlockError, EngineUnavailableError
from gfcode.gf import GF
from gfcode.matrix.dense import Matrix
from gfcode.params import Layout
from tests.conformance.engines import (
    FAST,
    LAYOUTS,
    PAIRS,
    USABLE,
    engine_id,
    expected,
    layout_id,
    placed,
    random_product,
    strips_around,
)

pairs = pytest.mark.parametrize(("name", "layout"), PAIRS, ids=[engine_id(pair) for pair in PAIRS])
fast = pytest.mark.parametrize("name", FAST)
usable = pytest.mark.parametrize("name", USABLE)


def engine_for(name: str, product: Product) -> Engine:
    engine = get_engine(name)
    if reason := engine.refuses(product):
        pytest.skip(f"engine {name!r} refuses this product: {reason}")
    return engine


@fast
def test_what_an_engine_refuses_it_does_not_prepare(name: str) -> None:
    engine = get_engine(name)
    for layout in LAYOUTS:
        product = Product(Matrix(GF(layout.w), [[1]]), layout)
        if reason := engine.refuses(product):
            assert reason == reason.strip()
            assert "\n" not in reason
            with pytest.raises(EngineUnavailableError):
                engine.prepare(product)
        else:
            engine.prepare(product)


@pairs
def test_every_length(name: str, layout: Layout) -> None:
    rng = np.random.default_rng(1)
    product = random_product(rng, layout, 4, 7)
    operator = engine_for(name, product).prepare(product)
    for length in strips_around(layout):
        data = rng.integers(0, 256, (1, 7, length), dtype=np.uint8)
        before = data.copy()
        result = np.full((1, 4, length), 0xA5, np.uint8)
        operator(Blocks.of_array(data), Blocks.of_array(result, writable=True))
        assert (result == expected(product, data)).all(), length
        assert (data == before).all(), length


@pairs
def test_every_alignment_writes_nothing_else(name: str, layout: Layout) -> None:
    rng = np.random.default_rng(2)
    product = random_product(rng, layout, 3, 5)
    operator = engine_for(name, product).prepare(product)
    length = 5 * layout.strip_bytes if layout.name == "packets" else 205 * layout.strip_bytes
    data = rng.integers(0, 256, (2, 5, length), dtype=np.uint8)
    wanted = expected(product, data)
    for shift in (0, 1, 2, 3, 5, 8, 13, 16, 31, 32, 33, 48, 63):
        inputs, _ = placed(rng, data, shift)
        outputs, memory = placed(rng, np.zeros_like(wanted), (shift * 7) % 64)
        untouched = memory.copy()
        operator(Blocks.of_array(inputs), Blocks.of_array(outputs, writable=True))
        assert (outputs == wanted).all(), shift
        outputs[...] = 0
        assert (memory == untouched).all(), shift


@pairs
@pytest.mark.parametrize(
    ("rows", "columns"), [(1, 1), (1, 10), (2, 3), (4, 10), (5, 2), (8, 8), (10, 1), (13, 4), (17, 20), (33, 65)]
)
def test_every_shape_of_matrix(name: str, layout: Layout, rows: int, columns: int) -> None:
    rng = np.random.default_rng(rows * 100 + columns)
    product = random_product(rng, layout, rows, columns)
    operator = engine_for(name, product).prepare(product)
    length = (1 if columns > 20 else 4) * layout.strip_bytes * (1 if layout.name == "packets" else 40)
    data = rng.integers(0, 256, (1, columns, length), dtype=np.uint8)
    result = np.full((1, rows, length), 0xA5, np.uint8)
    operator(Blocks.of_array(data), Blocks.of_array(result, writable=True))
    assert (result == expected(product, data)).all()


@fast
@pytest.mark.parametrize("layout", [Layout("packets", 8), Layout("words", 8)], ids=layout_id)
@pytest.mark.parametrize(
    "values",
    [
        np.zeros((3, 4)),
        np.ones((1, 6)),
        np.eye(5),
        np.eye(5)[::-1],
        np.array([[1, 1, 1], [1, 2, 4]]),
        np.array([[1, 1, 1], [1, 2, 4], [1, 4, 16]]),
        np.array([[0, 0, 0], [1, 0, 3], [0, 255, 0]]),
        np.full((2, 9), 255),
    ],
    ids=["zero", "xor", "identity", "reversal", "pq", "powers", "sparse", "dense"],
)
def test_special_matrices(name: str, layout: Layout, values: np.ndarray) -> None:
    product = Product(Matrix(GF(layout.w), values.astype(np.int64)), layout)
    operator = engine_for(name, product).prepare(product)
    rng = np.random.default_rng(3)
    for length in (layout.strip_bytes, 3 * layout.strip_bytes, 16 * 512, 37 * 512):
        data = rng.integers(0, 256, (2, values.shape[1], length), dtype=np.uint8)
        result = np.full((2, values.shape[0], length), 0xA5, np.uint8)
        operator(Blocks.of_array(data), Blocks.of_array(result, writable=True))
        assert (result == expected(product, data)).all(), length


@fast
@pytest.mark.parametrize("layout", [Layout("packets", 8), Layout("words", 8)], ids=layout_id)
def test_every_constant(name: str, layout: Layout) -> None:
    rng = np.random.default_rng(4)
    constants = np.arange(256).reshape(16, 16)
    product = Product(Matrix(GF(8), constants), layout)
    operator = engine_for(name, product).prepare(product)
    data = rng.integers(0, 256, (1, 16, 1024), dtype=np.uint8)
    result = np.empty((1, 16, 1024), np.uint8)
    operator(Blocks.of_array(data), Blocks.of_array(result, writable=True))
    assert (result == expected(product, data)).all()


@fast
@pytest.mark.parametrize("layout", [Layout("packets", 8), Layout("words", 8)], ids=layout_id)
@pytest.mark.parametrize("polynomial", [0x165])
def test_other_polynomials(name: str, layout: Layout, polynomial: int) -> None:
    rng = np.random.default_rng(polynomial)
    product = Product(Matrix(GF(8, polynomial), rng.integers(0, 256, (4, 6))), layout)
    operator = engine_for(name, product).prepare(product)
    data = rng.integers(0, 256, (1, 6, 2560), dtype=np.uint8)
    result = np.empty((1, 4, 2560), np.uint8)
    operator(Blocks.of_array(data), Blocks.of_array(result, writable=True))
    assert (result == expected(product, data)).all()


@fast
@pytest.mark.parametrize("layout", [Layout("packets", 8), Layout("words", 8), Layout("words", 16)], ids=layout_id)
def test_long_blocks_at_a_power_of_two_stride(name: str, layout: Layout) -> None:
    rng = np.random.default_rng(5)
    product = random_product(rng, layout, 4, 10)
    operator = engine_for(name, product).prepare(product)
    data = rng.integers(0, 256, (1, 10, 1 << 20), dtype=np.uint8)
    result = np.empty((1, 4, 1 << 20), np.uint8)
    operator(Blocks.of_array(data), Blocks.of_array(result, writable=True))
    assert (result == expected(product, data)).all()


@pairs
def test_a_batch_whose_blocks_lie_anywhere(name: str, layout: Layout) -> None:
    rng = np.random.default_rng(6)
    product = random_product(rng, layout, 3, 4)
    operator = engine_for(name, product).prepare(product)
    length = layout.strip_bytes * (6 if layout.name == "packets" else 150)
    pool = rng.integers(0, 256, (30, length + 7), dtype=np.uint8)[:, 3:-4]
    every = Blocks.of_array(pool).table[0]
    chosen = rng.integers(0, 30, (9, 4))  # the same block may stand in several places
    result = np.full((27, length), 0xA5, np.uint8)
    order = rng.permutation(27).reshape(9, 3)
    outputs = Blocks.of_array(result, writable=True).table[0]
    operator(Blocks(every[chosen], length, pool), Blocks(outputs[order], length, result))
    assert (result[order] == expected(product, pool[chosen])).all()


@usable
@pytest.mark.parametrize("layout", [Layout("packets", 8), Layout("words", 8)], ids=layout_id)
def test_no_stripes(name: str, layout: Layout) -> None:
    product = random_product(np.random.default_rng(7), layout, 2, 3)
    operator = engine_for(name, product).prepare(product)
    operator(Blocks.of_array(np.zeros((0, 3, 512), np.uint8)), Blocks.of_array(np.zeros((0, 2, 512), np.uint8)))


@usable
@pytest.mark.parametrize("layout", [Layout("packets", 8), Layout("words", 16)], ids=layout_id)
def test_blocks_that_do_not_fit_are_refused(name: str, layout: Layout) -> None:
    product = random_product(np.random.default_rng(8), layout, 2, 3)
    operator = engine_for(name, product).prepare(product)

    def blocks(stripes: int, count: int, length: int) -> Blocks:
        return Blocks.of_array(np.zeros((stripes, count, length), np.uint8), writable=True)

    unit = 4 * layout.strip_bytes
    for inputs, outputs in [
        (blocks(1, 4, unit), blocks(1, 2, unit)),
        (blocks(1, 2, unit), blocks(1, 2, unit)),
        (blocks(1, 3, unit), blocks(1, 3, unit)),
        (blocks(1, 3, unit), blocks(1, 1, unit)),
        (blocks(2, 3, unit), blocks(1, 2, unit)),
        (blocks(1, 3, unit), blocks(2, 2, unit)),
        (blocks(1, 3, unit), blocks(1, 2, unit - layout.strip_bytes)),
        (blocks(1, 3, unit - 1), blocks(1, 2, unit - 1)),
    ]:
        with pytest.raises(BlockError):
            operator(inputs, outputs)


@usable
@pytest.mark.parametrize("layout", [Layout("packets", 8), Layout("words", 8)], ids=layout_id)
def test_one_operator_in_eight_threads(name: str, layout: Layout) -> None:
    rng = np.random.default_rng(9)
    product = random_product(rng, layout, 4, 6)
    operator = engine_for(name, product).prepare(product)
    data = rng.integers(0, 256, (8, 6, 8192), dtype=np.uint8)
    result = np.zeros((8, 4, 8192), np.uint8)
    errors: list[BaseException] = []

    def work(i: int) -> None:
        try:
            for _ in range(3 if name == "numpy" else 50):
                result[i] = 0
                operator(Blocks.of_array(data[i]), Blocks.of_array(result[i], writable=True))
        except BaseException as error:  # noqa: BLE001 - reported by the test's own thread
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert (result == expected(product, data)).all()
