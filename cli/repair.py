"""`gfcode repair`: write lost and damaged shards anew."""

import os
import time
from typing import TYPE_CHECKING

import click

from gfcode.cli.console import Console, human_bytes, human_count, human_seconds, printable
from gfcode.cli.exits import Exit
from gfcode.cli.options import (
    NamedPath,
    coding_options,
    deep_option,
    key_option,
    parameter_errors,
    paths_argument,
    set_option,
)
from gfcode.cli.progress import progress_bar

if TYPE_CHECKING:
    from gfcode.pipeline.discovery import Found
    from gfcode.pipeline.outcomes import RepairReport
    from gfcode.pipeline.report import Progress

__all__ = ["command", "repair_lines"]


@click.command("repair", short_help="Restore missing and damaged shards.")
@paths_argument
@click.option(
    "--out",
    type=NamedPath(file_okay=False),
    metavar="DIR",
    help="Directory for all repaired shards, which stand below it as their sets do below PATH; the damaged ones stay "
    "as they are.  [default: in their places]",
)
@set_option
@key_option
@deep_option
@coding_options
def command(
    console: Console,
    paths: tuple[str, ...],
    out: str | None,
    set_id: str | None,
    key: str | None,
    deep: bool,
    engine: str | None,
    threads: int | None,
    durable: bool,
) -> Exit:
    """Restore every missing or damaged shard of a set, byte for byte as it was encoded.

    PATH is a shard file, or a directory that holds some, at any depth. Several sets are repaired one after the other,
    and get a line each; with --json an object on a line, and a summary in the last. A damaged shard is replaced only
    after its repaired copy has been verified. Of a set that is beyond repair nothing is changed, and the exit code
    is 4.
    """
    from gfcode.cli.damage_map import colour_for, print_set, verdict
    from gfcode.cli.sets import SetResult, over_sets
    from gfcode.pipeline.grouping import find_sets
    from gfcode.pipeline.keys import hashes_for
    from gfcode.pipeline.repair import repair_found

    def repair(one: "Found", progress: "Progress | None") -> "RepairReport":
        place = None if out is None else os.path.join(out, one.below)
        return repair_found(
            one, out=place, deep=deep, engine=engine, threads=threads, durable=durable, progress=progress,
            started=time.perf_counter(),
        )  # fmt: skip

    def result(one: "Found", progress: "Progress | None") -> SetResult:
        report = repair(one, progress)
        done = f"repaired {human_count(len(report.repaired), 'shard')}" if report.repaired else ""
        return SetResult(report.before, report.state, report.to_json(), done)

    with parameter_errors(), progress_bar(console, "repair") as progress:
        found = find_sets(paths, set_id, hashes_for(key))
        if not found.single:
            return over_sets(console, found, result, progress)
        report = repair(found.sets[0], progress)
    console.result(report.to_json())
    print_set(console, report.before)
    for line in repair_lines(report):
        console.say(line)
    if report.state == "beyond repair":
        console.say(f"{verdict(report.before, paths)}; nothing was changed", colour=colour_for(report.state))
        return Exit.BEYOND_REPAIR
    done = f"repaired {human_count(len(report.repaired), 'shard')}: " if report.repaired else ""
    console.say(f"{done}intact", colour=colour_for(report.state))
    return Exit.FINE


def repair_lines(report: "RepairReport") -> list[str]:
    """One line for each repaired shard, the notes, and the sum."""
    lines = [
        f"shard {shard.index}: {'new' if shard.created else 'repaired'}: {printable(shard.path)}: "
        f"{human_count(shard.rebuilt_stripes, 'frame')} rebuilt"
        for shard in report.repaired
    ]
    lines += [printable(note) for note in report.notes]
    moved = report.before.bytes_read + report.bytes_written
    lines.append(
        f"{human_bytes(report.before.bytes_read)} read, {human_bytes(report.bytes_written)} written in "
        f"{human_seconds(report.seconds)}, {human_bytes(moved / max(report.seconds, 1e-9))}/s; "
        f"checked: {report.before.check}"
    )
    return lines
