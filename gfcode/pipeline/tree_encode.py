"""Encode many files, each into a set of its own; small ones together, so that flushing costs little for each."""

import os
import resource
import stat
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from gfcode.errors import GFCodeError, ParameterError, TargetExistsError
from gfcode.params import LayoutName
from gfcode.pipeline.current import Remains, standing_of
from gfcode.pipeline.encode import Recipe, Written, recipe_for, write_set
from gfcode.pipeline.files import sync_directories
from gfcode.pipeline.layout import DEFAULT_FRAME
from gfcode.pipeline.publication import Temporaries, publish_together
from gfcode.pipeline.report import Progress
from gfcode.pipeline.targets import make_directory, remove_empty
from gfcode.pipeline.tree_report import Encoded, TreeReport
from gfcode.pipeline.trees import Entry, walk

__all__ = ["encode_tree"]

StrPath = str | os.PathLike[str]

#: Sets that get their names together, and bytes of their files.
_MOST_SETS = 64
_MOST_BYTES = 256 * 1024 * 1024
#: Descriptors left for all else while the shards of many sets are open.
_SPARE_DESCRIPTORS = 64


def encode_tree(
    sources: Sequence[StrPath],
    *,
    out: StrPath | Sequence[StrPath] = ".",
    exclude: Sequence[str] = (),
    update: bool = False,
    force: bool = False,
    k: int = 10,
    m: int = 4,
    w: int = 8,
    matrix: Any = "auto",
    layout: LayoutName = "packets",
    polynomial: int | None = None,
    frame: int = DEFAULT_FRAME,
    engine: str | None = None,
    threads: int | None = None,
    durable: bool = True,
    checksum: str | None = None,
    key: StrPath | None = None,
    progress: Progress | None = None,
    on_result: Callable[[Encoded], None] | None = None,
) -> TreeReport:
    """Encode files and all files under directories, each into a set of its own.

    The shards of `photos/2024/a.jpg` go to `OUT/photos/2024/a.jpg.000.gfs` and so on where `photos` is a source. A file
    whose set is there, whole, and current (by size and modification time, or else by content) is not encoded again.
    One that fails does not keep the others from being encoded. No shard has its name before its set is complete and,
    if `durable`, on the device; small sets are flushed together.

    Parameters
    ----------
    sources : sequence of path
        Files and directories. Inside directories, symbolic links, special files, shards and unfinished files are
        skipped, and the directories in `out` are passed over.
    out : path or sequence of path
        As for `encode_file`; the directories below them are made.
    exclude : sequence of str
        See `gfcode.pipeline.trees.walk`.
    update : bool
        Encode files anew whose set is of another content, or was made in another way; without it they fail.
    force : bool
        Encode all files anew.
    k, m, w, matrix, layout, polynomial, frame, engine, threads, durable, checksum, key
        As for `encode_file`.
    progress : callable, optional
        See `gfcode.pipeline.report.Progress`; counts bytes of the files.
    on_result : callable, optional
        Called with what became of each file as soon as that is certain.

    Returns
    -------
    TreeReport

    Raises
    ------
    ParameterError
        For parameters that no code has, or two sources that would have the same shards.
    """
    started = time.perf_counter()
    recipe = recipe_for(
        k=k, m=m, w=w, matrix=matrix, layout=layout, polynomial=polynomial, frame=frame, engine=engine,
        checksum=checksum, key=key,
    )  # fmt: skip
    outs = [os.fsdecode(out)] if isinstance(out, str | os.PathLike) else [os.fsdecode(path) for path in out]
    if not outs:
        raise ParameterError("name at least one directory for the shards")
    entries = list(walk(sources, exclude=exclude, avoid=outs))
    options = _Options(recipe, outs, update, force, threads, durable)
    run = _Run(options, sum(e.status.st_size for e in entries if e.status and not e.skipped), progress, on_result)
    with run:
        for entry in entries:
            run.take(entry)
        run.publish()
    written = sum(result.report.bytes_written for result in run.results if result.report is not None)
    return TreeReport(run.results, written, time.perf_counter() - started)


@dataclass(frozen=True, slots=True)
class _Options:
    recipe: Recipe
    outs: list[str]
    update: bool
    force: bool
    threads: int | None
    durable: bool


class _Run:
    """The sets that wait for their names; a context manager that removes those that got none."""

    def __init__(
        self, options: _Options, total: int, progress: Progress | None, on_result: Callable[[Encoded], None] | None
    ) -> None:
        self.options = options
        self.results: list[Encoded] = []
        self._total, self._done, self._progress, self._tell = total, 0, progress, on_result
        self._waiting: list[tuple[Temporaries, Written, Encoded]] = []
        self._bytes = 0
        self._remains = Remains()
        self._made: list[str] = []
        self._synced = 0  # so many of them have durable names
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._most = max(1, min(_MOST_SETS, (limit - _SPARE_DESCRIPTORS) // options.recipe.codec.n))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._clear()
        remove_empty(self._made)

    def take(self, entry: Entry) -> None:
        """Encode a file, or say why not."""
        if entry.error is not None or entry.status is None:
            self._result(Encoded(entry.path, "failed", error=entry.error, reason=_reason(entry.error)))
            return
        if entry.skipped:
            self._result(Encoded(entry.path, "skipped", entry.status.st_size, entry.skipped))
            return
        files = Temporaries()
        try:
            self._encode(entry, entry.status, files)
        except (GFCodeError, OSError) as error:
            files.__exit__()
            self._result(Encoded(entry.path, "failed", entry.status.st_size, _reason(error), error=error))
        except BaseException:
            files.__exit__()
            raise
        self._done += entry.status.st_size
        if self._progress is not None:
            self._progress(self._done, max(self._done, self._total))
        if len(self._waiting) >= self._most or self._bytes >= _MOST_BYTES:
            self.publish()

    def _encode(self, entry: Entry, status: os.stat_result, files: Temporaries) -> None:
        options = self.options
        below, name = os.path.split(entry.relative)
        directories = [os.path.join(out, below) if below else out for out in options.outs]
        standing = standing_of(entry.path, status, directories, name, options.recipe, self._remains)
        if standing.state == "current" and not options.force:
            self._result(Encoded(entry.path, "current", status.st_size))
            return
        if standing.state == "changed" and not (options.update or options.force):
            raise TargetExistsError(f"{standing.reason}; --update encodes it anew")
        for directory in directories:
            make_directory(directory, self._made)
        before = self._done

        def progress(done: int, total: int | None) -> None:  # noqa: ARG001
            if self._progress is not None:
                self._progress(before + done, max(before + done, self._total))

        written = write_set(
            files, entry.path, options.recipe, directories, name=name, force=standing.state != "new",
            threads=options.threads, durable=options.durable, progress=progress, regular=stat.S_ISREG(status.st_mode),
        )  # fmt: skip
        state = Encoded(
            entry.path, "encoded" if standing.state == "new" else "replaced", written.report.size,
            standing.reason, written.report,
        )  # fmt: skip
        self._waiting.append((files, written, state))
        self._bytes += written.report.bytes_written

    def publish(self) -> None:
        """Give all sets that wait their names."""
        if not self._waiting:
            return
        if len(self._waiting) == 1:
            outcomes = [self._publish_one(*self._waiting[0][:2])]
        else:
            runs = [(files, written.replaces, written.check) for files, written, _ in self._waiting]
            outcomes = publish_together(runs, durable=self.options.durable, made=self._made[self._synced :])
        results = [
            done if error is None else Encoded(done.source, "failed", done.size, _reason(error), error=error)
            for (_, _, done), error in zip(self._waiting, outcomes, strict=True)
        ]
        self._synced = len(self._made)
        self._clear()
        for result in results:
            self._result(result)

    def _publish_one(self, files: Temporaries, written: Written) -> Exception | None:
        try:
            files.publish(replace=written.replaces, durable=self.options.durable, check=written.check)
            if self.options.durable:
                sync_directories(self._made[self._synced :])
        except (GFCodeError, OSError) as error:
            return error
        return None

    def _clear(self) -> None:
        for files, _, _ in self._waiting:
            files.__exit__()
        self._waiting.clear()
        self._bytes = 0

    def _result(self, result: Encoded) -> None:
        self.results.append(result)
        if self._tell is not None:
            self._tell(result)


def _reason(error: Exception | None) -> str:
    if isinstance(error, GFCodeError):
        return str(error)
    return getattr(error, "strerror", None) or str(error)
