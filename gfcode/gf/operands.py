"""What the methods of a field take and give back: integers for integers, arrays for arrays."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from gfcode.errors import FieldError
from gfcode.gf.element import Element
from gfcode.gf.tables import FieldArray

__all__ = ["Integers", "Scalar", "Values", "reduce_exponents", "result"]

Scalar: TypeAlias = int | np.integer[Any] | Element
Values: TypeAlias = npt.NDArray[Any] | Sequence[Any]
Integers: TypeAlias = int | np.integer[Any]


def result(array: FieldArray, *operands: object) -> int | FieldArray:
    """Give integers for scalar operands, an array where any operand is one."""
    if any(isinstance(operand, np.ndarray | Sequence) for operand in operands):
        return np.asarray(array)
    return int(array)


def reduce_exponents(exponent: Integers | Values, size: int) -> tuple[npt.NDArray[np.int64], Any, Any]:
    """Reduce exponents modulo the group order; tell which were negative, and which were not zero."""
    if isinstance(exponent, int | np.integer) and not isinstance(exponent, bool):
        number = int(exponent)
        return np.array(number % size, np.int64), np.bool_(number < 0), np.bool_(number != 0)
    array = np.asarray(exponent)
    if array.size == 0 and not isinstance(exponent, np.ndarray):
        array = array.astype(np.int64)  # NumPy makes an empty list an array of floats
    if array.dtype.kind not in "iu":
        raise FieldError(f"exponents are integers, not {array.dtype}")
    array = array.astype(np.uint64 if array.dtype.kind == "u" else np.int64)
    return np.asarray(array % size).astype(np.int64), array < 0, array != 0
