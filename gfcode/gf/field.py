"""Fields GF(2^w): checked arithmetic on integers and NumPy arrays."""

from collections.abc import Callable, Sequence
from operator import index
from typing import SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from gfcode.errors import DivisionByZeroError, FieldError, MixedFieldsError, OutOfFieldError, ParameterError
from gfcode.gf.arithmetic import Arithmetic, TableArithmetic, WideArithmetic
from gfcode.gf.element import Element
from gfcode.gf.operands import Integers, Scalar, Values, reduce_exponents, result
from gfcode.gf.polynomials import default_polynomial, divide, require_irreducible, smallest_primitive
from gfcode.gf.tables import FieldArray, linear_tables
from gfcode.once import cached_property

__all__ = ["GF", "Field", "FieldArray"]

_fields: dict[tuple[int, int], "Field"] = {}


def GF(w: SupportsIndex, polynomial: SupportsIndex | None = None) -> "Field":  # noqa: N802 - the field's own name for itself
    """Return the field GF(2^w).

    Parameters
    ----------
    w : int
        Bits of an element: 1 to 16, or 32.
    polynomial : int, optional
        Irreducible polynomial of degree w over GF(2), with its x^w bit. Default: the usual one of storage codes
        (`default_polynomial`).

    Returns
    -------
    Field
        The same object for the same arguments.

    Raises
    ------
    ParameterError
        If gfcode has no such w, or the polynomial is of another degree.
    ReduciblePolynomialError
        If the polynomial has a factor; the message names it.
    """
    try:
        usual = default_polynomial(index(w))
        key = (index(w), usual if polynomial is None else index(polynomial))
    except TypeError:
        raise ParameterError(f"w and polynomial are integers, not {w!r} and {polynomial!r}") from None
    # No lock, which a fork could leave locked: of fields that threads make at once, the first one stays.
    return _fields.get(key) or _fields.setdefault(key, Field(*key))


class Field:
    """GF(2^w); get one from `GF`.

    An element is an unsigned integer below 2^w whose bit i is the coefficient of x^i. Integers (and `Element`s of this
    field) give Python integers; arrays and sequences broadcast as in NumPy and give arrays of `dtype`. Arrays must be
    of an integer type: floats and booleans are refused even where their values would fit, for they are no elements but
    more likely a mistake.

    Every method raises `OutOfFieldError` for values that are no elements, and `MixedFieldsError` for an `Element` of
    another field.

    Attributes
    ----------
    w : int
        Bits of an element.
    order : int
        Number of elements, 2^w.
    polynomial : int
        The irreducible polynomial, with its x^w bit.
    dtype : numpy.dtype
        uint8 for w ≤ 8, uint16 for w ≤ 16, uint32 for w = 32.
    alpha : int
        The element x.
    generator : int
        Smallest primitive element, the base of `exp` and `log`; `alpha` itself where that is primitive and w > 1.
    """

    def __init__(self, w: int, polynomial: int) -> None:
        require_irreducible(w, polynomial)
        self.w = w
        self.order = 1 << w
        self.polynomial = polynomial
        self.dtype = np.dtype(np.uint8 if w <= 8 else np.uint16 if w <= 16 else np.uint32)
        self.alpha = divide(2, polynomial)[1]
        self.generator = smallest_primitive(polynomial)
        self._arithmetic: Arithmetic = (TableArithmetic if w <= 16 else WideArithmetic)(w, polynomial, self.generator)

    def __repr__(self) -> str:
        return f"GF({self.w}, {self.polynomial:#x})"

    def __str__(self) -> str:
        return f"GF(2^{self.w})/{self.polynomial:#x}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Field):
            return NotImplemented
        return (self.w, self.polynomial) == (other.w, other.polynomial)

    def __hash__(self) -> int:
        return hash((self.w, self.polynomial))

    def __reduce__(self) -> tuple[Callable[[int, int], "Field"], tuple[int, int]]:
        return GF, (self.w, self.polynomial)

    def __call__(self, value: Scalar) -> Element:
        """Return `value` as an `Element`, which knows its field and has operators."""
        return Element(self, self._scalar(value))

    # Checks of arguments

    def check(self, values: Scalar | Values) -> FieldArray:
        """Return values as an array of `dtype`, without a copy where they are one already.

        Raises
        ------
        OutOfFieldError
            If the values are not integers in 0 .. 2^w − 1.
        """
        if isinstance(values, Element):
            values = self._scalar(values)
        try:
            array = np.asarray(values)
        except ValueError:
            raise OutOfFieldError("nested sequences of elements must all have the same length") from None
        if array.size == 0 and not isinstance(values, np.ndarray):
            return array.astype(self.dtype)  # NumPy makes an empty list an array of floats
        if array.dtype.kind not in "iu":
            raise OutOfFieldError(f"elements of {self} are integers below 2^{self.w}, not {array.dtype}")
        if array.dtype != self.dtype or self.w < 8 * self.dtype.itemsize:
            low, high = int(array.min(initial=0)), int(array.max(initial=0))
            if low < 0 or high >= self.order:
                wrong = low if low < 0 else high
                raise OutOfFieldError(f"{wrong} is no element of {self}: elements are 0 to {self.order - 1}")
        return array.astype(self.dtype, copy=False)

    def _scalar(self, value: Scalar) -> int:
        if isinstance(value, Element):
            if value.field != self:
                raise MixedFieldsError(f"an element of {value.field} was used in {self}")
            return value.value
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise OutOfFieldError(f"elements of {self} are integers below 2^{self.w}, not {type(value).__name__}")
        if not 0 <= value < self.order:
            raise OutOfFieldError(f"{value} is no element of {self}: elements are 0 to {self.order - 1}")
        return int(value)

    def _operand(self, value: Scalar | Values) -> FieldArray:
        if isinstance(value, np.ndarray | Sequence):
            return self.check(value)
        return np.array(self._scalar(value), self.dtype)

    # Arithmetic

    @overload
    def add(self, a: Scalar, b: Scalar) -> int: ...
    @overload
    def add(self, a: Values, b: Scalar | Values) -> FieldArray: ...
    @overload
    def add(self, a: Scalar, b: Values) -> FieldArray: ...
    def add(self, a: Scalar | Values, b: Scalar | Values) -> int | FieldArray:
        """Sum, which is also the difference: XOR."""
        return result(self._operand(a) ^ self._operand(b), a, b)

    @overload
    def mul(self, a: Scalar, b: Scalar) -> int: ...
    @overload
    def mul(self, a: Values, b: Scalar | Values) -> FieldArray: ...
    @overload
    def mul(self, a: Scalar, b: Values) -> FieldArray: ...
    def mul(self, a: Scalar | Values, b: Scalar | Values) -> int | FieldArray:
        """Product."""
        return result(self._arithmetic.mul(self._operand(a), self._operand(b)), a, b)

    @overload
    def div(self, a: Scalar, b: Scalar) -> int: ...
    @overload
    def div(self, a: Values, b: Scalar | Values) -> FieldArray: ...
    @overload
    def div(self, a: Scalar, b: Values) -> FieldArray: ...
    def div(self, a: Scalar | Values, b: Scalar | Values) -> int | FieldArray:
        """Quotient.

        Raises
        ------
        DivisionByZeroError
            If any divisor is zero.
        """
        return result(self._arithmetic.mul(self._operand(a), self._inverse(self._operand(b))), a, b)

    @overload
    def inv(self, a: Scalar) -> int: ...
    @overload
    def inv(self, a: Values) -> FieldArray: ...
    def inv(self, a: Scalar | Values) -> int | FieldArray:
        """Multiplicative inverse.

        Raises
        ------
        DivisionByZeroError
            If any value is zero.
        """
        return result(self._inverse(self._operand(a)), a)

    def _inverse(self, a: FieldArray) -> FieldArray:
        if not a.all():
            raise DivisionByZeroError(f"division by zero in {self}")
        return self._arithmetic.inv(a)

    @overload
    def pow(self, a: Scalar, exponent: Integers) -> int: ...
    @overload
    def pow(self, a: Values, exponent: Integers | Values) -> FieldArray: ...
    @overload
    def pow(self, a: Scalar, exponent: Values) -> FieldArray: ...
    def pow(self, a: Scalar | Values, exponent: Integers | Values) -> int | FieldArray:
        """Power to an integer exponent of either sign; 0 to the 0 is 1.

        Raises
        ------
        DivisionByZeroError
            If zero is raised to a negative exponent.
        """
        base = self._operand(a)
        exponents, negative, nonzero = reduce_exponents(exponent, self.order - 1)
        zero = base == 0
        if (zero & negative).any():
            raise DivisionByZeroError(f"zero to a negative power in {self}")
        power = self._arithmetic.power(np.where(zero, self.dtype.type(1), base), exponents)
        power = np.where(zero & nonzero, self.dtype.type(0), power)
        return result(power, a, exponent)

    @overload
    def exp(self, exponent: Integers) -> int: ...
    @overload
    def exp(self, exponent: Values) -> FieldArray: ...
    def exp(self, exponent: Integers | Values) -> int | FieldArray:
        """Power of `generator` to an integer exponent of either sign."""
        exponents, _, _ = reduce_exponents(exponent, self.order - 1)
        return result(self._arithmetic.exp(exponents), exponent)

    @overload
    def log(self, a: Scalar) -> int: ...
    @overload
    def log(self, a: Values) -> npt.NDArray[np.int64]: ...
    def log(self, a: Scalar | Values) -> int | npt.NDArray[np.int64]:
        """Logarithm to the base `generator`, in 0 .. 2^w − 2 (arrays: int64).

        Raises
        ------
        DivisionByZeroError
            If any value is zero.
        """
        values = self._operand(a)
        if not values.all():
            raise DivisionByZeroError(f"zero has no logarithm in {self}")
        logarithms = self._arithmetic.log(values)
        return np.asarray(logarithms) if isinstance(a, np.ndarray | Sequence) else int(logarithms)

    def dot(self, a: Values, b: Values) -> int | FieldArray:
        """Product of vectors and matrices, as ``a @ b`` of NumPy for operands of one or two dimensions.

        Returns
        -------
        int or ndarray
            An int for two vectors.

        Raises
        ------
        FieldError
            If the operands are not one- or two-dimensional, or their inner lengths differ.
        """
        left, right = self.check(a), self.check(b)
        if left.ndim not in {1, 2} or right.ndim not in {1, 2} or left.shape[-1] != right.shape[0]:
            raise FieldError(f"no product of operands of shapes {left.shape} and {right.shape}")
        rows = np.atleast_2d(left)
        columns = right if right.ndim == 2 else right[:, None]
        product = np.zeros((rows.shape[0], columns.shape[1]), self.dtype)
        for i in range(right.shape[0]):
            product ^= self._arithmetic.mul(rows[:, i, None], columns[i])
        shape = left.shape[:-1] + right.shape[1:]
        return product.reshape(shape) if shape else int(product[0, 0])

    @overload
    def polyval(self, coefficients: Values, x: Scalar) -> int: ...
    @overload
    def polyval(self, coefficients: Values, x: Values) -> FieldArray: ...
    def polyval(self, coefficients: Values, x: Scalar | Values) -> int | FieldArray:
        """Evaluate a polynomial with coefficients in the field, highest degree first as in `numpy.polyval`.

        Raises
        ------
        FieldError
            If the coefficients are not one-dimensional.
        """
        terms = self.check(coefficients)
        if terms.ndim != 1:
            raise FieldError(f"coefficients are one-dimensional, not of shape {terms.shape}")
        points = self._operand(x)
        value = np.zeros_like(points)
        for term in terms:
            value = self._arithmetic.mul(value, points) ^ term
        return result(value, x)

    # Tables

    @property
    def exp_table(self) -> FieldArray:
        """Powers of `generator`, read-only, shape (4 · (2^w − 1) + 1,): twice over, then zeros (w ≤ 16).

        With `log_table` it multiplies all elements, zero included: ``exp_table[log_table[a] + log_table[b]]``.
        """
        return self._by_tables().exp_table

    @property
    def log_table(self) -> npt.NDArray[np.intp]:
        """Logarithms to the base `generator`, read-only, shape (2^w,); entry 0 is 2 · (2^w − 1) (w ≤ 16)."""
        return self._by_tables().log_table

    def mul_table(self) -> FieldArray:
        """All products, read-only, shape (2^w, 2^w): entry [a, b] is a · b (w ≤ 8).

        Raises
        ------
        FieldError
            If w > 8.
        """
        if self.w > 8:
            raise FieldError(f"a table of all products of {self} would be too large; use split_tables")
        return self._by_tables().product_table

    def _by_tables(self) -> TableArithmetic:
        if not isinstance(self._arithmetic, TableArithmetic):
            raise FieldError(f"{self} is too large for tables of all its elements; use split_tables")
        return self._arithmetic

    @cached_property
    def _bits(self) -> FieldArray:
        return np.array([1 << b for b in range(self.w)], self.dtype)

    def bit_images(self, constants: Scalar | Values) -> FieldArray:
        """Products c · x^b of each constant c with x^0 .. x^(w−1), shape (..., w): the columns of its bit matrix."""
        return self._arithmetic.mul(self.check(constants)[..., None], self._bits)

    def split_tables(self, constants: Scalar | Values) -> FieldArray:
        """Tables by which a constant multiplies elements that are given as bytes.

        Parameters
        ----------
        constants : int or array_like, shape (...)

        Returns
        -------
        ndarray of `dtype`, shape (..., ceil(w/8), 256)
            The product of constant c and element v is the XOR over i of ``tables[c, i, (v >> 8·i) & 255]``. Bits of a
            byte that lie beyond bit w − 1 count as zero. New memory, owned by the caller.
        """
        return linear_tables(self.bit_images(constants))

    def word_tables(self, constants: Scalar | Values) -> FieldArray:
        """Tables by which a constant multiplies the bytes of the `words` layout.

        Those of `split_tables` for w = 8, 16 and 32. For w = 4, where a byte holds two elements, one table that
        multiplies both: entry v is c · (v & 15) | c · (v >> 4) << 4.

        Returns
        -------
        ndarray of `dtype`, shape (..., max(1, w/8), 256)

        Raises
        ------
        ParameterError
            If the `words` layout has no such w.
        """
        if self.w in {8, 16, 32}:
            return self.split_tables(constants)
        if self.w != 4:
            raise ParameterError(f"the 'words' layout has no w = {self.w}")
        images = self.bit_images(constants)
        return linear_tables(np.concatenate([images, images << self.dtype.type(4)], axis=-1))
