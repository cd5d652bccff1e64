"""RAID-6 of mdadm's restripe.c (the user-space twin of the Linux md driver), built as a shared object by hand.

The environment variable GFCODE_TESTS_MDADM names the object; from mdadm's sources it is made by
`gcc -O2 -shared -fPIC -DMAIN -DNO_COROSYNC -DNO_DLM -o restripe.so restripe.c xmalloc.c`.
"""

import ctypes
import os
from collections.abc import Mapping, Sequence

import numpy as np

from tests.peers.base import Bytes, PeerError, PeerMissingError, complete

__all__ = ["Mdadm"]


class Mdadm:
    """P and Q by `qsyndrome`, recovery by `raid6_2data_recov` and `raid6_datap_recov`."""

    def __init__(self) -> None:
        name = os.environ.get("GFCODE_TESTS_MDADM")
        if not name:
            raise PeerMissingError("no mdadm restripe.so: build one from mdadm's sources and set GFCODE_TESTS_MDADM")
        self.lib = ctypes.CDLL(name)
        self.lib.make_tables()
        self.lib.ensure_zero_has_size(1 << 20)

    @property
    def provenance(self) -> dict[str, str]:
        """Library, version and call."""
        return {
            "library": "mdadm, user-space twin of the Linux md driver",
            "version": os.environ.get("GFCODE_TESTS_MDADM_VERSION", "unknown"),
            "call": "restripe.c: qsyndrome, raid6_2data_recov, raid6_datap_recov (ctypes)",
        }

    def encode(self, data: Bytes, m: int) -> Bytes:
        """P and Q."""
        k, length = data.shape
        if m != 2:
            raise PeerError("RAID-6 has two parities")
        blocks = [*np.ascontiguousarray(data), np.zeros(length, np.uint8), np.zeros(length, np.uint8)]
        addresses = [block.ctypes.data for block in blocks]
        self.lib.qsyndrome(
            ctypes.c_void_p(addresses[k]), ctypes.c_void_p(addresses[k + 1]), (ctypes.c_void_p * k)(*addresses[:k]),
            k, length,
        )  # fmt: skip
        return np.stack(blocks[k:])

    def rebuild(self, k: int, m: int, shards: Mapping[int, Bytes], lost: Sequence[int]) -> dict[int, Bytes]:
        """Return the lost shards, by the recovery functions; parities by encoding again."""
        blocks = [block.copy() for block in complete(k, m, shards, lost)]
        length = len(blocks[0])
        pointers = (ctypes.c_void_p * (k + 2))(*[block.ctypes.data for block in blocks])
        data = sorted(i for i in lost if i < k)
        if len(data) == 2:
            self.lib.raid6_2data_recov(k + 2, ctypes.c_size_t(length), *data, pointers, 0)
        elif data and k + 1 not in lost:
            self.lib.raid6_datap_recov(k + 2, ctypes.c_size_t(length), data[0], pointers, 0)
        elif data:
            blocks[data[0]] = np.bitwise_xor.reduce([blocks[i] for i in range(k + 1) if i != data[0]])
        parity = self.encode(np.stack(blocks[:k]), 2)
        return {i: blocks[i] if i < k else parity[i - k] for i in lost}
