"""Where the engine cannot be had: each reason in its own words, and nothing else is disturbed."""

import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

from gfcode.engine import registry
from gfcode.errors import EngineUnavailableError
from gfcode.kernels.cuda import engine
from tests.gpu.fake_cupy import FakeRuntimeError, fake_cupy


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (None, r"cupy is not installed: pip install 'gfcode\[cuda\]'"),
        (
            fake_cupy(count=FakeRuntimeError("cudaErrorInsufficientDriver: version is insufficient\nand more")),
            r"no NVIDIA driver is loaded, .* \(cudaErrorInsufficientDriver: version is insufficient\)$",
        ),
        (
            fake_cupy(count=FakeRuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")),
            "there is no NVIDIA GPU that this process may use",
        ),
        (fake_cupy(count=0), "there is no NVIDIA GPU that this process may use"),
        (fake_cupy(capability=(7, 0)), r"Some GPU has compute capability 7\.0; the engine needs 7\.5 or newer"),
        (
            fake_cupy(compiler=RuntimeError("no libnvrtc.so.12\nanywhere")),
            r"NVRTC, CUDA's compiler, is not installed: pip install 'gfcode\[cuda\]' \(no libnvrtc\.so\.12\)",
        ),
        (
            fake_cupy(hip=True, count=FakeRuntimeError("hipErrorNoDevice: no ROCm-capable device is detected")),
            r"there is no AMD GPU that this process may use \(hipErrorNoDevice: no ROCm-capable device",
        ),
        (fake_cupy(hip=True, count=FakeRuntimeError("hipErrorInsufficientDriver")), "no AMD driver is loaded"),
        (fake_cupy(hip=True, count=0), "there is no AMD GPU that this process may use"),
        (
            fake_cupy(hip=True, compiler=RuntimeError("no libhiprtc.so")),
            r"HIPRTC, ROCm's compiler, is not installed: install it with ROCm \(no libhiprtc\.so\)",
        ),
    ],
)
def test_every_reason_has_its_line(monkeypatch: pytest.MonkeyPatch, module: ModuleType | None, reason: str) -> None:
    monkeypatch.setattr(engine, "_engines", {})
    monkeypatch.setitem(sys.modules, "cupy", module)
    with pytest.raises(EngineUnavailableError, match=reason) as caught:
        engine.load()
    assert "\n" not in str(caught.value)


def test_broken_cupy_is_a_reason_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "cupy.py").write_text("raise ImportError('libcudart.so.12: cannot open shared object file')\n")
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(EngineUnavailableError, match=r"cupy cannot be imported: libcudart\.so\.12: cannot open"):
        engine.load()


def test_a_device_is_opened_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_engines", {})
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy())
    loaded = engine.load()
    assert loaded is engine.load()
    assert loaded.name == "cuda"
    assert getattr(loaded, "detail", "") == "Some GPU, compute capability 9.0, NVRTC 12.9"


def test_registry_and_other_engines_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_loaded", {})
    monkeypatch.setattr(engine, "_engines", {})
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(EngineUnavailableError, match="engine 'cuda' cannot be used here: cupy is not installed"):
        registry.get_engine("cuda")
    (found,) = (status for status in registry.status() if status.name == "cuda")
    assert not found.usable
    assert found.detail.startswith("cupy is not installed")
    assert registry.get_engine("numpy").name == "numpy"


def test_import_of_gfcode_loads_no_cupy() -> None:
    code = "import sys, gfcode, gfcode.kernels.cuda, gfcode.kernels.cuda.engine; assert 'cupy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
