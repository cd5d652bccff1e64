"""Compiled kernels on disk and in memory: whatever befalls the cache, results are right; one line is said at most."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from gfcode.engine.locks import COMPILING
from gfcode.engine.protocol import Blocks, Product
from gfcode.errors import EngineUnavailableError
from gfcode.gf import GF
from gfcode.kernels.simd import compiler as compiler_module
from gfcode.kernels.simd import constants, selftest
from gfcode.kernels.simd.engine import SimdEngine, load
from gfcode.kernels.simd.multipliers import Multiplier, multipliers
from gfcode.kernels.simd.target import Target, host
from gfcode.kernels.simd.words import WordsKernel
from gfcode.matrix.dense import Matrix
from gfcode.params import Layout

pytestmark = pytest.mark.skipif(host() is None, reason="no SIMD kernels for this CPU")

PRODUCT = Product(Matrix(GF(8), [[1, 1, 1], [2, 7, 9]]), Layout("words", 8))
ROOT = Path(__file__).parents[2]

SCRIPT = """
import numpy as np
from gfcode.engine.locks import COMPILING
from gfcode.engine.protocol import Blocks, Product
from gfcode.engine.registry import get_engine
from gfcode.gf import GF
from gfcode.matrix.dense import Matrix
from gfcode.params import Layout

product = Product(Matrix(GF(8), [[1, 1, 1], [2, 7, 9]]), Layout("words", 8))
data = np.random.default_rng(1).integers(0, 256, (3, 1000), np.uint8)
results = []
for name in ("simd", "numpy"):
    results.append(np.empty((2, 1000), np.uint8))
    get_engine(name).prepare(product)(Blocks.of_array(data), Blocks.of_array(results[-1], writable=True))
assert (results[0] == results[1]).all()
print("right")
"""


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GFCODE_CACHE_DIR", str(tmp_path))
    return tmp_path / "simd"


def engine() -> SimdEngine:
    """Make an engine, which knows no kernels yet."""
    target = host()
    assert target is not None
    return SimdEngine(target)


def run(product: Product = PRODUCT, *, on: SimdEngine) -> None:
    data = np.random.default_rng(2).integers(0, 256, (product.matrix.shape[1], 999), np.uint8)
    result = np.empty((product.matrix.shape[0], 999), np.uint8)
    on.prepare(product)(Blocks.of_array(data), Blocks.of_array(result, writable=True))
    assert (result == selftest.expected(product, data)).all()


def count_compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    compiled: list[str] = []
    original = compiler_module.object_code

    def counted(kernel: compiler_module.Kernel, target: Target) -> bytes:
        compiled.append(kernel.name)
        return original(kernel, target)

    monkeypatch.setattr(compiler_module, "object_code", counted)
    return compiled


def test_kernels_are_compiled_once_for_all_processes(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = count_compilations(monkeypatch)
    run(on=engine())
    assert sorted(compiled) == ["drive", "words1s"]
    assert len(list(empty_cache.glob("*.bin"))) == 2
    run(on=engine())
    assert len(compiled) == 2


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "foreign"])
def test_a_damaged_entry_is_compiled_again(empty_cache: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    run(on=engine())
    for path in empty_cache.glob("*.bin"):
        content = path.read_bytes()
        flipped = bytearray(content)
        flipped[len(flipped) // 2] ^= 1
        path.write_bytes({"flip": bytes(flipped), "cut": content[:-9], "empty": b"", "foreign": b"\x7fELF"}[damage])
    compiled = count_compilations(monkeypatch)
    run(on=engine())
    assert len(compiled) == 2
    compiled.clear()
    run(on=engine())
    assert not compiled


def test_entries_of_other_cpus_versions_and_sources_are_not_found(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = count_compilations(monkeypatch)
    run(on=engine())
    monkeypatch.setattr("llvmlite.__version__", "0.0")
    run(on=engine())
    monkeypatch.setattr(compiler_module, "_source_digest", lambda: "other")
    run(on=engine())
    assert len(compiled) == 6


def script(cache: Path, **environment: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        cwd=ROOT,
        env={**os.environ, "GFCODE_CACHE_DIR": str(cache), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_processes_that_start_together_share_an_empty_cache(tmp_path: Path) -> None:
    processes = [script(tmp_path) for _ in range(4)]
    for process in processes:
        out, error = process.communicate()
        assert (out, error, process.returncode) == ("right\n", "", 0)
    names = [path.name for path in (tmp_path / "simd").iterdir()]
    assert len(names) == 2
    assert all(name.endswith(".bin") for name in names), "no temporary file is left"


def test_without_a_place_to_keep_them_one_warning_is_given(tmp_path: Path) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("not a directory")
    out, error = script(occupied).communicate()
    assert out == "right\n"
    assert error.count("Warning") == 1
    assert "GFCODE_CACHE_DIR" in error


def test_a_kernel_that_computes_nonsense_is_refused_and_not_kept(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = WordsKernel.emit
    monkeypatch.setattr(
        WordsKernel,
        "emit",
        lambda self, target: original(self, target).replace("xor <", "or <"),
    )
    broken = engine()
    reason = broken.refuses(PRODUCT)
    assert reason is not None
    assert "words1s gives wrong results on this CPU" in reason
    with pytest.raises(EngineUnavailableError, match="wrong results"):
        broken.prepare(PRODUCT)
    assert not [path for path in empty_cache.glob("*.bin") if b"words1s" in path.read_bytes()]
    monkeypatch.undo()
    assert engine().refuses(PRODUCT) is None


@pytest.mark.parametrize("constant", [1, 2, 11, 15])
def test_every_constant_is_tested_not_only_those_in_use(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch, constant: int
) -> None:
    def one_wrong(w: int, polynomial: int) -> tuple[Multiplier, ...]:
        programs = list(multipliers(w, polynomial))
        programs[constant - 1] = programs[constant % 15]
        return tuple(programs)

    product = Product(Matrix(GF(4), [[2, 3, 5], [9, 4, 7]]), Layout("packets", 4))
    assert engine().refuses(product) is None
    monkeypatch.setattr(constants, "multipliers", one_wrong)
    monkeypatch.setattr(compiler_module, "_source_digest", lambda: "another")
    reason = engine().refuses(product)
    assert reason is not None
    assert "constants4x13 gives wrong results" in reason


def test_a_product_tests_the_kernels_that_it_uses(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread may have compiled a kernel of another field, and not have tested it yet."""
    values = [[2, 3, 5], [9, 4, 7]]
    narrow, wide = (Product(Matrix(GF(w), values), Layout("packets", w)) for w in (4, 8))
    shared = engine()
    with monkeypatch.context() as another:
        another.setattr(SimdEngine, "test", lambda *_: None)
        assert shared.refuses(narrow) is None
    waiting = {kernel.name for kernel in shared._compiler.untested()}
    assert "constants4x13" in waiting
    assert shared.refuses(wide) is None
    assert {kernel.name for kernel in shared._compiler.untested()} == waiting - {"drive"}
    assert shared.refuses(Product(narrow.matrix, narrow.layout)) is None
    assert not shared._compiler.untested()


def test_an_old_llvmlite_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llvmlite.__version__", "0.44.0")
    with pytest.raises(EngineUnavailableError, match=r"llvmlite 0\.44\.0 is too old"):
        load()


def test_many_threads_compile_each_kernel_once(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = count_compilations(monkeypatch)
    shared = engine()
    errors: list[BaseException] = []
    start = threading.Barrier(8)

    def work() -> None:
        try:
            start.wait()
            run(on=shared)
        except BaseException as error:  # noqa: BLE001 - reported by the test
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert sorted(compiled) == ["drive", "words1s"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_goes_on(empty_cache: Path) -> None:
    shared = engine()
    run(on=shared)
    child = os.fork()
    if not child:
        status = 1
        try:
            run(on=shared)
            run(Product(Matrix(GF(8), [[3, 1], [7, 6], [9, 9]]), Layout("words", 8)), on=shared)
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


def test_a_fork_waits_for_a_kernel_that_is_being_compiled_or_tested() -> None:
    """A child must not begin in the middle of either: it would wait for a thread that it does not have."""
    held, release, forked = threading.Event(), threading.Event(), threading.Event()

    def hold() -> None:
        with COMPILING:
            held.set()
            release.wait(30)

    def fork() -> None:
        child = os.fork()
        if not child:
            os._exit(0 if COMPILING.acquire(timeout=10) else 1)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        forked.set()

    codes: list[int] = []
    threads = [threading.Thread(target=hold), threading.Thread(target=fork)]
    threads[0].start()
    assert held.wait(30)
    threads[1].start()
    assert not forked.wait(0.2)
    release.set()
    for thread in threads:
        thread.join()
    assert codes == [0]
