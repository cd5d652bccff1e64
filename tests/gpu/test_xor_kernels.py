"""The XOR kernels, generated for a matrix or for geometric rows, run by the host shim, against the oracle."""

import numpy as np
import pytest

from gfcode.engine.protocol import Product
from gfcode.errors import BlockError, EngineUnavailableError
from gfcode.gf import GF
from gfcode.kernels.cuda.engine import KernelName
from gfcode.kernels.cuda.launch import Tuning
from gfcode.kernels.cuda.runners import ProgramRunner, is_geometric
from gfcode.matrix.bitmatrix import expand
from gfcode.matrix.dense import Matrix
from gfcode.matrix.generator import parity_matrix
from gfcode.xor.lower import lower
from tests.gpu.harness import Arena, Bench, Place, layout_of, oracle, random_matrix

ALIGNED, ODD, TABLE = Place(gap=256), Place(gap=3, offset=5), Place(gap=256, table=True)

CASES: list[tuple[KernelName, str, int, int, int, int, Place]] = [
    ("program", "packets", 8, 64, 5, 2, ALIGNED),
    ("program", "packets", 8, 64, 10, 3, ALIGNED),
    ("program", "packets", 8, 8, 4, 2, ALIGNED),
    ("program", "packets", 8, 24, 4, 2, ODD),
    ("program", "packets", 8, 64, 3, 2, Place(gap=4, offset=4)),
    ("program", "packets", 8, 64, 3, 2, Place(gap=8, offset=8)),
    ("program", "packets", 4, 64, 6, 3, TABLE),
    ("program", "packets", 16, 64, 4, 2, ALIGNED),
    ("program", "words", 8, 0, 5, 2, ALIGNED),
    ("program", "words", 8, 0, 4, 3, ODD),
    ("program", "words", 4, 0, 5, 3, ALIGNED),
    ("program", "words", 16, 0, 3, 2, TABLE),
    ("horner", "packets", 8, 64, 10, 4, ALIGNED),
    ("horner", "packets", 8, 64, 3, 2, ODD),
    ("horner", "packets", 4, 64, 9, 2, ALIGNED),
    ("horner", "packets", 16, 64, 6, 3, TABLE),
    ("horner", "words", 8, 0, 10, 4, ALIGNED),
    ("horner", "words", 8, 0, 5, 1, ODD),
    ("horner", "words", 4, 0, 8, 2, ODD),
    ("horner", "words", 16, 0, 7, 2, ALIGNED),
]


def shapes(layout: str, w: int, packet_bytes: int) -> list[tuple[int, int]]:
    if layout == "packets":
        strip = w * packet_bytes
        return [(3, strip), (2, 3 * strip), (1, 19 * strip)]
    unit = max(1, w // 8)
    return [(3, unit), (1, 17 * unit), (2, 512 * unit), (1, 1024 * unit), (2, 1030 * unit), (1, 2600)]


@pytest.mark.parametrize(
    ("kernel", "layout", "w", "packet_bytes", "k", "m", "place"), CASES, ids=lambda value: str(value).replace(" ", "")
)
def test_products_equal_the_oracle(
    benches: dict[int, Bench], kernel: KernelName, layout: str, w: int, packet_bytes: int, k: int, m: int, place: Place
) -> None:
    rng = np.random.default_rng([w, k, m])
    matrix = parity_matrix("powers", GF(w), k, m) if kernel == "horner" else random_matrix(rng, w, m, k)
    product = Product(matrix, layout_of(layout, w, packet_bytes))
    benches[90].check(product, kernel, shapes(layout, w, packet_bytes), place, rng)


@pytest.mark.parametrize("k", [2, 3, 4, 7])
def test_one_horner_kernel_serves_every_k(benches: dict[int, Bench], k: int) -> None:
    bench = benches[90]
    rng = np.random.default_rng(k)
    bench.check(
        Product(parity_matrix("powers", GF(8), 10, 4), layout_of("words", 8)), "horner", [(1, 40)], ALIGNED, rng
    )
    compiled = len(bench.device.compiled)
    product = Product(parity_matrix("powers", GF(8), k, 4), layout_of("words", 8))
    bench.check(product, "horner", [(2, 1100)], ALIGNED, rng)
    assert len(bench.device.compiled) == compiled


def test_vectors_of_every_width(benches: dict[int, Bench]) -> None:
    bench = benches[90]
    rng = np.random.default_rng(2)
    layout, matrix = layout_of("packets", 8), random_matrix(rng, 8, 2, 3)
    runner = ProgramRunner(bench.engine._context, layout, expand(matrix))
    for vector in (1, 2, 4):
        source, target = Arena(2, 3, 512 * 5, ALIGNED), Arena(2, 2, 512 * 5, ALIGNED)
        source.data[:] = rng.integers(0, 256, source.data.shape)
        runner.enqueue(source.blocks, target.blocks, 0, tuning=Tuning(vector=vector))
        bench.device.finish(0)
        assert bench.device.launches[-1][0].build.define("VECTOR") == vector
        assert np.array_equal(target.data, oracle(Product(matrix, layout), np.ascontiguousarray(source.data)))


def test_any_program_can_be_compiled(benches: dict[int, Bench]) -> None:
    """A program that comes from elsewhere, with copies and zeros among its outputs, in whatever order it reads."""
    bench = benches[90]
    rng = np.random.default_rng(4)
    layout = layout_of("packets", 4)
    values = np.array([[1, 0, 0], [0, 0, 0], [3, 7, 1], [0, 1, 0]], np.uint8)
    matrix = Matrix(GF(4), values)
    bits = expand(matrix)
    runner = ProgramRunner(bench.engine._context, layout, bits, lower(bits))
    source, target = Arena(1, 3, 256 * 9, ALIGNED), Arena(1, 4, 256 * 9, ALIGNED)
    source.data[:] = rng.integers(0, 256, source.data.shape)
    runner.enqueue(source.blocks, target.blocks, 0)
    bench.device.finish(0)
    assert np.array_equal(target.data, oracle(Product(matrix, layout), np.ascontiguousarray(source.data)))


def test_geometric_rows_are_recognised() -> None:
    field = GF(8)
    powers = parity_matrix("powers", field, 10, 4)
    assert is_geometric(powers)
    assert is_geometric(Matrix(field, [[1, 1, 1]]))
    assert not is_geometric(parity_matrix("cauchy", field, 10, 4))
    spoiled = powers.values.copy()
    spoiled[3, 9] ^= 1
    assert not is_geometric(Matrix(field, spoiled))
    assert not is_geometric(Matrix(field, [[1]]))


def test_what_does_not_fit_is_refused_with_its_reason(benches: dict[int, Bench]) -> None:
    engine = benches[90].engine
    rng = np.random.default_rng(5)
    wide = Product(random_matrix(rng, 8, 30, 40), layout_of("packets", 8))
    with pytest.raises(
        EngineUnavailableError, match=r"for 240 planes of output is too large .* use the matrix-product"
    ):
        engine.prepare(wide, "program")
    long = Product(random_matrix(rng, 8, 20, 50), layout_of("packets", 8))
    with pytest.raises(EngineUnavailableError, match=r"of \d+ instructions and \d+ words a lane is too large"):
        engine.prepare(long, "program")
    with pytest.raises(EngineUnavailableError, match=r"Horner's rule needs rows that are 1, q, q²"):
        engine.prepare(wide, "horner")
    tall = Product(parity_matrix("vandermonde", GF(16), 2, 12), layout_of("words", 16))
    rows = np.stack([np.ones(12, np.uint16), np.arange(1, 13, dtype=np.uint16)], axis=1)
    with pytest.raises(EngineUnavailableError, match=r"Horner's rule for 12 rows needs \d+ words a lane"):
        engine.prepare(Product(Matrix(GF(16), rows), tall.layout), "horner")
    assert engine.prepare(Product(Matrix(GF(16), rows), tall.layout)).kernel == "matrix"
    runner = engine.prepare(Product(parity_matrix("powers", GF(8), 4, 2), layout_of("words", 8))).runner
    blocks = Arena(1, 4, 64, ALIGNED).blocks
    with pytest.raises(BlockError, match="one matrix for all stripes"):
        runner.enqueue(blocks, Arena(1, 2, 64, ALIGNED).blocks, 0, np.zeros(1, np.uint32))
