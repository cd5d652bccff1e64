"""`gfcode decode`: the file that a shard set holds."""

import os
import stat
from typing import TYPE_CHECKING

import click

from gfcode.cli.console import Console, human_bytes, human_count, human_seconds, printable
from gfcode.cli.options import (
    NamedPath,
    coding_options,
    key_option,
    parameter_errors,
    paths_argument,
    set_option,
    standard_stream,
)
from gfcode.cli.progress import progress_bar

if TYPE_CHECKING:
    from gfcode.pipeline.outcomes import DecodeReport

__all__ = ["command"]


@click.command("decode", short_help="Write the file that is encoded in shards.")
@paths_argument
@click.option(
    "-o",
    "--output",
    type=NamedPath(allow_dash=True),
    metavar="FILE|-",
    help="File to write, - for stdout.  [default: the name that the set has, in the current directory]",
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
@set_option
@key_option
@coding_options
def command(
    console: Console,
    paths: tuple[str, ...],
    output: str | None,
    force: bool,
    set_id: str | None,
    key: str | None,
    engine: str | None,
    threads: int | None,
    durable: bool,
) -> None:
    """Write the file that is encoded in shards, from any k good frames of each stripe.

    PATH is a shard file, or a directory that holds some. Shards are known by what they hold, not by their names. The
    file gets its name when it is complete; of a set that is beyond repair nothing is left.
    """
    # Under another name, such as /dev/stdout, it carries data too: no text must get in between.
    on_stdout = _is_stdout(output)
    if on_stdout and console.as_json:
        raise click.UsageError("-o - and --json both want stdout; use one of them", click.get_current_context())
    from gfcode import decode_file

    with parameter_errors(), progress_bar(console, "decode") as progress:
        report = decode_file(
            paths, standard_stream("stdout") if output == "-" else output, set_id=set_id, key=key, force=force,
            engine=engine, threads=threads, durable=durable, progress=progress,
        )  # fmt: skip
    console.result(report.to_json())
    for line in _damage_lines(report):
        console.say(line, err=on_stdout)
    if not on_stdout:
        console.say(
            f"{printable(report.path or '')}: {human_bytes(report.size)} in {human_seconds(report.seconds)}, "
            f"{human_bytes(report.size / max(report.seconds, 1e-9))}/s; checked: {report.check}"
        )


def _is_stdout(path: str | None) -> bool:
    """Return whether a path names the pipe or terminal that is this process's stdout."""
    if path is None or path == "-":
        return path is not None
    try:
        found = os.stat(path)
        return os.path.samestat(found, os.fstat(1)) and (not stat.S_ISCHR(found.st_mode) or os.isatty(1))
    except OSError:
        return False


def _damage_lines(report: "DecodeReport") -> list[str]:
    """Say what was met on the way: damage, and files that were not used."""
    from gfcode.cli.damage_map import stray_lines

    lines = stray_lines(report.strays)
    if report.missing_shards:
        lines.append(f"no file holds shards {', '.join(map(str, report.missing_shards))}")
    if report.damaged_shards:
        lines.append(f"damaged are shards {', '.join(map(str, report.damaged_shards))}")
    if report.rebuilt_blocks:
        lines.append(f"{human_count(report.rebuilt_blocks, 'data block')} rebuilt from others")
    if report.missing_shards or report.damaged_shards:
        lines.append("run `gfcode verify` to see all damage, `gfcode repair` to repair it")
    return lines
