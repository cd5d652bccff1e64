"""What the raw pipeline tells its caller. Reports turn into plain JSON values with `to_json`."""

from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

__all__ = ["RawEncodeReport", "RawRepairReport", "RawVerifyReport", "WrongShard", "merged", "runs"]

#: Ranges of bytes that a report lists for a shard, at most.
_MOST_RANGES: Final = 1000


@dataclass(frozen=True, slots=True)
class RawEncodeReport:
    """What an encoding wrote: path and bytes of each shard, in the order of their indices."""

    paths: tuple[str, ...]
    lengths: tuple[int, ...]
    size: int

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class RawRepairReport:
    """What a repair did.

    Attributes
    ----------
    made : dict of int to str
        Path of each shard that was made.
    read : tuple of int
        Shards it was made from.
    checked : tuple of int
        Further shards that were found to agree with those.
    notes : tuple of str
        What could not be known.
    """

    made: dict[int, str]
    read: tuple[int, ...]
    checked: tuple[int, ...]
    lengths: dict[int, int]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


@dataclass(slots=True)
class WrongShard:
    """A shard found wrong: how many of its bytes, and where (first and last byte of each run, not all if many)."""

    index: int
    path: str
    wrong_bytes: int = 0
    ranges: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RawVerifyReport:
    """What comparing shards came to.

    Attributes
    ----------
    state : {"consistent", "repairable", "beyond repair"}
        Repairable: each place that disagrees is explained by a wrong shard or a few, as `wrong` says, and the others
        determine all of them.
    wrong : tuple of WrongShard
    unexplained : tuple of (int, int)
        Places (first and last byte, within each shard) that disagree, and no set of shards that is small enough to be
        told by explains it.
    spare : int
        Shards given beyond those needed.
    """

    state: Literal["consistent", "repairable", "beyond repair"]
    given: tuple[int, ...]
    wrong: tuple[WrongShard, ...]
    unexplained: tuple[tuple[int, int], ...]
    spare: int
    length: int

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def runs(offsets: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return the runs (first, last) of ascending offsets, not all if there are very many."""
    breaks = np.flatnonzero(np.diff(offsets) > 1)
    firsts = offsets[np.concatenate([[0], breaks + 1])]
    lasts = offsets[np.concatenate([breaks, [len(offsets) - 1]])]
    return [(int(a), int(b)) for a, b in zip(firsts[:_MOST_RANGES], lasts[:_MOST_RANGES], strict=True)]


def merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges (first, last) in ascending order, joined where they touch; not all if there are very many."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined[:_MOST_RANGES]
