"""Commands over all sets under some paths: a line for each, a summary, and the exit code of the worst."""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gfcode.cli.console import Console, human_bytes, human_count, human_seconds, printable
from gfcode.cli.damage_map import colour_for, stray_lines
from gfcode.cli.exits import Exit
from gfcode.errors import GFCodeError, ShardSetError, UnrecoverableError

if TYPE_CHECKING:
    from gfcode.pipeline.discovery import Found
    from gfcode.pipeline.grouping import FoundSets
    from gfcode.pipeline.report import Progress, SetReport, SetState

__all__ = ["SetResult", "exit_of", "over_sets", "place_of"]

_STATES = ("intact", "repairable", "beyond repair", "failed")


@dataclass(frozen=True, slots=True)
class SetResult:
    """What a command has to say of one set.

    Attributes
    ----------
    report : SetReport
    state : {"intact", "repairable", "beyond repair"}
        State of the set when the command is done with it.
    values : dict
        Plain JSON values of its report.
    done : str
        What was done, for people; empty for nothing.
    """

    report: "SetReport"
    state: "SetState"
    values: dict[str, Any]
    done: str = ""


#: Does the command's work on one set.
Work = Callable[["Found", "Progress | None"], SetResult]


def over_sets(console: Console, found: "FoundSets", work: Work, progress: "Progress | None") -> Exit:
    """Work on every set; a set that fails does not keep the others from it.

    Parameters
    ----------
    console : Console
    found : FoundSets
    work : callable
    progress : callable or None
        Counts the bytes of all sets.
    """
    from gfcode.pipeline.grouping import look_again

    started = time.perf_counter()
    counts: Counter[str] = Counter()
    read = 0
    totals = _Totals(progress, found)
    for one in found.sets:
        label = place_of(one)
        try:
            with totals.of(one) as own:
                now = look_again(one, found.hashes)
                if now is None:
                    raise ShardSetError("the set was removed or replaced since it was found; run again")
                result = work(now, own)
        except (GFCodeError, OSError) as error:
            _failed(console, counts, one.metadata.name, label, error)
            continue
        counts[result.state] += 1
        read += result.report.bytes_read
        console.result(result.values)
        said = "intact" if result.report.state == "intact" else result.report.summary()
        more = f"; {result.done}" if result.done else ""
        console.say(f"{label}: {printable(said)}{more}", colour=colour_for(result.state))
    for lost in found.lost:
        label = os.path.join(os.path.dirname(lost.paths[0]), lost.name)
        _failed(console, counts, lost.name, printable(label), lost.error)
    for line in stray_lines(found.strays):
        console.say(line)
    seconds = time.perf_counter() - started
    code = exit_of(counts)
    total = sum(counts.values())
    summary = {
        "sets": total, **{state: counts[state] for state in _STATES}, "bytes_read": read, "seconds": seconds,
        "strays": [stray.to_json() for stray in found.strays],
    }  # fmt: skip
    console.result({"summary": summary, "exit_code": int(code)})
    states = ", ".join(f"{counts[state]:,} {state}" for state in _STATES)
    console.say(f"{human_count(total, 'set')}: {states}; {human_bytes(read)} read in {human_seconds(seconds)}")
    return code


def exit_of(counts: Counter[str]) -> Exit:
    """Return the exit code of the worst that was found."""
    if counts["beyond repair"]:
        return Exit.BEYOND_REPAIR
    if counts["failed"]:
        return Exit.FAILED
    return Exit.REPAIRABLE if counts["repairable"] else Exit.FINE


def place_of(found: "Found") -> str:
    """Name a set as the path that its file would have beside the first shard."""
    paths = [files[0].path for files in found.files if files]
    directory = os.path.dirname(paths[0]) if paths else ""
    return printable(os.path.join(directory, found.metadata.name))


def _failed(console: Console, counts: Counter[str], name: str, label: str, error: Exception) -> None:
    state = "beyond repair" if isinstance(error, UnrecoverableError) else "failed"
    counts[state] += 1
    message = str(error) if isinstance(error, GFCodeError) else getattr(error, "strerror", None) or str(error)
    code = Exit.BEYOND_REPAIR if state == "beyond repair" else Exit.FAILED
    console.error(f"{label}: {message}", code, {"name": name, "state": state})


class _Totals:
    """Makes one progress of that of many sets."""

    def __init__(self, progress: "Progress | None", found: "FoundSets") -> None:
        self._progress = progress
        self._total = sum(self._size(one) for one in found.sets)
        self._before = 0

    @staticmethod
    def _size(found: "Found") -> int:
        return sum(files[0].size for files in found.files if files)

    @contextmanager
    def of(self, found: "Found") -> Iterator["Progress | None"]:
        """Yield what one set's work is to call."""
        before, progress = self._before, self._progress

        def show(done: int, total: int | None) -> None:  # noqa: ARG001
            if progress is not None:
                progress(before + done, max(before + done, self._total))

        yield show if progress is not None else None
        self._before += self._size(found)
