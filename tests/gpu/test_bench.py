"""The GPU benchmark, from end to end on the device that is this CPU: small, but every step of it.

The benchmark's own way to CuPy is run as well, over a module in CuPy's place that is NumPy with the shim's memory.
"""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench import bench_gpu, gpu_checks
from bench.bench_gpu import Plan, Results
from bench.gpu_machine import GEMMS, CupyMachine
from gfcode.engine import registry
from gfcode.errors import DeviceError, EngineUnavailableError
from gfcode.kernels.cuda import operator
from gfcode.kernels.cuda.context import Context
from gfcode.kernels.cuda.engine import CudaEngine
from gfcode.kernels.cuda.tuner import candidates
from gfcode.params import Layout
from tests.gpu import shim
from tests.gpu.shim import ShimDevice

needs_shim = pytest.mark.skipif(shim.missing() is not None, reason=shim.missing() or "")

TINY = Plan(
    data_bytes=12 << 10,
    block_bytes=1 << 10,
    runs=1,
    codes=((4, 2),),
    usual=(4, 2),
    grouped=(5, 1 << 10),
    batches=(1, 3),
    batch_blocks=(1 << 10,),
    host_bytes=12 << 10,
)


class DeviceBytes(np.ndarray[Any, Any]):
    """An array with what the benchmark asks of CuPy's."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        strides = None if self.flags.c_contiguous else self.strides
        data = (self.__array_interface__["data"][0], False)
        return {"shape": self.shape, "typestr": "|u1", "data": data, "strides": strides, "version": 3}

    @property
    def data(self) -> Any:
        return SimpleNamespace(ptr=self.__array_interface__["data"][0])

    def set(self, values: Any) -> None:
        self[...] = values


class NumpyDevice(ShimDevice):
    """A device whose arrays are those of the module below."""

    def new_array(self, shape: tuple[int, ...]) -> object:
        return self.device_array(np.zeros(shape, np.uint8)).array.view(DeviceBytes)


class FakeCupy:
    """CuPy's names over NumPy's functions and the shim's memory."""

    def __init__(self, device: ShimDevice) -> None:
        self._device = device
        self.released = 0
        self.gemms: list[tuple[Any, ...]] = []
        self.cuda = SimpleNamespace(
            get_current_stream=lambda: SimpleNamespace(synchronize=lambda: device.finish(0)),
            alloc_pinned_memory=device.pinned_array,
            runtime=SimpleNamespace(memGetInfo=lambda: (1 << 30, 1 << 31)),
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def empty(self, shape: tuple[int, ...], _dtype: Any) -> Any:
        return self._device.new_array(shape)

    def asnumpy(self, array: Any) -> Any:
        self._device.finish(0)
        return np.array(array)

    def get_default_memory_pool(self) -> Any:
        return SimpleNamespace(free_all_blocks=self._release)

    get_default_pinned_memory_pool = get_default_memory_pool

    def _release(self) -> None:
        self.released += 1

    def gemm(self, *arguments: int) -> None:
        assert len(arguments) == 19
        assert all(type(argument) is int for argument in arguments)
        self.gemms.append(arguments)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> CupyMachine:
    device = NumpyDevice(90)
    engine = CudaEngine(Context(device))
    cupy = FakeCupy(device)
    monkeypatch.setitem(registry._loaded, "cuda", engine)
    for name, module in {
        "cupy": cupy,
        "cupy.cuda.cublas": SimpleNamespace(gemmEx=cupy.gemm),
        "cupy.cuda.device": SimpleNamespace(get_cublas_handle=lambda: 3),
    }.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(bench_gpu, "LAYOUTS", (Layout("packets", 4, 8),))
    return CupyMachine(engine)


@needs_shim
def test_every_step_runs_and_is_checked(
    machine: CupyMachine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(bench_gpu, "PLAN", TINY)
    monkeypatch.setattr(operator, "candidates", lambda *arguments: candidates(*arguments)[:2])
    assert bench_gpu.main(["--out", str(tmp_path / "results.json"), "--seconds", "300"]) == 0
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["device"] == machine.engine.detail
    assert list(results["ceilings"]) == ["copy GB/s", *(f"{kind} matmul Tera-operations/s" for kind in GEMMS),
                                         "to device GB/s", "from device GB/s"]  # fmt: skip
    names = [row["what"] for row in results["rows"]]
    for part in ("encode matrix", "encode horner", "encode program", "decode matrix", "plain matmul", "grouped decode",
                 "encode 1 x 1024", "encode 3 x 1024", "host to host, page-locked", "host to host, ordinary",
                 "matrix tuned"):  # fmt: skip
        assert any(part in name for name in names), part
    assert all({"not run"} <= row.keys() or row["of copy"] > 0 for row in results["rows"])
    assert [row["not run"] for row in results["rows"] if row["what"] == "(4,2) packets decode horner"]
    assert sum("tuning" in row for row in results["rows"]) >= 2
    assert results["checked"] > 25
    assert results["left_out"] == []
    assert results["failed"] == ""
    printed = capsys.readouterr()
    assert "of copy" in printed.out
    assert "products checked against the oracle" in printed.out
    assert printed.err == ""
    cupy: Any = machine.xp
    assert cupy.released >= 10
    assert [arguments[8] for arguments in cupy.gemms[::2]] == [types.operand for types in GEMMS.values()]


@needs_shim
@pytest.mark.parametrize("part", ["verbs of codecs", "kernels"])
def test_wrong_bytes_stop_it(machine: CupyMachine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, part: str) -> None:
    """What was measured until then is written all the same."""
    if part == "kernels":
        monkeypatch.setattr(gpu_checks, "wanted", lambda *_: np.ones((1, 1, 1), np.uint8))
    else:
        monkeypatch.setattr(machine.engine, "multiply", lambda *_: None)
    message = "WRONG BYTES: matrix" if part == "kernels" else "WRONG BYTES: a codec's verbs"
    with pytest.raises(SystemExit, match=message):
        bench_gpu.run(machine, TINY, tmp_path / "results.json")
    results = json.loads((tmp_path / "results.json").read_text())
    assert message in results["failed"]
    assert bool(results["ceilings"]) == (part == "kernels")


def test_what_time_does_not_allow_is_named(machine: CupyMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_gpu, "LAYOUTS", (Layout("words", 8),))  # which all codes have room in
    results = Results("none")
    bench_gpu.measure(machine, Plan(seconds=-1.0), results)
    assert results.rows == []
    codes, batches = len(bench_gpu.CODES), len(Plan().batches) * len(Plan().batch_blocks)
    assert len(results.left_out) == 2 * codes + batches + 5
    assert all(name.endswith(": for want of time") for name in results.left_out)


@needs_shim
def test_what_the_machine_does_not_have_is_named(machine: CupyMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    """No cuBLAS, and no room: the rest is measured."""

    def no_gemm(*_: object) -> None:
        raise RuntimeError("CUBLAS_STATUS_NOT_SUPPORTED\nand more")

    def no_room(*_: object) -> None:
        raise MemoryError("out of memory")

    monkeypatch.setattr(machine, "gemm", no_gemm)
    monkeypatch.setattr(bench_gpu, "multiply_bits", no_room)
    monkeypatch.setattr(bench_gpu, "measure_host", no_room)
    monkeypatch.setattr(machine, "free_bytes", lambda: 20_000)
    results = Results("none")
    bench_gpu.measure(machine, TINY, results)
    assert results.left_out == [
        *(f"matmul of {kind}: CUBLAS_STATUS_NOT_SUPPORTED" for kind in GEMMS),
        *(f"(4,2) packets {what} plain matmul: out of memory" for what in ("encode", "decode")),
        "host to host: out of memory",
        "a batch of 3 x 1024: the GPU has no room",
    ]
    assert any("grouped decode" in row["what"] for row in results.rows)


@needs_shim
def test_a_failing_device_leaves_what_was_measured(
    machine: CupyMachine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def fail(*_: object) -> None:
        raise DeviceError("an illegal address")

    monkeypatch.setattr(bench_gpu, "measure_grouped", fail)
    assert bench_gpu.run(machine, TINY, tmp_path / "results.json") == 1
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["failed"] == "an illegal address"
    assert results["rows"]
    assert "failed: an illegal address" in capsys.readouterr().err


def test_without_a_gpu_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    reason = EngineUnavailableError("cupy is not installed: pip install 'gfcode[cuda]'")
    monkeypatch.setitem(registry._loaded, "cuda", reason)
    assert bench_gpu.main([]) == 0
    assert bench_gpu.main(["--out", str(tmp_path / "results.json")]) == 1
    assert not (tmp_path / "results.json").exists()
    assert capsys.readouterr().out.count("cupy is not installed") == 2
