"""Decode plans for codes that `gfcode.codec.plan` does not know: bit-matrix codes, and codes that are not MDS.

A shard is a group of g rows of the generator matrix: its w packets in a code that only a bit matrix gives, over GF(2);
a single element in the others. With data shards D and parity rows R at hand and data L lost, the equations
parity_R + A[R, D] · data_D = A[R, L] · data_L determine whatever linear combinations of data_L are in the row space of
A[R, L]; nothing is taken for granted of its rank.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import TypeAlias

import numpy as np

from gfcode.codec import lean
from gfcode.codec.plan import Plan, Planner, indices_of_data, list_shards
from gfcode.engine.protocol import Blocks, Engine, Operator, Product
from gfcode.errors import SingularMatrixError, UnrecoverableError
from gfcode.matrix.bitmatrix import element_ones
from gfcode.matrix.dense import Matrix
from gfcode.params import Layout

__all__ = ["GroupPlanner", "PacketOperator", "prepare"]

Indices: TypeAlias = tuple[int, ...]
_PLANS = 1024
#: Addresses of packets that are written out at a time.
_ADDRESSES = 1 << 16


class PacketOperator:
    """Runs a product over GF(2) on blocks of the `packets` layout, each packet taken for a block of its own.

    Packet b of shard j is input j · w + b, and each strip is a stripe: any engine that knows w = 1 runs it.

    Parameters
    ----------
    operator : Operator
        Of a product over GF(2) with packets of `layout.packet_bytes` for blocks.
    layout : Layout
        `packets`.
    shape : (int, int)
        Output and input shards.
    """

    def __init__(self, operator: Operator, layout: Layout, shape: tuple[int, int]) -> None:
        self._operator = operator
        self._shape = shape
        self._strip = layout.strip_bytes
        self._packet = layout.packet_bytes
        self._within = np.arange(layout.w, dtype=np.uint64) * np.uint64(layout.packet_bytes)

    def __call__(self, inputs: Blocks, outputs: Blocks) -> None:
        """Overwrite `outputs` with the product."""
        strips = inputs.length // self._strip
        step = max(1, _ADDRESSES // (sum(self._shape) * len(self._within)))
        for stripe in range(inputs.stripes):
            for first in range(0, strips, step):
                starts = np.arange(first, min(first + step, strips), dtype=np.uint64) * np.uint64(self._strip)
                self._operator(self._packets(inputs, stripe, starts), self._packets(outputs, stripe, starts))

    def _packets(self, blocks: Blocks, stripe: int, starts: "np.ndarray[tuple[int], np.dtype[np.uint64]]") -> Blocks:
        table = blocks.table[stripe][None, :, None] + starts[:, None, None] + self._within
        return Blocks(table.reshape(len(starts), -1), self._packet, blocks.owners)


def prepare(engine: Engine, matrix: Matrix, layout: Layout) -> Operator:
    """Bind a product whose matrix is over GF(2^w), or over GF(2) with w rows and columns to a shard.

    Raises
    ------
    EngineUnavailableError
        If the engine cannot run it.
    """
    if matrix.field.w == layout.w:
        return engine.prepare(Product(matrix, layout))
    rows, columns = matrix.shape
    operator = engine.prepare(Product(matrix, Layout("packets", 1, layout.packet_bytes)))
    return PacketOperator(operator, layout, (rows // layout.w, columns // layout.w))


class GroupPlanner(Planner):
    """Makes the plans of one code and keeps those used last.

    `find` raises `UnrecoverableError` where what is available does not determine what is wanted, and says what else
    would.

    Parameters
    ----------
    k, m : int
    parity : Matrix
        (m · g) × (k · g).
    layout : Layout
    engine : Engine
    """

    def __init__(self, k: int, m: int, parity: Matrix, layout: Layout, engine: Engine) -> None:
        self._n = k + m
        self.data = indices_of_data(k)
        solver = _Solver(k, m, parity)
        self.find: Callable[[Indices, Indices], Plan] = lru_cache(_PLANS)(partial(_find, solver, layout, engine))
        self.quick = lru_cache(_PLANS)(partial(lean.quick_plan, self._n, self.find))
        self.patch: Callable[[Indices, int, int], Operator] = lru_cache(_PLANS)(partial(_patch, solver, layout, engine))
        self.change = lru_cache(_PLANS)(partial(lean.quick_change, tuple(range(m)), self.patch))
        self.basis: Callable[[Indices], Indices] = lru_cache(_PLANS)(solver.basis)


def _find(solver: "_Solver", layout: Layout, engine: Engine, available: Indices, want: Indices) -> Plan:
    sources, matrix = solver.solve(available, want)
    operator = prepare(engine, matrix, layout) if want else _nothing
    return Plan(sources, want, matrix, operator)


def _patch(solver: "_Solver", layout: Layout, engine: Engine, rows: Indices, data: int, blocks: int) -> Operator:
    return prepare(engine, solver.block(rows, [data] * blocks), layout)


def _nothing(inputs: Blocks, outputs: Blocks) -> None:
    """Make no shard from no shard."""


class _Solver:
    """Linear algebra of one code."""

    def __init__(self, k: int, m: int, parity: Matrix) -> None:
        self.k, self.m = k, m
        self.parity = parity
        self.g = parity.shape[1] // k
        ones = element_ones(parity.field, parity.values).reshape(m, -1).sum(axis=1)
        self.by_ones: Indices = tuple(map(int, np.argsort(ones, kind="stable")))

    def spread(self, groups: Iterable[int]) -> list[int]:
        """Rows or columns of these shards."""
        return [group * self.g + b for group in groups for b in range(self.g)]

    def block(self, rows: Sequence[int], columns: Sequence[int]) -> Matrix:
        """Part of the parity matrix, by parity rows and data shards."""
        return self.parity.rows(self.spread(rows)).columns(self.spread(columns))

    def basis(self, given: Indices) -> Indices:
        """Shards that determine all the others given, none of them superfluous: data, then parity in order."""
        chosen = [shard for shard in sorted(given) if shard < self.k]
        lost = [shard for shard in range(self.k) if shard not in given]
        rows = self._independent(lost, [shard - self.k for shard in sorted(given) if shard >= self.k], len(lost))
        return (*chosen, *(self.k + row for row in rows))

    def _independent(self, lost: Sequence[int], rows: Sequence[int], most: int) -> list[int]:
        """Choose from parity rows, in order, those that add to the rank on the lost data, until that is full."""
        chosen: list[int] = []
        rank = 0
        for row in rows:
            if rank == most * self.g:
                break
            found = self.block([*chosen, row], lost).rank()
            if found > rank:
                chosen.append(row)
                rank = found
        return chosen

    def solve(self, available: Indices, want: Indices) -> tuple[Indices, Matrix]:
        """Express what is wanted by what is available.

        Returns
        -------
        sources : tuple of int
        matrix : Matrix
            want = matrix · sources.
        """
        data = [shard for shard in sorted(available) if shard < self.k]
        lost = [shard for shard in range(self.k) if shard not in data]
        rows = [row for row in self.by_ones if row + self.k in available]
        computed = [shard for shard in want if shard not in available]
        if not computed or not (lost and any(self._touches(shard, lost) for shard in computed)):
            chosen: list[int] = []
            weights = self._targets(computed, []).values
        else:
            chosen = self._independent(lost, rows, len(lost))
            found = self._weights(chosen, lost, computed)
            if found is None:
                raise UnrecoverableError(self._why(available, computed))
            weights = found
        return self._assemble(available, want, computed, data, chosen, weights)

    def _touches(self, shard: int, lost: Sequence[int]) -> bool:
        """Whether a shard depends on lost data."""
        return shard < self.k or bool(self.block([shard - self.k], lost).values.any())

    def _targets(self, want: Sequence[int], lost: Sequence[int]) -> Matrix:
        """Rows of the wanted shards on the lost data."""
        field, g = self.parity.field, self.g
        values = np.zeros((len(want) * g, len(lost) * g), field.dtype)
        for i, shard in enumerate(want):
            if shard >= self.k:
                values[i * g : (i + 1) * g] = self.block([shard - self.k], lost).values
            elif shard in lost:
                at = list(lost).index(shard)
                values[i * g : (i + 1) * g, at * g : (at + 1) * g] = np.eye(g, dtype=field.dtype)
        return Matrix(field, values)

    def _weights(
        self, rows: Sequence[int], lost: Sequence[int], want: Sequence[int]
    ) -> "np.ndarray[tuple[int, ...], np.dtype[np.unsignedinteger]] | None":
        """Weights of the parity rows whose sum is the wanted shards on the lost data; None if there are none."""
        equations = self.block(rows, lost)
        elements = list(range(equations.shape[0]))
        if equations.rank() < len(elements):
            kept: list[int] = []
            for element in elements:
                if equations.rows([*kept, element]).rank() > len(kept):
                    kept.append(element)
            elements = kept
        try:
            solved = equations.rows(elements).transpose().solve(self._targets(want, lost).transpose())
        except SingularMatrixError:
            return None
        weights = np.zeros((len(want) * self.g, equations.shape[0]), self.parity.field.dtype)
        weights[:, elements] = solved.values.T
        return weights

    def _assemble(
        self,
        available: Indices,
        want: Indices,
        computed: Sequence[int],
        data: Sequence[int],
        chosen: Sequence[int],
        weights: "np.ndarray[tuple[int, ...], np.dtype[np.unsignedinteger]]",
    ) -> tuple[Indices, Matrix]:
        field, g = self.parity.field, self.g
        sources = sorted({*data, *(row + self.k for row in chosen), *(shard for shard in want if shard in available)})
        place = {shard: i * g for i, shard in enumerate(sources)}
        values = np.zeros((len(want) * g, len(sources) * g), field.dtype)
        known = np.zeros((len(computed) * g, len(data) * g), field.dtype)
        if chosen:
            known ^= (Matrix(field, weights) @ self.block(chosen, data)).values
        for i, shard in enumerate(computed):
            if shard >= self.k:
                known[i * g : (i + 1) * g] ^= self.block([shard - self.k], data).values
        for i, shard in enumerate(want):
            rows = slice(i * g, (i + 1) * g)
            if shard in available:
                values[rows, place[shard] : place[shard] + g] = np.eye(g, dtype=field.dtype)
                continue
            at = slice(computed.index(shard) * g, (computed.index(shard) + 1) * g)
            for j, source in enumerate(data):
                values[rows, place[source] : place[source] + g] = known[at, j * g : (j + 1) * g]
            for j, row in enumerate(chosen):
                where = place[row + self.k]
                values[rows, where : where + g] = weights[at, j * g : (j + 1) * g]
        used = [shard for shard in sources if values[:, place[shard] : place[shard] + g].any()]
        columns = [place[shard] + b for shard in used for b in range(g)]
        return tuple(used), Matrix(field, values[:, columns])

    def _solvable(self, available: Indices, want: Sequence[int]) -> bool:
        lost = [shard for shard in range(self.k) if shard not in available]
        rows = [row for row in self.by_ones if row + self.k in available]
        return self._weights(self._independent(lost, rows, len(lost)), lost, want) is not None

    def _why(self, available: Indices, want: Sequence[int]) -> str:
        """Say which shards are missing, and what would help."""
        missing = [shard for shard in range(self.k + self.m) if shard not in available]
        lost = [shard for shard in missing if shard < self.k]
        if len(available) < self.k:
            needed = f"any k = {self.k} shards are needed and {len(available)} are there"
            text = f"{needed}: missing are {list_shards(missing)}"
        else:
            text = (
                f"this code is not MDS, and with {list_shards(missing)} missing it does not determine "
                f"{list_shards(want)}, although {len(available)} of the {self.k} shards needed are there"
            )
        helpful = [shard for shard in missing if self._solvable((*available, shard), [s for s in want if s != shard])]
        if helpful:
            text += f"; any one of {list_shards(helpful)} besides would be enough"
        recoverable = [shard for shard in lost if self._solvable(available, [shard])]
        if recoverable:
            text += f"; {list_shards(recoverable)} can be made from what is there"
        return text
