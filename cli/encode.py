"""`gfcode encode`: a file or a stream becomes a shard set, and a tree of files many."""

import contextlib
import os
from typing import TYPE_CHECKING, Any

import click

from gfcode.cli.console import Console, human_bytes, human_count, human_seconds, printable
from gfcode.cli.exits import Exit
from gfcode.cli.options import (
    NamedPath,
    byte_size,
    engine_option,
    key_option,
    output_options,
    parameter_errors,
    standard_stream,
    sync_option,
    threads_option,
)
from gfcode.cli.progress import progress_bar

if TYPE_CHECKING:
    from gfcode.pipeline.outcomes import EncodeReport
    from gfcode.pipeline.tree_report import Encoded

__all__ = ["command", "encoded_line"]


@click.command("encode", short_help="Cut a file into k data shards and add m parity shards.")
@click.argument("sources", metavar="FILE|DIR|-...", nargs=-1, required=True, type=NamedPath(allow_dash=True))
@click.option("-k", type=int, default=10, show_default=True, help="Data shards.")
@click.option("-m", type=int, default=4, show_default=True, help="Parity shards: so many losses can be repaired.")
@click.option("--w", type=int, default=8, show_default=True, help="Bits of a symbol: 1 to 16, or 32.")
@click.option(
    "--matrix",
    default="auto",
    show_default=True,
    metavar="FAMILY",
    help="Family of the parity matrix: auto, or one that `gfcode codes` lists.",
)
@click.option(
    "--layout",
    type=click.Choice(["packets", "words"]),
    default="packets",
    show_default=True,
    help="How the bytes of a block are symbols.",
)
@click.option(
    "--frame",
    type=byte_size,
    default="64KiB",
    show_default=True,
    metavar="SIZE",
    help="Most bytes of a frame, the unit that is checked and repaired: header and block.",
)
@click.option(
    "--out",
    "directories",
    multiple=True,
    type=NamedPath(file_okay=False),
    metavar="DIR",
    help="Directory for the shards; several take turns. Missing ones are made.  [default: the current directory]",
)
@click.option("--name", metavar="NAME", help="Name of the set, needed for a stream.  [default: the file's name]")
@click.option(
    "--hash",
    "checksum",
    type=click.Choice(["xxh3-128", "blake3"]),
    help="Checksum of the frames.  [default: xxh3-128; with --key keyed BLAKE3]",
)
@key_option
@engine_option
@threads_option
@sync_option
@click.option("--exclude", multiple=True, metavar="PATTERN", help="Pass over files and directories with such names.")
@click.option("--update", is_flag=True, help="Encode files anew that have changed since they were encoded.")
@click.option("--archive", is_flag=True, help="Make one set, named by --name, of a tar archive of all.")
@click.option("--force", is_flag=True, help="Replace a set of the same name.")
@output_options
def command(
    console: Console,
    sources: tuple[str, ...],
    archive: bool,
    exclude: tuple[str, ...],
    update: bool,
    directories: tuple[str, ...],
    name: str | None,
    **options: Any,
) -> Exit:
    """Cut each FILE (- for stdin) into k data shards and add m parity shards: NAME.000.gfs, NAME.001.gfs, ...

    Any k of them give the file back. Shards get their names when all of them are complete and on the disk. Of a
    directory each file becomes a set of its own, below DIR as it stands below the directory; files whose sets are
    current are passed over.
    """
    ctx = click.get_current_context()
    one = len(sources) == 1 and not os.path.isdir(sources[0])
    if "-" in sources and not one:
        raise click.UsageError("- is stdin, which is encoded alone; name it alone", ctx)
    if archive or (one and not update and not exclude):
        if name is None and (archive or sources == ("-",)):
            what = "an archive" if archive else "stdin"
            raise click.UsageError(f"{what} has no name of its own; give one with --name", ctx)
        if update:
            raise click.UsageError(
                "--update goes with files; an archive is made anew, with --force to replace one", ctx
            )
        if archive and "-" in sources:
            raise click.UsageError("stdin cannot be put into an archive", ctx)
        _encode_one(console, sources, exclude if archive else None, directories or (".",), name, options)
        return Exit.FINE
    if name is not None:
        raise click.UsageError("--name goes with one file or with --archive", ctx)
    if "-" in sources:
        raise click.UsageError("--update and --exclude go with files, not with stdin", ctx)
    return _encode_many(console, sources, directories or (".",), options | {"exclude": exclude, "update": update})


def _encode_one(
    console: Console, sources: tuple[str, ...], archived: tuple[str, ...] | None, directories: tuple[str, ...],
    name: str | None, options: dict[str, Any],
) -> None:  # fmt: skip
    """Encode a file, stdin, or the archive of all sources without those that `archived` excludes."""
    from gfcode import encode_file

    with contextlib.ExitStack() as stack:
        stack.enter_context(parameter_errors())
        progress = stack.enter_context(progress_bar(console, "encode"))
        source: Any = sources[0]
        if archived is not None:
            from gfcode.pipeline.archive import TarStream

            source = stack.enter_context(TarStream(sources, exclude=archived, avoid=directories))
        elif source == "-":
            source = standard_stream("stdin")
        report = encode_file(source, out=directories, name=name, progress=progress, **options)
    console.result(report.to_json())
    console.say(encoded_line(report))


def _encode_many(
    console: Console, sources: tuple[str, ...], directories: tuple[str, ...], options: dict[str, Any]
) -> Exit:
    """Encode every file of some trees."""
    from gfcode import encode_tree

    def tell(result: "Encoded") -> None:
        if result.state == "failed":
            console.error(f"{result.source}: {result.reason}", Exit.FAILED, result.to_json())
            return
        console.result(result.to_json())
        if result.report is not None:
            again = f" (again: {result.reason})" if result.reason else ""
            console.say(f"{encoded_line(result.report, result.source)}{printable(again)}")
        elif result.state == "skipped":
            console.say(f"{printable(result.source)}: not encoded: {result.reason}")

    with parameter_errors(), progress_bar(console, "encode") as progress:
        report = encode_tree(sources, out=directories, progress=progress, on_result=tell, **options)
    counts = report.counts
    failed = counts["failed"]
    console.result({"summary": report.to_json(), "exit_code": int(Exit.FAILED if failed else Exit.FINE)})
    states = ", ".join(f"{count:,} {state}" for state, count in counts.items())
    console.say(
        f"{human_count(len(report.results), 'file')}: {states}; "
        f"{human_bytes(report.size)} encoded, {human_bytes(report.bytes_written)} written in "
        f"{human_seconds(report.seconds)}"
    )
    return Exit.FAILED if failed else Exit.FINE


def encoded_line(report: "EncodeReport", source: str | None = None) -> str:
    """Say what was encoded, how, and how fast."""
    named = printable(report.name if source is None else source)
    return (
        f"{named}: {human_bytes(report.size)} in {report.k} + {report.m} "
        f"shards of {human_count(report.stripes, 'stripe')} ({report.family}, w = {report.w}, {report.layout}); "
        f"{human_bytes(report.bytes_written)} written in {human_seconds(report.seconds)}, "
        f"{human_bytes(report.size / max(report.seconds, 1e-9))}/s"
    )
