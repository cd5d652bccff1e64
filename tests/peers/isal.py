"""ISA-L through ctypes: the system's libisal.so.2, else the one inside PyPI's pyeclib."""

import ctypes
import glob
import importlib.util
import os
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import metadata

import numpy as np

from tests.peers.base import Bytes, PeerError, PeerMissingError, aligned, debian_version

__all__ = ["IsalCode", "IsalPq", "isal_cauchy", "isal_pq", "isal_rs", "pyeclib_isal_cauchy", "pyeclib_isal_rs"]

MISSING = "ISA-L is not installed: apt-get install libisal2, or pip install pyeclib"


@cache
def library(bundled: bool = False) -> ctypes.CDLL:
    """Load ISA-L.

    Parameters
    ----------
    bundled : bool
        The library inside pyeclib's wheel instead of the system's.
    """
    if not bundled:
        try:
            return ctypes.CDLL("libisal.so.2")
        except OSError as error:
            raise PeerMissingError(f"{MISSING} ({error})") from error
    found = importlib.util.find_spec("pyeclib")
    if found is None or found.origin is None:
        raise PeerMissingError("pyeclib is not installed: pip install pyeclib")
    folder = os.path.join(os.path.dirname(os.path.dirname(found.origin)), "pyeclib.libs")
    names = glob.glob(os.path.join(folder, "libisal*"))
    if not names:
        raise PeerMissingError("pyeclib is installed without its own ISA-L")
    return ctypes.CDLL(names[0])


def system_version() -> str:
    """Version of the system's ISA-L."""
    return f"Debian libisal2 {debian_version('libisal2')}".strip()


def rows_of(blocks: Bytes) -> "ctypes.Array[ctypes.c_void_p]":
    """Pointers to the rows of an array."""
    addresses = [row.__array_interface__["data"][0] for row in blocks]
    return (ctypes.c_void_p * len(addresses))(*addresses)


class IsalCode:
    """A code of ISA-L's erasure_code.h: a matrix by one of its generators, `ec_encode_data`, `gf_invert_matrix`."""

    def __init__(self, generator: str, *, bundled: bool = False) -> None:
        self.lib = library(bundled)
        self.generator = generator
        self.bundled = bundled

    @property
    def provenance(self) -> dict[str, str]:
        """Library, version and call."""
        return {
            "library": "ISA-L",
            "version": f"in the wheel of pyeclib {metadata.version('pyeclib')}" if self.bundled else system_version(),
            "call": f"{self.generator}, ec_init_tables, ec_encode_data (ctypes)",
        }

    def matrix(self, k: int, m: int) -> Bytes:
        """Return the whole n × k generator matrix."""
        if k + m > 256 or k < 1:
            raise PeerError(f"ISA-L's tables are bytes: k + m = {k + m} exceeds 256")
        out = np.zeros((k + m, k), np.uint8)
        getattr(self.lib, self.generator)(ctypes.c_void_p(out.ctypes.data), k + m, k)
        return out

    def multiply(self, matrix: Bytes, inputs: Bytes) -> Bytes:
        """Return matrix · inputs by `ec_encode_data`."""
        matrix = np.ascontiguousarray(matrix)
        rows, k = matrix.shape
        length = inputs.shape[1]
        tables = np.zeros(32 * rows * k, np.uint8)
        self.lib.ec_init_tables(k, rows, ctypes.c_void_p(matrix.ctypes.data), ctypes.c_void_p(tables.ctypes.data))
        source = aligned(k, length)
        source[:] = inputs
        out = aligned(rows, length)
        self.lib.ec_encode_data(length, k, rows, ctypes.c_void_p(tables.ctypes.data), rows_of(source), rows_of(out))
        return out

    def encode(self, data: Bytes, m: int) -> Bytes:
        """Parity by the generator's last m rows."""
        k = data.shape[0]
        return self.multiply(self.matrix(k, m)[k:], data)

    def rebuild(self, k: int, m: int, shards: Mapping[int, Bytes], lost: Sequence[int]) -> dict[int, Bytes]:
        """Invert the survivors' rows and multiply, as ISA-L's own examples do."""
        sources = sorted(set(shards) - set(lost))[:k]
        generator = self.matrix(k, m)
        square = np.ascontiguousarray(generator[sources])
        inverse = np.zeros((k, k), np.uint8)
        failed = self.lib.gf_invert_matrix(ctypes.c_void_p(square.ctypes.data), ctypes.c_void_p(inverse.ctypes.data), k)
        if failed:
            raise PeerError(f"ISA-L finds shards {sources} singular")
        data = self.multiply(inverse, np.stack([shards[i] for i in sources]))
        out = self.multiply(generator[list(lost)], data)
        return dict(zip(lost, out, strict=True))


class IsalPq:
    """The P and Q of ISA-L's raid.h (`pq_gen`, `pq_check`), byte for byte those of Linux md."""

    def __init__(self) -> None:
        self.lib = library()

    @property
    def provenance(self) -> dict[str, str]:
        """Library, version and call."""
        return {"library": "ISA-L", "version": system_version(), "call": "pq_gen (ctypes)"}

    def encode(self, data: Bytes, m: int) -> Bytes:
        """P and Q; lengths are multiples of 32."""
        if m != 2 or data.shape[0] < 2:
            raise PeerError("pq_gen makes two parities of two or more data shards")
        k, length = data.shape
        blocks = aligned(k + 2, length)
        blocks[:k] = data
        if self.lib.pq_gen(k + 2, length, rows_of(blocks)):
            raise PeerError(f"pq_gen refuses k = {k}, length {length}")
        return blocks[k:]

    def consistent(self, shards: Bytes) -> bool:
        """Whether `pq_check` finds P and Q right."""
        blocks = aligned(*shards.shape)
        blocks[:] = shards
        return not self.lib.pq_check(shards.shape[0], shards.shape[1], rows_of(blocks))

    def rebuild(self, k: int, m: int, shards: Mapping[int, Bytes], lost: Sequence[int]) -> dict[int, Bytes]:
        """Refuse: there is none in ISA-L."""
        del k, m, shards, lost
        raise PeerError("ISA-L has no RAID-6 recovery")


def isal_rs() -> IsalCode:
    """ISA-L with `gf_gen_rs_matrix`."""
    return IsalCode("gf_gen_rs_matrix")


def isal_cauchy() -> IsalCode:
    """ISA-L with `gf_gen_cauchy1_matrix`."""
    return IsalCode("gf_gen_cauchy1_matrix")


def pyeclib_isal_rs() -> IsalCode:
    """Return the ISA-L inside pyeclib's wheel with `gf_gen_rs_matrix`."""
    return IsalCode("gf_gen_rs_matrix", bundled=True)


def pyeclib_isal_cauchy() -> IsalCode:
    """Return the ISA-L inside pyeclib's wheel with `gf_gen_cauchy1_matrix`."""
    return IsalCode("gf_gen_cauchy1_matrix", bundled=True)


def isal_pq() -> IsalPq:
    """ISA-L's `pq_gen`."""
    return IsalPq()
