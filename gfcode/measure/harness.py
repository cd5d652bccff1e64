"""Measuring variants against each other on a machine that is not quiet: interleaved rounds, medians, paired ratios.

All variants of a case run in turn, in an order that rotates; that is one round. In its turn a variant runs three times
for a short while, of which the best counts: others that use the machine interrupt some, but seldom all. A figure is the
median of the rounds, with their range; a ratio is the median of the ratios within rounds, so that what slows the whole
machine for a while slows both sides of a ratio.
"""

import gc
import math
import os
import platform
import statistics
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from gfcode.engine.buffers import allocate
from gfcode.once import cached_property

__all__ = ["PLACES", "ROUNDS", "Clocks", "Figure", "commit", "interleave", "machine", "pin", "place"]

Bytes = npt.NDArray[np.uint8]
Name = TypeVar("Name", bound=Hashable)

#: How blocks lie: as the codec allocates them, or each at a power of two from the one before.
PLACES = ("staggered", "power of two")
#: Rounds of a case.
ROUNDS = 9
#: Seconds of one run, at least, and runs in a turn.
WINDOW, RUNS = 0.0015, 3


@dataclass(frozen=True)
class Clocks:
    """What tells the time, in seconds.

    Attributes
    ----------
    wall : callable
        Time that passes.
    cpu : callable
        Time that the process's threads spend on CPUs, the kernel's work for them included.
    """

    wall: Callable[[], float] = time.perf_counter
    cpu: Callable[[], float] = time.process_time


@dataclass(frozen=True)
class Figure:
    """Rates of one variant.

    Attributes
    ----------
    rates : tuple of float
        GB (10^9 bytes) of data a second, by round.
    cpu : tuple of float
        Seconds of CPU time a GB of data, by round.
    """

    rates: tuple[float, ...]
    cpu: tuple[float, ...] = ()

    @cached_property
    def median(self) -> float:
        """The middle rate."""
        return statistics.median(self.rates)

    @cached_property
    def cpu_median(self) -> float:
        """The middle CPU time a GB."""
        return statistics.median(self.cpu)

    def ratio(self, other: "Figure") -> float:
        """Median of this rate over the other's, round by round."""
        return statistics.median(mine / theirs for mine, theirs in zip(self.rates, other.rates, strict=True))


_CLOCKS = Clocks()


def interleave(
    calls: Mapping[Name, Callable[[], object]],
    data_bytes: int | Mapping[Name, int],
    *,
    rounds: int = ROUNDS,
    window: float = WINDOW,
    long: float = math.inf,
    clocks: Clocks = _CLOCKS,
) -> dict[Name, Figure]:
    """Measure variants against each other.

    Parameters
    ----------
    calls : mapping of name to callable
        Names are strings, or anything that can be a key.
    data_bytes : int or mapping of name to int
        Bytes of data that a call handles.
    rounds : int
    window : float
        Seconds that a run takes at least; calls that are shorter are repeated.
    long : float
        Seconds from which a call is run once in a turn.
    clocks : Clocks

    Returns
    -------
    dict of name to Figure
    """
    names = list(calls)
    sizes = dict.fromkeys(names, data_bytes) if isinstance(data_bytes, int) else data_bytes
    repeats: dict[Name, int] = {}
    runs: dict[Name, int] = {}
    for name in names:
        calls[name]()  # caches, pages, compilation
        once = _run(calls[name], 1, clocks)[0]
        repeats[name] = max(1, round(window / max(once, 1e-7)))
        runs[name] = 1 if once > long else RUNS
    found: dict[Name, list[tuple[float, float]]] = {name: [] for name in names}
    gc.disable()
    try:
        for turn in range(rounds):
            first = turn % len(names)
            for name in names[first:] + names[:first]:
                best = min(_run(calls[name], repeats[name], clocks) for _ in range(runs[name]))
                found[name].append(best)
    finally:
        gc.enable()
    figures = {}
    for name in names:
        gigabytes = sizes[name] * repeats[name] / 1e9
        wall, cpu = zip(*found[name], strict=True)
        figures[name] = Figure(tuple(gigabytes / t for t in wall), tuple(t / gigabytes for t in cpu))
    return figures


def _run(call: Callable[[], object], count: int, clocks: Clocks) -> tuple[float, float]:
    """Seconds that some calls take, and their seconds of CPU."""
    cpu, wall = clocks.cpu(), clocks.wall()
    for _ in range(count):
        call()
    return clocks.wall() - wall, clocks.cpu() - cpu


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


def commit() -> str | None:
    """Return the commit of the checkout that this is; None for an installation."""
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), ".git")
    try:
        with open(os.path.join(folder, "HEAD"), encoding="ascii") as file:
            head = file.read().strip()
        if not head.startswith("ref: "):
            return head
        name = head.removeprefix("ref: ")
        if os.path.isfile(os.path.join(folder, name)):
            with open(os.path.join(folder, name), encoding="ascii") as file:
                return file.read().strip()
        with open(os.path.join(folder, "packed-refs"), encoding="ascii") as file:
            return next(line.split()[0] for line in file if line.strip().endswith(f" {name}"))
    except (OSError, StopIteration):
        return None


def machine() -> dict[str, str]:
    """Tell what a figure depends on: CPU, caches, versions, load, and the commit where this is a checkout."""
    info = {
        "machine": platform.machine(),
        "cpus": str(os.cpu_count()),
        "python": platform.python_version(),
    }
    if (found := commit()) is not None:
        info["commit"] = found[:12]
    if hasattr(os, "getloadavg"):
        info["load"] = " ".join(f"{value:.1f}" for value in os.getloadavg())
    for name in ("gfcode", "numpy", "llvmlite", "numba"):
        try:
            info[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            info[name] = "not installed"
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
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
