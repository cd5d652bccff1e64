"""liberasurecode's two CRC-32s: zlib's, and the one of its releases before 1.6."""

import os
import zlib
from functools import cache
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["ENVIRONMENT_VARIABLE", "crc32", "legacy_crc32", "matches", "writes_legacy"]

#: Set to anything but "" and "0", it makes liberasurecode, and this package, write the legacy CRC.
ENVIRONMENT_VARIABLE: Final = "LIBERASURECODE_WRITE_LEGACY_CRC"

_Octets: TypeAlias = bytes | memoryview
_States: TypeAlias = npt.NDArray[np.int32]

_POLYNOMIAL: Final = 0xEDB88320
# Bytes from which many lanes at once pay, and how many: more for long data.
_LONG: Final = 4096
_LANES: Final = 256
_MANY: Final = 1 << 20
_MANY_LANES: Final = 2048


def writes_legacy() -> bool:
    """Tell whether the environment asks for the legacy CRC."""
    return os.environ.get(ENVIRONMENT_VARIABLE, "") not in {"", "0"}


def crc32(data: _Octets, *, legacy: bool) -> int:
    """Return the CRC to write for these bytes."""
    return legacy_crc32(data) if legacy else zlib.crc32(data)


def matches(stored: int, data: _Octets) -> bool:
    """Tell whether a stored CRC is one of the two that these bytes may have."""
    return zlib.crc32(data) == stored or legacy_crc32(data) == stored


@cache
def _table() -> _States:
    """Feedback of each byte, as signed words."""
    state = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        state = (state >> np.uint32(1)) ^ np.where(state & np.uint32(1), np.uint32(_POLYNOMIAL), np.uint32(0))
    return state.view(np.int32)


def legacy_crc32(data: _Octets) -> int:
    """Return the CRC-32 of releases before 1.6.

    Their register is a signed integer, and is shifted right arithmetically: bit 31 stays behind in the eight bits that
    should be zero. The result is the usual CRC only where that bit is never set.

    Parameters
    ----------
    data : bytes or memoryview
        Contiguous bytes.

    Returns
    -------
    int
        0 to 2^32 − 1.
    """
    octets = np.frombuffer(data, np.uint8)
    lanes = _MANY_LANES if len(octets) >= _MANY else _LANES
    head = len(octets) % (4 * lanes) if len(octets) >= _LONG else len(octets)
    table = _table().tolist()
    state = -1
    for octet in octets[:head].tolist():
        state = table[(state ^ octet) & 0xFF] ^ (state >> 8)
    if head < len(octets):
        state = _lanes(state, octets[head:], lanes)
    return ~state & 0xFFFFFFFF


@cache
def _wide_tables() -> tuple[_States, _States]:
    """Feedback of four bytes: of the first two, and of the last two.

    The shift is linear over GF(2) too, so that the feedback of several bytes is the sum of that of each. After four
    bytes, what is left of the state before is its sign.
    """
    table = _table()
    first = table[np.arange(1 << 16) & 0xFF]
    last = table[first & 0xFF] ^ (first >> 8) ^ table[np.arange(1 << 16) >> 8]
    return last[last & 0xFFFF] ^ (last >> 16), last


def _lanes(state: int, octets: npt.NDArray[np.uint8], lanes: int) -> int:
    """Go on over many bytes: each lane a piece of them from state 0, for a step is linear over GF(2).

    32 lanes more, one for each bit of a state and with zeros for bytes, give the map that a whole piece of zeros is.
    """
    first, last = _wide_tables()
    pieces = np.zeros((len(octets) // (4 * lanes), lanes + 32), np.int32)
    pieces[:, :lanes] = octets.view(np.dtype("<i4")).reshape(lanes, -1).T
    states = np.zeros(lanes + 32, np.int32)
    states[lanes:] = (np.uint32(1) << np.arange(32, dtype=np.uint32)).view(np.int32)
    for words in pieces:
        np.bitwise_xor(words, states, out=words)
        states >>= 31
        states ^= first[words & 0xFFFF]
        states ^= last[(words >> 16) & 0xFFFF]
    images = states[lanes:].tolist()
    low, second, third, high = (_combinations(images[8 * byte : 8 * byte + 8]) for byte in range(4))
    for lane in states[:lanes].tolist():
        state = (
            low[state & 0xFF] ^ second[state >> 8 & 0xFF] ^ third[state >> 16 & 0xFF] ^ high[state >> 24 & 0xFF] ^ lane
        )
    return state


def _combinations(images: list[int]) -> list[int]:
    """Sum the images of the bits of every byte."""
    sums = [0]
    for image in images:
        sums += [total ^ image for total in sums]
    return sums
