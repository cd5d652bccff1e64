"""The passes on matrices that others have published counts for, and on small ones whose optimum is known."""

from typing import TYPE_CHECKING

import numpy as np
import pytest

from gfcode.errors import ParameterError
from gfcode.gf import GF
from gfcode.matrix.bitmatrix import expand, ones
from gfcode.matrix.dense import Matrix
from gfcode.matrix.generator import generator_matrix, parity_matrix
from gfcode.xor.compress import Annealer, compress, paar, repair
from gfcode.xor.fuse import fuse, split
from gfcode.xor.interpret import masks, matrix
from gfcode.xor.lower import horner, lower
from gfcode.xor.memory import allocate, cache_capacity, cache_loads
from gfcode.xor.network import Network
from gfcode.xor.optimize import optimize
from gfcode.xor.program import ZERO, XorProgram
from gfcode.xor.schedule import schedule

if TYPE_CHECKING:
    from collections.abc import Callable

POWERS = parity_matrix("powers", GF(8), 10, 4)


def powers(exponents: tuple[int, ...], k: int, polynomial: int | None = None) -> Matrix:
    field = GF(8, polynomial)
    return Matrix(field, [[field.pow(field.alpha, exponent * j) for j in range(k)] for exponent in exponents])


def decode_matrix(parity: Matrix, lost: list[int]) -> Matrix:
    """Lost data shards from the first k shards that are left."""
    n, k = sum(parity.shape), parity.shape[1]
    left = [shard for shard in range(n) if shard not in lost][:k]
    return generator_matrix(parity).rows(left).inverse().rows(lost)


def test_lower_writes_plain_rows() -> None:
    program = lower([[1, 1, 0], [0, 0, 1], [0, 0, 0], [1, 1, 0], [1, 1, 1]])
    assert program == XorProgram(3, ((0, 1), (0, 1, 2)), (3, 2, ZERO, 3, 4))
    assert lower(np.zeros((0, 5))) == XorProgram(5, (), ())
    assert lower(np.zeros((2, 0))) == XorProgram(0, (), (ZERO, ZERO))


@pytest.mark.parametrize("bits", [[[0, 2]], [[0, -1]], [0, 1], [[[1]]]])
def test_lower_refuses_what_is_no_bit_matrix(bits: list[list[int]]) -> None:
    with pytest.raises(ParameterError, match="a bit matrix"):
        lower(bits)


def test_the_published_matrix() -> None:
    """Uezato, SC'21, section 7.5, RS(10,4) encoding: 755 XORs before, 385 after; 677 accesses; NVar 32, CCap 92."""
    plain = lower(expand(POWERS))
    assert plain.xors == ones(POWERS) - 32 == 755
    assert split(plain).memory_accesses == 2265
    assert plain.memory_accesses == 755 + 2 * 32
    assert allocate(split(plain)).written == 32
    compressed = compress(plain, iterations=1000)
    fused = fuse(compressed)
    assert compressed.xors == fused.xors <= 385
    assert compressed.memory_accesses == 3 * compressed.xors
    scheduled = schedule(fused)
    assert scheduled.xors == fused.xors
    assert scheduled.memory_accesses == fused.memory_accesses
    assert allocate(scheduled).written <= 91
    assert cache_capacity(scheduled) <= 170


def test_the_published_matrix_for_accesses() -> None:
    fused = fuse(compress(lower(expand(POWERS)), iterations=1000, objective="accesses"), duplicate=True)
    assert fused.memory_accesses <= 677


def test_the_published_decoding() -> None:
    """The same table, decoding after the loss of shards 2, 4, 5, 6: 1368 XORs before, 511 after; 923 accesses."""
    plain = lower(expand(decode_matrix(POWERS, [2, 4, 5, 6])))
    assert plain.xors == 1368
    compressed = compress(plain, iterations=1500, restarts=1)
    assert compressed.xors <= 511
    fewest = fuse(compress(plain, iterations=500, restarts=1, objective="accesses"), duplicate=True)
    assert fewest.memory_accesses <= 923


def test_passes_are_deterministic() -> None:
    plain = lower(expand(parity_matrix("cauchy-good", GF(4), 6, 3)))
    runs: list[Callable[[int], XorProgram]] = [
        lambda seed: compress(plain, seed=seed, iterations=300),
        lambda seed: compress(plain, seed=seed, iterations=300, objective="accesses"),
        lambda seed: repair(plain, seed),
        lambda seed: schedule(fuse(paar(plain, seed)), seed=seed, tries=4),
        lambda seed: optimize(plain, seed=seed, iterations=100, capacity=16),
    ]
    for run in runs:
        assert run(3) == run(3)
    assert len({paar(plain, seed) for seed in range(8)}) > 1


def test_compress_finds_known_optima() -> None:
    # Boyar and Peralta's example: four XORs with cancellation (the last row is the third without input 0), else five.
    bits = [[1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1], [0, 1, 1, 1]]
    assert compress(lower(bits), iterations=200).xors == 4
    # All sums of four inputs: each of the eleven is one XOR away from another.
    every = [[value >> bit & 1 for bit in range(4)] for value in range(16)]
    assert compress(lower(every), iterations=200).xors == 11


def test_compress_keeps_the_structure_it_is_given() -> None:
    """Horner's rule starts lower than plain rows do where exponents are close, and is never undone."""
    program = horner(powers((0, 1, -1, 2), 10))
    assert program.xors == 396
    assert compress(program, iterations=0, restarts=0).xors <= 375


def test_compress_to_a_deadline() -> None:
    plain = lower(expand(POWERS))
    program = compress(plain, iterations=10**9, restarts=0, seconds=0.05)
    assert masks(program) == masks(plain)


def test_compress_refuses_unknown_objectives() -> None:
    with pytest.raises(ParameterError, match="unknown objective 'loads'; choose xors or accesses"):
        compress(lower([[1, 1]]), objective="loads")  # type: ignore[arg-type]


def test_annealing_never_loses_its_best() -> None:
    annealer = Annealer(lower(expand(parity_matrix("cauchy", GF(8), 4, 2))), seed=1)
    best = annealer.best
    for _ in range(5):
        annealer.run(100)
        assert annealer.best <= best
        best = annealer.best
        assert annealer.program().xors == annealer.xors


def test_network_undoes_everything() -> None:
    network = Network(paar(lower(expand(POWERS))))
    before = (network.snapshot(), network.cost, dict(network.counts), dict(network.hot), dict(network.values))
    for node in network.temporaries()[:20]:
        network.inline(node)
    assert network.hot
    network.undo()
    after = (network.snapshot(), network.cost, dict(network.counts), dict(network.hot), dict(network.values))
    assert {k: set(v) for k, v in after[0].items()} == {k: set(v) for k, v in before[0].items()}
    assert after[1:] == before[1:]


def test_network_counts_pairs_as_a_recount_does() -> None:
    network = Network(paar(lower(expand(POWERS))))
    for node in network.temporaries()[::3]:
        network.inline(node)
    recount: dict[tuple[int, int], int] = {}
    for row in network.operands.values():
        for a in row:
            for b in row:
                if a < b:
                    recount[a, b] = recount.get((a, b), 0) + 1
    assert {(pair >> 15, pair & 32767): count for pair, count in network.counts.items()} == recount
    assert network.hot == {pair: count for pair, count in network.counts.items() if count > 1}
    assert network.cost == sum(len(row) - 1 for row in network.operands.values())


def test_horner() -> None:
    for family in ("powers", "cauchy-good", "vandermonde"):
        for k, m in ((1, 1), (5, 3), (10, 4)):
            parity = parity_matrix(family, GF(8), k, m)
            assert np.array_equal(matrix(horner(parity)), expand(parity))
    # One addition of w bits a column; three XORs (the inner terms of 0x11d) a step of the exponent.
    assert horner(powers((0,), 10)).xors == 72
    assert horner(powers((1,), 10)).xors == horner(powers((-1,), 10)).xors == 9 * (8 + 3)
    assert horner(powers((2,), 10)).xors == 9 * (8 + 6)
    # Exponents that wrap around are taken the short way.
    field = GF(8)
    assert horner(Matrix(field, [[1, field.pow(2, 254)]])).xors == 8 + 3


def test_horner_where_x_generates_a_part_only() -> None:
    field = GF(8, 0x11B)  # the order of x is 51
    parity = Matrix(field, [[1, 2, 0, field.pow(2, 50)]])
    assert np.array_equal(matrix(horner(parity)), expand(parity))
    with pytest.raises(ParameterError, match=r"element 3 of .* is no power of x"):
        horner(Matrix(field, [[1, 3]]))


def test_fuse_folds_temporaries_with_one_user() -> None:
    chain = XorProgram(4, ((0, 1), (4, 2), (5, 3)), (6,))
    assert fuse(chain) == XorProgram(4, ((0, 1, 2, 3),), (4,))
    # With equal terms cancelling, an unused value dropped, and a temporary that comes to be an input.
    program = XorProgram(3, ((0, 1), (3, 0), (1, 2), (4, 2), (3, 2)), (6, 4))
    assert fuse(program) == XorProgram(3, ((1, 2),), (3, 1))


def test_fuse_by_duplication() -> None:
    # 0 + 1 with two users costs 3 + 2 accesses stored, 4 summed anew.
    shared = XorProgram(4, ((0, 1), (4, 2), (4, 3)), (5, 6))
    assert fuse(shared).memory_accesses == 9
    assert fuse(shared, duplicate=True) == XorProgram(4, ((0, 1, 2), (0, 1, 3)), (4, 5))
    # A sum of four does not pay.
    shared = XorProgram(6, ((0, 1, 2, 3), (6, 4), (6, 5)), (7, 8))
    assert fuse(shared, duplicate=True) == fuse(shared)


def test_schedule_brings_uses_close() -> None:
    # Sixteen pair sums computed first and used last: the order given needs sixteen registers, two are enough.
    pairs = tuple((2 * i, 2 * i + 1) for i in range(16))
    sums = tuple((32 + i, 0 if i else 2) for i in range(16))
    program = XorProgram(32, pairs + sums, tuple(range(48, 64)))
    assert program.live_registers == 16
    scheduled = schedule(program, tries=1)
    assert scheduled.live_registers == 1
    small = schedule(program, capacity=5, tries=2)
    assert cache_loads(small, 5) <= 34 < cache_loads(program, 5)


def test_schedule_refuses_capacities_that_are_none() -> None:
    program = lower([[1, 1]])
    for wrong in ({"capacity": 0}, {"tries": 0}):
        with pytest.raises(ParameterError, match="must be positive"):
            schedule(program, **wrong)
