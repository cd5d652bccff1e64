"""`gfcode scrub`: verify for cron, at a bounded rate, going on where the last run ended."""

import re

import click

from gfcode.cli.console import Console, human_bytes, human_count, human_seconds, printable
from gfcode.cli.exits import Exit
from gfcode.cli.options import byte_size, deep_option, key_option, output_options, parameter_errors

__all__ = ["command"]

_EXITS = {
    "intact": Exit.FINE, "repairable": Exit.REPAIRABLE, "failed": Exit.FAILED, "beyond repair": Exit.BEYOND_REPAIR,
}  # fmt: skip
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def byte_rate(text: str) -> int:
    """Bytes a second of a rate such as 50MiB/s; `/s` may be left out."""
    return byte_size(text.strip().removesuffix("/s"))


def duration(text: str) -> float:
    """Seconds of a time such as 90, 90s, 30m, 2h or 1d."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", text.strip())
    if match is None:
        raise click.BadParameter(f"{text!r} is no time; write for example 90s, 30m or 2h")
    return float(match[1]) * _UNITS[match[2]]


@click.command("scrub", short_help="Verify little by little, for cron; goes on where it ended.")
@click.argument("directory", metavar="DIR", type=click.Path(exists=True, file_okay=False))
@click.option("--rate", type=byte_rate, metavar="SIZE/s", help="Most bytes to read in a second: 50MiB/s.")
@click.option(
    "--max-time", type=duration, metavar="TIME", help="End after this time, 90s, 30m or 2h; the next run goes on."
)
@click.option(
    "--state",
    "state_file",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Where to note how far it came.  [default: one for each DIR, in the user's directory for states]",
)
@key_option
@deep_option
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="Threads.")
@output_options
def command(
    console: Console,
    directory: str,
    rate: int | None,
    max_time: float | None,
    state_file: str | None,
    key: str | None,
    deep: bool,
    threads: int,
) -> Exit:
    """Verify all sets in DIR, at any depth, and note how far it came: the next run goes on from there.

    Nothing is written but the state file. The exit code is that of the worst set when it was last looked at, in this
    run or an earlier one: 0: intact; 3: damaged, and `gfcode repair` can repair it; 1: could not be checked; 4: beyond
    repair. A set that was repaired counts as damaged until its next turn.
    """
    from gfcode.pipeline.scrub import scrub

    with parameter_errors():
        report = scrub(
            directory, state_file=state_file, rate=rate, max_seconds=max_time, deep=deep, key=key, threads=threads,
        )  # fmt: skip
    code = _EXITS[report.state]
    console.result({**report.to_json(), "exit_code": int(code)})
    for problem in report.problems:
        console.say(f"{printable(problem.path)}: {problem.state}: {printable(problem.summary)} ({problem.found})")
    came = "pass finished" if report.complete else f"{report.sets_done:,} of {report.sets:,} so far in this pass"
    console.say(
        f"{human_count(report.checked, 'set')} checked, {came}; {human_bytes(report.bytes_read)} read in "
        f"{human_seconds(report.seconds)}: {report.state}"
    )
    return code
