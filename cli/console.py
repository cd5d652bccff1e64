"""What commands print: text for people or one JSON object, and nothing that a terminal could take for a command."""

import contextlib
import json
import os
import sys
from typing import Any

import click

from gfcode.cli.exits import Exit

__all__ = ["Console", "debug_wanted", "human_bytes", "human_count", "human_seconds", "printable"]


def debug_wanted() -> bool:
    """Whether GFCODE_DEBUG asks for tracebacks."""
    return os.environ.get("GFCODE_DEBUG", "") not in {"", "0"}


def printable(text: str | os.PathLike[str] | bytes) -> str:
    """Text with control characters, newlines and undecodable bytes escaped: one line, safe on a terminal."""
    text = os.fsdecode(text)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def human_bytes(count: float) -> str:
    """Bytes in the unit that suits them: 1536 -> '1.5 KiB'."""
    if abs(count) < 1024:
        return f"{count:.0f} B"
    power = min((int(abs(count)).bit_length() - 1) // 10, 6)
    return f"{count / 1024**power:.1f} {'KMGTPE'[power - 1]}iB"


def human_count(count: int, noun: str) -> str:
    """Count and noun: 1 stripe, 2 stripes."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def human_seconds(seconds: float) -> str:
    """Seconds as a person says them: '0.31 s', '2 min 5 s'."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"


class Console:
    """Where one command's output goes.

    Parameters
    ----------
    as_json : bool
        Print one JSON object on stdout, and no text.
    quiet : bool
        Print no text and no progress; errors are still printed.
    """

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json = as_json
        self.quiet = quiet

    @property
    def talks(self) -> bool:
        """Whether text is wanted."""
        return not (self.as_json or self.quiet)

    @property
    def shows_progress(self) -> bool:
        """Whether a progress bar is wanted: stderr is a terminal, and nobody asked for silence."""
        return self.talks and sys.stderr is not None and sys.stderr.isatty()

    @property
    def colour(self) -> bool:
        """Whether stdout takes colours."""
        if sys.stdout is None or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
            return False
        return sys.stdout.isatty()

    def say(self, text: str = "", *, err: bool = False, colour: str | None = None) -> None:
        """Print a line of text, where text is wanted; on stderr where stdout carries data."""
        if self.talks:
            _print(click.style(text, fg=colour, bold=True) if colour and self.colour else text, err=err)

    def result(self, value: dict[str, Any]) -> None:
        """Print the result as JSON, where JSON is wanted."""
        if self.as_json:
            _print(json.dumps(value, ensure_ascii=True))

    def error(self, message: str, code: Exit, value: dict[str, Any] | None = None) -> Exit:
        """Print an error as one line on stderr, as a JSON object on stdout too where that is wanted; return `code`.

        `value` is what else the JSON object holds.
        """
        # Where one of the two cannot be written, which may be the very error, the other and the exit code tell.
        with contextlib.suppress(OSError):
            self.result({**(value or {}), "error": message, "exit_code": int(code)})
        with contextlib.suppress(OSError):
            click.echo(f"gfcode: error: {printable(message)}", err=True)
        return code


def _print(text: str, *, err: bool = False) -> None:
    """Print a line; an error of that names the stream."""
    try:
        click.echo(text, err=err)
    except OSError as error:
        error.filename = "stderr" if err else "stdout"
        raise
