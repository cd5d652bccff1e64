"""Fragments of one code in memory: made from data, checked, and rebuilt from each other."""

import ctypes
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from gfcode.codec.group_plan import GroupPlanner, prepare
from gfcode.codec.lean import addresses_of_bytes, run_at
from gfcode.codec.plan import Plan, Planner
from gfcode.compat import header
from gfcode.compat.checksums import crc32, writes_legacy
from gfcode.compat.codes import Code
from gfcode.compat.header import CRC32, HEADER_BYTES
from gfcode.engine.buffers import address_of
from gfcode.engine.registry import get_engine

if TYPE_CHECKING:
    from gfcode.engine.protocol import Operator

__all__ = ["Octets", "Stripe"]

Octets: TypeAlias = bytes | memoryview

# Headers of so many lengths of data are kept.
_LENGTHS: Final = 64

_copy: Final = ctypes.memmove


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
        self.headers: Callable[[int, int, bool], tuple[bytes, ...]] = lru_cache(_LENGTHS)(
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
        heads = self.headers(size, length, legacy)
        if not size:
            return list(heads)
        view, zeros = memoryview(data), bytes(size)
        whole = length // size
        fragments = [head + view[at : at + size] for head, at in zip(heads, range(0, whole * size, size), strict=False)]
        if whole < self.k:
            fragments.append(heads[whole] + view[whole * size :] + zeros[length - whole * size :])
        # Bytes that nobody else has seen yet: what is zeros until here is written where it is to be.
        fragments += [head + zeros for head in heads[len(fragments) :]]
        payloads = addresses_of_bytes(fragments, HEADER_BYTES)
        run_at(self._encoder, payloads[: self.k], payloads[self.k :], size, fragments)
        if self._checksum_type == CRC32:
            self._finish(fragments, payloads, range(self.n), length, legacy=legacy)
        return fragments

    def _finish(
        self, made: Sequence[bytes], payloads: Sequence[int], indices: Iterable[int], length: int, *, legacy: bool
    ) -> None:  # fmt: skip
        """Put the checksums of payloads into the headers of new fragments."""
        size = len(made[0]) - HEADER_BYTES
        heads = self.headers(size, length, legacy)
        for index, fragment, payload in zip(indices, made, payloads, strict=True):
            checksum = crc32(memoryview(fragment)[HEADER_BYTES:], legacy=legacy)
            head = header.with_checksum(heads[index], checksum, legacy=legacy)
            _copy(payload - HEADER_BYTES, head, HEADER_BYTES)

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

    def rebuild(self, fragments: Mapping[int, Octets], plan: Plan, size: int) -> dict[int, memoryview]:
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
            outputs = [address_of(made) + row * size for row in range(len(made))]
            self._run(fragments, plan, size, outputs, made)
        return {index: made[row].data for row, index in enumerate(plan.want)}

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
        legacy, zeros = writes_legacy(), bytes(size)
        heads = self.headers(size, length, legacy)
        made = [heads[index] + zeros for index in plan.want]
        if size and made:
            outputs = addresses_of_bytes(made, HEADER_BYTES)
            self._run(fragments, plan, size, outputs, made)
            if self._checksum_type == CRC32:
                self._finish(made, outputs, plan.want, length, legacy=legacy)
        return dict(zip(plan.want, made, strict=True))

    def _run(
        self, fragments: Mapping[int, Octets], plan: Plan, size: int, outputs: list[int], made: object
    ) -> None:  # fmt: skip
        sources: list[Any] = [fragments[index] for index in plan.sources]
        if list(map(type, sources)).count(bytes) == len(sources):
            inputs = addresses_of_bytes(sources, HEADER_BYTES)
        else:
            inputs = [address_of(np.frombuffer(source, np.uint8)) + HEADER_BYTES for source in sources]
        run_at(plan.operator, inputs, outputs, size, (fragments, made))


def _headers(
    n: int, checksum: tuple[int, int], identity: tuple[int, int], size: int, length: int, legacy: bool
) -> tuple[bytes, ...]:
    return tuple(header.write(index, size, length, checksum, identity, legacy=legacy) for index in range(n))
