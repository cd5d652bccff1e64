"""The GPU benchmark, from end to end on the device that is this CPU: small, but every step of it."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from bench import bench_gpu
from bench.bench_gpu import Plan
from gfcode.errors import EngineUnavailableError
from gfcode.kernels.cuda.context import Context
from gfcode.kernels.cuda.engine import CudaEngine
from gfcode.params import Layout
from tests.gpu import shim
from tests.gpu.harness import Bytes
from tests.gpu.shim import ShimDevice

if TYPE_CHECKING:
    from gfcode.kernels.cuda.device import Device

TINY = Plan(
    data_bytes=12 << 10,
    block_bytes=1 << 10,
    runs=1,
    codes=((4, 2),),
    grouped=(5, 1 << 10),
    batches=(1, 3),
    batch_blocks=(1 << 10,),
    host_bytes=20 << 10,
)


class DeviceBytes(np.ndarray[Any, Any]):
    """An array that claims to be in device memory."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        strides = None if self.flags.c_contiguous else self.strides
        data = (self.__array_interface__["data"][0], False)
        return {"shape": self.shape, "typestr": "|u1", "data": data, "strides": strides, "version": 3}


class ShimMachine:
    """The host shim in place of a GPU, NumPy in place of CuPy."""

    def __init__(self) -> None:
        self._shim = ShimDevice(90)
        self.device: Device = self._shim
        self.engine = CudaEngine(Context(self.device))
        self.xp: Any = np

    def array(self, *shape: int) -> Any:
        return self._shim.device_array(np.zeros(shape, np.uint8)).array.view(DeviceBytes)

    def put(self, array: Any, values: Bytes) -> None:
        array[...] = values

    def get(self, array: Any) -> Bytes:
        self._shim.finish(0)
        return np.array(array)

    def address(self, array: Any) -> int:
        return int(array.__array_interface__["data"][0])

    def pinned(self, *shape: int) -> Bytes:
        return self._shim.pinned_array(*shape)

    def free_bytes(self) -> int:
        return 1 << 30

    def release(self) -> None:
        pass


@pytest.mark.skipif(shim.missing() is not None, reason=shim.missing() or "")
def test_every_step_runs_and_is_checked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(bench_gpu, "LAYOUTS", (Layout("packets", 4, 8),))
    results = bench_gpu.measure(ShimMachine(), TINY)
    names = [row["what"] for row in results.rows]
    for part in ("encode matrix", "encode horner", "encode program", "decode matrix", "plain matmul", "grouped decode"):
        assert any(part in name for name in names), part
    assert [row["not run"] for row in results.rows if row["what"] == "(4,2) packets decode horner"]
    assert sum("host to host" in name for name in names) == 2
    assert sum("encode 3 x" in name for name in names) == 2
    assert results.checked > 15
    assert results.left_out == []
    json.dumps(vars(results))
    assert "of copy" in capsys.readouterr().out


@pytest.mark.skipif(shim.missing() is not None, reason=shim.missing() or "")
def test_wrong_bytes_stop_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_gpu, "wanted", lambda *_: np.ones((1, 1, 1), np.uint8))
    with pytest.raises(SystemExit, match="WRONG BYTES: matrix"):
        bench_gpu.measure(ShimMachine(), TINY)


def test_what_time_does_not_allow_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_gpu, "ceilings", lambda *_: None)
    results = bench_gpu.measure(ShimMachine(), Plan(seconds=-1.0))
    assert results.rows == []
    assert len(results.left_out) == 4 * len(bench_gpu.CODES) + 3


def test_without_a_gpu_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def no_engine() -> None:
        raise EngineUnavailableError("cupy is not installed: pip install 'gfcode[cuda]'")

    monkeypatch.setattr(bench_gpu, "load", no_engine)
    assert bench_gpu.main([]) == 0
    assert bench_gpu.main(["--out", str(tmp_path / "results.json")]) == 1
    assert not (tmp_path / "results.json").exists()
    assert capsys.readouterr().out.count("not measured: cupy is not installed") == 2
