"""Verify all sets under a directory little by little, at a bounded rate, going on where the last run ended."""

import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from gfcode.errors import GFCodeError, ParameterError, UnrecoverableError
from gfcode.pipeline.deep import DeepCheck
from gfcode.pipeline.discovery import Found, StrPath
from gfcode.pipeline.frame import HASHES, Hashes
from gfcode.pipeline.grouping import FoundSets, find_sets, look_again
from gfcode.pipeline.keys import hashes_for
from gfcode.pipeline.recover import LazyCodec
from gfcode.pipeline.report import Progress, SetReport
from gfcode.pipeline.scrub_state import Problem, ScrubState, default_state_path, held
from gfcode.pipeline.shardset import ShardSet
from gfcode.pipeline.verify import Stretch, survey, total_bytes
from gfcode.pipeline.workers import Meter

__all__ = ["ScrubReport", "scrub"]

#: Seconds of work after which the state is saved.
_SAVE_AFTER = 30.0
_ORDER = ("intact", "repairable", "failed", "beyond repair")


@dataclass(frozen=True, slots=True)
class ScrubReport:
    """What a run did, and how things stand.

    Attributes
    ----------
    directory, state_file : str
    state : {"intact", "repairable", "failed", "beyond repair"}
        The worst of all sets when they were last looked at, in this run or an earlier one.
    complete : bool
        Whether this run finished a pass over all sets.
    sets : int
        Sets that were found.
    sets_done : int
        Sets that the pass has finished, those of earlier runs included.
    checked : int
        Sets that this run finished.
    problems : tuple of Problem
        All sets that were not intact when they were last looked at.
    last_pass : dict or None
        Beginning, end, sets and bytes of the last pass that was finished.
    bytes_read : int
        By this run.
    seconds : float
    """

    directory: str
    state_file: str
    state: str
    complete: bool
    sets: int
    sets_done: int
    checked: int
    problems: tuple[Problem, ...]
    last_pass: dict[str, Any] | None
    bytes_read: int
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values, under the attributes' names."""
        return asdict(self)


def scrub(
    directory: StrPath,
    *,
    state_file: StrPath | None = None,
    rate: float | None = None,
    max_seconds: float | None = None,
    deep: bool = False,
    key: StrPath | None = None,
    threads: int = 1,
    on_problem: Callable[[Problem], None] | None = None,
) -> ScrubReport:
    """Verify the sets under a directory. Nothing is written but the state file.

    A run goes on where the last one ended, in the middle of a set too, and ends with the pass over all sets, or after
    `max_seconds`. The next one then begins a new pass. Every set that is found, in any state, has its turn; one that is
    gone by then, as it was removed or replaced, is passed over.

    Parameters
    ----------
    directory : path
    state_file : path, optional
        By default a file in the user's directory for states, for each directory another. A lock file stands beside it.
    rate : float, optional
        Most bytes to read in a second. (What is read to find the sets, one frame of each file, is not counted.)
    max_seconds : float, optional
    deep : bool
        Compute parity again too.
    key : path, optional
        File with the key of keyed sets.
    threads : int
        Workers.
    on_problem : callable, optional
        Called for each set that is found not to be intact.

    Returns
    -------
    ScrubReport

    Raises
    ------
    GFCodeError
        If another scrub holds the state file.
    ParameterError
        If that is none, or of another directory; or for a rate or time that is not positive.
    ShardSetError
        If there are no sets.
    """
    started = time.monotonic()
    for name, value in (("the rate", rate), ("the time", max_seconds)):
        if value is not None and not value > 0:
            raise ParameterError(f"{name} must be above 0, not {value:g}")
    where = os.fsdecode(directory)
    path = default_state_path(where) if state_file is None else os.fsdecode(state_file)
    with held(path):
        state = ScrubState.load(path, where)
        run = _Scrub(state, path, _Pace(rate), None if max_seconds is None else started + max_seconds, on_problem)
        run.deep, run.threads, run.hashes = deep, threads, hashes_for(key)
        found = find_sets(where, hashes=run.hashes, every=True)
        try:
            complete = run.work(found)
        finally:
            state.save(path)
    worst = max((problem.state for problem in state.problems.values()), key=_ORDER.index, default="intact")
    last = state.last or {}
    return ScrubReport(
        directory=where, state_file=path, state=worst, complete=complete, sets=len(found.sets) + len(found.lost),
        sets_done=last.get("sets", 0) if complete else state.sets, checked=run.checked,
        problems=tuple(state.problems.values()), last_pass=state.last, bytes_read=run.bytes_read,
        seconds=time.monotonic() - started,
    )  # fmt: skip


class _Pace:
    """Sleeps as long as more was read than the rate allows."""

    def __init__(self, rate: float | None) -> None:
        self._rate = rate
        self._free = time.monotonic()

    def spend(self, count: int) -> None:
        """Read so many bytes."""
        if self._rate is None:
            return
        now = time.monotonic()
        self._free = max(self._free, now) + count / self._rate
        time.sleep(self._free - now)

    def progress(self) -> Progress:
        """Return what a `Meter` calls; it holds up all workers."""
        before = 0

        def show(done: int, total: int | None) -> None:  # noqa: ARG001
            nonlocal before
            count, before = done - before, done
            self.spend(count)

        return show


class _Scrub:
    """One run."""

    def __init__(
        self, state: ScrubState, path: str, pace: _Pace, end: float | None,
        on_problem: Callable[[Problem], None] | None,
    ) -> None:  # fmt: skip
        self.state, self.path = state, path
        self.deep, self.threads = False, 1
        self.hashes: Hashes = HASHES
        self.checked = self.bytes_read = 0
        self._pace, self._end, self._tell = pace, end, on_problem
        self._saved = time.monotonic()

    def work(self, found: FoundSets) -> bool:
        """Go on with the pass; return whether it is finished."""
        state = self.state
        sets = {one.metadata.set_id.hex(): one for one in found.sets}
        self._lost(found, set(sets))
        if state.started is None:
            state.started, state.cursor, state.sets, state.bytes_read = _now(), "", 0, 0
        for set_id in sorted(sets):
            if set_id <= state.cursor:
                continue
            if self.bytes_read and self._over():  # no run is so short that it does nothing
                return False
            if not self._set(set_id, sets[set_id]):
                return False
        state.last = {
            "started": state.started, "ended": _now(), "sets": state.sets, "bytes_read": state.bytes_read,
        }  # fmt: skip
        state.started = None
        state.cursor = ""
        return True

    def _lost(self, found: FoundSets, sets: set[str]) -> None:
        """Note what is lost as a whole; forget problems of what is gone, or lost no more."""
        self.state.problems = {key: problem for key, problem in self.state.problems.items() if key in sets}
        for lost in found.lost:
            state = "beyond repair" if isinstance(lost.error, UnrecoverableError) else "failed"
            self._problem(lost.paths[0], Problem(None, lost.name, lost.paths[0], state, str(lost.error), _now()))

    def _set(self, set_id: str, found: Found) -> bool:
        """Verify a set, from where the last run ended; return whether to its end."""
        state = self.state
        if state.partial != set_id:
            state.partial, state.batch, state.worst = set_id, 0, "intact"
        try:
            again = look_again(found, self.hashes)
            if again is None:  # removed, or replaced by another set, since the run began
                state.problems.pop(set_id, None)
                state.cursor, state.partial, state.batch = set_id, "", 0
                return True
            with ShardSet(again) as shards:
                for files in shards.files:
                    for file in files:  # what is checked comes from the device
                        os.posix_fadvise(file.fd, 0, 0, os.POSIX_FADV_DONTNEED)
                while not self._stretch(set_id, shards):
                    state.save(self.path)
                    if self._over():
                        return False
        except (GFCodeError, OSError) as error:
            message = str(error) if isinstance(error, GFCodeError) else error.strerror or str(error)
            kind = "beyond repair" if isinstance(error, UnrecoverableError) else "failed"
            self._problem(set_id, Problem(set_id, found.metadata.name, _path_of(found), kind, message, _now()))
            state.worst = kind
        if state.worst == "intact":
            state.problems.pop(set_id, None)
        state.cursor, state.partial, state.batch = set_id, "", 0
        state.sets += 1
        self.checked += 1
        if time.monotonic() - self._saved > _SAVE_AFTER:
            state.save(self.path)
            self._saved = time.monotonic()
        return True

    def _stretch(self, set_id: str, shards: ShardSet) -> bool:
        """Verify some batches of a set; return whether they were its last."""
        state = self.state
        until = time.monotonic() + _SAVE_AFTER
        stretch = Stretch(state.batch, lambda: time.monotonic() > until or self._over())
        deep = DeepCheck(LazyCodec(shards.metadata, None), shards.stripes) if self.deep else None
        report = survey(
            shards, threads=self.threads, meter=Meter(self._pace.progress(), total_bytes(shards)),
            started=time.perf_counter(), stretch=stretch, deep=deep,
        )  # fmt: skip
        state.batch = stretch.next
        state.bytes_read += report.bytes_read
        self.bytes_read += report.bytes_read
        if report.state != "intact":
            state.worst = max(state.worst, report.state, key=_ORDER.index)
            self._problem(set_id, _problem_of(report, shards.found, state.worst))
        return stretch.finished

    def _over(self) -> bool:
        return self._end is not None and time.monotonic() >= self._end

    def _problem(self, key: str, problem: Problem) -> None:
        self.state.problems[key] = problem
        if self._tell is not None:
            self._tell(problem)


def _problem_of(report: SetReport, found: Found, state: str) -> Problem:
    return Problem(report.set_id, report.name, _path_of(found), state, report.summary(), _now())


def _path_of(found: Found) -> str:
    return next((files[0].path for files in found.files if files), "")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
