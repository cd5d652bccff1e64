"""What a run over many files or sets tells its caller."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gfcode.pipeline.outcomes import EncodeReport

__all__ = ["Encoded", "TreeReport"]

EncodedState = Literal["encoded", "replaced", "current", "skipped", "failed"]


@dataclass(frozen=True, slots=True)
class Encoded:
    """What became of one file.

    Attributes
    ----------
    source : str
    state : {"encoded", "replaced", "current", "skipped", "failed"}
        "replaced": its set was out of date or incomplete. "current": its set was there. "skipped": it is not for
        encoding, as a symbolic link or a shard.
    size : int
        Bytes of the file, where they are known.
    reason : str
        Why it was replaced, skipped or failed.
    report : EncodeReport or None
        Where it was encoded.
    error : Exception or None
        Where it failed.
    """

    source: str
    state: EncodedState
    size: int = 0
    reason: str = ""
    report: EncodeReport | None = None
    error: Exception | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values: those of the report too, where there is one."""
        values: dict[str, Any] = {"source": self.source, "state": self.state}
        if self.reason:
            values["reason"] = self.reason
        return values | ({"size": self.size} if self.report is None else self.report.to_json())


@dataclass(frozen=True, slots=True)
class TreeReport:
    """What became of all files."""

    results: Sequence[Encoded]
    bytes_written: int
    seconds: float

    @property
    def counts(self) -> dict[str, int]:
        """How many files are in each state."""
        found = Counter(result.state for result in self.results)
        return {state: found[state] for state in ("encoded", "replaced", "current", "skipped", "failed")}

    @property
    def size(self) -> int:
        """Bytes of the files that were encoded."""
        return sum(result.size for result in self.results if result.report is not None)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "files": self.counts, "size": self.size, "bytes_written": self.bytes_written, "seconds": self.seconds,
        }  # fmt: skip
