"""`gfcode raw`: headerless shards of other implementations."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import click

from gfcode.cli.console import Console, human_bytes, human_count, printable
from gfcode.cli.exits import Exit
from gfcode.cli.options import (
    NamedPath,
    byte_size,
    engine_option,
    output_options,
    parameter_errors,
    threads_option,
)
from gfcode.cli.progress import progress_bar

if TYPE_CHECKING:
    from gfcode.codec.preset_codec import PresetCodec
    from gfcode.pipeline.raw_names import Assignment
    from gfcode.pipeline.raw_report import RawVerifyReport

__all__ = ["command"]

#: Ranges of wrong bytes that `raw verify` prints for a shard.
SHOWN_RANGES = 6


def index_list(text: str) -> tuple[int, ...]:
    """Shard indices, separated by commas: 3,7."""
    try:
        return tuple(int(word) for word in text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text!r} is no list of shard indices; write for example 3,7") from None


def code_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say which code the shards are of."""
    for option in reversed((
        click.option("--preset", required=True, metavar="NAME", help="Whose code it is (see `gfcode raw presets`)."),
        click.option("-k", type=int, required=True, help="Data shards."),
        click.option("-m", type=int, required=True, help="Parity shards."),
        click.option("--w", type=int, help="Bits of a symbol, for presets that have a choice."),
        click.option("--packet-bytes", type=byte_size, metavar="SIZE", help="Jerasure's packet size.  [default: 2048]"),
        click.option("--allow-uncertified", is_flag=True, help="Use a code that some loss of m shards defeats."),
    )):  # fmt: skip
        function = option(function)
    return engine_option(threads_option(function))


def shard_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say which file is which shard, and how long they are."""
    for option in reversed((
        click.argument("files", metavar="FILE...", nargs=-1, required=True, type=NamedPath()),
        click.option("--missing", type=index_list, metavar="I,J,...", help="Shards that have no FILE, from 0."),
        click.option("--by-name", "rule", flag_value="name", help="The last number in each name is the index."),
        click.option("--by-order", "rule", flag_value="order", help="FILEs are in the order of their indices."),
        click.option("--unit", type=byte_size, metavar="SIZE", help="Cell size, of shards that are striped."),
        click.option("--size", type=byte_size, metavar="SIZE", help="Bytes of the striped file, if cells are short."),
    )):  # fmt: skip
        function = option(function)
    return function


def codec_of(
    preset: str, k: int, m: int, w: int | None, packet_bytes: int | None, engine: str | None, *, allow_uncertified: bool
) -> "PresetCodec":
    """Make the codec that the options describe; a refusal is a usage error."""
    from gfcode.codec.reed_solomon import Codec

    options = {name: value for name, value in (("w", w), ("packet_bytes", packet_bytes)) if value is not None}
    return Codec.preset(preset, k, m, allow_uncertified=allow_uncertified, engine=engine, **options)


@contextmanager
def warnings_as_lines(console: Console) -> Iterator[None]:
    """Print warnings as lines on stderr, once each."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        if not console.quiet:
            click.echo(f"gfcode: warning: {printable(text)}", err=True)


def assigned(
    console: Console,
    files: tuple[str, ...],
    n: int,
    missing: tuple[int, ...] | None,
    rule: Literal["name", "order"] | None,
    *,
    drop: bool = False,
) -> "Assignment":
    """Tell which file is which shard, and say so."""
    from gfcode.pipeline.raw_names import assign_shards

    assignment = assign_shards(files, n, missing, rule, drop=drop)
    console.say(f"shards by the {'numbers in their names' if assignment.rule == 'name' else 'order of the files'}:")
    for index, path in assignment.shards.items():
        console.say(f"  {index}: {printable(path)}")
    return assignment


@click.group("raw", short_help="Headerless shards, as ISA-L, Jerasure, zfec make them.")
def command() -> None:
    """Work on headerless shards as other implementations write them.

    Nothing in such a file says what it is: preset, k, m and the index of each file must be told.
    """


@command.command("presets")
@output_options
def presets(console: Console) -> None:
    """List the presets: whose code each is, and its options."""
    from gfcode.codec.presets import PRESETS

    console.result({
        name: {"peer": preset.peer, "options": dict(preset.options), "cell": preset.cell}
        for name, preset in PRESETS.items()
    })  # fmt: skip
    width = max(map(len, PRESETS))
    for name, preset in PRESETS.items():
        options = ", ".join(f"{option.replace('_', '-')} {value}" for option, value in preset.options.items())
        cell = f"cells of {human_bytes(preset.cell)}" if preset.cell else ""
        notes = "; ".join(filter(None, (options, cell)))
        console.say(f"{name:{width}}  {preset.peer}{f' ({notes})' if notes else ''}")


@command.command("encode", short_help="Cut FILE into headerless shards.")
@click.argument("file", metavar="FILE", type=NamedPath())
@code_options
@click.option("--out", default=".", type=NamedPath(file_okay=False), metavar="DIR", help="Directory for the shards.")
@click.option("--name", metavar="NAME", help="Shards are NAME.0, NAME.1, ...  [default: the file's name]")
@click.option("--unit", type=byte_size, metavar="SIZE", help="Deal the file out in cells of this size.")
@click.option("--short-last", is_flag=True, help="With --unit: no zeros behind the end of the file (HDFS).")
@click.option("--force", is_flag=True, help="Replace files that are there.")
@output_options
def encode(
    console: Console, file: str, out: str, name: str | None, unit: int | None, short_last: bool, force: bool,
    threads: int | None, **code: Any,
) -> None:  # fmt: skip
    """Cut FILE into k data shards and add m parity shards, all without headers.

    Without --unit, data shard j is the j-th part of k equal ones, the last filled up with zeros.
    """
    from gfcode.pipeline.raw import raw_encode

    with parameter_errors(), warnings_as_lines(console), progress_bar(console, "encode") as progress:
        codec = codec_of(**code)
        report = raw_encode(
            file, codec, out=out, name=name, unit=unit, short=short_last, force=force, threads=threads,
            progress=progress,
        )  # fmt: skip
    console.result(report.to_json())
    console.say(
        f"{printable(file)}: {human_bytes(report.size)} in {codec.k} + {codec.m} shards of "
        f"{human_bytes(max(report.lengths))}: {printable(report.paths[0])} to {printable(report.paths[-1])}"
    )


@command.command("repair")
@shard_options
@code_options
@click.option("--out", type=NamedPath(file_okay=False), metavar="DIR", help="Directory for the shards that are made.")
@click.option(
    "--to", multiple=True, type=NamedPath(), metavar="FILE", help="Name of each missing shard, in ascending order."
)
@click.option("--no-check", is_flag=True, help="Read only the shards needed; do not check them by the others.")
@click.option("--force", is_flag=True, help="Replace files that stand where missing shards go.")
@output_options
def repair(
    console: Console, files: tuple[str, ...], missing: tuple[int, ...] | None, rule: Literal["name", "order"] | None,
    unit: int | None, size: int | None, out: str | None, to: tuple[str, ...], no_check: bool, force: bool,
    threads: int | None, **code: Any,
) -> None:  # fmt: skip
    """Make the missing shards from the FILEs that are there.

    Files are told apart by the last number in their names, where that can be their index, else by their order, the
    missing ones skipped. Nothing is written unless all FILEs, also those not needed, agree.
    """
    from gfcode.pipeline.raw import raw_repair

    with parameter_errors(), warnings_as_lines(console), progress_bar(console, "repair") as progress:
        codec = codec_of(**code)
        assignment = assigned(console, files, codec.n, missing, rule, drop=force)
        report = raw_repair(
            assignment.shards, targets_of(assignment, to, out), codec, unit=unit, size=size, check=not no_check,
            force=force, threads=threads, progress=progress,
        )  # fmt: skip
    console.result(report.to_json())
    for note in report.notes:
        console.say(f"note: {note}")
    for index, path in report.made.items():
        console.say(f"made shard {index}: {printable(path)}: {human_bytes(report.lengths[index])}")
    read = f"from {human_count(len(report.read), 'shard')}, checked by {len(report.checked)} more"
    console.say(f"{human_count(len(report.made), 'shard')} made {read}" if report.made else "nothing is missing")


def targets_of(assignment: "Assignment", to: tuple[str, ...], out: str | None) -> dict[int, str]:
    """Paths for the missing shards: as told, or named after the others."""
    from gfcode.pipeline.raw_names import missing_targets

    if not to:
        return missing_targets(assignment, out) if assignment.missing else {}
    if out is not None:
        raise click.UsageError("--to names files and --out a directory; give one", click.get_current_context())
    if len(to) != len(assignment.missing):
        counted = f"{human_count(len(to), 'name')} for {human_count(len(assignment.missing), 'missing shard')}"
        raise click.UsageError(f"--to gives {counted}", click.get_current_context())
    return dict(zip(assignment.missing, to, strict=True))


@command.command("verify")
@shard_options
@code_options
@output_options
def verify(
    console: Console, files: tuple[str, ...], missing: tuple[int, ...] | None, rule: Literal["name", "order"] | None,
    unit: int | None, size: int | None, threads: int | None, **code: Any,
) -> Exit:  # fmt: skip
    """Tell whether FILEs belong together, and which of them are wrong.

    More than k are needed. With e beyond k, up to e/2 wrong ones at any one place are told for certain. Exit code 3
    says that all are known and can be made from the others, 4 that they can't.
    """
    from gfcode.pipeline.raw import raw_verify

    with parameter_errors(), warnings_as_lines(console), progress_bar(console, "verify") as progress:
        codec = codec_of(**code)
        assignment = assigned(console, files, codec.n, missing, rule)
        report = raw_verify(assignment.shards, codec, unit=unit, size=size, threads=threads, progress=progress)
    console.result(report.to_json())
    for line in verdict(report):
        console.say(line)
    return {"consistent": Exit.FINE, "repairable": Exit.REPAIRABLE}.get(report.state, Exit.BEYOND_REPAIR)


def verdict(report: "RawVerifyReport") -> list[str]:
    """Say what a check came to, line by line."""
    lines = [
        f"shard {shard.index} is wrong: {printable(shard.path)}: {human_count(shard.wrong_bytes, 'byte')} at "
        f"{places(shard.ranges)}"
        for shard in report.wrong
    ]
    if report.unexplained:
        lines.append(
            f"shards disagree at {places(list(report.unexplained))}, and {human_count(report.spare, 'spare shard')} "
            "cannot tell which"
        )
    if report.state == "consistent":
        lines.append(f"consistent: {len(report.given)} shards of {human_bytes(report.length)}, {report.spare} to spare")
    elif report.state == "repairable":
        indices = ",".join(str(shard.index) for shard in report.wrong)
        lines.append(f"repairable: `gfcode raw repair ... --missing {indices} --force` replaces what is wrong")
    else:
        lines.append("beyond repair: it cannot be told which shards are right, or too few are")
    return lines


def places(ranges: list[tuple[int, int]]) -> str:
    """Ranges of bytes, the first few of them."""
    shown = ", ".join(f"{first}-{last}" if first != last else str(first) for first, last in ranges[:SHOWN_RANGES])
    return f"{shown}{', ...' if len(ranges) > SHOWN_RANGES else ''}"
