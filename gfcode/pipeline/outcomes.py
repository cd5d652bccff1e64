"""What the pipeline tells its caller of what it did: frozen reports, which turn into plain JSON values.

They stand apart from `gfcode.pipeline.report`, so that a command makes the classes that it needs, and no others.
"""

from dataclasses import asdict, dataclass
from typing import Any

from gfcode.pipeline.report import SetReport, SetState, Stray

__all__ = ["DecodeReport", "EncodeReport", "RepairReport", "RepairedShard"]


@dataclass(frozen=True, slots=True)
class EncodeReport:
    """What an encoding wrote."""

    set_id: str
    name: str
    size: int
    k: int
    m: int
    w: int
    layout: str
    family: str
    check: str
    frame_length: int
    block_length: int
    stripes: int
    paths: tuple[str, ...]
    bytes_written: int
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values, under the attributes' names."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class DecodeReport:
    """What a decoding wrote, and the damage that it met on the way (it reads no more shards than it needs).

    Attributes
    ----------
    path : str or None
        The file written; None for a stream.
    size : int
        Bytes written.
    rebuilt_blocks : int
        Data blocks that were computed from others.
    missing_shards : tuple of int
        Shards for which no file was found.
    damaged_shards : tuple of int
        Shards with bad frames among those that were read.
    strays : tuple of Stray
    check : str
        Checksum of the frames, and what it proves.
    bytes_read : int
    seconds : float
    notes : tuple of str
        What was odd without being damage: shards under other names, second copies.
    """

    set_id: str
    name: str
    path: str | None
    size: int
    stripes: int
    rebuilt_blocks: int
    missing_shards: tuple[int, ...]
    damaged_shards: tuple[int, ...]
    strays: tuple[Stray, ...]
    check: str
    bytes_read: int
    seconds: float
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values, under the attributes' names."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class RepairedShard:
    """A shard that was written anew and verified before it took its name."""

    index: int
    path: str
    created: bool  # True where no file held this shard before
    rebuilt_stripes: int

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values, under the attributes' names."""
        return asdict(self)


@dataclass(frozen=True, slots=True, eq=False)
class RepairReport:
    """What a repair found (`before`) and what it wrote. Nothing is written where `before` is beyond repair."""

    before: SetReport
    repaired: tuple[RepairedShard, ...]
    bytes_written: int
    seconds: float
    notes: tuple[str, ...] = ()

    @property
    def state(self) -> SetState:
        """State of the set after the run."""
        return "beyond repair" if self.before.state == "beyond repair" else "intact"

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "before": self.before.to_json(),
            "state": self.state,
            "repaired": [shard.to_json() for shard in self.repaired],
            "bytes_written": self.bytes_written,
            "seconds": self.seconds,
            "notes": list(self.notes),
        }
