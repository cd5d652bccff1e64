"""Measuring variants against each other on a machine that is not quiet: interleaved rounds, medians, paired ratios.

All variants of a case run in turn, in an order that rotates; that is one round. In its turn a variant runs three times
for a short while, of which the best counts: others that use the machine interrupt some, but seldom all. A figure is the
median of the rounds, with their range; a ratio is the median of the ratios within rounds, so that what slows the whole
machine for a while slows both sides of a ratio.
"""

import gc
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata

import numpy as np
import numpy.typing as npt

from gfcode.engine.buffers import allocate

__all__ = ["PLACES", "Case", "Figure", "environment", "interleave", "pin", "place"]

Bytes = npt.NDArray[np.uint8]

#: How blocks lie: as the codec allocates them, or each at a power of two from the one before.
PLACES = ("staggered", "power of two")
#: Rounds of a case.
ROUNDS = 9
#: Seconds of one run, at least, and runs in a turn.
WINDOW, RUNS = 0.0015, 3


@dataclass(frozen=True)
class Figure:
    """Rates of one variant.

    Attributes
    ----------
    rates : tuple of float
        GB (10^9 bytes) of data a second, by round.
    """

    rates: tuple[float, ...]

    @cached_property
    def median(self) -> float:
        """The middle rate."""
        return statistics.median(self.rates)

    def ratio(self, other: "Figure") -> float:
        """Median of this rate over the other's, round by round."""
        return statistics.median(mine / theirs for mine, theirs in zip(self.rates, other.rates, strict=True))


@dataclass(frozen=True)
class Case:
    """What is measured.

    Attributes
    ----------
    operation : str
    k, m : int
    length : int
        Bytes of a block.
    where : str
        One of `PLACES`.
    """

    operation: str
    k: int
    m: int
    length: int
    where: str


def interleave(
    calls: Mapping[str, Callable[[], object]], data_bytes: int, *, rounds: int = ROUNDS
) -> dict[str, Figure]:
    """Measure variants that each handle `data_bytes` bytes of data in a call.

    Returns
    -------
    dict of str to Figure
    """
    names = list(calls)
    repeats = {}
    for name in names:
        calls[name]()  # caches, pages, compilation
        start = time.perf_counter()
        calls[name]()
        repeats[name] = max(1, round(WINDOW / max(time.perf_counter() - start, 1e-7)))
    rates: dict[str, list[float]] = {name: [] for name in names}
    gc.disable()
    try:
        for turn in range(rounds):
            first = turn % len(names)
            for name in names[first:] + names[:first]:
                best = min(_seconds(calls[name], repeats[name]) for _ in range(RUNS))
                rates[name].append(data_bytes * repeats[name] / best / 1e9)
    finally:
        gc.enable()
    return {name: Figure(tuple(values)) for name, values in rates.items()}


def _seconds(call: Callable[[], object], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    return time.perf_counter() - start


def place(counts: tuple[int, ...], length: int, where: str, *, seed: int = 0) -> list[Bytes]:
    """Allocate groups of blocks side by side, the first group filled with random bytes, the others with zeros.

    Returns
    -------
    list of arrays of uint8, shape (count, length)
    """
    total = sum(counts)
    if where == "power of two":
        stride = 1 << (length - 1).bit_length()
        memory = np.zeros(total * stride + stride, np.uint8)
        start = -memory.__array_interface__["data"][0] % stride
        blocks = np.ndarray((total, length), np.uint8, memory, start, (stride, 1))
    else:
        blocks = allocate(total, length)
        blocks[...] = 0
    groups = []
    for count in counts:
        groups.append(blocks[:count])
        blocks = blocks[count:]
    groups[0][...] = np.random.default_rng(seed).integers(0, 256, groups[0].shape, np.uint8)
    return groups


def pin() -> int | None:
    """Keep this thread on one CPU, so that it does not lose its caches; return which."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    chosen = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {chosen})
    return chosen


def environment() -> dict[str, str]:
    """Tell what a figure depends on: CPU, caches, versions, load."""
    import llvmlite.binding as llvm

    info = {
        "cpu": llvm.get_host_cpu_name(),
        "machine": platform.machine(),
        "cpus": str(os.cpu_count()),
        "python": platform.python_version(),
        "load": " ".join(f"{value:.1f}" for value in os.getloadavg()),
    }
    for name in ("gfcode", "numpy", "llvmlite", "numba"):
        info[name] = metadata.version(name)
    try:
        with open("/proc/cpuinfo", encoding="ascii") as file:
            info["model"] = next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    for index in range(4):
        folder = f"/sys/devices/system/cpu/cpu0/cache/index{index}"
        try:
            with open(f"{folder}/level") as level, open(f"{folder}/type") as kind, open(f"{folder}/size") as size:
                info[f"L{level.read().strip()} {kind.read().strip()}"] = size.read().strip()
        except OSError:
            continue
    return info
