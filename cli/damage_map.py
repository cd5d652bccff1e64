"""The damage map: shards down, stripes across; what is good, damaged and missing at a glance, without colour too."""

import itertools
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from gfcode.cli.console import Console, human_bytes, human_count, printable
from gfcode.cli.exits import Exit
from gfcode.pipeline.report import FrameStatus, SetReport, SetState, ShardReport, Stray, ranges

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = [
    "ASCII",
    "BLOCKS",
    "Style",
    "colour_for",
    "describe_shard",
    "draw",
    "exit_for",
    "print_set",
    "stray_lines",
    "style_for",
    "verdict",
]

_GOOD, _MISSING, _DAMAGED = 0, 1, 2
_COLOURS = {_GOOD: "green", _MISSING: "yellow", _DAMAGED: "red"}
_STRAYS_SHOWN = 20
_RANGES_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Style:
    """How a map is drawn.

    Attributes
    ----------
    good, missing, damaged : str
        One character each.
    ellipsis : str
        Stands for what is cut from a long name.
    colour : bool
        Whether to colour by ANSI sequences as well.
    width : int
        Columns of the terminal; no line of the map is longer.
    """

    good: str = "█"
    missing: str = "░"
    damaged: str = "x"
    ellipsis: str = "…"
    colour: bool = False
    width: int = 80

    def mark(self, state: int) -> str:
        """Return the character of a state."""
        return (self.good, self.missing, self.damaged)[state]


#: The style for terminals that show block characters, and for those that don't.
BLOCKS = Style()
ASCII = Style(good="#", missing="-", damaged="x", ellipsis="~")


def style_for(*, colour: bool) -> Style:
    """Style that stdout can show, as wide as the terminal (COLUMNS, or 80 where there is none)."""
    try:
        (BLOCKS.good + BLOCKS.missing + BLOCKS.ellipsis).encode(getattr(sys.stdout, "encoding", None) or "ascii")
        base = BLOCKS
    except UnicodeEncodeError:
        base = ASCII
    import shutil

    width = max(40, shutil.get_terminal_size((80, 24)).columns)
    return Style(base.good, base.missing, base.damaged, base.ellipsis, colour, width)


def describe_shard(shard: ShardReport) -> str:
    """Say in a few words what is wrong with a shard; 'good' where nothing is."""
    if shard.path is None:
        return "no file"
    faults = []
    if shard.metadata is not FrameStatus.GOOD:
        faults.append("metadata")
    if shard.damaged:
        faults.append(f"{shard.damaged:,} damaged")
    if shard.missing:
        faults.append(f"{shard.missing:,} missing")
    if shard.trailing:
        faults.append(f"{human_bytes(shard.trailing)} too long")
    return ", ".join(faults) or "good"


def draw(report: SetReport, style: Style) -> list[str]:
    """Draw a set, one line a shard.

    Parameters
    ----------
    report : SetReport
    style : Style

    Returns
    -------
    list of str
        A heading, one line for each shard, the spare line and the legend. Where there are more stripes than columns, a
        column stands for several stripes and shows the worst of them.
    """
    labels = [str(shard.index) for shard in report.shards]
    faults = [describe_shard(shard) for shard in report.shards]
    names = _names(report.shards)
    left = max(5, *map(len, labels))
    # The map takes what words and names leave, and they are cut before it gets narrower than a quarter of the line.
    middle = min(max(map(len, faults)), style.width // 3)
    faults = [_cut(fault, middle, style.ellipsis) for fault in faults]
    room = style.width - left - middle - 4
    right = min(max(map(len, names)), max(0, room - style.width // 3))
    states, spare, per_column = _binned(report, max(1, room - right))
    lines = [_heading(report, style)]
    columns = states.shape[1]
    for label, row, fault, name in zip(labels, states, faults, names, strict=True):
        shown = _cut(name, right, style.ellipsis, keep_end=True)
        text = f"{label:>{left}} {_marks(row, style)}  {fault:<{middle}} {shown}"
        lines.append(text.rstrip() if columns else f"{label:>{left}}  {fault:<{middle}} {shown}".rstrip())
    if columns:
        lines.append(f"{'spare':>{left}} {_spare_marks(spare, style)}")
    lines += _legend(style, per_column, columns)
    return lines


def stray_lines(strays: Sequence[Stray]) -> list[str]:
    """One line for each file that was looked at and not used."""
    lines = [f"not used: {printable(stray.path)}: {printable(stray.reason)}" for stray in strays[:_STRAYS_SHOWN]]
    if len(strays) > _STRAYS_SHOWN:
        lines.append(f"not used: {len(strays) - _STRAYS_SHOWN:,} more files (--json lists them)")
    return lines


def verdict(report: SetReport, paths: Sequence[str]) -> str:
    """Sum up in one line: intact, repairable and how, or beyond repair and where."""
    if report.state == "intact":
        return "intact"
    if report.state == "repairable":
        deep = "--deep " if (report.damage == FrameStatus.PARITY).any() else ""
        return f"damaged: repairable: run `gfcode repair {deep}{printable(shlex.join(paths))}`"
    lost = report.stripes_beyond_repair
    if not lost.size:
        return f"beyond repair: {report.summary()}"
    spans = [f"{first}" if first == last else f"{first}-{last}" for first, last in ranges(lost)]
    where = ", ".join(spans[:_RANGES_SHOWN]) + (", ..." if len(spans) > _RANGES_SHOWN else "")
    noun, have = ("stripe", "has") if lost.size == 1 else ("stripes", "have")
    return (
        f"beyond repair: {noun} {where} ({lost.size:,} of {report.stripes:,}) "
        f"{have} fewer than the {report.k} good frames needed"
    )


def print_set(console: Console, report: SetReport) -> None:
    """Print the map of a set, what is odd about its shards, and the files that were not used."""
    if not console.talks:
        return
    for line in draw(report, style_for(colour=console.colour)):
        console.say(line)
    for shard in report.shards:
        for note in shard.notes if shard.path is not None else ():
            console.say(f"shard {shard.index}: {printable(note)}")
    for line in stray_lines(report.strays):
        console.say(line)


def colour_for(state: SetState) -> str:
    """Return the colour of a set's verdict."""
    return {"intact": "green", "repairable": "yellow", "beyond repair": "red"}[state]


def exit_for(state: SetState) -> Exit:
    """Return the exit code that tells the state of a set."""
    return {"intact": Exit.FINE, "repairable": Exit.REPAIRABLE, "beyond repair": Exit.BEYOND_REPAIR}[state]


def _heading(report: SetReport, style: Style) -> str:
    size = "unknown size" if report.size is None else human_bytes(report.size)
    heading = (
        f"{printable(report.name)}: {size}, {report.k} + {report.m} shards, {human_count(report.stripes, 'stripe')}, "
        f"{report.family}, w = {report.w}, {report.layout}"
    )
    whole = f"{heading}, set {report.set_id[:8]}"
    return whole if len(whole) <= style.width else _cut(heading, style.width, style.ellipsis)


def _names(shards: Sequence[ShardReport]) -> list[str]:
    """File names; with what tells their folders apart where the shards lie in several."""
    paths = ["" if shard.path is None else os.path.abspath(shard.path) for shard in shards]
    folders = {os.path.dirname(path) for path in paths if path}
    common = os.path.commonpath(folders) if folders else ""
    return [printable(os.path.relpath(path, common)) if path else "" for path in paths]


def _cut(text: str, width: int, ellipsis: str, *, keep_end: bool = False) -> str:
    """Shorten text to `width` characters."""
    if len(text) <= width:
        return text
    if width < 1:
        return ""
    return ellipsis + text[len(text) - width + 1 :] if keep_end else text[: width - 1] + ellipsis


def _binned(report: SetReport, width: int) -> "tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], float]":
    """Sum stripes up in columns.

    Returns
    -------
    states : ndarray of uint8, shape (n, columns)
        The worst state of each shard's frames in each column.
    spare : ndarray of int64, shape (columns,)
        How many more frames the column's weakest stripe can lose; -1 where it is beyond repair.
    per_column : float
        Stripes a column.
    """
    import numpy as np

    columns = min(width, report.stripes)
    if not columns:
        return np.zeros((report.n, 0), np.uint8), np.zeros(0, np.int64), 1.0
    bad = report.damage != FrameStatus.GOOD
    states = np.where(report.damage == FrameStatus.MISSING, np.uint8(_MISSING), np.where(bad, np.uint8(_DAMAGED), 0))
    starts = np.arange(columns) * report.stripes // columns
    # A second copy of a shard can stand in for a bad frame, so that the map alone does not tell what is beyond repair.
    spare = np.maximum(report.m - bad.sum(axis=0, dtype=np.int64), 0)
    spare[report.stripes_beyond_repair] = -1
    return (
        np.maximum.reduceat(states.astype(np.uint8), starts, axis=1),
        np.minimum.reduceat(spare, starts),
        report.stripes / columns,
    )


def _marks(row: "npt.NDArray[np.uint8]", style: Style) -> str:
    """Characters of one shard's columns, coloured in runs."""
    import numpy as np

    cuts = [0, *(np.flatnonzero(np.diff(row)) + 1).tolist(), row.size]
    pieces = []
    for first, end in itertools.pairwise(cuts):
        if end > first:
            piece = style.mark(int(row[first])) * (end - first)
            pieces.append(click.style(piece, fg=_COLOURS[int(row[first])]) if style.colour else piece)
    return "".join(pieces)


def _spare_marks(spare: "npt.NDArray[np.int64]", style: Style) -> str:
    """Write a digit for each column, + above nine, ! where stripes are beyond repair."""
    marks = ("!" if count < 0 else str(count) if count <= 9 else "+" for count in spare.tolist())
    return "".join(click.style(mark, fg="red", bold=True) if mark == "!" and style.colour else mark for mark in marks)


def _legend(style: Style, per_column: float, columns: int) -> list[str]:
    """Explain the characters."""
    if not columns:
        return []
    keys = f"{style.good} good  {style.damaged} damaged  {style.missing} missing"
    scale = "a column is a stripe" if per_column <= 1 else f"a column is {per_column:,.3g} stripes, worst shown"
    spare = "spare: frames that a stripe can still lose, ! beyond repair"
    return [text[: style.width] for text in (f"{keys}   {scale}", spare)]
