"""The codes and shapes that are compared with PyECLib."""

from typing import Any

__all__ = ["SHAPES", "options"]

RS = ((4, 2), (10, 4), (6, 3), (5, 6), (1, 1), (2, 1), (20, 10))
#: Shapes (k, m) of each code; the first two are small.
SHAPES: dict[str, tuple[tuple[int, int], ...]] = {
    "isa_l_rs_vand": RS,
    "isa_l_rs_cauchy": (*RS, (30, 2)),
    "isa_l_rs_vand_inv": RS,
    "liberasurecode_rs_vand": RS,
    "jerasure_rs_vand": RS,
    "jerasure_rs_cauchy": ((4, 2), (10, 4), (10, 6), (1, 1)),
    "flat_xor_hd_3": ((3, 3), (6, 5), *((k, 5) for k in (5, 7, 8, 9, 10)), *((k, 6) for k in range(6, 16))),
    "flat_xor_hd_4": ((5, 5), (7, 5), *((k, 5) for k in (6, 8, 9, 10)), *((k, 6) for k in range(6, 21))),
    "isa_l_rs_lrc": ((4, 2), (7, 3), (10, 5), (13, 4)),
}


def options(ec_type: str, k: int, m: int, chksum_type: str = "none") -> dict[str, Any]:
    """Keyword arguments of `ECDriver`."""
    local = {"local_parity": 2} if ec_type == "isa_l_rs_lrc" else {}
    return {"ec_type": ec_type, "k": k, "m": m, "chksum_type": chksum_type, **local}
