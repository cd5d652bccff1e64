"""A single element that knows its field."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gfcode.errors import MixedFieldsError

if TYPE_CHECKING:
    from gfcode.gf.field import Field

__all__ = ["Element"]


@dataclass(frozen=True, slots=True, repr=False)
class Element:
    """An element of a field, with operators ``+ - * / **``.

    The other operand is an element of the same field, or an integer that stands for one. ``**`` takes an integer
    exponent of either sign. Get elements from a field: ``field(0x1d)``.

    Raises
    ------
    MixedFieldsError
        From operators, if the other operand belongs to another field.
    OutOfFieldError
        From operators, if the other operand is an integer that is no element.
    DivisionByZeroError
        From ``/`` and ``**``.
    """

    field: "Field"
    value: int

    def __repr__(self) -> str:
        return f"{self.field!r}({self.value:#x})"

    def __int__(self) -> int:
        return self.value

    def __index__(self) -> int:
        return self.value

    def __bool__(self) -> bool:
        return self.value != 0

    def _other(self, other: "Element | int") -> int:
        if isinstance(other, Element) and other.field != self.field:
            raise MixedFieldsError(f"operands are of two fields: {self.field} and {other.field}")
        return self.field(other).value

    def __add__(self, other: "Element | int") -> "Element":
        return Element(self.field, self.value ^ self._other(other))

    __radd__ = __sub__ = __rsub__ = __add__

    def __neg__(self) -> "Element":
        return self

    def __mul__(self, other: "Element | int") -> "Element":
        return Element(self.field, self.field.mul(self.value, self._other(other)))

    __rmul__ = __mul__

    def __truediv__(self, other: "Element | int") -> "Element":
        return Element(self.field, self.field.div(self.value, self._other(other)))

    def __rtruediv__(self, other: "Element | int") -> "Element":
        return Element(self.field, self.field.div(self._other(other), self.value))

    def __pow__(self, exponent: int) -> "Element":
        return Element(self.field, self.field.pow(self.value, exponent))
