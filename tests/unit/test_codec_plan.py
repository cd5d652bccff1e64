"""Plans: what is read, in which order, what is kept, and that many threads may ask at once."""

import random
import sys
import threading
from itertools import combinations

import numpy as np
import pytest

from gfcode.codec import Codec, plan
from gfcode.engine.protocol import Blocks
from gfcode.errors import ParameterError, UnrecoverableError
from gfcode.matrix.bitmatrix import ones
from gfcode.matrix.dense import Matrix
from gfcode.matrix.generator import generator_matrix
from tests.unit.codec_support import RecordingEngine, all_shards, random_data

CODEC = Codec(6, 3)


def holds(codec: Codec, available: list[int], want: list[int]) -> None:
    """Check a plan by algebra: its matrix takes the generator's rows of the sources to those of the wanted."""
    made = codec.plan(available, want)
    assert made.want == tuple(want)
    assert set(made.sources) <= set(available)
    assert len(made.sources) <= codec.k
    assert list(made.sources) == sorted(made.sources)
    assert made.matrix.shape == (len(want), len(made.sources))
    assert made.matrix.values.any(axis=0).all()
    generator = generator_matrix(codec.parity)
    assert made.matrix @ generator.rows(made.sources) == generator.rows(want)


@pytest.mark.parametrize(("k", "m", "w"), [(3, 2, 8), (2, 3, 4), (4, 1, 16), (1, 3, 8), (3, 0, 8)])
def test_every_plan_of_small_codes_holds(k: int, m: int, w: int) -> None:
    codec = Codec(k, m, w, engine=RecordingEngine())
    n = k + m
    for count in range(k, n + 1):
        for available in combinations(range(n), count):
            for wanted in range(1, n + 1):
                for want in combinations(range(n), wanted):
                    holds(codec, list(available), list(want))


def test_plans_of_a_wider_code_hold() -> None:
    codec = Codec(12, 5, engine=RecordingEngine())
    choice = random.Random(1)
    for _ in range(60):
        available = choice.sample(range(17), choice.randint(12, 17))
        holds(codec, available, choice.sample(range(17), choice.randint(1, 17)))


def test_data_is_preferred_then_the_parity_with_the_fewest_ones() -> None:
    assert CODEC.plan(range(9), [6]).sources == (0, 1, 2, 3, 4, 5, 6)[6:]
    assert CODEC.plan(range(6), [7]).sources == (0, 1, 2, 3, 4, 5)
    codec = Codec(6, 3, matrix=Codec(6, 3).parity.rows([2, 0, 1]))
    weights = [ones(codec.parity.rows([row])) for row in range(3)]
    assert weights[1] < weights[2] < weights[0]
    without_data = [i for i in range(9) if i != 4]
    assert codec.plan(without_data, [4]).sources == (0, 1, 2, 3, 5, 7)
    assert codec.plan([i for i in without_data if i != 7], [4]).sources == (0, 1, 2, 3, 5, 8)
    assert codec.plan([i for i in without_data if i != 0], [4]).sources == (1, 2, 3, 5, 7, 8)


def test_wanted_shards_that_are_available_are_read_as_they_are() -> None:
    made = CODEC.plan([2, 7], [7, 2])
    assert made.sources == (2, 7)
    assert made.matrix.values.tolist() == [[0, 1], [1, 0]]
    made = CODEC.plan(range(1, 9), [8, 0])
    assert 8 in made.sources
    assert made.matrix.values[0].tolist() == [int(shard == 8) for shard in made.sources]


def test_more_wanted_shards_than_k_are_made_of_k() -> None:
    assert len(CODEC.plan(range(9), range(9)).sources) == 6


def test_the_operator_takes_sources_in_order_and_makes_the_wanted_in_order() -> None:
    data = random_data(CODEC, stripes=2)
    shards = all_shards(CODEC, data)
    made = CODEC.plan([8, 1, 2, 7, 4, 5], [3, 6, 0])
    inputs = np.stack([shards[i] for i in made.sources], axis=1)
    result = np.zeros((2, 3, data.shape[2]), np.uint8)
    made.operator(Blocks.of_array(inputs), Blocks.of_array(result, writable=True))
    for i, shard in enumerate((3, 6, 0)):
        assert (result[:, i] == shards[shard]).all()


def test_nothing_wanted_needs_nothing() -> None:
    made = CODEC.plan([], [])
    assert (made.sources, made.want, made.matrix.shape) == ((), (), (0, 0))
    nothing = Blocks.of_array(np.zeros((0, 512), np.uint8))
    made.operator(nothing, nothing)


def test_what_cannot_be_made_is_refused() -> None:
    with pytest.raises(
        UnrecoverableError, match="any k = 6 shards are needed and 5 are there: missing are shards 1, 3"
    ):
        CODEC.plan([0, 2, 4, 6, 8], [0, 1])
    with pytest.raises(ParameterError, match="no shard 9"):
        CODEC.plan(range(10), [0])


def test_plans_are_kept_by_what_they_read() -> None:
    engine = RecordingEngine()
    codec = Codec(6, 3, engine=engine)
    first = codec.plan(range(1, 9), [0])
    assert codec.plan(range(1, 9), [0]) is first
    assert codec.plan({8, 7, 6, 5, 4, 3, 2, 1}, (0,)) is first
    assert codec.plan([1, 2, 3, 4, 5, 6], [0]) is first
    assert len(engine.products) == 1
    assert codec.plan([1, 2, 3, 4, 5, 7], [0]) is not first
    assert Codec(6, 3, engine=engine).plan(range(1, 9), [0]) is not first


def test_only_the_plans_used_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "_PLANS", 8)
    engine = RecordingEngine()
    codec = Codec(6, 3, engine=engine)
    patterns = list(combinations(range(9), 6))[:20]
    kept = codec.plan(patterns[0], [8])
    for pattern in patterns[1:]:
        codec.plan(pattern, [8])
        assert codec.plan(patterns[0], [8]) is kept
    made = len(engine.products)
    codec.plan(patterns[-1], [8])
    assert len(engine.products) == made
    codec.plan(patterns[1], [8])
    assert len(engine.products) == made + 1


def test_plans_of_wide_codes_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    codec = Codec(250, 125, w=16, engine=RecordingEngine())
    codec.plan(range(250), [250])
    planner = codec._plans()
    assert planner.find.cache_info().maxsize < 10  # type: ignore[attr-defined]
    narrow = CODEC
    narrow.plan(range(1, 9), [0])
    assert narrow._plans().find.cache_info().maxsize == plan._PLANS  # type: ignore[attr-defined]


def test_a_codec_leaves_no_cycle_behind() -> None:
    codec = Codec(6, 3, engine=RecordingEngine())
    codec.plan(range(1, 9), [0])
    planner = codec._plans()
    codec.update(np.zeros((3, 512), np.uint8), 0, bytes(512), bytes(512))
    before = sys.getrefcount(planner)
    del codec
    assert sys.getrefcount(planner) == before - 1


@pytest.mark.parametrize("engine", ["numpy", "numba", None])
def test_one_codec_in_twelve_threads_from_its_first_use(engine: str | None) -> None:
    codec = Codec(6, 3, engine=engine)
    data = random_data(CODEC)
    shards = all_shards(CODEC, data)
    barrier = threading.Barrier(12)
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        choice = random.Random(seed)
        barrier.wait()
        try:
            for _ in range(30):
                lost = choice.sample(range(9), choice.randint(0, 3))
                given = {i: shards[i] for i in range(9) if i not in lost}
                kind = choice.randrange(4)
                if kind == 0:
                    assert (codec.decode(given) == data).all()
                elif kind == 1:
                    made = codec.reconstruct(given, lost)
                    assert all((made[i] == shards[i]).all() for i in lost)
                elif kind == 2:
                    parity = codec.encode(data)
                    codec.update(parity, seed % 6, data[seed % 6], data[0])
                    codec.update(parity, seed % 6, data[0], data[seed % 6])
                    assert all((parity[i] == shards[6 + i]).all() for i in range(3))
                else:
                    assert codec.verify(shards)
        except BaseException as error:  # noqa: BLE001 - reported by the test's own thread
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert errors == []


def test_a_basis_is_of_shards_that_there_are() -> None:
    codec = Codec(3, 2)
    assert codec.basis([4, 0, 1, 2]) == (0, 1, 2)
    for given in ([0, 0, 1], [0, 5]):
        with pytest.raises(ParameterError):
            codec.basis(given)


def test_matrices_of_plans_are_over_the_code_s_field() -> None:
    codec = Codec(3, 2, w=16, polynomial=0x1002D)
    matrix = codec.plan([0, 3, 4], [1]).matrix
    assert isinstance(matrix, Matrix)
    assert matrix.field == codec.field
