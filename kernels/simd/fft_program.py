"""Programs of the transforms' kernel: which runs of butterflies encode or decode, on which rows of scratch."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from gfcode.gf import Field
from gfcode.kernels.simd.fft import HEADER, OPERATIONS
from gfcode.kernels.simd.fft_layers import Layer
from gfcode.kernels.simd.products import multiplication
from gfcode.kernels.simd.target import Target
from gfcode.matrix.subspaces import skews
from gfcode.matrix.transformed import Decoding, Parity

__all__ = ["Program", "program"]

_Flags = npt.NDArray[np.bool_]
_Numbers = npt.NDArray[np.int64]

#: Bytes of a piece: rows of a small transform, and what is read and written, then fit the nearest cache.
_PIECE = 256
#: Rows that go through their layers together before the next rows do, as near as they can be.
_BLOCK = 64
#: Points of a transform from which the other layers are done on each row of all blocks of rows in turn: on so few rows
#: that they stay in the second cache. Blocks of rows are then a line more apart, so that these do not share its sets.
_HUGE, _APART = 2048, 64
#: Blocks of a stripe up to which those of the next piece are read ahead; of more, those of the next rows.
_AHEAD = 4096
_NUMBERS = {operation: number for number, operation in enumerate(OPERATIONS)}


@dataclass(frozen=True)
class Program:
    """A program and all that it needs.

    Attributes
    ----------
    context : ndarray of int64
        For the kernel.
    scratch : int
        Bytes of scratch.
    butterflies : int
        How many there are, on whole pieces.
    """

    context: npt.NDArray[np.int64]
    scratch: int
    butterflies: int


def program(matrix: Parity | Decoding, target: Target) -> Program:
    """Write the program that multiplies by a matrix of the family; rows that are copies of inputs are left out."""
    if isinstance(matrix, Parity):
        code, rows = matrix, np.arange(matrix.shape[0])
        writer = _Writer(code, target)
        writer.encode(np.arange(code.shape[1]), rows, rows)
        return writer.finish(matrix.shape)
    code, k = matrix.code, matrix.code.shape[1]
    writer = _Writer(code, target)
    want, sources = np.array(matrix.want, np.int64), np.array(matrix.sources, np.int64)
    if len(matrix.made):
        if len(sources) == k and sources[-1] < k:  # all data, in order
            writer.encode(np.arange(k), want[matrix.made] - k, matrix.made)
        else:
            writer.decode(matrix)
    return writer.finish(matrix.shape)


@lru_cache(maxsize=128)
def _factors(field: Field, target: Target, size: int, base: int) -> tuple[npt.NDArray[np.uint8], tuple[int, ...]]:
    """Factors of the butterflies on a coset, as the kernel multiplies by them, and where those of each layer start.

    For each group of four rows those of its first pair, its second pair, and of rows two steps apart.
    """
    levels = size.bit_length() - 1
    table = skews(field, levels, base + np.arange(size, dtype=np.int64))
    parts, starts, count = [], [], 0
    for level, radix in _layers(levels):
        step = 1 << level
        group = table[level, :: radix * step]
        if radix == 4:
            group = np.stack([group, table[level, 2 * step :: 4 * step], table[level + 1, :: 4 * step]], axis=1)
        starts.append(count)
        parts.append(group.reshape(-1))
        count += parts[-1].size
    way = multiplication(field.w, target)
    entries = way.table(field, np.concatenate(parts)).reshape(-1)
    entries.flags.writeable = False
    return entries, tuple(start * way.entry_bytes for start in starts)


def _layers(levels: int) -> list[tuple[int, int]]:
    """Layers from the first, two together where there are two: (level, rows that go together)."""
    return [(level, 4 if level + 1 < levels else 2) for level in range(0, levels, 2)]


class _Writer:
    def __init__(self, code: Parity, target: Target) -> None:
        self.field, self.target, self.code, self.size = code.field, target, code, code.size
        self.is_huge = code.size >= _HUGE
        self.block_bytes = _BLOCK * _PIECE + (_APART if self.is_huge else 0)
        # Zeros, what nobody wants, then sums and work, a transform each.
        self.sums = 2 * _PIECE
        self.work = self.sums + -(-code.size // _BLOCK) * self.block_bytes
        self.layers = _layers(code.size.bit_length() - 1)
        self.entry_bytes = multiplication(code.field.w, target).entry_bytes
        self.records: list[Sequence[int]] = []
        self.places: list[_Numbers] = []
        self.factors: list[npt.NDArray[np.uint8]] = []
        self.place_count = self.factor_bytes = self.butterflies = 0
        self.known_factors: dict[int, tuple[int, tuple[int, ...]]] = {}
        self.emit("clear", groups=1)

    def emit(
        self, operation: Layer | str, *, row: int = 0, into: int = 0, step: int = 1, groups: int, factors: int = 0,
        places: int = 0, apart: int = _PIECE,
    ) -> None:  # fmt: skip
        self.records.append((_NUMBERS[operation], row, into, step, groups, factors, places, apart))

    def at(self, row: Any) -> Any:
        """Where a row of a transform is, in bytes."""
        return row // _BLOCK * self.block_bytes + row % _BLOCK * _PIECE

    def finish(self, shape: tuple[int, int]) -> Program:
        """Put the context together."""
        self._read_ahead(shape)
        records = np.array(self.records, np.int64)
        places = np.concatenate(self.places) if self.places else np.zeros(0, np.int64)
        factors = np.concatenate(self.factors) if self.factors else np.zeros(0, np.uint8)
        places_at = 8 * HEADER + records.nbytes
        factors_at = -(-(places_at + places.nbytes) // 64) * 64
        context = np.zeros(-(-(factors_at + factors.nbytes) // 8) + 8, np.int64)
        start = -context.ctypes.data % 64 // 8  # factors are loaded by whole vectors
        context = context[start : start + len(context) - 7]
        context[:HEADER] = (
            shape[1], shape[0], _PIECE, _PIECE, 8 * HEADER, len(records), places_at, factors_at,
        )  # fmt: skip
        context[HEADER : HEADER + records.size] = records.reshape(-1)
        context[places_at // 8 : places_at // 8 + places.size] = places
        context.view(np.uint8)[factors_at : factors_at + factors.size] = factors
        return Program(context, 2 * self.work - self.sums, self.butterflies)

    def _read_ahead(self, shape: tuple[int, int]) -> None:
        """Spread over the program requests for what it reads in the next piece and writes in this one.

        Reading and computing then go on side by side.
        """
        if sum(shape) > _AHEAD or self.is_huge:
            return
        costs = np.array([step * groups for _, _, _, step, groups, *_ in self.records])
        parts = np.concatenate([[0], np.cumsum(costs) / costs.sum()])
        kept = {name: self._keep_places(np.arange(count)) for name, count in (("ask", shape[1]), ("expect", shape[0]))}
        records = []
        for record, begin, end in zip(self.records, parts[:-1], parts[1:], strict=True):
            records.append(record)
            for name, ahead, count in (("expect", 0, shape[0]), ("ask", 1, shape[1])):
                low, high = round(begin * count), round(end * count)
                if low < high:
                    records.append((_NUMBERS[name], 0, 0, ahead, high - low, 0, kept[name] + low, _PIECE))
        self.records = records

    # What a product is made of

    def encode(self, sources: _Numbers, rows: _Numbers, outputs: _Numbers) -> None:
        """Make parities `rows` from all data; inputs and outputs are at these places."""
        places = np.full(-(-len(sources) // self.size) * self.size, -1, np.int64)
        places[: len(sources)] = sources
        self._sums(places, self.size, -1)
        to = np.full(self.size, -1, np.int64)
        to[rows] = outputs
        self._evaluate(0, to >= 0, self.sums, self.sums, to)

    def decode(self, matrix: Decoding) -> None:
        """Make the computed rows; see `gfcode.matrix.transformed`."""
        size, code = self.size, self.code
        places = np.full(len(matrix.known), -1, np.int64)
        places[code.point(np.array(matrix.sources, np.int64))] = np.arange(len(matrix.sources))
        want = code.point(np.array(matrix.want, np.int64))
        for pivot, rows in matrix.pivots().items():
            some = self._sums(places, 0, pivot)
            locators, inside = matrix.locators(pivot), places[pivot : pivot + size]
            known = np.flatnonzero((locators != 0) if some else inside >= 0)
            present = np.zeros(size, np.bool_)
            low, high = int(known[0]), int(known[-1]) + 1
            present[low:high] = True
            if some:
                self._evaluate(pivot, locators != 0, self.sums, self.sums, None)
            for start in [low, *range(low // _BLOCK * _BLOCK + _BLOCK, high, _BLOCK)]:
                part = slice(start, min(start + _BLOCK - start % _BLOCK, high))
                self._scale("merge" if some else "take", locators[part], inside[part], into=self.sums + self.at(start))
            self._interpolate(pivot, present, None, self.sums, self.sums, add=False)
            points = want[rows]
            cosets = np.unique(points // size * size).tolist()
            for coset in cosets:
                mine = rows[points // size * size == coset]
                wanted = np.zeros(size, np.bool_)
                wanted[want[mine] - coset] = True
                row = self.sums if coset == cosets[-1] else self.work
                self._evaluate(coset, wanted, self.sums, row, None)
                scales = matrix.scales(want[mine], pivot)
                self._scale("give", scales, np.stack([self.at(want[mine] - coset), mine], axis=1).reshape(-1), row=row)

    def _sums(self, places: _Numbers, first: int, but: int) -> bool:
        """Sum the interpolations of cosets of blocks from point `first` on; tell whether there are any blocks."""
        begun = False
        for start in range(0, len(places), self.size):
            present = places[start : start + self.size] >= 0
            if first + start == but or not present.any():
                continue
            row = self.work if begun else self.sums
            self._interpolate(first + start, present, places[start : start + self.size], row, self.sums, add=begun)
            begun = True
        return begun

    def _scale(self, operation: str, scales: _Numbers, places: _Numbers, *, row: int = 0, into: int = 0) -> None:
        entries = multiplication(self.field.w, self.target).table(self.field, scales).reshape(-1)
        self.emit(
            operation, row=row, into=into, groups=len(scales),
            factors=self._keep_factors(entries), places=self._keep_places(places),
        )  # fmt: skip

    def _keep_factors(self, entries: npt.NDArray[np.uint8]) -> int:
        start = self.factor_bytes
        self.factors.append(entries)
        self.factor_bytes += entries.size
        return start

    def _keep_places(self, places: _Numbers) -> int:
        start = self.place_count
        self.places.append(places)
        self.place_count += places.size
        return start

    # Transforms

    def _coset_factors(self, base: int) -> tuple[int, ...]:
        if base not in self.known_factors:
            entries, starts = _factors(self.field, self.target, self.size, base)
            self.known_factors[base] = self._keep_factors(entries), starts
        start, starts = self.known_factors[base]
        return tuple(start + layer for layer in starts)

    def _parts(self) -> list[list[tuple[int, int, int, int]]]:
        """Layers, and which of their points and which row of each block (-1 for all), as interpolation takes them.

        In lists that are independent of each other but for the points of the lists before.
        """
        layers = range(len(self.layers))
        near = [layer for layer in layers if self.layers[layer][1] << self.layers[layer][0] <= _BLOCK]
        parts = [
            [(layer, start, min(start + _BLOCK, self.size), -1) for layer in near]
            for start in range(0, self.size, _BLOCK)
        ]
        rows = range(_BLOCK) if self.is_huge else [-1]
        return [*parts, *([(layer, 0, self.size, row) for layer in layers[len(near) :]] for row in rows)]

    def _interpolate(
        self, base: int, present: _Flags, places: _Numbers | None, row: int, into: int, *, add: bool
    ) -> None:
        """Turn blocks at `places`, or rows, into coefficients; rows not present are zero, whatever they hold."""
        flags = []
        for _, radix in self.layers:
            flags.append(present.reshape(-1, radix))
            present = np.asarray(flags[-1].any(axis=1))
        at = -1 if places is None else self._keep_places(places)
        last = len(self.layers) - 1
        for layer, low, high, only in itertools.chain.from_iterable(self._parts()):
            outside = layer == 0 and at >= 0
            adding = add and layer == last
            to = into if layer == last else row
            for parts, first, start, groups in self._runs(layer, low, high, base, flags[layer]):
                if not outside and only <= 0:
                    self._clear_holes(layer, flags[layer][start : start + groups], row, start)
                kind = Layer(True, self.layers[layer][1], parts, outside, first and not outside and not adding, adding)
                self._run(kind, layer, base, row, to, start, groups, at, only)
            if outside and self.is_huge and high < self.size:
                self.emit("ask", step=0, groups=_BLOCK, places=at + high)

    def _clear_holes(self, layer: int, flags: _Flags, row: int, start: int) -> None:
        """Set rows to zero that are not present, but have present ones behind them."""
        level, radix = self.layers[layer]
        behind = np.logical_or.accumulate(flags[:, ::-1], axis=1)[:, ::-1]
        for group, part in np.argwhere(behind & ~flags).tolist():
            first, count = ((start + group) * radix + part) << level, 1 << level
            for hole in range(first, first + count, _BLOCK):
                self.emit("clear", into=row + self.at(hole), groups=min(count, _BLOCK))

    def _evaluate(self, base: int, wanted: _Flags, row: int, into: int, places: _Numbers | None) -> None:
        """Turn coefficients into values, in rows, or in blocks at `places`; only those wanted are right."""
        flags = []
        for _, radix in self.layers:
            flags.append(wanted.reshape(-1, radix))
            wanted = np.asarray(flags[-1].any(axis=1))
        at = -1 if places is None else self._keep_places(places)
        last = len(self.layers) - 1
        order = self._parts()
        blocks = -(-self.size // _BLOCK)
        for layer, low, high, only in itertools.chain.from_iterable(
            part[::-1] for part in order[blocks:] + order[:blocks]
        ):
            outside = layer == 0 and at >= 0
            source = row if layer == last else into
            for parts, first, start, groups in self._runs(layer, low, high, base, flags[layer]):
                kind = Layer(False, self.layers[layer][1], parts, outside, first)
                self._run(kind, layer, base, source, into, start, groups, at, only)
            if at >= 0 and layer == 1 and self.is_huge:
                self.emit("expect", step=0, groups=_BLOCK, places=at + low)

    def _runs(self, layer: int, low: int, high: int, base: int, flags: _Flags) -> Iterator[tuple[int, bool, int, int]]:
        """Find runs of groups for one function: how many of their rows count, whether they are the first, which."""
        level, radix = self.layers[layer]
        begin, end = (low >> level) // radix, (high >> level) // radix
        # The last that counts; those before it count as well.
        counts = (flags[begin:end] * np.arange(1, radix + 1)).max(axis=1)
        kinds = 2 * counts
        if base == 0 and begin == 0 and counts[0]:
            kinds[0] += 1
        edges = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), end - begin]
        for start, stop in itertools.pairwise(edges):
            if counts[start]:
                yield int(counts[start]), bool(kinds[start] & 1), begin + start, stop - start

    def _run(
        self, kind: Layer, layer: int, base: int, row: int, into: int, start: int, groups: int, places: int, only: int
    ) -> None:
        """Emit a run of groups of butterflies, on all rows or on `only` one of each block."""
        level, radix = self.layers[layer]
        first = (start * radix) << level
        at, step, apart = self.at(first), 1 << level, _PIECE
        if only >= 0:
            at, step, apart = at + only * _PIECE, step // _BLOCK, self.block_bytes
        factors = self._coset_factors(base)[layer] + start * (3 if radix == 4 else 1) * self.entry_bytes
        self.emit(
            kind, row=row + at, into=into + at, step=step, groups=groups, factors=factors,
            places=places + first if kind.outside else 0, apart=apart,
        )  # fmt: skip
        self.butterflies += groups * step * (4 if radix == 4 else 1)
