"""The choice of engines: demands are met or refused with the reason, the rest is left to the first that can."""

import multiprocessing
import sys
import threading
import time
import types
from collections.abc import Callable

import pytest

from gfcode.engine import registry
from gfcode.engine.naive import NumpyEngine
from gfcode.engine.protocol import Engine, Operator, Product
from gfcode.engine.registry import ENGINES, ENVIRONMENT_VARIABLE, AutomaticEngine, get_engine, status
from gfcode.errors import EngineUnavailableError
from gfcode.gf import GF
from gfcode.matrix.dense import Matrix
from gfcode.params import Layout

PACKETS = Product(Matrix(GF(8), [[1, 2]]), Layout("packets", 8))
WORDS = Product(Matrix(GF(8), [[1, 2]]), Layout("words", 8))


class PickyEngine:
    """An engine that runs one layout only."""

    def __init__(self, name: str, layout: str) -> None:
        self.name = name
        self._layout = layout

    def refuses(self, product: Product) -> str | None:
        return None if product.layout.name == self._layout else f"only {self._layout}"

    def prepare(self, product: Product) -> Operator:
        raise AssertionError(f"{product} is not prepared in these tests")


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that replaces the loader of an engine."""
    monkeypatch.setattr(registry, "_loaded", {})
    monkeypatch.setattr(registry, "_warned", set())
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)

    def replace(name: str, load: Callable[[], Engine]) -> None:
        module = types.ModuleType(f"engine_of_test_{name}")
        module.load = load  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setitem(ENGINES, name, module.__name__)

    return replace


def failing(error: Exception) -> Callable[[], Engine]:
    def load() -> Engine:
        raise error

    return load


def test_named_engines_are_what_was_named() -> None:
    for name in ("numpy", "numba"):
        engine = get_engine(name)
        assert engine.name == name
        assert isinstance(engine, Engine)
        assert get_engine(name) is engine


def test_the_environment_names_an_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "numpy")
    assert get_engine().name == "numpy"
    assert get_engine("numba").name == "numba"
    assert get_engine("auto").name == "auto"
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "")
    assert get_engine().name == "auto"
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "abacus")
    with pytest.raises(
        EngineUnavailableError, match=r"no engine 'abacus' \(GFCODE_ENGINE=abacus\); choose one of simd"
    ):
        get_engine()


def test_unknown_engines_are_refused() -> None:
    with pytest.raises(EngineUnavailableError, match="no engine 'Numpy'; choose one of simd, numba, numpy, cuda, auto"):
        get_engine("Numpy")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (EngineUnavailableError("cupy is not installed: pip install gfcode[cuda]"), "cupy is not installed"),
        (ModuleNotFoundError("No module named 'cupy'", name="cupy"), "cupy is not installed: pip install cupy"),
        (ImportError("libcuda.so.1: cannot open"), "loading it failed: ImportError: libcuda.so.1: cannot open"),
        (RuntimeError("no device"), "loading it failed: RuntimeError: no device"),
    ],
)
def test_a_demand_that_cannot_be_met_says_why(
    install: Callable[..., None], monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str
) -> None:
    install("cuda", failing(error))
    with pytest.raises(EngineUnavailableError) as refusal:
        get_engine("cuda")
    assert str(refusal.value).startswith("engine 'cuda' cannot be used here: ")
    assert reason in str(refusal.value)
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "cuda")
    with pytest.raises(EngineUnavailableError, match=r"\(GFCODE_ENGINE=cuda\)"):
        get_engine()
    (found,) = (engine for engine in status() if engine.name == "cuda")
    assert not found.usable
    assert reason in found.detail


def test_a_missing_part_of_the_installation_is_named(
    install: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENGINES, "simd", "gfcode.kernels.absent.engine")
    with pytest.raises(EngineUnavailableError, match=r"installation of gfcode has no gfcode\.kernels\.absent"):
        get_engine("simd")


def test_each_product_goes_to_the_first_engine_that_can(install: Callable[..., None]) -> None:
    install("simd", lambda: PickyEngine("simd", "packets"))
    install("numba", lambda: PickyEngine("numba", "words"))
    chooser = get_engine()
    assert isinstance(chooser, AutomaticEngine)
    assert chooser.choose(PACKETS).name == "simd"
    assert chooser.choose(WORDS).name == "numba"
    assert chooser.refuses(WORDS) is None


def test_unusable_engines_are_passed_over_and_the_slow_one_announced(install: Callable[..., None]) -> None:
    install("simd", failing(EngineUnavailableError("no AVX2")))
    install("numba", lambda: PickyEngine("numba", "words"))
    chooser = AutomaticEngine()
    assert chooser.choose(WORDS).name == "numba"
    with pytest.warns(
        RuntimeWarning, match="numpy engine, which is correct but slow .simd: no AVX2; numba: only words"
    ):
        assert chooser.choose(PACKETS).name == "numpy"
    assert chooser.choose(PACKETS).name == "numpy"  # without another warning, which would be an error
    assert callable(chooser.prepare(PACKETS))


def test_a_product_that_no_engine_runs_is_refused_with_every_reason(install: Callable[..., None]) -> None:
    install("simd", failing(EngineUnavailableError("no AVX2")))
    install("numba", lambda: PickyEngine("numba", "words"))
    install("numpy", failing(RuntimeError("broken")))
    reason = AutomaticEngine().refuses(PACKETS)
    assert reason is not None
    assert all(part in reason for part in ("simd: no AVX2", "numba: only words", "numpy: loading it failed"))
    with pytest.raises(EngineUnavailableError, match="no engine can run"):
        AutomaticEngine().prepare(PACKETS)


def test_automatic_choice_never_takes_cuda() -> None:
    assert "cuda" not in registry.AUTOMATIC
    assert set(registry.AUTOMATIC) < set(ENGINES)


def test_status_names_every_engine_and_says_something_of_each() -> None:
    found = status()
    assert [engine.name for engine in found] == list(ENGINES)
    for engine in found:
        assert engine.detail
        assert "\n" not in engine.detail
    usable = {engine.name for engine in found if engine.usable}
    assert {"numba", "numpy"} <= usable


def test_an_engine_is_loaded_once_by_many_threads(install: Callable[..., None]) -> None:
    loads = []

    def load() -> Engine:
        loads.append(1)
        time.sleep(0.02)
        return NumpyEngine()

    install("simd", load)
    barrier = threading.Barrier(8)
    engines = []

    def work() -> None:
        barrier.wait()
        engines.append(get_engine("simd"))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loads) == 1
    assert len(engines) == 8
    assert len(set(map(id, engines))) == 1


def _name_of_engine(name: str, results: "multiprocessing.SimpleQueue[str]") -> None:
    results.put(get_engine(name).name)


@pytest.mark.skipif(not hasattr(multiprocessing, "get_context") or sys.platform != "linux", reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_fork_while_another_thread_loads_does_not_hang_the_child(install: Callable[..., None]) -> None:
    loading, proceed = threading.Event(), threading.Event()

    def load() -> Engine:
        loading.set()
        proceed.wait(30)
        return NumpyEngine()

    install("simd", load)
    thread = threading.Thread(target=get_engine, args=("simd",))
    thread.start()
    loading.wait(30)
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    child = context.Process(target=_name_of_engine, args=("numpy", results))
    threading.Timer(0.3, proceed.set).start()  # the fork waits for it
    child.start()
    assert proceed.is_set()
    child.join(30)
    alive = child.is_alive()
    if alive:
        child.kill()
        child.join()
    thread.join()
    assert not alive
    assert results.get() == "numpy"
