"""The codes of liberasurecode, such that the bytes of every fragment are its own."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from gfcode.codec.presets import BYTES_POLYNOMIAL, find_preset
from gfcode.codec.recipes import interpolation, successive_points
from gfcode.compat.ec_types import PyECLib_EC_Types, version_number
from gfcode.errors import ParameterError
from gfcode.gf import GF, Field
from gfcode.matrix.dense import Matrix
from gfcode.params import Layout

__all__ = ["Code", "make_code"]

#: The most fragments that liberasurecode takes of any code.
MOST_FRAGMENTS: Final = 256
#: Bytes of a packet of `jerasure_rs_cauchy`: 128 C longs.
CAUCHY_PACKET_BYTES: Final = 1024


@dataclass(frozen=True, slots=True)
class Code:
    """A code for one k and m.

    Attributes
    ----------
    parity : Matrix, shape (m, k)
    layout : Layout
    unit : int
        Bytes that every payload is a whole number of.
    version : int
        What headers say of the code.
    is_mds : bool
        Whether any k fragments suffice, by proof.
    sparse : bool
        Whether parity covers few data fragments, so that reconstruction may read fewer than k.
    """

    parity: Matrix
    layout: Layout
    unit: int
    version: int
    is_mds: bool
    sparse: bool = False


def _preset(
    name: str, version: int, k: int, m: int, *, always_mds: bool, options: dict[str, int] | None = None
) -> Code:
    recipe = find_preset(name).recipe(k, m, **options or {})
    layout = recipe.layout
    # The powers of two: P and Q of RAID-6 are MDS, more parities only by luck.
    return Code(recipe.parity, layout, layout.strip_bytes, version, is_mds=always_mds or m <= 2)


def _room(name: str, k: int, m: int, room: int) -> None:
    if k + m > room:
        raise ParameterError(f"{name} takes at most {room} fragments, not k + m = {k + m}")


def _words(field: Field, k: int, parity: "np.ndarray[tuple[int, ...], np.dtype[np.unsignedinteger]]") -> Code:
    layout = Layout("words", field.w)
    return Code(Matrix(field, parity[:, :k]), layout, layout.strip_bytes, version_number(1, 0, 0), is_mds=True)


def _vandermonde_inverse(k: int, m: int) -> Code:
    """`isa_l_rs_vand_inv`: a Vandermonde matrix at the points 2, 4, 8, .. times the inverse of its top square."""
    field = GF(8, BYTES_POLYNOMIAL)
    _room("isa_l_rs_vand_inv", k, m, field.order - 1)
    return _words(field, k, interpolation(field, k, field.exp(np.arange(1, k + m + 1, dtype=np.int64))))


def _liberasurecode_vandermonde(k: int, m: int) -> Code:
    """`liberasurecode_rs_vand`: the same at the points 0, 1, 2, ..; columns scaled to give ones in the first parity."""
    field = GF(16)
    parity = interpolation(field, k, successive_points(field, k + m))
    return _words(field, k, field.div(parity, parity[0]))


def _local_groups(k: int, m: int, *, local_parity: int) -> Code:
    """`isa_l_rs_lrc`: rows of `isa_l_rs_vand_inv`; the row after the global parities is dealt out to groups of data."""
    groups = local_parity
    if not 1 <= groups <= m or 2 * groups > k:
        raise ParameterError(f"isa_l_rs_lrc needs a local_parity of 1 to m = {m} and at most k / 2, not {groups}")
    field = GF(8, BYTES_POLYNOMIAL)
    globals_ = m - groups
    _room("isa_l_rs_lrc without local parities but one", k, globals_ + 1, field.order - 1)
    rows = interpolation(field, k, field.exp(np.arange(1, k + globals_ + 2, dtype=np.int64)))
    parity = np.concatenate([rows[:-1], np.zeros((groups, k), field.dtype)])
    for group, columns in enumerate(np.array_split(np.arange(k), groups)):
        parity[globals_ + group, columns] = rows[-1, columns]
    layout = Layout("words", 8)
    return Code(Matrix(field, parity), layout, 1, version_number(1, 0, 0), is_mds=False, sparse=True)


#: The parities that each data fragment enters, as bits, by Hamming distance and m: k = 1, 2, .. take so many of them.
#: The codes were found by search (Wylie and Greenan's flat XOR codes), so that there is no rule that would make them.
_FLAT_XOR: Final[dict[tuple[int, int], tuple[int, ...]]] = {
    (3, 3): (5, 6, 3),
    (3, 5): (5, 9, 10, 18, 20, 3, 12, 17, 6, 24),
    (3, 6): (17, 33, 36, 24, 10, 6, 3, 12, 48, 5, 18, 40, 9, 34, 20),
    (4, 5): (11, 13, 21, 22, 26, 7, 25, 14, 19, 28),
    (4, 6): (25, 41, 49, 14, 22, 38, 7, 56, 11, 52, 19, 44, 35, 28, 13, 50, 21, 42, 37, 26),
}
#: One shape has a code of its own.
_FLAT_XOR_12_6_4: Final = (7, 14, 28, 56, 49, 35, 13, 26, 52, 41, 19, 38)


def _flat_xor(k: int, m: int, *, distance: int) -> Code:
    """`flat_xor_hd_3` and `flat_xor_hd_4`: each parity is the XOR of some data fragments."""
    columns = _FLAT_XOR.get((distance, m), ())
    if not m <= k <= len(columns):
        takes = ", ".join(
            f"m = {parities} with k = {parities} to {len(found)}"
            for (found_distance, parities), found in _FLAT_XOR.items()
            if found_distance == distance
        )
        raise ParameterError(f"flat_xor_hd_{distance} takes {takes}, not k = {k}, m = {m}")
    if (distance, m, k) == (4, 6, 12):
        columns = _FLAT_XOR_12_6_4
    bits = np.array(columns[:k])[None] >> np.arange(m)[:, None] & 1
    # Over GF(2^8), which every engine takes for any number of bytes: its products by 0 and 1 are XORs.
    field = GF(8, BYTES_POLYNOMIAL)
    parity = Matrix(field, bits.astype(field.dtype))
    return Code(parity, Layout("words", 8), 4, version_number(1, 0, 0), is_mds=False, sparse=True)


_T = PyECLib_EC_Types
_MAKERS: Final[dict[PyECLib_EC_Types, Callable[[int, int], Code]]] = {
    _T.jerasure_rs_vand: partial(
        _preset, "jerasure-reed-sol-van", version_number(2, 0, 0), always_mds=True, options={"w": 16}
    ),
    _T.jerasure_rs_cauchy: partial(
        _preset,
        "jerasure-cauchy-orig",
        version_number(2, 0, 0),
        always_mds=True,
        options={"w": 4, "packet_bytes": CAUCHY_PACKET_BYTES},
    ),
    _T.isa_l_rs_vand: partial(_preset, "isa-l-rs", version_number(2, 13, 0), always_mds=False),
    _T.isa_l_rs_cauchy: partial(_preset, "isa-l-cauchy", version_number(2, 14, 1), always_mds=True),
    _T.isa_l_rs_vand_inv: _vandermonde_inverse,
    _T.liberasurecode_rs_vand: _liberasurecode_vandermonde,
}


def make_code(ec_type: PyECLib_EC_Types, k: int, m: int, *, distance: int, local_parity: int) -> Code:
    """Make the code of a type.

    Parameters
    ----------
    ec_type : PyECLib_EC_Types
    k, m : int
    distance : int
        Hamming distance of `flat_xor_hd`.
    local_parity : int
        Parities, of m, that `isa_l_rs_lrc` gives to groups of data.

    Raises
    ------
    ParameterError
        For a k and m that the type does not have.
    KeyError
        For a type that gfcode does not have.
    """
    _room(ec_type.name, k, m, MOST_FRAGMENTS)
    if ec_type is _T.flat_xor_hd:
        return _flat_xor(k, m, distance=distance)
    if ec_type is _T.isa_l_rs_lrc:
        return _local_groups(k, m, local_parity=local_parity)
    return _MAKERS[ec_type](k, m)
