"""Checks and patches of blocks of any size, a span at a time, so that scratch memory stays small and in cache."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from gfcode.codec.arguments import Bytes, join
from gfcode.codec.locate import Locator
from gfcode.codec.plan import Plan
from gfcode.engine.buffers import allocate
from gfcode.engine.protocol import Blocks, Operator

__all__ = ["VerifyReport", "accumulate", "verify"]

# Bytes of each block in a span; of several short blocks together.
_SPAN: Final = 1 << 17


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What comparing shards came to. As a truth value it is `consistent`.

    Attributes
    ----------
    consistent : bool
        Whether all shards belong together.
    basis : tuple of int
        The k shards from which the others were computed: the first ones given, data before parity.
    compared : tuple of int
        The other shards that were given.
    disagreeing : tuple of int
        Those of `compared` that are not what the basis makes them. One wrong shard of the basis makes all disagree.
    stripes : tuple of int
        The stripes in which any disagrees; (0,) for a single stripe.
    wrong : tuple of int
        The shards that were found wrong: without them, the others agree. With e spare shards that is certain where at
        most ⌊e/2⌋ are wrong at one place; more can look like fewer others. Where no set of as few shards explains what
        is seen, none is named.
    wrong_in : dict of int to tuple of int
        Those of each stripe in which any was found.
    located : bool
        Whether `wrong` explains all that disagrees; True where nothing does.
    """

    consistent: bool
    basis: tuple[int, ...]
    compared: tuple[int, ...]
    disagreeing: tuple[int, ...]
    stripes: tuple[int, ...]
    wrong: tuple[int, ...]
    wrong_in: dict[int, tuple[int, ...]] = field(hash=False)
    located: bool

    def __bool__(self) -> bool:
        return self.consistent


def verify(
    shards: Mapping[int, Bytes], basis: tuple[int, ...], plan: Plan, multiple: int, locator: Locator
) -> VerifyReport:
    """Compare the shards that `plan` makes from the basis with those given; where they differ, find the wrong ones.

    Parameters
    ----------
    shards : mapping of shard index to array of uint8, shape (length,) or (stripes, length)
        All of one shape.
    basis : tuple of int
    plan : Plan
    multiple : int
        What lengths are multiples of.
    locator : Locator
        For these shards, in ascending order.
    """
    disagreeing, stripes, located = set(), set(), True
    wrong_in: dict[int, set[int]] = {}
    if plan.want:
        inputs = join([shards[shard] for shard in plan.sources])
        for rows, columns in _spans(inputs.stripes, inputs.length, multiple):
            made = allocate(rows.stop - rows.start, len(plan.want), columns.stop - columns.start)
            plan.operator(_window(inputs, rows, columns), Blocks.of_array(made))
            found = set()
            for i, shard in enumerate(plan.want):
                different = (made[:, i] != np.atleast_2d(shards[shard])[rows, columns]).any(axis=1)
                if different.any():
                    disagreeing.add(shard)
                    found.update((rows.start + np.flatnonzero(different)).tolist())
            for stripe in sorted(found):
                finding = locator.find(np.stack([np.atleast_2d(shards[i])[stripe, columns] for i in locator.given]))
                located = located and not finding.unexplained
                if finding.wrong:
                    wrong_in.setdefault(stripe, set()).update(finding.wrong)
            stripes |= found
    return VerifyReport(
        not disagreeing, basis, plan.want, tuple(sorted(disagreeing)), tuple(sorted(stripes)),
        tuple(sorted(set().union(*wrong_in.values()))),
        {stripe: tuple(sorted(wrong)) for stripe, wrong in sorted(wrong_in.items())}, located,
    )  # fmt: skip


def accumulate(parity: Sequence[Bytes], operator: Operator, blocks: Sequence[Bytes], multiple: int) -> None:
    """Add to parity blocks what blocks of data mean for them.

    Parameters
    ----------
    parity : sequence of arrays of uint8
        Patched in place.
    operator : Operator
        Makes as many blocks from those of data.
    blocks : sequence of arrays of uint8
        A data block, or the ones before and after a change. All arrays are of one shape, (length,) or
        (stripes, length).
    multiple : int
        What lengths are multiples of.
    """
    inputs = join(blocks)
    targets = [np.atleast_2d(row) for row in parity]
    for rows, columns in _spans(inputs.stripes, inputs.length, multiple):
        _add(operator, _window(inputs, rows, columns), [target[rows, columns] for target in targets])


def _add(operator: Operator, inputs: Blocks, targets: Sequence[Bytes]) -> None:
    """Add what an operator makes to blocks of shape (stripes, length), by itself where it can do that."""
    add = getattr(operator, "add", None)  # an `AddingOperator`; to ask for the protocol takes 60 µs
    if add is not None and add(inputs, join(targets)):
        return
    changes = allocate(inputs.stripes, len(targets), inputs.length)
    operator(inputs, Blocks.of_array(changes))
    for i, target in enumerate(targets):
        np.bitwise_xor(target, changes[:, i], out=target)


def _spans(stripes: int, length: int, multiple: int) -> Iterator[tuple[slice, slice]]:
    """Cut (stripes, length) into parts of about `_SPAN` bytes: slices of stripes and of bytes."""
    if not length:
        return
    rows = max(1, _SPAN // length)
    columns = min(length, max(multiple, _SPAN // multiple * multiple))
    for row in range(0, stripes, rows):
        for column in range(0, length, columns):
            yield slice(row, min(row + rows, stripes)), slice(column, min(column + columns, length))


def _window(blocks: Blocks, rows: slice, columns: slice) -> Blocks:
    return Blocks(blocks.table[rows] + np.uint64(columns.start), columns.stop - columns.start, blocks.owners)
