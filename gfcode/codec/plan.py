"""Decode plans: which shards to read for the ones wanted, and the product that makes these from those."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final, TypeAlias

import numpy as np

from gfcode.codec import lean
from gfcode.codec.arguments import Bytes, check_indices, join, refuse_overlap, same_memory
from gfcode.codec.solve import solve
from gfcode.engine.protocol import Blocks, Engine, Operator, Product
from gfcode.errors import UnrecoverableError
from gfcode.matrix.bitmatrix import element_ones
from gfcode.matrix.dense import Matrix
from gfcode.matrix.transformed import MAX_LOGARITHM, Decoding, Parity
from gfcode.params import Layout

__all__ = ["Plan", "Planner", "do_nothing", "indices_of_data", "list_shards"]

Indices: TypeAlias = tuple[int, ...]

# Plans that are kept, at most, and the bytes that their programs may take together by a generous estimate.
_PLANS: Final = 2048
_PLANS_BYTES: Final = 1 << 26
# Shards that a message lists one by one.
_LONG_LIST: Final = 24


@dataclass(frozen=True, slots=True)
class Plan:
    """How to make the wanted shards.

    Attributes
    ----------
    sources : tuple of int
        The shards to read, in ascending order: at most k, and only those that are needed.
    want : tuple of int
        The shards that are made, in the order asked for.
    matrix : Matrix, shape (len(want), len(sources))
        want = matrix · sources.
    operator : Operator
        Runs it: input blocks in the order of `sources`, output blocks in the order of `want`.
    """

    sources: Indices
    want: Indices
    matrix: Matrix
    operator: Operator


class Planner:
    """Makes the plans of one code and keeps those used last. Safe to use from many threads at once.

    Parameters
    ----------
    parity : Matrix, shape (m, k)
    layout : Layout
    engine : Engine
    """

    def __init__(self, parity: Matrix, layout: Layout, engine: Engine) -> None:
        m, k = parity.shape
        self._n = k + m
        self.data = indices_of_data(k)
        # The cheapest to read from first: data, then parity rows by their ones. A row of ones makes a plain XOR.
        order = (*range(k), *(k + row for row in _by_ones(parity, layout)))
        size = max(4, min(_PLANS, _PLANS_BYTES // (1024 + 2 * k * m * layout.w**2)))
        # The standard library's LRU cache locks nothing that a fork could leave locked. There are two levels: by what
        # is available, which costs a look-up, and by the choice of what to read, which many sets of available shards
        # share. Partial functions, not methods, so that no cycle of references keeps programs alive.
        made = lru_cache(size)(partial(_make, parity, layout, engine))
        self.find: Callable[[Indices, Indices], Plan] = lru_cache(size)(partial(_find, k, order, made))
        self.quick = lru_cache(size)(partial(lean.quick_plan, self._n, self.find))
        self.patch: Callable[[Indices, int, int], Operator] = lru_cache(size)(partial(_patch, parity, layout, engine))
        self.change = lru_cache(size)(partial(lean.quick_change, tuple(range(m)), self.patch))
        self.basis: Callable[[Indices], Indices] = partial(_first, k)

    def plan(self, available: Iterable[int], want: Iterable[int]) -> Plan:
        """Return the plan for what is wanted from what is available.

        Raises
        ------
        ParameterError
            For an index that is no shard of the code, or is given twice.
        UnrecoverableError
            If shards must be computed and fewer than k are available.
        """
        return self.find(check_indices(available, self._n), check_indices(want, self._n))

    def make_new(self, given: Mapping[int, Bytes], want: Sequence[int], shape: tuple[int, ...]) -> Bytes:
        """Put the wanted shards into new memory: copies of those given, the others computed.

        Parameters
        ----------
        given : mapping of shard index to array of uint8
        want : sequence of int
        shape : tuple of int
            Of each array: (length,) or (stripes, length).

        Returns
        -------
        array of uint8, shape (len(want), length) or (stripes, len(want), length)
        """
        absent = [i for i, shard in enumerate(want) if shard not in given]
        plan = self.find(tuple(given), tuple([want[i] for i in absent])) if absent else None
        array, blocks = Blocks.allocate(*shape[:-1], len(want), shape[-1])
        if len(absent) < len(want):
            for i, shard in enumerate(want):
                if shard in given:
                    array[..., i, :] = given[shard]
            blocks = blocks.select(absent)
        if plan:
            plan.operator(join([given[shard] for shard in plan.sources]), blocks)
        return array

    def make(self, given: Mapping[int, Bytes], want: Sequence[int], rows: Sequence[Bytes]) -> None:
        """Put the wanted shards into a caller's memory: copies of those given, the others computed.

        Parameters
        ----------
        given : mapping of shard index to array of uint8
        want : sequence of int
        rows : sequence of arrays of uint8
            One for each wanted shard; all arrays are of one shape. One that is the very memory of the shard given for
            it stays as it is.

        Raises
        ------
        BlockError
            If rows overlap shards or each other in any other way.
        """
        absent = tuple(shard for shard in want if shard not in given)
        plan = self.find(tuple(given), absent) if absent else None
        copied = [
            (given[shard], row)
            for shard, row in zip(want, rows, strict=True)
            if shard in given and not same_memory(given[shard], row)
        ]
        made = [row for shard, row in zip(want, rows, strict=True) if shard not in given]
        if made or copied:
            # Also those that are not read: nobody who gives a shard expects it to be written.
            refuse_overlap(join(list(given.values())), join([*made, *(row for _, row in copied)]))
        for block, row in copied:
            row[...] = block
        if plan:
            plan.operator(join([given[shard] for shard in plan.sources]), join(made))


def indices_of_data(k: int) -> Indices | bytes:
    """Return the indices of all data shards: as short ways take them, where they are small enough."""
    return bytes(range(k)) if k <= 1 << 8 else tuple(range(k))


def _find(k: int, order: Indices, made: Callable[[Indices, Indices], Plan], available: Indices, want: Indices) -> Plan:
    """Choose what to read: wanted shards that are there, then the cheapest."""
    present = set(available)
    chosen = {shard for shard in want if shard in present}
    if len(chosen) > k:
        chosen = set([shard for shard in want if shard in present][:k])
    if not chosen.issuperset(want):
        for shard in order:
            if len(chosen) == k:
                break
            if shard in present:
                chosen.add(shard)
        if len(chosen) < k:
            missing = [shard for shard in range(len(order)) if shard not in present]
            raise UnrecoverableError(
                f"any k = {k} shards are needed and {len(present)} are there: missing are {list_shards(missing)}"
            )
    return made(tuple(sorted(chosen)), want)


def _by_ones(parity: Matrix, layout: Layout) -> list[int]:
    """Order parity rows by their ones; in the family `fft` they cost the same in `words`, and may be too many."""
    if isinstance(parity, Parity) and layout.name == "words":
        return list(range(parity.shape[0]))
    ones: list[int] = np.argsort(element_ones(parity.field, parity.values).sum(axis=1), kind="stable").tolist()
    return ones


def _make(parity: Matrix, layout: Layout, engine: Engine, basis: Indices, want: Indices) -> Plan:
    """Express the wanted shards by those of the basis, and leave out the ones of the basis that do not enter."""
    field = parity.field
    if isinstance(parity, Parity) and field.w <= MAX_LOGARITHM:
        sources = tuple(sorted(want)) if set(want).issubset(basis) else basis
        decoding = Decoding(parity, sources, want)
        return Plan(sources, want, decoding, engine.prepare(Product(decoding, layout)) if want else do_nothing)
    rows = np.zeros((len(want), len(basis)), field.dtype)
    computed = [i for i, shard in enumerate(want) if shard not in basis]
    for i, shard in enumerate(want):
        if shard in basis:
            rows[i, basis.index(shard)] = 1
    if computed:
        rows[computed] = solve(parity, basis, [want[i] for i in computed])
    needed = np.flatnonzero(rows.any(axis=0))
    matrix = Matrix(field, rows[:, needed])
    operator = engine.prepare(Product(matrix, layout)) if want else do_nothing
    return Plan(tuple(basis[int(column)] for column in needed), want, matrix, operator)


def _first(k: int, given: Indices) -> Indices:
    """Any k shards determine all others."""
    return given[:k]


def _patch(parity: Matrix, layout: Layout, engine: Engine, rows: Indices, data: int, blocks: int) -> Operator:
    """Prepare what one block of a data shard means for parity rows, or two: the one before and the one after a change.

    The difference of two is their sum, so that they enter alike.
    """
    return engine.prepare(Product(parity.columns([data] * blocks).rows(rows), layout))


def do_nothing(inputs: Blocks, outputs: Blocks) -> None:
    """Make no shard from no shard."""


def list_shards(shards: Iterable[int]) -> str:
    """Name shards in a message."""
    listed = list(shards)
    more = f" and {len(listed) - _LONG_LIST} more" if len(listed) > _LONG_LIST else ""
    return f"shard{'s' if len(listed) != 1 else ''} {', '.join(map(str, listed[:_LONG_LIST]))}{more}"
