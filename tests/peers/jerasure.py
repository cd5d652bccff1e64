"""Jerasure 2 through ctypes."""

import ctypes
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from tests.peers.base import Bytes, PeerError, PeerMissingError, aligned, complete, debian_version

__all__ = ["JerasureBits", "JerasureWords", "jerasure", "library"]


@cache
def library() -> ctypes.CDLL:
    """Load libJerasure.so.2."""
    try:
        lib = ctypes.CDLL("libJerasure.so.2")
    except OSError as error:
        raise PeerMissingError(f"Jerasure is not installed: apt-get install libjerasure2 ({error})") from error
    for name in (
        "reed_sol_vandermonde_coding_matrix",
        "reed_sol_r6_coding_matrix",
        "cauchy_original_coding_matrix",
        "cauchy_good_general_coding_matrix",
        "liberation_coding_bitmatrix",
        "blaum_roth_coding_bitmatrix",
        "liber8tion_coding_bitmatrix",
        "jerasure_matrix_to_bitmatrix",
    ):
        getattr(lib, name).restype = ctypes.POINTER(ctypes.c_int)
    return lib


def placed(blocks: "Bytes | Sequence[Bytes]") -> list[Bytes]:
    """Copy blocks to aligned places: gf-complete aborts where source and target are not aligned alike."""
    out = aligned(len(blocks), len(blocks[0]))
    out[:] = blocks
    return list(out)


def provenance(call: str) -> dict[str, str]:
    """Library, version and call."""
    version = f"Debian libjerasure2 {debian_version('libjerasure2')}".strip()
    return {"library": "Jerasure", "version": version, "call": f"{call} (ctypes)"}


def taken(pointer: Any, rows: int, columns: int, what: str) -> "np.ndarray[Any, np.dtype[np.int32]]":
    """Copy a matrix of C ints; NULL is the library's refusal."""
    if not pointer:
        raise PeerError(f"Jerasure returns no matrix for {what}")
    return np.ctypeslib.as_array(pointer, (rows * columns,)).reshape(rows, columns).copy()


def pointers(blocks: list[Bytes]) -> "ctypes.Array[ctypes.c_void_p]":
    """Make a C array of the blocks' addresses."""
    return (ctypes.c_void_p * len(blocks))(*[block.ctypes.data for block in blocks])


class JerasureWords:
    """A technique with an element matrix over words: `jerasure_matrix_encode` and `jerasure_matrix_decode`."""

    def __init__(self, technique: str, w: int) -> None:
        self.lib = library()
        self.technique = technique
        self.w = w
        self.matrix = cache(self._matrix)  # wide fields take milliseconds

    @property
    def provenance(self) -> dict[str, str]:
        """Library, version and call."""
        return provenance(f"{self.technique}, jerasure_matrix_encode")

    def _matrix(self, k: int, m: int) -> "np.ndarray[Any, np.dtype[np.int32]]":
        """Return the m × k parity matrix."""
        if self.technique == "reed_sol_van":
            found = self.lib.reed_sol_vandermonde_coding_matrix(k, m, self.w)
        elif m == 2:
            found = self.lib.reed_sol_r6_coding_matrix(k, self.w)
        else:
            raise PeerError("reed_sol_r6_op has m = 2")
        return taken(found, m, k, f"{self.technique} k={k} m={m} w={self.w}")

    def encode(self, data: Bytes, m: int) -> Bytes:
        """Parity; lengths are multiples of 8."""
        k, length = data.shape
        matrix = self.matrix(k, m)
        inputs, outputs = placed(data), list(aligned(m, length))
        self.lib.jerasure_matrix_encode(
            k, m, self.w, ctypes.c_void_p(matrix.ctypes.data), pointers(inputs), pointers(outputs), length
        )
        return np.stack(outputs)

    def rebuild(self, k: int, m: int, shards: Mapping[int, Bytes], lost: Sequence[int]) -> dict[int, Bytes]:
        """Return the lost shards, by Jerasure's own decoder."""
        blocks = placed(complete(k, m, shards, lost))
        matrix = self.matrix(k, m)
        erasures = (ctypes.c_int * (len(lost) + 1))(*lost, -1)
        failed = self.lib.jerasure_matrix_decode(
            k, m, self.w, ctypes.c_void_p(matrix.ctypes.data), 1, erasures,
            pointers(blocks[:k]), pointers(blocks[k:]), len(blocks[0]),
        )  # fmt: skip
        if failed:
            raise PeerError(f"Jerasure cannot decode the loss of {list(lost)}")
        return {i: blocks[i] for i in lost}


class JerasureBits:
    """A technique with a bit matrix over packets: `jerasure_bitmatrix_encode` and `jerasure_bitmatrix_decode`."""

    def __init__(self, technique: str, w: int, packet_bytes: int) -> None:
        self.lib = library()
        self.technique = technique
        self.w = w
        self.packet_bytes = packet_bytes
        self.matrix = cache(self._matrix)

    @property
    def provenance(self) -> dict[str, str]:
        """Library, version and call."""
        return provenance(f"{self.technique}, jerasure_bitmatrix_encode")

    def elements(self, k: int, m: int) -> "np.ndarray[Any, np.dtype[np.int32]]":
        """Return the m × k element matrix of the Cauchy techniques."""
        maker = {
            "cauchy_orig": self.lib.cauchy_original_coding_matrix,
            "cauchy_good": self.lib.cauchy_good_general_coding_matrix,
        }[self.technique]
        return taken(maker(k, m, self.w), m, k, f"{self.technique} k={k} m={m} w={self.w}")

    def _matrix(self, k: int, m: int) -> "np.ndarray[Any, np.dtype[np.int32]]":
        """Return the (m·w) × (k·w) bit matrix."""
        what = f"{self.technique} k={k} m={m} w={self.w}"
        if self.technique.startswith("cauchy"):
            elements = self.elements(k, m)
            found = self.lib.jerasure_matrix_to_bitmatrix(k, m, self.w, ctypes.c_void_p(elements.ctypes.data))
        else:
            if m != 2:
                raise PeerError(f"{self.technique} has m = 2")
            maker = getattr(self.lib, f"{self.technique}_coding_bitmatrix")
            found = maker(k) if self.technique == "liber8tion" else maker(k, self.w)
        return taken(found, m * self.w, k * self.w, what)

    def encode(self, data: Bytes, m: int) -> Bytes:
        """Parity; lengths are multiples of w · packet_bytes."""
        k, length = data.shape
        matrix = self.matrix(k, m)
        inputs, outputs = placed(data), list(aligned(m, length))
        self.lib.jerasure_bitmatrix_encode(
            k, m, self.w, ctypes.c_void_p(matrix.ctypes.data), pointers(inputs), pointers(outputs), length,
            self.packet_bytes,
        )  # fmt: skip
        return np.stack(outputs)

    def rebuild(self, k: int, m: int, shards: Mapping[int, Bytes], lost: Sequence[int]) -> dict[int, Bytes]:
        """Return the lost shards, by Jerasure's own decoder."""
        blocks = placed(complete(k, m, shards, lost))
        matrix = self.matrix(k, m)
        erasures = (ctypes.c_int * (len(lost) + 1))(*lost, -1)
        # cauchy_orig's first parity is no XOR of the data: the decoder must not take it for one.
        row_of_ones = int(self.technique != "cauchy_orig")
        failed = self.lib.jerasure_bitmatrix_decode(
            k, m, self.w, ctypes.c_void_p(matrix.ctypes.data), row_of_ones, erasures,
            pointers(blocks[:k]), pointers(blocks[k:]), len(blocks[0]), self.packet_bytes,
        )  # fmt: skip
        if failed:
            raise PeerError(f"Jerasure cannot decode the loss of {list(lost)}")
        return {i: blocks[i] for i in lost}


def jerasure(technique: str, w: int, packet_bytes: int = 0) -> "partial[JerasureWords] | partial[JerasureBits]":
    """Make a loader of one technique; a packet size makes it a bit-matrix one."""
    if packet_bytes:
        return partial(JerasureBits, technique, w, packet_bytes)
    return partial(JerasureWords, technique, w)
