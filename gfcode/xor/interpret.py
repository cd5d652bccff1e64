"""Run programs in NumPy, and find the bit matrix that a program computes.

`masks` runs a program on the identity, each value a Python integer whose bit j says whether input j takes part: exact
and cheap enough for every pass to prove with it that it changed no output.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gfcode.errors import BlockError
from gfcode.xor.program import ZERO, XorProgram

__all__ = ["interpret", "masks", "matrix", "prove", "value_masks"]

Bytes = npt.NDArray[np.uint8]


def value_masks(program: XorProgram) -> list[int]:
    """Return the inputs whose XOR each value is: bit j of an entry stands for input j."""
    values = [1 << index for index in range(program.inputs)]
    for operands in program.instructions:
        value = 0
        for operand in operands:
            value ^= values[operand]
        values.append(value)
    return values


def masks(program: XorProgram) -> tuple[int, ...]:
    """Return the inputs whose XOR each output is: bit j of an entry stands for input j."""
    values = value_masks(program)
    return tuple(0 if value == ZERO else values[value] for value in program.outputs)


def matrix(program: XorProgram) -> Bytes:
    """Return the bit matrix that the program computes: zeros and ones, shape (outputs, inputs)."""
    width = -(-program.inputs // 8)
    packed = np.frombuffer(b"".join(mask.to_bytes(width, "little") for mask in masks(program)), np.uint8)
    bits = np.unpackbits(packed.reshape(len(program.outputs), width), axis=1, count=program.inputs, bitorder="little")
    return np.asarray(bits)


def prove(before: tuple[int, ...], program: XorProgram) -> XorProgram:
    """Return the program after proof that its outputs are those of `masks` before a pass.

    Raises
    ------
    AssertionError
        If an output differs: the pass has a defect.
    """
    after = masks(program)
    if after != before:
        wrong = [index for index, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]]
        raise AssertionError(f"a pass on XOR programs changed outputs {wrong}")
    return program


def interpret(program: XorProgram, blocks: Bytes | Sequence[Bytes], out: Bytes | None = None) -> Bytes:
    """Run a program on packets.

    Parameters
    ----------
    program : XorProgram
    blocks : ndarray of uint8, shape (inputs, bytes), or a sequence of 1-d arrays
        The input packets. Never written.
    out : ndarray of uint8, shape (outputs, bytes), optional
        Where the outputs go. Must not overlap the inputs.

    Returns
    -------
    ndarray of uint8, shape (outputs, bytes)
        `out`, or new memory.

    Raises
    ------
    BlockError
        If the numbers, lengths or types of the packets do not fit, or `out` overlaps them.
    """
    packets = [np.asarray(block) for block in blocks]
    out = _prepare(program, packets, out)
    length = out.shape[1]
    homes: dict[int, int] = {}
    for index, value in enumerate(program.outputs):
        homes.setdefault(value, index)
    last = program.last_uses
    values: dict[int, Bytes] = dict(enumerate(packets))
    for index, operands in enumerate(program.instructions):
        result = program.inputs + index
        home = homes.get(result)
        target = np.empty(length, np.uint8) if home is None else out[home]
        np.bitwise_xor(values[operands[0]], values[operands[1]], out=target)
        for operand in operands[2:]:
            np.bitwise_xor(target, values[operand], out=target)
        values[result] = target
        for operand in operands:
            if operand >= program.inputs and last[operand] == index and operand not in homes:
                del values[operand]
    for index, value in enumerate(program.outputs):
        if value == ZERO:
            out[index] = 0
        elif value < program.inputs or homes[value] != index:
            out[index] = values[value]
    return out


def _prepare(program: XorProgram, packets: Sequence[Bytes], out: Bytes | None) -> Bytes:
    """Check the packets, and check or make the outputs."""
    if len(packets) != program.inputs:
        raise BlockError(f"the program has {program.inputs} inputs, but {len(packets)} packets were given")
    if any(packet.dtype != np.uint8 or packet.ndim != 1 for packet in packets):
        raise BlockError("packets must be one-dimensional arrays of uint8")
    lengths = {packet.shape[0] for packet in packets}
    if len(lengths) > 1:
        raise BlockError(f"packets must all have the same length, not {', '.join(map(str, sorted(lengths)))} bytes")
    shape = (len(program.outputs), lengths.pop() if lengths else 0)
    if out is None:
        return np.empty(shape, np.uint8)
    if out.shape != shape or out.dtype != np.uint8:
        raise BlockError(f"out must be uint8 of shape {shape}, not {out.dtype} of shape {out.shape}")
    if any(np.may_share_memory(packet, out) for packet in packets):
        raise BlockError("out must not overlap the packets")
    return out
