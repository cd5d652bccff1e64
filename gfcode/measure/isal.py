"""ISA-L by ctypes, to measure beside: the one inside PyPI's pyeclib wheel, else the system's libisal.so.2."""

import ctypes
import glob
import importlib.util
import os
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any

import numpy as np
import numpy.typing as npt

from gfcode.engine.buffers import addresses_of

__all__ = ["Isal", "load"]

Bytes = npt.NDArray[np.uint8]


class Isal:
    """ISA-L's `ec_encode_data` over GF(2^8) with 0x11d, in the `words` layout.

    Parameters
    ----------
    path : str
        The shared library.
    version : str
        Where it comes from, for reports.

    Raises
    ------
    OSError, AttributeError
        If it cannot be loaded, or is something else.
    """

    def __init__(self, path: str, version: str) -> None:
        library = ctypes.CDLL(path)
        self._tables, self._encode = library.ec_init_tables, library.ec_encode_data
        pointer, number = ctypes.c_void_p, ctypes.c_int
        self._tables.argtypes = (number, number, pointer, pointer)
        self._encode.argtypes = (number, number, number, pointer, pointer, pointer)
        self.version = version

    def product(
        self, matrix: npt.NDArray[Any], inputs: Sequence[Bytes], outputs: Sequence[Bytes]
    ) -> Callable[[], object]:
        """Return a call that multiplies blocks by a matrix; its tables are made before.

        Parameters
        ----------
        matrix : array of uint8, shape (r, c)
        inputs, outputs : sequences of c and r arrays of uint8, all of one length
            Kept referenced by the call.
        """
        rows, columns = matrix.shape
        flat = np.ascontiguousarray(matrix, np.uint8)
        tables = np.zeros(32 * rows * columns, np.uint8)
        self._tables(columns, rows, flat.ctypes.data, tables.ctypes.data)
        sources, targets = (np.array(addresses_of(blocks), np.uint64) for blocks in (inputs, outputs))
        length = len(inputs[0])
        arguments = tables.ctypes.data, sources.ctypes.data, targets.ctypes.data

        def call(_keep: object = (tables, sources, targets, inputs, outputs)) -> None:
            self._encode(length, columns, rows, *arguments)

        return call


def load() -> Isal | None:
    """Return ISA-L; None where it is not installed."""
    places: list[tuple[str, str]] = []
    found = importlib.util.find_spec("pyeclib")
    if found is not None and found.origin is not None:
        folder = os.path.join(os.path.dirname(os.path.dirname(found.origin)), "pyeclib.libs")
        version = f"ISA-L in pyeclib {metadata.version('pyeclib')}"
        places += [(path, version) for path in glob.glob(os.path.join(folder, "libisal*"))]
    for path, version in [*places, ("libisal.so.2", "ISA-L, the system's libisal.so.2")]:
        try:
            return Isal(path, version)
        except (OSError, AttributeError):
            continue
    return None
