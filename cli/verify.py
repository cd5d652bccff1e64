"""`gfcode verify`: what is good, what is damaged, and whether it can be repaired."""

import time
from typing import TYPE_CHECKING

import click

from gfcode.cli.console import Console, human_bytes, human_count, human_seconds
from gfcode.cli.exits import Exit
from gfcode.cli.options import (
    deep_option,
    key_option,
    output_options,
    parameter_errors,
    paths_argument,
    set_option,
    threads_option,
)
from gfcode.cli.progress import progress_bar

if TYPE_CHECKING:
    from gfcode.pipeline.discovery import Found
    from gfcode.pipeline.report import Progress

__all__ = ["command"]


@click.command("verify", short_help="Check every byte and draw a map of the damage.")
@paths_argument
@set_option
@key_option
@deep_option
@threads_option
@output_options
def command(
    console: Console, paths: tuple[str, ...], set_id: str | None, key: str | None, deep: bool, threads: int | None
) -> Exit:
    """Read all shards of a set, check every byte, and draw a map of what is damaged.

    PATH is a shard file, or a directory that holds some, at any depth. Where there are several sets, each is checked,
    and gets a line; with --json an object on a line, and a summary in the last. Exit code 0: intact; 3: damaged, and
    `gfcode repair` can repair it; 4: beyond repair.
    """
    from gfcode.cli.damage_map import colour_for, exit_for, print_set, verdict
    from gfcode.cli.sets import SetResult, over_sets
    from gfcode.pipeline.grouping import find_sets
    from gfcode.pipeline.keys import hashes_for
    from gfcode.pipeline.verify import verify_found

    def verify(one: "Found", progress: "Progress | None") -> SetResult:
        report = verify_found(one, deep=deep, threads=threads, progress=progress, started=time.perf_counter())
        return SetResult(report, report.state, report.to_json())

    with parameter_errors(), progress_bar(console, "verify") as progress:
        found = find_sets(paths, set_id, hashes_for(key))
        if not found.single:
            return over_sets(console, found, verify, progress)
        report = verify(found.sets[0], progress).report
    console.result(report.to_json())
    print_set(console, report)
    console.say(
        f"{human_bytes(report.bytes_read)} read in {human_seconds(report.seconds)}, "
        f"{human_bytes(report.bytes_read / max(report.seconds, 1e-9))}/s; checked: {report.check}"
    )
    if report.parity_checked is not None:
        left = report.stripes - report.parity_checked
        unchecked = f", {human_count(left, 'stripe')} could not be (no frame to spare)" if left else ""
        console.say(f"parity compared in {human_count(report.parity_checked, 'stripe')}{unchecked}")
    console.say(verdict(report, paths), colour=colour_for(report.state))
    return exit_for(report.state)
