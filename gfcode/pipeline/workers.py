"""Threads that share the batches of a run, and lose no exception."""

import os
import threading
from collections.abc import Callable

from gfcode.errors import GFCodeError, ParameterError
from gfcode.pipeline.report import Progress

__all__ = ["Counter", "Meter", "StoppedError", "Turns", "default_threads", "run_workers", "usable_threads"]


class StoppedError(GFCodeError):
    """Raised in a worker whose run was ended by another worker's exception; never seen by a caller."""


def default_threads() -> int:
    """Return how many workers a run gets unless it is told: one for each processor it may use, four at most.

    Most of the work is the kernel's copying, so that a few workers saturate the memory; each has a buffer of its own.
    """
    return min(4, len(os.sched_getaffinity(0)))


def usable_threads(threads: int | None, batches: int | None) -> int:
    """Return the number of workers for a run of `batches` batches (None where that is unknown).

    Raises
    ------
    ParameterError
        If `threads` is not positive.
    """
    if threads is not None and threads < 1:
        raise ParameterError(f"threads must be at least 1, not {threads}")
    wanted = default_threads() if threads is None else threads
    return wanted if batches is None else max(1, min(wanted, batches))


def run_workers(count: int, work: Callable[[threading.Event], None]) -> None:
    """Run `work` in `count` threads, one of them the caller's, and raise the first exception of any.

    Parameters
    ----------
    count : int
    work : callable
        Called with an event that is set once any worker has failed; it then returns soon.
    """
    stop = threading.Event()
    failures: list[BaseException] = []

    def guarded() -> None:
        try:
            work(stop)
        except BaseException as error:  # noqa: BLE001  (it is raised again, in the caller's thread)
            failures.append(error)
            stop.set()

    threads = [threading.Thread(target=guarded, name=f"gfcode-{number}") for number in range(1, count)]
    try:
        for thread in threads:
            thread.start()
        guarded()
    except BaseException:
        stop.set()
        raise
    finally:
        # An interrupt of this very join must not leave workers behind that write to files about to be removed.
        while any(thread.is_alive() for thread in threads):
            try:
                for thread in threads:
                    thread.join()
            except BaseException as error:  # noqa: BLE001
                failures.append(error)
                stop.set()
    for failure in failures:
        if not isinstance(failure, StoppedError):
            raise failure
    if failures:
        raise failures[0]


class Counter:
    """Hands out whole numbers, one after another from 0 or `first` on, to any number of threads."""

    def __init__(self, end: int, first: int = 0) -> None:
        self._next = first
        self._end = end
        self._lock = threading.Lock()

    @property
    def next(self) -> int:
        """The number that will be handed out next; `end` where there is none."""
        return self._next

    def take(self) -> int | None:
        """Return the next number, or None from `end` on."""
        with self._lock:
            if self._next >= self._end:
                return None
            self._next += 1
            return self._next - 1


class Turns:
    """Lets threads do one thing in the order of their batch numbers."""

    def __init__(self) -> None:
        self._turn = 0
        self._changed = threading.Condition()

    def wait(self, number: int, stop: threading.Event) -> None:
        """Block until every smaller number is done.

        Raises
        ------
        StoppedError
            If the run has failed.
        """
        with self._changed:
            while self._turn != number:
                if stop.is_set():
                    raise StoppedError("another worker failed")
                self._changed.wait(0.05)

    def done(self) -> None:
        """Let the next number go on."""
        with self._changed:
            self._turn += 1
            self._changed.notify_all()


class Meter:
    """Sums the bytes done by all threads and passes them on to a progress callback."""

    def __init__(self, progress: Progress | None, total: int | None) -> None:
        self._progress = progress
        self._total = total
        self._done = 0
        self._lock = threading.Lock()

    def extend(self, count: int) -> None:
        """Make the total `count` bytes more."""
        with self._lock:
            if self._total is not None:
                self._total += count

    def add(self, count: int) -> None:
        """Count `count` more bytes."""
        if self._progress is None:
            return
        with self._lock:
            self._done += count
            self._progress(self._done, self._total)
