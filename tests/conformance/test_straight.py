"""Kernels compiled for one matrix make the oracle's bytes, at every vector width, and only where they are asked for."""

import numpy as np
import pytest

from gfcode.codec import Codec
from gfcode.engine.protocol import Blocks, Product
from gfcode.engine.registry import get_engine
from gfcode.errors import EngineUnavailableError, ParameterError, UnrecoverableError
from gfcode.gf import GF
from gfcode.matrix.dense import Matrix
from gfcode.matrix.generator import parity_matrix
from gfcode.params import Layout
from tests.conformance.engines import expected, placed, random_product

try:
    get_engine("simd")
except EngineUnavailableError as error:
    pytest.skip(f"no simd engine here: {error}", allow_module_level=True)

from gfcode.kernels.simd.engine import SimdEngine
from gfcode.kernels.simd.plan import Planner
from gfcode.kernels.simd.straight import MAX_ELEMENTS
from gfcode.kernels.simd.target import host, host_variants

VARIANTS = host_variants()


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("w", [8, 4, 5])
def test_random_matrices(variant: str, w: int) -> None:
    rng = np.random.default_rng(w)
    engine = SimdEngine(VARIANTS[variant])
    for rows, columns in ((1, 3), (3, 4), (2, 7), (5, 2)):
        product = random_product(rng, Layout("packets", w), rows, columns)
        operator = engine.prepare(product)
        if not operator.compile():  # type: ignore[attr-defined]
            assert (product.matrix.values <= 1).all()
            continue
        for strips, shift in ((0, 0), (1, 1), (3, 17), (9, 0)):
            data, _ = placed(rng, rng.integers(0, 256, (2, columns, strips * w * 64), np.uint8), shift)
            out, memory = placed(rng, np.zeros((2, rows, strips * w * 64), np.uint8), shift)
            around = memory.copy()
            operator(Blocks.of_array(data), Blocks.of_array(out, writable=True))
            assert (out == expected(product, data)).all()
            out[...] = 0
            assert (memory == around).all()  # nothing beyond the outputs


@pytest.mark.parametrize("values", [[[2, 0, 3], [0, 0, 0], [7, 0, 0]], [[0, 5]], [[9]], [[1, 1], [0, 3]]])
def test_zeros_and_ones(values: list[list[int]]) -> None:
    rng = np.random.default_rng(5)
    for target in VARIANTS.values():
        product = Product(Matrix(GF(8), values), Layout("packets", 8))
        operator = SimdEngine(target).prepare(product)
        assert operator.compile()  # type: ignore[attr-defined]
        data = rng.integers(0, 256, (1, len(values[0]), 1536), np.uint8)
        out = np.ones((1, len(values), 1536), np.uint8)
        operator(Blocks.of_array(data), Blocks.of_array(out, writable=True))
        assert (out == expected(product, data)).all()


def test_what_has_nothing_to_gain() -> None:
    target = host()
    assert target is not None
    packets, field = Layout("packets", 8), GF(8)
    large = Matrix(field, np.full((2, MAX_ELEMENTS // 2 + 1), 3))
    for matrix, layout in (
        (parity_matrix("powers", field, 10, 4), packets),
        (Matrix(field, [[1, 1, 1]]), packets),
        (large, packets),
        (Matrix(field, [[3, 5]]), Layout("words", 8)),
        (Matrix(field, [[3, 5]]), Layout("packets", 8, 128)),
        (Matrix(GF(16), [[3, 5]]), Layout("packets", 16)),
    ):
        assert Planner(Product(matrix, layout), target).compiled() is None


def test_a_codec_prepares_encoding_and_losses() -> None:
    codec, oracle = Codec(6, 3, matrix="cauchy-good", engine="simd"), Codec(6, 3, matrix="cauchy-good", engine="numpy")
    data = np.random.default_rng(1).integers(0, 256, (6, 4096 + 512), np.uint8)
    parity = oracle.encode(data)
    shards = dict(enumerate([*data, *parity]))
    assert codec.prepare()
    assert (codec.encode(data) == parity).all()
    for lost in ([4, 1, 0], [2, 7], [0, 6]):
        assert codec.prepare(lost)
        left = {shard: block for shard, block in shards.items() if shard not in lost}
        assert (codec.decode(left) == data).all()
        made = codec.reconstruct(left, sorted(lost))
        assert all((made[shard] == shards[shard]).all() for shard in lost)
    assert not Codec(6, 3, engine="simd").prepare()  # powers have Horner's rule
    assert not Codec(6, 3, engine="numpy").prepare([0])
    assert not codec.prepare([3])  # a plain sum
    with pytest.raises(ParameterError):
        codec.prepare([9])
    with pytest.raises(UnrecoverableError):
        codec.prepare([0, 1, 2, 3])


def test_engines_that_compile_no_matrix_say_so_in_threads_too() -> None:
    for engine in ("numpy", "numba"):
        assert not Codec(6, 3, matrix="cauchy-good", engine=engine, threads=2).prepare()
    assert not Codec(40, 20, matrix="fft", layout="words", engine="simd", threads=2).prepare()


def test_threads_prepare_too() -> None:
    codec = Codec(6, 3, matrix="cauchy-good", engine="simd", threads=2)
    assert codec.prepare()
    data = np.random.default_rng(1).integers(0, 256, (6, 1 << 19), np.uint8)
    assert (codec.encode(data) == Codec(6, 3, matrix="cauchy-good", engine="numpy").encode(data)).all()
