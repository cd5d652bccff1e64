"""Large calls split over threads: every byte as in one call, whatever the pool is doing."""

import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from gfcode.engine import threads
from gfcode.engine.buffers import allocate
from gfcode.engine.protocol import (
    AddingOperator,
    AddressOperator,
    Blocks,
    CompilingOperator,
    Engine,
    Operator,
    Product,
)
from gfcode.engine.registry import get_engine
from gfcode.engine.threads import ThreadedEngine, threaded
from gfcode.errors import BlockError, ParameterError
from gfcode.gf import GF
from gfcode.matrix.dense import Matrix
from gfcode.params import Layout
from tests.conformance.engines import FAST, Bytes, random_product

LAYOUTS = (Layout("packets", 8), Layout("words", 8), Layout("words", 4), Layout("packets", 3, 72), Layout("words", 16))


class Recorder:
    """An engine whose operators note which threads and blocks they were called with."""

    name = "recorder"

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.calls: list[tuple[int, int, int]] = []
        self.wait: threading.Barrier | None = None
        self.failing = False

    def refuses(self, product: Product) -> str | None:
        return self.engine.refuses(product)

    def prepare(self, product: Product) -> Operator:
        operator = self.engine.prepare(product)

        def run(inputs: Blocks, outputs: Blocks) -> None:
            self.calls.append((threading.get_ident(), outputs.stripes, outputs.length))
            if self.wait is not None:
                self.wait.wait(20)
            if self.failing:
                raise MemoryError("no room")
            operator(inputs, outputs)

        return run


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make calls of some kilobytes large ones."""
    monkeypatch.setattr(threads, "_LEAST", 2048)
    monkeypatch.setattr(threads, "_LARGE", 8192)


def product(rows: int = 3, columns: int = 4) -> Product:
    return random_product(np.random.default_rng(7), Layout("words", 8), rows, columns)


def test_an_operator_can_do_what_the_one_behind_can() -> None:
    for name in ("numpy", None):
        engine = get_engine(name)
        behind, split = engine.prepare(product()), threaded(engine, 2).prepare(product())
        for protocol in (AddingOperator, AddressOperator, CompilingOperator):
            assert isinstance(split, protocol) == isinstance(behind, protocol), (name, protocol)


def apply(operator: Operator, data: Bytes, rows: int) -> Bytes:
    out = allocate(data.shape[0], rows, data.shape[2])
    out[...] = 0xEE
    operator(Blocks.of_array(data), Blocks.of_array(out, writable=True))
    return out


def bytes_of(*shape: int, seed: int = 1) -> Bytes:
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("name", [*FAST, "numpy", "auto"])
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_odd_lengths_and_batches_give_the_bytes_of_one_call(name: str, layout: Layout) -> None:
    rng = np.random.default_rng(3)
    made = random_product(rng, layout, 2, 3)
    engine = get_engine(name)
    if name == "cuda" or engine.refuses(made):
        pytest.skip(f"{name} does not run this")
    plain, split = get_engine("numpy").prepare(made), threaded(engine, 3).prepare(made)
    strip = layout.strip_bytes
    for stripes, size in ((1, 0), (1, 8), (1, 504), (1, 40_000), (2, 6216), (7, 1032), (50, 24), (1, 32_792)):
        data = bytes_of(stripes, 3, -(-size // strip) * strip)
        assert (apply(split, data, 2) == apply(plain, data, 2)).all()


@pytest.mark.usefixtures("small_parts")
def test_parts_are_whole_lines_and_strips_and_no_more_than_asked_for() -> None:
    recorder = Recorder(get_engine("numpy"))
    made = product()
    operator = threaded(recorder, 4).prepare(made)
    apply(operator, bytes_of(1, 4, 10_000), 3)  # 70,000 bytes: 4 threads with 2 parts each
    lengths = [length for _, _, length in recorder.calls]
    assert sum(lengths) == 10_000
    assert len(lengths) == 8
    assert all(length % 64 == 0 for length in sorted(lengths)[1:])
    recorder.calls.clear()
    apply(operator, bytes_of(64, 4, 512), 3)
    assert sorted(stripes for _, stripes, _ in recorder.calls) == [4] * 16
    recorder.calls.clear()
    apply(operator, bytes_of(1, 4, 256), 3)
    assert recorder.calls == [(threading.get_ident(), 1, 256)]


@pytest.mark.usefixtures("small_parts")
def test_several_threads_take_part() -> None:
    recorder = Recorder(get_engine("numpy"))
    recorder.wait = threading.Barrier(3)
    apply(threaded(recorder, 3).prepare(product()), bytes_of(1, 4, 1000), 3)
    assert len({ident for ident, _, _ in recorder.calls}) == 3


@pytest.mark.usefixtures("small_parts")
def test_errors_of_any_thread_arrive_and_nothing_runs_on() -> None:
    recorder = Recorder(get_engine("numpy"))
    operator = threaded(recorder, 3).prepare(product())
    recorder.failing = True
    with pytest.raises(MemoryError, match="no room"):
        apply(operator, bytes_of(1, 4, 20_000), 3)
    count = len(recorder.calls)
    recorder.failing = False
    apply(operator, bytes_of(1, 4, 64), 3)
    assert len(recorder.calls) == count + 1
    with pytest.raises(BlockError):
        apply(operator, bytes_of(1, 5, 20_000), 3)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("name", [*FAST, "numpy"])
def test_many_threads_with_one_operator(name: str) -> None:
    if name == "cuda":
        pytest.skip("works on its device")
    made = product()
    plain, split = get_engine("numpy").prepare(made), threaded(get_engine(name), 4).prepare(made)
    data = [bytes_of(1, 4, 3000 + 64 * seed, seed=seed) for seed in range(24)]
    right = [apply(plain, block, 3) for block in data]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(4):
            for found, wanted in zip(pool.map(lambda block: apply(split, block, 3), data), right, strict=True):
                assert (found == wanted).all()


def _child(queue: "multiprocessing.SimpleQueue[bool]", operator: Operator | None) -> None:
    made = product()
    operator = operator or threaded(get_engine(None), 2).prepare(made)
    data = bytes_of(1, 4, 600_000)
    right = apply(get_engine("numpy").prepare(made), data, 3)
    queue.put(all((apply(operator, data, 3) == right).all() for _ in range(3)))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_child_processes(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    operator = threaded(get_engine(None), 2).prepare(product())
    apply(operator, bytes_of(1, 4, 600_000), 3)
    context: Any = multiprocessing.get_context(method)
    queue = context.SimpleQueue()
    child = context.Process(target=_child, args=(queue, operator if method == "fork" else None))
    child.start()
    assert queue.get()
    child.join(30)
    assert child.exitcode == 0


def test_small_calls_stay_in_their_thread_and_need_no_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_executor", lambda: pytest.fail("a pool was asked for"))
    recorder = Recorder(get_engine("numpy"))
    apply(threaded(recorder, 8).prepare(product()), bytes_of(1, 4, 100_000), 3)
    assert len(recorder.calls) == 1


def test_an_interpreter_that_ends_works_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def ended() -> ThreadPoolExecutor:
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    monkeypatch.setattr(threads, "_executor", ended)
    made = product()
    data = bytes_of(1, 4, 1 << 20)
    split = threaded(get_engine(None), 2).prepare(made)
    assert (apply(split, data, 3) == apply(get_engine("numpy").prepare(made), data, 3)).all()


def test_what_is_refused() -> None:
    engine = get_engine("numpy")
    assert threaded(engine, 1) is engine
    with pytest.raises(ParameterError, match="at least 1, not 0"):
        threaded(engine, 0)

    class Device(Recorder):
        name = "cuda"

    with pytest.raises(ParameterError, match="works on its device"):
        threaded(Device(engine), 2)


def test_it_is_an_engine_of_the_same_name_and_reasons() -> None:
    auto = threaded(get_engine("auto"), 2)
    assert isinstance(auto, ThreadedEngine)
    assert isinstance(auto, Engine)
    assert auto.name == "auto"
    wanted = product()
    assert auto.refuses(wanted) is None
    assert auto.choose(wanted) is get_engine("auto").choose(wanted)  # type: ignore[attr-defined]
    odd = Product(Matrix(GF(32), [[1]]), Layout("words", 32))
    for name in FAST:
        if name != "cuda":
            assert threaded(get_engine(name), 2).refuses(odd) == get_engine(name).refuses(odd)


def test_adding_is_there_where_the_engine_has_it() -> None:
    made = product()
    for name in FAST:
        if name == "cuda":
            continue
        inner = get_engine(name).prepare(made)
        split = threaded(get_engine(name), 2).prepare(made)
        for attribute in ("add", "compile", "run"):
            assert hasattr(split, attribute) == hasattr(inner, attribute)


def test_cpu_count_does_not_limit_what_is_asked_for() -> None:
    assert ThreadedEngine(get_engine("numpy"), (os.cpu_count() or 1) + 3).threads == (os.cpu_count() or 1) + 3


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs signals to threads")
def test_an_interruption_waits_for_what_still_writes() -> None:
    both, finished = threading.Barrier(2), threading.Event()

    def work(_: int) -> None:
        both.wait(20)
        if threading.current_thread() is threading.main_thread():
            return
        time.sleep(0.1)  # the caller is waiting by now
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        time.sleep(0.3)
        finished.set()

    with pytest.raises(KeyboardInterrupt):
        threads._share(work, 2, 2)
    assert finished.is_set()
