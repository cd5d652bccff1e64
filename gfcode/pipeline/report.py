"""What the pipeline tells its caller of what there is: the state of every frame, shard and set.

All reports are frozen and turn into plain JSON values with `to_json`. Paths are text as `os.fsdecode` gives it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = [
    "Damage",
    "FrameStatus",
    "Progress",
    "SetReport",
    "SetState",
    "ShardReport",
    "Stray",
    "listed",
    "ranges",
]

#: Called as `progress(done_bytes, total_bytes)`; the total is None for a stream. Calls never overlap, but may come from
#: any thread. Neither number ever falls; the total grows when more work shows up (a repair's writing).
Progress = Callable[[int, int | None], None]

#: Shards that a message lists one by one.
_LISTED = 24

SetState = Literal["intact", "repairable", "beyond repair"]


class FrameStatus(IntEnum):
    """What stands where a frame should stand. Everything but GOOD is an erasure of that stripe of that shard only."""

    GOOD = 0
    #: Nothing: the file is missing, or ends before the end of the frame.
    MISSING = 1
    #: Bytes that are no frame, or whose checksum is wrong.
    CHECKSUM = 2
    #: A sound frame of another set.
    FOREIGN = 3
    #: A sound frame of this set that belongs to another shard or stripe.
    MISPLACED = 4
    #: A sound frame whose slack is not zero.
    SLACK = 5
    #: A sound frame at its place whose k, m, w, flags or lengths contradict the set's metadata.
    FIELDS = 6
    #: The file could not be read there (an I/O error).
    UNREADABLE = 7
    #: A sound frame that contradicts the others of its stripe, which agree without it. Only deep checks look for it.
    PARITY = 8


def ranges(numbers: "npt.NDArray[np.int64]") -> list[tuple[int, int]]:
    """Return the runs (first, last) of ascending whole numbers.

    Parameters
    ----------
    numbers : ndarray of int64, shape (count,)
        Strictly ascending.
    """
    if not numbers.size:
        return []
    import numpy as np

    breaks = np.flatnonzero(np.diff(numbers) != 1)
    firsts = numbers[np.concatenate(([0], breaks + 1))]
    lasts = numbers[np.concatenate((breaks, [numbers.size - 1]))]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class ShardReport:
    """The state of one shard of a set.

    Attributes
    ----------
    index : int
        Shard number: 0 to k - 1 are data shards, k to n - 1 parity shards.
    path : str or None
        The file that holds it; None where none was found.
    metadata : FrameStatus
        State of the metadata frame.
    damaged : int
        Stripes whose frame is there but not good.
    missing : int
        Stripes whose frame is not there.
    trailing : int
        Bytes after the last frame; damage, though no data is touched by it.
    notes : tuple of str
        What is odd without being damage: another file name than the shard's own, second copies.
    """

    index: int
    path: str | None
    metadata: FrameStatus
    damaged: int
    missing: int
    trailing: int = 0
    notes: tuple[str, ...] = ()

    @property
    def intact(self) -> bool:
        """Whether the file holds exactly the bytes that were encoded."""
        return self.metadata is FrameStatus.GOOD and not (self.damaged or self.missing or self.trailing)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "index": self.index,
            "path": self.path,
            "intact": self.intact,
            "metadata": self.metadata.name.lower(),
            "damaged": self.damaged,
            "missing": self.missing,
            "trailing": self.trailing,
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class Stray:
    """A file that was looked at and not used, and why.

    Attributes
    ----------
    path, reason : str
    unread : bool
        Whether it is there and cannot be read.
    """

    path: str
    reason: str
    unread: bool = field(default=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {"path": self.path, "reason": self.reason}


@dataclass(slots=True, eq=False)
class Damage:
    """What is wrong with the frames of a set.

    Attributes
    ----------
    status : ndarray of uint8, shape (k + m, stripes)
        A `FrameStatus` for every frame.
    beyond : ndarray of bool, shape (stripes,)
        Stripes with fewer than k good frames.
    doubt : ndarray of bool, shape (stripes,)
        Stripes whose sound frames contradict one another, and which of them are wrong cannot be told.
    """

    status: "npt.NDArray[np.uint8]"
    beyond: "npt.NDArray[np.bool_]"
    doubt: "npt.NDArray[np.bool_]"

    def to_json(self) -> dict[str, list[list[Any]]]:
        """Return plain JSON values: the runs [first stripe, last stripe, status] of each damaged shard."""
        return {str(index): _runs(row) for index, row in enumerate(self.status) if row.any()}


@dataclass(frozen=True, slots=True, eq=False)
class SetReport:
    """The state of a shard set.

    Attributes
    ----------
    set_id : str
        32 hexadecimal digits.
    name : str
        Name of the file that was encoded.
    size : int or None
        Its bytes; None where a stream's end could not be found.
    k, m, w : int
    layout : {"packets", "words"}
    family : str
        Family of the parity matrix; "explicit" for any other.
    stripes : int
    shards : tuple of ShardReport
        All k + m, in order.
    strays : tuple of Stray
    state : {"intact", "repairable", "beyond repair"}
    check : str
        Checksum of the frames, and what it proves.
    bytes_read : int
    seconds : float
    parity_checked : int or None
        Stripes in which a deep check compared the good frames with one another; None where none was asked for.
    found : Damage or None
        What is damaged, frame by frame; None where nothing is.
    """

    set_id: str
    name: str
    size: int | None
    k: int
    m: int
    w: int
    layout: str
    family: str
    stripes: int
    shards: tuple[ShardReport, ...]
    strays: tuple[Stray, ...]
    state: SetState
    check: str
    bytes_read: int
    seconds: float
    parity_checked: int | None = None
    found: Damage | None = None

    @property
    def n(self) -> int:
        """Number of shards."""
        return self.k + self.m

    @property
    def damage(self) -> "npt.NDArray[np.uint8]":
        """A `FrameStatus` for every frame, shape (k + m, stripes)."""
        import numpy as np

        return np.zeros((self.n, self.stripes), np.uint8) if self.found is None else self.found.status

    @property
    def stripes_beyond_repair(self) -> "npt.NDArray[np.int64]":
        """Stripes with fewer than k good frames, ascending."""
        import numpy as np

        return np.flatnonzero(() if self.found is None else self.found.beyond).astype(np.int64)

    @property
    def stripes_in_doubt(self) -> "npt.NDArray[np.int64]":
        """Stripes whose sound frames contradict one another, and which of them are wrong cannot be told; ascending."""
        import numpy as np

        return np.flatnonzero(() if self.found is None else self.found.doubt).astype(np.int64)

    def summary(self) -> str:
        """One line: what is missing or damaged, and where."""
        if self.state == "intact":
            return f"all {self.n} shards of {self.name!r} are intact"
        bad = [shard.index for shard in self.shards if not shard.intact]
        if self.state == "repairable":
            return f"{len(bad)} of {self.n} shards of {self.name!r} can be repaired: {listed(bad)}"
        lost = self.stripes_beyond_repair
        if not lost.size:
            doubt = self.stripes_in_doubt
            return (
                f"{doubt.size} of {self.stripes} stripes of {self.name!r} contradict themselves "
                f"(stripe {', '.join(map(str, doubt[:6].tolist()))}{', ...' if doubt.size > 6 else ''}): checksums are "
                f"right, parity is not, and which shard is wrong cannot be told"
            )
        spans = ranges(lost)
        where = ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in spans[:6]) + (", ..." if len(spans) > 6 else "")
        columns = self.damage[:, lost]
        gone = (columns != FrameStatus.GOOD).any(axis=1).nonzero()[0].tolist()
        fewest = self.n - int((columns != FrameStatus.GOOD).sum(axis=0).max())
        return (
            f"{lost.size} of {self.stripes} stripes of {self.name!r} are beyond repair (stripe {where}): "
            f"frames of shards {listed(gone)} are missing or damaged there, "
            f"which leaves as few as {fewest} of the {self.k} needed"
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values; damage as runs [first stripe, last stripe, status] for each damaged shard."""
        return {
            "set_id": self.set_id,
            "name": self.name,
            "size": self.size,
            "k": self.k,
            "m": self.m,
            "w": self.w,
            "layout": self.layout,
            "family": self.family,
            "check": self.check,
            "stripes": self.stripes,
            "state": self.state,
            "stripes_beyond_repair": _places(None if self.found is None else self.found.beyond),
            "shards": [shard.to_json() for shard in self.shards],
            "damage": {} if self.found is None else self.found.to_json(),
            "strays": [stray.to_json() for stray in self.strays],
            "parity_checked": self.parity_checked,
            "stripes_in_doubt": _places(None if self.found is None else self.found.doubt),
            "bytes_read": self.bytes_read,
            "seconds": self.seconds,
        }


def listed(numbers: list[int]) -> str:
    """Return numbers for a message: the first of them, and how many more there are."""
    shown = ", ".join(map(str, numbers[:_LISTED]))
    return shown if len(numbers) <= _LISTED else f"{shown} and {len(numbers) - _LISTED} more"


def _places(stripes: "npt.NDArray[np.bool_] | None") -> dict[str, Any]:
    """Return how many stripes are marked, and their runs."""
    if stripes is None:
        return {"count": 0, "ranges": []}
    numbers = stripes.nonzero()[0]
    return {"count": len(numbers), "ranges": [list(run) for run in ranges(numbers)]}


def _runs(row: "npt.NDArray[np.uint8]") -> list[list[Any]]:
    """Return the runs [first, last, status name] of one shard's frames that are not good."""
    import numpy as np

    edges = np.flatnonzero(np.diff(row)) + 1
    firsts = np.concatenate(([0], edges)).tolist()
    lasts = np.concatenate((edges - 1, [row.size - 1])).tolist()
    return [
        [first, last, FrameStatus(int(row[first])).name.lower()]
        for first, last in zip(firsts, lasts, strict=True)
        if row[first]
    ]
