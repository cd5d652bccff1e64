"""The oracle against arithmetic written out symbol by symbol, and its two layouts against each other."""

import numpy as np
import pytest

from gfcode.engine.naive import NumpyEngine
from gfcode.engine.protocol import Blocks, Product
from gfcode.gf import GF
from gfcode.matrix.dense import Matrix
from gfcode.params import Layout
from tests.conformance.engines import Bytes


def apply(product: Product, data: Bytes) -> Bytes:
    result = np.full((product.matrix.shape[0], data.shape[1]), 0xA5, np.uint8)
    NumpyEngine().prepare(product)(Blocks.of_array(data), Blocks.of_array(result, writable=True))
    return result


def multiply(a: int, b: int, w: int, polynomial: int) -> int:
    """Multiply by shift and add."""
    product = 0
    for bit in range(w - 1, -1, -1):
        product <<= 1
        if product >> w & 1:
            product ^= polynomial
        if b >> bit & 1:
            product ^= a
    return product


def symbols_of_words(block: bytes, w: int) -> list[int]:
    number = int.from_bytes(block, "little")
    return [number >> w * i & (1 << w) - 1 for i in range(len(block) * 8 // w)]


def symbols_of_packets(block: bytes, w: int, packet_bytes: int) -> list[int]:
    symbols = []
    strip_bytes = w * packet_bytes
    for strip in range(0, len(block), strip_bytes):
        for byte in range(packet_bytes):
            for bit in range(8):
                bits = [block[strip + b * packet_bytes + byte] >> bit & 1 for b in range(w)]
                symbols.append(sum(value << b for b, value in enumerate(bits)))
    return symbols


@pytest.mark.parametrize(
    "layout",
    [Layout("words", w) for w in (4, 8, 16, 32)]
    + [Layout("packets", w, 8) for w in (*range(1, 17), 32)]
    + [Layout("packets", 3, 24), Layout("packets", 8, 64)],
    ids=str,
)
def test_every_symbol_is_the_field_sum_of_products(layout: Layout) -> None:
    field = GF(layout.w)
    rng = np.random.default_rng(layout.w)
    matrix = rng.integers(0, field.order, (2, 3), dtype=np.int64)
    length = 2 * layout.strip_bytes if layout.name == "packets" else 24
    data = rng.integers(0, 256, (3, length), dtype=np.uint8)
    result = apply(Product(Matrix(field, matrix), layout), data)

    def symbols(block: bytes) -> list[int]:
        if layout.name == "words":
            return symbols_of_words(block, layout.w)
        return symbols_of_packets(block, layout.w, layout.packet_bytes)

    inputs = [symbols(block.tobytes()) for block in data]
    for row, block in zip(matrix.tolist(), result, strict=True):
        wanted = [0] * len(inputs[0])
        for coefficient, values in zip(row, inputs, strict=True):
            wanted = [
                total ^ multiply(coefficient, value, layout.w, field.polynomial)
                for total, value in zip(wanted, values, strict=True)
            ]
        assert symbols(block.tobytes()) == wanted


@pytest.mark.parametrize("w", [4, 8, 16, 32])
@pytest.mark.parametrize("packet_bytes", [8, 64])
def test_the_layouts_agree_once_bits_are_transposed(w: int, packet_bytes: int) -> None:
    field = GF(w)
    rng = np.random.default_rng(w)
    matrix = Matrix(field, rng.integers(0, field.order, (4, 6), dtype=np.int64))
    packets = rng.integers(0, 256, (6, 3 * w * packet_bytes), dtype=np.uint8)

    def to_words(blocks: Bytes) -> Bytes:
        """Gather the bits of each symbol, which `packets` spreads over w packets."""
        bits = np.unpackbits(blocks.reshape(blocks.shape[0], 3, w, packet_bytes), axis=-1, bitorder="little")
        return np.packbits(bits.swapaxes(2, 3).reshape(blocks.shape[0], -1), axis=-1, bitorder="little")

    through_packets = apply(Product(matrix, Layout("packets", w, packet_bytes)), packets)
    through_words = apply(Product(matrix, Layout("words", w)), to_words(packets))
    assert (to_words(through_packets) == through_words).all()


def test_nibbles_come_low_first() -> None:
    field = GF(4)
    product = Product(Matrix(field, [[2]]), Layout("words", 4))
    result = apply(product, np.array([[0x81]], np.uint8))
    assert result[0, 0] == field.mul(2, 8) << 4 | field.mul(2, 1)


def test_words_are_little_endian() -> None:
    field = GF(16)
    product = Product(Matrix(field, [[3]]), Layout("words", 16))
    result = apply(product, np.array([[0x34, 0x12]], np.uint8))
    assert int.from_bytes(result.tobytes(), "little") == field.mul(3, 0x1234)


def test_it_refuses_nothing() -> None:
    product = Product(Matrix(GF(5), [[1]]), Layout("packets", 5))
    assert NumpyEngine().refuses(product) is None
