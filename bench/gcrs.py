"""Jerasure's cauchy_good for any w, the CPU's side of the comparison that G-CRS makes."""

import ctypes
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from gfcode.engine.buffers import addresses_of

__all__ = ["load", "schedule"]

Bytes = npt.NDArray[np.uint8]


def load() -> ctypes.CDLL | None:
    """Return Jerasure's library; None where it is not installed."""
    try:
        library = ctypes.CDLL("libJerasure.so.2")
    except OSError:
        return None
    for name in (
        "cauchy_good_general_coding_matrix", "jerasure_matrix_to_bitmatrix", "jerasure_smart_bitmatrix_to_schedule",
    ):  # fmt: skip
        getattr(library, name).restype = ctypes.c_void_p
    return library


def schedule(
    library: ctypes.CDLL, w: int, packet: int, data: Sequence[Bytes], parity: Sequence[Bytes]
) -> Callable[[], object]:
    """Return a call that encodes blocks by Jerasure's smart schedule of cauchy_good, which is made before.

    Parameters
    ----------
    library : CDLL
    w, packet : int
        Bits of a symbol, and bytes of a packet; blocks are multiples of w · packet bytes.
    data, parity : sequences of arrays of uint8
        Kept referenced by the call.
    """
    k, m = len(data), len(parity)
    matrix = ctypes.c_void_p(library.cauchy_good_general_coding_matrix(k, m, w))
    bits = ctypes.c_void_p(library.jerasure_matrix_to_bitmatrix(k, m, w, matrix))
    steps = ctypes.c_void_p(library.jerasure_smart_bitmatrix_to_schedule(k, m, w, bits))
    inputs, outputs = ((ctypes.c_void_p * len(blocks))(*addresses_of(blocks)) for blocks in (data, parity))
    length = len(data[0])

    def call(_keep: object = (data, parity)) -> None:
        library.jerasure_schedule_encode(k, m, w, steps, inputs, outputs, length, packet)

    return call
