"""A small measured tuner: a few configurations are timed on the device itself, and the best is kept on disk."""

import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import asdict, fields
from typing import Any

from gfcode.engine.diskcache import DiskCache
from gfcode.kernels.cuda.launch import DeviceInfo, Problem, Tuning

__all__ = ["TuningStore", "candidates", "choose"]

#: Runs of each candidate, of which the median counts.
_RUNS = 5


def candidates(kernel: str, problem: Problem, device: DeviceInfo) -> list[Tuning]:
    """List configurations worth timing for a kernel; the first is what the rules choose.

    Parameters
    ----------
    kernel : {"matrix", "program", "horner"}
    problem : Problem
    device : DeviceInfo
    """
    if kernel == "matrix":
        stages = (None,) if device.capability < 80 else (None, 2, 3)
        pieces = (None, 1) if problem.r < 4 else (None,)
        return [Tuning(stages=s, pieces=p) for p in pieces for s in stages]
    vectors = (None, 1, 2, 4) if problem.layout.name == "packets" else (None,)
    return [Tuning(vector=v, blocks=b) for v in vectors for b in (None, 2, 8)]


def choose(tunings: Iterable[Tuning], measure: Callable[[Tuning], float]) -> tuple[Tuning, float]:
    """Return the tuning whose median time is least, and that time.

    Parameters
    ----------
    tunings : iterable of Tuning
    measure : callable
        Runs a configuration once and returns its seconds.
    """
    best: tuple[float, Tuning] | None = None
    for tuning in tunings:
        measure(tuning)  # compiles, and warms the device up
        median = sorted(measure(tuning) for _ in range(_RUNS))[_RUNS // 2]
        if best is None or median < best[0]:
            best = (median, tuning)
    if best is None:
        raise ValueError("nothing to choose from")
    return best[1], best[0]


def _class_of(kernel: str, problem: Problem) -> str:
    """Problems that share a tuning: length and stripes count by their powers of two."""
    layout = problem.layout
    size = (problem.length.bit_length(), problem.stripes.bit_length())
    shape = (problem.c, problem.r, problem.alignment, problem.table)
    return json.dumps([kernel, layout.name, layout.w, layout.packet_bytes, *shape, *size])


class TuningStore:
    """What was found best, by kernel and kind of problem, for one kind of device and compiler.

    Parameters
    ----------
    device, compiler : str
        Names; what was measured elsewhere, or with other machine code, says nothing here.
    cache : DiskCache, optional
    """

    def __init__(self, device: str, compiler: str, cache: DiskCache | None = None) -> None:
        self._key = json.dumps(["tuning", device, compiler]).encode()
        self._cache = cache or DiskCache("cuda-tuning")
        self._known: dict[str, Tuning] | None = None
        self._lock = threading.Lock()

    def lookup(self, kernel: str, problem: Problem) -> Tuning:
        """Return what was found for such problems; the rules' choice where nothing was."""
        with self._lock:
            return self._load().get(_class_of(kernel, problem), Tuning())

    def keep(self, kernel: str, problem: Problem, tuning: Tuning) -> None:
        """Remember a choice, here and on disk."""
        with self._lock:
            known = self._load()
            known[_class_of(kernel, problem)] = tuning
            payload = {name: asdict(kept) for name, kept in known.items()}
            self._cache.store(self._key, json.dumps(payload).encode())

    def _load(self) -> dict[str, Tuning]:
        if self._known is None:
            content = self._cache.load(self._key)
            try:
                found = json.loads(content) if content else {}
                self._known = {str(name): _tuning(values) for name, values in found.items()}
            except (ValueError, TypeError, AttributeError):
                self._known = {}  # another release's; what is kept next replaces it
        return self._known


def _tuning(values: dict[str, Any]) -> Tuning:
    if set(values) != {field.name for field in fields(Tuning)}:
        raise ValueError("not a tuning")
    if not all(value is None or isinstance(value, int) for value in values.values()):
        raise ValueError("not a tuning")
    return Tuning(**values)
