"""Pictures of codes: bit matrices before and after improvement, and the programs that run them."""

from typing import Any

from gfcode.errors import ParameterError
from gfcode.gf import GF
from gfcode.matrix.bitmatrix import expand
from gfcode.matrix.dense import Matrix
from gfcode.matrix.generator import parity_matrix
from gfcode.measure.plots import LINES, save, subplots
from gfcode.xor import catalogue
from gfcode.xor.lower import lower
from gfcode.xor.optimize import optimize

__all__ = ["plot_codes"]

#: Steps of compression that a picture is worth; catalogue programs took many more.
_ITERATIONS = 500
#: Ones of a matrix up to which its program is compressed.
_ONES = 4000


def plot_codes(k: int, m: int, w: int, path: str) -> None:
    """Draw the bit matrices of the families and of the catalogue, and the live registers and depth of their programs.

    Parameters
    ----------
    k, m, w : int
    path : str
        Named .svg, .png or .pdf.

    Raises
    ------
    ParameterError
        If no family has such a code, or the file's name is of no known format.
    GFCodeError
        If matplotlib is not installed.
    """
    field = GF(w)
    matrices: dict[str, Matrix] = {}
    for family in ("cauchy", "cauchy-good", "powers"):
        try:
            matrices[family] = parity_matrix(family, field, k, m)
        except ParameterError:
            continue
    entry = catalogue.find(k, m, w)
    if entry is not None:
        matrices["searched"] = entry.matrix
    if not matrices:
        raise ParameterError(f"no family has a parity matrix for k = {k}, m = {m}, w = {w}")
    figure, axes = subplots(2, max(2, len(matrices)), size=(3.4 * max(2, len(matrices)), 6))
    for axis in axes.flat:
        axis.set_axis_off()
    for axis, (name, matrix) in zip(axes[0], matrices.items(), strict=False):
        _picture(axis, name, matrix)
    live, deep = axes[1][:2]
    for (name, matrix), (_, dashes) in zip(matrices.items(), LINES, strict=False):
        plain = lower(expand(matrix))
        program = plain
        if entry is not None and name == "searched":
            program = entry.program
        elif plain.xors <= _ONES:
            program = optimize(plain, iterations=_ITERATIONS)
        label = f"{name}: {plain.xors} to {program.xors} XORs" if program is not plain else f"{name}: {plain.xors} XORs"
        live.plot(program.live_profile, dashes, color="black", linewidth=1, label=label)
        deep.plot(sorted(program.depths[program.inputs :]), dashes, color="black", linewidth=1, label=name)
    _labels(live, "values in registers", "instruction")
    _labels(deep, "depth", "instruction, by depth")
    live.legend(fontsize=6.5)
    figure.suptitle(f"k = {k}, m = {m}, w = {w}")
    save(figure, path)


def _picture(axis: Any, name: str, matrix: Matrix) -> None:
    """Draw ones as black squares, with lines between the w × w squares of elements."""
    bits, w = expand(matrix), matrix.field.w
    axis.set_axis_on()
    axis.imshow(bits, cmap="Greys", interpolation="nearest", aspect="equal")
    for position in range(w, bits.shape[1], w):
        axis.axvline(position - 0.5, color="0.6", linewidth=0.5)
    for position in range(w, bits.shape[0], w):
        axis.axhline(position - 0.5, color="0.6", linewidth=0.5)
    axis.set_xticks([])
    axis.set_yticks([])
    axis.set_title(f"{name}: {int(bits.sum())} ones", fontsize=9)


def _labels(axis: Any, title: str, below: str) -> None:
    axis.set_axis_on()
    axis.set_title(title, fontsize=9)
    axis.set_xlabel(below, fontsize=8)
    axis.grid(visible=True, alpha=0.4)
