"""Plots of rooflines: rates against what a byte of data takes, and each kernel's ceilings side by side."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gfcode.measure.plots import save, subplots

__all__ = ["draw"]

_VECTOR = ("xor", "ternary", "affine", "shuffle", "other")
_MARKS = {"arithmetic": "^", "loads": "s", "stores": "D", "instructions": "x", "L2": "|", "memory": "|", "logic": "^"}


def draw(result: Mapping[str, Any], folder: str) -> Iterator[str]:
    """Draw what was measured, as SVG and PNG; yield the paths."""
    os.makedirs(folder, exist_ok=True)
    if result.get("cases"):
        yield from _both(_cpu(result), folder, "roofline-cpu")
    if "cases" in result.get("gpu", {}):
        yield from _both(_gpu(result["gpu"]), folder, "roofline-gpu")


def _both(figure: Any, folder: str, name: str) -> Iterator[str]:
    for suffix in ("svg", "png"):
        path = os.path.join(folder, f"{name}.{suffix}")
        save(figure, path)
        yield path


def _named(case: Mapping[str, Any]) -> str:
    return f"{case['kernel']}, ({case['k']},{case['m']})" + (f" {case['operation']}" if "operation" in case else "")


def _cpu(result: Mapping[str, Any]) -> Any:
    """Left, rates against vector operations a byte; right, with blocks in the second cache, ceilings by kernel."""
    figure, axes = subplots(1, 2, size=(12, 5.2))
    left, right = axes[0]
    cases = result["cases"]
    widest = result["ceilings"][max(result["ceilings"], key=int)]
    rates = {name: sorted(values)[len(values) // 2] for name, values in widest.items()}
    takes = [sum(case["takes"][kind] for kind in _VECTOR) for case in cases]
    ends = (min(takes) / 1.5, max(takes) * 1.5)
    fastest = max(rates["xor"], rates.get("ternary", 0))
    _slope(left, ends, fastest, "-", "XORs: two or three operands")
    if "affine" in rates:
        _slope(left, ends, rates["affine"], "--", "GFNI alone")
    for where, dashes in (("L2", "-."), ("memory", ":")):
        _level(left, ends, rates[f"move 10 to 4 {where}"], dashes, f"(10,4) through {where}")
    letters: dict[str, str] = {}
    for case, x in zip(cases, takes, strict=True):
        letter = letters.setdefault(_named(case), chr(ord("a") + len(letters)))
        near = case["where"] == "L2"
        _point(left, x, case["median"]["ours"], letter, filled=near)
    left.plot([], [], "ko", markersize=6, label="blocks in L2")
    left.plot([], [], "ko", markersize=6, markerfacecolor="white", label="blocks in memory")
    left.set_xlabel("vector operations a byte of data, in vectors' bytes")
    left.set_ylabel("GB of data a second, one thread")
    left.legend(fontsize=7, loc="lower left")
    members = [case for case in cases if case["where"] == "L2"]
    _side_by_side(right, members, [f"{letters[_named(case)]}  {_named(case)}" for case in members], "median")
    right.set_xlabel("GB of data a second, blocks in L2")
    return figure


def _gpu(result: Mapping[str, Any]) -> Any:
    """Left, predicted rates against logic a byte; right, all ceilings of each kernel."""
    figure, axes = subplots(1, 2, size=(12, 4.2))
    left, right = axes[0]
    cases, ceilings = result["cases"], result["ceilings"]
    takes = [case["takes"]["logic"] for case in cases]
    ends = (min(takes) / 2, max(takes) * 2)
    lanes = ceilings["processors"] * ceilings["clock"] / 1e12
    _slope(left, ends, lanes * ceilings["logic"], "-", "logic and integers (published)")
    _level(left, ends, cases[0]["bounds"]["memory"], ":", "(10,4) through memory")
    for number, (case, x) in enumerate(zip(cases, takes, strict=True)):
        _point(left, x, case["bounds"][case["bound"]], chr(ord("a") + number), filled=False)
    left.plot([], [], "ko", markersize=6, markerfacecolor="white", label="predicted, not measured")
    left.set_xlabel("logical and integer instructions of a lane a byte of data")
    left.set_ylabel("TB of data a second")
    left.legend(fontsize=7, loc="lower left")
    names = [f"{chr(ord('a') + number)}  {_named(case)}" for number, case in enumerate(cases)]
    _side_by_side(right, cases, names, None)
    right.set_xlabel("TB of data a second, H200: predicted, not measured")
    return figure


def _slope(axis: Any, ends: tuple[float, float], rate: float, dashes: str, label: str) -> None:
    axis.plot(ends, [rate / end for end in ends], dashes, color="black", linewidth=1, label=label)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.grid(visible=True, which="both", alpha=0.25)


def _level(axis: Any, ends: tuple[float, float], rate: float, dashes: str, label: str) -> None:
    axis.plot(ends, [rate, rate], dashes, color="black", linewidth=1, label=label)


def _point(axis: Any, x: float, y: float, letter: str, *, filled: bool) -> None:
    axis.plot([x], [y], "ko", markersize=11, markerfacecolor="black" if filled else "white")
    axis.annotate(letter, (x, y), color="white" if filled else "black", ha="center", va="center", fontsize=7)


def _side_by_side(axis: Any, cases: Sequence[Mapping[str, Any]], names: Sequence[str], measured: str | None) -> None:
    """Draw a row a kernel: a mark a ceiling, and a bar up to what was measured."""
    known: set[str] = set()
    for row, case in enumerate(cases):
        for bound, rate in case["bounds"].items():
            label = None if bound in known else bound
            known.add(bound)
            axis.plot([rate], [row], _MARKS[bound], color="black", markerfacecolor="white", markersize=7, label=label)
        if measured is not None:
            (rate,) = case[measured].values()
            label = None if row else "measured"
            axis.barh([row], [rate], 0.5, color="0.85", edgecolor="black", hatch="///", label=label)
    axis.set_yticks(range(len(cases)), names, fontsize=7)
    axis.invert_yaxis()
    axis.set_xscale("log")
    axis.grid(visible=True, axis="x", which="both", alpha=0.25)
    axis.legend(fontsize=7, loc="lower right")
