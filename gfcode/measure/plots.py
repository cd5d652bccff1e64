"""Plots through matplotlib, which the extra `bench` installs: read without colour, written as SVG, PNG or PDF."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

from gfcode.errors import GFCodeError, ParameterError
from gfcode.measure.quick import Row

__all__ = ["LINES", "check_name", "plot_rows", "save", "subplots"]

#: Marker and dashes of each line of a plot, in turn.
LINES = (("o", "-"), ("s", "--"), ("^", "-."), ("D", ":"), ("v", "-"), ("x", "--"), ("P", "-."), ("*", ":"))
#: Filling of each group of bars, in turn.
_HATCHES = ("", "///", "...", "xx", "\\\\\\", "++")
_GREYS = ("0.25", "0.6", "0.85", "0.95", "0.45", "0.75")
_SUFFIXES = ("svg", "png", "pdf")


def _matplotlib() -> Any:
    """Return matplotlib, or say what would bring it."""
    try:
        import matplotlib as mpl  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise GFCodeError(f"plots need matplotlib ({error}): pip install 'gfcode[bench]'") from error
    return mpl


def subplots(rows: int, columns: int, *, size: tuple[float, float]) -> tuple[Any, Any]:
    """Return a figure, and an array of shape (rows, columns) of its axes.

    Raises
    ------
    GFCodeError
        If matplotlib is not installed.
    """
    _matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - an extra
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False)


def check_name(path: str) -> None:
    """Refuse names of files that no plot can have, before anything is measured.

    Raises
    ------
    ParameterError
    """
    if path.rpartition(".")[2].lower() not in _SUFFIXES:
        raise ParameterError(f"plot {path!r} must be named .svg, .png or .pdf")


def save(figure: Any, path: str) -> None:
    """Write a figure in the format that the name asks for; equal figures give equal files.

    Raises
    ------
    ParameterError
        For a name of another format.
    OSError
    """
    check_name(path)
    kind = path.rpartition(".")[2].lower()
    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[kind]
    with _matplotlib().rc_context({"svg.hashsalt": "gfcode", "svg.fonttype": "none"}):
        figure.savefig(path, format=kind, dpi=110, metadata=dates)


def plot_rows(rows: Sequence[Row], path: str) -> None:
    """Draw rates as bars: a panel for each code and block length, a group for each operation and layout."""
    panels: dict[tuple[int, int, int], list[Row]] = {}
    for row in rows:
        panels.setdefault((row.k, row.m, row.length), []).append(row)
    figure, axes = subplots(-(-len(panels) // 2), min(2, len(panels)), size=(11, 3.4 * -(-len(panels) // 2)))
    names = list(dict.fromkeys(name for row in rows for name in row.figures))
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    for axis, ((k, m, length), members) in zip(axes.flat, panels.items(), strict=False):
        _bars(axis, members, names)
        axis.set_title(f"({k},{m}), blocks of {length >> 10} KiB", fontsize=10)
        axis.set_ylabel("GB of data a second")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(names), fontsize=8)  # over no bar
    save(figure, path)


def _bars(axis: Any, rows: Sequence[Row], names: Sequence[str]) -> None:
    """Draw one panel, with the range of the rounds on every bar."""
    width = 0.8 / len(names)
    for number, (name, hatch, grey) in enumerate(zip(names, cycle(_HATCHES), cycle(_GREYS), strict=False)):
        bars: Mapping[int, Any] = {at: row.figures[name] for at, row in enumerate(rows) if name in row.figures}
        heights = [figure.median for figure in bars.values()]
        below = [figure.median - min(figure.rates) for figure in bars.values()]
        above = [max(figure.rates) - figure.median for figure in bars.values()]
        axis.bar(
            [at + (number - (len(names) - 1) / 2) * width for at in bars],
            heights, width, yerr=[below, above], label=name, hatch=hatch, color=grey, edgecolor="black", capsize=2,
        )  # fmt: skip
    axis.set_xticks(range(len(rows)), [f"{row.operation}\n{row.layout}" for row in rows], fontsize=8)
    axis.set_yscale("log")
    axis.grid(visible=True, axis="y", alpha=0.4)
