"""Options and argument types that several commands share."""

import functools
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, TextIO

import click

from gfcode.cli.console import Console
from gfcode.errors import ParameterError

__all__ = [
    "NamedPath",
    "byte_size",
    "coding_options",
    "deep_option",
    "engine_name",
    "engine_option",
    "key_option",
    "output_options",
    "parameter_errors",
    "paths_argument",
    "set_option",
    "standard_stream",
    "sync_option",
    "threads_option",
]

Command = Callable[..., Any]

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([kmgt])(i?b)?|b)?", re.IGNORECASE)


class NamedPath(click.Path):
    """A path, which must not be empty: that is an unset variable of a script, and no name of the current directory."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse an empty path; leave all else to `click.Path`."""
        if not value:
            self.fail("an empty path names nothing", param, ctx)
        return super().convert(value, param, ctx)


def byte_size(text: str) -> int:
    """Bytes of a size such as 65536, 64K, 64KiB (both 1024s) or 64kB (1000s); a usage error for what is none."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise click.BadParameter(f"{text!r} is no size; write for example 65536, 64KiB or 1MiB")
    from fractions import Fraction

    number, unit, suffix = match.groups()
    power = " kmgt".index(unit.lower()) if unit else 0
    size = Fraction(number) * (1000 if suffix and suffix.lower() == "b" else 1024) ** power
    if size.denominator != 1:
        raise click.BadParameter(f"{text!r} is no whole number of bytes")
    return int(size)


def engine_name(text: str) -> str:
    """Check that there is an engine of this name; whether it can run here shows when it is used."""
    from gfcode.engine.registry import ENGINES, AutomaticEngine

    if text not in {*ENGINES, AutomaticEngine.name}:
        names = ", ".join([*ENGINES, AutomaticEngine.name])
        raise click.BadParameter(f"{text!r} is no engine; choose from {names}")
    return text


def engine_option(function: Command) -> Command:
    """Add --engine, which GFCODE_ENGINE also sets."""
    return click.option(
        "--engine",
        type=engine_name,
        envvar="GFCODE_ENGINE",
        metavar="E",
        help="Engine to use; an error where it cannot be had (see `gfcode engines`).  [default: the fastest here]",
    )(function)


def threads_option(function: Command) -> Command:
    """Add --threads."""
    return click.option(
        "--threads",
        type=click.IntRange(min=1),
        metavar="N",
        help="Threads to code with.  [default: one for each core, 4 at most]",
    )(function)


def sync_option(function: Command) -> Command:
    """Add --sync, handed on as `durable`."""
    return click.option(
        "--sync/--no-sync",
        "durable",
        default=True,
        help="Flush to the device what is written before it gets its name, against a loss of power.  [default: sync]",
    )(function)


def coding_options(function: Command) -> Command:
    """Add --engine, --threads and --sync, and what `output_options` adds: for commands that code and write files."""
    return engine_option(threads_option(sync_option(output_options(function))))


def output_options(function: Command) -> Command:
    """Add --json and --quiet, handed to the command as one `console`."""

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout, errors included.")
    @click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
    @functools.wraps(function)
    def command(*args: Any, as_json: bool, quiet: bool, **options: Any) -> Any:
        return function(*args, console=Console(as_json=as_json, quiet=quiet), **options)

    return command


def paths_argument(function: Command) -> Command:
    """Add PATH...: shard files, or directories that hold them. Some may be gone, as a disk that died."""
    return click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=NamedPath())(function)


def set_option(function: Command) -> Command:
    """Add --set, which picks one of several sets."""
    return click.option(
        "--set",
        "set_id",
        metavar="ID",
        help="Set to take where PATH holds several: its id or the first digits of it.",
    )(function)


def key_option(function: Command) -> Command:
    """Add --key, the file that makes a set authentic."""
    return click.option(
        "--key",
        type=NamedPath(),
        metavar="FILE",
        help="File of 16 bytes or more that holds the key of a keyed set: only what was made with it counts.",
    )(function)


def deep_option(function: Command) -> Command:
    """Add --deep, which computes parity again."""
    return click.option(
        "--deep",
        is_flag=True,
        help="Compute parity again too: finds what bad memory wrote with right checksums.",
    )(function)


def standard_stream(name: str) -> BinaryIO:
    """Return the process's stdin or stdout as a binary stream; an error where whoever started it has closed it."""
    stream: TextIO | None = getattr(sys, name)
    if stream is None:
        raise click.ClickException(f"{name} is closed")
    return stream.buffer


@contextmanager
def parameter_errors() -> Iterator[None]:
    """Make parameters that no code can have a usage error: they came from the command line."""
    try:
        yield
    except ParameterError as error:
        raise click.UsageError(str(error), click.get_current_context(silent=True)) from error
