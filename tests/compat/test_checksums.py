"""The legacy CRC in lanes against its definition, byte by byte."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gfcode.compat.checksums import legacy_crc32, matches


def by_definition(data: bytes) -> int:
    """Go bit by bit, with a signed register: a shift by a byte leaves the sign behind."""
    register = 0xFFFFFFFF
    for octet in data:
        feedback = (register ^ octet) & 0xFF
        for _ in range(8):
            feedback = feedback >> 1 ^ (0xEDB88320 if feedback & 1 else 0)
        register = feedback ^ register >> 8 ^ (0xFF000000 if register >> 31 else 0)
    return register ^ 0xFFFFFFFF


@pytest.mark.parametrize("length", [0, 1, 59, 511, 512, 4095, 4096, 4097, 5000, 8192, 12_345])
def test_lengths(length: int) -> None:
    data = bytes(i * 89 + i // 7 & 0xFF for i in range(length))
    assert legacy_crc32(data) == by_definition(data)
    assert legacy_crc32(memoryview(b"x" + data)[1:]) == by_definition(data)


@given(st.binary(max_size=300), st.integers(0, 40))
def test_any_bytes(data: bytes, times: int) -> None:
    assert legacy_crc32(data * times) == by_definition(data * times)


def test_both_match() -> None:
    data = bytes(range(256))
    assert legacy_crc32(data) != zlib.crc32(data)
    assert matches(zlib.crc32(data), data)
    assert matches(legacy_crc32(data), data)
    assert not matches(zlib.crc32(data) ^ 1, data)
