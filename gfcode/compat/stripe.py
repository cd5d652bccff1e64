"""Fragments of one code in memory: made from data, checked, and rebuilt from each other."""

import ctypes
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from gfcode.codec.group_plan import GroupPlanner, prepare
from gfcode.codec.plan import Plan, Planner
from gfcode.compat import header
from gfcode.compat.checksums import crc32, writes_legacy
from gfcode.compat.codes import Code
from gfcode.compat.header import CRC32, HEADER_BYTES
from gfcode.engine.buffers import address_of
from gfcode.engine.protocol import Blocks, Operator
from gfcode.engine.registry import get_engine

__all__ = ["Octets", "Stripe"]

Octets: TypeAlias = bytes | memoryview

# Headers of so many lengths of data are kept.
_LENGTHS: Final = 64

# A bytes object of unset content, to be filled before anyone else sees it: an engine writes parity where it is to be.
_new_bytes: Final[Callable[[None, int], bytes]] = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_char_p, ctypes.c_ssize_t
)(("PyBytes_FromStringAndSize", ctypes.pythonapi))
_bytes_address: Final[Callable[[bytes], int]] = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(
    ("PyBytes_AsString", ctypes.pythonapi)
)
_copy: Final = ctypes.memmove


def _address(octets: Octets) -> int:
    if type(octets) is bytes:
        return _bytes_address(octets)
    return address_of(np.frombuffer(octets, np.uint8))


def _blocks(addresses: list[int], length: int, owners: object) -> Blocks:
    return Blocks(np.array([addresses], np.uint64), length, owners)


class Stripe:
    """What a driver does for one k, m and code. Safe to use from many threads.

    Parameters
    ----------
    code : Code
    number : int
        Of the code, for headers.
    checksum_type : int
        Of the fragments that are made.

    Attributes
    ----------
    k, m, n : int
    code : Code
    identity : (int, int)
        Number and version of the code, as headers have them.
    """

    def __init__(self, code: Code, number: int, checksum_type: int) -> None:
        self.m, self.k = code.parity.shape
        self.n = self.k + self.m
        self.code = code
        self.identity = (number, code.version)
        self._checksum_type = checksum_type
        # Without checksums of payloads, headers of one length of data are always the same.
        self._headers: Callable[[int, int, bool], tuple[bytes, ...]] = lru_cache(_LENGTHS)(
            partial(_headers, self.n, (checksum_type, 0), self.identity)
        )
        self._engine = get_engine()
        self._encoder: Operator = prepare(self._engine, code.parity, code.layout)
        self._planner = (
            Planner(code.parity, code.layout, self._engine)
            if code.is_mds
            else GroupPlanner(self.k, self.m, code.parity, code.layout, self._engine)
        )

    def payload_bytes(self, data_length: int) -> int:
        """Bytes of payload of each fragment of so much data."""
        together = self.k * self.code.unit
        return -(-data_length // together) * self.code.unit

    def encode(self, data: Octets) -> list[bytes]:
        """Make all fragments.

        Parameters
        ----------
        data : bytes, or memoryview of bytes
            Read where it is: the whole blocks in it are the engine's inputs.

        Returns
        -------
        list of bytes
        """
        length = len(data)
        size = self.payload_bytes(length)
        legacy = writes_legacy()
        heads: Sequence[bytes] = self._headers(size, length, legacy)
        if not size:
            return list(heads)
        view = memoryview(data)
        whole = length // size
        payloads: list[Octets] = [view[start : start + size] for start in range(0, whole * size, size)]
        if whole < self.k:
            payloads.append(bytes(view[whole * size :]) + bytes((whole + 1) * size - length))
            payloads += [bytes(size)] * (self.k - whole - 1)
        if self._checksum_type == CRC32:
            heads = self._summed(range(self.k), payloads, size, length, legacy=legacy)
        fragments = [head + payload for head, payload in zip(heads, payloads, strict=False)]
        base = _address(data)
        inputs = list(range(base, base + whole * size, size))
        inputs += [_address(payload) for payload in payloads[whole:]]
        parity = [_new_bytes(None, HEADER_BYTES + size) for _ in range(self.m)]
        outputs = [_bytes_address(fragment) + HEADER_BYTES for fragment in parity]
        self._encoder(_blocks(inputs, size, (data, payloads)), _blocks(outputs, size, parity))
        self._finish(parity, outputs, range(self.k, self.n), size, length, legacy=legacy)
        return fragments + parity

    def _finish(
        self,
        made: Sequence[bytes],
        payloads: Sequence[int],
        indices: Sequence[int],
        size: int,
        length: int,
        *,
        legacy: bool,
    ) -> None:
        """Put headers before payloads that an engine made."""
        if self._checksum_type == CRC32:
            views = [memoryview(fragment)[HEADER_BYTES:] for fragment in made]
            heads = self._summed(indices, views, size, length, legacy=legacy)
        else:
            every = self._headers(size, length, legacy)
            heads = [every[index] for index in indices]
        for head, payload in zip(heads, payloads, strict=True):
            _copy(payload - HEADER_BYTES, head, HEADER_BYTES)

    def _summed(
        self, indices: Iterable[int], payloads: Iterable[Octets], size: int, length: int, *, legacy: bool
    ) -> list[bytes]:
        """Make headers with checksums of their payloads."""
        return [
            header.write(index, size, length, (CRC32, crc32(payload, legacy=legacy)), self.identity, legacy=legacy)
            for index, payload in zip(indices, payloads, strict=True)
        ]

    def plan(self, available: Iterable[int], want: Iterable[int]) -> Plan:
        """Return how to make fragments from others.

        Raises
        ------
        UnrecoverableError
            If the available ones do not determine them.
        """
        return self._planner.find(tuple(sorted(available)), tuple(want))

    def basis(self, given: tuple[int, ...]) -> tuple[int, ...]:
        """Return fragments, of those given in ascending order, that determine all others given."""
        return self._planner.basis(given) if isinstance(self._planner, GroupPlanner) else given[: self.k]

    def rebuild(self, fragments: Mapping[int, Octets], plan: Plan, size: int) -> dict[int, npt.NDArray[np.uint8]]:
        """Compute the payloads that a plan makes.

        Parameters
        ----------
        fragments : mapping of index to bytes
            At hand, with their headers.
        plan : Plan
        size : int
            Bytes of each payload.
        """
        made = np.empty((len(plan.want), size), np.uint8)
        if size:
            plan.operator(_payloads(fragments, plan, size), Blocks.of_array(made))
        return dict(zip(plan.want, made, strict=True))

    def rebuild_fragments(
        self, fragments: Mapping[int, Octets], plan: Plan, size: int, length: int
    ) -> dict[int, bytes]:
        """Compute the fragments that a plan makes, with headers.

        Parameters
        ----------
        fragments, plan, size
            As in `rebuild`.
        length : int
            Bytes of the data.
        """
        made: list[bytes] = [_new_bytes(None, HEADER_BYTES + size) for _ in plan.want]
        outputs = [_bytes_address(fragment) + HEADER_BYTES for fragment in made]
        if size and made:
            plan.operator(_payloads(fragments, plan, size), _blocks(outputs, size, made))
        self._finish(made, outputs, plan.want, size, length, legacy=writes_legacy())
        return dict(zip(plan.want, made, strict=True))


def _payloads(fragments: Mapping[int, Octets], plan: Plan, size: int) -> Blocks:
    """Address what a plan reads."""
    return _blocks([_address(fragments[index]) + HEADER_BYTES for index in plan.sources], size, fragments)


def _headers(
    n: int, checksum: tuple[int, int], identity: tuple[int, int], size: int, length: int, legacy: bool
) -> tuple[bytes, ...]:
    return tuple(header.write(index, size, length, checksum, identity, legacy=legacy) for index in range(n))
