"""A progress bar with rate and time left, on a terminal's stderr only."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gfcode.cli.console import Console

if TYPE_CHECKING:
    from gfcode.pipeline.report import Progress

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(console: Console, what: str) -> Iterator["Progress | None"]:
    """Show the progress of one operation.

    Parameters
    ----------
    console : Console
        Says whether a bar is wanted.
    what : str
        The verb before the bar.

    Yields
    ------
    Progress or None
        What the pipeline is to call with bytes done and bytes in all (None for a stream); None where no bar is wanted,
        so that rich is loaded only for terminals.
    """
    if not console.shows_progress:
        yield None
        return
    from rich import progress
    from rich.console import Console as Terminal

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(bar_width=None),
        progress.TaskProgressColumn(),
        progress.DownloadColumn(binary_units=True),
        progress.TransferSpeedColumn(),
        progress.TimeRemainingColumn(compact=True),
    )
    with progress.Progress(*columns, console=Terminal(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)

        def show(done: int, total: int | None) -> None:
            bar.update(task, completed=done, total=total)

        yield show
