"""Plots of the classic experiment: one file a sweep, throughput above, CPU time below, encode left, decode right."""

import os
from collections.abc import Iterator, Sequence
from typing import Any

from bench.methods import METHODS
from gfcode.measure.plots import LINES, save, subplots

__all__ = ["draw"]

_LABELS = {
    "size": "MB of data, (10,4), w = 8",
    "m": "m at k = 10, w = 8",
    "k": "k at m = 4, w = 8",
    "w": "w at (10,4)",
}
_PANELS = (("median", "GB of data a second"), ("cpu_seconds_per_gb", "CPU seconds a GB"))


def draw(cases: Sequence[dict[str, Any]], folder: str) -> Iterator[str]:
    """Draw what was measured, as SVG and PNG; yield the paths."""
    os.makedirs(folder, exist_ok=True)
    for sweep, label in _LABELS.items():
        members = [case for case in cases if case["sweep"] == sweep]
        if not members:
            continue
        figure, axes = subplots(2, 2, size=(10, 7.5))
        for column, operation in enumerate(("encode", "decode")):
            found = [case for case in members if case["operation"] == operation]
            for row, (measured, unit) in enumerate(_PANELS):
                _lines(axes[row, column], found, sweep, measured)
                axes[row, column].set_ylabel(unit)
                axes[row, column].set_xlabel(label)
            axes[0, column].set_title(operation)
        handles, names = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=3, fontsize=8)
        for suffix in ("svg", "png"):
            path = os.path.join(folder, f"experiment-{sweep}.{suffix}")
            save(figure, path)
            yield path


def _lines(axis: Any, cases: Sequence[dict[str, Any]], sweep: str, measured: str) -> None:
    """Draw a line a method, told apart by marker and dashes, with the range of the rounds."""
    for method, (marker, dashes) in zip(METHODS, LINES, strict=True):
        name = method.name
        members = [case for case in cases if name in case[measured]]
        if not members:
            continue
        places = [case["bytes"] / 1e6 if sweep == "size" else case[sweep] for case in members]
        values = [case[measured][name] for case in members]
        rounds = [case["rates" if measured == "median" else "cpu"][name] for case in members]
        below = [value - min(all_of) for value, all_of in zip(values, rounds, strict=True)]
        above = [max(all_of) - value for value, all_of in zip(values, rounds, strict=True)]
        axis.errorbar(
            places, values, yerr=[below, above], fmt=marker + dashes, color="black", label=name, markersize=5,
            markerfacecolor="white", linewidth=1, elinewidth=0.6, capsize=2,
        )  # fmt: skip
    axis.set_yscale("log")
    if sweep in {"size", "w"}:
        axis.set_xscale("log", base=4 if sweep == "size" else 2)
    ticks = sorted({round(case["bytes"] / 1e6) if sweep == "size" else case[sweep] for case in cases})
    axis.set_xticks(ticks, [str(tick) for tick in ticks])
    axis.minorticks_off()
    axis.grid(visible=True, which="major", alpha=0.4)
