"""From matrices to programs: plain rows, and Horner's rule."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gfcode.errors import ParameterError
from gfcode.matrix.dense import Matrix
from gfcode.xor.program import ZERO, XorProgram

__all__ = ["horner", "lower", "lower_masks"]


def lower(bits: npt.NDArray[Any] | Sequence[Sequence[int]]) -> XorProgram:
    """Write a bit matrix as a program of plain rows: one instruction for each row of two ones or more.

    Parameters
    ----------
    bits : array_like of 0 and 1, shape (outputs, inputs)

    Returns
    -------
    XorProgram
        Rows of a single one are copies of inputs, rows without ones are zero, equal rows are computed once.

    Raises
    ------
    ParameterError
        If it is not two-dimensional or holds anything but zeros and ones.
    """
    array = np.asarray(bits)
    if array.ndim != 2 or not np.isin(array, (0, 1)).all():
        raise ParameterError("a bit matrix is two-dimensional and holds zeros and ones only")
    packed = np.packbits(array.astype(np.uint8), axis=1, bitorder="little")
    return lower_masks([int.from_bytes(row.tobytes(), "little") for row in packed], array.shape[1])


def lower_masks(rows: Sequence[int], inputs: int) -> XorProgram:
    """Do the same for rows that are bit masks: bit j of a row stands for input j."""
    instructions: list[tuple[int, ...]] = []
    known = {0: ZERO} | {1 << index: index for index in range(inputs)}
    for row in rows:
        if row not in known:
            known[row] = inputs + len(instructions)
            instructions.append(tuple(index for index in range(inputs) if row >> index & 1))
    return XorProgram(inputs, tuple(instructions), tuple(known[row] for row in rows))


def horner(matrix: Matrix) -> XorProgram:
    """Write a matrix over GF(2^w) as multiplications by x and additions, by Horner's rule.

    With its elements as powers of x, a row is the sum of x^e · d over its columns. They are taken from the largest
    exponent down: multiply the sum so far by x until the exponents meet, then add the column. Multiplying w packets by
    x is a renaming and one XOR for each inner term of the polynomial (three for 0x11d), so a row of k close exponents
    costs w · (k − 1) XORs and three for each step. Exponents wrap around; a row is cut where the way is shortest, and
    what lies below x^0 is summed the other way, by division by x.

    This suits rows of `powers`, whose exponents are an arithmetic progression, and is dear for scattered ones.

    Raises
    ------
    ParameterError
        If an element is no power of x: zeros are skipped, but the powers of x must reach all others.
    """
    field = matrix.field
    w = field.w
    logs: dict[int, int] = {}
    element = 1
    while element not in logs:
        logs[element] = len(logs)
        element = field.mul(element, field.alpha)
    columns = matrix.shape[1]
    builder = _Builder(columns * w, [bit for bit in range(1, w) if field.polynomial >> bit & 1])
    outputs: list[int] = []
    for row in matrix.values.tolist():
        terms = []
        for column, element in enumerate(row):
            if element and element not in logs:
                raise ParameterError(f"element {element} of {field} is no power of x")
            if element:
                terms.append((logs[element], [column * w + bit for bit in range(w)]))
        outputs += builder.row(terms, len(logs), w)
    return XorProgram(columns * w, tuple(builder.instructions), tuple(outputs))


class _Builder:
    """Emits instructions; a group of w values is a list with bit 0 first."""

    def __init__(self, inputs: int, taps: list[int]) -> None:
        self.inputs = inputs
        self.taps = taps
        self.instructions: list[tuple[int, ...]] = []

    def xor(self, a: int, b: int) -> int:
        if ZERO in {a, b}:
            return max(a, b)
        if a == b:
            return ZERO
        self.instructions.append((a, b))
        return self.inputs + len(self.instructions) - 1

    def add(self, a: list[int], b: list[int]) -> list[int]:
        return [self.xor(x, y) for x, y in zip(a, b, strict=True)]

    def times_x(self, value: list[int]) -> list[int]:
        top = value[-1]
        return [self.xor(bit, top) if index in self.taps else bit for index, bit in enumerate([top, *value[:-1]])]

    def over_x(self, value: list[int]) -> list[int]:
        low = value[0]
        return [self.xor(bit, low) if index + 1 in self.taps else bit for index, bit in enumerate([*value[1:], low])]

    def row(self, terms: list[tuple[int, list[int]]], order: int, w: int) -> list[int]:
        """Sum x^e · d over the terms (e, d), exponents being modulo `order`."""
        signed = _unwrap(terms, order)
        above = self.chain([term for term in signed if term[0] > 0], w, up=True)
        below = self.chain([(-exponent, group) for exponent, group in signed if exponent < 0], w, up=False)
        total = self.add(above, below)
        for exponent, group in signed:
            if exponent == 0:
                total = self.add(total, group)
        return total

    def chain(self, terms: list[tuple[int, list[int]]], w: int, *, up: bool) -> list[int]:
        total = [ZERO] * w
        position = 0
        for exponent, group in sorted(terms, reverse=True):
            total = self.shift(total, position - exponent, up=up)
            position = exponent
            total = self.add(total, group)
        return self.shift(total, position, up=up)

    def shift(self, value: list[int], steps: int, *, up: bool) -> list[int]:
        for _ in range(steps):
            value = self.times_x(value) if up else self.over_x(value)
        return value


def _unwrap(terms: list[tuple[int, list[int]]], order: int) -> list[tuple[int, list[int]]]:
    """Choose representatives of exponents modulo `order`, around zero, that span the least."""
    exponents = sorted({exponent for exponent, _ in terms} | {0})
    gaps = [
        (later - earlier, -earlier)
        for earlier, later in zip(exponents, [*exponents[1:], exponents[0] + order], strict=True)
    ]
    cut = -max(gaps)[1]  # exponents up to this one are positive, the others negative
    return [(exponent if exponent <= cut else exponent - order, group) for exponent, group in terms]
