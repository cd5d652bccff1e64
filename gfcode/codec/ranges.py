"""Parts of blocks: which bytes of which shards a part of the data takes, and nothing else."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gfcode.codec.arguments import BlockLike, Bytes, array_of, check_indices, check_length, count_of
from gfcode.codec.plan import Plan
from gfcode.engine.buffers import allocate
from gfcode.engine.protocol import Blocks
from gfcode.errors import BlockError, ParameterError

__all__ = ["Read", "RepairPlan", "decode_range", "plan_repair"]

#: `Codec.plan`.
PlanOf = Callable[[Iterable[int], Iterable[int]], Plan]


@dataclass(frozen=True, slots=True)
class Read:
    """A part of a shard that must be read."""

    shard: int
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """What must be read to make lost shards again.

    `codec.reconstruct({read.shard: bytes of it for each read}, plan.lost)` gives the bytes from `offset` on, as many
    as each read has, of every lost shard: strips are independent of each other.

    Attributes
    ----------
    lost : tuple of int
    reads : tuple of Read
        One for each shard to be read, all of one offset and length, which are whole strips.
    offset, length : int
        The part of the lost shards that is made: the one wanted, widened to whole strips.
    plan : Plan
        Its operator makes the lost blocks from those read, in the order of `reads`.
    """

    lost: tuple[int, ...]
    reads: tuple[Read, ...]
    offset: int
    length: int
    plan: Plan

    @property
    def sources(self) -> tuple[int, ...]:
        """The shards to be read."""
        return self.plan.sources

    @property
    def bytes_read(self) -> int:
        """Bytes to be read from all of them."""
        return len(self.reads) * self.length

    @property
    def bytes_made(self) -> int:
        """Bytes of lost shards that come of it."""
        return len(self.lost) * self.length


def plan_repair(
    plan_of: PlanOf,
    n: int,
    multiple: int,
    lost: Iterable[int],
    length: int,
    available: Iterable[int] | None,
    within: tuple[int, int] | None,
) -> RepairPlan:
    """Do what `Codec.repair_plan` says."""
    wanted = check_indices(lost, n)
    if available is None:
        at_hand = tuple(shard for shard in range(n) if shard not in wanted)
    else:
        at_hand = check_indices(available, n)
        both = sorted(set(at_hand) & set(wanted))
        if both:
            raise ParameterError(f"shard {both[0]} is lost and available; it is one of them")
    size = count_of("length", length)
    check_length(size, multiple)
    try:
        start, stop = (0, size) if within is None else within
    except (TypeError, ValueError):
        raise ParameterError(f"within is {within!r}, not the first byte and the end of a part") from None
    start, stop = count_of("within", start), count_of("within", stop)
    if not start <= stop <= size:
        raise ParameterError(f"there are no bytes {start} to {stop} in shards of {size} bytes")
    first, end = _widen(start, stop, multiple)
    plan = plan_of(at_hand, wanted)
    reads = tuple(Read(shard, first, end - first) for shard in plan.sources) if end > first else ()
    return RepairPlan(wanted, reads, first, end - first, plan)


def decode_range(
    plan_of: PlanOf,
    k: int,
    multiple: int,
    given: Mapping[int, Bytes],
    offset: int,
    length: int,
    out: BlockLike | None,
) -> Any:
    """Do what `Codec.decode_range` says."""
    offset, length = count_of("offset", offset), count_of("length", length)
    views = {shard: np.atleast_2d(block) for shard, block in given.items()}
    stripes, block_length = next(iter(views.values())).shape
    if offset + length > stripes * k * block_length:
        raise ParameterError(
            f"there are no bytes {offset} to {offset + length} in {stripes * k * block_length} bytes of data"
        )
    target = np.empty(length, np.uint8) if out is None else array_of(out, "out", writable=True)
    if target.shape != (length,):
        raise BlockError(f"out has shape {target.shape}, not ({length},)")
    if out is not None and length:
        _refuse_overlap(given, target)
    at = 0
    while at < length:
        stripe, within = divmod(offset + at, k * block_length)
        stop = min(within + length - at, k * block_length)
        at += _part(
            plan_of, {shard: view[stripe] for shard, view in views.items()}, multiple, within, stop, target[at:]
        )
    return target if out is None else out


def _part(
    plan_of: PlanOf, given: Mapping[int, Bytes], multiple: int, start: int, stop: int, target: Bytes
) -> int:  # fmt: skip
    """Put the bytes start .. stop of one stripe's data at the beginning of `target`; return how many they are."""
    block_length = next(iter(given.values())).shape[0]
    windows: dict[tuple[int, int], list[int]] = {}
    places: dict[int, tuple[int, int]] = {}
    for shard in range(start // block_length, -(-stop // block_length)):
        low = max(start - shard * block_length, 0)
        high = min(stop - shard * block_length, block_length)
        places[shard] = low, high
        at = shard * block_length + low - start
        if shard in given:
            target[at : at + high - low] = given[shard][low:high]
        else:
            windows.setdefault(_widen(low, high, multiple), []).append(shard)
    for (first, end), lost in windows.items():
        plan = plan_of(given, lost)
        made = allocate(len(lost), end - first)
        inputs = Blocks.of_buffers([given[shard][first:end] for shard in plan.sources])
        plan.operator(inputs, Blocks.of_array(made))
        for row, shard in enumerate(lost):
            low, high = places[shard]
            at = shard * block_length + low - start
            target[at : at + high - low] = made[row, low - first : high - first]
    return stop - start


def _refuse_overlap(given: Mapping[int, Bytes], target: Bytes) -> None:
    for shard, block in given.items():
        if np.shares_memory(block, target):
            raise BlockError(f"out overlaps shard {shard}; give memory of its own")


def _widen(start: int, stop: int, multiple: int) -> tuple[int, int]:
    """Return the whole strips that hold some bytes."""
    return (start // multiple * multiple, -(-stop // multiple) * multiple) if stop > start else (start, start)
