"""What the GPU kernels do for a byte of data, from their machine code, against an H200's ceilings. Nothing is run.

Kernels are compiled by NVRTC for sm_90 and followed through nvdisasm's text along the way that whole blocks take: from
the loop over work items on, past code for the edges of blocks, through the loop over inputs as often as there are
inputs. All rates are predictions. The ceilings are published or others' (`CEILINGS` says which); none was measured.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from gfcode.kernels.cuda.source import headers_for, kernel_source

__all__ = ["CEILINGS", "Path", "follow", "measure", "table"]

#: An H200: multiprocessors and boost clock (published); instructions that a multiprocessor issues, and logical
#: operations on 32 bits that it does, by lanes and clock (CUDA programming guide, compute capability 9.0); bytes a
#: second that copies reach of the published 4.8 TB/s.
CEILINGS = {"processors": 132, "clock": 1.98e9, "issue": 128, "logic": 64, "memory": 4.3e12}
#: Instructions that go through the units for integers and logic.
_LOGIC = re.compile(r"(LOP3|PLOP3|PRMT|SHF|IADD3|SEL|ISETP|LEA|IMNMX|BMSK|SGXT|VOTE|P2R|R2P)\b")
_LINE = re.compile(r"\s*/\*[0-9a-f]+\*/\s+(@!?U?P\w+\s+)?(.*?)\s*;")


@dataclass(frozen=True)
class Path:
    """One work item of one lane, on the way that whole blocks take.

    Attributes
    ----------
    instructions, logic, products : int
        Instructions in all; those of logic and integers; matrix products.
    stored : int
        Bytes.
    """

    instructions: int
    logic: int
    products: int
    stored: int

    def per_byte(self, k: int, m: int) -> dict[str, float]:
        """Return the lane's instructions for a byte of data."""
        data = self.stored * k / m
        return {"instructions": self.instructions / data, "logic": self.logic / data, "products": self.products / data}


def _wide(operation: str, text: str) -> int:
    """Bytes that an instruction loads or stores, if it is of this kind."""
    if not text.startswith(operation):
        return 0
    parts = text.split(maxsplit=1)[0].split(".")
    return 16 if "128" in parts else 8 if "64" in parts else 4


def _is_edge(lines: Sequence[str]) -> bool:
    """Whether code that a branch goes around is for the edges of blocks: it loads or stores single bytes or words."""
    stores = [text for text in lines if text.startswith("STG")]
    loads = [text for text in lines if text.startswith("LDG")]
    if any(_wide("STG", text) >= 8 for text in stores) or any(".NA" in text for text in loads):
        return False
    return any(".U8" in text for text in stores) or (len(loads) > 1 and all(_wide("LDG", text) == 4 for text in loads))


def follow(text: str, k: int, m: int) -> Path:
    """Follow a kernel's machine code, as nvdisasm prints it, along the way of whole blocks.

    Raises
    ------
    ValueError
        If there is no loop, or no store in it.
    """
    code: list[str] = []
    conditional: list[bool] = []
    labels: dict[str, int] = {}
    for line in text.splitlines():
        if label := re.match(r"(\.L_x_\d+):", line):
            labels[label[1]] = len(code)
        elif (found := _LINE.match(line)) and not found[2].startswith("NOP"):
            code.append(found[2])
            # BRA P1, ... has its condition among its operands.
            conditional.append(found[1] is not None or found[2].startswith(("BRA P", "BRA !P")))
    targets = {
        at: labels[name[1]]
        for at, line in enumerate(code)
        if line.startswith("BRA") and (name := re.search(r"(\.L_x_\d+)", line))
    }
    back = [(target, at) for at, target in targets.items() if target < at]
    if not back:
        raise ValueError("the kernel has no loop")
    start, end = max(back, key=lambda loop: loop[1] - loop[0])
    way: list[int] = []
    at = start
    while at <= end:
        way.append(at)
        target = targets.get(at, 0)
        jumps = target > at and (not conditional[at] or _is_edge(code[at + 1 : target]))
        at = target if jumps else at + 1
    return _tally(code, way, {last: first for first, last in back if last != end}, k, m)


def _tally(code: Sequence[str], way: Sequence[int], inner: Mapping[int, int], k: int, m: int) -> Path:
    times: Counter[int] = Counter(way)
    stored = sum(_wide("STG", code[at]) for at in way)
    if not stored:
        raise ValueError("nothing is stored on the way through the kernel")
    for last, first in inner.items():
        body = [at for at in way if first <= at <= last]
        loaded = sum(_wide("LDG", code[at]) for at in body if ".NA" in code[at])
        if last in times and loaded:
            trips = math.ceil(stored * k / m / loaded)
            for at in body:
                times[at] = trips
    return Path(
        sum(times.values()),
        sum(number for at, number in times.items() if _LOGIC.match(code[at])),
        sum(number for at, number in times.items() if re.match(r"[BI]MMA", code[at])),
        stored,
    )


def disassembly(case: Any, capability: int = 90) -> str:
    """Compile a case of `tests.gpu.kernel_table`; return its machine code as text."""
    from tests.gpu import nvrtc
    from tests.gpu.kernel_table import launch_of

    build = launch_of(case, capability).build
    defines = (f"-D{name}={value}" for name, value in build.defines)
    options = (f"--gpu-architecture=sm_{capability}", "--std=c++17", *defines)
    return nvrtc.disassembly(nvrtc.compile_cubin(kernel_source(build), headers_for(build), options))


def measure() -> dict[str, Any]:
    """Compile and count the kernels; return what JSON can hold, empty where no compiler is installed."""
    try:
        from tests.gpu import nvrtc
        from tests.gpu.kernel_table import Case, Kind
    except ImportError as error:
        return {"missing": str(error)}
    if reason := nvrtc.missing():
        return {"missing": reason}
    cases = []
    kinds: tuple[Kind, ...] = ("horner", "program", "matrix")
    for kind, layout in product(kinds, ("packets", "words")):
        case = Case(kind, layout, 8, 10, 4)
        takes = follow(disassembly(case), case.k, case.m).per_byte(case.k, case.m)
        found = bounds(takes, case.m / case.k)
        cases.append(
            {
                "kernel": f"{kind}, {layout}",
                "k": case.k,
                "m": case.m,
                "takes": takes,
                "bounds": found,
                "bound": min(found, key=found.__getitem__),
            }
        )
    return {"ceilings": CEILINGS, "nvrtc": ".".join(map(str, nvrtc.version())), "cases": cases}


def bounds(takes: Mapping[str, float], written: float) -> dict[str, float]:
    """Return what each ceiling allows, in TB of data a second."""
    lanes = CEILINGS["processors"] * CEILINGS["clock"] / 1e12
    return {
        "instructions": lanes * CEILINGS["issue"] / takes["instructions"],
        "logic": lanes * CEILINGS["logic"] / takes["logic"],
        "memory": CEILINGS["memory"] / 1e12 / (1 + written),
    }


def table(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a table in Markdown."""
    if "missing" in result:
        yield f"GPU kernels were not counted: {result['missing']}"
        return
    yield "| kernel | code | instructions | logic | products | issue | logic | memory | bound |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|---|"
    for case in result["cases"]:
        takes, found = case["takes"], case["bounds"]
        yield (
            f"| {case['kernel']} | ({case['k']},{case['m']}) | {takes['instructions']:.2f} | {takes['logic']:.2f} "
            f"| {takes['products']:.2f} | {found['instructions']:.1f} | {found['logic']:.1f} | {found['memory']:.2f} "
            f"| {case['bound']} |"
        )
