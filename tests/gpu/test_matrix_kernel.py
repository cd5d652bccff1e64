"""The matrix-product kernel, run by the host shim, against the oracle."""

import numpy as np
import pytest

from gfcode.engine.protocol import Product
from gfcode.kernels.cuda.operands import bit_rows
from gfcode.kernels.cuda.runners import MatrixRunner
from tests.gpu.harness import SLOW, Arena, Bench, Place, layout_of, oracle, random_matrix
from tests.gpu.shim import ShimDevice

ALIGNED, ODD, TABLE = Place(gap=256), Place(gap=3, offset=5), Place(gap=256, table=True)

# (device, layout, w, packet bytes, k, m, place). Together: every number of columns a lane can hold, each way to make up
# a register, one pass and slices over K, pieces of blocks, several groups of outputs, addresses of every kind.
CASES = [
    (90, "words", 8, 0, 1, 1, ALIGNED),
    (90, "words", 8, 0, 4, 2, ODD),
    (90, "words", 8, 0, 10, 4, ALIGNED),
    (90, "words", 8, 0, 10, 4, TABLE),
    (90, "words", 8, 0, 20, 5, ALIGNED),
    (90, "words", 8, 0, 28, 3, ALIGNED),
    (90, "words", 8, 0, 64, 9, ALIGNED),
    (90, "words", 8, 0, 30, 44, ALIGNED),  # more outputs than are summed at once
    (90, "words", 4, 0, 10, 4, ODD),
    (90, "words", 16, 0, 4, 2, ODD),
    (90, "words", 16, 0, 10, 4, ALIGNED),
    (90, "words", 16, 0, 30, 5, ALIGNED),
    (90, "packets", 8, 64, 4, 2, ALIGNED),
    (90, "packets", 8, 64, 10, 4, ODD),
    (90, "packets", 8, 8, 10, 4, ALIGNED),
    (90, "packets", 8, 24, 22, 1, ALIGNED),
    (90, "packets", 8, 64, 64, 6, TABLE),
    (90, "packets", 4, 64, 10, 4, ALIGNED),
    (90, "packets", 16, 64, 10, 4, ALIGNED),
    (100, "words", 8, 0, 10, 4, ALIGNED),
    (100, "words", 8, 0, 6, 2, ODD),
    (100, "words", 8, 0, 64, 5, ALIGNED),
    (100, "words", 16, 0, 5, 3, ALIGNED),
    (100, "packets", 8, 64, 20, 4, ALIGNED),
    (100, "packets", 4, 64, 9, 4, ALIGNED),
    (100, "packets", 16, 64, 13, 2, ALIGNED),
    (100, "packets", 16, 8, 13, 44, ODD),
    (75, "words", 8, 0, 30, 4, ALIGNED),
    (75, "packets", 8, 64, 26, 4, ODD),
]
if SLOW:
    CASES += [
        (device, layout, w, 0 if layout == "words" else 64, k, m, place)
        for device in (75, 90, 100)
        for layout in ("words", "packets")
        for w in (4, 8, 16)
        for k, m in ((3, 1), (7, 2), (10, 1), (12, 4), (15, 1), (20, 4), (24, 8), (50, 20))
        for place in (ALIGNED, ODD, TABLE)
        if w > 4 or k + m <= 16
    ]


def shapes(layout: str, w: int, packet_bytes: int, blocks: int) -> list[tuple[int, int]]:
    """Stripes and lengths: below, at and beyond tiles, and not a whole number of anything."""
    if layout == "packets":
        strip = w * packet_bytes
        few = [(3, strip), (2, 3 * strip)]
        return few if blocks > 40 else [*few, (1, 9 * strip)]
    unit = max(1, w // 8)
    lengths = (
        [unit, 16 * unit, 127 * unit, 130 * unit] if blocks > 40 else [unit, 15 * unit, 128 * unit, 257 * unit, 1000]
    )
    return [(1 + i % 3, length) for i, length in enumerate(lengths)]


@pytest.mark.parametrize(
    ("device", "layout", "w", "packet_bytes", "k", "m", "place"), CASES, ids=lambda value: str(value).replace(" ", "")
)
def test_products_equal_the_oracle(
    benches: dict[int, Bench], device: int, layout: str, w: int, packet_bytes: int, k: int, m: int, place: Place
) -> None:
    rng = np.random.default_rng([device, w, k, m])
    product = Product(random_matrix(rng, w, m, k), layout_of(layout, w, packet_bytes))
    benches[device].check(product, "matrix", shapes(layout, w, packet_bytes, max(k, m)), place, rng)


def test_order_of_lanes_does_not_matter(benches: dict[int, Bench]) -> None:
    bench = benches[90]
    rng = np.random.default_rng(3)
    product = Product(random_matrix(rng, 8, 4, 10), layout_of("words", 8))
    kernels = list(bench.engine._context._kernels.values())
    for kernel in kernels:
        kernel.set("shim_reverse", 1)  # type: ignore[attr-defined] # kernels of the shim
    try:
        bench.check(product, "matrix", [(2, 300)], ALIGNED, rng)
    finally:
        for kernel in kernels:
            kernel.set("shim_reverse", 0)  # type: ignore[attr-defined] # kernels of the shim


@pytest.mark.parametrize("device", [90, 100])
@pytest.mark.parametrize("k", [7, 12, 64])
def test_largest_counts(benches: dict[int, Bench], device: int, k: int) -> None:
    """Bit matrices of ones over data of ones: the largest sums that MMA can meet, which no field's matrix gives."""
    bench = benches[device]
    layout = layout_of("words", 8)
    bits = np.ones((1, 4 * 8, k * 8), np.uint8)
    source, target = Arena(1, k, 130, ALIGNED), Arena(1, 4, 130, ALIGNED)
    source.data[:] = 255
    MatrixRunner(bench.engine._context, layout, bits).enqueue(source.blocks, target.blocks, 0)
    bench.device.finish(0)
    assert (target.data == 0).all()  # 8 · k ones are even
    source.data[:, 0] = 1  # one bit in place of eight: odd
    MatrixRunner(bench.engine._context, layout, bits).enqueue(source.blocks, target.blocks, 0)
    bench.device.finish(0)
    assert (target.data == 255).all()


@pytest.mark.parametrize(("device", "layout", "w"), [(90, "packets", 8), (100, "words", 8), (90, "words", 16)])
def test_grouped_batches_of_mixed_losses(benches: dict[int, Bench], device: int, layout: str, w: int) -> None:
    """Each stripe lost other shards: one launch rebuilds all, in place, reading only survivors."""
    bench = benches[device]
    rng = np.random.default_rng(w)
    k, n, lost_count, stripes = 6, 9, 3, 11
    shape = layout_of(layout, w)
    length = 3 * shape.strip_bytes if layout == "packets" else 204
    matrices, sources, targets = [], [], []
    for _ in range(5):
        lost = np.sort(rng.choice(n, lost_count, replace=False))
        matrices.append(random_matrix(rng, w, lost_count, k))
        targets.append(lost)
        sources.append(np.setdiff1d(np.arange(n), lost))
    operator = bench.engine.prepare_grouped(matrices, shape, np.array(sources), np.array(targets))
    which = rng.integers(0, len(matrices), stripes)
    arena = Arena(stripes, n, length, ALIGNED)
    arena.data[:] = rng.integers(0, 256, arena.data.shape)
    wanted = arena.data.copy()
    for stripe, matrix in enumerate(which):
        product = Product(matrices[matrix], shape)
        wanted[stripe, targets[matrix]] = oracle(product, wanted[stripe][sources[matrix]][None])[0]
    operator.apply_device(arena.blocks, arena.blocks, which, 0)
    bench.device.finish(0)
    assert np.array_equal(arena.data, wanted)
    assert arena.intact()


def test_zero_blocks_of_a_matrix_are_skipped(benches: dict[int, Bench]) -> None:
    """Two local groups: half of the products of slices by groups meet zeros, and are not made."""
    bench = benches[90]
    rng = np.random.default_rng(8)
    values = np.zeros((8, 56), np.uint8)
    values[:4, :28] = rng.integers(1, 256, (4, 28))
    values[4:, 28:] = rng.integers(1, 256, (4, 28))
    matrix = random_matrix(rng, 8, 8, 56)
    counts = []
    for used in (matrix, type(matrix)(matrix.field, values)):
        before = _products(bench.device)
        bench.check(Product(used, layout_of("words", 8)), "matrix", [(1, 256)], ALIGNED, rng)
        counts.append(_products(bench.device) - before)
    assert counts[1] * 2 == counts[0]


def _products(device: ShimDevice) -> int:
    return sum(kernel.products() for kernel in device.kernels)


def test_bit_rows_of_nibbles_double_the_squares() -> None:
    bits = np.eye(4, dtype=np.uint8)
    bits[0, 3] = 1
    rows = bit_rows(bits, 4)
    assert rows.tolist() == [[0b1001], [0b10], [0b100], [0b1000], [0b10010000], [0b100000], [0b1000000], [0b10000000]]
