"""Bit matrices in the order in which the lanes of a matrix-product warp hold them.

The kernel knows byte columns only: eight bits of a symbol, or two symbols of GF(2^4). A set of operands is what one
warp multiplies at once: a slice of the input columns by one byte column of four output blocks.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gfcode.kernels.cuda.launch import Build, halves_of

__all__ = ["PackedMatrices", "bit_rows", "pack"]


class PackedMatrices(NamedTuple):
    """Operands of some matrices.

    Attributes
    ----------
    words : ndarray of uint32, shape (matrices, slices, groups, halves, words of a lane / 4, lanes, 4)
        Four words of a lane lie side by side, so that a warp fetches them by 16-byte loads.
    live : ndarray of uint8, shape (matrices, slices, groups, halves)
        Whether a set of operands has a one.
    """

    words: npt.NDArray[np.uint32]
    live: npt.NDArray[np.uint8]


def bit_rows(bits: npt.NDArray[np.uint8], w: int) -> npt.NDArray[np.uint8]:
    """Bit rows over byte columns.

    Parameters
    ----------
    bits : ndarray of uint8, shape (..., r · w, c · w)
        Bit matrices of zeros and ones.
    w : {4, 8, 16}

    Returns
    -------
    ndarray of uint8, shape (..., r' · 8, c')
        r' and c' count byte columns; bit b of [8 · R + q, s] says whether bit b of input column s enters bit q of
        output column R.
    """
    if w == 4:  # a byte is two symbols: the same square for each nibble
        *lead, rows, columns = bits.shape
        squares = bits.reshape(*lead, rows // 4, 4, columns // 4, 4)
        doubled = np.zeros((*lead, rows // 4, 2, 4, columns // 4, 2, 4), np.uint8)
        doubled[..., :, 0, :, :, 0, :] = squares
        doubled[..., :, 1, :, :, 1, :] = squares
        bits = doubled.reshape(*lead, rows * 2, columns * 2)
    return np.packbits(bits, axis=-1, bitorder="little")


def _pieces_of(rows: npt.NDArray[np.uint8], pieces: int) -> npt.NDArray[np.uint8]:
    """Return the same matrix for each piece of a block, on the diagonal."""
    matrices, height, width = rows.shape
    whole = np.zeros((matrices, pieces, height, pieces, width), np.uint8)
    for piece in range(pieces):
        whole[:, piece, :, piece] = rows
    return whole.reshape(matrices, pieces * height, pieces * width)


def pack(rows: npt.NDArray[np.uint8], w: int, build: Build) -> PackedMatrices:
    """Arrange matrices for a build of the matrix-product kernel.

    Parameters
    ----------
    rows : ndarray of uint8, shape (matrices, r' · 8, c')
        As `bit_rows` gives them.
    w : {4, 8, 16}
    build : Build
        Of bitmatmul.cu.
    """
    halves, columns = halves_of(w), build.define("COLUMNS")
    rows = _pieces_of(rows, build.define("PIECES"))
    matrices, height, width = rows.shape
    blocks = 4 * columns // halves  # input blocks of a slice
    groups = -(-height // (8 * halves * 4))
    slices = -(-width // (blocks * halves)) if build.define("SLICED") else 1
    # One further row and column of zeros stand for everything that the matrix does not have.
    padded = np.zeros((matrices, height + 1, width + 1), np.uint8)
    padded[:, :height, :width] = rows

    lane = np.arange(32)
    g, t = lane >> 2, lane & 3
    column, bit, weight, mma = _b1_order(columns) if not build.define("OPERANDS_U8") else _u8_order(columns)
    words = mma.shape[0]
    # Of each word i of a lane and byte y in it: the matrix row and the byte column, shapes (group, half, i, lane) and
    # (slice, i, lane, y).
    output = (np.arange(groups)[:, None, None, None] * 4 + (g >> 1)) * halves + np.arange(halves)[:, None, None]
    row = 8 * output + 2 * mma[:, None] + (g & 1)
    row = np.where(row < height, row, height)
    block = (np.arange(slices)[:, None, None, None] * (blocks // 4) + column[:, None, :] // halves) * 4 + t[:, None]
    source = block * halves + column[:, None, :] % halves
    source = np.where((column[:, None, :] < columns) & (source < width), source, width)

    found = padded[:, row[None, :, :, :, :, None], source[:, None, None]]
    if bit is not None and weight is not None:
        found = (found >> bit[:, None, :] & 1) << weight[:, None, :]
    packed = np.ascontiguousarray(found, np.uint8).view("<u4")[..., 0]  # (matrices, slice, group, half, i, lane)
    live = packed.any(axis=(-2, -1)).astype(np.uint8)
    shape = (matrices, slices, groups, halves, words // 4, 4, 32)
    ordered = packed.reshape(shape).swapaxes(-1, -2).astype(np.uint32)
    return PackedMatrices(np.ascontiguousarray(ordered), np.ascontiguousarray(live))


_Order = tuple[npt.NDArray[np.intp], npt.NDArray[np.uint8] | None, npt.NDArray[np.uint8] | None, npt.NDArray[np.intp]]


def _b1_order(columns: int) -> _Order:
    """Column of each byte of each word, and MMA tile of each word; bytes are whole columns (operands_b1.cuh)."""
    registers = -(-columns // 4)
    word = np.arange(4 * registers)
    column = 4 * (word % registers)[:, None] + np.arange(4)
    return column, None, None, word // registers


def _u8_order(columns: int) -> _Order:
    """Column, bit and weight of each byte of each word, and the MMA tile of each word (operands_u8.cuh)."""
    fours, pair = columns // 4, columns // 2 % 2
    column, bit, weight, mma = [], [], [], []
    for step in range(columns):
        for tile in range(4):
            for upper in range(2):
                for byte in range(4):
                    if step < 4 * fours:
                        place = (step // 4 * 4 + byte, step % 4 + 4 * upper, 0)
                    elif step < 4 * fours + 2 * pair:
                        place = (4 * fours + (byte & 1), step - 4 * fours + 2 * upper, 4 * (byte >> 1))
                    else:
                        place = (columns - 1, upper, 2 * byte)
                    column.append(place[0])
                    bit.append(place[1] + place[2])
                    weight.append(7 - place[1])
                mma.append(tile)
    words = len(mma)
    return (
        np.array(column).reshape(words, 4),
        np.array(bit, np.uint8).reshape(words, 4),
        np.array(weight, np.uint8).reshape(words, 4),
        np.array(mma),
    )
