"""`gfcode verify`: what is good, what is damaged, and whether it can be repaired."""

import click

from gfcode.cli.console import Console, human_bytes, human_seconds
from gfcode.cli.exits import Exit
from gfcode.cli.options import (
    key_option,
    output_options,
    parameter_errors,
    paths_argument,
    set_option,
    threads_option,
)
from gfcode.cli.progress import progress_bar

__all__ = ["command"]


@click.command("verify", short_help="Check every byte and draw a map of the damage.")
@paths_argument
@set_option
@key_option
@threads_option
@output_options
def command(console: Console, paths: tuple[str, ...], set_id: str | None, key: str | None, threads: int | None) -> Exit:
    """Read all shards of a set, check every byte, and draw a map of what is damaged.

    PATH is a shard file, or a directory that holds some. Exit code 0: intact; 3: damaged, and `gfcode repair` can
    repair it; 4: beyond repair.
    """
    from gfcode import verify_set
    from gfcode.cli.damage_map import colour_for, exit_for, print_set, verdict

    with parameter_errors(), progress_bar(console, "verify") as progress:
        report = verify_set(paths, set_id=set_id, key=key, threads=threads, progress=progress)
    console.result(report.to_json())
    print_set(console, report)
    console.say(
        f"{human_bytes(report.bytes_read)} read in {human_seconds(report.seconds)}, "
        f"{human_bytes(report.bytes_read / max(report.seconds, 1e-9))}/s; checked: {report.check}"
    )
    console.say(verdict(report, paths), colour=colour_for(report.state))
    return exit_for(report.state)
