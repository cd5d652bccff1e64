"""One codec in many threads and processes, from its first use; and a hundred thousand mixed calls with flat memory."""

import copy
import json
import multiprocessing
import os
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from gfcode.codec import Codec
from gfcode.errors import ParameterError
from gfcode.params import LayoutName
from tests.unit.codec_support import Bytes, all_shards, random_data

ROOT = Path(__file__).parents[2]


def at_once(count: int, work: object) -> None:
    """Run a function of a number in so many threads, which begin together and are switched often."""
    barrier = threading.Barrier(count)

    def begin(number: int) -> None:
        barrier.wait(30)
        work(number)  # type: ignore[operator]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(begin, range(count)))
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("engine", ["numpy", "numba", None])
@pytest.mark.parametrize("preset", [None, "klauspost", "jerasure-liberation"])
def test_thirty_two_threads_from_the_first_use(engine: str | None, preset: str | None) -> None:
    def make(name: str | None) -> Codec:
        if preset is None:
            return Codec(6, 3, engine=name)
        return Codec.preset(preset, 5, 2, engine=name)

    codec, oracle = make(engine), make("numpy")
    data = random_data(oracle, 4)
    shards = all_shards(oracle, data)

    def work(number: int) -> None:
        lost = {number % codec.n, (number // codec.n) % codec.n}
        kept: dict[int, Bytes] = {i: block for i, block in shards.items() if i not in lost}
        length = data.shape[1]
        progressive = codec.progressive(length)
        for index in range(codec.k):
            progressive.add(index, shards[index])
        for row in range(codec.m):
            assert (codec.encode(data)[row] == shards[codec.k + row]).all()
            assert (progressive.parity[row] == shards[codec.k + row]).all()
        assert (codec.decode({i: bytes(block) for i, block in kept.items()}) == data).all()
        assert all((made == shards[i]).all() for i, made in codec.reconstruct(kept, lost).items())
        assert codec.decode_range(kept, 5, 3 * length).tobytes() == data.tobytes()[5 : 5 + 3 * length]
        assert codec.verify(shards)
        assert set(codec.repair_plan(lost, length).sources) <= set(kept)

    at_once(32, work)


def test_codecs_made_and_used_at_once() -> None:
    """The caches behind all codecs: certificates, fields, engines, plans, compiled kernels."""
    at_once(32, lambda number: make_and_check(number % 4 + 2, number % 3 + 1))


def make_and_check(k: int, m: int, codec: Codec | None = None) -> bool:
    codec = codec or Codec(k, m)
    data = random_data(codec)
    shards = all_shards(codec, data)
    kept = {i: shards[i] for i in range(m, k + m)}
    return bool((codec.decode(kept) == data).all())


def check(codec: Codec) -> bool:
    return make_and_check(codec.k, codec.m, codec)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_pool_of_processes(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))  # a spawned child finds this module by its name, however pytest was started
    codec = Codec(5, 3)
    assert check(codec)
    with ProcessPoolExecutor(2, multiprocessing.get_context(method)) as pool:
        assert all(pool.map(check, [codec, Codec.preset("isa-l-cauchy", 4, 2), Codec(3, 2, w=16)]))


def test_forks_while_other_threads_work() -> None:
    """A child has whatever state the threads of its parent were in, and no thread but its own."""
    codec = Codec(6, 3)
    stop = threading.Event()
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            while not stop.is_set():
                k, m = (int(number) for number in rng.integers(1, 6, 2))
                assert make_and_check(k, m)
                assert check(codec)
        except BaseException as error:  # noqa: BLE001 - reported by the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    codes = []
    try:
        for number in range(12):
            child = os.fork()
            if not child:
                code = 1
                try:
                    code = 0 if check(codec) and make_and_check(number % 5 + 1, 2) else 2
                finally:
                    os._exit(code)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert codes == [0] * 12
    assert failures == []


def test_a_hundred_thousand_mixed_calls_with_flat_memory() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.soak", "--calls", "100000", "--threads", "4"], cwd=ROOT, capture_output=True,
        text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["calls"] == 100_000
    assert min(report["by_verb"].values()) > 1000
    assert len(report["by_verb"]) == 9


@pytest.mark.parametrize("layout", ["packets", "words"])
def test_large_calls_are_split_over_threads(layout: LayoutName) -> None:
    split, oracle = Codec(5, 3, layout=layout, threads=3), Codec(5, 3, layout=layout, engine="numpy")
    strip = split.block_multiple
    for stripes, length in ((1, 1_048_576 + 3 * 512), (40, 17 * 512), (1, 512)):
        data = np.random.default_rng(length).integers(0, 256, (stripes, 5, length // strip * strip), np.uint8)
        parity = split.encode(data)
        assert (parity == oracle.encode(data)).all()
        shards = {1: data[:, 1], 4: data[:, 4], **{5 + row: parity[:, row] for row in range(3)}}
        assert (split.decode(shards) == data).all()
        assert (split.reconstruct(shards, [2])[2] == data[:, 2]).all()
        if stripes == 1:
            assert (split.encode(data[0]) == parity[0]).all()
            assert (split.decode({i: block[0] for i, block in shards.items()}) == data[0]).all()
    assert repr(split).endswith(", threads=3)")
    assert split.engine is Codec(5, 3, layout=layout).engine
    again = copy.copy(split)
    assert again.threads == 3
    assert (again.encode(data) == parity).all()


def test_threads_are_counted() -> None:
    for wrong in (0, -1, "two", 1.5):
        with pytest.raises(ParameterError, match="threads"):
            Codec(4, 2, threads=wrong)  # type: ignore[arg-type]
