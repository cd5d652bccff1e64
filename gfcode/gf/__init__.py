"""Arithmetic of GF(2^w), w = 1..16 and 32, over any irreducible polynomial."""

from gfcode.gf.element import Element
from gfcode.gf.field import GF, Field
from gfcode.gf.polynomials import default_polynomial, factor, is_irreducible

__all__ = ["GF", "Element", "Field", "default_polynomial", "factor", "is_irreducible"]
