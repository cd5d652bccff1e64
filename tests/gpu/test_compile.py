"""Every kernel compiles for every kind of GPU to the instructions meant, within its registers."""

import re
from pathlib import Path

import pytest

from gfcode.kernels.cuda.launch import Build, bit_search_launch
from gfcode.kernels.cuda.source import headers_for, kernel_source, options_for
from tests.gpu import nvrtc
from tests.gpu.harness import SLOW
from tests.gpu.kernel_table import ALL, ARCHITECTURES, FEW, Case, device_info, launch_of, measure, row

pytestmark = pytest.mark.skipif(nvrtc.missing() is not None, reason=nvrtc.missing() or "")

TABLE = Path(__file__).parents[2] / "docs" / "gpu-kernels.md"


def _committed(case: Case, capability: int) -> str:
    head = f"| {case} | sm_{capability} |"
    (line,) = (line for line in TABLE.read_text().splitlines() if line.startswith(head))
    return line


#: Kernels, layouts and widths that are not among the few, each for one kind of GPU in turn.
OTHERS = [
    (case, ARCHITECTURES[i % len(ARCHITECTURES)])
    for i, case in enumerate(
        [
            Case("matrix", "words", 4, 10, 4),
            Case("matrix", "packets", 16, 4, 2),
            *(Case("horner", layout, w, 10, 2) for layout in ("packets", "words") for w in (4, 16)),
            Case("program", "packets", 4, 10, 4),
        ]
    )
]


@pytest.mark.parametrize(
    ("case", "capability"),
    [(case, capability) for case in (ALL if SLOW else FEW) for capability in ARCHITECTURES] + ([] if SLOW else OTHERS),
    ids=str,
)
def test_kernel_compiles_to_what_is_meant(case: Case, capability: int) -> None:
    launch, usage = measure(case, capability)
    assert usage.local == 0, "registers are spilled"
    allowed = min(255, 65536 // (launch.build.define("MIN_BLOCKS") * launch.threads))
    assert usage.registers <= allowed
    assert usage.shared + launch.shared_bytes <= 48 << 10
    if case.kind == "matrix":
        one_bit = 80 <= capability < 100
        assert (usage.count("BMMA") > 0, usage.count("IMMA") > 0) == (one_bit, not one_bit)
        assert (usage.count("LDGSTS") > 0) == (launch.build.define("STAGES") > 1)
        assert usage.count("PRMT") > 0
    else:
        assert usage.count("BMMA") + usage.count("IMMA") == 0
        assert usage.operations.get("XOR3", 0) > 0
    if case.layout == "words":
        assert usage.wide("LDG") > 0
        assert usage.wide("STG") > 0
    if case.kind != "matrix" and launch.build.define("VECTOR") > 1:
        assert usage.wide("LDG") >= launch.build.define("PLANES")
        assert usage.count("LDG") == usage.wide("LDG"), "every load is as wide as the vector"
    version = re.search(r"NVRTC (\d+)\.(\d+)", TABLE.read_text())
    assert version is not None
    if (int(version[1]), int(version[2])) == nvrtc.version():
        assert row(case, capability, launch, usage) == _committed(case, capability)


@pytest.mark.parametrize("capability", ARCHITECTURES)
def test_the_search_for_ones_reads_wide(capability: int) -> None:
    build = bit_search_launch(1, 1 << 20, device_info(capability)).build
    options = options_for(build, device_info(capability))
    usage = nvrtc.usage(nvrtc.compile_cubin(kernel_source(build), headers_for(build), options), build.kernel)
    assert (usage.local, usage.shared) == (0, 0)
    assert usage.wide("LDG") >= 1
    assert usage.registers <= 64, "a block of 128 threads leaves room for seven more"


@pytest.mark.parametrize("case", [case for case in FEW if case.kind != "matrix"], ids=str)
def test_xor_kernels_need_no_ptx(case: Case) -> None:
    """What is compiled for ROCm is C++ that NVRTC takes too."""
    build: Build = launch_of(case, 90).build
    headers = headers_for(build)
    options = (*options_for(build, device_info(90)), "-DGFCODE_NO_PTX=1")
    usage = nvrtc.usage(nvrtc.compile_cubin(kernel_source(build), headers, options), build.kernel)
    assert usage.local == 0


def test_complaints_of_the_compiler_are_the_error() -> None:
    build = Build(
        "xor_program.cu",
        launch_of(FEW[-1], 90).build.defines,
        "DEVICE void apply_program(const Lane &lane) { nonsense }\n",
    )
    with pytest.raises(AssertionError, match=r'program\.cuh.*identifier "nonsense" is undefined'):
        nvrtc.compile_cubin(kernel_source(build), headers_for(build), options_for(build, device_info(90)))
