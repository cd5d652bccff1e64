"""What can be checked of the CuPy side without a GPU: that all it calls exists, and that its NVRTC compiles."""

import ctypes
import importlib
import inspect
import re
from typing import TYPE_CHECKING, Any

import pytest

from bench import gpu_machine
from gfcode.errors import DeviceError
from gfcode.kernels.cuda import cupy_device
from gfcode.kernels.cuda.cupy_device import CupyDevice
from gfcode.kernels.cuda.launch import Build, DeviceInfo
from tests.gpu.kernel_table import FEW, launch_of

if TYPE_CHECKING:
    from collections.abc import Callable

cupy: Any = pytest.importorskip("cupy", reason="cupy is not installed: pip install 'gfcode[cuda]'")


@pytest.fixture
def device() -> CupyDevice:
    try:
        version = cupy.cuda.nvrtc.getVersion()
    except RuntimeError as error:
        pytest.skip(f"cupy finds no NVRTC: {error}")
    made = CupyDevice.__new__(CupyDevice)  # without asking the driver, which may not be there
    made._cupy, made._runtime, made.number = cupy, cupy.cuda.runtime, 0
    made.info = DeviceInfo("no device", 90, 132, 228 << 10)
    made.compiler = f"NVRTC {version[0]}.{version[1]}"
    return made


def test_every_name_that_is_called_exists() -> None:
    source = inspect.getsource(cupy_device)
    for name in set(re.findall(r"_runtime\.(\w+)", source)) | set(re.findall(r"\bruntime\.(\w+)", source)):
        assert hasattr(cupy.cuda.runtime, name), name
    for name in set(re.findall(r"cupy\.cuda\.(\w+)", source)) | set(re.findall(r"\bcuda\.(\w+)\(", source)):
        assert hasattr(cupy.cuda, name), name
    for name in re.findall(r"\bnvrtc\.(\w+)", source):
        assert hasattr(cupy.cuda.nvrtc, name), name
    for name in ("launchKernel", "CUDADriverError"):
        assert hasattr(cupy.cuda.driver, name), name
    assert hasattr(cupy.cuda.function, "Module")
    assert hasattr(cupy.cuda.memory, "OutOfMemoryError")
    assert hasattr(cupy, "from_dlpack")


def test_every_name_that_the_benchmark_calls_exists() -> None:
    source = inspect.getsource(gpu_machine)
    for name in set(re.findall(r"self\.xp\.([\w.]+)", source)):
        found = cupy
        for part in name.split("."):
            assert hasattr(found, part), name
            found = getattr(found, part)
    for name in ("set", "fill", "data"):
        assert hasattr(cupy.ndarray, name), name
    assert hasattr(importlib.import_module("cupy.cuda.device"), "get_cublas_handle")
    for name in ("unpackbits", "packbits", "matmul", "asarray", "ascontiguousarray"):
        assert hasattr(cupy, name), name
    try:
        cublas = importlib.import_module("cupy.cuda.cublas")
    except ImportError:
        return  # the library is not installed: the benchmark leaves it out
    assert hasattr(cublas, "gemmEx")


def test_driver_calls_take_what_they_are_given() -> None:
    """Without a driver each call fails in the driver, not for its arguments."""
    pointers = (ctypes.c_void_p * 1)(0)
    runtime = cupy.cuda.runtime
    if runtime.driverGetVersion() != 0:
        pytest.skip("there is a driver: the GPU tests call it in earnest")
    calls: list[Callable[[], object]] = [
        lambda: runtime.memcpyAsync(0, 0, 1, 4, 0),
        lambda: runtime.memcpy2DAsync(0, 1, 0, 1, 1, 1, 4, 0),
        lambda: runtime.eventRecord(0, 0),
        lambda: runtime.streamWaitEvent(0, 0),
        lambda: runtime.eventSynchronize(0),
        lambda: runtime.eventElapsedTime(0, 0),
        lambda: runtime.pointerGetAttributes(0),
        lambda: cupy.cuda.driver.launchKernel(0, 1, 1, 1, 32, 1, 1, 0, 0, ctypes.addressof(pointers), 0),
    ]
    for call in calls:
        with pytest.raises(RuntimeError):  # CuPy's own errors are its kinds; a wrong argument is a TypeError
            call()


@pytest.mark.parametrize("case", [FEW[0], FEW[6]], ids=str)
def test_kernels_compile_through_cupy(device: CupyDevice, case: Any) -> None:
    image = device.compile(launch_of(case, 90).build)
    assert image[:4] == b"\x7fELF"


def test_complaints_name_the_line(device: CupyDevice) -> None:
    defines = launch_of(FEW[-1], 90).build.defines
    broken = Build("xor_program.cu", defines, "DEVICE void apply_program(const Lane &lane) { nonsense; }\n")
    with pytest.raises(DeviceError, match=r'cannot compile xor_program\.cu: program\.cuh\(1\): error: .*"nonsense"'):
        device.compile(broken)


def test_a_failing_driver_is_a_device_error(device: CupyDevice) -> None:
    if cupy.cuda.runtime.driverGetVersion() != 0:
        pytest.skip("there is a driver")
    with pytest.raises(
        DeviceError, match="no device: asking for the current stream failed: cudaErrorInsufficientDriver"
    ):
        device.current_stream()
    with pytest.raises(DeviceError, match="no device: allocating memory failed"):
        device.allocate(1024, 0)
    with pytest.raises(DeviceError, match="no device: a copy failed"):
        device.copy(0, 0, 1, 0)
