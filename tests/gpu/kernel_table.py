"""What the kernels take on each kind of GPU, as the compiler says.

`python -m tests.gpu.kernel_table > docs/gpu-kernels.md` writes the page.
"""

import sys
from dataclasses import dataclass
from typing import Final, Literal

from gfcode.gf import GF
from gfcode.kernels.cuda.context import Context
from gfcode.kernels.cuda.launch import DeviceInfo, Launch, Problem, Tuning, bitmatmul_launch
from gfcode.kernels.cuda.runners import HornerRunner, ProgramRunner
from gfcode.kernels.cuda.source import headers_for, kernel_source, options_for
from gfcode.kernels.cuda.tuner import TuningStore
from gfcode.matrix.bitmatrix import expand
from gfcode.matrix.generator import parity_matrix
from tests.gpu import nvrtc
from tests.gpu.harness import layout_of
from tests.gpu.shim import ShimDevice

ARCHITECTURES: Final = (75, 80, 90, 100)

Kind = Literal["matrix", "horner", "program"]


@dataclass(frozen=True)
class Case:
    """A kernel for a code. `variant` is "" or "unaligned", "table", "one stage", "three stages"."""

    kind: Kind
    layout: str
    w: int
    k: int
    m: int
    variant: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.layout} w={self.w} ({self.k},{self.m}) {self.variant}".strip()


#: Compiled in every run of the tests.
FEW: Final = (
    Case("matrix", "words", 8, 10, 4),
    Case("matrix", "words", 8, 50, 20),
    Case("matrix", "words", 16, 10, 4),
    Case("matrix", "packets", 8, 10, 4),
    Case("matrix", "packets", 8, 50, 20),
    Case("matrix", "packets", 4, 10, 4),
    Case("horner", "packets", 8, 10, 4),
    Case("horner", "words", 8, 10, 4),
    Case("program", "packets", 8, 4, 2),
    Case("program", "words", 8, 4, 2),
)
#: The whole table.
ALL: Final = (
    *FEW,
    *(Case("matrix", "words", 8, k, m) for k, m in ((4, 2), (6, 3), (16, 4), (20, 4), (24, 4), (28, 4))),
    *(Case("matrix", "words", 8, 10, 4, variant) for variant in ("unaligned", "table", "three stages")),
    *(Case("matrix", "words", 16, k, m) for k, m in ((4, 2), (20, 4))),
    Case("matrix", "words", 4, 10, 4),
    *(Case("matrix", "packets", 8, k, m) for k, m in ((4, 2), (6, 3), (16, 4), (20, 4), (24, 4), (28, 4))),
    *(Case("matrix", "packets", 8, 10, 4, variant) for variant in ("unaligned", "table")),
    *(Case("matrix", "packets", 16, k, m) for k, m in ((4, 2), (10, 4), (20, 4))),
    *(
        Case("horner", layout, w, 10, m)
        for layout in ("packets", "words")
        for w in (4, 8, 16)
        for m in (1, 2, 3, 4)
        if (w, m) != (8, 4)
    ),
    *(Case("program", layout, 8, k, m) for layout in ("packets", "words") for k, m in ((6, 3), (10, 4), (20, 4))),
    *(Case("program", layout, w, 10, 4) for layout in ("packets", "words") for w in (4, 16)),
)


def device_info(capability: int) -> DeviceInfo:
    """Describe a device of the table."""
    return DeviceInfo("table", capability, 132, (64 if capability == 75 else 164) << 10)


def launch_of(case: Case, capability: int, info: DeviceInfo | None = None) -> Launch:
    """Configure a case for blocks of about 1 MiB, on a device of the table or another."""
    layout = layout_of(case.layout, case.w)
    info = info or device_info(capability)
    alignment = 1 if case.variant == "unaligned" else 16
    length = (1 << 20) // layout.strip_bytes * layout.strip_bytes
    problem = Problem(layout, case.k, case.m, 1000, length, alignment, case.variant == "table")
    if case.kind == "matrix":
        stages = {"one stage": 1, "three stages": 3}.get(case.variant)
        return bitmatmul_launch(problem, info, Tuning(stages=stages))
    device = ShimDevice.__new__(ShimDevice)  # only asked what it is
    device.info = info
    context = Context(device, tuning=TuningStore("none", "none"))
    matrix = parity_matrix("powers" if case.kind == "horner" else "cauchy-good", GF(case.w), case.k, case.m)
    if case.kind == "horner":
        return HornerRunner(context, layout, matrix).launch_for(problem, Tuning())
    return ProgramRunner(context, layout, expand(matrix)).launch_for(problem, Tuning())


def measure(case: Case, capability: int) -> tuple[Launch, nvrtc.Usage]:
    """Compile a case and look at the machine code."""
    launch = launch_of(case, capability)
    build = launch.build
    image = nvrtc.compile_cubin(kernel_source(build), headers_for(build), options_for(build, device_info(capability)))
    return launch, nvrtc.usage(image, build.kernel)


def row(case: Case, capability: int, launch: Launch, usage: nvrtc.Usage) -> str:
    """Write one line of the table."""
    products = usage.count("IMMA") + usage.count("BMMA")
    xors = usage.operations.get("XOR3", 0)
    cells = (
        str(case), f"sm_{capability}", usage.registers, usage.local, usage.shared + launch.shared_bytes, launch.threads,
        usage.instructions, products, xors, usage.wide("LDG"), usage.wide("STG"), usage.count("LDGSTS"),
    )  # fmt: skip
    return "| " + " | ".join(map(str, cells)) + " |"


HEAD: Final = """\
# What the GPU kernels take

Compiled by NVRTC {version}, looked at with nvdisasm; nothing here was run on a GPU.
`python -m tests.gpu.kernel_table` writes this page. A case is the kernel, the layout, w and (k, m);
[gpu.md](gpu.md) says what the kernels do.

Registers are a lane's. Spills are instructions that touch local memory. Shared memory is a block's, in bytes.
Instructions are those of the whole kernel, with the code for the edges of blocks. Products are IMMA or BMMA;
XOR3 are three-input XORs (LOP3 0x96); wide loads and stores move 16 bytes, or 8 where a plane takes two words;
asynchronous copies are LDGSTS.

| kernel | GPU | registers | spills | shared | threads | instructions | products | XOR3 | wide loads | stores | async |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
"""


def main() -> None:
    """Write the page."""
    sys.stdout.write(HEAD.format(version=".".join(map(str, nvrtc.version()))))
    for case in ALL:
        for capability in ARCHITECTURES:
            sys.stdout.write(row(case, capability, *measure(case, capability)) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
