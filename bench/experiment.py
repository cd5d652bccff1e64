"""The classic experiment: Reed-Solomon by tables, by bit matrices, by better ones, and by this library's kernels.

    python -m bench.experiment [--sweeps size,m,k,w] [--sizes 1,4,16,64,256,1024,4096] [--megabytes 2] [--rounds 5]
                               [--short] [--out bench/results/experiment.json] [--images docs/images]
    python -m bench.experiment --draw bench/results/experiment.json --images docs/images

Encoding, and decoding after the loss of the first m data shards (k of them where m is greater), in one thread, on
buffers in memory: throughput in GB (10^9) of data a second and CPU time a GB, against the size of the data, and against
redundancy: m at k = 10, k at m = 4, w at (10,4). All of the data is in memory at once, 4 GB of it with what is made of
it in 7.2 GB; no disk takes part. From 256 MB on, where a run takes seconds, there are at most three rounds, and two
from 4 GB on; --short makes it three and one. A size that does not fit in memory is passed over, and that is said.
Methods take turns (`gfcode.measure.harness`), figures are medians.
Tables and XOR programs run on the same plain loops (`bench.loops`); making tables and programs is not measured. Every
method is checked against the NumPy engine, and every decoded block against the data, before it is measured.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.experiment_plots import draw
from bench.harness import environment, interleave
from bench.loops import PACKET, Memory
from bench.methods import METHODS, Prepared, decoding

__all__ = ["Point", "main", "measure", "points"]

SWEEPS = ("size", "m", "k", "w")
#: Blocks are whole strips of w = 16.
_UNIT = 16 * PACKET


@dataclass(frozen=True)
class Point:
    """One code on data of one size.

    Attributes
    ----------
    sweep : str
        One of `SWEEPS`: what varies.
    k, m, w : int
    megabytes : float
        MB (10^6 bytes) of data, about.
    """

    sweep: str
    k: int
    m: int
    w: int
    megabytes: float

    @property
    def length(self) -> int:
        """Bytes of a block."""
        return max(1, round(self.megabytes * 1e6 / self.k / _UNIT)) * _UNIT

    @property
    def memory(self) -> int:
        """Bytes that data, parity and what is decoded take."""
        return (self.k + self.m + min(self.k, self.m)) * self.length

    def rounds(self, wanted: int, *, short: bool) -> int:
        """Return how many rounds to measure."""
        most = min(wanted, 3) if short or self.megabytes >= 256 else wanted
        return min(most, 1 if short else 2) if self.megabytes >= 4096 else most


def free_memory() -> int:
    """Bytes of memory that can be had, as the system tells; without it, plenty."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            lines = dict(line.split(":") for line in file)
        return int(lines["MemAvailable"].split()[0]) << 10
    except (OSError, KeyError):
        return 1 << 62


def points(sweeps: Sequence[str], sizes: Sequence[float], megabytes: float) -> Iterator[Point]:
    """Yield what is measured."""
    for sweep in sweeps:
        if sweep == "size":
            yield from (Point(sweep, 10, 4, 8, size) for size in sizes)
        elif sweep == "m":
            yield from (Point(sweep, 10, m, 8, megabytes) for m in range(1, 9))
        elif sweep == "k":
            yield from (Point(sweep, k, 4, 8, megabytes) for k in (4, 6, 8, 10, 12, 16, 20))
        elif sweep == "w":
            yield from (Point(sweep, 10, 4, w, megabytes) for w in (4, 8, 16))
        else:
            raise ValueError(f"there is no sweep {sweep!r}; choose from {', '.join(SWEEPS)}")


def measure(point: Point, rounds: int) -> list[dict[str, Any]]:
    """Measure encoding and decoding of all methods at a point; return the cases as JSON can hold them.

    Raises
    ------
    AssertionError
        If a method gives other bytes than the NumPy engine, or decodes to something else than the data.
    """
    k, m = point.k, point.m
    data, parity = list(range(k)), list(range(k, k + m))
    made = list(range(k + m, k + m + min(k, m)))
    memory = Memory(made[-1] + 1, point.length)
    random = np.random.default_rng(0)
    for index in data:
        memory.block(index)[...] = random.integers(0, 256, point.length, np.uint8)
    lost = data[: len(made)]
    left = [*data, *parity][len(lost) : len(lost) + k]
    prepared: dict[str, dict[str, Prepared]] = {"encode": {}, "decode": {}}
    for method in METHODS:
        matrix = method.parity(k, m, point.w)
        if matrix is None:
            continue
        prepared["encode"][method.name] = method.prepare(matrix, memory, data, parity)
        decode = method.prepare(decoding(matrix, lost, left), memory, left, made)
        for index, block in zip(lost, made, strict=True):
            assert (memory.block(index) == memory.block(block)).all(), f"{method.name} decodes wrongly"
            memory.block(block)[...] = 0
        prepared["decode"][method.name] = decode
    cases = []
    for operation, found in prepared.items():
        figures = interleave({name: made.call for name, made in found.items()}, k * point.length, rounds=rounds)
        cases.append(
            {
                "sweep": point.sweep,
                "operation": operation,
                "k": k,
                "m": m,
                "w": point.w,
                "bytes": k * point.length,
                "rates": {name: list(figure.rates) for name, figure in figures.items()},
                "median": {name: figure.median for name, figure in figures.items()},
                "cpu": {name: list(figure.cpu) for name, figure in figures.items()},
                "cpu_seconds_per_gb": {name: figure.cpu_median for name, figure in figures.items()},
                "programs": {
                    name: {"xors": made.xors, "accesses": made.accesses}
                    for name, made in found.items()
                    if made.xors is not None
                },
            }
        )
    return cases


def show(case: dict[str, Any]) -> None:
    """Print one case: throughput and CPU time of each method."""
    print(f"({case['k']},{case['m']}) w = {case['w']}, {case['bytes'] / 1e6:.1f} MB, {case['operation']}")
    for name, rate in case["median"].items():
        program = case["programs"].get(name, {})
        counts = f"{program['xors']:6} XORs {program['accesses']:6} accesses" if program else ""
        print(f"    {name:36} {rate:7.2f} GB/s {case['cpu_seconds_per_gb'][name]:7.3f} s/GB  {counts}".rstrip())
    sys.stdout.flush()


def _store(result: dict[str, Any], path: str) -> None:
    """Write what there is; after every point, so that a run that is stopped has measured something."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(result, file)


def main(arguments: Sequence[str]) -> None:
    """Measure, print, store, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sweeps", default=",".join(SWEEPS))
    parser.add_argument("--sizes", default="1,4,16,64,256,1024,4096", help="MB of data; 4096 needs 8 GB of memory")
    parser.add_argument("--megabytes", type=float, default=2, help="MB of data in the other sweeps")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--short", action="store_true", help="fewer rounds")
    parser.add_argument("--out", default="bench/results/experiment.json", help="where the JSON goes")
    parser.add_argument("--images", help="folder for the plots, as SVG and PNG; none are drawn without")
    parser.add_argument("--draw", metavar="JSON", help="only draw what is stored there")
    options = parser.parse_args(arguments)
    if options.draw:
        with open(options.draw, encoding="utf-8") as file:
            cases = json.load(file)["cases"]
    else:
        info = environment()
        sizes = [float(size) for size in options.sizes.split(",")]
        cases = []
        for point in points(options.sweeps.split(","), sizes, options.megabytes):
            if point.memory > 0.8 * free_memory():
                print(f"{point.megabytes:.0f} MB are passed over: {point.memory >> 20} MiB of memory are not free")
                continue
            for case in measure(point, point.rounds(options.rounds, short=options.short)):
                show(case)
                cases.append(case)
            _store({"environment": info, "cases": cases}, options.out)
        print(f"written to {options.out}")
    if options.images:
        for path in draw(cases, options.images):
            print(f"drawn to {path}")


if __name__ == "__main__":
    main(sys.argv[1:])
