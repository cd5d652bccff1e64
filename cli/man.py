"""`gfcode man`: the manual page, made from the help of every command."""

import re
from collections.abc import Iterable, Iterator, Sequence

import click

from gfcode.cli.console import Console
from gfcode.cli.exits import EXIT_CODES
from gfcode.cli.options import output_options

__all__ = ["COMPLETIONS", "command", "files", "manual"]

#: Where shells look for completion, below `share`.
COMPLETIONS = {
    "bash": "bash-completion/completions/gfcode",
    "zsh": "zsh/site-functions/_gfcode",
    "fish": "fish/vendor_completions.d/gfcode.fish",
}


# \b keeps click from filling the lines of a paragraph.
HELP = """Print the manual page in the form that `man` reads.

\b
gfcode man | man -l -                            read it
gfcode man > ~/.local/share/man/man1/gfcode.1    install it

An installation has the page already, and completion for bash, zsh and fish, below the share folder of its prefix.
"""


@click.command("man", help=HELP, short_help="Print the manual page, for `man`.")
@output_options
def command(console: Console) -> None:
    """Print the manual page."""
    from importlib.metadata import version

    from gfcode.cli.main import ENVIRONMENT, root

    page = manual(root, version("gfcode"), ENVIRONMENT)
    console.result({"page": page})
    console.say(page.removesuffix("\n"))


def files(root: click.Group, version: str, environment: dict[str, str]) -> dict[str, str]:
    """Return what an installation puts below `share`: the manual page, and completion for each shell.

    Parameters
    ----------
    root, version, environment
        As for `manual`.

    Returns
    -------
    dict of str to str
        Content by path.
    """
    from importlib.metadata import version as version_of

    from click.shell_completion import get_completion_class

    minor = ".".join(version_of("click").split(".")[:2])
    note = f'.\\" Made by `make share` with click {minor}; not to be edited.\n'
    found = {"man/man1/gfcode.1": note + manual(root, version, environment)}
    for shell, path in COMPLETIONS.items():
        completion = get_completion_class(shell)
        if completion is None:
            raise LookupError(f"click completes for no shell {shell}")
        found[path] = completion(root, {}, "gfcode", "_GFCODE_COMPLETE").source().strip() + "\n"
    return found


def manual(root: click.Group, version: str, environment: dict[str, str]) -> str:
    """Return the manual page of a command and everything below it, as roff with the macros of man(7).

    Parameters
    ----------
    root : click.Group
    version : str
    environment : dict of str to str
        What each environment variable does.
    """
    ctx = click.Context(root, info_name="gfcode", **root.context_settings)
    summary, *rest = _paragraphs(root.help)
    lines = [
        f'.TH GFCODE 1 "" "gfcode {_escaped(version)}" "User Commands"',
        ".SH NAME",
        f"gfcode \\- {_escaped(_unfilled(summary).split(':')[0].lower())}",
        ".SH SYNOPSIS",
        ".B gfcode",
        r"\fICOMMAND\fR [\fIOPTION\fR]... [\fIARGUMENT\fR]...",
        ".SH DESCRIPTION",
        *_prose([summary, *rest]),
        ".PP",
        "Options of the command itself:",
        *_options(root, ctx),
        ".SH COMMANDS",
        *_commands(root, ctx),
        ".SH EXIT STATUS",
        *_list([(str(int(code)), meaning) for code, meaning in EXIT_CODES.items()]),
        ".SH ENVIRONMENT",
        *_list(environment.items()),
    ]
    return "\n".join(lines) + "\n"


def _commands(group: click.Group, ctx: click.Context) -> Iterator[str]:
    """Yield a subsection for each command of a group, groups below it included."""
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        if command is None or command.hidden:
            continue
        inner = click.Context(command, parent=ctx, info_name=name, **command.context_settings)
        if isinstance(command, click.Group):
            yield f'.SS "{_escaped(inner.command_path)}"'
            yield from _prose(_paragraphs(command.help))
            yield from _commands(command, inner)
            continue
        yield f'.SS "{_escaped(" ".join([inner.command_path, *command.collect_usage_pieces(inner)]))}"'
        yield from _prose(_paragraphs(command.help))
        yield from _options(command, inner)
        if command.epilog:
            yield from _prose(_paragraphs(command.epilog))


def _options(command: click.Command, ctx: click.Context) -> Iterator[str]:
    """Yield the options of a command with their help."""
    options = (parameter for parameter in command.get_params(ctx) if isinstance(parameter, click.Option))
    records = (option.get_help_record(ctx) for option in options)
    yield from _list([record for record in records if record is not None])


def _list(items: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a list of terms and what they mean."""
    for term, meaning in items:
        yield ".TP"
        yield f"\\fB{_escaped(term)}\\fR"
        yield _line(_unfilled(meaning))


def _paragraphs(help_text: str | None) -> list[str]:
    return re.split(r"\n\s*\n", (help_text or "").strip("\n"))


def _prose(paragraphs: Sequence[str]) -> Iterator[str]:
    """Yield paragraphs; those that begin with click's mark for text that must not be filled stay as they are."""
    for paragraph in paragraphs:
        yield ".PP"
        if paragraph.lstrip(" ").startswith("\b"):
            yield ".nf"
            yield from (_line(line) for line in paragraph.splitlines() if line.strip(" \b"))
            yield ".fi"
        else:
            yield _line(_unfilled(paragraph))


def _unfilled(paragraph: str) -> str:
    return " ".join(paragraph.split())


def _line(text: str) -> str:
    """Return a line of text that roff takes for no request."""
    escaped = _escaped(text)
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def _escaped(text: str) -> str:
    """Return text in which roff sees no escape of its own, and hyphens that can be copied as such."""
    return text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
