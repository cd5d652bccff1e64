"""`gfcode bench`: how fast this machine is, by engine, beside ISA-L, and which engine is chosen; and all around it."""

from typing import TYPE_CHECKING, Any

import click

from gfcode.cli.console import Console, human_bytes
from gfcode.cli.options import NamedPath, byte_size, engine_name, output_options, parameter_errors

if TYPE_CHECKING:
    from gfcode.engine.protocol import Engine
    from gfcode.measure.areas import Line
    from gfcode.measure.harness import Figure
    from gfcode.measure.quick import Row

__all__ = ["command"]

#: Shapes, block lengths and rounds: of --quick, and else.
_QUICK = ((4, 2), (10, 4)), (64 << 10, 4 << 20), 5
_FULL = ((4, 2), (6, 3), (10, 4), (20, 4)), (4 << 10, 64 << 10, 1 << 20, 16 << 20), 9
#: Areas, "codecs" and those of `gfcode.measure.areas`: what --quick measures; else all.
_AREAS = ("codecs", "files", "fields", "matrices", "programs")
_QUICK_AREAS = ("codecs", "files")
#: Bytes of the file for "files": of --quick, and else.
_FILE = 32 << 20, 256 << 20


def _shape(text: str) -> tuple[int, int]:
    """Read a shape such as 10+4."""
    k, plus, m = text.partition("+")
    if not (plus and k.isascii() and k.isdigit() and m.isascii() and m.isdigit() and int(k) and int(m)):
        raise click.BadParameter(f"{text!r} is no shape; write for example 10+4")
    return int(k), int(m)


def _block_length(text: str) -> int:
    """Read the length of a block: whole strips of both layouts."""
    length = byte_size(text)
    if length < 512 or length % 512:
        raise click.BadParameter(f"{text!r} is no block length here; it must be a multiple of 512 bytes")
    return length


@click.command("bench", short_help="Measure this machine: each engine, beside ISA-L.")
@click.option("--quick", is_flag=True, help="Two codes, two block lengths, a file; less than a minute.")
@click.option(
    "--area", "areas", type=click.Choice(_AREAS), multiple=True,
    help="Measure this; may be repeated.  [default: all; codecs where a shape, length or engine is given]",
)  # fmt: skip
@click.option(
    "--shape", "shapes", type=_shape, multiple=True, metavar="K+M", help="Measure this code; may be repeated."
)
@click.option(
    "--length", "lengths", type=_block_length, multiple=True, metavar="SIZE", help="Bytes of a block; may be repeated."
)
@click.option(
    "--engine", "engines", type=engine_name, multiple=True, metavar="E",
    help="Measure this engine; may be repeated.  [default: all that run here]",
)  # fmt: skip
@click.option("--rounds", type=click.IntRange(min=1), metavar="N", help="Turns that all engines take.")
@click.option("--plot", type=NamedPath(dir_okay=False), metavar="FILE", help="Draw it too: .svg, .png or .pdf.")
@output_options
def command(
    console: Console,
    quick: bool,
    areas: tuple[str, ...],
    shapes: tuple[tuple[int, int], ...],
    lengths: tuple[int, ...],
    engines: tuple[str, ...],
    rounds: int | None,
    plot: str | None,
) -> None:
    """Measure how fast this machine encodes, decodes and repairs blocks in memory, in one thread; then whole files.

    Rates are GB (10^9 bytes) of data a second, medians of rounds in which all engines take turns, with their range.
    Decode makes m lost data blocks, repair one. Every result is checked. ISA-L is measured beside in layout words,
    where it is installed (pip install pyeclib, or the system's libisal.so.2). A GPU is measured where it is asked for
    (--engine cuda): blocks then travel there and back.

    Files are encoded, verified, decoded and repaired in the folder for temporary files, in as many threads as usual and
    without being flushed to the device. Fields, matrices and programs are the arithmetic of elements, and what it takes
    to prepare a code.
    """
    from gfcode.measure import areas as others
    from gfcode.measure import isal, plots
    from gfcode.measure import quick as measuring
    from gfcode.measure.harness import machine

    if areas and "codecs" not in areas and (shapes or lengths or engines):
        raise click.UsageError("--shape, --length and --engine are for codecs: add --area codecs")
    if plot is not None:
        if areas and "codecs" not in areas:
            raise click.UsageError("--plot draws codecs: add --area codecs")
        with parameter_errors():
            plots.check_name(plot)
        plots.subplots(1, 1, size=(1, 1))
    usual = _QUICK if quick else _FULL
    few = _QUICK_AREAS if quick else _AREAS
    wanted = areas or (("codecs",) if shapes or lengths or engines else few)
    usable, peer = _engines(engines) if "codecs" in wanted else {}, isal.load()
    taken = shapes or usual[0]
    with parameter_errors():
        chosen = {f"{k}+{m}": measuring.choices(k, m) for k, m in taken}
    info = machine() | {"isal": peer.version if peer else "not installed"}
    console.say(f"{info.get('model', info['machine'])}, {info['cpus']} CPUs; {info['isal']}")
    rows: list[Row] = []
    if "codecs" in wanted:
        console.say("GB of data a second, one thread: median [range]")
        columns = [*usable, *([measuring.ISAL] if peer else [])]
        console.say(f"{'':37}" + "".join(f"{name:>23}" for name in columns))
        for row in measuring.suite(taken, lengths or usual[1], usable, peer, rounds=rounds or usual[2]):
            rows.append(row)
            console.say(_line(row, columns))
    lines: list[Line] = []
    for area in (area for area in wanted if area != "codecs"):
        for line in others.measure(area, rounds=rounds or usual[2], file_bytes=_FILE[not quick]):
            lines.append(line)
            console.say(f"{line.area:9} {line.name:38} {_rates(line.figure):>23} {line.unit}")
    result: dict[str, Any] = {"environment": info, "chosen": chosen, "cases": [row.to_dict() for row in rows]}
    for line in lines:
        result.setdefault(line.area, []).append(line.to_dict())
    console.result(result)
    for layout in ("packets", "words"):
        names = dict.fromkeys(choice[layout] for choice in chosen.values())
        console.say(f"chosen for layout {layout}: {', '.join(names)}")
    if plot is not None:
        plots.plot_rows(rows, plot)
        console.say(f"drawn to {plot}")


def _engines(names: tuple[str, ...]) -> "dict[str, Engine]":
    """Engines to measure: those asked for, or all that can run here."""
    from gfcode.engine.registry import get_engine, status

    taken = names or tuple(engine.name for engine in status() if engine.usable)
    return {name: get_engine(name) for name in taken}


def _line(row: "Row", columns: list[str]) -> str:
    """One line of the table."""
    text = f"({row.k},{row.m})".ljust(8) + f"{human_bytes(row.length):>9}  {row.layout:8} {row.operation:8} "
    for name in columns:
        figure = row.figures.get(name)
        text += f"{'' if figure is None else _rates(figure):>23}"
    return text.rstrip()


def _rates(figure: "Figure") -> str:
    return f"{_number(figure.median)} [{_number(min(figure.rates))}-{_number(max(figure.rates))}]"


def _number(value: float) -> str:
    """Three digits, without exponents."""
    text = f"{value:.3g}"
    return f"{float(text):,.0f}" if value >= 999.5 else text
