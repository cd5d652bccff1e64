"""Which kernels a product gets: decisions only, nothing runs."""

from dataclasses import replace

import numpy as np
import pytest

from gfcode.engine.protocol import Product
from gfcode.gf import GF
from gfcode.kernels.simd.constants import ConstantsKernel
from gfcode.kernels.simd.horner import HornerKernel
from gfcode.kernels.simd.plan import Planner, Steps, Way, refusal
from gfcode.kernels.simd.planes import PlanesKernel
from gfcode.kernels.simd.target import Target
from gfcode.kernels.simd.transpose import TransposeKernel
from gfcode.kernels.simd.words import WordsKernel
from gfcode.matrix.dense import Matrix
from gfcode.params import Layout

TARGET = Target("x86_64-unknown-linux-gnu", "sapphirerapids", "", 64, "affine")
FIELD = GF(8)
#: Shorter vectors, products by tables.
TABLES = Target("x86_64-unknown-linux-gnu", "haswell", "", 32, "shuffle86")
PACKETS, WORDS = Layout("packets", 8), Layout("words", 8)


def powers(k: int, exponents: list[int]) -> Matrix:
    return Matrix(FIELD, FIELD.pow(FIELD.alpha, np.array(exponents)[:, None] * np.arange(k)))


def decode(k: int, m: int, lost: list[int], rows: list[int]) -> Matrix:
    """Return what rebuilds lost data from the other data and these parities."""
    generator = Matrix.vstack([Matrix.identity(FIELD, k), powers(k, list(range(m)))])
    left = [place for place in range(k) if place not in lost] + [k + row for row in rows]
    return generator.rows(left).inverse().rows(lost)


def steps(matrix: Matrix, layout: Layout, way: Way = Way.CACHED, target: Target = TARGET) -> Steps:
    return Planner(Product(matrix, layout), target).steps(way)


def kernels(matrix: Matrix, layout: Layout, way: Way = Way.CACHED) -> list[object]:
    return [step.kernel for step in steps(matrix, layout, way).steps]


def test_rows_of_powers_go_to_horner() -> None:
    assert kernels(powers(10, [0, 1, 2, 3]), PACKETS) == [HornerKernel(8, 0x11D, (0, 1, 2, 3))]
    assert kernels(powers(10, [2]), PACKETS) == [HornerKernel(8, 0x11D, (2,))]
    assert kernels(powers(10, [0, 1]), PACKETS, Way.STREAMING) == [HornerKernel(8, 0x11D, (0, 1), streaming=True)]


@pytest.mark.parametrize("way", [Way.ALIASED, Way.ALIASED | Way.STREAMING])
def test_inputs_that_share_cache_sets_are_taken_some_at_a_time(way: Way) -> None:
    """From the last inputs to the first; sums are kept in outputs, or beside them where these bypass the caches."""
    streaming = Way.STREAMING in way
    plan = steps(powers(20, [0, 1, 2, 3]), PACKETS, way)
    kernel = HornerKernel(8, 0x11D, (0, 1, 2, 3))
    assert [step.kernel for step in plan.steps] == [
        kernel,
        replace(kernel, resume=True),
        replace(kernel, resume=True, streaming=streaming),
    ]
    contexts = [step.context.tolist() for step in plan.steps if step.context is not None]
    outputs, sums = [20, 21, 22, 23], [24, 25, 26, 27] if streaming else [20, 21, 22, 23]
    assert contexts == [
        [7, *sums, *range(13, 20)],
        [7, *sums, *sums, *range(6, 13)],
        [6, *outputs, *sums, *range(6)],
    ]
    assert plan.sums == (4 if streaming else 0)
    assert plan.piece == 4096


def test_words_that_share_cache_sets_are_read_across() -> None:
    kernels_of = kernels(decode(20, 4, [0, 4, 7], [1, 2, 3]), WORDS, Way.ALIASED)
    assert kernels_of == [WordsKernel(8, 3, across=True)]


def test_one_wrong_element_is_no_power() -> None:
    values = powers(10, [0, 1, 2]).values.copy()
    values[2, 9] ^= 1
    assert kernels(Matrix(FIELD, values), PACKETS) == [ConstantsKernel(8, 0x11D)]


def test_sums_are_xors_in_every_layout() -> None:
    ones = Matrix(FIELD, np.ones((1, 6), np.uint8))
    assert kernels(ones, PACKETS) == kernels(ones, WORDS) == [WordsKernel(8, 0, summed=True)]


def test_a_loss_with_the_sum_alive_costs_an_xor() -> None:
    """One lost block, rebuilt from parity 0."""
    for layout in (PACKETS, WORDS):
        assert kernels(decode(6, 2, [3], [0]), layout) == [WordsKernel(8, 0, summed=True)]


def test_the_last_lost_block_is_the_sum_of_everything_else() -> None:
    matrix = decode(10, 4, [0, 4, 7], [0, 1, 3])
    assert kernels(matrix, WORDS) == [WordsKernel(8, 2, summed=True, fold=True)]
    step = steps(matrix, PACKETS).steps[0]
    rows = step.arguments["rows"]
    assert len(rows) == 3
    assert set(rows[-1].steps) == {1}
    assert {10, 11} <= set(rows[-1].inputs)


def test_blocks_that_bypass_the_caches_are_not_read_again() -> None:
    """The last row reads copies of the others."""
    plan = steps(decode(10, 4, [0, 4, 7], [0, 1, 3]), PACKETS, Way.STREAMING)
    rows = plan.steps[0].arguments["rows"]
    assert [row.output for row in rows] == [10, 11, 12]
    assert [row.copy for row in rows] == [13, 14, None]
    assert {13, 14} <= set(rows[-1].inputs)
    assert not {10, 11, 12} & {place for row in rows for place in row.inputs}
    assert plan.sums == 3
    assert plan.piece % PACKETS.strip_bytes == 0


def test_packets_that_bypass_the_caches_are_whole_before_they_are_written() -> None:
    """Where vectors are shorter than packets, every row is kept beside its output, and read again from there."""
    plan = steps(decode(10, 4, [0, 4, 7], [0, 1, 3]), PACKETS, Way.STREAMING, TABLES)
    rows = plan.steps[0].arguments["rows"]
    assert [(row.output, row.stage, row.copy) for row in rows] == [(10, 13, None), (11, 14, None), (12, 15, None)]
    assert {13, 14} <= set(rows[-1].inputs)
    assert plan.sums == 3
    general = steps(decode(10, 4, [0, 4, 7], [1, 2, 3]), PACKETS, Way.STREAMING, TABLES)
    assert [row.stage for row in general.steps[0].arguments["rows"]] == [13, 14, 15]
    assert general.sums == 3
    cached = steps(decode(10, 4, [0, 4, 7], [0, 1, 3]), PACKETS, Way.CACHED, TABLES)
    assert [row.stage for row in cached.steps[0].arguments["rows"]] == [None] * 3


@pytest.mark.parametrize("exponents", [[0, 1], [1, 0]])
def test_a_sum_and_powers_are_made_by_doubling_where_products_are_by_tables(exponents: list[int]) -> None:
    doubling = WordsKernel(8, 1, summed=True, doubling=True)
    (step,) = steps(powers(10, exponents), WORDS, target=TABLES).steps
    assert step.kernel == doubling
    assert step.context is not None
    assert step.context[:2].tolist() == [10, 10]
    assert step.context[3:5].tolist() == [10 + exponents.index(1), 10 + exponents.index(0)]
    assert step.context[8:18].tolist() == list(range(10))[::-1]
    by_tables = WordsKernel(8, 1, summed=True, ones=True)
    assert kernels(powers(10, exponents), WORDS) == [by_tables]
    for others in ([0, 2], [0, 1, 2], [1]):
        (step,) = steps(powers(10, others), WORDS, target=TABLES).steps
        assert step.kernel == replace(by_tables, rows=len(set(others) - {0}), summed=0 in others)


def test_an_input_with_no_constants_but_ones_is_where_sums_start() -> None:
    shuffled = Matrix(FIELD, powers(6, [1, 2, 3]).values[:, [3, 1, 0, 2, 4, 5]])
    (step,) = steps(shuffled, WORDS).steps
    assert step.kernel == WordsKernel(8, 3, ones=True)
    assert step.context is not None
    assert step.context[8:14].tolist() == [2, 0, 1, 3, 4, 5]
    # It has to be one that the plain sum takes.
    zero = np.array([[2, 1, 3], [4, 1, 5], [1, 0, 1]])
    assert kernels(Matrix(FIELD, zero), WORDS) == [WordsKernel(8, 2, summed=True)]


def test_more_rows_than_fit_the_stack_are_stored_through_the_caches() -> None:
    chance = np.random.default_rng(1)
    plan = steps(Matrix(FIELD, chance.integers(2, 256, (260, 300))), PACKETS, Way.STREAMING)
    assert plan.sums == 0
    assert not any(step.arguments["streaming"] for step in plan.steps)


def test_without_the_sum_every_row_is_general() -> None:
    assert kernels(decode(10, 4, [0, 4, 7], [1, 2, 3]), WORDS) == [WordsKernel(8, 3)]


def test_many_rows_share_reads_from_a_near_cache() -> None:
    chance = np.random.default_rng(1)
    plan = steps(Matrix(FIELD, chance.integers(2, 256, (20, 50))), WORDS)
    assert [step.kernel for step in plan.steps] == [WordsKernel(8, 4)] * 5
    assert 50 * plan.piece <= 64 << 10


def test_many_inputs_of_constants_are_taken_in_groups() -> None:
    chance = np.random.default_rng(1)
    plan = steps(Matrix(FIELD, chance.integers(2, 256, (3, 100))), PACKETS)
    assert [[row.sums for row in step.arguments["rows"]] for step in plan.steps] == [[None] * 3] + [[100, 101, 102]] * 2
    assert plan.piece == 4096


def test_other_symbols_and_packet_sizes_go_plane_by_plane() -> None:
    chance = np.random.default_rng(1)
    assert kernels(Matrix(GF(10), chance.integers(2, 1 << 10, (2, 3))), Layout("packets", 10)) == [PlanesKernel(True)]
    assert kernels(powers(5, [0, 1]), Layout("packets", 8, 1024)) == [PlanesKernel(across=False)]
    wide = Matrix(GF(16), chance.integers(2, 1 << 16, (2, 3)))
    assert kernels(wide, Layout("packets", 16, 128)) == [PlanesKernel(across=True)]
    many = Matrix(GF(16), chance.integers(2, 1 << 16, (2, 511)))
    assert kernels(many, Layout("packets", 16)) == [PlanesKernel(across=True)]


def test_packets_of_wide_symbols_become_words_on_the_way() -> None:
    """Inputs 0-2 become words in 5-7, these are multiplied into 8 and 9, which become outputs 3 and 4."""
    values = np.random.default_rng(1).integers(2, 1 << 16, (2, 3))
    plan = steps(Matrix(GF(16), values), Layout("packets", 16))
    assert [step.kernel for step in plan.steps] == [
        TransposeKernel(16),
        WordsKernel(16, 2),
        TransposeKernel(16, back=True),
    ]
    there, multiply, back = (step.context.tolist() for step in plan.steps if step.context is not None)
    assert there == [3, 0, 5, 1, 6, 2, 7]
    assert multiply[3:5] == [8, 9]
    assert multiply[8:11] == [5, 6, 7]
    assert back == [2, 8, 3, 9, 4]
    assert plan.sums == 5
    assert plan.piece % 1024 == 0


def test_packets_of_wide_codes_become_words_on_the_way() -> None:
    chance = np.random.default_rng(1)
    found = kernels(Matrix(FIELD, chance.integers(2, 256, (20, 50))), PACKETS)
    assert found == [ConstantsKernel(8, 0x11D)] * 2
    found = kernels(Matrix(FIELD, chance.integers(2, 256, (32, 100))), PACKETS)
    assert found == [TransposeKernel(8), *[WordsKernel(8, 4)] * 8, TransposeKernel(8, back=True)]


@pytest.mark.parametrize(
    ("layout", "shape", "reason"),
    [
        (Layout("words", 32), (1, 2), "words of 32 bits"),
        (Layout("packets", 8, 72), (1, 2), "packets of 72 bytes"),
        (Layout("words", 16), (4000, 2000), "more than 4096 blocks"),
        (Layout("packets", 16), (300, 1000), "a bit matrix of more than"),
    ],
)
def test_what_has_no_kernel_is_refused(layout: Layout, shape: tuple[int, int], reason: str) -> None:
    product = Product(Matrix(GF(layout.w), np.ones(shape, np.int64)), layout)
    assert reason in str(refusal(product, TARGET))
