"""The family `searched`: matrices of few XORs that a search has found for common codes, kept in `searched.json`.

They are part of what the family's name promises, and stay as they are; better ones get another name.
`gfcode.xor.catalogue` has the programs of few XORs that encode with them. Each is over the field of its own polynomial.
"""

import json
from functools import lru_cache
from importlib import resources

import numpy as np

from gfcode.errors import ParameterError
from gfcode.gf import Field
from gfcode.gf.tables import FieldArray

__all__ = ["codes", "polynomial", "searched"]

Code = tuple[int, int, int]


@lru_cache(maxsize=1)
def _kept() -> dict[Code, tuple[int, list[list[int]]]]:
    """Polynomial and parity matrix of each code."""
    text = resources.files("gfcode.matrix").joinpath("searched.json").read_text(encoding="utf-8")
    return {
        (entry["k"], entry["m"], entry["w"]): (int(entry["polynomial"], 16), entry["parity"])
        for entry in json.loads(text)
    }


def codes() -> tuple[Code, ...]:
    """Return k, m and w of the codes that have such a matrix."""
    return tuple(_kept())


def polynomial(k: int, m: int, w: int) -> int:
    """Return the polynomial of the field that the matrix of a code is over.

    Raises
    ------
    ParameterError
        If the code has no such matrix.
    """
    kept = _kept().get((k, m, w))
    if kept is None:
        there = " ".join(f"({a},{b})" for a, b, c in sorted(codes()) if c == w)
        raise ParameterError(
            f"no matrix 'searched' is kept for k = {k}, m = {m}, w = {w}; there is one for "
            + (f"{there} over GF(2^{w})" if there else "w = 4 and 8 only")
            + "; 'gfcode codes --search' finds others, to be used as explicit matrices"
        )
    return kept[0]


def searched(field: Field, k: int, m: int) -> FieldArray:
    """Return the matrix that is kept for a code; see the module.

    Raises
    ------
    ParameterError
        If there is none, or it is over another field.
    """
    wanted = polynomial(k, m, field.w)
    if field.polynomial != wanted:
        raise ParameterError(
            f"matrix 'searched' for k = {k}, m = {m}, w = {field.w} is over the field of polynomial {wanted:#x}, "
            f"not {field.polynomial:#x}"
        )
    return np.array(_kept()[k, m, field.w][1], field.dtype)
