"""`gfcode encode`: a file or a stream becomes a shard set."""

import click

from gfcode.cli.console import Console, human_bytes, human_count, human_seconds, printable
from gfcode.cli.options import (
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
from gfcode.params import LayoutName

__all__ = ["command"]


@click.command("encode", short_help="Cut a file into k data shards and add m parity shards.")
@click.argument("file", metavar="FILE|-", type=click.Path(allow_dash=True))
@click.option("-k", type=int, default=10, show_default=True, help="Data shards.")
@click.option("-m", type=int, default=4, show_default=True, help="Parity shards: so many losses can be repaired.")
@click.option("--w", type=int, default=8, show_default=True, help="Bits of a symbol: 1 to 16, or 32.")
@click.option(
    "--matrix",
    default="auto",
    show_default=True,
    metavar="FAMILY",
    help="Family of the parity matrix: auto, vandermonde, powers, cauchy, cauchy-good (see `gfcode codes`).",
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
    type=click.Path(file_okay=False),
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
@click.option("--force", is_flag=True, help="Replace a set of the same name.")
@output_options
def command(
    console: Console,
    file: str,
    k: int,
    m: int,
    w: int,
    matrix: str,
    layout: LayoutName,
    frame: int,
    directories: tuple[str, ...],
    name: str | None,
    checksum: str | None,
    key: str | None,
    engine: str | None,
    threads: int | None,
    durable: bool,
    force: bool,
) -> None:
    """Cut FILE (- for stdin) into k data shards and add m parity shards: NAME.000.gfs, NAME.001.gfs, ...

    Any k of them give FILE back. Shards get their names when all of them are complete and on the disk.
    """
    if file == "-" and name is None:
        raise click.UsageError("stdin has no name of its own; give one with --name", click.get_current_context())
    from gfcode import encode_file

    with parameter_errors(), progress_bar(console, "encode") as progress:
        report = encode_file(
            standard_stream("stdin") if file == "-" else file,
            k=k, m=m, w=w, matrix=matrix, layout=layout, frame=frame, out=directories or ".", name=name,
            checksum=checksum, key=key, engine=engine, threads=threads, durable=durable, force=force,
            progress=progress,
        )  # fmt: skip
    console.result(report.to_json())
    console.say(
        f"{printable(report.name)}: {human_bytes(report.size)} in {report.k} + {report.m} shards of "
        f"{human_count(report.stripes, 'stripe')} ({report.family}, w = {report.w}, {report.layout}); "
        f"{human_bytes(report.bytes_written)} written in {human_seconds(report.seconds)}, "
        f"{human_bytes(report.size / max(report.seconds, 1e-9))}/s"
    )
