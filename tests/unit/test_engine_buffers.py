"""Blocks that gfcode allocates are aligned, staggered and apart; tables of blocks point where they say."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gfcode.engine.buffers import ALIGNMENT, STAGGER, address_of, allocate, row_stride
from gfcode.engine.protocol import Blocks, Product
from gfcode.errors import BlockError, ParameterError
from gfcode.gf import GF
from gfcode.matrix.dense import Matrix
from gfcode.params import Layout


@given(st.lists(st.integers(0, 5), max_size=2), st.integers(0, 9000))
def test_allocated_blocks_are_aligned_and_apart(counts: list[int], length: int) -> None:
    blocks = allocate(*counts, length)
    assert blocks.shape == (*counts, length)
    assert blocks.dtype == np.uint8
    assert blocks.flags.writeable
    if blocks.size:
        assert blocks.strides[-1] == 1
        starts = sorted(int(address) for address in Blocks.of_array(np.atleast_2d(blocks)).table.ravel())
        assert all(start % ALIGNMENT == 0 for start in starts)
        assert all(second - first >= length for first, second in pairwise(starts))
    blocks[...] = 1  # the memory is there to its end
    assert int(blocks.sum(dtype=np.int64)) == blocks.size


@given(st.integers(0, 1 << 24))
def test_row_strides_hold_the_block_and_waste_little(length: int) -> None:
    stride = row_stride(length)
    assert stride % ALIGNMENT == 0
    assert length <= stride < length + (512 if length < 16384 else 4096)
    if length >= 1024:
        assert stride % 512 == STAGGER


@pytest.mark.parametrize("length", [1024, 4096, 65024, 65536, 1 << 20, 16 << 20])
def test_blocks_side_by_side_spread_over_the_sets_of_a_cache(length: int) -> None:
    lines = {row_stride(length) * block // 64 % 64 for block in range(64)}
    assert len(lines) == 64


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((3, 40), np.uint8),
        np.zeros((3, 40), np.uint8)[:, 5:9],
        np.zeros((9, 40), np.uint8)[::2],
        np.zeros((3, 40), np.uint8)[::-1],
        np.broadcast_to(np.zeros(40, np.uint8), (4, 40)),
        np.zeros((2, 3, 40), np.uint8),
        np.zeros((2, 3, 40), np.uint8)[:, ::2, 7:],
        np.zeros((2, 3, 40), np.uint8).transpose(1, 0, 2),
        np.zeros((3, 1), np.uint8, order="F"),
        np.zeros((0, 3, 40), np.uint8),
        np.zeros((2, 0), np.uint8),
    ],
)
def test_tables_point_at_the_blocks(array: np.ndarray) -> None:
    blocks = Blocks.of_array(array)
    view = array if array.ndim == 3 else array[None]
    assert (blocks.stripes, blocks.count, blocks.length) == view.shape
    wanted = [[address_of(view[s, i]) for i in range(view.shape[1])] for s in range(view.shape[0])]
    if array.size:
        assert blocks.table.tolist() == wanted


def test_addresses_of_read_only_and_strided_arrays() -> None:
    array = np.arange(100, dtype=np.uint16)
    frozen = array[3:]
    frozen.flags.writeable = False
    start = array.__array_interface__["data"][0]
    assert address_of(array) == start
    assert address_of(frozen) == start + 6
    assert address_of(array[10::7]) == start + 20
    assert address_of(array[::-1]) == start + 198


def test_views_read_and_write_the_very_memory() -> None:
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    for s, stripe in enumerate(Blocks.of_array(array, writable=True).views()):
        for i, block in enumerate(stripe):
            assert block.tolist() == array[s, i].tolist()
            block[0] = 100 + s
    assert array[:, :, 0].tolist() == [[100] * 3, [101] * 3]


def test_selections_of_blocks() -> None:
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    blocks = Blocks.of_array(array)
    assert blocks.select([2, 0]).table.tolist() == blocks.table[:, [2, 0]].tolist()
    assert blocks.first(1).table.tolist() == blocks.table[:1].tolist()


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((2, 3), np.int8), "uint8"),
        (np.zeros(3, np.uint8), "shape"),
        (np.zeros((1, 2, 3, 4), np.uint8), "shape"),
        (np.zeros((4, 3), np.uint8).T, "contiguous"),
        (np.zeros((3, 8), np.uint8)[:, ::2], "contiguous"),
    ],
)
def test_arrays_that_are_no_blocks_are_refused(array: np.ndarray, message: str) -> None:
    with pytest.raises(BlockError, match=message):
        Blocks.of_array(array)


def test_read_only_memory_is_no_output() -> None:
    frozen = np.zeros((2, 8), np.uint8)
    frozen.flags.writeable = False
    Blocks.of_array(frozen)
    with pytest.raises(BlockError, match="read-only"):
        Blocks.of_array(frozen, writable=True)
    with pytest.raises(BlockError, match="block 1 is read-only"):
        Blocks.of_buffers([np.zeros(8, np.uint8), frozen[0]], writable=True)


def test_separate_buffers() -> None:
    buffers = [np.full(8, i, np.uint8) for i in range(3)]
    blocks = Blocks.of_buffers(buffers)
    assert blocks.table.tolist() == [[address_of(buffer) for buffer in buffers]]
    assert Blocks.of_buffers([]).table.shape == (1, 0)
    with pytest.raises(BlockError, match="block 1 has 9 bytes, block 0 has 8"):
        Blocks.of_buffers([np.zeros(8, np.uint8), np.zeros(9, np.uint8)])
    with pytest.raises(BlockError, match="block 0 is not"):
        Blocks.of_buffers([np.zeros((2, 4), np.uint8)])


def test_a_table_is_two_dimensional_and_of_addresses() -> None:
    with pytest.raises(BlockError, match="2-d array of uint64"):
        Blocks(np.zeros(3, np.uint64), 8, None)
    with pytest.raises(BlockError, match="2-d array of uint64"):
        Blocks(np.zeros((1, 3), np.int64), 8, None)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_a_product_has_rows_and_columns(shape: tuple[int, int]) -> None:
    with pytest.raises(ParameterError, match="needs rows and columns"):
        Product(Matrix(GF(8), np.zeros(shape, np.uint8)), Layout("words", 8))


def test_a_product_is_over_the_field_of_its_layout() -> None:
    with pytest.raises(ParameterError, match="the layout is for w = 4"):
        Product(Matrix(GF(8), [[1]]), Layout("packets", 4))
