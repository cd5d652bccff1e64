"""How fast this machine is, by engine: encode, decode and repair of blocks in memory, beside ISA-L."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from gfcode.codec import Codec
from gfcode.engine.protocol import Blocks, Engine, Product
from gfcode.engine.registry import AutomaticEngine
from gfcode.errors import EngineUnavailableError, GFCodeError
from gfcode.measure.harness import PLACES, Figure, interleave, place
from gfcode.measure.isal import Isal
from gfcode.params import Layout, LayoutName

__all__ = ["ISAL", "OPERATIONS", "Row", "choices", "measure", "suite"]

Bytes = npt.NDArray[np.uint8]

#: Name of ISA-L among the engines.
ISAL = "isal"
#: What is lost in each operation; encode loses all parity, so to speak.
OPERATIONS = ("encode", "decode", "repair")
LAYOUTS: tuple[LayoutName, ...] = ("packets", "words")
#: Bytes of a block that the numpy engine gets at most: it is a hundred times slower, and its rate depends little on it.
_SLOW_BYTES = 8192


@dataclass(frozen=True)
class Row:
    """What was measured at once.

    Attributes
    ----------
    operation : str
        One of `OPERATIONS`: all parity from the data, m lost data blocks from the others, one lost data block.
    k, m : int
    layout : str
    length : int
        Bytes of a block. (The numpy engine is given the first 8 KiB of each.)
    figures : dict of str to Figure
        By engine, and ISA-L as "isal".
    """

    operation: str
    k: int
    m: int
    layout: LayoutName
    length: int
    figures: dict[str, Figure]

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold, in the form that all programs of `bench/` write."""
        return {
            "operation": self.operation,
            "k": self.k,
            "m": self.m,
            "layout": self.layout,
            "length": self.length,
            "rates": {name: list(figure.rates) for name, figure in self.figures.items()},
            "median": {name: figure.median for name, figure in self.figures.items()},
            "cpu_seconds_per_gb": {name: figure.cpu_median for name, figure in self.figures.items()},
        }


def choices(k: int, m: int) -> dict[str, str]:
    """Engine that is chosen where none is asked for, by layout."""
    found: dict[str, str] = {}
    for layout in LAYOUTS:
        parity = Codec(k, m, layout=layout, engine="numpy").parity
        found[layout] = AutomaticEngine().choose(Product(parity, Layout(layout, 8))).name
    return found


def suite(
    shapes: Sequence[tuple[int, int]],
    lengths: Sequence[int],
    engines: Mapping[str, Engine],
    isal: Isal | None,
    *,
    rounds: int,
) -> Iterator[Row]:
    """Measure every shape, length, operation and layout."""
    for (k, m), length, operation in product(shapes, lengths, OPERATIONS):
        yield from measure(operation, k, m, length, engines, isal, rounds=rounds)


def measure(
    operation: str,
    k: int,
    m: int,
    length: int,
    engines: Mapping[str, Engine],
    isal: Isal | None,
    *,
    rounds: int,
) -> list[Row]:
    """Measure one operation on all engines and layouts in turns, each checked before.

    Returns
    -------
    list of Row
        One for each layout.

    Raises
    ------
    GFCodeError
        If an engine gives other bytes than the first.
    """
    calls: dict[tuple[LayoutName, str], Callable[[], object]] = {}
    sizes: dict[tuple[LayoutName, str], int] = {}
    data, *parities, out = place((k, *[m] * len(LAYOUTS), m), length, PLACES[0])
    for layout, parity in zip(LAYOUTS, parities, strict=True):
        for name, (call, size) in _calls(operation, k, m, layout, (data, parity, out), engines, isal).items():
            calls[layout, name], sizes[layout, name] = call, size
    figures = interleave(calls, sizes, rounds=rounds)
    return [
        Row(operation, k, m, layout, length, {name: figure for (at, name), figure in figures.items() if at == layout})
        for layout in LAYOUTS
    ]


def _calls(
    operation: str,
    k: int,
    m: int,
    layout: LayoutName,
    blocks: tuple[Bytes, Bytes, Bytes],
    engines: Mapping[str, Engine],
    isal: Isal | None,
) -> dict[str, tuple[Callable[[], object], int]]:
    """Prepare and check one layout's calls, by engine, with the bytes of data that each handles."""
    data, parity, out = blocks
    length = data.shape[1]
    first = next(iter(engines.values()))
    reference = Codec(k, m, layout=layout, engine=first)
    reference.encode(data, parity)
    shards = [*data, *parity]
    lost = {"encode": range(k, k + m), "decode": range(min(k, m)), "repair": range(1)}[operation]
    plan = reference.plan([index for index in range(k + m) if index not in lost], lost)
    sources, expected = [shards[index] for index in plan.sources], [shards[index] for index in lost]
    outputs = list(out[: len(lost)])
    calls: dict[str, tuple[Callable[[], object], int]] = {}
    task = Product(plan.matrix, reference.layout)
    for name, engine in engines.items():
        size = min(length, _SLOW_BYTES) if name == "numpy" else length
        try:
            operator = engine.prepare(task)
        except EngineUnavailableError:
            continue
        inputs = Blocks.of_buffers([block[:size] for block in sources])
        made = Blocks.of_buffers([block[:size] for block in outputs], writable=True)

        def call(operator: Any = operator, inputs: Blocks = inputs, made: Blocks = made) -> None:
            operator(inputs, made)

        calls[name] = call, k * size
    if isal is not None and layout == "words":
        calls[ISAL] = isal.product(plan.matrix.values, sources, outputs), k * length
    for name, (check, handled) in calls.items():
        check()
        size = handled // k
        if any((block[:size] != right[:size]).any() for block, right in zip(outputs, expected, strict=True)):
            raise GFCodeError(f"{name} gives wrong bytes: {operation} of ({k},{m}), layout {layout}; do not use it")
        out[...] = 0
    return calls
