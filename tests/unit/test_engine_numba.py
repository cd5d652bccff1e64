"""The numba engine as a citizen of its host: its cache, its warnings, the GIL, and what it refuses."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from gfcode.engine.buffers import allocate
from gfcode.engine.diskcache import ENVIRONMENT_VARIABLE
from gfcode.engine.protocol import Blocks, Product
from gfcode.engine.registry import get_engine
from gfcode.errors import EngineUnavailableError
from gfcode.gf import GF
from gfcode.matrix.dense import Matrix
from gfcode.params import Layout

# Runs a product, checks it against the oracle, and prints how many kernels had to be compiled.
PROGRAM = """
import sys, warnings
import numpy as np
warnings.simplefilter("always")
from gfcode.engine.protocol import Blocks, Product
from gfcode.engine.registry import get_engine
from gfcode.gf import GF
from gfcode.matrix.dense import Matrix
from gfcode.params import Layout

assert "numba" not in sys.modules
data = np.random.default_rng(1).integers(0, 256, (1, 3, 1024), dtype=np.uint8)
results = {}
layout = Layout("words", 8)
for name in ("numba", "numpy"):
    product = Product(Matrix(GF(8), [[1, 2, 3], [7, 0, 200]]), layout)
    results[name] = np.zeros((1, 2, 1024), np.uint8)
    get_engine(name).prepare(product)(Blocks.of_array(data), Blocks.of_array(results[name]))
assert (results["numba"] == results["numpy"]).all()
from gfcode.kernels.portable.kernels import words_kernel
print(sum(words_kernel(8).stats.cache_misses.values()))
"""


def run(cache: Path | str, **environment: str) -> tuple[int, int]:
    """Run the program with a cache directory; return how many kernels it compiled and how often it warned."""
    environment = {**os.environ, ENVIRONMENT_VARIABLE: str(cache), **environment}
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert set(result.stderr.split("\n")) >= {""}
    warnings = [line for line in result.stderr.splitlines() if "Warning" in line]
    assert all("cannot be kept on disk" in line for line in warnings), result.stderr
    return int(result.stdout), len(warnings)


def test_kernels_are_compiled_once_and_garbage_is_compiled_anew(tmp_path: Path) -> None:
    cache = tmp_path / "not" / "there"
    assert run(cache, NUMBA_CACHE_DIR=str(tmp_path / "numba")) == (1, 0)
    assert not (tmp_path / "numba").exists()
    (entry,) = (path for path in cache.rglob("*") if path.is_file())
    assert run(cache) == (0, 0)
    entry.write_bytes(entry.read_bytes()[:-1000] + os.urandom(1000))
    assert run(cache) == (1, 0)


# Checks the products of the layouts that are named, such as words8, at lengths that take each function of a kernel.
LAYOUTS_PROGRAM = """
import sys
import numpy as np
from gfcode.engine.protocol import Blocks, Product
from gfcode.engine.registry import get_engine
from gfcode.gf import GF
from gfcode.matrix.dense import Matrix
from gfcode.params import Layout

for text in sys.argv[1:]:
    name, w = text.rstrip("0123456789"), int(text.lstrip("packetswords"))
    layout = Layout(name, w)
    product = Product(Matrix(GF(w), [[1, 2, 3], [7, 0, 11]]), layout)
    for strips in (1, 20, 300):
        data = np.random.default_rng(1).integers(0, 256, (1, 3, strips * layout.strip_bytes), dtype=np.uint8)
        results = [np.zeros((1, 2, data.shape[2]), np.uint8) for _ in range(2)]
        for engine, result in zip(("numba", "numpy"), results):
            get_engine(engine).prepare(product)(Blocks.of_array(data), Blocks.of_array(result))
        assert (results[0] == results[1]).all(), (text, strips)
"""


def test_kernels_kept_by_several_processes_work_together_in_one(tmp_path: Path) -> None:
    """Machine code from several processes, each of which compiled its kernel first, meets in one by its names."""
    environment = {**os.environ, ENVIRONMENT_VARIABLE: str(tmp_path)}
    layouts = ["words8", "words4", "packets8"]
    for texts in ([layouts[0]], [layouts[1]], [layouts[2]], layouts, layouts[::-1]):
        subprocess.run([sys.executable, "-c", LAYOUTS_PROGRAM, *texts], env=environment, check=True)


def test_an_unusable_cache_directory_warns_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert run(tmp_path / "file") == (1, 1)


def test_an_entry_that_numba_cannot_use_is_compiled_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gfcode.kernels.portable.compile import _KernelCache

    class Codegen:
        @staticmethod
        def magic_tuple() -> tuple[str, ...]:
            return ("a", "machine")

    class Target:
        @staticmethod
        def refresh() -> None: ...

        @staticmethod
        def codegen() -> Codegen:
            return Codegen()

    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path))
    cache = _KernelCache("kernel")
    for content in (b"no pickle", b"\x80\x04N."):  # the second is a pickled None
        cache._disk.store(cache._key("signature", Codegen()), content)
        assert cache.load_overload("signature", Target()) is None


def test_nothing_of_numba_is_configured_or_written_beside_the_source() -> None:
    import numba

    before = dict(vars(numba.config))
    from gfcode.kernels.portable import kernels

    kernels.packets_kernel()
    kernels.words_kernel(8)
    assert vars(numba.config) == before
    source = Path(str(kernels.__file__)).parent
    assert not [path for path in source.rglob("*") if path.suffix in {".nbi", ".nbc"}]


def test_kernels_start_no_threads_of_numba() -> None:
    code = (
        "import numpy as np; from gfcode import Codec; import threading, sys;"
        "Codec(4, 2, engine='numba').encode(np.zeros((4, 5120), np.uint8));"
        "assert threading.active_count() == 1;"
        "assert not [name for name in sys.modules if 'workqueue' in name or 'omppool' in name or 'tbbpool' in name]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_other_threads_run_while_a_kernel_does() -> None:
    product = Product(Matrix(GF(8), np.full((8, 4), 255)), Layout("words", 8))
    operator = get_engine("numba").prepare(product)
    data, result = allocate(64, 4, 1 << 16), allocate(64, 8, 1 << 16)
    data[...] = 1
    inputs, outputs = Blocks.of_array(data), Blocks.of_array(result, writable=True)
    operator(inputs, outputs)  # numba's own work of a first call may free the GIL
    progress = 0

    def progress_of_others() -> int:
        """Count what this thread does while another is in the kernel."""
        nonlocal progress
        seen: list[int] = []

        def work() -> None:
            seen.append(progress)
            operator(inputs, outputs)
            seen.append(progress)

        thread = threading.Thread(target=work)
        thread.start()
        while len(seen) < 2:
            progress += 1
            if progress % 1000 == 0:
                threading.Event().wait(0.0001)  # lets the other thread begin and end
        thread.join()
        return seen[1] - seen[0]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(100)  # no thread is made to give up the GIL: it passes only where it is freed
    try:
        assert any(progress_of_others() for _ in range(50))  # one may pass while this thread gets no processor
    finally:
        sys.setswitchinterval(interval)


def test_wide_words_are_refused_on_a_big_endian_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = get_engine("numba")
    wide = Product(Matrix(GF(16), [[1]]), Layout("words", 16))
    assert engine.refuses(wide) is None
    monkeypatch.setattr(sys, "byteorder", "big")
    assert "little-endian" in str(engine.refuses(wide))
    with pytest.raises(EngineUnavailableError, match="little-endian"):
        engine.prepare(wide)
    assert engine.refuses(Product(Matrix(GF(8), [[1]]), Layout("words", 8))) is None
    assert engine.refuses(Product(Matrix(GF(16), [[1]]), Layout("packets", 16))) is None


def test_without_numba_the_engine_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from gfcode.kernels.portable import engine

    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(EngineUnavailableError, match=r"numba cannot be imported .*: pip install numba"):
        engine.load()
