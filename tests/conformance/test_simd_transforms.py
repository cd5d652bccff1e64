"""The simd engine's transforms make the oracle's bytes, at every vector width and instruction set of this CPU."""

import itertools
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest

from gfcode import Codec
from gfcode.engine.buffers import allocate
from gfcode.engine.protocol import Blocks, Product
from gfcode.gf import GF
from gfcode.kernels.simd import fft_operator, fft_program
from gfcode.kernels.simd.engine import SimdEngine
from gfcode.kernels.simd.fft_operator import FftOperator, pays
from gfcode.kernels.simd.target import host_variants
from gfcode.matrix.transformed import Decoding, Parity
from gfcode.params import Layout
from tests.conformance.engines import expected, placed
from tests.conformance.test_guard_pages import run as run_module

VARIANTS = host_variants()
targets = pytest.mark.parametrize("target", VARIANTS)
#: Around vectors of every width, and around pieces.
LENGTHS = (2, 14, 16, 30, 32, 62, 64, 66, 126, 130, 256, 258, 512, 578, 834)


@cache
def engine(target: str) -> SimdEngine:
    return SimdEngine(VARIANTS[target])


def run(target: str, matrix: Parity | Decoding, data: np.ndarray, shift: int = 0) -> np.ndarray:
    """Multiply blocks `shift` bytes off alignment; check that nothing beside the outputs is written."""
    chance = np.random.default_rng(1)
    inputs, _ = placed(chance, data, shift)
    shape = (data.shape[0], matrix.shape[0], data.shape[2])
    outputs, memory = placed(chance, chance.integers(0, 256, shape, np.uint8), 63 - shift)
    around = memory.copy()
    product = Product(matrix, Layout("words", matrix.field.w))
    FftOperator(engine(target), product)(Blocks.of_array(inputs), Blocks.of_array(outputs, writable=True))
    result = outputs.copy()
    outputs[...] = np.ndarray(shape, np.uint8, around, outputs.ctypes.data - memory.ctypes.data, outputs.strides)
    assert (memory == around).all(), "written outside the blocks"
    assert (inputs == data).all()
    return result


def oracle(matrix: Parity | Decoding, data: np.ndarray) -> np.ndarray:
    return expected(Product(matrix, Layout("words", matrix.field.w)), data)


@targets
@pytest.mark.parametrize("w", [4, 8, 16])
def test_encoding_at_every_size_and_length(target: str, w: int) -> None:
    """One coset and several, whole and not, transforms of 8 to 128."""
    chance = np.random.default_rng(9)
    shapes = ((6, 6), (8, 8), (7, 7)) if w == 4 else ((7, 6), (40, 9), (33, 33), (50, 20), (20, 64), (70, 120), (1, 16))
    for index, (k, m) in enumerate(shapes):
        code = Parity(GF(w), k, m)
        for length in LENGTHS[index % 3 :: 3]:
            data = chance.integers(0, 256, (1 + index % 2, k, length), np.uint8)
            assert (run(target, code, data, index) == oracle(code, data)).all(), (k, m, length)


@targets
@pytest.mark.parametrize(("w", "k", "m"), [(4, 6, 5), (8, 3, 6), (8, 50, 20), (16, 40, 33), (8, 120, 128), (8, 40, 8)])
def test_decoding_random_losses(target: str, w: int, k: int, m: int) -> None:
    """Data, parity, both and copies are wanted; at lengths around vectors and pieces."""
    chance = np.random.default_rng(k)
    code = Parity(GF(w), k, m)
    for turn, length in enumerate(LENGTHS):
        basis = np.sort(chance.permutation(k + m)[:k]) if turn % 5 else np.arange(m, k + m)
        wanted = (range(k), range(k, k + m), range(k + m))[turn % 3]
        want = [shard for shard in wanted if shard not in basis] + [int(basis[-1])] * (turn % 2)
        data = chance.integers(0, 256, (1, k, length), np.uint8)
        shards = np.concatenate([data, oracle(code, data)], axis=1)
        if want:
            found = run(target, Decoding(code, basis.tolist(), want), np.ascontiguousarray(shards[:, basis]), turn % 7)
            assert (found == shards[:, want]).all(), (basis, want, length)


def test_decoding_every_loss_of_a_small_code() -> None:
    code = Parity(GF(4), 5, 5)
    data = np.random.default_rng(1).integers(0, 256, (1, 5, 66), np.uint8)
    shards = np.concatenate([data, oracle(code, data)], axis=1)
    for basis in itertools.combinations(range(10), 5):
        want = [shard for shard in range(10) if shard not in basis]
        found = run("host", Decoding(code, basis, want), np.ascontiguousarray(shards[:, basis]))
        assert (found == shards[:, want]).all(), basis


@targets
@pytest.mark.parametrize("w", [8, 16])
def test_layers_of_huge_transforms(target: str, w: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of huge transforms, on some that the oracle can follow."""
    monkeypatch.setattr(fft_program, "_HUGE", 128)
    chance = np.random.default_rng(2)
    for k, m in ((100, 70), (40, 100)) if w == 8 else ((100, 130), (300, 500)):
        code = Parity(GF(w), k, m)
        data = chance.integers(0, 256, (1, k, 322), np.uint8)
        shards = np.concatenate([data, oracle(code, data)], axis=1)
        assert (run(target, code, data) == shards[:, k:]).all()
        for wanted in (range(k), range(k + m)):
            basis = np.sort(chance.permutation(k + m)[:k])
            want = [shard for shard in wanted if shard not in basis]
            found = run(target, Decoding(code, basis.tolist(), want), np.ascontiguousarray(shards[:, basis]))
            assert (found == shards[:, want]).all()


@targets
def test_outputs_that_bypass_the_caches(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fft_operator, "_STREAM_STRIPE", 0)
    chance = np.random.default_rng(6)
    for w in (8, 16):
        code = Parity(GF(w), 23, 11)
        for length in (64, 130, 832):
            data = chance.integers(0, 256, (2, 23, length), np.uint8)
            outputs = allocate(2, 11, length)
            operator = FftOperator(engine(target), Product(code, Layout("words", w)))
            operator(Blocks.of_array(data), Blocks.of_array(outputs, writable=True))
            assert (outputs == oracle(code, data)).all()
            decoding = Decoding(code, range(11, 34), range(11))
            shards = np.concatenate([data, outputs], axis=1)[:, 11:]
            operator = FftOperator(engine(target), Product(decoding, Layout("words", w)))
            operator(Blocks.of_array(shards), Blocks.of_array(outputs, writable=True))
            assert (outputs == data[:, :11]).all()


@pytest.mark.skipif(sys.platform == "win32", reason="needs mprotect")
@targets
def test_nothing_outside_the_blocks_is_touched(target: str) -> None:
    result = run_module("-m", "tests.conformance.transforms_guarded", target)
    assert result.returncode == 0, result.stderr
    assert "products checked" in result.stdout


def test_transforms_are_for_wide_products_of_the_family() -> None:
    code = Parity(GF(8), 50, 20)
    words = Layout("words", 8)
    assert pays(Product(code, words))
    assert not pays(Product(code, Layout("packets", 8)))
    assert pays(Product(Decoding(code, range(20, 70), range(20)), words))
    assert not pays(Product(Decoding(code, range(1, 51), [0]), words)), "one row costs less"
    assert not pays(Product(Parity(GF(8), 50, 3), words))


@pytest.mark.parametrize(("k", "m"), [(1000, 300), (300, 1000)])
def test_wide_codes_in_threads(k: int, m: int) -> None:
    """One codec, decodes of its own in every thread; the worst losses and random ones."""
    codec = Codec(k, m, 16, matrix="fft", layout="words")
    data = np.random.default_rng(1).integers(0, 256, (k, 130), np.uint8)
    shards = np.concatenate([data, codec.encode(data)])
    assert (codec.parity.rows([0, m - 1]).values == codec.parity.values[[0, m - 1]]).all()

    def decode(seed: int) -> bool:
        chance = np.random.default_rng(seed)
        kept = chance.permutation(k + m)[:k] if seed else np.arange(k + m)[-k:]
        found = codec.decode({int(shard): shards[shard] for shard in kept})
        return bool((found == data).all())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(decode, range(8)))
    assert (codec.reconstruct({i: shards[i] for i in range(1, k + 1)}, [0])[0] == data[0]).all()


def test_as_many_shards_as_the_field_has() -> None:
    """65,536 shards, half of them lost; nothing of the size of the matrix is made."""
    k = m = 1 << 15
    codec = Codec(k, m, 16, matrix="fft", layout="words")
    data = np.random.default_rng(1).integers(0, 256, (k, 64), np.uint8)
    parity = codec.encode(data)
    # Rows of the matrix, as the oracle would multiply by them.
    symbols = data.view("<u2")[:, :3].astype(np.uint16)
    for row in (0, 1, m - 1):
        products = codec.field.mul(codec.parity.rows([row]).values[0][:, None], symbols)
        assert (np.bitwise_xor.reduce(products, axis=0) == parity[row].view("<u2")[:3]).all()
    shards = [*data, *parity]
    for kept in (range(k, k + m), range(1, k + m, 2)):
        assert (codec.decode({shard: shards[shard] for shard in kept}) == data).all()
    changed = data[7].copy()
    changed[:8] ^= 255
    patched = parity.copy()
    codec.update(patched, 7, data[7], changed)
    data[7] = changed
    assert (codec.encode(data) == patched).all()


def test_the_oracle_runs_matrices_that_are_not_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    data = np.random.default_rng(1).integers(0, 256, (60, 34), np.uint8)
    codec = Codec(60, 20, 16, matrix="fft", layout="words", engine="numpy")
    parity = codec.encode(data)
    monkeypatch.setattr("gfcode.matrix.transformed.MAX_ELEMENTS", 100)
    codec = Codec(60, 20, 16, matrix="fft", layout="words", engine="numpy")
    assert (codec.encode(data) == parity).all()
    shards = [*data, *parity]
    assert (codec.decode({shard: shards[shard] for shard in range(20, 80)}) == data).all()
