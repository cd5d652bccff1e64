"""`gfcode plan`: how likely codes are to lose data, what they cost in space and in repair reads."""

import math
import re
from typing import TYPE_CHECKING

import click

from gfcode.cli.console import Console, human_bytes
from gfcode.cli.options import byte_size, output_options, parameter_errors

if TYPE_CHECKING:
    from gfcode.durability import Durability

__all__ = ["command", "duration", "rate"]

EXAMPLE = "Example: gfcode plan --code 10+4 --code 6+3 --code 1+2 --afr 2% --mttr 24h --sets 1000"
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(min|h|d|w)", re.IGNORECASE)
_HOURS = {"min": 1 / 60, "h": 1.0, "d": 24.0, "w": 168.0}


def rate(text: str) -> float:
    """Failures per disk-year, as 2% or 0.02."""
    percent = text.strip().endswith("%")
    try:
        value = float(text.strip().removesuffix("%")) / (100 if percent else 1)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no rate; write for example 2% or 0.02") from None
    if not percent and value >= 1:
        raise click.BadParameter(f"{text} would be {100 * value:g} % a year; write {text}% or {100 * value:g}%")
    if not 0 < value < math.inf:
        raise click.BadParameter(f"{text!r} is no rate of failures; it must be above 0")
    return value


def duration(text: str) -> float:
    """Hours of a duration such as 90min, 24h, 3d or 2w."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or float(match[1]) == 0:
        raise click.BadParameter(f"{text!r} is no duration; write for example 90min, 24h, 3d or 2w")
    return float(match[1]) * _HOURS[match[2].lower()]


def code(text: str) -> tuple[int, int]:
    """Return the data and parity shards of 10+4."""
    match = re.fullmatch(r"(\d{1,6})\+(\d{1,6})", text.strip())
    if match is None:
        raise click.BadParameter(f"{text!r} is no code; write K+M, for example 10+4")
    return int(match[1]), int(match[2])


@click.command("plan", short_help="Compare codes: risk of loss, space, repair reads.", epilog=EXAMPLE)
@click.option("-k", type=int, help="Data shards.  [default: 10]")
@click.option("-m", type=int, help="Parity shards.  [default: 4]")
@click.option("--code", "codes", type=code, multiple=True, metavar="K+M", help="A code, in place of -k and -m; repeat.")
@click.option("--afr", type=rate, default="2%", show_default=True, metavar="RATE", help="Failures per disk and year.")
@click.option(
    "--mttr", type=duration, default="24h", show_default=True, metavar="TIME",
    help="Mean time from a disk's failure to the end of its repair: 90min, 24h, 3d, 2w.",
)  # fmt: skip
@click.option(
    "--sets", type=click.IntRange(min=1), default=1, show_default=True, help="Shard sets on disks of their own."
)
@click.option("--serial", is_flag=True, help="One disk of a set is repaired at a time.  [default: all at once]")
@click.option(
    "--shard-size", type=byte_size, metavar="SIZE", help="Bytes that a disk holds of a set; for --unreadable."
)
@click.option(
    "--unreadable", type=float, metavar="RATE",
    help="Unreadable bits per bit read, with --shard-size: repairs fail by them.  [default: 1e-15]",
)  # fmt: skip
@output_options
def command(
    console: Console,
    k: int | None,
    m: int | None,
    codes: tuple[tuple[int, int], ...],
    afr: float,
    mttr: float,
    sets: int,
    serial: bool,
    shard_size: int | None,
    unreadable: float | None,
) -> None:
    """Compare codes: the risk of losing data, space, and what repairs read.

    A set has one shard on each of k + m disks. Disks fail independently and are repaired; data is lost when m + 1 are
    lost at once. The chance of that within a year is the solution of this Markov chain. It leaves out whatever makes
    disks fail together: compare codes by it, and do not take it for a promise.
    """
    from gfcode.durability import durability

    if codes and (k is not None or m is not None):
        raise click.UsageError("--code takes the place of -k and -m: give either")
    if unreadable is not None and not shard_size:
        raise click.UsageError("--unreadable needs --shard-size: how much a repair reads")
    bits = 0.0 if not shard_size else 1e-15 if unreadable is None else unreadable
    with parameter_errors():
        results = [
            durability(
                k_, m_, afr=afr, mttr_hours=mttr, sets=sets, repairs="serial" if serial else "parallel",
                unreadable_bits=bits, shard_bytes=shard_size or 0,
            )
            for k_, m_ in codes or [(10 if k is None else k, 4 if m is None else m)]
        ]  # fmt: skip
    console.result({
        "afr": afr, "mttr_hours": mttr, "sets": sets, "repairs": "serial" if serial else "parallel",
        "unreadable_bits": bits, "shard_bytes": shard_size,
        "codes": [result.to_json() for result in results],
    })  # fmt: skip
    how = "one at a time" if serial else "all at once"
    console.say(f"{100 * afr:g} failures per 100 disks and year, each repaired in {mttr:g} h on average, {how}")
    if shard_size:
        console.say(f"shards of {human_bytes(shard_size)}, {bits:g} unreadable bits per bit read")
    console.say()
    table = [_HEADINGS, *(_row(result) for result in results)]
    widths = [max(len(row[column]) for row in table) for column in range(len(_HEADINGS))]
    for row in table:
        console.say("  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)))
    console.say()
    console.say("loss/year: chance that one set loses data within a year; approx.: one year / MTTDL, as often given")
    console.say(f"any set: that one of {sets:,} does; reads/repair: shards; reads/year: of repairs, per byte of data")


_HEADINGS = ("code", "disks", "space", "loss/year", "approx.", "nines", "any set", "reads/repair", "reads/year")


def _row(result: "Durability") -> tuple[str, ...]:
    """Write one code's figures."""
    return (
        f"{result.k}+{result.m}",
        str(result.k + result.m),
        f"{result.overhead:.2f}x",
        _chance(result.annual_loss),
        _chance(result.approximate_loss),
        f"{result.nines:.1f}" if math.isfinite(result.nines) else "> 300",
        _chance(result.annual_loss_any),
        str(result.repair_reads),
        f"{result.repair_reads_per_year:.2f}",
    )


def _chance(value: float) -> str:
    """Write a probability, however small."""
    return f"{value:.1e}" if value else "< 1e-300"
