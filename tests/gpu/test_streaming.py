"""Host blocks streamed through a device, what happens when it fails, and what is kept on disk."""

import threading
from typing import Any

import numpy as np
import pytest

from gfcode.engine.diskcache import DiskCache
from gfcode.engine.protocol import Blocks, Product
from gfcode.errors import DeviceError, DeviceMemoryError
from gfcode.kernels.cuda.context import Context
from gfcode.kernels.cuda.engine import CudaEngine
from gfcode.kernels.cuda.launch import Problem, Tuning
from gfcode.kernels.cuda.streaming import Streamer
from gfcode.kernels.cuda.tuner import TuningStore, choose
from gfcode.params import Layout
from tests.gpu import shim
from tests.gpu.harness import PRODUCT, WORDS, layout_of, oracle, random_bytes, random_matrix
from tests.gpu.shim import ShimDevice

pytestmark = pytest.mark.skipif(shim.missing() is not None, reason=shim.missing() or "")


# Host blocks


@pytest.mark.parametrize("pinned", ["neither", "inputs", "outputs", "both"])
@pytest.mark.parametrize("batch_bytes", [4096, 20000, 1 << 20])
@pytest.mark.parametrize("early", [False, True])
def test_host_blocks_stream_through(
    device: ShimDevice, engine: CudaEngine, pinned: str, batch_bytes: int, early: bool
) -> None:
    engine._streamer = Streamer(device, batch_bytes)
    device.early = early
    data = random_bytes(13, 5, 1000)
    source, target = data, np.zeros((13, 3, 1000), np.uint8)
    if pinned in {"inputs", "both"}:
        source = device.pinned_array(*data.shape)
        source[:] = data
    if pinned in {"outputs", "both"}:
        target = device.pinned_array(13, 3, 1000)
    for _ in range(2):  # the second time with the buffers of the first
        target[:] = 0
        engine.prepare(PRODUCT)(Blocks.of_array(source), Blocks.of_array(target, writable=True))
        assert np.array_equal(target, oracle(PRODUCT, data))
    assert len(device.queues) == 4, "three streams beside the default one"
    if pinned == "both":
        assert {kind for kind, _ in device.copies} == {"rows", "rows out", "copy"}
        assert sum(size for kind, size in device.copies if kind != "copy") == 2 * (data.nbytes + target.nbytes)


@pytest.mark.parametrize(
    ("waiting", "awaited"),
    [("incoming", "working"), ("working", "incoming"), ("working", "outgoing"), ("outgoing", "working")],
)
def test_every_wait_between_streams_counts(
    device: ShimDevice, engine: CudaEngine, monkeypatch: pytest.MonkeyPatch, waiting: str, awaited: str
) -> None:
    """Without any one of them, bytes are wrong where streams run as late or as early as they can."""
    data, names = random_bytes(13, 5, 1000), ("incoming", "working", "outgoing")
    source, target = device.pinned_array(*data.shape), device.pinned_array(13, 3, 1000)
    source[:] = data
    wait, dropped = device.wait, 0

    def forgetful(stream: Any, event: Any) -> None:
        nonlocal dropped
        streams = dict(zip(names, list(device.queues)[-3:], strict=True))
        if (stream, event.stream) == (streams[waiting], streams[awaited]):
            dropped += 1
        else:
            wait(stream, event)

    monkeypatch.setattr(device, "wait", forgetful)
    wrong = 0
    for early in (False, True):
        engine._streamer, device.early = Streamer(device, 20000), early
        target[:] = 0
        engine.prepare(PRODUCT)(Blocks.of_array(source), Blocks.of_array(target, writable=True))
        wrong += not np.array_equal(target, oracle(PRODUCT, data))
    assert dropped
    assert wrong


def test_scattered_host_blocks(device: ShimDevice, engine: CudaEngine) -> None:
    """Blocks of their own, one of them twice, inputs page-locked at no common distance."""
    engine._streamer = Streamer(device, 3000)
    parts = [device.pinned_array(777) for _ in range(4)]
    for i, part in enumerate(parts):
        part[:] = random_bytes(777, i + 1)[:, 0]
    inputs = [parts[0], parts[3], parts[1], parts[2], parts[0]]
    outputs = [np.zeros(777, np.uint8) for _ in range(3)]
    engine.prepare(PRODUCT)(Blocks.of_buffers(inputs), Blocks.of_buffers(outputs, writable=True))
    assert np.array_equal(np.stack(outputs), oracle(PRODUCT, np.stack(inputs)[None])[0])


def test_long_blocks_are_cut_at_strips(device: ShimDevice, engine: CudaEngine) -> None:
    product = Product(PRODUCT.matrix, layout_of("packets", 8, 24))
    engine._streamer = Streamer(device, 8 * 192 * 8)
    data, target = random_bytes(2, 5, 192 * 21), np.zeros((2, 3, 192 * 21), np.uint8)
    engine.prepare(product)(Blocks.of_array(data), Blocks.of_array(target, writable=True))
    assert np.array_equal(target, oracle(product, data))
    assert len(device.launches) > 4


def test_grouped_host_blocks(device: ShimDevice, engine: CudaEngine) -> None:
    engine._streamer = Streamer(device, 6000)
    rng = np.random.default_rng(5)
    matrices = [random_matrix(rng, 8, 3, 5) for _ in range(4)]
    operator = engine.prepare_grouped(matrices, WORDS)
    which = rng.integers(0, 4, 9)
    data, target = random_bytes(9, 5, 300), np.zeros((9, 3, 300), np.uint8)
    operator(Blocks.of_array(data), Blocks.of_array(target, writable=True), which)
    wanted = [oracle(Product(matrices[number], WORDS), data[i : i + 1])[0] for i, number in enumerate(which)]
    assert np.array_equal(target, wanted)


def test_many_threads_at_once(engine: CudaEngine) -> None:
    operator = engine.prepare(PRODUCT)
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            data, target = random_bytes(3, 5, 64 + seed), np.zeros((3, 3, 64 + seed), np.uint8)
            for _ in range(3):
                operator(Blocks.of_array(data), Blocks.of_array(target, writable=True))
            assert np.array_equal(target, oracle(PRODUCT, data))
        except BaseException as error:  # noqa: BLE001 - handed to the test
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


# Failures


def test_short_memory_means_smaller_batches(device: ShimDevice, engine: CudaEngine) -> None:
    device.limit = 60_000
    data, target = random_bytes(40, 5, 1024), np.zeros((40, 3, 1024), np.uint8)
    engine.prepare(PRODUCT)(Blocks.of_array(data), Blocks.of_array(target, writable=True))
    assert np.array_equal(target, oracle(PRODUCT, data))
    assert len(device.launches) > 10


def test_no_memory_at_all_is_said(device: ShimDevice, engine: CudaEngine) -> None:
    device.limit = 100
    data, target = random_bytes(40, 5, 1024), np.zeros((40, 3, 1024), np.uint8)
    with pytest.raises(DeviceMemoryError, match=r"no room for batches, neither of \d+ bytes nor of \d+"):
        engine.prepare(PRODUCT)(Blocks.of_array(data), Blocks.of_array(target, writable=True))
    assert len(device.queues) == 1, "the streams are given back"
    device.limit = 1 << 30
    engine.prepare(PRODUCT)(Blocks.of_array(data), Blocks.of_array(target, writable=True))
    assert np.array_equal(target, oracle(PRODUCT, data))


def test_failed_launches_are_errors_and_leave_nothing_behind(device: ShimDevice, engine: CudaEngine) -> None:
    data, target = random_bytes(4, 5, 512), np.zeros((4, 3, 512), np.uint8)
    device.fail_launch = "host shim: launching the kernel bitmatmul failed: an illegal address"
    with pytest.raises(DeviceError, match="launching the kernel bitmatmul failed"):
        engine.prepare(PRODUCT)(Blocks.of_array(data), Blocks.of_array(target, writable=True))
    assert len(device.queues) == 1
    device.fail_launch = None
    engine.prepare(PRODUCT)(Blocks.of_array(data), Blocks.of_array(target, writable=True))
    assert np.array_equal(target, oracle(PRODUCT, data))


# Caches


def test_kernels_are_compiled_once_a_machine(
    device: ShimDevice, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GFCODE_CACHE_DIR", str(tmp_path))
    cache = DiskCache("cuda")

    def run(target: ShimDevice) -> None:
        data, out = random_bytes(1, 5, 64), np.zeros((1, 3, 64), np.uint8)
        operator = CudaEngine(Context(target, cache)).prepare(PRODUCT)
        operator(Blocks.of_array(data), Blocks.of_array(out, writable=True))
        assert np.array_equal(out, oracle(PRODUCT, data))

    run(device)
    assert len(device.compiled) == 1
    run(device)
    other = ShimDevice(90)
    run(other)
    assert (len(device.compiled), len(other.compiled)) == (1, 0)
    newer = ShimDevice(90)
    newer.compiler += " newer"
    run(newer)
    assert len(newer.compiled) == 1
    # Damaged on disk: a miss. Whole, but nothing that this driver loads: compiled anew, and replaced.
    for path in sorted((tmp_path / "cuda").iterdir()):  # type: ignore[operator] # a Path
        path.write_bytes(path.read_bytes()[:-1])
    run(third := ShimDevice(90))
    assert len(third.compiled) == 1
    monkeypatch.setattr(cache, "load", lambda _key: b"whole but foreign")
    run(fourth := ShimDevice(90))
    assert len(fourth.compiled) == 1


def test_tuning_is_measured_and_kept(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GFCODE_CACHE_DIR", str(tmp_path))
    device = ShimDevice(90)
    engine = CudaEngine(Context(device))
    operator = engine.prepare(PRODUCT)
    # Candidates are stages None, 2, 3 and the same in one piece; six timings of each, the first of which warms up.
    times = {None: [9.0, 5.0, 5.0, 5.0, 5.0, 5.0], 2: [9.0, 2.0, 9.0, 2.0, 2.0, 2.0], 3: [1.0, 4.0, 4.0, 4.0, 4.0, 4.0]}
    device.seconds = [second for stages in (None, 2, 3) for second in times[stages]] + [7.0] * 18
    assert operator.tune(2, 512) == Tuning(stages=2)
    data, out = device.device_array(random_bytes(2, 5, 512)), device.device_array(np.zeros((2, 3, 512), np.uint8))
    operator.apply_device(data, out)
    device.finish(0)
    assert device.launches[-1][0].build.define("STAGES") == 2
    assert np.array_equal(out.array, oracle(PRODUCT, data.array))
    problem = Problem(WORDS, 5, 3, 2, 512)
    again = TuningStore(device.info.name, device.compiler)
    assert again.lookup("matrix", problem) == Tuning(stages=2)
    assert again.lookup("program", problem) == Tuning()
    assert TuningStore("another", device.compiler).lookup("matrix", problem) == Tuning()


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"[]",
        b'{"x": 3}',
        b'{"x": {"stages": 1}}',
        b'{"x": {"stages": "a", "pieces": 1, "vector": 1, "blocks": 1}}',
    ],
)
def test_foreign_tunings_are_ignored(content: bytes, tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GFCODE_CACHE_DIR", str(tmp_path))
    store = TuningStore("d", "c")
    store._cache.store(store._key, content)
    problem = Problem(Layout("words", 8), 5, 3, 2, 512)
    assert store.lookup("matrix", problem) == Tuning()
    store.keep("matrix", problem, Tuning(stages=3))
    assert TuningStore("d", "c").lookup("matrix", problem) == Tuning(stages=3)


def test_nothing_to_choose_from() -> None:
    with pytest.raises(ValueError, match="nothing to choose from"):
        choose([], lambda _: 1.0)
