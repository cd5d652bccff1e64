"""One cache of compiled kernels for the whole run, and the devices that run them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gfcode.engine.diskcache import ENVIRONMENT_VARIABLE, DiskCache
from gfcode.kernels.cuda.context import Context
from gfcode.kernels.cuda.engine import CudaEngine
from gfcode.kernels.cuda.tuner import TuningStore
from tests.gpu import shim
from tests.gpu.harness import Bench


@pytest.fixture(scope="session", autouse=True)
def kernel_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep what is compiled for this run only, and out of the user's cache."""
    folder = tmp_path_factory.mktemp("kernels")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ENVIRONMENT_VARIABLE, str(folder))
        yield folder


@pytest.fixture(scope="session")
def benches(kernel_cache: Path) -> dict[int, Bench]:
    """Make an engine for each kind of device: one-bit MMA, eight-bit MMA, and that without asynchronous copies."""
    if reason := shim.missing():
        pytest.skip(reason)
    found = {}
    for capability in (75, 90, 100):
        device = shim.ShimDevice(capability)
        tuning = TuningStore(device.info.name, device.compiler, DiskCache("no-tuning"))
        found[capability] = Bench(device, CudaEngine(Context(device, tuning=tuning)))
    return found


@pytest.fixture
def device() -> shim.ShimDevice:
    """Return a device of the test's own."""
    return shim.ShimDevice(90)


@pytest.fixture
def engine(device: shim.ShimDevice) -> CudaEngine:
    """Return an engine on it."""
    return CudaEngine(Context(device))
