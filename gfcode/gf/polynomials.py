"""Polynomials over GF(2), held as Python integers: bit i is the coefficient of x^i."""

from gfcode.errors import ParameterError, ReduciblePolynomialError

__all__ = [
    "FIELD_SIZES",
    "default_polynomial",
    "degree",
    "divide",
    "factor",
    "format_polynomial",
    "gcd",
    "is_irreducible",
    "multiply",
    "multiply_mod",
    "power_mod",
    "prime_factors",
    "require_irreducible",
    "smallest_primitive",
]

#: The w for which GF(2^w) is offered.
FIELD_SIZES = (*range(1, 17), 32)

# The choice of Jerasure and GF-Complete (galois.c, gf_w*.c), which other storage codes share for w = 4, 8, 16.
_DEFAULTS = {
    1: 0x3,
    2: 0x7,
    3: 0xB,
    4: 0x13,
    5: 0x25,
    6: 0x43,
    7: 0x89,
    8: 0x11D,
    9: 0x211,
    10: 0x409,
    11: 0x805,
    12: 0x1053,
    13: 0x201B,
    14: 0x4443,
    15: 0x8003,
    16: 0x1100B,
    32: 0x100400007,
}


def default_polynomial(w: int) -> int:
    """Return the polynomial that storage codes use for GF(2^w), with its x^w bit (0x11d for w = 8).

    Raises
    ------
    ParameterError
        If gfcode has no GF(2^w).
    """
    if w not in FIELD_SIZES:
        raise ParameterError(f"w must be one of 1 to 16 or 32, not {w!r}")
    return _DEFAULTS[w]


def degree(polynomial: int) -> int:
    """Degree of a polynomial; -1 for zero."""
    return polynomial.bit_length() - 1


def format_polynomial(polynomial: int) -> str:
    """Write a polynomial the usual way, for example ``x^8 + x^4 + x^3 + x^2 + 1``."""
    terms = {0: "1", 1: "x"}
    powers = [i for i in range(degree(polynomial), -1, -1) if polynomial >> i & 1]
    return " + ".join(terms.get(i, f"x^{i}") for i in powers) or "0"


def multiply(a: int, b: int) -> int:
    """Product of two polynomials."""
    product = 0
    while b:
        low = b & -b
        product ^= a * low
        b ^= low
    return product


def divide(a: int, b: int) -> tuple[int, int]:
    """Quotient and remainder of `a` by a non-zero `b`.

    Raises
    ------
    ZeroDivisionError
        If `b` is zero.
    """
    if not b:
        raise ZeroDivisionError("division by the zero polynomial")
    quotient = 0
    shift = degree(a) - degree(b)
    while shift >= 0:
        quotient |= 1 << shift
        a ^= b << shift
        shift = degree(a) - degree(b)
    return quotient, a


def multiply_mod(a: int, b: int, modulus: int) -> int:
    """Product of two polynomials, reduced by `modulus`."""
    return divide(multiply(a, b), modulus)[1]


def power_mod(base: int, exponent: int, modulus: int) -> int:
    """Power of a polynomial to a non-negative exponent, reduced by `modulus`; the zeroth power is 1."""
    result = divide(1, modulus)[1]
    while exponent:
        if exponent & 1:
            result = multiply_mod(result, base, modulus)
        base = multiply_mod(base, base, modulus)
        exponent >>= 1
    return result


def gcd(a: int, b: int) -> int:
    """Greatest common divisor of two polynomials."""
    while b:
        a, b = b, divide(a, b)[1]
    return a


def prime_factors(number: int) -> list[int]:
    """Prime divisors of a positive integer, ascending, each once."""
    primes = []
    divisor = 2
    while divisor * divisor <= number:
        if number % divisor == 0:
            primes.append(divisor)
            while number % divisor == 0:
                number //= divisor
        divisor += 1
    return primes + [number] * (number > 1)


def is_irreducible(polynomial: int) -> bool:
    """Tell whether a polynomial has no factor but itself and 1 (Rabin's test). Constants are not irreducible."""
    n = degree(polynomial)
    if n < 1:
        return False

    def frobenius_minus_x(times: int) -> int:
        value = 2
        for _ in range(times):
            value = multiply_mod(value, value, polynomial)
        return divide(value ^ 2, polynomial)[1]

    return frobenius_minus_x(n) == 0 and all(gcd(polynomial, frobenius_minus_x(n // p)) == 1 for p in prime_factors(n))


def factor(polynomial: int) -> list[int]:
    """Factor a polynomial over GF(2).

    Square factors are split off by the derivative, the rest by degree, and factors of one degree by the traces of the
    powers of x, some of which tell any two of them apart (Berlekamp's trace idea; von zur Gathen & Gerhard, "Modern
    Computer Algebra", chapter 14).

    Returns
    -------
    list of int
        Irreducible factors in ascending order, repeated by multiplicity; empty for 1.

    Raises
    ------
    ParameterError
        If `polynomial` is not a positive integer.
    """
    if polynomial < 1:
        raise ParameterError(f"only a non-zero polynomial has factors, not {polynomial}")
    if polynomial == 1:
        return []
    odd_powers = sum(1 << i for i in range(1, degree(polynomial) + 1, 2))
    derivative = (polynomial & odd_powers) >> 1
    if not derivative:  # a square: its root has every other coefficient
        root = sum((polynomial >> 2 * i & 1) << i for i in range(degree(polynomial) // 2 + 1))
        return sorted(factor(root) * 2)
    common = gcd(polynomial, derivative)
    if common != 1:
        return sorted(factor(common) + factor(divide(polynomial, common)[0]))
    return sorted(_factor_square_free(polynomial))


def _factor_square_free(polynomial: int) -> list[int]:
    factors = []
    frobenius = 2  # x^(2^d) modulo what is left of the polynomial
    d = 0
    while degree(polynomial) >= 2 * (d + 1):
        d += 1
        frobenius = multiply_mod(frobenius, frobenius, polynomial)
        of_degree_d = gcd(polynomial, frobenius ^ 2)
        if of_degree_d != 1:
            factors += _split_equal_degree(of_degree_d, d)
            polynomial = divide(polynomial, of_degree_d)[0]
            frobenius = divide(frobenius, polynomial)[1]
    return factors + [polynomial] * (polynomial != 1)


def _split_equal_degree(product: int, d: int) -> list[int]:
    parts = [product]
    for i in range(degree(product)):
        if all(degree(part) == d for part in parts):
            break
        power = trace = divide(1 << i, product)[1]
        for _ in range(d - 1):
            power = multiply_mod(power, power, product)
            trace ^= power
        refined = []
        for part in parts:
            ones = gcd(part, trace)
            refined += [piece for piece in (ones, divide(part, ones)[0]) if piece != 1]
        parts = refined
    return parts


def smallest_primitive(polynomial: int) -> int:
    """Return the smallest element whose powers are all non-zero elements of the field of an irreducible polynomial."""
    size = (1 << degree(polynomial)) - 1
    cofactors = [size // p for p in prime_factors(size)]
    candidate = 1
    while any(power_mod(candidate, cofactor, polynomial) == 1 for cofactor in cofactors):
        candidate += 1
    return candidate


def require_irreducible(w: int, polynomial: int) -> None:
    """Refuse a polynomial that does not define GF(2^w).

    Raises
    ------
    ParameterError
        If its degree is not w.
    ReduciblePolynomialError
        If it factors; the message names a factor.
    """
    if degree(polynomial) != w or polynomial < 0:
        raise ParameterError(
            f"a polynomial for GF(2^{w}) has degree {w}, including its x^{w} bit (like {default_polynomial(w):#x}), "
            f"not {polynomial:#x}"
        )
    if not is_irreducible(polynomial):
        divisor = factor(polynomial)[0]
        raise ReduciblePolynomialError(
            f"{polynomial:#x} = {format_polynomial(polynomial)} defines no field: "
            f"it is divisible by {divisor:#x} = {format_polynomial(divisor)}"
        )
