"""Rooflines: what each kernel does for a byte of data, what this machine can do at most, and which limit holds.

    python -m bench.roofline [--rounds 7] [--out bench/results/roofline.json] [--images docs/images] [--cpu] [--gpu]
    python -m bench.roofline --draw bench/results/roofline.json --images docs/images

Instructions of CPU kernels are counted by running them (`bench.roofline_counts`), ceilings are measured by loops that
do one thing each (`bench.roofline_ceilings`), and the kernels themselves in turns, with blocks in the second cache and
with blocks in memory. A bound is what one ceiling allows: its rate divided by what a byte of data takes. The lowest one
is the kernel's roof. GPU kernels are compiled and counted, nothing is run (`bench.roofline_gpu`). One thread.
"""

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from typing import Any

from bench.harness import Figure, environment, interleave, place
from bench.loops import Memory
from bench.methods import METHODS
from bench.roofline_ceilings import Sizes, ceilings
from bench.roofline_counts import KINDS, count
from gfcode.codec import Codec
from gfcode.engine.protocol import Blocks, Product
from gfcode.kernels.simd.engine import SimdEngine
from gfcode.kernels.simd.target import Target, host_variants
from gfcode.params import LayoutName

__all__ = ["CASES", "Case", "bounds", "main", "measure"]

#: Kinds of instructions that share the vector units; "other" goes at the rate of an XOR.
_VECTOR = ("xor", "ternary", "affine", "shuffle", "other")
#: Shares of the second cache, and of what is far more than all caches, that the blocks of a stripe take together.
_NEAR_SHARE, _FAR_SHARE = 0.45, 0.7
#: The name of what runs XOR programs by plain loops.
_LOOPS = "XOR program, plain loops"


@dataclass(frozen=True)
class Case:
    """A kernel and what it does.

    Attributes
    ----------
    kernel : str
    k, m : int
    lost : int
        How many data blocks are decoded; 0 to encode.
    layout : str
    matrix : str
    variant : str
        Of `host_variants`.
    packet_bytes : int
    """

    kernel: str
    k: int
    m: int
    lost: int
    layout: LayoutName
    matrix: str = "powers"
    variant: str = "host"
    packet_bytes: int = 64

    @property
    def made(self) -> int:
        """How many blocks are written."""
        return self.lost or self.m

    @property
    def operation(self) -> str:
        """What is done, in words."""
        return f"decode {self.lost}" if self.lost else "encode"


CASES = (
    Case("plain sum", 10, 4, 1, "packets"),
    Case("Horner", 10, 4, 0, "packets"),
    Case("threaded constants", 10, 4, 4, "packets"),
    Case("words, GFNI", 10, 4, 0, "words"),
    Case("words, GFNI", 10, 4, 4, "words"),
    Case("words, split tables", 10, 4, 0, "words", variant="no-gfni"),
    Case("planes, packets of 1 KiB", 10, 4, 0, "packets", matrix="cauchy-good", packet_bytes=1024),
    Case(_LOOPS, 10, 4, 0, "packets", matrix="cauchy-good", packet_bytes=2048),
    Case("words, GFNI", 50, 20, 0, "words", matrix="cauchy"),
    Case("FFT, GFNI", 50, 20, 0, "words", matrix="fft"),
)


def cases_here() -> Iterator[Case]:
    """Yield the cases that this machine has the instructions for."""
    variants = host_variants()
    for case in CASES:
        target = variants.get(case.variant)
        if target is None and variants["host"].product != "affine":
            continue
        if target is not None and ("GFNI" not in case.kernel or target.product == "affine"):
            yield case


def _codec(case: Case) -> Codec:
    return Codec(case.k, case.m, matrix=case.matrix, layout=case.layout, packet_bytes=case.packet_bytes)


@cache
def _engine(variant: str) -> SimdEngine:
    return SimdEngine(host_variants()[variant])


class Subject:
    """A case on blocks of some length: the call to time, and what it does for a byte of data.

    Parameters
    ----------
    case : Case
    length : int
        Bytes of a block, about.
    """

    def __init__(self, case: Case, length: int) -> None:
        self.case = case
        codec = _codec(case)
        unit = math.lcm(codec.block_multiple, 4096)
        self.length = max(1, length // unit) * unit
        self.bytes = case.k * self.length
        if case.kernel == _LOOPS:
            self._loops()
            return
        self.data, self.parity, self.out = place((case.k, case.m, case.m), self.length, "staggered")
        codec.encode(self.data, self.parity)
        plan = codec.plan(range(case.lost, case.k + case.m), range(case.lost)) if case.lost else None
        shards = [*self.data, *self.parity]
        sources = [shards[index] for index in plan.sources] if plan else list(self.data)
        right = shards[: case.lost] if case.lost else list(self.parity)
        outputs = list(self.out[: case.made])
        target = host_variants()[case.variant]
        product = Product(plan.matrix if plan else codec.parity, codec.layout)
        self.call: Callable[[], object] = partial(
            _engine(case.variant).prepare(product),
            Blocks.of_buffers(sources),
            Blocks.of_buffers(outputs, writable=True),
        )
        self.call()
        _check(case, outputs, right)
        self.vector_bytes = target.vector_bytes
        counted = count(product, target, sources, outputs)
        _check(case, outputs, right)
        self.takes = counted.per_byte(target.vector_bytes, self.bytes)

    def _loops(self) -> None:
        """Prepare the program that the classic experiment calls fused and scheduled."""
        case = self.case
        (method,) = [method for method in METHODS if (method.family, method.way) == (case.matrix, "fused")]
        memory = Memory(case.k + case.m, self.length)
        matrix = method.parity(case.k, case.m, 8)
        assert matrix is not None
        made = method.prepare(matrix, memory, list(range(case.k)), list(range(case.k, case.k + case.m)))
        assert made.xors is not None
        assert made.accesses is not None
        self.call = made.call
        # LLVM makes vectors of 32 bytes of these loops, on wider machines too.
        self.vector_bytes = min(32, host_variants()["host"].vector_bytes)
        packets = 8 * case.k
        stores = (made.accesses - made.xors) / 2  # an instruction of n operands has n - 1 XORs and n + 1 accesses
        self.takes = dict.fromkeys(KINDS, 0.0) | {
            "xor": made.xors / packets, "loads": (made.accesses - stores) / packets, "stores": stores / packets,
        }  # fmt: skip


def _check(case: Case, made: Sequence[Any], right: Sequence[Any]) -> None:
    for block, expected in zip(made, right, strict=True):
        assert (block == expected).all(), f"{case.kernel} gives wrong bytes"
        block[...] = 0


def bounds(takes: Mapping[str, float], rates: Mapping[str, float], moved: float, where: str) -> dict[str, float]:
    """Return what each ceiling allows.

    Parameters
    ----------
    takes : mapping of str to float
        Bytes of vectors for a byte of data, by kind of instruction.
    rates : mapping of str to float
        Ceilings, GB of vectors a second.
    moved : float
        GB a second at which as many blocks are read, with as many written beside.
    where : {"L2", "memory"}
        Where blocks lie.

    Returns
    -------
    dict of str to float
        GB of data a second, by ceiling.
    """
    fastest = max(rates["xor"], rates.get("ternary", 0))
    vectors = sum(takes[kind] for kind in _VECTOR)
    slowest = max(takes[kind] / rates.get(kind, fastest) for kind in _VECTOR)
    seconds = {
        "arithmetic": max(slowest, vectors / fastest),
        "loads": takes["loads"] / rates["read L1"],
        "stores": takes["stores"] / rates["write L1"],
        "instructions": takes["instructions"] / rates["instructions"],
        where: 1 / moved,
    }
    return {name: 1 / each for name, each in seconds.items() if each}


def measure(cases: Sequence[Case], sizes: Sizes, rounds: int) -> dict[str, Any]:
    """Measure ceilings and kernels; return what JSON can hold."""
    variants = host_variants()
    narrow: dict[int, Target] = {target.vector_bytes: target for target in reversed(variants.values())}
    narrow[variants["host"].vector_bytes] = variants["host"]
    shapes = sorted({(case.k, case.made) for case in cases})
    found = {
        width: ceilings(target, sizes, shapes, rounds=rounds)
        for width, target in narrow.items()
        if width >= min(32, variants["host"].vector_bytes)
    }
    rates = {width: {name: figure.median for name, figure in figures.items()} for width, figures in found.items()}
    lines = []
    for where, room in (("L2", _NEAR_SHARE * 2 * sizes.middle), ("memory", _FAR_SHARE * sizes.far)):
        for group in _groups(cases):
            subjects = [Subject(case, int(room) // (case.k + case.m)) for case in group]
            names = [str(number) for number in range(len(subjects))]
            timed = interleave(
                {name: subject.call for name, subject in zip(names, subjects, strict=True)},
                {name: subject.bytes for name, subject in zip(names, subjects, strict=True)},
                rounds=rounds,
            )
            lines += [
                _line(subject, where, rates[subject.vector_bytes], timed[name])
                for name, subject in zip(names, subjects, strict=True)
            ]
    return {
        "ceilings": {
            str(width): {name: list(figure.rates) for name, figure in figures.items()}
            for width, figures in found.items()
        },
        "cases": lines,
    }


def _groups(cases: Sequence[Case]) -> Iterator[list[Case]]:
    """Yield cases of one code together: as many as memory takes at a time."""
    for k, m in dict.fromkeys((case.k, case.m) for case in cases):
        members = [case for case in cases if (case.k, case.m) == (k, m)]
        for start in range(0, len(members), 4):
            yield members[start : start + 4]


def _line(subject: Subject, where: str, rates: Mapping[str, float], figure: Figure) -> dict[str, Any]:
    case = subject.case
    found = bounds(subject.takes, rates, rates[f"move {case.k} to {case.made} {where}"], where)
    bound = min(found, key=found.__getitem__)
    return {
        **asdict(case),
        "operation": case.operation,
        "where": where,
        "length": subject.length,
        "vector_bytes": subject.vector_bytes,
        "takes": subject.takes,
        "bounds": found,
        "bound": bound,
        "rates": {"ours": list(figure.rates)},
        "median": {"ours": figure.median},
    }


def table(lines: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of a table in Markdown: what a byte takes, the roof, and what is reached of it."""
    yield "| kernel | code | blocks in | vector ops | loads | instructions | bound | GB/s | of it |"
    yield "|---|---|---|---:|---:|---:|---|---:|---:|"
    for line in lines:
        takes, roof = line["takes"], line["bounds"][line["bound"]]
        ops = sum(takes[kind] for kind in _VECTOR)
        code = f"({line['k']},{line['m']}), {line['operation']}"
        rate = line["median"]["ours"]
        low, high = min(line["rates"]["ours"]), max(line["rates"]["ours"])
        instructions = f"{takes['instructions']:.1f}" if takes["instructions"] else ""
        yield (
            f"| {line['kernel']} | {code} | {line['where']} | {ops:.2f} | {takes['loads']:.2f} | {instructions} "
            f"| {line['bound']}: {roof:.1f} | {rate:.1f} [{low:.1f}–{high:.1f}] | {rate / roof:.0%} |"
        )


def _kept(gpu: dict[str, Any], path: str) -> dict[str, Any]:
    """Return the counts of GPU kernels; where no compiler is installed, those that are stored already."""
    if "missing" in gpu and os.path.isfile(path):
        with open(path, encoding="utf-8") as file:
            return dict(json.load(file).get("gpu", gpu))
    return gpu


def main(arguments: Sequence[str]) -> None:
    """Measure, print, store, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--cpu", action="store_true", help="only the CPU")
    parser.add_argument("--gpu", action="store_true", help="only the GPU's kernels, which are compiled and counted")
    parser.add_argument("--out", default="bench/results/roofline.json", help="where the JSON goes")
    parser.add_argument("--images", help="folder for the plots, as SVG and PNG; none are drawn without")
    parser.add_argument("--draw", metavar="JSON", help="only draw and print what is stored there")
    options = parser.parse_args(arguments)
    if options.draw:
        with open(options.draw, encoding="utf-8") as file:
            result = json.load(file)
    else:
        if not options.gpu and not host_variants():
            parser.error("engine 'simd' has no kernels for this CPU; --gpu counts those of GPUs")
        result = {"environment": environment()}
        if not options.gpu:
            result |= measure(list(cases_here()), Sizes.here(), options.rounds)
        if not options.cpu:
            from bench.roofline_gpu import measure as count_gpu

            result["gpu"] = _kept(count_gpu(), options.out)
        os.makedirs(os.path.dirname(options.out) or ".", exist_ok=True)
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump(result, file)
    print("\n".join(table(result.get("cases", []))))
    if result.get("gpu"):
        from bench.roofline_gpu import table as gpu_table

        print("\n".join(gpu_table(result["gpu"])))
    if options.images:
        from bench.roofline_plots import draw

        for path in draw(result, options.images):
            print(f"drawn to {path}")


if __name__ == "__main__":
    main(sys.argv[1:])
