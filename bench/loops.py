"""Plain loops on equal footing: products by tables, and XOR programs, both compiled by numba from code without tricks.

Neither uses more of the CPU than LLVM finds by itself: XORs of packets become vector instructions, table lookups stay
one load a symbol, which is what the C libraries of the classic comparisons do. Both keep what they work on in the
cache, tables by pieces of 4 KiB of every block, programs by packets of 2 KiB.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from gfcode.matrix.dense import Matrix
from gfcode.xor.memory import allocate
from gfcode.xor.program import ZERO, XorProgram

__all__ = ["PACKET", "Memory", "program_call", "table_call"]

#: Bytes of a packet, and of the piece of a block that tables are applied to at a time.
PACKET, PIECE = 2048, 4096
#: Packets of room for temporaries.
SCRATCH = 1024
_WORDS = PACKET // 8

Call = Callable[[], None]


class Memory:
    """Blocks side by side in one array, not a power of two apart.

    Parameters
    ----------
    count : int
    length : int
        Bytes of a block, a multiple of 8.

    Attributes
    ----------
    words : ndarray of uint64
        All of it.
    starts : ndarray of int64
        Index of the first word of each block.
    scratch : int
        Index of the first word of room for the temporaries of a program, `SCRATCH` packets.
    """

    def __init__(self, count: int, length: int) -> None:
        self.length = length
        stride = length // 8 + 8 * 21
        self.scratch = count * stride
        raw = np.zeros(self.scratch + SCRATCH * _WORDS + 8, np.uint64)
        first = -raw.ctypes.data % 64 // 8
        self.words = raw[first:]
        self.starts = np.arange(count, dtype=np.int64) * stride

    def block(self, index: int) -> npt.NDArray[np.uint8]:
        """Return a block as bytes."""
        start = int(self.starts[index])
        return self.words[start : start + self.length // 8].view(np.uint8)


def _tables(matrix: Matrix) -> npt.NDArray[Any]:
    """Products of each element and each value of a byte, shape (r, c, parts, 256): parts are bytes of a symbol."""
    field, w = matrix.field, matrix.field.w
    byte = np.arange(256)
    constants = matrix.values.astype(np.int64)[:, :, None, None]
    if w == 4:  # two symbols a byte
        return (field.mul(constants, byte & 15) | field.mul(constants, byte >> 4) << 4).astype(np.uint8)
    parts = np.stack([byte << shift for shift in range(0, w, 8)])
    return np.ascontiguousarray(field.mul(constants, parts).astype(field.dtype))


def _run_tables(
    memory: Any, starts: Any, inputs: Any, outputs: Any, count: int, piece: int, constants: Any, tables: Any
) -> None:
    for begin in range(0, count, piece):
        size = min(piece, count - begin)
        for row in range(len(outputs)):
            at = starts[outputs[row]] + begin
            target = memory[at : at + size]
            for column in range(len(inputs)):
                at = starts[inputs[column]] + begin
                source = memory[at : at + size]
                constant = constants[row, column]
                if column == 0:
                    for i in range(size):
                        target[i] = 0
                if constant == 1:
                    for i in range(size):
                        target[i] ^= source[i]
                elif constant and tables.shape[2] == 1:
                    table = tables[row, column, 0]
                    for i in range(size):
                        target[i] ^= table[source[i]]
                elif constant:
                    low, high = tables[row, column, 0], tables[row, column, 1]
                    for i in range(size):
                        target[i] ^= low[source[i] & 255] ^ high[source[i] >> 8]


def _xor(target: Any, a: Any, b: Any) -> None:
    for i in range(_WORDS):
        target[i] = a[i] ^ b[i]


def _xor3(target: Any, a: Any, b: Any, c: Any) -> None:
    for i in range(_WORDS):
        target[i] = a[i] ^ b[i] ^ c[i]


def _add(target: Any, a: Any) -> None:
    for i in range(_WORDS):
        target[i] ^= a[i]


def _add2(target: Any, a: Any, b: Any) -> None:
    for i in range(_WORDS):
        target[i] ^= a[i] ^ b[i]


def _add3(target: Any, a: Any, b: Any, c: Any) -> None:
    for i in range(_WORDS):
        target[i] ^= a[i] ^ b[i] ^ c[i]


def _packet(memory: Any, bases: Any, steps: Any, block: int, strip: int) -> Any:
    start = bases[block] + strip * steps[block]
    return memory[start : start + _WORDS]


_packet_of = numba.njit(_packet, nogil=True)
_sum2, _sum3 = (numba.njit(loop, nogil=True) for loop in (_xor, _xor3))
_add_one, _add_two, _add_three = (numba.njit(loop, nogil=True) for loop in (_add, _add2, _add3))


def _copy(memory: Any, bases: Any, steps: Any, strip: int, copies: Any) -> None:
    for index in range(len(copies)):
        target = _packet_of(memory, bases, steps, copies[index, 0], strip)
        if copies[index, 1] < 0:
            target[:] = 0
        else:
            target[:] = _packet_of(memory, bases, steps, copies[index, 1], strip)


_copies_of = numba.njit(_copy, nogil=True)


def _run_program(memory: Any, bases: Any, steps: Any, strips: int, ends: Any, blocks: Any, copies: Any) -> None:
    for strip in range(strips):
        begin = 0
        for end in ends:
            # The target's block, then the operands'; an operand that is in the target's block comes first.
            target = _packet_of(memory, bases, steps, blocks[begin], strip)
            at = begin + 2
            if blocks[begin + 1] != blocks[begin]:
                a = _packet_of(memory, bases, steps, blocks[at - 1], strip)
                b = _packet_of(memory, bases, steps, blocks[at], strip)
                if end - at == 1:
                    _sum2(target, a, b)
                    at += 1
                else:
                    _sum3(target, a, b, _packet_of(memory, bases, steps, blocks[at + 1], strip))
                    at += 2
            while at < end:
                a = _packet_of(memory, bases, steps, blocks[at], strip)
                if end - at == 1:
                    _add_one(target, a)
                    at += 1
                elif end - at == 2:
                    _add_two(target, a, _packet_of(memory, bases, steps, blocks[at + 1], strip))
                    at += 2
                else:
                    b = _packet_of(memory, bases, steps, blocks[at + 1], strip)
                    _add_three(target, a, b, _packet_of(memory, bases, steps, blocks[at + 2], strip))
                    at += 3
            begin = end
        _copies_of(memory, bases, steps, strip, copies)


@cache
def _kernels() -> tuple[Any, Any]:
    """Compile both loops, at first use."""
    return numba.njit(_run_tables, nogil=True), numba.njit(_run_program, nogil=True)


def table_call(matrix: Matrix, memory: Memory, inputs: list[int], outputs: list[int]) -> Call:
    """Return a call that multiplies blocks of `memory` by a matrix by tables, in layout `words`; w is 4, 8 or 16."""
    tables = _tables(matrix)
    run, _ = _kernels()
    bytes_each = tables.dtype.itemsize
    symbols = memory.words.view(tables.dtype)
    arguments = (
        symbols, memory.starts * (8 // bytes_each), np.array(inputs), np.array(outputs), memory.length // bytes_each,
        PIECE // bytes_each, matrix.values.astype(np.int64), tables,
    )  # fmt: skip
    return lambda: run(*arguments)


def program_call(program: XorProgram, w: int, memory: Memory, inputs: list[int], outputs: list[int]) -> Call:
    """Return a call that runs a program on blocks of `memory`, in layout `packets` with packets of `PACKET` bytes.

    Raises
    ------
    MemoryError
        If the program has more temporaries than there is room for.
    """
    homes = allocate(program)
    bases, steps = [], []
    for block in [*inputs, *outputs]:
        bases += [int(memory.starts[block]) + bit * _WORDS for bit in range(w)]
        steps += [w * _WORDS] * w
    if homes.scratch > SCRATCH:
        raise MemoryError(f"the program needs {homes.scratch} packets of scratch, and there is room for {SCRATCH}")
    bases += [memory.scratch + number * _WORDS for number in range(homes.scratch)]
    steps += [0] * homes.scratch
    ends, blocks = [], []
    for value, operands in enumerate(program.instructions, program.inputs):
        target = homes.blocks[value]
        sources = sorted((homes.blocks[operand] for operand in operands), key=lambda block: block != target)
        blocks += [target, *sources]
        ends.append(len(blocks))
    copies = []
    for index, value in enumerate(program.outputs):
        place = program.inputs + index
        if value == ZERO:
            copies.append((place, -1))
        elif homes.blocks[value] != place:
            copies.append((place, homes.blocks[value]))
    _, run = _kernels()
    arguments = (
        memory.words, np.array(bases, np.int64), np.array(steps, np.int64), memory.length // (w * PACKET),
        np.array(ends, np.int64), np.array(blocks, np.int64), np.array(copies, np.int64).reshape(-1, 2),
    )  # fmt: skip
    return lambda: run(*arguments)
