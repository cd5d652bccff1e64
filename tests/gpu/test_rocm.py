"""AMD's GPUs through CuPy for ROCm: the XOR kernels are compiled and run as they are there, the others are gated."""

import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gfcode.codec import Codec
from gfcode.engine import registry
from gfcode.engine.arrays import is_device_array
from gfcode.engine.protocol import Product
from gfcode.errors import BlockError, DeviceError, EngineUnavailableError
from gfcode.gf import GF
from gfcode.kernels.cuda import engine as engine_module
from gfcode.kernels.cuda.context import Context
from gfcode.kernels.cuda.cupy_device import CupyDevice
from gfcode.kernels.cuda.engine import CudaEngine, KernelName
from gfcode.kernels.cuda.launch import DeviceInfo, bit_search_launch
from gfcode.kernels.cuda.source import headers_for, kernel_source, options_for
from gfcode.matrix.generator import parity_matrix
from tests.gpu import hiprtc, shim
from tests.gpu.fake_cupy import FakeArray, fake_cupy
from tests.gpu.harness import PRODUCT, Bench, Place, layout_of, random_bytes, random_matrix
from tests.gpu.kernel_table import FEW, Case, launch_of
from tests.gpu.shim import ShimDevice
from tests.gpu.test_codec_on_device import CodecCheck, whole_of

MI250 = DeviceInfo("MI250", 90, 104, 64 << 10, "gfx90a")
XOR_CASES = [case for case in FEW if case.kind != "matrix"]
needs_shim = pytest.mark.skipif(shim.missing() is not None, reason=shim.missing() or "")


# The sources


@pytest.mark.parametrize("name", ["xor_program.cu", "xor_horner.cu", "bit_search.cu"])
def test_sources_have_no_ptx_and_do_not_mind_the_size_of_a_wavefront(name: str) -> None:
    """No assembly but where GFCODE_NO_PTX is not defined, and nothing that crosses lanes or waits for them."""
    build = bit_search_launch(1, 512, MI250).build if name == "bit_search.cu" else launch_of(XOR_CASES[0], 90).build
    texts = {**headers_for(build), name: kernel_source(build)}
    used, found = [name], set()
    while used:
        text = texts[(one := used.pop())]
        found.add(one)
        used += [header for header in re.findall(r'#include "(.*?)"', text) if header in texts and header not in found]
    assert not found & {"feed.cuh", "lane_share.cuh", "operands_b1.cuh", "operands_u8.cuh"}, "of matrix products"
    for one in found:
        text = texts[one]
        if one == "primitives.cuh":
            start = text.index("#if defined(GFCODE_NO_PTX)")
            text = text[start : text.index("#elif", start)]
            assert "DEVICE" in text
        assert not re.search(r"\basm\b|__shfl|__ballot|__any|__all|__syncwarp|__syncthreads|mma_|copy_async", text), one


@pytest.mark.skipif(hiprtc.missing() is not None, reason=hiprtc.missing() or "")
@pytest.mark.parametrize(
    ("case", "gfx"),  # wavefronts of 64 lanes and of 32
    [*((case, "gfx90a") for case in (*XOR_CASES, None)), (XOR_CASES[0], "gfx1030"), (XOR_CASES[-1], "gfx1030")],
    ids=lambda value: str(value or "bit search"),
)
def test_kernels_compile_for_amd(case: Case | None, gfx: str) -> None:
    info = DeviceInfo("AMD", 90, 104, 64 << 10, gfx)
    build = bit_search_launch(1, 512, info).build if case is None else launch_of(case, 90, info).build
    options = (f"--offload-arch={gfx}", *options_for(build, info))
    image = hiprtc.compile_code(kernel_source(build), headers_for(build), options)
    assert image[:4] == b"\x7fELF"
    assert build.kernel.encode() in image
    # Scalar registers that are too many are kept in lanes of vector registers, which is no memory.
    assert hiprtc.note(image, "vgpr_spill_count") == 0
    assert hiprtc.note(image, "private_segment_fixed_size") == 0, "nothing lies in scratch memory"
    assert hiprtc.note(image, "wavefront_size") == (64 if gfx == "gfx90a" else 32)
    assert 0 < hiprtc.note(image, "vgpr_count") <= 256


# The kernels, as they are compiled there, run on this CPU

ALIGNED, ODD, TABLE = Place(gap=256), Place(gap=3, offset=5), Place(gap=256, table=True)
CASES: list[tuple[KernelName, str, int, int, int, Place]] = [
    ("program", "packets", 8, 5, 2, ALIGNED),
    ("program", "words", 8, 3, 2, ODD),
    ("program", "words", 16, 2, 1, TABLE),
    ("horner", "packets", 4, 5, 2, ODD),
    ("horner", "words", 8, 6, 2, ALIGNED),
    ("horner", "words", 16, 3, 1, ODD),
]


@pytest.fixture(scope="module")
def amd(kernel_cache: object) -> Bench:
    if reason := shim.missing():
        pytest.skip(reason)
    device = ShimDevice(gfx="gfx90a")
    return Bench(device, CudaEngine(Context(device)))


@pytest.mark.parametrize(("kernel", "layout", "w", "k", "m", "place"), CASES)
def test_products_equal_the_oracle(
    amd: Bench, kernel: KernelName, layout: str, w: int, k: int, m: int, place: Place
) -> None:
    rng = np.random.default_rng([w, k, m])
    matrix = parity_matrix("powers", GF(w), k, m) if kernel == "horner" else random_matrix(rng, w, m, k)
    product = Product(matrix, layout_of(layout, w))
    strip = product.layout.strip_bytes
    shapes = [(2, 3 * strip), (1, 9 * strip)] if layout == "packets" else [(3, strip), (2, 130 * strip), (1, 1030)]
    amd.check(product, kernel, shapes, place, rng)


def test_codecs_work_on_device_arrays(amd: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._loaded, "cuda", amd.engine)
    codec: Any = Codec(3, 2, matrix="cauchy", layout="words", engine="numpy")
    assert CodecCheck(amd.device, codec, whole_of(codec=codec)).all()
    kernels = {launch.build.kernel for launch, _ in amd.device.launches}
    assert kernels <= {"xor_program", "xor_horner", "bit_search"}


def test_the_matrix_product_is_gated(amd: Bench) -> None:
    engine = amd.engine
    assert engine.detail.startswith("host shim as gfx90a, gfx90a, ")
    assert engine.refuses(PRODUCT) is None
    assert engine.prepare(PRODUCT).kernel == "program"
    assert engine.prepare(Product(parity_matrix("powers", GF(8), 10, 4), PRODUCT.layout)).kernel == "horner"
    gate = "^the matrix-product kernel needs an NVIDIA GPU's tensor cores; use the XOR kernels$"
    with pytest.raises(EngineUnavailableError, match=gate):
        engine.prepare(PRODUCT, "matrix")
    with pytest.raises(EngineUnavailableError, match=gate):
        engine.prepare_grouped([PRODUCT.matrix] * 2, PRODUCT.layout)
    wide = Product(random_matrix(np.random.default_rng(3), 8, 30, 40), layout_of("packets", 8))
    reason = engine.refuses(wide)
    assert reason == (
        "a 30 × 40 matrix is too large for the XOR kernels, and the matrix-product kernel needs an NVIDIA GPU's "
        "tensor cores; use an engine of the CPU"
    )
    with pytest.raises(EngineUnavailableError, match=re.escape(reason)):
        engine.prepare(wide)


# CuPy for ROCm


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Any:
    module = fake_cupy(hip=True)
    monkeypatch.setattr(engine_module, "_engines", {})
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


def test_a_device_of_amd_is_opened(cupy: Any) -> None:
    loaded: Any = engine_module.load()
    assert loaded.device.info == DeviceInfo("Some GPU", 90, 4, 1 << 16, "gfx90a")
    assert loaded.detail == "Some GPU, gfx90a, HIPRTC 50221153"
    assert engine_module.load() is loaded


def test_hiprtc_compiles_for_the_device(cupy: Any) -> None:
    device, nvrtc = CupyDevice.open(), cupy.cuda.nvrtc.compiler
    build = launch_of(XOR_CASES[0], 90, device.info).build
    assert device.compile(build) == b"\x7fELF code for AMD"
    assert nvrtc.device == 0, "it compiles for the current device"
    assert not [option for option in nvrtc.options if "arch" in option]
    assert "-DGFCODE_NO_PTX=1" in nvrtc.options
    assert "-DMIN_BLOCKS=1" in nvrtc.options
    assert b"program.cuh" in nvrtc.headers
    nvrtc.fails = True
    with pytest.raises(DeviceError, match=r"HIPRTC 50221153 cannot compile xor_horner\.cu: program\.cuh:1:3: error"):
        device.compile(build)


def test_addresses_are_looked_up_as_hip_tells_them(cupy: Any) -> None:
    device = CupyDevice.open()
    assert [device.locate(address).kind for address in (50, 150, 250)] == ["host", "pinned", "device"]


def _raise(error: Exception) -> Callable[[object], None]:
    def fail(_array: object) -> None:
        raise error

    return fail


def test_arrays_of_cupy_for_rocm_are_device_arrays(cupy: Any) -> None:
    device = CupyDevice.open()
    array = FakeArray(4096, (2, 3), (256, 1))
    assert is_device_array(array)
    assert device.from_dlpack(array) is array
    view = device.interface_of(array)
    for error in (BufferError("on another device"), TypeError("no such type")):
        cupy.from_dlpack = _raise(error)
        with pytest.raises(BlockError, match=f"a list cannot be taken over by DLPack: {error}"):
            device.from_dlpack([])
    assert (view["data"], view["shape"], view["strides"], view["typestr"]) == ((4096, False), (2, 3), (256, 1), "|u1")


@needs_shim
def test_host_blocks_stream_through_an_amd_gpu(amd: Bench) -> None:
    codec = Codec(4, 2, matrix="powers", layout="words", engine=amd.engine)
    data = random_bytes(3, 4, 100)
    assert np.array_equal(codec.encode(data), Codec(4, 2, matrix="powers", layout="words", engine="numpy").encode(data))
