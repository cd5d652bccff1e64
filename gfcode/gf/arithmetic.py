"""Vectorised arithmetic of GF(2^w) on arrays that are already known to hold elements.

`Field` checks its arguments and hands them to one of the two classes here: by tables of powers and logarithms for
w ≤ 16, by carryless multiplication for w = 32. All arguments are arrays of the field's own type; they broadcast.
"""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gfcode.gf.polynomials import divide, power_mod, prime_factors
from gfcode.gf.tables import FieldArray, apply_linear, exp_log_tables, linear_tables, product_table
from gfcode.once import cached_property

__all__ = ["Arithmetic", "TableArithmetic", "WideArithmetic"]

IntArray = npt.NDArray[np.integer[Any]]


class Arithmetic(Protocol):
    """What `Field` needs; zero divisors and zero logarithms are the caller's to refuse."""

    def mul(self, a: FieldArray, b: FieldArray) -> FieldArray:
        """Product."""
        ...

    def inv(self, a: FieldArray) -> FieldArray:
        """Inverse of non-zero elements."""
        ...

    def power(self, a: FieldArray, exponents: IntArray) -> FieldArray:
        """Powers of non-zero elements to exponents in 0 .. 2^w − 2."""
        ...

    def exp(self, exponents: IntArray) -> FieldArray:
        """Powers of the generator to exponents in 0 .. 2^w − 2."""
        ...

    def log(self, a: FieldArray) -> npt.NDArray[np.int64]:
        """Logarithms of non-zero elements."""
        ...


class TableArithmetic:
    """By tables of all powers and logarithms: w ≤ 16."""

    def __init__(self, w: int, polynomial: int, generator: int) -> None:
        self.w = w
        self.size = (1 << w) - 1
        self.polynomial = polynomial
        self.generator = generator

    @cached_property
    def _tables(self) -> tuple[FieldArray, npt.NDArray[np.intp]]:
        exp, log = exp_log_tables(self.w, self.polynomial, self.generator)
        exp.flags.writeable = log.flags.writeable = False
        return exp, log

    @property
    def exp_table(self) -> FieldArray:
        """As `exp_log_tables` says; read-only."""
        return self._tables[0]

    @property
    def log_table(self) -> npt.NDArray[np.intp]:
        """As `exp_log_tables` says; read-only."""
        return self._tables[1]

    @cached_property
    def product_table(self) -> FieldArray:
        """All products, for w ≤ 8; read-only."""
        table = product_table(*self._tables)
        table.flags.writeable = False
        return table

    def mul(self, a: FieldArray, b: FieldArray) -> FieldArray:
        """Product: the power whose exponent is the sum of the logarithms."""
        exp, log = self._tables
        product: FieldArray = exp[log[a] + log[b]]
        return product

    def inv(self, a: FieldArray) -> FieldArray:
        """Inverse of non-zero elements."""
        exp, log = self._tables
        return exp[self.size - log[a]]

    def power(self, a: FieldArray, exponents: IntArray) -> FieldArray:
        """Powers of non-zero elements to exponents in 0 .. 2^w − 2."""
        exp, log = self._tables
        power: FieldArray = exp[log[a] * exponents % self.size]
        return power

    def exp(self, exponents: IntArray) -> FieldArray:
        """Powers of the generator to exponents in 0 .. 2^w − 2."""
        return self.exp_table[exponents]

    def log(self, a: FieldArray) -> npt.NDArray[np.int64]:
        """Logarithms of non-zero elements."""
        return self.log_table[a].astype(np.int64)


# Bits 0, 4, 8, ... of a word, and the same from bits 1, 2 and 3.
_EVERY_FOURTH = [np.uint64(0x1111111111111111 << i) for i in range(4)]
# Elements in flight in one pass of a wide product: few enough for its temporaries to stay in the L2 cache.
_WIDE_BLOCK = 1 << 13


def carryless_product(a: npt.NDArray[np.uint64], b: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Product over GF(2) of polynomials of degree below 32, by integer multiplication with holes.

    Each operand is split into four parts that hold every fourth bit. A part has at most eight ones, so that no column
    of an integer product exceeds eight and the three bits above each wanted bit take the carries (the method of
    BearSSL's constant-time GHASH, T. Pornin).
    """
    left = [a & mask for mask in _EVERY_FOURTH]
    right = [b & mask for mask in _EVERY_FOURTH]
    product = np.zeros_like(a)
    for residue in range(4):
        column = left[0] * right[residue]
        for i in range(1, 4):
            column ^= left[i] * right[(residue - i) % 4]
        column &= _EVERY_FOURTH[residue]
        product |= column
    return product


class WideArithmetic:
    """By carryless products and reduction through byte tables: w = 32."""

    def __init__(self, w: int, polynomial: int, generator: int) -> None:
        self.w = w
        self.size = (1 << w) - 1
        self.polynomial = polynomial
        self.generator = generator

    @cached_property
    def _reduction(self) -> FieldArray:
        # x^32 .. x^62 reduced: what the upper half of a product adds to the lower.
        images = [divide(1 << (self.w + b), self.polynomial)[1] for b in range(self.w)]
        return linear_tables(np.array(images, np.uint32))

    @cached_property
    def _frobenius(self) -> dict[int, FieldArray]:
        # Tables of a -> a^(2^times), for the times that `inv` and `power` ask for.
        squares = linear_tables(np.array([power_mod(2, 2 * b, self.polynomial) for b in range(self.w)], np.uint32))
        maps: dict[int, FieldArray] = {}
        images = np.array([1 << b for b in range(self.w)], np.uint32)
        for times in range(1, self.w // 2 + 1):
            images = apply_linear(squares, images)
            maps[times] = linear_tables(images)
        return maps

    def mul(self, a: FieldArray, b: FieldArray) -> FieldArray:
        """Product, in blocks that fit the cache."""
        left, right = np.broadcast_arrays(a, b)
        flat_left, flat_right = left.reshape(-1), right.reshape(-1)
        product = np.empty(flat_left.shape, np.uint32)
        for start in range(0, product.size, _WIDE_BLOCK):
            block = slice(start, start + _WIDE_BLOCK)
            wide = carryless_product(flat_left[block].astype(np.uint64), flat_right[block].astype(np.uint64))
            product[block] = wide.astype(np.uint32) ^ apply_linear(self._reduction, (wide >> np.uint64(32)))
        return product.reshape(left.shape)

    def inv(self, a: FieldArray) -> FieldArray:
        """Inverse of non-zero elements: a^(2^32 − 2), by repeated Frobenius maps (Itoh & Tsujii 1988)."""
        result, ones = a, 1  # result = a^(2^ones - 1)
        for bit in bin(self.w - 1)[3:]:
            result, ones = self.mul(apply_linear(self._frobenius[ones], result), result), 2 * ones
            if bit == "1":
                result, ones = self.mul(apply_linear(self._frobenius[1], result), a), ones + 1
        return apply_linear(self._frobenius[1], result)

    def power(self, a: FieldArray, exponents: IntArray) -> FieldArray:
        """Powers of non-zero elements to exponents in 0 .. 2^32 − 2, by squaring and multiplying."""
        base, exponents = np.broadcast_arrays(a, exponents.astype(np.uint64))
        result = np.ones(base.shape, np.uint32)
        for b in range(int(exponents.max(initial=0)).bit_length() - 1, -1, -1):
            result = apply_linear(self._frobenius[1], result)
            chosen = (exponents >> np.uint64(b) & np.uint64(1)).astype(bool)
            result = np.where(chosen, self.mul(result, base), result).astype(np.uint32)
        return result

    def exp(self, exponents: IntArray) -> FieldArray:
        """Powers of the generator to exponents in 0 .. 2^32 − 2."""
        return self.power(np.array(self.generator, np.uint32), exponents)

    @cached_property
    def _roots(self) -> list[tuple[int, FieldArray, npt.NDArray[np.int64]]]:
        # For each prime p of the group order (which is square-free: 3 · 5 · 17 · 257 · 65537) the p-th roots of unity
        # in ascending order, with the logarithm of each as the Chinese remainder theorem wants it summed.
        roots = []
        for p in prime_factors(self.size):
            cofactor = self.size // p
            values = self.exp(np.arange(p, dtype=np.int64) * cofactor)
            order = np.argsort(values)
            weight = cofactor * pow(cofactor, -1, p) % self.size
            roots.append((p, values[order], order.astype(np.int64) * weight % self.size))
        return roots

    def log(self, a: FieldArray) -> npt.NDArray[np.int64]:
        """Logarithms of non-zero elements (Pohlig & Hellman 1978, one table look-up a prime)."""
        total = np.zeros(a.shape, np.int64)
        for p, values, summands in self._roots:
            residue = self.power(a, np.array(self.size // p))
            total += summands[np.searchsorted(values, residue)]
        return total % self.size
