"""The `gfcode` command: its group of subcommands, each loaded when used, and what every error becomes."""

import importlib
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn, TextIO

import click

from gfcode.cli.console import Console, debug_wanted, printable
from gfcode.cli.exits import EXIT_CODES, Exit
from gfcode.errors import GFCodeError, UnrecoverableError

__all__ = ["main", "root", "run"]

#: Subcommands in the order of `--help`; each is `command` in the module of its name.
COMMANDS = (
    "encode",
    "decode",
    "verify",
    "repair",
    "scrub",
    "info",
    "engines",
    "codes",
    "plan",
    "raw",
    "demo",
    "bench",
    "man",
)
ENVIRONMENT = {
    "GFCODE_ENGINE": "the engine to use, as --engine",
    "GFCODE_CACHE_DIR": "where compiled kernels are kept",
    "GFCODE_DEBUG": "1: show the traceback of an error",
}
# \b keeps click from filling the lines of a paragraph.
HELP = """Erasure-coded storage: a file becomes k data shards and m parity shards, and comes back from any k of them.

\b
gfcode encode big.tar -k 10 -m 4 --out d   writes d/big.tar.000.gfs to 013
gfcode verify d                            what is damaged, is it repairable
gfcode repair d                            restores missing, damaged shards
gfcode decode d -o big.tar                 the file, from any 10 of the 14
"""
COMPLETE_VARIABLE = "_GFCODE_COMPLETE"
#: Exit codes of exceptions; all others are failures.
_CODES: tuple[tuple[type[BaseException], Exit], ...] = (
    (click.UsageError, Exit.USAGE),
    (click.Abort, Exit.INTERRUPTED),
    (KeyboardInterrupt, Exit.INTERRUPTED),
    (UnrecoverableError, Exit.BEYOND_REPAIR),
)


class Root(click.Group):
    """A group whose subcommands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the subcommands, in the order of `COMMANDS`."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a subcommand; None where there is none of that name."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"gfcode.cli.{cmd_name}").command
        if not isinstance(command, click.Command):
            raise TypeError(f"gfcode.cli.{cmd_name}.command is no click command")
        return command

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the tables of exit codes and environment variables."""
        del ctx
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(int(code)), meaning) for code, meaning in EXIT_CODES.items()])
        with formatter.section("Environment"):
            formatter.write_dl(list(ENVIRONMENT.items()))


def _show_versions(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    """Print the versions and leave, where `--version` is given."""
    del parameter
    if value and not ctx.resilient_parsing:
        from gfcode.cli.versions import text

        click.echo(text())
        ctx.exit()


@click.group(cls=Root, help=HELP, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_versions,
    help="Show the versions of gfcode and of what its engines need, and exit.",
)  # fmt: skip
@click.pass_context
def root(ctx: click.Context) -> None:
    """Show the help where no subcommand is named."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(int(Exit.USAGE))


def _terminated(signum: int, frame: FrameType | None) -> NoReturn:
    """Turn SIGTERM into an exception, so that temporary files are removed on the way out."""
    del signum, frame
    raise SystemExit(int(Exit.TERMINATED))


def _message(error: BaseException) -> str:
    """Say in one line what went wrong."""
    match error:
        case click.UsageError():
            where = error.ctx.command_path if error.ctx else "gfcode"
            message = f"{error.format_message().rstrip('.')} (see `{where} --help`)"
        case click.ClickException():
            message = error.format_message()
        case KeyboardInterrupt() | click.Abort():
            message = "interrupted"
        case GFCodeError():
            message = str(error)
        case MemoryError():
            message = f"out of memory: {error}".rstrip(": ")
        case OSError():
            names = [os.fsdecode(name) for name in (error.filename, error.filename2) if isinstance(name, (str, bytes))]
            reason = error.strerror or str(error) or type(error).__name__
            message = ": ".join([" -> ".join(names), reason] if names else [reason])
        case _:
            message = (
                f"{type(error).__name__}: {error}: this is a bug in gfcode; please report it; "
                "set GFCODE_DEBUG=1 to see where"
            )
    return message


def _invoke(arguments: list[str]) -> int:
    """Run the command line, letting every exception out."""
    instruction = os.environ.get(COMPLETE_VARIABLE)
    if instruction:
        from click.shell_completion import shell_complete

        return shell_complete(root, {}, "gfcode", COMPLETE_VARIABLE, instruction)
    try:
        with root.make_context("gfcode", arguments) as ctx:
            code = root.invoke(ctx)
    except click.exceptions.Exit as done:
        code = done.exit_code
    if sys.stdout is not None:
        sys.stdout.flush()
    return int(code or Exit.FINE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        The arguments after the program's name; those of the process by default.

    Returns
    -------
    int
        The exit code, as `EXIT_CODES` describes it.
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    # Where the command line itself is wrong, nothing has parsed it: look for the option among what can be options.
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    console = Console(as_json="--json" in options)
    try:
        return _invoke(arguments)
    except BrokenPipeError:
        # The interpreter flushes stdout once more at exit; let that go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.READER_GONE
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last resort: no tracebacks unasked
        if debug_wanted():
            import traceback

            traceback.print_exc()
        code = next((code for kind, code in _CODES if isinstance(error, kind)), Exit.FAILED)
        return console.error(_message(error), code)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show a warning as one line, without the place in the code that it comes from."""
    del category, filename, lineno, file, line
    click.echo(f"gfcode: warning: {printable(str(message))}", err=True)


def run() -> NoReturn:
    """Entry point of the `gfcode` script."""
    # NumPy's BLAS starts its threads when it is loaded; nothing here computes with it.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    warnings.showwarning = _show_warning
    signal.signal(signal.SIGTERM, _terminated)
    sys.exit(main())


if __name__ == "__main__":
    run()
